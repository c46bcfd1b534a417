"""Any sequence of a saver's calls gives what InMemorySaver gives: a hypothesis state machine over both."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from langgraph.checkpoint.memory import InMemorySaver

from checkpoint import AsyncRedisContextSaver, ContextConfig, RedisContextSaver
from checkpoint.layout import context_key

THREADS = st.sampled_from(["a", "b", "中:1"])
NAMESPACES = st.sampled_from(["", "sub:1", "sub|1"])
IDS = st.integers(0, 12).map(lambda number: f"{number:02}")
CHANNELS = ["x", "y", "z:1"]
VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63),
    st.text("ab中", max_size=3),
    st.sampled_from(["L" * 20_000, b"\0" * 9]),
)
TASKS = st.sampled_from(["t1", "t2"])
PATHS = st.sampled_from(["", "~a", "~b"])
WRITES = st.lists(
    st.tuples(st.sampled_from([*CHANNELS, "__error__", "__interrupt__", "__resume__"]), VALUES), max_size=3
)


class Both(RuleBasedStateMachine):
    """Every rule acts on both savers; the invariants compare what they hold."""

    configs = Bundle("configs")
    url: str
    is_async: bool

    def __init__(self) -> None:
        super().__init__()
        self.model = InMemorySaver()
        self.loop = asyncio.new_event_loop()
        config = ContextConfig(url=self.url)
        self.saver: Any = AsyncRedisContextSaver(config) if self.is_async else RedisContextSaver(config)
        self.versions = 0

    def teardown(self) -> None:
        if self.is_async:
            self.loop.run_until_complete(self.saver.aclose())
        else:
            self.saver.close()
        self.loop.close()

    def ask(self, name: str, *args: Any, **options: Any) -> Any:
        """The same call on our saver, by its sync or its async name."""
        if not self.is_async:
            found = getattr(self.saver, name)(*args, **options)
            return list(found) if name == "list" else found
        if name == "list":

            async def read() -> list[Any]:
                return [each async for each in self.saver.alist(*args, **options)]

            return self.loop.run_until_complete(read())
        return self.loop.run_until_complete(getattr(self.saver, "a" + name)(*args, **options))

    @initialize()
    def begin_empty(self) -> None:
        for thread in ("a", "b", "中:1", "copy"):
            self.ask("delete_thread", thread)

    @rule(
        target=configs,
        thread=THREADS,
        namespace=NAMESPACES,
        id_=IDS,
        changed=st.dictionaries(st.sampled_from(CHANNELS), VALUES),
        cleared=st.sets(st.sampled_from(CHANNELS)),
        run=st.sampled_from([None, "r1", "r2"]),
        step=st.integers(0, 3),
    )
    def put(
        self, *, thread: str, namespace: str, id_: str, changed: Any, cleared: Any, run: str | None, step: int
    ) -> Any:
        """A child of the namespace's latest, as a run makes it: most values carried, a few new, some gone."""
        config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": namespace}}
        latest = self.model.get_tuple(config)
        values: Any = {}
        versions: Any = {}
        if latest is not None:
            config = latest.config
            values, versions = (
                dict(latest.checkpoint["channel_values"]),
                dict(latest.checkpoint["channel_versions"]),
            )
        new = {}
        for channel in {*changed, *cleared}:
            self.versions += 1
            new[channel] = versions[channel] = f"{self.versions:04}.{channel}"
            values.pop(channel, None)
            if channel in changed:
                values[channel] = changed[channel]
        checkpoint: Any = {
            "v": 4, "id": id_, "ts": "now", "channel_values": values, "channel_versions": versions,
            "versions_seen": {"node": dict(versions)}, "updated_channels": sorted(new),
        }  # fmt: skip
        metadata: Any = {"source": "loop", "step": step, "parents": {}} | ({"run_id": run} if run else {})
        stored = self.ask("put", config, checkpoint, metadata, new)
        assert stored == self.model.put(config, checkpoint, metadata, new)
        return stored

    @rule(config=configs, writes=WRITES, task=TASKS, path=PATHS)
    def put_writes(self, config: Any, writes: Any, task: str, path: str) -> None:
        self.ask("put_writes", config, writes, task, path)
        self.model.put_writes(config, writes, task, path)

    @rule(config=configs)
    def get_by_id(self, config: Any) -> None:
        assert self.ask("get_tuple", config) == self.model.get_tuple(config)

    @rule(config=configs, channels=st.lists(st.sampled_from([*CHANNELS, "absent"]), unique=True, min_size=1))
    def read_history(self, config: Any, channels: list[str]) -> None:
        ours = self.ask("get_delta_channel_history", config=config, channels=channels)
        if self.is_ring(config):
            return  # the model would never come back
        assert ours == self.model.get_delta_channel_history(config=config, channels=channels)

    def is_ring(self, config: Any) -> bool:
        met = []
        while (found := self.model.get_tuple(config)) is not None and found.parent_config:
            if found.config in met:
                return True
            met.append(found.config)
            config = found.parent_config
        return False

    @rule(
        thread=THREADS,
        namespace=st.none() | NAMESPACES,
        before=st.none() | IDS,
        only=st.none() | IDS,
        limit=st.none() | st.integers(0, 5),
        filter_=st.none()
        | st.fixed_dictionaries({}, optional={"step": st.integers(0, 3), "run_id": st.just("r1")}),
    )
    def list_some(
        self,
        *,
        thread: str,
        namespace: str | None,
        before: str | None,
        only: str | None,
        limit: int | None,
        filter_: Any,
    ) -> None:
        found: Any = {"thread_id": thread}
        if namespace is not None:
            found["checkpoint_ns"] = namespace
        if only:
            found["checkpoint_id"] = only
        bound: Any = {"configurable": {"checkpoint_id": before}} if before else None
        config: Any = {"configurable": found}
        every = list(self.model.list(config, filter=filter_, before=bound))
        # The model goes through the namespaces one by one; ours are merged, newest first.
        every.sort(key=lambda each: each.config["configurable"]["checkpoint_id"], reverse=True)
        ours = self.ask("list", config, filter=filter_, before=bound, limit=limit)
        assert order(ours) == order(every)[: len(ours)] if namespace is None else ours == every[:limit]
        assert len(ours) == len(every[:limit])
        assert all(each in every for each in ours)

    @rule(thread=THREADS)
    def delete_thread(self, thread: str) -> None:
        self.ask("delete_thread", thread)
        self.model.delete_thread(thread)

    @rule(run=st.sampled_from(["r1", "r2"]))
    def delete_run(self, run: str) -> None:
        """The model has no such method; this is what it means."""
        self.ask("delete_for_runs", [run])
        for each in list(self.model.list(None)):
            if each.metadata.get("run_id") == run:
                found = each.config["configurable"]
                del self.model.storage[found["thread_id"]][found["checkpoint_ns"]][found["checkpoint_id"]]
                self.model.writes.pop(
                    (found["thread_id"], found["checkpoint_ns"], found["checkpoint_id"]), None
                )

    @rule(thread=THREADS)
    def prune(self, thread: str) -> None:
        self.ask("prune", [thread])
        for namespace, stored in list(self.model.storage[thread].items()):
            for id_ in sorted(stored)[:-1]:
                del stored[id_]
                self.model.writes.pop((thread, namespace, id_), None)

    @rule(thread=THREADS)
    def copy(self, thread: str) -> None:
        self.ask("delete_thread", "copy")
        self.ask("copy_thread", thread, "copy")
        copied = self.ask("list", {"configurable": {"thread_id": "copy"}})
        original = self.ask("list", {"configurable": {"thread_id": thread}})
        assert [(*each[1:3], each.pending_writes) for each in copied] == [
            (*each[1:3], each.pending_writes) for each in original
        ]
        self.ask("delete_thread", "copy")

    @rule(config=consumes(configs))
    def forget(self, config: Any) -> None:
        """Lets later rules work with fewer, newer checkpoints."""

    @invariant()
    def same_latest(self) -> None:
        for thread in ("a", "b"):
            config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
            assert self.ask("get_tuple", config) == self.model.get_tuple(config)

    @invariant()
    def every_hash_has_a_ttl(self) -> None:
        for thread in ("a", "b", "中:1"):
            key = context_key(self.saver.config.key_prefix, thread)
            client: Any = self.saver._link.wire.client
            assert client.ttl(key) != -1


def order(found: list[Any]) -> list[str]:
    return [each.config["configurable"]["checkpoint_id"] for each in found]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_as_in_memory(redis_url: str, is_async: bool, is_long: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkpoint.plan.FIRST_PAGE", 3)  # so that short threads have several pages
    machine: Callable[[], Both] = type("Machine", (Both,), {"url": redis_url, "is_async": is_async})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=150 if is_long else 25,
            stateful_step_count=50 if is_long else 30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
