"""Every stream ends with one terminal event, also where what it waits for ends elsewhere or never."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from door import (
    WAIT_SECONDS,
    Door,
    Script,
    endings,
    events_of,
    open_door,
    read_rest,
    read_until,
    result_for,
    stand_in,
    until,
)
from langgraph.runtime import RunControl

from api.errands import Errands
from checkpoint import RedisContextSaver
from graph.run import TokenEvent, TurnEvent


def follow(door: Door, request_id: str) -> Any:
    link = f"/api/chat/{request_id}/events?thread_id=t"
    return door.http.stream("GET", link)


def repeat(door: Door, _request_id: str) -> Any:
    return door.http.stream(
        "POST", "/api/chat", json={"thread_id": "t", "message": "hold", "client_message_id": "m"}
    )


@pytest.mark.parametrize("come_back", [follow, repeat])
def test_who_follows_a_run_of_another_process_is_told_when_this_one_ends(
    saver: RedisContextSaver, come_back: Any
) -> None:
    script = Script()
    with open_door(stand_in(saver), run_turn=script) as working:
        connection = working.send_raw("hold", client_message_id="m")
        read_until(connection, "event: token")
        (record,) = working.records()
        with open_door(stand_in(saver), run_turn=script) as leaving:
            with come_back(leaving, record["request_id"]) as stream:
                until(lambda: len(leaving.desk._followed) == 1)
                leaving.server.should_exit = True
                told = "".join(stream.iter_text())
            assert told.count("event: error") == 1
            assert '"code":"shutting_down"' in told
            assert "event: done" not in told
        script.go.set()
        assert '"status":"completed"' in read_rest(connection)


def test_who_follows_until_the_end_is_told_the_end(saver: RedisContextSaver) -> None:
    script = Script()
    with open_door(stand_in(saver), run_turn=script) as working:
        connection = working.send_raw("hold", client_message_id="m")
        read_until(connection, "event: token")
        with open_door(stand_in(saver), run_turn=script) as other, repeat(other, "") as stream:
            until(lambda: len(other.desk._followed) == 1)
            script.go.set()
            assert endings(events_of("".join(stream.iter_text()))) == ["done"]
            until(lambda: other.desk._followed == {})
        read_rest(connection)


class Deaf:
    """A run that hears no interruption, as one that hangs in a model's silence."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def __call__(self, _assistant: Any, request: Any, **_: Any) -> Iterator[TurnEvent]:
        yield TokenEvent("一。")
        self.go.wait(WAIT_SECONDS)
        yield result_for(request["text"])


def test_a_run_that_hears_nothing_is_given_up_and_its_reader_told(
    saver: RedisContextSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.app.MOMENT_SECONDS", 0.5)
    deaf = Deaf()
    with open_door(stand_in(saver), run_turn=deaf) as door:
        connection = door.send_raw("问")
        read_until(connection, "event: token")
        door.server.should_exit = True
        told = read_rest(connection)
        assert told.count("event: error") == 1
        assert '"code":"shutting_down"' in told
        deaf.go.set()
        until(lambda: door.desk.pool.busy() == 0)


def test_errands_that_hear_nothing_are_given_up() -> None:
    told: list[str] = []

    async def main() -> None:
        errands, over, left = Errands(60), Future[None](), Future[None]()
        errands.begin(RunControl(), over, lambda: told.append("over"))
        errands.begin(RunControl(), left, lambda: told.append("left"))
        over.set_result(None)
        errands.give_up()

    asyncio.run(main())
    assert told == ["left"]


def test_a_reader_that_comes_back_by_its_message_id_is_a_reader(saver: RedisContextSaver) -> None:
    """The time that a run goes on without one begins anew when it leaves again."""
    script = Script()
    with open_door(stand_in(saver, detach_seconds=60), run_turn=script) as door:
        first = door.send_raw("hold", client_message_id="m")
        read_until(first, "event: token")
        first.close()
        (run,) = door.desk._runs.active()
        until(lambda: run.abandoned is not None)
        second = door.send_raw("hold", client_message_id="m")
        read_until(second, "event: token")
        assert run.abandoned is None
        script.go.set()
        assert '"status":"completed"' in read_rest(second)
