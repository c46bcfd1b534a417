"""Every stream ends with one terminal event, also where what it waits for ends elsewhere or never."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import pytest
from door import (
    WAIT_SECONDS,
    Door,
    Script,
    chat_request,
    connect,
    endings,
    events_of,
    open_door,
    problem_in,
    read_rest,
    read_until,
    refuses,
    result_for,
    stand_in,
    until,
    what_comes,
)
from langgraph.runtime import RunControl

from api.app import create_app, make_server
from api.connections import SETTLE_SECONDS
from api.errands import Errands
from checkpoint import RedisContextSaver
from graph.run import TokenEvent, TurnEvent

PATIENCE = 3 * WAIT_SECONDS
HOST = b"Host: 127.0.0.1\r\n"
ALIVE = b"GET /health/live HTTP/1.1\r\n" + HOST + b"\r\n"
HALF_A_BODY = (
    b"POST /api/chat HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\nContent-Length: 50\r\n\r\n"
    b'{"thread_id": "t", "mess'
)


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


def test_a_run_that_hears_nothing_is_given_up_and_its_reader_told(saver: RedisContextSaver) -> None:
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


class TestLastCall:
    """A server that leaves is no reset to whoever it has let in."""

    @pytest.fixture
    def patient(
        self, saver: RedisContextSaver, monkeypatch: pytest.MonkeyPatch, below: Any
    ) -> Iterator[Door]:
        """One whose last call lasts for longer than a test waits."""
        monkeypatch.setattr("api.app.LAST_CALL_SECONDS", PATIENCE)
        with open_door(
            stand_in(saver, idle_seconds=PATIENCE), run_turn=Script(), grace_seconds=PATIENCE
        ) as door:
            yield door

    @pytest.fixture
    def hasty(self, saver: RedisContextSaver, monkeypatch: pytest.MonkeyPatch, below: Any) -> Iterator[Door]:
        """One whose grace ends its last call."""
        monkeypatch.setattr("api.app.LAST_CALL_SECONDS", PATIENCE)
        with open_door(stand_in(saver, idle_seconds=PATIENCE), run_turn=Script(), grace_seconds=0.3) as door:
            yield door

    def leave(self, door: Door) -> None:
        """Until it has looked at its connections, and waited for what had come to the silent ones."""
        door.server.should_exit = True
        until(lambda: refuses(door.port))
        time.sleep(3 * SETTLE_SECONDS)

    def test_who_has_said_nothing_yet_is_answered(self, patient: Door) -> None:
        asking = connect(patient)
        until(lambda: patient.house.silent)
        self.leave(patient)
        asking.sendall(ALIVE)
        seen = what_comes(asking)
        assert seen.startswith(b"HTTP/1.1 200 ")
        assert b"connection: close" in seen.lower()

    def test_a_turn_that_comes_now_is_taken(self, patient: Door) -> None:
        asking = connect(patient)
        until(lambda: patient.house.silent)
        self.leave(patient)
        asking.sendall(chat_request("好"))
        assert '"status":"completed"' in read_rest(asking)

    def test_what_comes_while_it_settles_is_answered(
        self, hasty: Door, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On a connection that was answered before, which may be used again until its end is known."""
        monkeypatch.setattr("api.connections.SETTLE_SECONDS", WAIT_SECONDS)
        asking = connect(hasty)
        asking.sendall(ALIVE)
        read_until(asking, '{"status":"ok"}')
        hasty.server.should_exit = True
        until(lambda: refuses(hasty.port))
        asking.sendall(ALIVE)
        seen = what_comes(asking)
        assert seen.startswith(b"HTTP/1.1 200 ")
        assert b"connection: close" in seen.lower()

    def test_who_was_answered_and_says_nothing_more_is_not_waited_for(self, patient: Door) -> None:
        asked = connect(patient)
        asked.sendall(ALIVE)
        read_until(asked, '{"status":"ok"}')
        patient.server.should_exit = True
        assert what_comes(asked) == b""
        until(lambda: patient.desk._draining)  # the server has ended

    def test_who_has_been_silent_for_long_is_not_waited_for(self, patient: Door) -> None:
        silent = connect(patient)
        until(lambda: patient.house.silent)
        (connection,) = patient.house.silent
        connection._since -= PATIENCE
        patient.server.should_exit = True
        assert what_comes(silent) == b""

    def test_half_a_head_is_told_to_come_again(self, hasty: Door) -> None:
        asking = connect(hasty)
        asking.sendall(ALIVE[:20])
        until(lambda: any(each._head_bytes for each in list(hasty.house.silent)))
        hasty.server.should_exit = True
        assert problem_in(what_comes(asking))["code"] == "shutting_down"

    def test_the_rest_of_a_head_may_still_come(self, patient: Door) -> None:
        asking = connect(patient)
        asking.sendall(ALIVE)
        read_until(asking, '{"status":"ok"}')
        asking.sendall(ALIVE[:20])
        until(lambda: any(each._head_bytes for each in list(patient.house.silent)))
        self.leave(patient)
        asking.sendall(ALIVE[20:])
        assert what_comes(asking).startswith(b"HTTP/1.1 200 ")

    def test_half_a_body_is_told_to_come_again(self, hasty: Door, saver: RedisContextSaver) -> None:
        """Long before the time that a body has: nothing of it was stored, and it holds nothing up."""
        asking = connect(hasty)
        asking.sendall(HALF_A_BODY)
        until(lambda: hasty.app.state.arrivals._awaited)
        hasty.server.should_exit = True
        seen = what_comes(asking)
        problem = problem_in(seen)
        assert (problem["status"], problem["code"], problem["retryable"]) == (503, "shutting_down", True)
        assert b"retry-after: 5" in seen.lower()
        assert saver.list_requests("t") == []

    def test_a_body_that_begins_to_come_now_is_waited_for_no_longer(self, patient: Door) -> None:
        asking = connect(patient)
        until(lambda: patient.house.silent)
        self.leave(patient)
        assert patient.app.state.arrivals._last
        patient.app.state.arrivals._last = 0.0  # as if the time for the last of them were over
        asking.sendall(HALF_A_BODY)
        assert problem_in(what_comes(asking))["code"] == "shutting_down"

    def test_the_rest_of_a_body_may_still_come(self, patient: Door) -> None:
        request = chat_request("好")
        asking = connect(patient)
        asking.sendall(request[:-5])
        until(lambda: patient.app.state.arrivals._awaited)
        self.leave(patient)
        asking.sendall(request[-5:])
        assert '"status":"completed"' in read_rest(asking)

    def test_a_connection_made_at_the_last_is_not_forgotten(self, hasty: Door) -> None:
        """Nobody would tell it to end, and the server would wait for it."""
        hasty.house.last_call = 0.0
        assert what_comes(connect(hasty)) == b""


def loop_factories() -> list[Any]:
    found: list[Any] = [asyncio.new_event_loop]
    with suppress(ImportError):
        import uvloop

        found.append(uvloop.new_event_loop)
    return found


@pytest.mark.parametrize("new_loop", loop_factories(), ids=lambda each: each.__module__)
def test_who_waits_to_be_accepted_is_answered(saver: RedisContextSaver, new_loop: Any) -> None:
    """Connected, and not yet seen by the loop, in the moment in which the server begins to leave."""
    app = create_app(stand_in(saver), run_turn=Script(), grace_seconds=WAIT_SECONDS)
    server = make_server(app, "127.0.0.1", 0, announce=lambda _address: None)

    async def main() -> list[bytes]:
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        await server.startup()
        port = server.servers[0].sockets[0].getsockname()[1]
        asking = [socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS) for _ in range(5)]
        for connection in asking:
            connection.sendall(ALIVE)
        leaving = asyncio.create_task(server.shutdown())
        seen = [await asyncio.to_thread(what_comes, connection) for connection in asking]
        await leaving
        return seen

    with asyncio.Runner(loop_factory=new_loop) as runner:
        seen = runner.run(main())
    assert [each[:13] for each in seen] == [b"HTTP/1.1 200 "] * 5
