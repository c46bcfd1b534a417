"""A save as one statement, which is its own transaction: with a database server every step is a round trip.

Each gives one row, with the number of the message in the end, or none where it saved nothing. A statement
sees the messages as they were when it began, even after it has waited for another one's lock. So a question
goes only to a conversation that nobody has written since: whoever adds or settles a message writes its
conversation first. An answer needs no such care: a number or an answer that it did not see is in its way.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import CTE, bindparam, exists, literal_column, select, true
from sqlalchemy.dialects.postgresql import insert

from checkpoint.conversations import statements
from checkpoint.conversations.models import conversation, message
from checkpoint.conversations.prepared import Prepared

_VERSION: Any = literal_column("conversation.xmin")  # PostgreSQL's own: the transaction that wrote the row


def _question(place: Any) -> Prepared:
    """After the conversation's columns. Changes nothing where another one waits, or this one is there."""
    seen = select(conversation.c.id, _VERSION.label("version")).where(place, statements.ACTIVE).cte("seen")
    identity = select(seen.c.id).scalar_subquery()
    held = statements.FOR_QUESTION.where(
        conversation.c.id == seen.c.id,
        seen.c.version == _VERSION,
        ~exists(statements.waiting(identity, bindparam("b_request_id"))),
        ~_is_there(identity, message.c.request_id == bindparam("b_request_id"), _IS_QUESTION),
        ~_is_there(identity, message.c.client_message_id == bindparam("b_client_message_id")),
    ).cte("held")
    return Prepared(_given_back(held, _added(held, statements.next_number(held.c.id), QUESTION)))


def _first_question() -> Prepared:
    """The same of a conversation that begins with it. Changes nothing where there is one of this name."""
    begun = insert(conversation).values(statements.BEGUN).on_conflict_do_nothing()
    held = begun.returning(*conversation.c).cte("held")
    return Prepared(_given_back(held, _added(held, literal_column("1"), QUESTION)))


def _reply(*, is_as_asked: bool) -> Prepared:
    """After the conversation's id. Changes its time alone where the request has its answer."""
    held = statements.NOTE_TIME.where(statements.HELD).cte("held")
    added = _added(held, statements.next_number(held.c.id), ANSWER)
    given_back = _given_back(held, added)
    if is_as_asked:
        return Prepared(given_back)
    is_added = message.c.conversation_id.in_(select(added.c.conversation_id))
    return Prepared(given_back.add_cte(statements.QUESTION_ANSWERED.where(is_added).cte("answered")))


def _added(held: CTE, number: Any, written: Sequence[str]) -> CTE:
    row = select(held.c.id, number, *map(statements.written, written))
    columns = ["conversation_id", "sequence_no", *written]
    add = insert(message).from_select(columns, row).on_conflict_do_nothing()
    return add.returning(message.c.sequence_no, message.c.conversation_id).cte("added")


def _given_back(held: CTE, added: CTE) -> Any:
    return select(held, added.c.sequence_no).select_from(held.join(added, true()))


def _is_there(conversation_id: Any, *conditions: Any) -> Any:
    return exists(select(message.c.id).where(message.c.conversation_id == conversation_id, *conditions))


_IS_QUESTION = message.c.role == literal_column("'USER'")
_MESSAGE = ("id", "role", "content", "request_id", "status", "created_at")
# What the one never has is NULL.
QUESTION = (*_MESSAGE, "standalone_question", "trace_id", "client_message_id")
ANSWER = (*_MESSAGE, "sources", "model", "prompt_tokens", "completion_tokens")
QUESTION_BY_ID = _question(statements.HELD)
QUESTION_BY_NAME = _question(statements.NAMED)
FIRST_QUESTION = _first_question()
REPLY = _reply(is_as_asked=False)
REPLY_AS_ASKED = _reply(is_as_asked=True)
