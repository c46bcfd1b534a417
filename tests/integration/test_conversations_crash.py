"""A process that dies at each point between SQL and Redis: one answer a request, whoever looks how often."""

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from door import open_door

from api.turnlog import TurnLog
from api.turns import Desk
from checkpoint import RedisContextSaver
from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.store import ConversationStore, open_store
from checkpoint.conversations.usual import Taking
from graph.compose import open_assistant
from graph.settings import load_settings

FACT = "云帆科技2023年的营业收入是多少？"


def die(*_args: Any, **_more: Any) -> None:
    os._exit(9)


def dying(work: Callable[..., Any], when: str) -> Callable[..., Any]:
    def instead(*args: Any, **more: Any) -> Any:
        if when == "before":
            die()
        work(*args, **more)
        return die()

    return instead


ANSWER = 3  # of the saves: by its name the conversation is not found, then it is begun

# Where the process dies: which method, at which of its calls, before or after it has done its work.
POINTS = {
    "before the question is saved": (ConversationStore, "save_question", 1, "before"),
    "after the question is saved": (ConversationStore, "save_question", 1, "after"),
    "after the running record": (RedisContextSaver, "put_request", 1, "after"),
    "after the answer is in the thread": (Desk, "_answer", 1, "after"),
    "after the final record": (RedisContextSaver, "put_request", 2, "after"),
    "while the answer is on its way": (Taking, "begin", 1, "after"),
    "after the answer is saved": (Taking, "end", ANSWER, "after"),
    "after both, before the reader is told": (TurnLog, "ended", 1, "before"),
}


def run_until_death(env: dict[str, str], config: StoreConfig, point: str) -> None:
    kind, name, number, when = POINTS[point]
    work, calls = getattr(kind, name), [0]

    def counted(*args: Any, **more: Any) -> Any:
        calls[0] += 1
        return (dying(work, when) if calls[0] == number else work)(*args, **more)

    setattr(kind, name, counted)
    with (
        open_store(config) as store,
        open_assistant(load_settings(env)) as assistant,
        open_door(assistant, store=store) as door,
    ):
        door.post(FACT, client_message_id="m1")
    os._exit(1)  # it should have died before


@pytest.fixture
def env(home: Path, redis_url: str) -> dict[str, str]:
    return {"BUSINESS_ASSISTANT_HOME": str(home), "REDIS_URL": redis_url}


def crash(env: dict[str, str], config: StoreConfig, point: str) -> None:
    with open_store(config):
        pass
    child = multiprocessing.get_context("spawn").Process(target=run_until_death, args=(env, config, point))
    child.start()
    child.join(300)
    assert child.exitcode == 9
    with redis.Redis.from_url(env["REDIS_URL"]) as client:
        (lease,) = client.keys("business-assistant:lease:*")
        client.delete(lease)  # as if its time had passed


def rows_of(door: Any) -> list[tuple[str, str, str]]:
    listed = door.http.get("/conversations").json()["items"]
    if not listed:
        return []
    found = door.http.get(f"/conversations/{listed[0]['id']}/messages").json()["items"]
    return [(row["role"], row["status"], row["id"]) for row in found]


ANSWERED = [("USER", "COMPLETE"), ("ASSISTANT", "COMPLETE")]
# What the next read finds, without anybody sending anything.
FOUND = {
    "before the question is saved": [],
    "after the question is saved": [("USER", "FAILED")],
    "after the running record": [("USER", "FAILED")],
    "after the answer is in the thread": ANSWERED,
    "after the final record": ANSWERED,
    "while the answer is on its way": ANSWERED,
    "after the answer is saved": ANSWERED,
    "after both, before the reader is told": ANSWERED,
}


def check_crash(env: dict[str, str], config: StoreConfig, point: str) -> None:
    crash(env, config, point)
    with (
        open_store(config) as store,
        open_assistant(load_settings(env)) as assistant,
        open_door(assistant, store=store) as door,
    ):
        first = rows_of(door)
        assert [row[:2] for row in first] == FOUND[point]
        assert rows_of(door) == first  # looking again changes nothing
        done = door.ask(FACT, client_message_id="m1")[-1][1]
        assert done["status"] == "completed"
        again = door.ask(FACT, client_message_id="m1")[-1][1]
        rows = rows_of(door)
        assert [row[:2] for row in rows] == ANSWERED
        for told in (done, again):
            assert [row[2] for row in rows] == [told["user_message_id"], told["assistant_message_id"]]
        assert [record["status"] for record in door.records()] == ["completed"]
        window = door.http.get("/api/threads/t/window").json()
        assert [m["content"] for m in window["messages"] if m["role"] == "user"] == [FACT]


@pytest.mark.parametrize("point", POINTS)
def test_one_answer_after_a_crash(
    env: dict[str, str], new_database: Callable[..., StoreConfig], point: str
) -> None:
    check_crash(env, new_database("sqlite"), point)


# A server has the answer before the final record is in Redis, or does not have it when the process dies.
ON_A_SERVER = [
    "after the answer is in the thread",
    "while the answer is on its way",
    "after the final record",
]


@pytest.mark.parametrize("point", ON_A_SERVER)
def test_one_answer_after_a_crash_with_postgresql(
    env: dict[str, str], new_database: Callable[..., StoreConfig], point: str
) -> None:
    check_crash(env, new_database("postgresql"), point)
