"""A conversation's rows up to some point, copied into a new conversation of the same owner."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, insert, select, true
from sqlalchemy.exc import IntegrityError

from checkpoint.conversations import saving
from checkpoint.conversations.errors import NameTakenError
from checkpoint.conversations.models import conversation, message
from checkpoint.conversations.rows import (
    Conversation,
    Owner,
    Stamp,
    StoredMessage,
    conversation_of,
    message_of,
)
from checkpoint.conversations.store import ConversationStore


@dataclass(frozen=True)
class Cut:
    """Where a copy ends: with the last request of the branch, or by time where that left no row.

    `is_answered`: whether the branch holds the answer to that request.
    """

    request_id: str | None
    is_answered: bool
    at: datetime


def fork_conversation(store: ConversationStore, source: Conversation, name: str, cut: Cut) -> Conversation:
    """The new conversation with copies of the rows. Raises NameTakenError; then nothing was written."""
    stamp = Stamp(store.new_id(), store.now())
    made = saving.new_conversation(source.owner, name, source.knowledge_base_id, stamp, source.title)
    with store.database.write("copying a conversation") as connection:
        rows = connection.execute(_rows_query(source, cut)).mappings().all()
        try:
            held = connection.execute(insert(conversation).returning(*conversation.c), made)
        except IntegrityError:
            raise NameTakenError from None
        copied = conversation_of(held.mappings().one())
        if rows:
            connection.execute(insert(message), [_copy_of(store, dict(row), copied) for row in rows])
    return copied


def find_request(
    store: ConversationStore, owner: Owner, request_id: str
) -> tuple[Conversation, list[StoredMessage]] | None:
    """The owner's conversation in which a request was made, and the request's rows, question first."""
    query = (
        select(message)
        .join(conversation, conversation.c.id == message.c.conversation_id)
        .where(
            conversation.c.tenant_id == owner.tenant_id,
            conversation.c.user_id == owner.user_id,
            conversation.c.status != "DELETED",
            message.c.request_id == request_id,
        )
        .order_by(conversation.c.created_at, conversation.c.id, message.c.sequence_no)
    )
    with store.database.read("looking for a request") as connection:
        rows = [message_of(row) for row in connection.execute(query).mappings()]
    if not rows:
        return None
    first = rows[0].conversation_id  # the oldest: later ones are forks of it
    return store.get(owner, first), [row for row in rows if row.conversation_id == first]


def _rows_query(source: Conversation, cut: Cut) -> Any:
    of_request = select(func.max(message.c.sequence_no)).where(
        message.c.conversation_id == source.id,
        message.c.request_id == cut.request_id,
        true() if cut.is_answered else message.c.role == "USER",
    )
    by_time = select(func.max(message.c.sequence_no)).where(
        message.c.conversation_id == source.id, message.c.created_at <= cut.at
    )
    end = func.coalesce(of_request.scalar_subquery(), by_time.scalar_subquery(), 0)
    return (
        select(message)
        .where(message.c.conversation_id == source.id, message.c.sequence_no <= end)
        .order_by(message.c.sequence_no)
    )


def _copy_of(store: ConversationStore, row: dict[str, Any], copied: Conversation) -> dict[str, Any]:
    """A client's own message id stays with the message it was sent for."""
    return {**row, "id": store.new_id(), "conversation_id": copied.id, "client_message_id": None}
