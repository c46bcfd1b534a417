"""What an operator runs: archive, stats and prune, as functions that a command line calls.

Each opens what it needs, reports progress as (done, in all, what), and returns a value with `to_json`.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from api.identity import thread_of
from api.leases import LeaseKeeper, ThreadBusyError
from checkpoint import RedisContextSaver
from checkpoint.archive import (
    Archived,
    DayCount,
    Progress,
    archive_requests,
    looking_again,
    questions_per_day,
    write_records,
)
from checkpoint.conversations.erasure import PurgeReceipt, prune_messages, purge
from checkpoint.conversations.rows import Owner
from checkpoint.conversations.store import ConversationStore, open_store
from checkpoint.errors import CheckpointUnavailable
from checkpoint.pruning import Keep, Pruned, Rule, prune_threads
from checkpoint.wire import ask
from graph.compose import open_saver
from graph.settings import Settings
from nodes.contracts import Caller

REWRITE_SECONDS = 10.0


@dataclass(frozen=True)
class PruneReceipt:
    """What one `prune` removed: in Redis, in SQL by the given limits, and by the retention settings."""

    threads: Pruned
    messages: int
    archived_before: Archived | None
    purge: PurgeReceipt

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def archive(settings: Settings, progress: Progress | None = None) -> Archived:
    """Copy request records into SQL. Safe beside a running service, twice, and after an interruption."""
    with _opened(settings) as (saver, store):
        return archive_requests(saver, store.database, now=store.now, progress=progress)


def stats(settings: Settings, *, since: str | None = None, until: str | None = None) -> list[DayCount]:
    """New questions a day (Shanghai), from what has been archived."""
    with open_store(settings.conversations) as store:
        return questions_per_day(store.database, since=since, until=until)


def check_database(settings: Settings) -> str:
    """Where conversations are kept, for `doctor`. Raises CheckpointError with what to do."""
    with open_store(settings.conversations) as store:
        return store.database.describe()


def prune(
    settings: Settings,
    *,
    keep_turns: int | None = None,
    older_than_days: int | None = None,
    records: bool = False,
    messages: bool = False,
    progress: Progress | None = None,
) -> PruneReceipt:
    """Remove what is old, and purge what the retention settings no longer keep.

    Checkpoints go by the two limits; with neither, none go. `records`: request records by age too, once they
    are archived. `messages`: rows of conversations by both limits too.
    """
    with _opened(settings) as (saver, store):
        before = None if older_than_days is None else store.now() - timedelta(days=older_than_days)
        archived = archive_requests(saver, store.database, now=store.now) if records else None
        rule = Rule(keep_turns, before)
        threads = Pruned()
        if keep_turns is not None or before is not None:
            keep = _keeper_of_records(saver, store) if records else None
            threads = prune_threads(saver, rule, keep=keep, progress=progress)
        rows = prune_messages(store, keep_turns=keep_turns, before=before) if messages else 0
        receipt = purge_deleted(saver, store, progress)
        if settings.context.url is None:
            rewrite_log(saver)
    return PruneReceipt(threads, rows, archived, receipt)


def _keeper_of_records(saver: RedisContextSaver, store: ConversationStore) -> Keep:
    """Archives the very records that are about to go: one may have ended since the archive was brought up."""
    return lambda records: write_records(
        store.database, records, store.now(), still_there=looking_again(saver)
    )


def purge_deleted(
    saver: RedisContextSaver, store: ConversationStore, progress: Progress | None = None
) -> PurgeReceipt:
    """The purge, with threads erased from Redis wherever deleting was cut off."""
    keeper = LeaseKeeper(saver.wire.client, prefix=saver.config.key_prefix)
    owners: dict[str, tuple[Owner, str]] = {}

    def thread_of_deleted(owner: Owner, name: str) -> str:
        thread_id = thread_of_owner(owner, name)
        owners[thread_id] = (owner, name)
        return thread_id

    def erase_thread(thread_id: str) -> bool:
        """Under the thread's lease: a new conversation of the name may be about to begin in it."""
        try:
            with keeper.hold(thread_id, "purge"):
                if store.find(*owners.pop(thread_id)) is not None:
                    return False
                saver.delete_thread(thread_id)
                keeper.forget_thread(thread_id)
                return True
        except ThreadBusyError:
            return False

    try:
        return purge(store, thread_of=thread_of_deleted, erase_thread=erase_thread, progress=progress)
    finally:
        keeper.close()


def thread_of_owner(owner: Owner, name: str) -> str:
    return thread_of(Caller(tenant=owner.tenant_id, user=owner.user_id), name)


def rewrite_log(saver: RedisContextSaver) -> None:
    """Have the embedded server write its files anew, so that they hold nothing that was erased.

    Waits for the end. A rewrite that is under way began before the erasure, so another one follows it.
    """
    deadline = time.monotonic() + REWRITE_SECONDS
    _until_idle(saver, deadline)
    saver.wire.run(ask("prune", ("BGREWRITEAOF",)))
    _until_idle(saver, deadline)


def _until_idle(saver: RedisContextSaver, deadline: float) -> None:
    while True:
        state = saver.wire.run(ask("prune", ("INFO", "persistence")))
        if not state["aof_rewrite_in_progress"] and not state["aof_rewrite_scheduled"]:
            return
        if time.monotonic() > deadline:
            raise CheckpointUnavailable(
                "prune",
                f"the embedded server rewrites its files for more than {REWRITE_SECONDS:.0f} s",
                "Run prune again",
            )
        time.sleep(0.02)


@contextmanager
def _opened(settings: Settings) -> Iterator[tuple[RedisContextSaver, ConversationStore]]:
    with (
        open_saver(settings) as saver,
        open_store(settings.conversations, now=lambda: datetime.now(UTC)) as store,
    ):
        yield saver, store
