"""The two saves of a request, inside a transaction of the caller's.

The conversation's row is locked first. So sequence numbers of one conversation are given one at a time
whatever the process, and nothing can be added to a conversation that is being deleted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, and_, select, update

from checkpoint.conversations import at_once, statements
from checkpoint.conversations.errors import ConversationNotFoundError, MessageIdReusedError, UnsettledError
from checkpoint.conversations.models import conversation, message, storable, storable_json
from checkpoint.conversations.prepared import Prepared
from checkpoint.conversations.rows import (
    Conversation,
    Owner,
    Place,
    Question,
    Reply,
    Saved,
    Stamp,
    StoredMessage,
    conversation_of,
    message_of,
)
from checkpoint.conversations.titles import title_of
from checkpoint.conversations.usual import Course, Row


def owned_by(owner: Owner) -> Any:
    """The condition of every read and write: tenant, user, not deleted."""
    return and_(
        conversation.c.tenant_id == owner.tenant_id,
        conversation.c.user_id == owner.user_id,
        statements.NOT_DELETED,
    )


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


def hold(connection: Connection, owner: Owner, conversation_id: UUID, at: datetime) -> None:
    """Lock the conversation and note the time. Raises ConversationNotFoundError."""
    held = statements.TOUCH.one_or_none(connection, {**whose(owner, conversation_id), "b_at": at})
    if held is None:
        raise ConversationNotFoundError(conversation_id)


def hold_for_question(
    connection: Connection, owner: Owner, place: Place, question: Question, stamp: Stamp
) -> Conversation:
    """Lock the conversation, make it active, give it its first title. A named one is made if there is none.

    Raises ConversationNotFoundError for an id that is not the owner's.
    """
    given = {"b_at": stamp.at, "b_title": first_title(question)}
    if place.conversation_id is not None:
        of_id = {**given, **whose(owner, place.conversation_id)}
        held = _touched(connection, statements.TOUCH_FOR_QUESTION, of_id)
    else:
        of_name = {**given, **named(owner, place.name)}
        held = _touched(connection, statements.TOUCH_NAMED_FOR_QUESTION, of_name)
        if held is None:
            made = new_conversation(owner, place.name, place.knowledge_base, stamp)
            connection.execute(statements.insert_or_ignore(connection.dialect.name, conversation), made)
            held = _touched(connection, statements.TOUCH_NAMED_FOR_QUESTION, of_name)
    if held is None:
        raise ConversationNotFoundError(place.conversation_id or stamp.id)
    if held.status == "ACTIVE":
        return held
    connection.execute(statements.BRING_BACK, whose(owner, held.id))
    return replace(held, status="ACTIVE")


def _touched(connection: Connection, statement: Prepared, given: dict[str, Any]) -> Conversation | None:
    row = statement.one_or_none(connection, given)
    return Conversation(*row) if row else None


def named(owner: Owner, name: str) -> dict[str, Any]:
    return {"b_name": name, "b_tenant": owner.tenant_id, "b_user": owner.user_id}


def whose(owner: Owner, conversation_id: UUID) -> dict[str, Any]:
    return {"b_conversation": conversation_id, "b_tenant": owner.tenant_id, "b_user": owner.user_id}


def find_by_name(connection: Connection, owner: Owner, name: str) -> Conversation | None:
    row = connection.execute(statements.FIND, named(owner, name)).mappings().one_or_none()
    return conversation_of(row) if row else None


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


def usual_questions(
    owner: Owner, place: Place, question: Question, stamp: Stamp, message_stamp: Stamp
) -> Iterator[Course[Saved]]:
    """A new question, in a conversation that goes on with no other one open; or the first of a new one."""
    title, row = first_title(question), _bound(_question_row(question, message_stamp))
    given = {**row, "b_at": stamp.at, "b_title": title}

    def saved(found: Row) -> Saved:
        held = Conversation(*found[:-1])
        return Saved(held, _added_message({**row, "b_conversation_id": held.id}, found[-1]), None)

    add = statements.ADD_QUESTION_WHEN_SETTLED
    if place.conversation_id:
        its = whose(owner, place.conversation_id)
        yield Course({**given, **its}, (statements.USUAL_TOUCH, add), at_once.QUESTION_BY_ID, saved)
        return
    its, steps = named(owner, place.name), (statements.USUAL_TOUCH_NAMED, add)
    yield Course({**given, **its}, steps, at_once.QUESTION_BY_NAME, saved)
    begun = _bound(new_conversation(owner, place.name, place.knowledge_base, stamp, title), "b_begun_")
    yield Course({**given, **begun}, (statements.USUAL_BEGINNING, add), at_once.FIRST_QUESTION, saved)


def usual_reply(
    owner: Owner, conversation_id: UUID, request_id: str, reply: Reply, stamp: Stamp
) -> Course[StoredMessage]:
    """The first answer to a question that is there."""
    row = {**_bound(_reply_row(request_id, reply, stamp)), "b_conversation_id": conversation_id}
    given = {**row, **whose(owner, conversation_id), "b_at": stamp.at}
    steps = (statements.TOUCH, statements.ADD_MESSAGE_ONCE)

    def saved(found: Row) -> StoredMessage:
        return _added_message(row, found[1])

    if reply.is_as_asked:
        return Course(given, steps, at_once.REPLY_AS_ASKED, saved)
    given |= {"b_request": request_id, "b_standalone": reply.standalone_question}
    return Course(given, (*steps, statements.USUAL_ANSWERED), at_once.REPLY, saved)


def save_question(
    connection: Connection, held: Conversation, question: Question, stamp: Stamp, *, only_when_settled: bool
) -> tuple[StoredMessage, StoredMessage | None]:
    """The USER row of this request and its answer if it has one. The conversation is locked by the caller.

    The same client message again is the same row, whatever request brings it: answered before, its answer is
    given; not answered, the row now stands for this request. Raises MessageIdReusedError for another text,
    and UnsettledError, if asked for, while another request's question waits for its answer or its mark.
    """
    adding = statements.ADD_QUESTION_WHEN_SETTLED if only_when_settled else statements.ADD_MESSAGE_ONCE
    added = _add(connection, adding, held.id, _question_row(question, stamp))
    if added:
        return added, None
    if only_when_settled and is_unsettled(connection, held.id, question.request_id):
        raise UnsettledError(held)
    known = _known_question(connection, held.id, question)
    if known.content != storable(question.content):
        raise MessageIdReusedError(held.id)
    answer = answer_to(connection, held.id, known.request_id or "")
    if answer:
        return known, answer
    given = {"b_message": known.id, "b_request": question.request_id}
    again = connection.execute(statements.QUESTION_AGAIN, given).mappings().one()
    return message_of(again), None


def save_reply(
    connection: Connection, conversation_id: UUID, request_id: str, reply: Reply, stamp: Stamp
) -> StoredMessage:
    """The request's ASSISTANT row: this one, or the one that was saved before. Same lock as above."""
    added = _add(
        connection, statements.ADD_MESSAGE_ONCE, conversation_id, _reply_row(request_id, reply, stamp)
    )
    if added is None:
        found = connection.execute(statements.ANSWER, _of_request(conversation_id, request_id))
        return message_of(found.mappings().one())
    if not reply.is_as_asked:
        given = {**_of_request(conversation_id, request_id), "b_standalone": reply.standalone_question}
        connection.execute(statements.QUESTION_ANSWERED, given)
    return added


def mark_failed(connection: Connection, conversation_id: UUID, request_id: str) -> bool:
    """Mark the USER row of a request that came to nothing; False when it was answered after all."""
    if answer_to(connection, conversation_id, request_id):
        return False
    given = _of_request(conversation_id, request_id)
    return connection.execute(statements.QUESTION_FAILED, given).rowcount == 1


def unanswered(connection: Connection, conversation_id: UUID) -> list[StoredMessage]:
    """Questions whose request left neither an answer nor a mark, oldest first, among the newest rows."""
    waiting = [identity for identity, _ in _waiting(connection, conversation_id)]
    if not waiting:
        return []
    query = select(message).where(message.c.id.in_(waiting)).order_by(message.c.sequence_no)
    return [message_of(row) for row in connection.execute(query).mappings()]


def is_unsettled(connection: Connection, conversation_id: UUID, request_id: str) -> bool:
    """Whether another request's question waits for its answer or its mark."""
    return any(of_request != request_id for _, of_request in _waiting(connection, conversation_id))


def _waiting(connection: Connection, conversation_id: UUID) -> list[tuple[Any, ...]]:
    """(message id, request id) of each."""
    return statements.WAITING.all(connection, {"b_conversation_id": conversation_id})


def answer_to(connection: Connection, conversation_id: UUID, request_id: str) -> StoredMessage | None:
    found = connection.execute(statements.ANSWER, _of_request(conversation_id, request_id))
    row = found.mappings().one_or_none()
    return message_of(row) if row else None


def _reply_row(request_id: str, reply: Reply, stamp: Stamp) -> dict[str, Any]:
    return {
        **_blank(stamp, request_id),
        "role": "ASSISTANT",
        "content": storable(reply.content),
        "sources": storable_json(reply.sources),
        "model": reply.model,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "status": reply.status,
    }


def _question_row(question: Question, stamp: Stamp) -> dict[str, Any]:
    words = storable(question.content)
    return {
        **_blank(stamp, question.request_id),
        "content": words,
        "standalone_question": words,  # until the request says otherwise
        "trace_id": question.trace_id,
        "client_message_id": question.client_message_id,
    }


def _add(
    connection: Connection, adding: Prepared, conversation_id: UUID, row: dict[str, Any]
) -> StoredMessage | None:
    """The row as it was added; None where it was not."""
    given = {**_bound(row), "b_conversation_id": conversation_id}
    added = adding.one_or_none(connection, given)
    return _added_message(given, added[0]) if added else None


def _bound(row: Mapping[str, Any], prefix: str = "b_") -> dict[str, Any]:
    return {f"{prefix}{name}": value for name, value in row.items()}


def _added_message(given: Mapping[str, Any], number: int) -> StoredMessage:
    return StoredMessage(**{name[2:]: value for name, value in given.items()}, sequence_no=number)


def _blank(stamp: Stamp, request_id: str) -> dict[str, Any]:
    """A complete USER row without words; the database gives its number, its conversation is the caller's."""
    return {
        "id": stamp.id,
        "role": "USER",
        "content": "",
        "standalone_question": None,
        "sources": None,
        "model": None,
        "prompt_tokens": None,
        "completion_tokens": None,
        "trace_id": None,
        "request_id": request_id,
        "client_message_id": None,
        "status": "COMPLETE",
        "feedback": None,
        "created_at": stamp.at,
    }


def _known_question(connection: Connection, conversation_id: UUID, question: Question) -> StoredMessage:
    given = {**_of_request(conversation_id, question.request_id), "b_client": question.client_message_id}
    known = connection.execute(statements.KNOWN_QUESTION, given).mappings().all()
    return message_of(known[0])


def _of_request(conversation_id: UUID, request_id: str) -> dict[str, Any]:
    return {"b_conversation": conversation_id, "b_request": request_id}


def first_title(question: Question) -> str | None:
    """The title that the question gives a conversation without one; a command gives none."""
    if question.content.lstrip().startswith("/"):
        return None
    return title_of(question.content) or None
