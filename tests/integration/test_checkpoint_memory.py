"""What a saver remembers of a thread is never believed against the server."""

from typing import Any

import pytest
import redis
from langgraph.checkpoint.conformance.test_utils import (
    generate_checkpoint,
    generate_config,
    generate_metadata,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from checkpoint import ContextConfig, RedisContextSaver
from checkpoint.layout import context_key
from checkpoint.memory import LARGEST_KEPT, MOST_NAMES, Known, Memory

PREFIX = ContextConfig(url="redis://x").key_prefix
KEY = context_key(PREFIX, "t")


async def put(
    saver: Any,
    id_: str,
    values: dict[str, Any],
    parent: str | None = None,
    *,
    new: Any = None,
    **versions: str,
) -> Any:
    versions = versions or dict.fromkeys(values, id_)
    checkpoint = generate_checkpoint(
        checkpoint_id=id_, channel_values=values, channel_versions=dict(versions)
    )
    config = generate_config("t", checkpoint_id=parent)
    return await saver.aput(config, checkpoint, generate_metadata(), versions if new is None else new)


async def values_of(saver: Any, id_: str | None = None) -> Any:
    found = await saver.aget_tuple(generate_config("t", checkpoint_id=id_))
    return found and found.checkpoint["channel_values"]


async def ids_of(saver: Any) -> list[str]:
    return [found.checkpoint["id"] async for found in saver.alist(generate_config("t"))]


async def test_another_process_is_heard(make_any_saver: Any) -> None:
    ours, theirs = make_any_saver(), make_any_saver()
    await put(ours, "1", {"a": "ours"})
    assert await values_of(ours) == {"a": "ours"}
    await put(theirs, "2", {"a": "theirs"}, "1")
    assert await values_of(ours) == {"a": "theirs"}
    assert await values_of(ours, "1") == {"a": "ours"}


async def test_a_put_over_another_process_keeps_both(make_any_saver: Any) -> None:
    ours, theirs = make_any_saver(), make_any_saver()
    await put(ours, "1", {"a": "1", "b": "kept"}, a="1", b="1")
    await put(theirs, "3", {"a": "3"}, "1")
    await put(ours, "2", {"a": "2", "b": "kept"}, "1", new={"a": "2"}, a="2", b="1")
    await put(ours, "4", {"a": "4", "b": "kept"}, "2", new={"a": "4"}, a="4", b="1")
    assert await ids_of(ours) == await ids_of(theirs) == ["4", "3", "2", "1"]
    assert await values_of(theirs) == await values_of(ours) == {"a": "4", "b": "kept"}


async def test_a_checkpoint_replaced_by_another_process_is_read_anew(make_any_saver: Any) -> None:
    ours, theirs = make_any_saver(), make_any_saver()
    await put(ours, "1", {"a": "old", "b": "1"}, a="1", b="1")
    await put(theirs, "1", {"a": "new", "b": "1"}, a="1", b="1")
    await put(ours, "2", {"a": "old", "b": "2"}, "1", new={"b": "2"}, a="1", b="2")
    assert await values_of(ours) == {"a": "new", "b": "2"}
    assert await values_of(ours, "1") == {"a": "new", "b": "1"}


@pytest.mark.parametrize("how", ["expiry", "delete_thread", "prune", "keep_latest"])
async def test_what_is_gone_is_not_given(make_any_saver: Any, redis_client: redis.Redis, how: str) -> None:
    ours, theirs = make_any_saver(), make_any_saver()
    await put(ours, "1", {"a": "1", "b": "kept"}, a="1", b="1")
    await put(ours, "2", {"a": "2", "b": "kept"}, "1", new={"a": "2"}, a="2", b="1")
    assert await values_of(ours) == {"a": "2", "b": "kept"}
    if how == "expiry":
        redis_client.delete(KEY)
    elif how == "delete_thread":
        await theirs.adelete_thread("t")
    else:
        await theirs.aprune(["t"], strategy="delete" if how == "prune" else how)
    assert not redis_client.hexists(KEY, "cs")
    kept = {"a": "2", "b": "kept"} if how == "keep_latest" else None
    assert await values_of(ours) == kept
    assert await values_of(ours, "1") is None


async def test_a_put_on_what_is_gone_stores_it_all(make_any_saver: Any) -> None:
    ours, theirs = make_any_saver(), make_any_saver()
    await put(ours, "1", {"a": "1", "b": "kept"}, a="1", b="1")
    await theirs.adelete_thread("t")
    await put(ours, "2", {"a": "2", "b": "kept"}, "1", new={"a": "2"}, a="2", b="1")
    assert await values_of(theirs) == await values_of(ours) == {"a": "2", "b": "kept"}


async def test_what_is_remembered_is_not_sent_again(make_any_saver: Any, proxy: Any) -> None:
    saver = make_any_saver(url=proxy.url)
    await put(saver, "1", {"a": ["long"] * 9000})
    await values_of(saver)
    await saver.aput_writes(generate_config("t", checkpoint_id="1"), [("a", "written")], "task")
    proxy.reset()
    found = await saver.aget_tuple(generate_config("t"))
    assert proxy.round_trips == 1
    assert proxy.received < 500
    assert found.pending_writes == [("task", "a", "written")]
    assert found.checkpoint["channel_values"] == {"a": ["long"] * 9000}


async def test_a_reader_changes_only_its_copy(make_any_saver: Any) -> None:
    saver = make_any_saver()
    given = {"flat": ["a"], "named": {"a": 1}, "deep": [["a"]]}
    await put(saver, "1", given)
    given["flat"].append("later")  # type: ignore[attr-defined]
    for _ in range(3):
        found = await saver.aget_tuple(generate_config("t"))
        assert found.checkpoint["channel_values"] == {"flat": ["a"], "named": {"a": 1}, "deep": [["a"]]}
        found.checkpoint["channel_values"]["flat"].append("more")
        found.checkpoint["channel_values"]["named"]["more"] = 2
        found.checkpoint["channel_values"]["deep"][0].append("more")
        found.checkpoint["channel_versions"]["more"] = "1"
        found.metadata["more"] = 1
        assert "more" not in (await saver.aget_tuple(generate_config("t"))).checkpoint["channel_versions"]


class Counting(JsonPlusSerializer):
    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=())
        self.loaded = 0

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        self.loaded += 1
        return super().loads_typed(data)


def test_another_serializer_is_asked_each_time(redis_url: str) -> None:
    serde = Counting()
    with RedisContextSaver(ContextConfig(url=redis_url), serde=serde) as saver:
        checkpoint = generate_checkpoint(
            checkpoint_id="1", channel_values={"a": "x"}, channel_versions={"a": "1"}
        )
        saver.put(generate_config("t"), checkpoint, generate_metadata(), {"a": "1"})
        for times in (2, 4, 6):
            saver.get_tuple(generate_config("t"))
            assert serde.loaded == times


async def test_a_large_checkpoint_is_read_from_the_server(make_any_saver: Any, proxy: Any) -> None:
    saver = make_any_saver(url=proxy.url, compress_from_bytes=10**9)
    large = "a" * LARGEST_KEPT
    await put(saver, "1", {"a": large, "b": "1"}, a="1", b="1")
    await put(saver, "2", {"a": large, "b": "2"}, "1", new={"b": "2"}, a="1", b="2")
    proxy.reset()
    assert await values_of(saver) == {"a": large, "b": "2"}
    assert proxy.received > LARGEST_KEPT


def test_the_threads_last_used_are_remembered() -> None:
    memory = Memory(2)
    for key in ("a", "b", "a", "c"):
        memory.set(key, Known(b"", {}))
    assert [memory.get(key) is not None for key in "abc"] == [True, False, True]
    memory.forget("a")
    memory.forget("a")
    assert memory.get("a") is None
    nothing = Memory(0)
    nothing.set("a", Known(b"", {}))
    assert nothing.get("a") is None


def test_names_are_kept_of_the_newest_threads_and_stay_as_many() -> None:
    memory = Memory(0)
    counts = []
    for number in range(3 * MOST_NAMES):
        made = memory.names("p", f"t{number}")
        assert memory.names("p", f"t{number}") is made
        counts.append(len(memory._names))
    assert counts == [min(number, MOST_NAMES) for number in range(1, 3 * MOST_NAMES + 1)]
    assert list(memory._names) == [f"t{number}" for number in range(2 * MOST_NAMES, 3 * MOST_NAMES)]


def test_a_deleted_thread_is_forgotten_here_too(saver: RedisContextSaver) -> None:
    checkpoint = generate_checkpoint(checkpoint_id="1")
    saver.put(generate_config("t"), checkpoint, generate_metadata(), {})
    assert saver.plans.memory.get(KEY)
    saver.delete_thread("t")
    assert saver.plans.memory.get(KEY) is None


async def test_an_id_below_its_parents_and_a_fork_take_their_places(make_any_saver: Any) -> None:
    saver = make_any_saver()
    await put(saver, "5", {"a": "5"})
    await put(saver, "3", {"a": "3"}, "5")
    assert await ids_of(saver) == ["5", "3"]
    await put(saver, "6", {"a": "6"}, "5")
    await put(saver, "7", {"a": "7"}, "5")
    assert await ids_of(saver) == ["7", "6", "5", "3"]
    assert await values_of(saver) == {"a": "7"}
