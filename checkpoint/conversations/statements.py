"""The statements of the two saves, built once: building them anew costs more than running them.

Parameters begin with `b_`, so that none is taken for a column.
"""

from typing import Any

from sqlalchemy import Table, and_, bindparam, exists, func, literal_column, or_, select, true, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import Insert

from checkpoint.conversations.models import conversation, message
from checkpoint.conversations.prepared import Prepared

LOOKED_BACK = 20  # rows among which an unanswered question is looked for; a thread has one at a time

# Written out, not bound: SQLite would plan the statement anew at each use, to see that the index of names
# serves.
NOT_DELETED = conversation.c.status != literal_column("'DELETED'")
NAMED = and_(
    conversation.c.external_id == bindparam("b_name"),
    conversation.c.tenant_id == bindparam("b_tenant"),
    conversation.c.user_id == bindparam("b_user"),
    NOT_DELETED,
)
# The same, put so that no index can serve it: a PostgreSQL that knows nothing of its tables yet would look
# through all that the user has in the index of names, and keep to that for as long as the connection lives.
HELD = and_(
    conversation.c.id == bindparam("b_conversation"),
    conversation.c.tenant_id.is_not_distinct_from(bindparam("b_tenant")),
    conversation.c.user_id.is_not_distinct_from(bindparam("b_user")),
    NOT_DELETED,
)
_OF_REQUEST = and_(
    message.c.conversation_id == bindparam("b_conversation"), message.c.request_id == bindparam("b_request")
)

GET = select(conversation).where(HELD)
FIND = select(conversation).where(NAMED)

# These lock the conversation's row until the transaction ends.
NOTE_TIME = update(conversation).values(updated_at=bindparam("b_at")).returning(conversation.c.id)
TOUCH = Prepared(NOTE_TIME.where(HELD))

# No column of an index is set: it would be written again there even with the value that it has.
FOR_QUESTION = (
    update(conversation)
    .values(
        updated_at=bindparam("b_at"),
        title=func.coalesce(conversation.c.title, bindparam("b_title", type_=conversation.c.title.type)),
    )
    .returning(*conversation.c)
)
TOUCH_FOR_QUESTION = Prepared(FOR_QUESTION.where(HELD))
TOUCH_NAMED_FOR_QUESTION = Prepared(FOR_QUESTION.where(NAMED))
BRING_BACK = update(conversation).where(HELD).values(status="ACTIVE")

KNOWN_QUESTION = select(message).where(
    message.c.conversation_id == bindparam("b_conversation"),
    message.c.role == "USER",
    or_(
        message.c.request_id == bindparam("b_request"),
        message.c.client_message_id == bindparam("b_client"),
    ),
)
ANSWER = select(message).where(_OF_REQUEST, message.c.role == "ASSISTANT")
QUESTION_ANSWERED = (
    update(message)
    .where(_OF_REQUEST, message.c.role == "USER")
    .values(status="COMPLETE", standalone_question=bindparam("b_standalone"))
)
QUESTION_FAILED = update(message).where(_OF_REQUEST, message.c.role == "USER").values(status="FAILED")
QUESTION_AGAIN = (
    update(message)
    .where(message.c.id == bindparam("b_message"))
    .values(request_id=bindparam("b_request"), status="COMPLETE")
    .returning(*message.c)
)


def waiting(conversation_id: Any, *conditions: Any) -> Any:
    """Questions without answer or mark, oldest first; question and answer may both be without a request."""
    newest = (
        select(message.c.id, message.c.role, message.c.status, message.c.request_id, message.c.sequence_no)
        .where(message.c.conversation_id == conversation_id)
        .order_by(message.c.sequence_no.desc())
        .limit(LOOKED_BACK)
        .cte("newest")
    )
    answers = newest.alias("answers")
    of_request = answers.c.request_id.is_not_distinct_from(newest.c.request_id)
    is_answered = exists(select(answers.c.id).where(answers.c.role == "ASSISTANT", of_request))
    return (
        select(newest.c.id, newest.c.request_id)
        .where(newest.c.role == "USER", newest.c.status == "COMPLETE", ~is_answered)
        .where(*(newest.c.request_id.is_distinct_from(mine) for mine in conditions))
        .order_by(newest.c.sequence_no)
    )


WAITING = Prepared(waiting(bindparam("b_conversation_id")))
WRITTEN = [column.name for column in message.c if column.name not in ("conversation_id", "sequence_no")]


def written(name: str) -> Any:
    return bindparam(f"b_{name}", type_=message.c[name].type)


def next_number(conversation_id: Any) -> Any:
    """Of a conversation's next message, as far as the statement sees the others."""
    greatest = func.coalesce(func.max(message.c.sequence_no), 0)
    return select(greatest + 1).where(message.c.conversation_id == conversation_id).scalar_subquery()


def _adding(*conditions: Any) -> Prepared:
    """Does nothing where the request has its row already, or the client's id stands for one."""
    row = select(_ID, next_number(_ID), *map(written, WRITTEN)).where(*conditions)
    columns = ["conversation_id", "sequence_no", *WRITTEN]
    return Prepared.of_dialect(
        lambda make: (
            make(message).from_select(columns, row).on_conflict_do_nothing().returning(message.c.sequence_no)
        )
    )


_ID = written("conversation_id")
_OTHERS_WAIT = exists(waiting(_ID, bindparam("b_request_id")))
ADD_MESSAGE_ONCE = _adding(true())
# Nor while another request's question waits for its answer or its mark.
ADD_QUESTION_WHEN_SETTLED = _adding(~_OTHERS_WAIT)

# What only the usual course of a save runs: each statement gives one row, or all is undone. An archived
# conversation takes the other course, and is brought back there.
ACTIVE = conversation.c.status == literal_column("'ACTIVE'")
USUAL_TOUCH = Prepared(FOR_QUESTION.where(HELD, ACTIVE))
USUAL_TOUCH_NAMED = Prepared(FOR_QUESTION.where(NAMED, ACTIVE))
USUAL_ANSWERED = Prepared(QUESTION_ANSWERED.returning(message.c.id))
BEGUN = {
    column.name: bindparam(f"b_begun_{column.name}", type_=column.type)
    for column in conversation.c
    if column.name not in ("summary", "summary_message_sequence", "status")
}
USUAL_BEGINNING = Prepared.of_dialect(
    lambda make: make(conversation).values(BEGUN).on_conflict_do_nothing().returning(*conversation.c)
)


def insert_or_ignore(dialect: str, table: Table) -> Insert:
    """An insert that does nothing where a row with one of its unique keys is there already."""
    make = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return make(table).on_conflict_do_nothing()
