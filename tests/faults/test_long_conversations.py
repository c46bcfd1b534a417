"""A conversation of hundreds of turns costs at its end what it cost at its beginning."""

from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

import pytest
import redis
from faults.parts import FACT, NARRATIVE, OTHER_FACT, OTHER_NARRATIVE, VAGUE, Home, Model, say, state_of
from langgraph.checkpoint.base.id import uuid6
from relay import Proxy

from checkpoint.layout import context_key
from graph.compose import Assistant
from graph.run import config_for

PREFIX = "business-assistant:context:v1:"
# One round of talk.
ROUND = (
    FACT, NARRATIVE, VAGUE, "下一页", "2", OTHER_NARRATIVE, VAGUE, "取消", OTHER_FACT, "谢谢",
    "火星移民补贴有多少？",
)  # fmt: skip
WHOLE_COMMANDS = {"cmdstat_hgetall", "cmdstat_hkeys", "cmdstat_hscan", "cmdstat_hvals"}
STATED_BYTES = 40_000  # that a turn stores at most
USUAL_BYTES = 22_000  # that one of a round stores on average
LITTLE = 300  # numbers of a few digits more, ids of other lengths


@pytest.fixture
def assistant(place: Home, model: Model, proxy: Proxy) -> Iterator[Assistant]:
    with Home(place.folder, proxy.url).assistant(model) as opened:
        yield opened


def stored(client: redis.Redis) -> int:
    pairs = client.hgetall(context_key(PREFIX, "t")).items()
    return sum(len(name) + len(value) for name, value in pairs)


def cost_of_a_round(assistant: Assistant, client: redis.Redis, proxy: Proxy) -> dict[str, list[int]]:
    """Of each turn of a round: bytes stored, exchanges, bytes sent and received, commands at the server."""
    costs: dict[str, list[int]] = {name: [] for name in ("stored", "trips", "sent", "received", "commands")}
    for text in ROUND:
        before, commands = stored(client), commands_of(client)
        proxy.reset()
        say(assistant, text)
        costs["trips"].append(proxy.round_trips)
        costs["sent"].append(proxy.sent)
        costs["received"].append(proxy.received)
        costs["commands"].append(commands_of(client) - commands)
        costs["stored"].append(stored(client) - before)
    return costs


def commands_of(client: redis.Redis) -> int:
    """Commands carried out, those inside scripts included, but for the questions of this test."""
    stats = client.info("commandstats")
    ours = ("info", "hgetall", "config", "hello", "client", "script")
    return sum(
        found["calls"]
        for name, found in stats.items()
        if name.removeprefix("cmdstat_").split("|")[0] not in ours
    )


def test_three_hundred_turns_cost_at_the_end_what_they_cost_at_the_beginning(
    assistant: Assistant, redis_client: redis.Redis, proxy: Proxy, is_long: bool
) -> None:
    turns = 300 if is_long else 55
    for text in islice(cycle(ROUND), 2 * len(ROUND)):  # until the window is full
        say(assistant, text)
    redis_client.config_resetstat()
    early = cost_of_a_round(assistant, redis_client, proxy)
    for text in islice(cycle(ROUND), (turns // len(ROUND) - 4) * len(ROUND)):
        say(assistant, text)
    late = cost_of_a_round(assistant, redis_client, proxy)
    assert early["trips"] == late["trips"]
    assert early["commands"] == late["commands"]
    for name in ("stored", "sent", "received"):
        for at, (one, other) in enumerate(zip(early[name], late[name], strict=True)):
            assert other - one <= LITTLE, (name, ROUND[at], one, other)
    assert max(late["stored"]) <= STATED_BYTES
    assert sum(late["stored"]) <= USUAL_BYTES * len(ROUND)
    state = state_of(assistant)
    assert len(state["history"]["turns"]) == assistant.services.limits.max_turns
    assert len(repr(state)) < 60_000
    # All of it is still there, and the first step is found as fast as the last.
    steps = list(assistant.saver.list(config_for("t")))
    assert len(steps) > 3 * turns


def test_the_latest_of_five_hundred_turns_is_read_alone(
    assistant: Assistant, redis_client: redis.Redis, proxy: Proxy, is_long: bool
) -> None:
    """Whoever reads a long thread holds up nobody: what is asked of the server does not grow with it."""
    for text in (FACT, NARRATIVE):
        say(assistant, text)

    def read() -> tuple[int, int, int]:
        proxy.reset()
        before = commands_of(redis_client)
        assert assistant.saver.get_tuple(config_for("t"))
        assert assistant.saver.restore_window("t")
        return proxy.round_trips, commands_of(redis_client) - before, proxy.received

    read()
    short = read()
    grow(assistant, 500 if is_long else 100)
    read()  # as before: what this process remembers of the thread is up to date
    redis_client.config_resetstat()
    long = read()
    assert long[:2] == short[:2]
    assert abs(long[2] - short[2]) <= LITTLE
    assert not WHOLE_COMMANDS & redis_client.info("commandstats").keys()
    # Nor does a page of the list: its size is bounded, not its number.
    proxy.reset()
    found = assistant.saver.list(config_for("t"), limit=5)
    assert len(list(found)) == 5
    assert proxy.round_trips == 1
    assert proxy.received < 5 * STATED_BYTES


def grow(assistant: Assistant, turns: int) -> None:
    """So many turns more, as their checkpoints alone: copies of the newest under later ids."""
    config: Any = config_for("t")
    found = assistant.saver.get_tuple(config)
    assert found
    for _ in range(turns * 5):
        later = {**found.checkpoint, "id": str(uuid6())}
        at = found.config
        channel = "turn_count"
        version = assistant.saver.get_next_version(later["channel_versions"][channel])  # type: ignore[arg-type]
        later["channel_versions"] = {**later["channel_versions"], channel: version}
        assistant.saver.put(at, later, found.metadata, {channel: version})  # type: ignore[arg-type]
