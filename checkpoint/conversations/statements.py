"""The statements of the two saves, built once: building them anew costs more than running them.

Parameters begin with `b_`, so that none is taken for a column.
"""

from typing import Any

from sqlalchemy import Table, and_, bindparam, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import Insert

from checkpoint.conversations.models import conversation, message

LOOKED_BACK = 20  # rows among which an unanswered question is looked for; a thread has one at a time

OWNED = and_(
    conversation.c.tenant_id == bindparam("b_tenant"),
    conversation.c.user_id == bindparam("b_user"),
    conversation.c.status != "DELETED",
)
_HELD = and_(conversation.c.id == bindparam("b_conversation"), OWNED)
_NAMED = and_(conversation.c.external_id == bindparam("b_name"), OWNED)
_OF_REQUEST = and_(
    message.c.conversation_id == bindparam("b_conversation"), message.c.request_id == bindparam("b_request")
)

GET = select(conversation).where(_HELD)
FIND = select(conversation).where(_NAMED)

# These lock the conversation's row until the transaction ends.
TOUCH = update(conversation).where(_HELD).values(updated_at=bindparam("b_at")).returning(conversation.c.id)

_FOR_QUESTION = (
    update(conversation)
    .values(
        updated_at=bindparam("b_at"),
        status="ACTIVE",
        title=func.coalesce(conversation.c.title, bindparam("b_title", type_=conversation.c.title.type)),
    )
    .returning(*conversation.c)
)
TOUCH_FOR_QUESTION = _FOR_QUESTION.where(_HELD)
TOUCH_NAMED_FOR_QUESTION = _FOR_QUESTION.where(_NAMED)

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
NEWEST_FORMS = (
    select(message.c.id, message.c.role, message.c.status, message.c.request_id)
    .where(message.c.conversation_id == bindparam("b_conversation"))
    .order_by(message.c.sequence_no.desc())
    .limit(LOOKED_BACK)
)

_GREATEST = (
    select(func.coalesce(func.max(message.c.sequence_no), 0) + 1)
    .where(message.c.conversation_id == bindparam("b_conversation"))
    .scalar_subquery()
)
WRITTEN = [column.name for column in message.c if column.name not in ("conversation_id", "sequence_no")]


def _adding(base: Insert) -> Insert:
    given: dict[str, Any] = {name: bindparam(f"b_{name}") for name in WRITTEN}
    row = base.values(conversation_id=bindparam("b_conversation"), sequence_no=_GREATEST, **given)
    return row.returning(message.c.sequence_no)


# Does nothing where the request has its row already, or the client's id stands for one.
ADD_MESSAGE_ONCE = {
    "sqlite": _adding(sqlite.insert(message).on_conflict_do_nothing()),
    "postgresql": _adding(postgresql.insert(message).on_conflict_do_nothing()),
}


def insert_or_ignore(dialect: str, table: Table) -> Insert:
    """An insert that does nothing where a row with one of its unique keys is there already."""
    make = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return make(table).on_conflict_do_nothing()
