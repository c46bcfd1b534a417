"""Pruning threads by age and by count: old checkpoints, and where asked old request records.

Whole turns go, oldest first. The newest turn of every branch always stays, so a pending clarification, an
unfinished turn and a fork go on as if nothing had happened.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol
from uuid import UUID

from checkpoint import erase
from checkpoint.erase import Doomed, Stored, choose_of_branches, choose_turns, walk, walk_to_seeds
from checkpoint.errors import BadRequestError, CannotRestoreError, Walk
from checkpoint.plan import Plan, Plans
from checkpoint.requests import RequestRecord, check_record, decode_record, record_pattern, shanghai_time
from checkpoint.wire import Result, Wire, ask

# Of a version 6 UUID: 100 ns steps since the Gregorian calendar began.
GREGORIAN = datetime(1582, 10, 15, tzinfo=UTC)

Progress = Callable[[int, int, str], None]
Keep = Callable[[Sequence[RequestRecord]], object]  # stores records elsewhere, or raises


class Saver(Protocol):
    """What is used of the saver."""

    @property
    def wire(self) -> Wire: ...

    @property
    def plans(self) -> Plans: ...

    def run(self, plan: Plan[Result]) -> Result: ...


@dataclass(frozen=True)
class Rule:
    """What may go: all but the newest `keep_turns` turns of each branch, and turns from before `before`."""

    keep_turns: int | None = None
    before: datetime | None = None

    def __post_init__(self) -> None:
        if self.keep_turns is not None and self.keep_turns < 1:
            raise BadRequestError("pruning keeps at least 1 turn of every branch")


@dataclass(frozen=True)
class Pruned:
    threads: int = 0
    checkpoints: int = 0
    records: int = 0


def prune_threads(
    saver: Saver, rule: Rule, *, keep: Keep | None = None, progress: Progress | None = None
) -> Pruned:
    """Prune every thread. With `keep`, ended request records from before `rule.before` go too, once kept.

    Safe beside live traffic and to repeat. A thread that cannot be read keeps no other from being pruned; it
    is told of at the end.
    """
    keys = list(saver.wire.scan(saver.plans.prefix))
    done, walk = Pruned(threads=len(keys)), Walk()
    for number, key in enumerate(keys, start=1):
        with walk.step():
            gone = saver.run(erase.erase(saver.plans, key, lambda items: choose(items, rule)))
            done = replace(done, checkpoints=done.checkpoints + gone)
        dropped = _drop_records(saver, key, rule.before, keep) if keep and rule.before else 0
        done = replace(done, records=done.records + dropped)
        if progress:
            progress(number, len(keys), "pruning")
    walk.end()
    return done


def choose(stored: Iterable[Stored], rule: Rule) -> Doomed:
    """The checkpoints that the rule lets go. Pure."""
    items = list(stored)
    doomed: Doomed = set()
    if rule.keep_turns is not None:
        doomed |= choose_turns(items, rule.keep_turns)
    if rule.before is not None:
        doomed |= choose_older_than(items, rule.before)
    return doomed


def choose_older_than(stored: Iterable[Stored], before: datetime) -> Doomed:
    """Turns whose last checkpoint is from before then; of each branch the newest turn stays in any case."""
    return choose_of_branches(stored, lambda root, leaf: _kept_of_branch(root, leaf, before))


def _kept_of_branch(items: Mapping[str, Stored], leaf: Stored, before: datetime) -> set[str]:
    kept: list[Stored] = []
    for turn in _turns_of(items, leaf):
        if kept and moment_of(turn[0].id) < before:
            break
        kept += turn
    return {item.id for item in kept} | set(walk_to_seeds(items, kept[-1]))


def _turns_of(items: Mapping[str, Stored], leaf: Stored) -> Iterator[list[Stored]]:
    """The branch's turns, newest first; each from its last checkpoint back to the one of its input."""
    turn: list[Stored] = []
    for item in walk(items, leaf):
        turn.append(item)
        if item.source == "input":
            yield turn
            turn = []
    if turn:
        yield turn


def moment_of(checkpoint_id: str) -> datetime:
    """When a checkpoint was made, from its id. An id that tells no time counts as made at the end of time."""
    try:
        number = UUID(checkpoint_id)
    except ValueError:
        return datetime.max.replace(tzinfo=UTC)
    if number.version != 6:
        return datetime.max.replace(tzinfo=UTC)
    steps = ((number.int >> 80) << 12) | ((number.int >> 64) & 0xFFF)
    return GREGORIAN + timedelta(microseconds=steps // 10)


def _drop_records(saver: Saver, key: str, before: datetime, keep: Keep) -> int:
    """Remove ended records received before then. A running one stays, and so does one that is unreadable."""
    limit = shanghai_time(before)
    found = {field: _readable(field, value) for field, value in saver.wire.scan_fields(key, record_pattern())}
    old = {field: record for field, record in found.items() if record and _is_old(record, limit)}
    if old:
        keep(list(old.values()))
        saver.wire.run(ask("prune", ("HDEL", key, *old)))
    return len(old)


def _readable(field: bytes, value: bytes) -> RequestRecord | None:
    try:
        return check_record(decode_record(field, value))
    except (BadRequestError, CannotRestoreError, AttributeError):
        return None


def _is_old(record: RequestRecord, limit: str) -> bool:
    return record["status"] != "running" and record["received_at"] < limit
