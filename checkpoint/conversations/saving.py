"""The two saves of a request, inside a transaction of the caller's.

The conversation's row is locked first. So sequence numbers of one conversation are given one at a time
whatever the process, and nothing can be added to a conversation that is being deleted.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Table, and_, func, insert, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import Insert

from checkpoint.conversations.errors import ConversationNotFoundError, MessageIdReusedError
from checkpoint.conversations.models import conversation, message, storable
from checkpoint.conversations.rows import (
    Conversation,
    Owner,
    Question,
    Reply,
    Stamp,
    StoredMessage,
    conversation_of,
    message_of,
)
from checkpoint.conversations.titles import title_of

LOOKED_BACK = 20  # rows among which an unanswered question is looked for; a thread has one at a time


def owned_by(owner: Owner) -> Any:
    """The condition of every read and write: tenant, user, not deleted."""
    return and_(
        conversation.c.tenant_id == owner.tenant_id,
        conversation.c.user_id == owner.user_id,
        conversation.c.status != "DELETED",
    )


def insert_or_ignore(connection: Connection, table: Table) -> Insert:
    """An insert that does nothing where a row with one of its unique keys is there already."""
    if connection.dialect.name == "sqlite":
        return sqlite.insert(table).on_conflict_do_nothing()
    return postgresql.insert(table).on_conflict_do_nothing()


def touch(
    connection: Connection, owner: Owner, conversation_id: UUID, at: datetime, **values: Any
) -> Conversation:
    """Lock the conversation, change it and give it as it is now. Raises ConversationNotFoundError."""
    changed = (
        update(conversation)
        .where(conversation.c.id == conversation_id, owned_by(owner))
        .values(updated_at=at, **values)
        .returning(*conversation.c)
    )
    row = connection.execute(changed).mappings().one_or_none()
    if row is None:
        raise ConversationNotFoundError(conversation_id)
    return conversation_of(row)


def find_by_name(connection: Connection, owner: Owner, name: str) -> Conversation | None:
    sought = select(conversation).where(conversation.c.external_id == storable(name), owned_by(owner))
    row = connection.execute(sought).mappings().one_or_none()
    return conversation_of(row) if row else None


def open_named(
    connection: Connection, owner: Owner, name: str, knowledge_base: str, stamp: Stamp
) -> Conversation:
    """The owner's conversation of this name, made if there is none."""
    found = find_by_name(connection, owner, name)
    if found:
        return found
    connection.execute(
        insert_or_ignore(connection, conversation),
        new_conversation(owner, name, knowledge_base, stamp),
    )
    found = find_by_name(connection, owner, name)
    if found is None:  # made and deleted by someone else in between
        raise ConversationNotFoundError(stamp.id)
    return found


def new_conversation(
    owner: Owner, name: str, knowledge_base: str, stamp: Stamp, title: str | None = None
) -> dict[str, Any]:
    return {
        "id": stamp.id,
        "external_id": name,
        "tenant_id": owner.tenant_id,
        "user_id": owner.user_id,
        "knowledge_base_id": knowledge_base,
        "title": title,
        "created_at": stamp.at,
        "updated_at": stamp.at,
    }


def save_question(
    connection: Connection, held: Conversation, question: Question, stamp: Stamp
) -> tuple[StoredMessage, StoredMessage | None]:
    """The USER row of this request and its answer if it has one. The conversation is locked by the caller.

    The same client message again is the same row, whatever request brings it: answered before, its answer is
    given; not answered, the row now stands for this request. Raises MessageIdReusedError for another text.
    """
    known = _known_question(connection, held.id, question)
    if known is None:
        return add_message(connection, held.id, _question_row(question, stamp)), None
    if known.content != storable(question.content):
        raise MessageIdReusedError(held.id)
    answer = answer_to(connection, held.id, known.request_id or "")
    if answer:
        return known, answer
    again = (
        update(message)
        .where(message.c.id == known.id)
        .values(request_id=question.request_id, status="COMPLETE")
        .returning(*message.c)
    )
    return message_of(connection.execute(again).mappings().one()), None


def save_reply(
    connection: Connection, conversation_id: UUID, request_id: str, reply: Reply, stamp: Stamp
) -> StoredMessage:
    """The request's ASSISTANT row: this one, or the one that was saved before. Same lock as above."""
    row = _reply_row(request_id, reply, stamp)
    adding = _add_statement(insert_or_ignore(connection, message), conversation_id, row)
    added = connection.execute(adding.returning(message.c.id)).first()
    if added:
        connection.execute(
            update(message)
            .where(_of_request(conversation_id, request_id), message.c.role == "USER")
            .values(status="COMPLETE", standalone_question=reply.standalone_question)
        )
    sought = select(message).where(_of_request(conversation_id, request_id), message.c.role == "ASSISTANT")
    return message_of(connection.execute(sought).mappings().one())


def mark_failed(connection: Connection, conversation_id: UUID, request_id: str) -> bool:
    """Mark the USER row of a request that came to nothing; False when it was answered after all."""
    answered = select(message.c.id).where(
        _of_request(conversation_id, request_id), message.c.role == "ASSISTANT"
    )
    if connection.execute(answered).first():
        return False
    failed = (
        update(message)
        .where(_of_request(conversation_id, request_id), message.c.role == "USER")
        .values(status="FAILED")
    )
    return connection.execute(failed).rowcount == 1


def unanswered(connection: Connection, conversation_id: UUID) -> list[StoredMessage]:
    """Questions whose request left neither an answer nor a mark, oldest first, among the newest rows."""
    newest = (
        select(message)
        .where(message.c.conversation_id == conversation_id)
        .order_by(message.c.sequence_no.desc())
        .limit(LOOKED_BACK)
    )
    rows = [message_of(row) for row in connection.execute(newest).mappings()][::-1]
    answered = {row.request_id for row in rows if row.role == "ASSISTANT"}
    return [
        row
        for row in rows
        if row.role == "USER" and row.status == "COMPLETE" and row.request_id not in answered
    ]


def answer_to(connection: Connection, conversation_id: UUID, request_id: str) -> StoredMessage | None:
    sought = select(message).where(_of_request(conversation_id, request_id), message.c.role == "ASSISTANT")
    row = connection.execute(sought).mappings().one_or_none()
    return message_of(row) if row else None


def add_message(connection: Connection, conversation_id: UUID, row: Mapping[str, Any]) -> StoredMessage:
    added = _add_statement(insert(message), conversation_id, row).returning(*message.c)
    return message_of(connection.execute(added).mappings().one())


def _add_statement(base: Insert, conversation_id: UUID, row: Mapping[str, Any]) -> Insert:
    greatest = (
        select(func.coalesce(func.max(message.c.sequence_no), 0) + 1)
        .where(message.c.conversation_id == conversation_id)
        .scalar_subquery()
    )
    return base.values(conversation_id=conversation_id, sequence_no=greatest, **row)


def _known_question(
    connection: Connection, conversation_id: UUID, question: Question
) -> StoredMessage | None:
    same = message.c.request_id == question.request_id
    if question.client_message_id is not None:
        same = or_(same, message.c.client_message_id == storable(question.client_message_id))
    sought = select(message).where(
        message.c.conversation_id == conversation_id, message.c.role == "USER", same
    )
    row = connection.execute(sought).mappings().first()
    return message_of(row) if row else None


def _of_request(conversation_id: UUID, request_id: str) -> Any:
    return and_(message.c.conversation_id == conversation_id, message.c.request_id == request_id)


def _question_row(question: Question, stamp: Stamp) -> dict[str, Any]:
    return {
        "id": stamp.id,
        "role": "USER",
        "content": question.content,
        "trace_id": question.trace_id,
        "request_id": question.request_id,
        "client_message_id": question.client_message_id,
        "status": "COMPLETE",
        "created_at": stamp.at,
    }


def _reply_row(request_id: str, reply: Reply, stamp: Stamp) -> dict[str, Any]:
    return {
        "id": stamp.id,
        "role": "ASSISTANT",
        "content": reply.content,
        "sources": reply.sources,
        "model": reply.model,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "request_id": request_id,
        "status": reply.status,
        "created_at": stamp.at,
    }


def first_title(held: Conversation, question: Question) -> str | None:
    """The title to give now, or None when there is one or the question is a command."""
    if held.title or question.content.lstrip().startswith("/"):
        return None
    return title_of(question.content) or None
