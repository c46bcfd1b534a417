"""The rules of a LangGraph saver that its conformance suite leaves untested, for both savers."""

import asyncio
import operator
from typing import Annotated, Any, TypedDict

import pytest
import redis
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.conformance.test_utils import (
    generate_checkpoint,
    generate_config,
    generate_metadata,
    put_test_checkpoint,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt
from noise import noise

from checkpoint import (
    AsyncRedisContextSaver,
    BadRequestError,
    ContextConfig,
    RedisContextSaver,
    copying,
    erase,
)
from checkpoint.layout import context_key
from checkpoint.saver import ContextSaver

ODD_IDS = ["{x}", "a:b", "*", "中文", "x" * 3000, "nul\0nul", "a|b", "[", "", "5:a", 7, "7 ", "🇨🇳"]


async def listed(saver: Any, config: Any, **options: Any) -> list[Any]:
    return [found async for found in saver.alist(config, **options)]


async def put_chain(
    saver: Any, thread: Any, ids: list[str], namespace: str = "", **metadata: Any
) -> list[Any]:
    """Checkpoints with these ids, each the child of the one before."""
    configs: list[Any] = []
    for step, id_ in enumerate(ids):
        parent = configs[-1]["configurable"]["checkpoint_id"] if configs else None
        config = generate_config(thread, checkpoint_ns=namespace, checkpoint_id=parent)
        checkpoint = generate_checkpoint(
            checkpoint_id=id_, channel_values={"step": id_}, channel_versions={"step": step + 1}
        )
        configs.append(
            await saver.aput(config, checkpoint, generate_metadata(step=step, **metadata), {"step": step + 1})
        )
    return configs


def ids_of(found: list[Any]) -> list[str]:
    return [each.checkpoint["id"] for each in found]


# --- writes ---


async def test_writes_before_their_checkpoint(any_saver: Any) -> None:
    config = generate_config("t", checkpoint_id="1")
    await any_saver.aput_writes(config, [("a", 1)], "task")
    assert await any_saver.aget_tuple(config) is None
    assert await any_saver.aget_tuple(generate_config("t")) is None
    assert await listed(any_saver, generate_config("t")) == []
    await put_chain(any_saver, "t", ["1"])
    found = await any_saver.aget_tuple(config)
    assert found.pending_writes == [("task", "a", 1)]


async def test_ordinary_writes_keep_their_first_value_one_by_one(any_saver: Any) -> None:
    (config,) = await put_chain(any_saver, "t", ["1"])
    await any_saver.aput_writes(config, [("a", "first"), ("b", "first")], "task")
    await any_saver.aput_writes(config, [("a", "second"), ("b", "second"), ("c", "new")], "task")
    found = await any_saver.aget_tuple(config)
    assert found.pending_writes == [("task", "a", "first"), ("task", "b", "first"), ("task", "c", "new")]


async def test_special_writes_keep_their_last_value(any_saver: Any) -> None:
    (config,) = await put_chain(any_saver, "t", ["1"])
    for value in ("first", "second"):
        await any_saver.aput_writes(
            config, [("a", value), ("__error__", value), ("__interrupt__", value)], "task"
        )
    found = await any_saver.aget_tuple(config)
    assert found.pending_writes == [
        ("task", "__interrupt__", "second"),
        ("task", "__error__", "second"),
        ("task", "a", "first"),
    ]


@pytest.mark.parametrize("size", [10, 40_000])
async def test_special_writes_of_one_batch_count_once(any_saver: Any, size: int) -> None:
    (config,) = await put_chain(any_saver, "t", ["1"])
    await any_saver.aput_writes(
        config, [("__error__", noise("a", size)), ("x", 1), ("__error__", noise("b", size))], "task"
    )
    found = await any_saver.aget_tuple(config)
    assert found.pending_writes == [("task", "__error__", noise("b", size)), ("task", "x", 1)]


@pytest.mark.parametrize("size", [10, 40_000])
async def test_large_writes_follow_the_same_rules(any_saver: Any, size: int) -> None:
    (config,) = await put_chain(any_saver, "t", ["1"])
    for letter in "xyz":
        await any_saver.aput_writes(
            config, [("a", noise(letter, size)), ("__error__", noise(letter, size))], "task"
        )
    await any_saver.aput_writes(config, [("a", noise("o", size))], "other")
    found = await any_saver.aget_tuple(config)
    assert found.pending_writes == [
        ("other", "a", noise("o", size)),
        ("task", "__error__", noise("z", size)),
        ("task", "a", noise("x", size)),
    ]


async def test_writes_come_back_by_path_then_task_then_number(any_saver: Any) -> None:
    (config,) = await put_chain(any_saver, "t", ["1"])
    await any_saver.aput_writes(config, [("a", n) for n in range(12)], "1", task_path="~b")
    await any_saver.aput_writes(config, [("a", "late")], "0", task_path="~c")
    await any_saver.aput_writes(config, [("a", "early")], "9", task_path="~a")
    await any_saver.aput_writes(config, [("a", "none")], "5")
    found = await any_saver.aget_tuple(config)
    assert [value for _, _, value in found.pending_writes] == ["none", "early", *range(12), "late"]


async def test_no_writes_is_no_write(any_saver: Any, redis_client: redis.Redis) -> None:
    await any_saver.aput_writes(generate_config("t", checkpoint_id="1"), [], "task")
    assert redis_client.keys() == []


# --- the latest checkpoint ---


async def test_latest_is_the_greatest_id_not_the_last_written(any_saver: Any) -> None:
    await put_chain(any_saver, "t", ["3", "1", "2", "10", "é", "Z"])
    assert ids_of([await any_saver.aget_tuple(generate_config("t"))]) == ["é"]
    assert ids_of(await listed(any_saver, generate_config("t"))) == ["é", "Z", "3", "2", "10", "1"]


async def test_same_id_replaces(any_saver: Any) -> None:
    await put_chain(any_saver, "t", ["1", "2"])
    await put_chain(any_saver, "t", ["2"], source="again")
    found = await listed(any_saver, generate_config("t"))
    assert ids_of(found) == ["2", "1"]
    assert found[0].parent_config is None
    assert found[0].metadata["source"] == "again"


async def test_the_same_values_read_by_both_savers(redis_url: str) -> None:
    config = ContextConfig(url=redis_url)
    with RedisContextSaver(config) as sync:
        async with AsyncRedisContextSaver(config) as both:
            first = await put_test_checkpoint(both, thread_id="t", channel_values={"a": [1]})
            sync.put_writes(first, [("a", 2)], "task")
            by_id, latest = sync.get_tuple(first), sync.get_tuple(generate_config("t"))
            assert (
                by_id == latest == await both.aget_tuple(first) == await both.aget_tuple(generate_config("t"))
            )
            assert both.get_tuple(first) == by_id  # the async saver's sync side
            assert by_id is not None
            assert by_id.config == first


async def test_configs_carry_the_thread_and_no_token(any_saver: Any) -> None:
    config = generate_config("t")
    config["configurable"]["__secret"] = "token"
    stored = await any_saver.aput(config, generate_checkpoint(checkpoint_id="1"), generate_metadata(), {})
    found = await any_saver.aget_tuple(generate_config("t", checkpoint_id="1"))
    expected = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "1"}}
    assert stored == found.config == expected
    assert "token" not in str(found)


async def test_metadata_takes_in_the_config(any_saver: Any) -> None:
    config = generate_config("t")
    config["configurable"] |= {"user": "u", "__secret": "s", "odd": object()}
    config["metadata"] = {"run_id": "r", "nul": "a\0b"}
    await any_saver.aput(config, generate_checkpoint(), generate_metadata(source="input", step=3), {})
    found = await any_saver.aget_tuple(generate_config("t"))
    assert found.metadata == {
        "source": "input", "step": 3, "parents": {}, "user": "u", "run_id": "r", "nul": "ab",
    }  # fmt: skip


async def test_missing_ids_are_named(any_saver: Any) -> None:
    with pytest.raises(BadRequestError, match="thread_id"):
        await any_saver.aget_tuple({"configurable": {}})
    with pytest.raises(BadRequestError, match="checkpoint_id"):
        await any_saver.aput_writes(generate_config("t"), [("a", 1)], "task")


# --- opaque ids ---


@pytest.mark.parametrize("position", range(4), ids=["thread", "namespace", "checkpoint", "task"])
async def test_ids_may_hold_any_character(any_saver: Any, position: int) -> None:
    odd = [id_ for id_ in ODD_IDS if id_ != "" or position == 1]
    for id_ in odd:
        thread, namespace, checkpoint_id, task = ("t", "n", "c", "k")
        if position == 0:
            thread = id_
        elif position == 1:
            namespace = str(id_)
        elif position == 2:
            checkpoint_id = str(id_)
        else:
            task = str(id_)
        (config,) = await put_chain(any_saver, thread, [checkpoint_id], namespace, mine=str(id_))
        await any_saver.aput_writes(config, [("a", str(id_))], task, task_path=str(id_))
        found = await any_saver.aget_tuple(config)
        assert found.config == config
        assert (task, "a", str(id_)) in found.pending_writes
    if position == 0:
        await any_saver.adelete_thread("{x}")
        assert sorted(
            {str(found.config["configurable"]["thread_id"]) for found in await listed(any_saver, None)}
        ) == sorted(str(id_) for id_ in odd if id_ != "{x}")


async def test_names_that_could_run_together(any_saver: Any) -> None:
    """Where parts were joined by a separator, these would share a field."""
    pairs = [("a", "b:c"), ("a:b", "c"), ("a|b", "c"), ("a", "b|c"), ("1:a", ""), ("", "1:a"), ("1:", "a")]
    for namespace, id_ in pairs:
        await put_chain(any_saver, "t", [id_ or "0"], namespace, pair=[namespace, id_])
    for namespace, id_ in pairs:
        found = await any_saver.aget_tuple(
            generate_config("t", checkpoint_ns=namespace, checkpoint_id=id_ or "0")
        )
        assert found.metadata["pair"] == [namespace, id_]


async def test_channel_and_version_never_run_together(any_saver: Any) -> None:
    values = {"a": 1, "a:1": 2, "1:a": 3, "": 4, "a\0": 5}
    versions: Any = {"a": 1, "a:1": "1", "1:a": 1.0, "": "1:1", "a\0": 11}
    checkpoint = generate_checkpoint(channel_values=values, channel_versions=versions)
    await any_saver.aput(generate_config("t"), checkpoint, generate_metadata(), versions)
    found = await any_saver.aget_tuple(generate_config("t"))
    assert found.checkpoint["channel_values"] == values
    assert found.checkpoint["channel_versions"] == versions
    assert [type(found.checkpoint["channel_versions"][name]) for name in versions] == [
        int,
        str,
        float,
        str,
        int,
    ]


async def test_a_lone_surrogate_is_refused_not_mangled(any_saver: Any) -> None:
    with pytest.raises(BadRequestError, match="surrogate"):
        await put_chain(any_saver, "t", ["\ud800"])


# --- versions and forks ---


def test_versions_grow_and_never_repeat(redis_url: str) -> None:
    saver = ContextSaver(ContextConfig(url=redis_url))
    assert len({saver.get_next_version(None) for _ in range(1000)}) == 1000
    version = saver.get_next_version(None)
    for _ in range(20):
        following = saver.get_next_version(version)
        assert following > version
        version = following
    assert saver.get_next_version(9).startswith(" 0000000010.")


def test_versions_of_others_sort_above_ours_and_ours_above_theirs(redis_url: str) -> None:
    """A thread goes to and fro between this saver, LangGraph's own and its server."""

    def theirs(current: str | None) -> str:
        return f"{int(current.split('.')[0]) + 1 if current else 1:032}.0.5"

    saver = ContextSaver(ContextConfig(url=redis_url))
    for first in (saver.get_next_version(None), theirs(None), "0000000041.gqmiMswW"):
        version = first
        for make in (
            saver.get_next_version,
            theirs,
            theirs,
            saver.get_next_version,
            saver.get_next_version,
            theirs,
        ):
            if make is theirs and first[0] == "0" and len(first.split(".")[0]) == 10:
                continue  # of a thread in the earlier form, LangGraph's server makes no greater ones
            following = make(version)
            assert following > version
            version = following


class State(TypedDict, total=False):
    total: Annotated[int, operator.add]
    last: str
    items: Annotated[list[str], operator.add]


def counting_graph(saver: Any, stop: bool = False) -> Any:
    def add(state: State) -> State:
        return {"total": 1, "items": [state["last"]]}

    def ask(state: State) -> State:
        return {"last": state["last"] + (interrupt("which?") if stop else "!")}

    graph = StateGraph(State)
    graph.add_node("add", add)
    graph.add_node("ask", ask)
    graph.add_edge(START, "add")
    graph.add_edge("add", "ask")
    graph.add_edge("ask", END)
    return graph.compile(checkpointer=saver)


def test_forks_keep_their_own_values(saver: RedisContextSaver) -> None:
    """Two branches make versions from the same one; a value must never be read from the other branch."""
    graph = counting_graph(saver)
    config: Any = {"configurable": {"thread_id": "t"}}
    for text in "abc":
        graph.invoke({"last": text}, config)
    after_a = next(s for s in graph.get_state_history(config) if s.values.get("last") == "a!" and not s.next)
    graph.invoke({"last": "x"}, after_a.config)
    graph.invoke({"last": "y"}, config)
    assert graph.get_state(config).values == {"total": 3, "last": "y!", "items": ["a", "x", "y"]}
    before_fork = next(
        s for s in graph.get_state_history(config) if s.values.get("last") == "c!" and not s.next
    )
    assert before_fork.values == {"total": 3, "last": "c!", "items": ["a", "b", "c"]}
    parents = {
        s.config["configurable"]["checkpoint_id"]: s.parent_config for s in graph.get_state_history(config)
    }
    assert sum(parent is None for parent in parents.values()) == 1


# --- list ---


async def test_list_namespaces(any_saver: Any) -> None:
    await put_chain(any_saver, "t", ["1", "3"])
    await put_chain(any_saver, "t", ["2", "4"], "sub:1")
    every = {"configurable": {"thread_id": "t"}}
    assert ids_of(await listed(any_saver, every)) == ["4", "3", "2", "1"]
    assert ids_of(await listed(any_saver, generate_config("t"))) == ["3", "1"]
    assert ids_of(await listed(any_saver, generate_config("t", checkpoint_ns="sub:1"))) == ["4", "2"]
    assert ids_of(await listed(any_saver, every, limit=3)) == ["4", "3", "2"]
    one: Any = {"configurable": {"thread_id": "t", "checkpoint_id": "2"}}
    assert ids_of(await listed(any_saver, one)) == ["2"]


@pytest.mark.parametrize("order", [["", "n", "sub"], ["sub", "n", ""]])
async def test_one_id_in_several_namespaces_has_one_order(any_saver: Any, order: list[str]) -> None:
    for namespace in order:
        await put_chain(any_saver, "t", ["1"], namespace)
    found = await listed(any_saver, {"configurable": {"thread_id": "t"}})
    assert [each.config["configurable"]["checkpoint_ns"] for each in found] == ["", "n", "sub"]


async def test_list_narrowed_to_one_checkpoint(any_saver: Any) -> None:
    await put_chain(any_saver, "t", ["1", "2", "3"])
    one = generate_config("t", checkpoint_id="2")
    assert ids_of(await listed(any_saver, one)) == ["2"]
    assert await listed(any_saver, one, before=generate_config("t", checkpoint_id="2")) == []
    assert await listed(any_saver, one, filter={"step": 0}) == []
    assert await listed(any_saver, generate_config("t", checkpoint_id="x")) == []


async def test_before_compares_ids_whatever_they_point_at(any_saver: Any) -> None:
    await put_chain(any_saver, "t", ["1", "3", "5"])
    await put_chain(any_saver, "t", ["2", "4"], "sub")
    befores: list[Any] = [
        generate_config("t", checkpoint_ns="sub", checkpoint_id="4"),
        generate_config("nobody", checkpoint_id="4"),
        {"checkpoint_id": "4"},
        {"configurable": {"checkpoint_id": "4"}},
    ]
    for before in befores:
        assert ids_of(await listed(any_saver, generate_config("t"), before=before)) == ["3", "1"]
    every = {"configurable": {"thread_id": "t"}}
    assert ids_of(await listed(any_saver, every, before=befores[0])) == ["3", "2", "1"]
    for bound, expected in (("0", []), ("1", []), ("9", ["5", "3", "1"])):
        assert (
            ids_of(await listed(any_saver, generate_config("t"), before={"checkpoint_id": bound})) == expected
        )


async def test_list_filters_before_it_limits(any_saver: Any) -> None:
    ids = [f"{n:03}" for n in range(60)]
    await put_chain(any_saver, "t", ids)
    found = await listed(any_saver, generate_config("t"), filter={"step": 1}, limit=1)
    assert ids_of(found) == ["001"]
    assert await listed(any_saver, generate_config("t"), limit=0) == []
    assert ids_of(await listed(any_saver, generate_config("t"), limit=45)) == ids[:-46:-1]
    assert ids_of(await listed(any_saver, generate_config("t"))) == ids[::-1]


async def test_filters_compare_exactly(any_saver: Any) -> None:
    await put_chain(
        any_saver, "t", ["1"], n=1, flag=True, nested={"a": [1, {"b": None}]}, text="*", none=None
    )
    for good in (
        {"n": 1},
        {"flag": True},
        {"nested": {"a": [1, {"b": None}]}},
        {"text": "*"},
        {"none": None},
        {},
    ):
        assert len(await listed(any_saver, generate_config("t"), filter=good)) == 1, good
    bad: list[dict[str, Any]] = [
        {"n": True}, {"n": 1.0}, {"n": "1"}, {"flag": 1}, {"nested": {"a": [True, {"b": None}]}},
        {"nested": {}}, {"nested.a": 1}, {"text": "'*' OR 1"}, {"absent": None}, {"n": 1, "flag": False},
    ]  # fmt: skip
    for wrong in bad:
        assert await listed(any_saver, generate_config("t"), filter=wrong) == [], wrong


async def test_list_of_all_threads(any_saver: Any, redis_client: redis.Redis) -> None:
    redis_client.set("business-assistant:context:other", "of another type and name")
    for thread in ("a", "b", 3):
        await put_chain(any_saver, thread, ["1", "2"])
    found = await listed(any_saver, None)
    assert sorted((str(f.config["configurable"]["thread_id"]), f.checkpoint["id"]) for f in found) == [
        ("3", "1"), ("3", "2"), ("a", "1"), ("a", "2"), ("b", "1"), ("b", "2"),
    ]  # fmt: skip
    assert {type(f.config["configurable"]["thread_id"]) for f in found} == {str, int}
    assert len(await listed(any_saver, None, limit=3)) == 3
    assert len(await listed(any_saver, None, filter={"step": 1})) == 3


async def test_list_goes_on_when_its_place_was_pruned(any_saver: Any) -> None:
    ids = [f"{n:03}" for n in range(40)]
    await put_chain(any_saver, "t", ids)
    seen = []
    if isinstance(any_saver, AsyncRedisContextSaver):
        async for found in any_saver.alist(generate_config("t")):
            seen.append(found.checkpoint["id"])
            if len(seen) == 16:
                await any_saver.aprune(["t"])
    else:
        for found in any_saver.inner.list(generate_config("t")):
            seen.append(found.checkpoint["id"])
            if len(seen) == 16:
                any_saver.inner.prune(["t"])
    assert seen == ids[:23:-1]


# --- deleting and copying ---


async def test_runs_are_deleted_in_every_thread(any_saver: Any) -> None:
    for thread in ("a", "b"):
        await put_chain(any_saver, thread, ["1", "2"], run_id="old")
        await put_chain(any_saver, thread, ["3"], run_id="new")
    await any_saver.adelete_for_runs(["old", "unknown"])
    assert sorted(ids_of(await listed(any_saver, None))) == ["3", "3"]


async def test_deleting_a_run_keeps_shared_values_and_the_chain(any_saver: Any) -> None:
    first = await any_saver.aput(
        generate_config("t"),
        generate_checkpoint(checkpoint_id="1", channel_values={"a": "kept"}, channel_versions={"a": 1}),
        generate_metadata(run_id="old"),
        {"a": 1},
    )
    await any_saver.aput(
        first,
        generate_checkpoint(
            checkpoint_id="2", channel_values={"a": "kept", "b": 1}, channel_versions={"a": 1, "b": 2}
        ),
        generate_metadata(run_id="new"),
        {"b": 2},
    )
    await any_saver.adelete_for_runs(["old"])
    found = await any_saver.aget_tuple(generate_config("t"))
    assert found.checkpoint["channel_values"] == {"a": "kept", "b": 1}
    await put_chain(any_saver, "t", ["0", "3"])
    assert ids_of(await listed(any_saver, generate_config("t"))) == ["3", "2", "0"]


async def test_nothing_stays_of_what_was_pruned(any_saver: Any, redis_client: redis.Redis) -> None:
    configs = await put_chain(any_saver, "t", [f"{n:02}" for n in range(20)])
    for config in configs:
        await any_saver.aput_writes(config, [("a", "w")], "task")
    await any_saver.aprune(["t"])
    names = redis_client.hkeys(context_key(any_saver.config.key_prefix, "t"))
    kinds = sorted(name[:2] for name in names)
    # The mark, the namespace's pointer and links, and one record, value, index and batch.
    assert kinds == [b"c", b"cc", b"cl", b"cm", b"cn", b"cv", b"wi", b"ww"]
    await any_saver.aprune(["t"], strategy="delete_all")
    assert redis_client.keys() == []


async def test_unknown_strategy_is_refused(any_saver: Any) -> None:
    await put_chain(any_saver, "t", ["1"])
    with pytest.raises(BadRequestError, match="keep_latest"):
        await any_saver.aprune(["t"], strategy="oldest")
    assert ids_of(await listed(any_saver, generate_config("t"))) == ["1"]


async def test_prune_keeps_what_writers_need_meanwhile(any_saver: Any) -> None:
    """Pruning while a chain grows: every checkpoint that is still there must be whole."""
    await put_chain(any_saver, "t", [f"{n:04}" for n in range(50)])

    async def grow() -> None:
        for n in range(50, 150):
            await any_saver.aput(
                generate_config("t", checkpoint_id=f"{n - 1:04}"),
                generate_checkpoint(
                    checkpoint_id=f"{n:04}",
                    channel_values={"step": n, "old": "carried"},
                    channel_versions={"step": n, "old": 7},
                ),
                generate_metadata(step=n),
                {"step": n},
            )

    async def cut() -> None:
        for _ in range(15):
            await any_saver.aprune(["t"])

    await asyncio.gather(grow(), cut())
    found = await listed(any_saver, generate_config("t"))
    assert found[0].checkpoint["channel_values"] == {"step": 149, "old": "carried"}
    assert all(each.checkpoint["channel_values"]["old"] == "carried" for each in found)


def test_prune_chooses_again_when_something_new_needs_the_doomed(saver: RedisContextSaver) -> None:
    """A fork arrives between the choice and the deletion, rebuilt from a chosen checkpoint."""

    def save(id_: str, parent: str | None, metadata: Any) -> None:
        checkpoint = generate_checkpoint(checkpoint_id=id_, channel_versions={"log": id_})
        saver.put(generate_config("t", checkpoint_id=parent), checkpoint, metadata, {"log": id_})

    delta = generate_metadata(counters_since_delta_snapshot={"log": (1, 1)})
    save("1", None, delta)
    save("2", "1", generate_metadata())
    choices: list[set[tuple[str, str]]] = []

    def choose(stored: Any) -> set[tuple[str, str]]:
        choices.append(erase.choose_older(stored))
        if len(choices) == 1:
            save("3", "1", delta)
        return choices[-1]

    saver.run(erase.erase(saver.plans, context_key(saver.config.key_prefix, "t"), choose))
    assert choices == [{("", "1")}, {("", "2")}]
    assert ids_of(list(saver.list(generate_config("t")))) == ["3", "1"]


async def test_copy_is_whole_and_independent(any_saver: Any) -> None:
    configs = await put_chain(any_saver, "a", ["1", "2", "3"])
    await put_chain(any_saver, "a", ["2"], "sub")
    await any_saver.aput_writes(configs[2], [("x", "small"), ("y", "z" * 30_000)], "task", "~path")
    await any_saver.acopy_thread("a", "b")
    copied, original = await listed(any_saver, _all("b")), await listed(any_saver, _all("a"))
    assert len(copied) == 4
    for one, other in zip(copied, original, strict=True):
        assert one.config["configurable"] == other.config["configurable"] | {"thread_id": "b"}
        assert one[1:3] == other[1:3]
        assert one.pending_writes == other.pending_writes
        if one.parent_config:
            assert one.parent_config["configurable"]["thread_id"] == "b"
    await any_saver.adelete_thread("a")
    assert await listed(any_saver, _all("b")) == copied


def test_a_copy_onto_itself_asks_the_server_nothing(redis_url: str) -> None:
    plans = ContextSaver(ContextConfig(url=redis_url)).plans
    assert list(copying.copy_thread(plans, 7, "7")) == []


def _all(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


# --- delta channels ---


def delta_graph(saver: Any, frequency: int = 5) -> Any:
    def join(left: list[str], right: Any) -> list[str]:
        return [*left, *(item for each in right for item in each)]

    class Deltas(TypedDict, total=False):
        log: Annotated[list[str], DeltaChannel(join, snapshot_frequency=frequency)]
        plain: str

    graph = StateGraph(Deltas)
    graph.add_node("one", lambda state: {"log": [f"one-{len(state['log'])}"], "plain": "p"})
    graph.add_node("two", lambda state: {"log": [f"two-{len(state['log'])}"]})
    graph.add_edge(START, "one")
    graph.add_edge("one", "two")
    graph.add_edge("two", END)
    return graph.compile(checkpointer=saver)


@pytest.mark.filterwarnings("ignore:.*[Bb]eta.*")
def test_delta_channels_are_rebuilt_as_in_memory(saver: RedisContextSaver) -> None:
    memory = InMemorySaver()
    config: Any = {"configurable": {"thread_id": "t"}}
    ours, theirs = delta_graph(saver), delta_graph(memory)
    for n in range(7):
        assert ours.invoke({"log": [f"in-{n}"]}, config) == theirs.invoke({"log": [f"in-{n}"]}, config)
    assert [s.values for s in ours.get_state_history(config)] == [
        s.values for s in theirs.get_state_history(config)
    ]
    assert len(ours.get_state(config).values["log"]) == 21
    own = saver.get_delta_channel_history(config=config, channels=["log", "plain", "absent"])
    assert own["absent"] == {"writes": []}
    assert own["plain"]["seed"] == "p"
    other = memory.get_delta_channel_history(config=config, channels=["log"])["log"]
    assert [write[1:] for write in own["log"]["writes"]] == [write[1:] for write in other["writes"]]
    assert own["log"].get("seed") == other.get("seed")


async def test_a_ring_of_parents_stops_neither_server_nor_saver(any_saver: Any) -> None:
    """The same id put again, as the child of itself and of its own child."""
    await put_chain(any_saver, "t", ["1", "2"])
    for id_, parent in (("1", "2"), ("3", "3")):
        checkpoint = generate_checkpoint(checkpoint_id=id_)
        await any_saver.aput(generate_config("t", checkpoint_id=parent), checkpoint, generate_metadata(), {})
        config = generate_config("t", checkpoint_id=id_)
        found = await any_saver.aget_delta_channel_history(config=config, channels=["absent"])
        assert found == {"absent": {"writes": []}}
    await any_saver.aprune(["t"])
    assert ids_of(await listed(any_saver, generate_config("t"))) == ["3"]


@pytest.mark.filterwarnings("ignore:.*[Bb]eta.*")
def test_pruning_keeps_what_delta_channels_are_rebuilt_from(saver: RedisContextSaver) -> None:
    config: Any = {"configurable": {"thread_id": "t"}}
    graph = delta_graph(saver)
    for n in range(7):
        graph.invoke({"log": [f"in-{n}"]}, config)
    before = graph.get_state(config).values
    stored = len(list(saver.list(config)))
    saver.prune(["t"])
    left = len(list(saver.list(config)))
    assert 1 < left < stored
    assert graph.get_state(config).values == before
    graph.invoke({"log": ["on"]}, config)
    assert graph.get_state(config).values["log"][:21] == before["log"]


@pytest.mark.filterwarnings("ignore:.*[Bb]eta.*")
def test_copies_rebuild_their_delta_channels(saver: RedisContextSaver) -> None:
    graph = delta_graph(saver, frequency=1000)
    for n in range(4):
        graph.invoke({"log": [f"in-{n}"]}, {"configurable": {"thread_id": "a"}})
    saver.copy_thread("a", "b")
    saver.delete_thread("a")
    assert len(graph.get_state({"configurable": {"thread_id": "b"}}).values["log"]) == 12


# --- clones, serializers, many writers ---


async def test_clones_share_the_connection(any_saver: Any) -> None:
    inner = getattr(any_saver, "inner", any_saver)
    clone = inner.with_allowlist([("some.module", "Name")])
    assert clone is not inner
    assert clone.serde is not inner.serde
    (config,) = await put_chain(any_saver, "t", ["1"])
    found = (
        await clone.aget_tuple(config)
        if isinstance(any_saver, AsyncRedisContextSaver)
        else clone.get_tuple(config)
    )
    assert found.checkpoint["id"] == "1"


class Marking(JsonPlusSerializer):
    """A serializer of someone's own, that says so in the type."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = super().dumps_typed(obj)
        return "marked-" + kind, data[::-1]

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        assert data[0].startswith("marked-")
        return super().loads_typed((data[0][7:], data[1][::-1]))


def test_custom_serializer(redis_url: str) -> None:
    with RedisContextSaver(
        ContextConfig(url=redis_url), serde=Marking(allowed_msgpack_modules=None)
    ) as saver:
        graph = counting_graph(saver)
        config: Any = {"configurable": {"thread_id": "t"}}
        assert graph.invoke({"last": "a"}, config)["last"] == "a!"
        assert graph.get_state(config).values["items"] == ["a"]


async def test_sixty_tasks_write_at_once(any_saver: Any) -> None:
    (config,) = await put_chain(any_saver, "t", ["1"])
    await asyncio.gather(
        *(any_saver.aput_writes(config, [("a", n), ("b", n)], f"{n:02}", f"~{n:02}") for n in range(60))
    )
    found = await any_saver.aget_tuple(config)
    assert found.pending_writes == [(f"{n:02}", name, n) for n in range(60) for name in "ab"]


def test_a_fan_out_keeps_its_order(saver: RedisContextSaver) -> None:
    class Fan(TypedDict, total=False):
        got: Annotated[list[int], operator.add]

    graph = StateGraph(Fan)
    graph.add_node("spread", lambda _: {})
    graph.add_node("work", lambda n: {"got": [n]})
    graph.add_edge(START, "spread")
    graph.add_conditional_edges("spread", lambda _: [Send("work", n) for n in range(60)], ["work"])
    compiled = graph.compile(checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "t"}}
    assert compiled.invoke({"got": []}, config)["got"] == list(range(60))
    assert compiled.get_state(config).values["got"] == list(range(60))


async def test_interrupts_survive_pruning(redis_url: str) -> None:
    config: Any = {"configurable": {"thread_id": "t"}}
    async with AsyncRedisContextSaver(ContextConfig(url=redis_url)) as saver:
        graph = counting_graph(saver, stop=True)
        await graph.ainvoke({"last": "a"}, config)
        await saver.aprune(["t"])
        state = await graph.aget_state(config)
        assert [task.interrupts[0].value for task in state.tasks] == ["which?"]
        assert (await graph.ainvoke(Command(resume="?"), config))["last"] == "a?"


@pytest.mark.parametrize("turns", [1, 2])
async def test_keep_turns_holds_a_long_conversation_small(make_any_saver: Any, turns: int) -> None:
    saver = make_any_saver(keep_turns=turns)
    inner = getattr(saver, "inner", saver)
    graph = counting_graph(inner, stop=True)
    config: Any = {"configurable": {"thread_id": "t"}}

    async def invoke(value: Any) -> Any:
        if isinstance(inner, AsyncRedisContextSaver):
            return await graph.ainvoke(value, config)
        return await asyncio.to_thread(graph.invoke, value, config)

    sizes = []
    for n in range(6):
        await invoke({"last": f"{n}"})
        assert (await invoke(Command(resume="!")))["last"] == f"{n}!"
        sizes.append(len(await listed(saver, config)))
    assert sizes[turns - 1 :] == [4 * turns] * (7 - turns)
    assert (await saver.aget_tuple(config)).checkpoint["channel_values"]["total"] == 6


def test_keep_turns_leaves_forks_whole(redis_url: str) -> None:
    with RedisContextSaver(ContextConfig(url=redis_url, keep_turns=2)) as saver:
        graph = counting_graph(saver)
        config: Any = {"configurable": {"thread_id": "t"}}
        for text in "ab":
            graph.invoke({"last": text}, config)
        after_a = next(
            s for s in graph.get_state_history(config) if s.values.get("last") == "a!" and not s.next
        )
        graph.invoke({"last": "x"}, after_a.config)
        graph.invoke({"last": "y"}, config)
        ends = [s.values["items"] for s in graph.get_state_history(config) if not s.next]
        # The branch that ended in b keeps its own two turns, a and b; the other keeps x and y.
        assert ends == [["a", "x", "y"], ["a", "x"], ["a", "b"], ["a"]]
        graph.invoke({"last": "z"}, config)
        ends = [s.values["items"] for s in graph.get_state_history(config) if not s.next]
        assert ends == [["a", "x", "y", "z"], ["a", "x", "y"], ["a", "b"], ["a"]]
