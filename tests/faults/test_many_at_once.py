"""One graph, one saver, many at once: nobody's words reach another, and readers see only whole steps."""

import asyncio
import random
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from faults.parts import ANSWERED, FACT, NARRATIVE, NOBODY, Home, Model, context, forms, rows, say, state_of
from faults.test_sending_at_once import together
from integration.door import endings, events_of
from langgraph.checkpoint.base import empty_checkpoint
from promise import AUDITOR, RESTRICTED_QUESTIONS, secrets_in

from checkpoint import AsyncRedisContextSaver, ContextConfig, RedisContextSaver
from graph.build import build_graph
from graph.compose import Assistant, caller_of_context
from graph.run import config_for
from graph.steps import RequestContext
from nodes.contracts import Caller, ToldSummary

MANY = 50


@pytest.fixture
def assistant(place: Home, model: Model) -> Iterator[Assistant]:
    with place.assistant(model) as opened:
        yield opened


def marks_in(text: str) -> set[int]:
    """The numbers of the conversations whose mark stands in the text."""
    return {number for number in range(MANY) if f"第{number:03}次问" in text}


def talk(assistant: Assistant, number: int) -> str:
    """Two turns of one conversation, all of whose words bear its mark; and what was told."""
    mark = f"第{number:03}次问"
    # Every fifth asks as one who may see what the others may not.
    caller = AUDITOR if number % 5 == 0 else Caller(user=f"user {mark}")
    told = ""
    for text in (RESTRICTED_QUESTIONS[0], NARRATIVE):
        result = say(
            assistant, f"{text}（{mark}）", f"t{number}", caller, summary=ToldSummary(f"摘要{mark}", ())
        )
        told += result.text
        if result.status == "needs_input":
            told += say(assistant, "取消", f"t{number}", caller).text
    return told


def test_fifty_conversations_at_once_share_nothing(assistant: Assistant, model: Model) -> None:
    """Words, summaries, permissions and states of each are its own, on one graph and one saver."""
    told = together([lambda number=number: talk(assistant, number) for number in range(MANY)])
    prompts = ["\n".join(message.content for message in prompt.messages) for prompt in model.prompts]
    assert len(prompts) >= MANY
    for prompt in prompts:
        assert len(marks_in(prompt)) == 1, prompt
    assert set.union(*map(marks_in, prompts)) == set(range(MANY))
    for number in range(MANY):
        thread = config_for(f"t{number}")
        kept = repr([told[number], *assistant.saver.list(thread)])
        assert marks_in(kept) == {number}
        assert bool(secrets_in(kept)) is (number % 5 == 0)
        state = state_of(assistant, f"t{number}")
        assert NARRATIVE in state["turn"]["original_question"]


def test_fifty_readers_at_once_get_their_own_answers(place: Home, model: Model) -> None:
    """The same through HTTP: streams, records, rows and windows."""
    many = Home(place.folder, place.redis_url, {"MAX_WORKERS": str(MANY)})
    with many.door(model) as door:

        def ask(number: int) -> Any:
            return door.post(f"{NARRATIVE}（第{number:03}次问）", f"t{number}", client_message_id="same")

        told = together([lambda number=number: ask(number) for number in range(MANY)])
        for number, response in enumerate(told):
            assert endings(events_of(response.text)) == ["done"]
            assert marks_in(response.text) == {number}
        door.wait_idle()
        for number in range(0, MANY, 7):
            assert forms(door, f"t{number}") == ANSWERED
            shown = [door.records(f"t{number}"), rows(door, f"t{number}"), context(door, f"t{number}")]
            assert marks_in(repr(shown)) == {number}


# --- event loops ---


def test_one_graph_serves_threads_and_loops_alike(place: Home, model: Model) -> None:
    """Made where no loop runs, as a module makes it; then called by loops one after the other, by threads,
    and by loops side by side, each of which also calls it synchronously. None waits for another for ever."""
    saver = AsyncRedisContextSaver(ContextConfig(url=place.redis_url))
    with place.assistant(model) as opened:
        graph = build_graph(opened.services, saver, caller_of_context)
        given: Any = {"context": RequestContext(NOBODY), "durability": "sync"}

        def asked(thread: str) -> Any:
            return {"request": {"text": f"{FACT}（{thread}）", "received_at": opened.clock()}}

        def call(thread: str) -> Any:
            return graph.invoke(asked(thread), config_for(thread), **given)

        async def acall(thread: str) -> Any:
            try:
                state = await graph.ainvoke(asked(thread), config_for(thread), **given)
                call(f"{thread}, inside")  # blocks this loop, and comes back
                return state
            finally:
                await saver.aclose()

        def in_a_loop(thread: str) -> Any:
            return asyncio.run(acall(thread))

        def check(threads: list[str], states: list[Any]) -> None:
            for thread, state in zip(threads, states, strict=True):
                assert state["turn"]["original_question"] == f"{FACT}（{thread}）"
                assert state["answer"]["kind"] == "fact"
                assert graph.get_state(config_for(thread)).values["turn"] == state["turn"]

        ways: list[tuple[str, Callable[[str], Any]]] = [("thread", call), ("loop", in_a_loop)]
        check(["first", "second"], [in_a_loop("first"), in_a_loop("second")])
        for name, way in ways:
            threads = [f"{name} {number}" for number in range(8)]
            check(threads, together([partial(way, thread) for thread in threads]))
    saver.close()


async def test_a_loop_that_closes_takes_nothing_from_the_others(redis_url: str) -> None:
    saver = AsyncRedisContextSaver(ContextConfig(url=redis_url))

    async def use_and_close() -> None:
        await saver.aget_tuple(config_for("t"))
        await saver.aclose()

    await saver.aget_tuple(config_for("t"))
    wire = saver.wire  # the sync side, as another loop's threads use it
    await asyncio.to_thread(lambda: asyncio.run(use_and_close()))
    assert saver.wire is wire
    await saver.aclose()
    assert saver.wire is not wire  # the last one closed everything, and it opens anew
    saver.close()


# --- readers beside writers ---


def check_page(found: list[Any], values: Callable[[Any], bool]) -> None:
    ids = [item.config["configurable"]["checkpoint_id"] for item in found]
    assert ids == sorted(set(ids), reverse=True)
    assert all(values(item) for item in found)


def test_listing_beside_writers_shows_whole_checkpoints_in_order(saver: RedisContextSaver) -> None:
    """Writes that come before their checkpoint, checkpoints in any order, and listings all the time."""
    done = threading.Event()
    order = random.Random(3).sample(range(240), 240)

    def write(numbers: list[int]) -> None:
        for number in numbers:
            config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
            at: Any = {"configurable": {**config["configurable"], "checkpoint_id": f"{number:04}"}}
            saver.put_writes(at, [("early", number)], "task")  # before there is a checkpoint of this id
            checkpoint = {**empty_checkpoint(), "id": f"{number:04}"}
            checkpoint["channel_values"] = {"a": number, "b": [number] * 50}
            versions = {"a": f"{number}", "b": f"{number}"}
            checkpoint["channel_versions"] = versions  # type: ignore[typeddict-item]
            saver.put(config, checkpoint, {"step": number}, versions)  # type: ignore[arg-type,typeddict-item]

    def is_whole(item: Any) -> bool:
        number = int(item.checkpoint["id"])
        values = item.checkpoint["channel_values"]
        has_writes = item.pending_writes == [("task", "early", number)]
        return values == {"a": number, "b": [number] * 50} and has_writes

    def read() -> int:
        most = 0
        while not done.is_set():
            for config in (config_for("t"), None):
                found = list(saver.list(config))
                check_page(found, is_whole)
                # What was there once stays there: a listing is never poorer than one before it.
                assert len(found) >= most
                most = len(found)
        return most

    async def aread() -> int:
        most = 0
        async with AsyncRedisContextSaver(saver.config) as reading:
            while not done.is_set():
                found = [item async for item in reading.alist(config_for("t"))]
                check_page(found, is_whole)
                assert len(found) >= most
                most = len(found)
        return most

    def write_all() -> int:
        try:
            together([lambda part=order[at::4]: write(part) for at in range(4)])
        finally:
            done.set()
        return 0

    rounds = together([write_all, read, read, lambda: asyncio.run(aread())])
    assert all(isinstance(most, int) for most in rounds), rounds
    found = list(saver.list(config_for("t")))
    check_page(found, is_whole)
    assert len(found) == 240


def test_a_thread_is_read_by_every_route_while_its_turns_run(place: Home, model: Model) -> None:
    done = threading.Event()
    with place.door(model) as door:
        assert endings(door.ask(FACT)) == ["done"]
        (held,) = door.http.get("/conversations").json()["items"]
        paths = [
            "/api/threads/t/checkpoints?limit=200",
            "/api/threads/t/requests",
            "/api/threads/t/window",
            f"/conversations/{held['id']}/messages?limit=200",
            f"/conversations/{held['id']}/export",
        ]

        def read(path: str) -> list[int]:
            sizes = []
            while not done.is_set():
                response = door.http.get(path)
                assert response.status_code == 200, response.text
                body = response.json()
                items = body.get("items") or body.get("messages") or []
                sizes.append(len(items))
            return sizes

        def ask() -> list[Any]:
            try:
                return [door.ask(text)[-1][1]["status"] for text in (NARRATIVE, FACT) * 4]
            finally:
                done.set()

        told, *sizes = together([ask, *[lambda path=path: read(path) for path in paths]])
        assert told == ["completed"] * 8
        for path, seen in zip(paths, sizes, strict=True):
            assert seen, path
            assert "window" in path or seen == sorted(seen), path
        assert len(rows(door)) == 18
