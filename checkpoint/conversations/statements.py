"""The statements of the two saves, built once: building them anew costs more than running them.

Parameters begin with `b_`, so that none is taken for a column.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Table, and_, bindparam, exists, func, or_, select, true, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import Insert

from checkpoint.conversations.models import conversation, message
from checkpoint.conversations.prepared import Prepared

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
TOUCH = Prepared(
    update(conversation).where(_HELD).values(updated_at=bindparam("b_at")).returning(conversation.c.id)
)

# No column of an index is set: it would be written again there even with the value that it has.
_FOR_QUESTION = (
    update(conversation)
    .values(
        updated_at=bindparam("b_at"),
        title=func.coalesce(conversation.c.title, bindparam("b_title", type_=conversation.c.title.type)),
    )
    .returning(*conversation.c)
)
TOUCH_FOR_QUESTION = Prepared(_FOR_QUESTION.where(_HELD))
TOUCH_NAMED_FOR_QUESTION = Prepared(_FOR_QUESTION.where(_NAMED))
BRING_BACK = update(conversation).where(_HELD).values(status="ACTIVE")

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
_NEWEST = (
    select(message.c.id, message.c.role, message.c.status, message.c.request_id, message.c.sequence_no)
    .where(message.c.conversation_id == bindparam("b_conversation_id"))
    .order_by(message.c.sequence_no.desc())
    .limit(LOOKED_BACK)
    .cte("newest")
)
_ANSWERS = _NEWEST.alias("answers")
# Questions without answer or mark, oldest first; question and answer may both be without a request.
_WAITING = (
    select(_NEWEST.c.id, _NEWEST.c.request_id)
    .where(
        _NEWEST.c.role == "USER",
        _NEWEST.c.status == "COMPLETE",
        ~exists(
            select(_ANSWERS.c.id).where(
                _ANSWERS.c.role == "ASSISTANT",
                _ANSWERS.c.request_id.is_not_distinct_from(_NEWEST.c.request_id),
            )
        ),
    )
    .order_by(_NEWEST.c.sequence_no)
)
WAITING = Prepared(_WAITING)

_GREATEST = (
    select(func.coalesce(func.max(message.c.sequence_no), 0) + 1)
    .where(message.c.conversation_id == bindparam("b_conversation_id"))
    .scalar_subquery()
)
WRITTEN = [column.name for column in message.c if column.name not in ("conversation_id", "sequence_no")]


def _given(name: str) -> Any:
    return bindparam(f"b_{name}", type_=message.c[name].type)


_ROW = [_given("conversation_id"), _GREATEST, *map(_given, WRITTEN)]
_COLUMNS = ["conversation_id", "sequence_no", *WRITTEN]
_IS_SETTLED = ~exists(_WAITING.where(_NEWEST.c.request_id.is_distinct_from(bindparam("b_request_id"))))


def _adding(*conditions: Any) -> Mapping[str, Prepared]:
    """Does nothing where the request has its row already, or the client's id stands for one."""
    row = select(*_ROW).where(*conditions)
    makes: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
    return {
        name: Prepared(
            make(message).from_select(_COLUMNS, row).on_conflict_do_nothing().returning(message.c.sequence_no)
        )
        for name, make in makes.items()
    }


ADD_MESSAGE_ONCE = _adding(true())
# Nor while another request's question waits for its answer or its mark.
ADD_QUESTION_WHEN_SETTLED = _adding(_IS_SETTLED)


def insert_or_ignore(dialect: str, table: Table) -> Insert:
    """An insert that does nothing where a row with one of its unique keys is there already."""
    make = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return make(table).on_conflict_do_nothing()
