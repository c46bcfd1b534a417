"""The purge: removing for good what was deleted or has been kept long enough, with a receipt."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, delete, exists, func, insert, literal_column, select

from checkpoint.archive import forget_thread
from checkpoint.conversations.models import audit, conversation, message, request_archive, summary_version
from checkpoint.conversations.rows import Conversation, Owner, conversation_of
from checkpoint.conversations.saving import find_by_name
from checkpoint.conversations.store import ConversationStore
from checkpoint.requests import shanghai_time

LOGS = "logs"

ThreadOf = Callable[[Owner, str], str]  # whose, and the name they chose -> the thread in Redis
EraseThread = Callable[[str], bool]  # False: somebody is at work in the thread, and it was left alone
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Purged:
    """One conversation that is gone, in numbers."""

    conversation_id: str
    messages: int
    summaries: int
    requests: int
    thread_erased: bool  # False: a newer conversation of the same name lives in that thread


@dataclass(frozen=True)
class PurgeReceipt:
    """What one purge removed. Holds ids and numbers only."""

    receipt_id: str
    at: str
    conversations: list[Purged] = field(default_factory=list)
    postponed: int = 0  # conversations in whose thread somebody was at work; the next purge removes them
    audit_rows: int = 0
    archive_rows: int = 0
    log_files: int = 0
    # False: somebody was reading, and SQLite's write-ahead log still holds it all.
    is_overwritten: bool = True

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def purge(
    store: ConversationStore,
    *,
    thread_of: ThreadOf,
    erase_thread: EraseThread,
    progress: Progress | None = None,
) -> PurgeReceipt:
    """Remove what the retention settings no longer keep. Repeatable; each conversation goes whole or not.

    A deleted conversation goes with its messages, source snapshots, summaries and archived records.
    """
    now = store.now()
    receipt = PurgeReceipt(str(store.new_id()), shanghai_time(now))
    due = _due(store, now)
    for number, held in enumerate(due, start=1):
        purged = _purge_one(store, held, thread_of, erase_thread, receipt.receipt_id)
        if purged:
            receipt.conversations.append(purged)
        if progress:
            progress(number, len(due), "purging")
    receipt = replace(
        receipt,
        postponed=len(due) - len(receipt.conversations),
        audit_rows=_old_audit(store, now),
        archive_rows=_old_archive(store, now),
        log_files=_old_logs(store.config.home / LOGS, now, store.config.log_days),
    )
    return replace(receipt, is_overwritten=store.database.shed_deleted_bytes())


def _due(store: ConversationStore, now: datetime) -> list[Conversation]:
    """Deleted conversations whose time has come. A deleted row changes no more, so that time is its last."""
    with store.database.read("looking for deleted conversations") as connection:
        found = connection.execute(due_query(now - timedelta(days=store.config.deleted_days)))
        return [conversation_of(row) for row in found.mappings()]


def due_query(until: datetime) -> Select[Any]:
    """Deleted up to then, oldest first. The status is part of the text, as in the index that serves it."""
    is_deleted = conversation.c.status == literal_column("'DELETED'")
    return (
        select(conversation)
        .where(is_deleted, conversation.c.updated_at <= until)
        .order_by(conversation.c.updated_at)
    )


def _purge_one(
    store: ConversationStore,
    held: Conversation,
    thread_of: ThreadOf,
    erase_thread: EraseThread,
    receipt_id: str,
) -> Purged | None:
    thread_id = thread_of(held.owner, held.external_id)
    with store.database.read("looking for a namesake") as connection:
        is_free = find_by_name(connection, held.owner, held.external_id) is None
    # Deleting has erased it already, unless it was cut off between SQL and Redis.
    if is_free and not erase_thread(thread_id):
        return None
    with store.database.write("purging a conversation") as connection:
        purged = _remove(connection, held, thread_id, thread_erased=is_free)
        _record(connection, store, held, receipt_id)
    return purged


def _remove(connection: Connection, held: Conversation, thread_id: str, *, thread_erased: bool) -> Purged:
    asked = select(message.c.request_id).where(
        message.c.conversation_id == held.id, message.c.request_id.is_not(None)
    )
    requests = forget_thread(connection, thread_id, shanghai_time(held.updated_at), asked)
    summaries = delete(summary_version).where(summary_version.c.conversation_id == held.id)
    messages = delete(message).where(message.c.conversation_id == held.id)
    counts = [connection.execute(gone).rowcount for gone in (summaries, messages)]
    connection.execute(delete(conversation).where(conversation.c.id == held.id))
    return Purged(str(held.id), counts[1], counts[0], requests, thread_erased)


def _record(connection: Connection, store: ConversationStore, held: Conversation, receipt_id: str) -> None:
    row = {
        "id": store.new_id(),
        "tenant_id": held.tenant_id,
        "user_id": held.user_id,
        "action": "purge",
        "conversation_id": held.id,
        "at": store.now(),
        "detail": {"receipt": receipt_id},
    }
    connection.execute(insert(audit), row)


def _old_audit(store: ConversationStore, now: datetime) -> int:
    oldest = now - timedelta(days=store.config.audit_days)
    with store.database.write("purging the audit trail") as connection:
        return connection.execute(delete(audit).where(audit.c.at < oldest)).rowcount


def _old_archive(store: ConversationStore, now: datetime) -> int:
    oldest = shanghai_time(now - timedelta(days=store.config.archive_days))
    with store.database.write("purging the archive") as connection:
        gone = delete(request_archive).where(request_archive.c.received_at < oldest)
        return connection.execute(gone).rowcount


def _old_logs(folder: Path, now: datetime, days: int) -> int:
    """Delete files last written more than `days` ago. A folder that is not there has none."""
    oldest = (now - timedelta(days=days)).timestamp()
    old = [file for file in folder.glob("*") if file.is_file() and file.stat().st_mtime < oldest]
    for file in old:
        file.unlink(missing_ok=True)
    return len(old)


def prune_messages(
    store: ConversationStore, *, keep_turns: int | None = None, before: datetime | None = None
) -> int:
    """Delete whole old turns: all but the newest `keep_turns` of a conversation, and those from before then.

    The newest question of every conversation stays with its answer, and so does its newest summary; by age,
    older summaries go too. -> how many rows went.
    """
    gone = 0
    if keep_turns is not None:
        gone += sum(_delete_up_to(store, *boundary) for boundary in _boundaries(store, max(1, keep_turns)))
    if before is not None:
        gone += _delete_before(store, before) + _drop_superseded(store, before)
    store.database.shed_deleted_bytes()
    return gone


def _boundaries(store: ConversationStore, keep_turns: int) -> list[tuple[UUID, int]]:
    """Of each longer conversation, the number of the oldest question that stays."""
    rank = (
        func.row_number()
        .over(partition_by=message.c.conversation_id, order_by=message.c.sequence_no.desc())
        .label("rank")
    )
    asked = select(message.c.conversation_id, message.c.sequence_no, rank).where(message.c.role == "USER")
    ranked = asked.subquery()
    query = select(ranked.c.conversation_id, ranked.c.sequence_no).where(ranked.c.rank == keep_turns)
    with store.database.read("looking for old messages") as connection:
        return [(identity, number) for identity, number in connection.execute(query)]


def _delete_up_to(store: ConversationStore, conversation_id: UUID, sequence: int) -> int:
    older = (message.c.conversation_id == conversation_id) & (message.c.sequence_no < sequence)
    with store.database.write("pruning messages") as connection:
        return connection.execute(delete(message).where(older)).rowcount


def _drop_superseded(store: ConversationStore, before: datetime) -> int:
    """Delete summaries from before then that a newer one has replaced; the newest is still in use."""
    newer = summary_version.alias()
    is_superseded = exists().where(
        newer.c.conversation_id == summary_version.c.conversation_id,
        newer.c.version > summary_version.c.version,
    )
    gone = delete(summary_version).where(summary_version.c.created_at < before, is_superseded)
    with store.database.write("pruning summaries") as connection:
        return connection.execute(gone).rowcount


def _delete_before(store: ConversationStore, before: datetime) -> int:
    same, newer = message.alias(), message.alias()
    newest_question = (
        select(func.max(same.c.sequence_no))
        .where(same.c.conversation_id == message.c.conversation_id, same.c.role == "USER")
        .scalar_subquery()
    )
    # An answer that came after the limit keeps its question.
    goes_on = exists().where(
        newer.c.conversation_id == message.c.conversation_id,
        newer.c.request_id == message.c.request_id,
        newer.c.created_at >= before,
    )
    old = (message.c.created_at < before) & (message.c.sequence_no < newest_question) & ~goes_on
    with store.database.write("pruning messages") as connection:
        return connection.execute(delete(message).where(old)).rowcount
