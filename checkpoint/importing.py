"""Moving in: threads of another LangGraph saver, copied into ours and read back from both.

    with open_redis_stack(url) as source, RedisContextSaver(config) as target:
        report = import_threads(source, target)

Only the savers' public methods are used, so any source will do. The source is never written to. An import
that was broken off is simply run again: what is there already is compared and not copied a second time.
Checkpoints, values and pending writes come over; request records and times are never made up.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, cast

import redis
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from checkpoint import codec
from checkpoint.errors import BadRequestError, CannotRestoreError, CheckpointUnavailable, ConfigError
from checkpoint.plan import make_config
from checkpoint.saver import RedisContextSaver

State = Literal["imported", "already here", "in use", "failed"]
Progress = Callable[[int, int, str], None]
Place = tuple[str, str]  # namespace, checkpoint id
Tasks = dict[str, list[tuple[str, Any]]]  # what each task wrote, channel and value
Listed = dict[Place, Tasks]
# A source that searches gives no more than it is asked for; this is the most that RediSearch allows.
MOST_CHECKPOINTS = 1_000_000


@dataclass(frozen=True)
class ImportedThread:
    """What became of a thread. `problem` says why it failed or was left alone, and what to do."""

    thread_id: str
    state: State
    checkpoints: int
    problem: str | None = None


@dataclass(frozen=True)
class ImportReport:
    threads: tuple[ImportedThread, ...]

    def count(self, state: State) -> int:
        return sum(thread.state == state for thread in self.threads)

    @property
    def is_complete(self) -> bool:
        """Whether every thread is here now and reads the same from both."""
        return all(thread.state in ("imported", "already here") for thread in self.threads)


def import_threads(
    source: BaseCheckpointSaver[Any],
    target: RedisContextSaver,
    *,
    thread_ids: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Copy these threads (None: all that the source lists), one after the other, oldest checkpoint first.

    A thread that has gone on here, with checkpoints the source does not know, is left alone. One that does
    not read back the same is taken out again. `progress` gets (threads done, all threads, thread id) before
    each. Raises CheckpointUnavailable when ours is gone; whatever the source raises when it is.
    """
    wanted = list(dict.fromkeys(find_threads(source) if thread_ids is None else thread_ids))
    done: list[ImportedThread] = []
    for thread_id in wanted:
        if progress:
            progress(len(done), len(wanted), thread_id)
        done.append(import_thread(source, target, thread_id))
    return ImportReport(tuple(done))


def import_thread(
    source: BaseCheckpointSaver[Any], target: RedisContextSaver, thread_id: str
) -> ImportedThread:
    places = list_checkpoints(source, thread_id)
    try:
        here = list_checkpoints(target, thread_id).keys()
    except CannotRestoreError as fault:
        return ImportedThread(thread_id, "in use", 0, f"what is here cannot be read: {fault}")
    if foreign := here - places.keys():
        problem = f"{len(foreign)} of its checkpoints here are not in the source; delete it here to import it"
        return ImportedThread(thread_id, "in use", 0, problem)
    try:
        copied = copy_missing(source, target, thread_id, places)
    except (TypeError, ValueError) as fault:
        target.prune([thread_id], strategy="delete")
        return ImportedThread(thread_id, "failed", 0, f"{type(fault).__name__}: {fault}")
    if difference := find_difference(source, target, thread_id, places):
        target.prune([thread_id], strategy="delete")
        return ImportedThread(thread_id, "failed", 0, difference)
    return ImportedThread(thread_id, "imported" if copied else "already here", len(places))


def find_threads(source: BaseCheckpointSaver[Any]) -> list[str]:
    """Every thread of the source, in no order."""
    if hasattr(source, "checkpoints_index"):
        return find_stack_threads(source)
    found = (id_of(each.config, "thread_id") for each in source.list(None))
    return list(dict.fromkeys(found))


def find_stack_threads(source: Any) -> list[str]:
    """langgraph-checkpoint-redis lists no more than a search returns; its documents name their threads.

    It has no public way to them, hence the look at two of its private names.
    """
    client, found = source._redis, dict[str, None]()
    pattern = f"{source._checkpoint_prefix}:*"
    for key in client.scan_iter(match=pattern, count=1000, _type="ReJSON-RL"):
        for thread_id in client.json().get(key, "$.thread_id") or ():
            found[str(thread_id)] = None
    return list(found)


def list_checkpoints(saver: BaseCheckpointSaver[Any], thread_id: str) -> Listed:
    """A thread's checkpoints, oldest first, each with its writes by task."""
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    listed = {
        (id_of(each.config, "checkpoint_ns"), each.checkpoint["id"]): by_task(each)
        for each in saver.list(config, limit=MOST_CHECKPOINTS)
    }
    return {place: listed[place] for place in sorted(listed, key=lambda place: (place[1], place[0]))}


def id_of(config: RunnableConfig, name: str) -> str:
    return str(config["configurable"].get(name) or "")


def copy_missing(
    source: BaseCheckpointSaver[Any], target: RedisContextSaver, thread_id: str, places: Listed
) -> int:
    """Copy what is not here yet. Returns how many checkpoints were copied."""
    copied = 0
    for place, listed in places.items():
        config = make_config(thread_id, *place)
        found = read(source, config, listed)
        known = target.get_tuple(config)
        if known is None or is_different(found, known):
            put(target, thread_id, place[0], found)
            copied += 1
    return copied


def read(source: BaseCheckpointSaver[Any], config: RunnableConfig, listed: Tasks) -> CheckpointTuple:
    """A checkpoint read by its id, with the writes that its listing has more of.

    langgraph-checkpoint-redis lists messages as bare dicts, and by id it leaves out writes that came before
    their checkpoint; either way may leave out some of very many.
    """
    found = source.get_tuple(config)
    if found is None:
        raise BadRequestError(
            f"checkpoint {id_of(config, 'checkpoint_id')} left the source during the import"
        )
    tasks = by_task(found)
    longer = {task: writes for task, writes in listed.items() if len(writes) > len(tasks.get(task, ()))}
    merged = [(task, *write) for task, writes in (tasks | longer).items() for write in writes]
    return found._replace(pending_writes=merged)


def put(target: RedisContextSaver, thread_id: str, namespace: str, found: CheckpointTuple) -> None:
    """All channels count as new: one without a value here must not show what an older checkpoint had."""
    parent = id_of(found.parent_config, "checkpoint_id") if found.parent_config else ""
    above: RunnableConfig = {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace}}
    if parent:
        above["configurable"]["checkpoint_id"] = parent
    config = target.put(above, found.checkpoint, found.metadata, found.checkpoint["channel_versions"])
    for number, (task_id, writes) in enumerate(by_task(found).items()):
        # The source gives its tasks in their order and not the paths that order them: numbers keep it.
        target.put_writes(config, writes, task_id, f"{number:06}")


def by_task(found: CheckpointTuple) -> Tasks:
    tasks: Tasks = {}
    for task_id, channel, value in found.pending_writes or ():
        tasks.setdefault(task_id, []).append((channel, value))
    return tasks


def find_difference(
    source: BaseCheckpointSaver[Any], target: RedisContextSaver, thread_id: str, places: Listed
) -> str | None:
    """Why a thread is not the same in both; None if it is."""
    for place, listed in places.items():
        config = make_config(thread_id, *place)
        try:
            known = target.get_tuple(config)
        except CannotRestoreError as fault:
            return str(fault)
        if known is None or (part := is_different(read(source, config, listed), known)):
            part = "checkpoint" if known is None else part
            return f"checkpoint {place[1]} of namespace {place[0]!r} does not read back the same: its {part}"
    return None


def is_different(left: CheckpointTuple, right: CheckpointTuple) -> str | None:
    """The first part in which two checkpoints differ; None if they are the same."""
    return next((part for part, of in PARTS.items() if not is_same(of(left), of(right))), None)


def is_same(left: object, right: object) -> bool:
    """Equal, or equal as bytes: a tuple comes back as a list, and an array knows no plain equality."""
    serde = codec.StrictSerializer()
    try:
        return bool(serde.dumps_typed(left) == serde.dumps_typed(right) or left == right)
    except TypeError:
        return bool(left == right)
    except ValueError:
        return False


def bare(found: CheckpointTuple) -> dict[str, Any]:
    parts = ("channel_values", "channel_versions", "versions_seen")
    return {name: value for name, value in sorted(found.checkpoint.items()) if name not in parts}


PARTS: dict[str, Callable[[CheckpointTuple], Any]] = {
    "values": lambda found: sorted(found.checkpoint["channel_values"].items()),
    "versions": lambda found: sorted(found.checkpoint["channel_versions"].items()),
    "versions seen": lambda found: {
        node: sorted(seen.items()) for node, seen in sorted(found.checkpoint["versions_seen"].items())
    },
    "other fields": bare,
    "metadata": lambda found: sorted(cast(Mapping[str, Any], found.metadata).items()),
    "parent": lambda found: id_of(found.parent_config, "checkpoint_id") if found.parent_config else "",
    "writes": lambda found: {task: sorted_writes(writes) for task, writes in sorted(by_task(found).items())},
}


def sorted_writes(writes: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """By channel, each channel's in their order: special ones have a place of their own in each saver."""
    return sorted(writes, key=lambda write: write[0])


@contextmanager
def open_redis_stack(url: str, *, ttl_minutes: int | None = None) -> Iterator[BaseCheckpointSaver[Any]]:
    """The saver of langgraph-checkpoint-redis, which needs a server with RedisJSON and RediSearch.

    Raises ConfigError when the address cannot be read, the extra is not installed or the server lacks the
    modules, CheckpointUnavailable when it cannot be reached. Opening makes that saver's search indexes where
    they are missing.
    """
    try:
        cast(Any, redis.connection).parse_url(url)
    except ValueError:
        raise ConfigError("source", "its address cannot be read", "Example: redis://host:6379") from None
    try:
        from langgraph.checkpoint.redis import RedisSaver  # type: ignore[import-not-found,unused-ignore]
    except ImportError as fault:
        raise ConfigError(
            "redis-stack",
            f"langgraph-checkpoint-redis is not installed ({fault.name} is missing)",
            "Install business-assistant[redis-stack]",
        ) from None
    from redis import exceptions as faults
    from redisvl.exceptions import RedisVLError  # type: ignore[import-not-found,unused-ignore]

    try:
        ttl = None if ttl_minutes is None else {"default_ttl": ttl_minutes, "refresh_on_read": False}
        with RedisSaver.from_conn_string(url, ttl=ttl) as saver:
            saver.setup()
            yield saver
    except (faults.ConnectionError, faults.TimeoutError) as fault:
        raise CheckpointUnavailable(
            "import", f"the source does not answer ({type(fault).__name__})", "Check its address, then repeat"
        ) from fault
    except (faults.RedisError, RedisVLError) as fault:
        raise ConfigError(
            "source",
            f"the server refuses ({type(fault).__name__}: {str(fault)[:200]})",
            "Name a server with RedisJSON and RediSearch that holds the threads",
        ) from fault
