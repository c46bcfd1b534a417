"""Request records copied from Redis to SQL before they expire, and what can be counted there.

A run reads every record once and writes what is new or has changed, a batch a transaction. It keeps no
place: what an interrupted run has written, the next one finds unchanged and only reads past. So it may be
interrupted anywhere, run beside live traffic, twice at once, and again for ever.

A thread may be erased between reading and writing. So each transaction looks in Redis again, while no purge
can be deleting: what is gone by then is not written, and what was written before, the purge deletes.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Select, delete, func, or_, select, text, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import Insert

from checkpoint.conversations.database import Database
from checkpoint.conversations.models import request_archive, storable
from checkpoint.errors import BadRequestError, CannotRestoreError
from checkpoint.layout import context_key, request_field
from checkpoint.plan import Plans
from checkpoint.requests import RequestRecord, check_record, decode_record, record_pattern
from checkpoint.wire import Wire, ask

BATCH = 500
NEW_QUESTION = "new_question"
LISTED = request_archive.c
Item = TypeVar("Item")

Progress = Callable[[int, int, str], None]  # threads done, threads in all, what is being done
# Request records, as they were read -> the ids of those that Redis still holds.
StillThere = Callable[[Sequence[RequestRecord]], Collection[str]]


class Saver(Protocol):
    """What is used of the saver."""

    @property
    def wire(self) -> Wire: ...

    @property
    def plans(self) -> Plans: ...


@dataclass(frozen=True)
class Archived:
    """What one run did. `running` is how many will be read again; `gone` ended unseen: they had expired."""

    threads: int = 0
    read: int = 0
    written: int = 0
    running: int = 0
    gone: int = 0
    unreadable: int = 0


@dataclass(frozen=True)
class DayCount:
    """How many new questions one day (Shanghai) brought."""

    day: str
    questions: int


def archive_requests(
    saver: Saver,
    database: Database,
    *,
    now: Callable[[], datetime],
    progress: Progress | None = None,
    batch: int = BATCH,
) -> Archived:
    """Copy all records of all threads. After CheckpointUnavailable or StoreUnavailable, run it again."""
    keys = list(saver.wire.scan(saver.plans.prefix))
    done = Archived(threads=len(keys))
    for part in _in_batches(_read_all(saver, keys, progress), batch):
        records = [record for record in part if record is not None]
        written = write_records(database, records, now(), still_there=looking_again(saver))
        done = replace(
            done,
            read=done.read + len(records),
            written=done.written + written,
            unreadable=done.unreadable + len(part) - len(records),
        )
    return _read_running_again(saver, database, now, done, batch)


def write_records(
    database: Database,
    records: Sequence[RequestRecord],
    at: datetime,
    *,
    still_there: StillThere | None = None,
) -> int:
    """Insert or update what is new or changed, in one transaction. -> how many rows that was.

    A row that has ended is replaced only by a later ending, so an older reading never undoes a newer one.
    What `still_there` misses is left out.
    """
    newest = {record["request_id"]: record for record in records}
    if not newest:
        return 0
    with database.read("reading the archive") as connection:
        known = _known(connection, list(newest))
    changed = [record for key, record in newest.items() if known.get(key) != _state(record)]
    if not changed:
        return 0
    with database.write("writing the archive") as connection:
        keep_purges_out(connection)
        kept = still_there(changed) if still_there else newest.keys()
        rows = [_row(record, at) for record in changed if record["request_id"] in kept]
        if rows:
            connection.execute(_upsert(connection), rows)
    return len(rows)


def looking_again(saver: Saver) -> StillThere:
    """Asks Redis; one exchange a thread."""

    def still_there(records: Sequence[RequestRecord]) -> set[str]:
        by_thread: dict[str, list[str]] = defaultdict(list)
        for record in records:
            by_thread[record["thread_id"]].append(record["request_id"])
        found: set[str] = set()
        for thread_id, ids in by_thread.items():
            key = context_key(saver.plans.prefix, thread_id)
            values = saver.wire.run(ask("archive", ("HMGET", key, *map(request_field, ids))))
            found |= {id_ for id_, value in zip(ids, values, strict=True) if value is not None}
        return found

    return still_there


def keep_purges_out(connection: Connection) -> None:
    """Until this transaction ends. On SQLite there is only one writing transaction anyway."""
    if connection.dialect.name != "sqlite":
        connection.execute(text("LOCK TABLE request_archive IN SHARE ROW EXCLUSIVE MODE"))


def questions_per_day(
    database: Database, *, since: str | None = None, until: str | None = None
) -> list[DayCount]:
    """New questions a day, oldest first; days are `2026-01-31`, both ends included. Replies do not count."""
    query = (
        select(LISTED.received_on, func.count())
        .where(LISTED.input_kind == NEW_QUESTION)
        .group_by(LISTED.received_on)
        .order_by(LISTED.received_on)
    )
    if since:
        query = query.where(LISTED.received_on >= since)
    if until:
        query = query.where(LISTED.received_on <= until)
    with database.read("counting questions") as connection:
        return [DayCount(day, count) for day, count in connection.execute(query)]


# --- reading ---


def _read_all(saver: Saver, keys: Sequence[str], progress: Progress | None) -> Iterator[RequestRecord | None]:
    """Every readable record, and None for each that is not."""
    for number, key in enumerate(keys, start=1):
        for field, value in saver.wire.scan_fields(key, record_pattern()):
            yield _readable(field, value)
        if progress:
            progress(number, len(keys), "archiving")


def _readable(field: bytes, value: bytes) -> RequestRecord | None:
    try:
        return check_record(decode_record(field, value))
    except (BadRequestError, CannotRestoreError, AttributeError):
        return None


def _read_running_again(
    saver: Saver, database: Database, now: Callable[[], datetime], done: Archived, batch: int
) -> Archived:
    """Look once more at all that was last seen running, in whatever run."""
    running = _running(database)
    gone = 0
    for part in _in_batches(running, batch):
        records = [(row, _read_one(saver, *row)) for row in part]
        ended = [record for _, record in records if record]
        written = write_records(database, ended, now(), still_there=looking_again(saver))
        lost = [request_id for (request_id, _), record in records if record is None]
        _mark_gone(database, lost, now())
        gone += len(lost)
        done = replace(done, written=done.written + written)
    return replace(done, gone=gone, running=len(_running(database)))


def _read_one(saver: Saver, request_id: str, thread_id: str) -> RequestRecord | None:
    field = request_field(request_id)
    key = context_key(saver.plans.prefix, thread_id)
    value = saver.wire.run(ask("archive", ("HGET", key, field)))
    return None if value is None else _readable(field, value)


def _in_batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    walk = iter(items)
    while part := list(islice(walk, size)):
        yield part


# --- statements ---


def _running(database: Database) -> list[tuple[str, str]]:
    """(request id, thread id) of rows that may still change."""
    waiting = (
        select(LISTED.request_id, LISTED.thread_id)
        .where(LISTED.status == "running", LISTED.gone_at.is_(None))
        .order_by(LISTED.request_id)
    )
    with database.read("reading the archive") as connection:
        return [(request_id, thread_id) for request_id, thread_id in connection.execute(waiting)]


def _mark_gone(database: Database, request_ids: Iterable[str], at: datetime) -> None:
    """They stay `running`: how they ended is not known, and is not made up."""
    gone = list(request_ids)
    if gone:
        with database.write("writing the archive") as connection:
            connection.execute(update(request_archive).where(LISTED.request_id.in_(gone)).values(gone_at=at))


def _known(connection: Connection, request_ids: Sequence[str]) -> dict[str, tuple[str, str | None]]:
    rows = connection.execute(
        select(LISTED.request_id, LISTED.status, LISTED.finished_at).where(LISTED.request_id.in_(request_ids))
    )
    return {request_id: (status, finished_at) for request_id, status, finished_at in rows}


def _state(record: RequestRecord) -> tuple[str, str | None]:
    return record["status"], record["finished_at"]


def _row(record: RequestRecord, at: datetime) -> dict[str, Any]:
    return {**record, "received_on": record["received_at"][:10], "archived_at": at, "gone_at": None}


def _upsert(connection: Connection) -> Insert:
    make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    adding = make(request_archive)
    new = adding.excluded
    columns = [column.name for column in request_archive.columns if column.name != "request_id"]
    return adding.on_conflict_do_update(
        index_elements=[LISTED.request_id],
        set_={name: new[name] for name in columns},
        where=or_(LISTED.finished_at.is_(None), new["finished_at"] > LISTED.finished_at),
    )


def forget_thread(
    connection: Connection, thread_id: str, until: str, request_ids: Select[tuple[str | None]]
) -> int:
    """Delete a thread's records received up to `until`, and those that the query names. -> how many.

    A fork has copies of the rows of another thread, whose records are not its own.
    """
    keep_purges_out(connection)  # an archiving transaction waits for this one, or this one for it
    of_thread = LISTED.thread_id == storable(thread_id)
    is_named = LISTED.request_id.in_(request_ids)
    gone = delete(request_archive).where(of_thread, or_(LISTED.received_at <= until, is_named))
    return connection.execute(gone).rowcount
