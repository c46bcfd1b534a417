"""Deleting: whole threads, runs, and what a long conversation no longer needs. The choices are pure.

The server carries a choice out in one step, unless a checkpoint that came in meanwhile depends on a chosen
one; values go when no remaining checkpoint refers to them.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from checkpoint import scripts
from checkpoint.codec import channel_of
from checkpoint.errors import BadRequestError, CheckpointError
from checkpoint.layout import context_key, part, read_parts, sibling_key, to_bytes, to_text
from checkpoint.plan import PAGE_BYTES, Call, Plan, Plans, check_status, split

STRATEGIES = ("keep_latest", "delete", "delete_all")
MOST_TRIES = 20


class Stored(NamedTuple):
    """What a choice needs to know of a stored checkpoint."""

    namespace: str
    id: str
    parent: str
    run_id: str
    source: str
    anchor: str
    unseeded: tuple[str, ...]
    seeds: frozenset[str]


Doomed = set[tuple[str, str]]


class Choice(Protocol):
    def __call__(self, stored: Iterable[Stored], /) -> Doomed: ...


def choose_runs(stored: Iterable[Stored], run_ids: Collection[str]) -> Doomed:
    return {(item.namespace, item.id) for item in stored if item.run_id and item.run_id in run_ids}


def choose_older(stored: Iterable[Stored]) -> Doomed:
    """All but each namespace's latest and the ancestors from which its delta channels are rebuilt."""
    doomed: Doomed = set()
    for namespace, items in by_namespace(stored).items():
        latest = items[max(items)]
        kept = {latest.id} | set(walk_to_seeds(items, latest))
        doomed |= {(namespace, id_) for id_ in items if id_ not in kept}
    return doomed


def choose_turns(stored: Iterable[Stored], turns: int) -> Doomed:
    """All that is older than the last `turns` turns of every branch of the root namespace.

    A turn begins with a checkpoint whose source is `input`.
    """
    return choose_of_branches(stored, lambda root, leaf: last_turns(root, leaf, turns))


def choose_of_branches(
    stored: Iterable[Stored], kept_of: Callable[[Mapping[str, Stored], Stored], set[str]]
) -> Doomed:
    """All but what `kept_of(root, leaf)` keeps of each branch of the root namespace.

    A branch ends in a checkpoint without children, so a fork, an unfinished turn and a pending clarification
    are always within the last turn of theirs. Subgraph checkpoints go with the root checkpoint of theirs.
    """
    spaces = by_namespace(stored)
    root = spaces.get("", {})
    kept: set[str] = set()
    for leaf in ends(root):
        kept |= kept_of(root, leaf)
    gone = root.keys() - kept
    doomed = {("", id_) for id_ in gone}
    for namespace, items in spaces.items():
        if namespace:
            doomed |= {(namespace, item.id) for item in items.values() if item.anchor in gone}
    return doomed


def ends(items: Mapping[str, Stored]) -> Iterator[Stored]:
    """The checkpoints without children, and the latest, even if something made it its own ancestor."""
    parents = {item.parent for item in items.values()}
    latest = max(items, default="")
    return (item for item in items.values() if item.id not in parents or item.id == latest)


def last_turns(items: Mapping[str, Stored], leaf: Stored, turns: int) -> set[str]:
    kept = set()
    oldest = leaf
    seen = 0
    for item in walk(items, leaf):
        kept.add(item.id)
        oldest = item
        seen += item.source == "input"
        if seen == turns:
            break
    return kept | set(walk_to_seeds(items, oldest))


def walk(items: Mapping[str, Stored], start: Stored) -> Iterator[Stored]:
    """The checkpoint and its ancestors, as far as they are stored; each once, even if they form a ring."""
    met: set[str] = set()
    at: Stored | None = start
    while at is not None and at.id not in met:
        met.add(at.id)
        yield at
        at = items.get(at.parent)


def walk_to_seeds(items: Mapping[str, Stored], start: Stored) -> Iterator[str]:
    """The ancestors needed to rebuild the delta channels that `start` holds no value of."""
    sought = set(start.unseeded)
    for item in walk(items, start):
        if item is not start:
            yield item.id
            sought -= item.seeds
        if not sought:
            return


def by_namespace(stored: Iterable[Stored]) -> dict[str, dict[str, Stored]]:
    spaces: dict[str, dict[str, Stored]] = defaultdict(dict)
    for item in stored:
        spaces[item.namespace][item.id] = item
    return spaces


# --- plans ---


def delete_thread(plans: Plans, thread_id: object) -> tuple[str, ...]:
    """The command that removes hash and lease in one step, with what else belongs to the thread.

    Without its lease a late write of a running turn is refused, so nothing comes back.
    """
    key = context_key(plans.prefix, thread_id)
    plans.memory.forget(key)
    return ("UNLINK", key, *(sibling_key(kind, key) for kind in ("lease", "once", "stop")))


def read_stored(key: str) -> Plan[tuple[list[Stored], dict[str, str]]]:
    """All checkpoints of a thread, without their contents, and the greatest id of each namespace."""
    stored: list[Stored] = []
    latest: dict[str, str] = {}
    heads: tuple[bytes, ...] = ()
    while True:
        call = Call("prune", scripts.PAGE, (key,), (b"0", 2000, PAGE_BYTES, b"", b"", *heads))
        reply = yield call
        check_status(reply, call, key)
        for item in (read_item(key, *found) for found in reply[2]):
            latest.setdefault(item.namespace, item.id)
            stored.append(item)
        if not reply[3]:
            return stored, latest
        heads = tuple(piece for head in reply[3] for piece in head)


def read_item(key: str, space: bytes, raw_id: bytes, record: bytes) -> Stored:
    namespace, id_ = read_parts(space)[0], to_text(raw_id)
    _, header, _ = split(record, {"key": key, "namespace": namespace, "checkpoint": id_})
    return Stored(
        namespace=namespace,
        id=id_,
        parent=header.parent,
        run_id=header.run_id,
        source=header.source,
        anchor=header.anchor,
        unseeded=tuple(header.unseeded),
        seeds=frozenset(channel_of(slot) for slot in header.valued),
    )


def erase(plans: Plans, key: str, choose: Choice) -> Plan[int]:
    """Delete what `choose` picks; choose again when something new depends on it. Returns how many went."""
    for _ in range(MOST_TRIES):
        stored, latest = yield from read_stored(key)
        doomed = choose(stored)
        if not doomed:
            return 0
        seen = [piece for ns, id_ in latest.items() for piece in (part(ns), to_bytes(id_))]
        names = [piece for ns, id_ in sorted(doomed) for piece in (part(ns), to_bytes(id_))]
        call = Call("prune", scripts.ERASE, (key,), (plans.ttl_seconds, len(latest), *seen, *names))
        reply = yield call
        if check_status(reply, call, key) == b"ok":
            return int(reply[1])
    raise CheckpointError(f"{key} is forked all the time; prune it when the thread is idle")


def prune(plans: Plans, thread_id: object, strategy: str) -> Plan[None]:
    key = context_key(plans.prefix, thread_id)
    if strategy == "keep_latest":
        yield from erase(plans, key, choose_older)
        return
    call = Call("prune", scripts.WIPE, (key,), (plans.ttl_seconds,))
    check_status((yield call), call, thread_id)


def check_strategy(strategy: str) -> None:
    if strategy not in STRATEGIES:
        raise BadRequestError(f"unknown strategy {strategy!r}; use one of {', '.join(STRATEGIES)}")
