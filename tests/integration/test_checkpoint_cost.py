"""What a saver costs, counted and not timed: round trips, server commands and bytes."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypedDict

import pytest
import redis
from langgraph.checkpoint.conformance.test_utils import (
    generate_checkpoint,
    generate_config,
    generate_metadata,
)
from langgraph.graph import END, START, StateGraph
from noise import noise

from checkpoint import ContextConfig, RedisContextSaver
from checkpoint.layout import context_key, sibling_key
from graph.run import last_result, stream_turn
from nodes.contracts import Caller

SIZES = pytest.mark.parametrize("size", [10, 40_000], ids=["small", "large"])


class State(TypedDict, total=False):
    question: str
    found: list[str]
    answer: str
    history: dict[str, Any]


def five_nodes(saver: Any) -> Any:
    """A bounded state, as our own graph keeps it: nothing in it grows with the number of turns."""
    graph = StateGraph(State)
    steps: list[Callable[[State], Any]] = [
        lambda _: {"answer": ""},
        lambda _: {"found": []},
        lambda state: {"found": [state["question"]] * 5},
        lambda _: {"answer": "a" * 400},
        lambda state: {"history": {"turns": [state["answer"]] * 8}},
    ]
    names = [f"node{number}" for number in range(len(steps))]
    for name, step in zip(names, steps, strict=True):
        graph.add_node(name, step)
    for left, right in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(left, right)
    return graph.compile(checkpointer=saver)


async def put(saver: Any, id_: str, size: int, token: str | None = None) -> Any:
    config = generate_config("t")
    if token:
        config["configurable"]["__lease"] = token
    checkpoint = generate_checkpoint(
        checkpoint_id=id_, channel_values={"a": noise(id_, size)}, channel_versions={"a": id_}
    )
    return await saver.aput(config, checkpoint, generate_metadata(), {"a": id_})


@SIZES
@pytest.mark.parametrize("token", [None, "mine"], ids=["free", "leased"])
async def test_one_round_trip_each(
    make_any_saver: Any, proxy: Any, redis_client: redis.Redis, size: int, token: str | None
) -> None:
    saver = make_any_saver(url=proxy.url)
    redis_client.set(sibling_key("lease", context_key(saver.config.key_prefix, "t")), "mine")
    last = await put(saver, "0", size, token)  # connects, and the server learns the scripts
    await saver.aput_writes(last, [("a", "w")], "task")
    await saver.aget_tuple(last)
    await saver.arestore_window("t")
    write_config = {"configurable": last["configurable"] | {"__lease": token}}
    calls: dict[str, Callable[[], Any]] = {
        "put": lambda: put(saver, "1", size, token),
        "put_writes": lambda: saver.aput_writes(write_config, [("a", noise("w", size))] * 9, "other"),
        "latest": lambda: saver.aget_tuple(generate_config("t")),
        "by id": lambda: saver.aget_tuple(last),
        "missing": lambda: saver.aget_tuple(generate_config("nobody")),
        "restore_window": lambda: saver.arestore_window("t"),
        "history": lambda: saver.aget_delta_channel_history(config=last, channels=["a", "b"]),
        "delete_thread": lambda: saver.adelete_thread("t"),
    }
    for name, call in calls.items():
        if name == "history":
            await call()
        proxy.reset()
        await call()
        assert proxy.round_trips == 1, name


async def test_one_round_trip_a_page(make_any_saver: Any, proxy: Any) -> None:
    saver = make_any_saver(url=proxy.url)
    for number in range(40):
        await put(saver, f"{number:02}", 1)

    async def trips(**options: Any) -> int:
        proxy.reset()
        assert [f async for f in saver.alist(generate_config("t"), **options)]
        return int(proxy.round_trips)

    await trips()
    assert await trips(limit=10) == 1
    assert await trips(limit=40) == 1
    assert await trips() == 2  # 16, then 24 of at most 32
    assert await trips(filter={"step": 0}, limit=3) == 1
    assert await trips(before={"checkpoint_id": "07"}) == 1


def usage(client: redis.Redis) -> int:
    """Commands the server has carried out, those inside scripts included, a connection's first words not."""
    stats = client.info("commandstats")
    return sum(
        each["calls"]
        for name, each in stats.items()
        if name.split("|")[0] not in ("cmdstat_info", "cmdstat_config", "cmdstat_hello", "cmdstat_client")
    )


def test_a_turn_costs_the_same_however_long_the_thread(
    redis_url: str, redis_client: redis.Redis, proxy: Any, is_long: bool
) -> None:
    later = 2000 if is_long else 150
    config: Any = {"configurable": {"thread_id": "t"}}
    costs: dict[int, tuple[int, int, int, int]] = {}
    redis_client.config_resetstat()
    with RedisContextSaver(ContextConfig(url=proxy.url)) as saver:
        graph = five_nodes(saver)
        for turn in range(1, later + 1):
            if turn in (10, later):
                proxy.reset()
                before = usage(redis_client)
                graph.invoke({"question": "q"}, config, durability="sync")
                trips, sent, received = proxy.round_trips, proxy.sent, proxy.received
                costs[turn] = (trips, usage(redis_client) - before, sent, received)
            else:
                # A few turns before a counted one run as it does, so that it opens no connection.
                is_near = any(at - 5 <= turn < at for at in (10, later))
                graph.invoke({"question": "q"}, config, durability="sync" if is_near else "exit")
    early, late = costs[10], costs[later]
    assert early[0] == late[0] == 14  # 1 read, 7 checkpoints, 6 batches of writes
    assert early[1] == late[1]
    # A number of a few digits more, such as the step, is all that may grow.
    assert abs(late[2] - early[2]) <= 64
    assert abs(late[3] - early[3]) <= 64
    stats = redis_client.info("commandstats")
    assert not {"cmdstat_hgetall", "cmdstat_hkeys", "cmdstat_hscan", "cmdstat_hvals"} & stats.keys()


def test_unchanged_values_are_not_sent_again(proxy: Any) -> None:
    config: Any = {"configurable": {"thread_id": "t"}}
    with RedisContextSaver(ContextConfig(url=proxy.url)) as saver:
        graph = five_nodes(saver)
        graph.invoke({"question": "q" * 10_000}, config)
        proxy.reset()
        graph.update_state(config, {"answer": "short"})
        assert proxy.sent < 3000


def test_a_turn_stores_a_flat_and_small_number_of_bytes(
    redis_client: redis.Redis, saver: RedisContextSaver
) -> None:
    config: Any = {"configurable": {"thread_id": "t"}}
    key = context_key(saver.config.key_prefix, "t")
    graph = five_nodes(saver)

    def stored() -> int:
        return sum(len(name) + len(value) for name, value in redis_client.hgetall(key).items())

    sizes = [0]
    for _ in range(12):
        graph.invoke({"question": "q"}, config)
        sizes.append(stored())
    growth = [right - left for left, right in pairwise(sizes)]
    assert max(growth[1:]) - min(growth[1:]) <= 64
    assert growth[-1] <= 20_000


def test_a_value_that_compresses_is_stored_small(redis_url: str, redis_client: redis.Redis) -> None:
    with RedisContextSaver(ContextConfig(url=redis_url)) as saver:
        graph = five_nodes(saver)
        config: Any = {"configurable": {"thread_id": "t"}}
        graph.invoke({"question": "long " * 50_000}, config)
        assert graph.get_state(config).values["question"] == "long " * 50_000
        assert max(map(len, redis_client.hvals(context_key(saver.config.key_prefix, "t")))) < 10_000


def test_a_turn_of_our_own_graph_stores_20_kb(assistant: Any, redis_client: redis.Redis) -> None:
    """Names and values of a policy question under a full window; the server adds a tenth."""
    key = context_key(assistant.saver.config.key_prefix, "t")

    def ask() -> int:
        request: Any = {"request_id": assistant.new_id(), "received_at": assistant.clock()}
        request["text"] = "研发费用补助怎么申请？"
        result = last_result(stream_turn(assistant, request, thread_id="t", caller=Caller()))
        assert result.status == "completed", result
        return sum(len(name) + len(value) for name, value in redis_client.hgetall(key).items())

    sizes = [ask() for _ in range(12)]
    growth = [right - left for left, right in pairwise(sizes)]
    assert growth[-1] <= 20_000
    assert max(growth[8:]) - min(growth[8:]) <= 400
