"""Lease, fence, deletion and expiry: what may be written, what never comes back, what has a TTL."""

import asyncio
import operator
import threading
from collections.abc import Iterator
from typing import Annotated, Any, TypedDict

import pytest
import redis
from langgraph.checkpoint.conformance.test_utils import (
    generate_checkpoint,
    generate_config,
    generate_metadata,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from noise import noise

from checkpoint import ContextConfig, LeaseLostError, RedisContextSaver
from checkpoint.layout import context_key, sibling_key
from checkpoint.requests import RequestRecord
from checkpoint.wire import exchange

PREFIX = ContextConfig(url="redis://x").key_prefix
KEY = context_key(PREFIX, "t")
LEASE = sibling_key("lease", KEY)
SIZES = pytest.mark.parametrize("size", [10, 40_000], ids=["script", "transaction"])


def config_with(token: str | None, checkpoint_id: str | None = None) -> Any:
    config = generate_config("t", checkpoint_id=checkpoint_id)
    if token is not None:
        config["configurable"]["__lease"] = token
    return config


async def put(
    saver: Any, id_: str, token: str | None = None, size: int = 10, parent: str | None = None
) -> Any:
    """A checkpoint with one new value and one, `old`, that is never new after the first."""
    new = {"new": id_} if parent else {"new": id_, "old": "1"}
    return await saver.aput(
        config_with(token, parent),
        generate_checkpoint(
            checkpoint_id=id_,
            channel_values={"new": noise(id_, size), "old": "kept"},
            channel_versions={"new": id_, "old": "1"},
        ),
        generate_metadata(),
        new,
    )


def make_record(**changes: Any) -> RequestRecord:
    record: dict[str, Any] = {
        "schema_version": 1, "request_id": "r1", "thread_id": "t", "question": "q", "original_question": None,
        "input_kind": "unknown", "received_at": "2026-01-01T00:00:00.000+08:00",
        "started_at": "2026-01-01T00:00:00.001+08:00", "finished_at": None, "duration_ms": None,
        "status": "running", "degraded": False, "error_code": None,
    }  # fmt: skip
    return record | changes  # type: ignore[return-value]


@SIZES
async def test_a_held_lease_lets_writes_pass(any_saver: Any, redis_client: redis.Redis, size: int) -> None:
    redis_client.set(LEASE, "mine", px=60_000)
    config = await put(any_saver, "1", "mine", size)
    await any_saver.aput_writes(config_with("mine", "1"), [("a", noise("w", size))], "task")
    await any_saver.aput_request(make_record(), lease="mine")
    found = await any_saver.aget_tuple(config)
    assert found.checkpoint["channel_values"] == {"new": noise("1", size), "old": "kept"}
    assert found.pending_writes == [("task", "a", noise("w", size))]
    assert len(await any_saver.alist_requests("t")) == 1


@SIZES
@pytest.mark.parametrize("holder", [None, "other"])
async def test_a_lost_lease_changes_nothing(
    any_saver: Any, redis_client: redis.Redis, size: int, holder: str | None
) -> None:
    config = await put(any_saver, "1", None, size)
    await any_saver.aput_writes(config, [("a", "w"), ("__error__", "w")], "task")
    if holder:
        redis_client.set(LEASE, holder, px=60_000)
    redis_client.expire(KEY, 1000)
    before = redis_client.hgetall(KEY)
    with pytest.raises(LeaseLostError, match="put for thread 't'"):
        await put(any_saver, "2", "mine", size, parent="1")
    with pytest.raises(LeaseLostError):
        await put(any_saver, "1", "mine", size)  # would replace
    with pytest.raises(LeaseLostError, match="put_writes"):
        await any_saver.aput_writes(config_with("mine", "1"), [("__error__", noise("v", size))], "task")
    with pytest.raises(LeaseLostError, match="put_request"):
        await any_saver.aput_request(make_record(), lease="mine")
    assert redis_client.hgetall(KEY) == before
    assert redis_client.ttl(KEY) <= 1000
    assert len(redis_client.keys()) == 1 + bool(holder)


@SIZES
async def test_nothing_comes_back_after_deletion(
    any_saver: Any, redis_client: redis.Redis, size: int
) -> None:
    redis_client.set(LEASE, "mine", px=60_000)
    await put(any_saver, "1", "mine", size)
    await any_saver.aput_request(make_record(), lease="mine")
    for kind in ("once", "stop"):
        redis_client.set(sibling_key(kind, KEY), "x")  # type: ignore[arg-type]
    await any_saver.adelete_thread("t")
    assert redis_client.keys() == []
    with pytest.raises(LeaseLostError):
        await put(any_saver, "2", "mine", size, parent="1")
    with pytest.raises(LeaseLostError):
        await any_saver.aput_writes(config_with("mine", "1"), [("a", noise("w", size))], "task")
    with pytest.raises(LeaseLostError):
        await any_saver.aput_request(make_record(status="completed"), lease="mine")
    assert redis_client.keys() == []


async def test_the_same_thread_starts_anew_at_once(any_saver: Any, redis_client: redis.Redis) -> None:
    redis_client.set(LEASE, "old", px=60_000)
    await put(any_saver, "1", "old")
    await any_saver.adelete_thread("t")
    redis_client.set(LEASE, "new", px=60_000)
    await put(any_saver, "2", "new")
    with pytest.raises(LeaseLostError):
        await put(any_saver, "3", "old", parent="1")
    assert [f.checkpoint["id"] async for f in any_saver.alist(generate_config("t"))] == ["2"]


async def test_deleting_and_saving_at_once(any_saver: Any, redis_client: redis.Redis) -> None:
    """Whatever the order, once the deletion is confirmed nothing is left."""
    for _ in range(20):
        redis_client.set(LEASE, "mine", px=60_000)
        saves = [put(any_saver, f"{n}", "mine", 3000 * n) for n in range(1, 8)]
        done = await asyncio.gather(*saves, any_saver.adelete_thread("t"), return_exceptions=True)
        assert done[-1] is None
        assert all(isinstance(each, LeaseLostError | dict) for each in done[:-1])
        assert redis_client.keys() == []


async def test_without_a_lease_it_is_a_saver_like_any(any_saver: Any, redis_client: redis.Redis) -> None:
    redis_client.set(LEASE, "someone's", px=60_000)
    await put(any_saver, "1")
    assert (await any_saver.aget_tuple(generate_config("t"))).checkpoint["id"] == "1"


# --- values that vanished ---


class Items(TypedDict):
    items: Annotated[list[str], operator.add]


@pytest.mark.parametrize("kind", ["in memory", "ours"])
def test_two_runs_at_once_without_a_lease_make_two_branches(
    saver: RedisContextSaver, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both start on the same checkpoint, as with LangGraph's own savers; nothing of either is lost."""
    used: Any = saver if kind == "ours" else InMemorySaver()
    builder = StateGraph(Items)
    builder.add_node("work", lambda _: {"items": ["worked"]})
    builder.add_edge(START, "work")
    graph, thread = builder.compile(checkpointer=used), generate_config("t")
    graph.invoke({"items": ["first"]}, thread)

    both, read = threading.Barrier(2, timeout=30), used.get_tuple

    def read_together(config: Any) -> Any:
        found = read(config)
        both.wait()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(used, "get_tuple", read_together)
        runs = [threading.Thread(target=graph.invoke, args=({"items": [name]}, thread)) for name in "ab"]
        for run in runs:
            run.start()
        for run in runs:
            run.join()
    ends = [each.values["items"] for each in graph.get_state_history(thread) if not each.next]
    first = ["first", "worked"]
    assert sorted(ends) == [first, [*first, "a", "worked"], [*first, "b", "worked"]]
    assert graph.get_state(thread).values["items"] == ends[0]


@SIZES
async def test_after_expiry_in_a_turn_all_values_are_stored_again(
    any_saver: Any, redis_client: redis.Redis, size: int
) -> None:
    redis_client.set(LEASE, "mine", px=60_000)
    await put(any_saver, "1", "mine", size)
    redis_client.delete(KEY)
    config = await put(any_saver, "2", "mine", size, parent="1")
    found = await any_saver.aget_tuple(config)
    assert found.checkpoint["channel_values"] == {"new": noise("2", size), "old": "kept"}
    assert 0 < redis_client.ttl(KEY) <= 1296000
    await put(any_saver, "3", "mine", size, parent="2")
    assert (await any_saver.aget_tuple(generate_config("t"))).checkpoint["channel_values"]["old"] == "kept"


@SIZES
def test_a_crash_between_the_two_tries_leaves_nothing_without_a_ttl(
    saver: RedisContextSaver, redis_client: redis.Redis, size: int
) -> None:
    """The first try finds that values are gone; whoever dies then must not leave what it had staged."""
    checkpoint = generate_checkpoint(
        checkpoint_id="2",
        channel_values={"new": noise("n", size), "old": "kept"},
        channel_versions={"new": "2", "old": "1"},
    )
    plan = saver.plans.put(
        saver.serde, generate_config("t", checkpoint_id="1"), checkpoint, generate_metadata(), {"new": "2"}
    )
    assert saver.wire.run(exchange(next(plan))) == [b"gone"]
    assert redis_client.keys() == []


async def test_late_writes_do_not_stand_for_the_values(any_saver: Any, redis_client: redis.Redis) -> None:
    """The hash exists again, made by writes alone; the values are still missing."""
    config = await put(any_saver, "1")
    redis_client.delete(KEY)
    await any_saver.aput_writes(config, [("a", 1)], "task")
    found = await any_saver.aget_tuple(await put(any_saver, "2", parent="1"))
    assert found.checkpoint["channel_values"] == {"new": noise("2", 10), "old": "kept"}


async def test_a_parent_of_another_shape_does_not_stand_for_the_values(any_saver: Any) -> None:
    await any_saver.aput(
        generate_config("t"), generate_checkpoint(checkpoint_id="0"), generate_metadata(), {}
    )
    found = await any_saver.aget_tuple(await put(any_saver, "1", parent="0"))
    assert found.checkpoint["channel_values"] == {"new": noise("1", 10), "old": "kept"}


# --- TTL ---


@SIZES
async def test_every_writer_alone_sets_the_ttl(
    make_any_saver: Any, redis_client: redis.Redis, size: int
) -> None:
    saver = make_any_saver(ttl_seconds=500)
    writers = [
        put(saver, "1", None, size),
        saver.aput_writes(generate_config("t", checkpoint_id="1"), [("a", noise("w", size))], "task"),
        saver.aput_request(make_record()),
    ]
    for writer in writers:
        redis_client.flushall()
        await writer
        assert 490 < redis_client.ttl(KEY) <= 500


@SIZES
async def test_every_write_renews_and_no_read_does(
    make_any_saver: Any, redis_client: redis.Redis, size: int
) -> None:
    saver = make_any_saver(ttl_seconds=500)
    config = await put(saver, "1", None, size)
    await put(saver, "2", None, size, parent="1")
    writes = [
        put(saver, "3", None, size, parent="2"),
        put(saver, "3", None, size, parent="2"),
        saver.aput_writes(config, [("a", noise("w", size))], "task"),
        saver.aput_writes(config, [("a", noise("w", size))], "task"),
        saver.aput_request(make_record()),
        saver.aprune(["t"]),
        saver.aprune(["t"], strategy="delete"),
    ]
    for number, write in enumerate(writes):
        redis_client.expire(KEY, 100)
        await write
        assert redis_client.ttl(KEY) > 490, number
    redis_client.expire(KEY, 100)
    await saver.aget_tuple(config)
    await saver.aget_tuple(generate_config("t"))
    assert [f async for f in saver.alist(generate_config("t"))] == []
    assert [f async for f in saver.alist(None)] == []
    await saver.alist_requests("t")
    await saver.arestore_window("t")
    assert 0 < redis_client.ttl(KEY) <= 100


async def test_copies_and_what_runs_leave_have_a_ttl(make_any_saver: Any, redis_client: redis.Redis) -> None:
    saver = make_any_saver(ttl_seconds=500)
    await put(saver, "1")
    await saver.acopy_thread("t", "copy")
    assert 490 < redis_client.ttl(context_key(PREFIX, "copy")) <= 500
    await saver.aput(
        generate_config("t"), generate_checkpoint(checkpoint_id="2"), generate_metadata(run_id="r"), {}
    )
    redis_client.expire(KEY, 100)
    await saver.adelete_for_runs(["r"])
    assert redis_client.ttl(KEY) > 490


async def test_expiry_takes_everything(make_any_saver: Any, redis_client: redis.Redis) -> None:
    saver = make_any_saver(ttl_seconds=1)
    config = await put(saver, "1")
    await saver.aput_writes(config, [("a", 1)], "task")
    await saver.aput_request(make_record())
    redis_client.pexpire(KEY, 1)
    await asyncio.sleep(0.01)
    assert await saver.aget_tuple(config) is None
    assert await saver.alist_requests("t") == []
    assert redis_client.keys() == []


@pytest.fixture
def weak(redis_url: str, redis_client: redis.Redis) -> Iterator[RedisContextSaver]:
    """A saver whose user may not call EXPIRE."""
    redis_client.acl_setuser(
        "weak", enabled=True, passwords=["+p"], keys=["*"], commands=["+@all", "-expire"]
    )
    client = redis.Redis.from_url(redis_url, username="weak", password="p")
    try:
        with client, RedisContextSaver(ContextConfig(url=redis_url), client=client) as weak:
            yield weak
    finally:
        redis_client.acl_deluser("weak")


def refused_writes(weak: RedisContextSaver, size: int) -> Iterator[None]:
    """Each way to write, refused."""
    for write in (
        lambda: asyncio.run(put(_Async(weak), "1", None, size)),
        lambda: weak.put_writes(generate_config("t", checkpoint_id="1"), [("a", noise("w", size))], "task"),
        lambda: weak.put_request(make_record()),
    ):
        with pytest.raises(Exception, match="EXPIRE among them"):
            write()
        yield


@SIZES
def test_a_server_that_refuses_expire_refuses_the_write(
    weak: RedisContextSaver, redis_client: redis.Redis, size: int
) -> None:
    for _ in refused_writes(weak, size):
        assert redis_client.keys() == []


@SIZES
def test_a_server_that_refuses_expire_keeps_what_was_there(
    weak: RedisContextSaver, saver: RedisContextSaver, redis_client: redis.Redis, size: int
) -> None:
    asyncio.run(put(_Async(saver), "0"))
    (key,) = redis_client.keys()
    before = redis_client.hgetall(key)
    for _ in refused_writes(weak, size):
        assert before.items() <= redis_client.hgetall(key).items()
        assert redis_client.ttl(key) > 0


class _Async:
    def __init__(self, inner: RedisContextSaver) -> None:
        self.inner = inner

    async def aput(self, *args: Any) -> Any:
        return self.inner.put(*args)


def test_the_key_is_as_documented(saver: RedisContextSaver, redis_client: redis.Redis) -> None:
    asyncio.run(put(_Async(saver), "1"))
    assert redis_client.keys() == [
        b"business-assistant:context:v1:e3b98a4da31a127d4bde6e43033f66ba274cab0eb7eb1c70ec41402bf6273dd8"
    ]
    assert all(name[:1] in b"cw" for name in redis_client.hkeys(KEY))
    assert sibling_key("lease", KEY) == f"business-assistant:lease:v1:{{{KEY}}}"
