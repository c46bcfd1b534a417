"""Conversations and messages in SQL: every read and write names its owner, and is one transaction."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID, uuid4

from sqlalchemy import Select, delete, func, insert, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from checkpoint.conversations import saving, statements
from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.cursors import decode_cursor, encode_cursor
from checkpoint.conversations.database import Database, open_engine
from checkpoint.conversations.errors import (
    BadCursorError,
    ConversationNotFoundError,
    MessageNotFoundError,
    NameTakenError,
)
from checkpoint.conversations.models import TITLE_LENGTH, audit, conversation, message
from checkpoint.conversations.revisions import migrate
from checkpoint.conversations.rows import (
    Conversation,
    Owner,
    Page,
    Place,
    Question,
    Receipt,
    Reply,
    Saved,
    Stamp,
    StoredMessage,
    conversation_of,
    message_of,
)

Action = Literal["list", "read", "export", "delete", "purge"]
MOST_ROWS = 200

Now = Callable[[], datetime]
NewId = Callable[[], UUID]


class ConversationStore:
    """The durable record. Threads and processes may share the database; order is per conversation.

    Methods raise ConversationNotFoundError for an unknown, foreign or deleted conversation alike, and
    StoreUnavailable or one of its kinds when the database does not do it; nothing is then half-written.
    """

    def __init__(self, database: Database, config: StoreConfig, *, now: Now, new_id: NewId) -> None:
        self.database = database
        self.config = config
        self.now = now
        self.new_id = new_id

    # --- conversations ---

    def create(
        self, owner: Owner, *, knowledge_base: str, name: str | None = None, title: str | None = None
    ) -> Conversation:
        """A new conversation; without a name it goes by its id. Raises NameTakenError."""
        stamp = self._stamp()
        row = saving.new_conversation(owner, name or str(stamp.id), knowledge_base, stamp, title)
        with self.database.write("creating a conversation") as connection:
            try:
                made = connection.execute(insert(conversation).returning(*conversation.c), row)
            except IntegrityError:
                raise NameTakenError from None
            return conversation_of(made.mappings().one())

    def get(self, owner: Owner, conversation_id: UUID) -> Conversation:
        with self.database.read("reading a conversation") as connection:
            found = connection.execute(statements.GET, saving.whose(owner, conversation_id))
            row = found.mappings().one_or_none()
        if row is None:
            raise ConversationNotFoundError(conversation_id)
        return conversation_of(row)

    def find(self, owner: Owner, name: str) -> Conversation | None:
        """The owner's conversation of this name, or None."""
        with self.database.read("reading a conversation") as connection:
            return saving.find_by_name(connection, owner, name)

    def list_conversations(
        self,
        owner: Owner,
        *,
        status: Literal["ACTIVE", "ARCHIVED"] = "ACTIVE",
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Conversation]:
        """Newest first by creation, which never changes, so that writing moves no row across a page's edge.

        At most `limit` of 1 to 200. Raises BadCursorError.
        """
        listing = ("conversations", owner.tenant_id, owner.user_id, status)
        with self.database.read("listing conversations") as connection:
            rows = connection.execute(conversations_query(owner, status, limit, cursor, listing)).mappings()
            found = [conversation_of(row) for row in rows]
        return _page(found, limit, lambda last: _conversation_cursor(listing, last))

    def set_title(self, owner: Owner, conversation_id: UUID, title: str) -> Conversation:
        """Raises ValueError above 255 characters."""
        if len(title) > TITLE_LENGTH:
            raise ValueError(f"a title has at most {TITLE_LENGTH} characters")
        with self.database.write("naming a conversation") as connection:
            return saving.touch(connection, owner, conversation_id, self.now(), title=title)

    def archive(self, owner: Owner, conversation_id: UUID) -> Conversation:
        """Put it aside: still readable, listed apart. A new question brings it back."""
        with self.database.write("archiving a conversation") as connection:
            return saving.touch(connection, owner, conversation_id, self.now(), status="ARCHIVED")

    def restore(self, owner: Owner, conversation_id: UUID) -> Conversation:
        """Bring an archived one back to the others."""
        with self.database.write("restoring a conversation") as connection:
            return saving.touch(connection, owner, conversation_id, self.now(), status="ACTIVE")

    # --- messages ---

    def list_messages(
        self,
        owner: Owner,
        conversation_id: UUID,
        *,
        limit: int = 50,
        cursor: str | None = None,
        newest_first: bool = False,
    ) -> Page[StoredMessage]:
        """By sequence number. At most `limit` of 1 to 200. Raises BadCursorError."""
        listing = ("messages", conversation_id, newest_first)
        query = messages_query(conversation_id, limit, cursor, listing, newest_first=newest_first)
        with self.database.read("reading messages") as connection:
            _require(connection, owner, conversation_id)
            found = [message_of(row) for row in connection.execute(query).mappings()]
        return _page(found, limit, lambda last: encode_cursor(listing, [last.sequence_no]))

    def walk_messages(
        self, owner: Owner, conversation_id: UUID, *, after: int = 0
    ) -> Iterator[StoredMessage]:
        """Messages in order after a sequence number, a page at a time: no connection is held between two."""
        cursor: str | None = encode_cursor(("messages", conversation_id, False), [after])
        while True:
            page = self.list_messages(owner, conversation_id, limit=MOST_ROWS, cursor=cursor)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def set_feedback(
        self, owner: Owner, conversation_id: UUID, message_id: UUID, feedback: Mapping[str, Any] | None
    ) -> StoredMessage:
        """On an answer only. None takes it back."""
        given = (
            update(message)
            .where(
                message.c.id == message_id,
                message.c.conversation_id == conversation_id,
                message.c.role == "ASSISTANT",
            )
            .values(feedback=None if feedback is None else dict(feedback))
            .returning(*message.c)
        )
        with self.database.write("saving feedback") as connection:
            _require(connection, owner, conversation_id)
            row = connection.execute(given).mappings().one_or_none()
        if row is None:
            raise MessageNotFoundError(message_id)
        return message_of(row)

    # --- a request's life ---

    def save_question(
        self,
        owner: Owner,
        question: Question,
        *,
        name: str,
        knowledge_base: str,
        conversation_id: UUID | None = None,
        only_when_settled: bool = False,
    ) -> Saved:
        """Save the user's message first of all; safe to repeat.

        With an id that conversation must exist; without one, the owner's conversation of this name goes on or
        begins. An archived one is active again. Raises ConversationNotFoundError, MessageIdReusedError; and
        with `only_when_settled`, UnsettledError while an earlier question has neither answer nor mark.
        """
        stamp, place = self._stamp(), Place(name, knowledge_base, conversation_id)
        message_stamp = Stamp(self.new_id(), stamp.at)
        if only_when_settled:
            usual = saving.usual_questions(owner, place, question, stamp, message_stamp)
            saved = self.database.take("saving a question", usual)
            if saved:
                return saved
        with self.database.write("saving a question") as connection:
            held = saving.hold_for_question(connection, owner, place, question, stamp)
            row, answer = saving.save_question(
                connection, held, question, message_stamp, only_when_settled=only_when_settled
            )
        return Saved(held, row, answer)

    def save_reply(self, owner: Owner, conversation_id: UUID, request_id: str, reply: Reply) -> StoredMessage:
        """Save the answer with its sources and usage in one transaction; repeated, the first one stays.

        Raises ConversationNotFoundError when the conversation was deleted meanwhile: nothing comes back.
        """
        with self.saving_reply(owner, conversation_id, request_id, reply) as saved:
            return saved()

    @contextmanager
    def saving_reply(
        self, owner: Owner, conversation_id: UUID, request_id: str, reply: Reply
    ) -> Iterator[Callable[[], StoredMessage]]:
        """`save_reply` beside other work: a server does it meanwhile, and the call waits for it.

        Left without the call, it is saved or it is not: a repair sees to the rest.
        """
        doing, stamp = "saving an answer", self._stamp()
        usual = saving.usual_reply(owner, conversation_id, request_id, reply, stamp)
        with self.database.taking(doing, usual) as taken:

            def saved() -> StoredMessage:
                known = taken()
                if known:
                    return known
                with self.database.write(doing) as connection:
                    saving.hold(connection, owner, conversation_id, stamp.at)
                    return saving.save_reply(connection, conversation_id, request_id, reply, stamp)

            yield saved

    def mark_failed(
        self,
        owner: Owner,
        conversation_id: UUID,
        request_id: str,
        *,
        is_over: Callable[[], bool] = lambda: True,
    ) -> bool:
        """Mark the question of a request that failed. False when it has an answer, or is not over after all.

        `is_over` is asked while no question can be saved in the conversation.
        """
        with self.database.write("marking a question") as connection:
            saving.hold(connection, owner, conversation_id, self.now())
            return is_over() and saving.mark_failed(connection, conversation_id, request_id)

    def unanswered(self, conversation_id: UUID) -> list[StoredMessage]:
        """Questions that wait for their answer or for a repair, oldest first."""
        with self.database.read("looking for unanswered questions") as connection:
            return saving.unanswered(connection, conversation_id)

    # --- deleting and the audit trail ---

    def delete(self, owner: Owner, conversation_id: UUID) -> Receipt:
        """Hide it from every read from now on. Repeated by its owner, the same receipt.

        The caller then ends the running turn and removes the thread; the purge removes the rows later.
        """
        with self.database.write("deleting a conversation") as connection:
            earlier = connection.execute(_deleted_query(owner, conversation_id)).mappings().one_or_none()
            if earlier is None:
                saving.touch(connection, owner, conversation_id, self.now(), status="DELETED")
                self._record(connection, owner, "delete", conversation_id, None)
            row = connection.execute(_deleted_query(owner, conversation_id)).mappings().one()
            count = select(func.count()).where(message.c.conversation_id == conversation_id)
            messages = connection.execute(count).scalar_one()
            receipt_id = connection.execute(_receipt_query(conversation_id)).scalar()
        deleted = conversation_of(row)
        return Receipt(
            receipt_id=receipt_id or conversation_id,
            conversation_id=deleted.id,
            external_id=deleted.external_id,
            deleted_at=deleted.updated_at,
            purge_after=deleted.updated_at + timedelta(days=self.config.deleted_days),
            messages=messages,
        )

    def rehearse_delete(self, owner: Owner, conversation_id: UUID) -> None:
        """Raise what `delete` would raise now, and change nothing but the time of the last change.

        For what is done outside before the row is hidden, which nothing could bring back. All is done and
        taken back in one transaction that is committed: only then does SQLite find the disk full.
        """
        with self.database.write("deleting a conversation") as connection:
            held = saving.touch(connection, owner, conversation_id, self.now())
            saving.touch(connection, owner, conversation_id, self.now(), status="DELETED")
            recorded = self._record(connection, owner, "delete", conversation_id, None)
            connection.execute(delete(audit).where(audit.c.id == recorded))
            of_id = conversation.c.id == conversation_id
            connection.execute(update(conversation).where(of_id).values(status=held.status))

    def record(
        self,
        owner: Owner,
        action: Action,
        conversation_id: UUID | None = None,
        detail: Mapping[str, int | str] | None = None,
    ) -> None:
        """One audit row: who did what to which conversation, and when. `detail`: numbers and ids only."""
        with self.database.write("writing the audit trail") as connection:
            self._record(connection, owner, action, conversation_id, detail)

    def _stamp(self) -> Stamp:
        return Stamp(self.new_id(), self.now())

    def _record(
        self,
        connection: Any,
        owner: Owner,
        action: Action,
        conversation_id: UUID | None,
        detail: Mapping[str, int | str] | None,
    ) -> UUID:
        recorded = self.new_id()
        row = {
            "id": recorded,
            "tenant_id": owner.tenant_id,
            "user_id": owner.user_id,
            "action": action,
            "conversation_id": conversation_id,
            "at": self.now(),
            "detail": None if detail is None else dict(detail),
        }
        connection.execute(insert(audit), row)
        return recorded


@contextmanager
def open_store(
    config: StoreConfig, *, now: Now | None = None, new_id: NewId | None = None
) -> Iterator[ConversationStore]:
    """Open the database, bring its tables to this release, and close it in the end.

    Raises ConfigError for a wrong address and StoreUnavailable or one of its kinds with what to do.
    """
    database = Database(open_engine(config))
    try:
        migrate(database)
        yield ConversationStore(
            database, config, now=now or (lambda: datetime.now(UTC)), new_id=new_id or uuid4
        )
    finally:
        database.close()


# --- statements ---


def conversations_query(
    owner: Owner, status: str, limit: int, cursor: str | None, listing: tuple[object, ...]
) -> Select[Any]:
    query = (
        select(conversation)
        .where(
            conversation.c.tenant_id == owner.tenant_id,
            conversation.c.user_id == owner.user_id,
            conversation.c.status == status,
        )
        .order_by(conversation.c.created_at.desc(), conversation.c.id.desc())
        .limit(_bounded(limit) + 1)
    )
    if cursor is None:
        return query
    at, last_id = decode_cursor(cursor, listing, (str, str))
    try:
        key = (datetime.fromisoformat(at).astimezone(UTC), UUID(last_id))
    except (ValueError, OverflowError):
        raise BadCursorError from None
    columns = tuple_(conversation.c.created_at, conversation.c.id)
    return query.where(columns < tuple_(*key, types=[conversation.c.created_at.type, conversation.c.id.type]))


def messages_query(
    conversation_id: UUID,
    limit: int,
    cursor: str | None,
    listing: tuple[object, ...],
    *,
    newest_first: bool,
) -> Select[Any]:
    number = message.c.sequence_no
    query = (
        select(message)
        .where(message.c.conversation_id == conversation_id)
        .order_by(number.desc() if newest_first else number)
        .limit(_bounded(limit) + 1)
    )
    if cursor is None:
        return query
    (last,) = decode_cursor(cursor, listing, (int,))
    if not 0 <= last < 2**63:
        raise BadCursorError
    return query.where(number < last if newest_first else number > last)


def _conversation_cursor(listing: tuple[object, ...], last: Conversation) -> str:
    return encode_cursor(listing, [last.created_at.isoformat(), str(last.id)])


def _page(found: list[Any], limit: int, cursor_of: Callable[[Any], str]) -> Page[Any]:
    """One row more than asked for tells whether there is another page."""
    shown = found[:limit]
    return Page(shown, cursor_of(shown[-1]) if len(found) > limit else None)


def _bounded(limit: int) -> int:
    if not 1 <= limit <= MOST_ROWS:
        raise ValueError(f"a page has 1 to {MOST_ROWS} rows")
    return limit


def _require(connection: Any, owner: Owner, conversation_id: UUID) -> None:
    if connection.execute(statements.GET, saving.whose(owner, conversation_id)).first() is None:
        raise ConversationNotFoundError(conversation_id)


def _deleted_query(owner: Owner, conversation_id: UUID) -> Select[Any]:
    return select(conversation).where(
        conversation.c.id == conversation_id,
        conversation.c.tenant_id == owner.tenant_id,
        conversation.c.user_id == owner.user_id,
        conversation.c.status == "DELETED",
    )


def _receipt_query(conversation_id: UUID) -> Select[Any]:
    """The audit row of the deletion is its receipt."""
    return (
        select(audit.c.id)
        .where(audit.c.conversation_id == conversation_id, audit.c.action == "delete")
        .order_by(audit.c.at)
        .limit(1)
    )
