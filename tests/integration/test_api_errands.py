"""Runs without a record end when they take too long and when the server does: once, retryable."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog
from contract_sender import COMPLETE, KNEE, contract
from door import WAIT_SECONDS, Door, Script, endings, events_of, open_door, until
from langgraph.runtime import RunControl
from processes import NARRATIVE

from api.errands import Errands
from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.store import open_store
from graph.compose import open_assistant
from graph.settings import Settings

ASKED = {"question": NARRATIVE}
STATED = contract("膝盖下坠感可能是什么原因？", COMPLETE, knowledge=[KNEE])
ROUTES = [
    pytest.param("/v1/ask", ASKED, id="ask"),
    pytest.param("/v1/ask/stream", ASKED, id="ask stream"),
    pytest.param("/v1/context/turns", STATED, id="contract"),
    pytest.param("/v1/context/turns/stream", STATED, id="contract stream"),
]


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The model waits in the middle of its answer until this file exists."""
    monkeypatch.setenv("GATE", str(tmp_path / "gate"))
    return tmp_path / "gate"


@contextmanager
def slow_door(settings: Settings, **more: Any) -> Iterator[Door]:
    changed = settings.model_copy(update={"model": "gated_provider:make", **more})
    with open_assistant(changed) as assistant, open_door(assistant) as door:
        yield door


def problem_of(door: Door, route: str, body: dict[str, Any]) -> dict[str, Any]:
    """The problem that the request ends with, in its body or as its only terminal event."""
    response = door.http.post(route, json=body)
    if response.status_code == 200:
        events = events_of(response.text)
        assert endings(events) == ["error"]
        return events[-1][1]
    assert response.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = response.json()
    assert problem["status"] == response.status_code
    return problem


@pytest.mark.usefixtures("gate")
@pytest.mark.parametrize(("route", "body"), ROUTES)
def test_one_that_takes_too_long_ends_retryable(settings: Settings, route: str, body: dict[str, Any]) -> None:
    with structlog.testing.capture_logs() as logs, slow_door(settings, run_timeout_seconds=0.5) as door:
        problem = problem_of(door, route, body)
        assert (problem["status"], problem["code"]) == (500, "processing_failed")
        assert problem["retryable"] is True
        assert problem["detail"].startswith("It took longer than it may; ")
        assert problem["instance"] == route
        until(lambda: door.desk.pool.busy() == 0)
        assert door.desk.errands.count() == 0
    causes = [line["cause"] for line in logs if line["event"] in ("ask_ended", "contract_ended")]
    assert causes == ["timeout"]


@pytest.mark.parametrize(("route", "body"), ROUTES)
def test_one_within_its_time_is_answered(
    settings: Settings, gate: Path, route: str, body: dict[str, Any]
) -> None:
    gate.touch()
    with slow_door(settings) as door:
        response = door.http.post(route, json=body)
        assert response.status_code == 200
        assert "event: error" not in response.text
        until(lambda: door.desk.errands.count() == 0)


@pytest.mark.usefixtures("gate")
@pytest.mark.parametrize(("route", "body"), ROUTES)
def test_the_end_of_the_server_ends_it(settings: Settings, route: str, body: dict[str, Any]) -> None:
    """The reader is told by a terminal event, or by a whole response."""
    told: Future[dict[str, Any]] = Future()
    with slow_door(settings) as door:
        reader = threading.Thread(target=lambda: told.set_result(problem_of(door, route, body)))
        reader.start()
        until(lambda: door.desk.errands.count() == 1)
        door.server.should_exit = True
        problem = told.result(WAIT_SECONDS)
        reader.join()
    assert (problem["code"], problem["retryable"]) == ("processing_failed", True)


@pytest.mark.usefixtures("gate")
@pytest.mark.parametrize(("route", "body"), ROUTES)
def test_one_that_nobody_waits_for_ends(settings: Settings, route: str, body: dict[str, Any]) -> None:
    with structlog.testing.capture_logs() as logs, slow_door(settings) as door:
        connection = send(door, route, body)
        until(lambda: door.desk.errands.count() == 1)
        connection.close()
        until(lambda: door.desk.errands.count() == 0)
        until(lambda: door.desk.pool.busy() == 0)
    causes = [line["cause"] for line in logs if line["event"] in ("ask_ended", "contract_ended")]
    assert causes == ["disconnect"]
    assert not [line for line in logs if line["event"].endswith("_fault")]


@pytest.mark.parametrize(("on_disconnect", "status"), [("stop", "stopped"), ("continue", "completed")])
def test_an_answer_in_one_piece_is_read_like_a_stream(
    settings: Settings, new_database: Callable[..., StoreConfig], on_disconnect: str, status: str
) -> None:
    script = Script()
    with (
        open_assistant(settings.model_copy(update={"on_disconnect": on_disconnect})) as assistant,
        open_store(new_database("sqlite")) as store,
        open_door(assistant, run_turn=script, store=store) as door,
    ):
        identity = door.http.post("/conversations", json={"externalId": "t"}).json()["id"]
        connection = send(door, f"/conversations/{identity}/messages", {"question": "hold"})
        assert script.reached.wait(WAIT_SECONDS)
        (run,) = door.desk._runs.active()
        connection.close()
        until(lambda: run.abandoned is not None)
        if on_disconnect == "continue":
            script.go.set()
        until(lambda: [record["status"] for record in door.records()] == [status])
        door.wait_idle()


def send(door: Door, route: str, body: dict[str, Any]) -> socket.socket:
    content = json.dumps(body).encode()
    connection = socket.create_connection(("127.0.0.1", door.port))
    head = f"POST {route} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
    return connection


def in_a_loop(check: Callable[[Errands, RunControl, "Future[None]"], None], seconds: float) -> None:
    async def main() -> None:
        check(Errands(seconds), RunControl(), Future())

    asyncio.run(main())


def test_what_begins_after_the_end_began_ends_too() -> None:
    def check(errands: Errands, control: RunControl, ended: "Future[None]") -> None:
        errands.interrupt_all("shutdown")
        errands.begin(control, ended, lambda: None)
        assert control.drain_reason == "shutdown"

    in_a_loop(check, 60)


def test_the_first_reason_stays() -> None:
    def check(errands: Errands, control: RunControl, ended: "Future[None]") -> None:
        errands.begin(control, ended, lambda: None)
        control.request_drain("disconnect")
        errands.interrupt_all("shutdown")
        assert control.drain_reason == "disconnect"

    in_a_loop(check, 60)


def test_one_that_ended_is_forgotten() -> None:
    def check(errands: Errands, control: RunControl, ended: "Future[None]") -> None:
        errands.begin(control, ended, lambda: None)
        ended.set_result(None)
        assert errands.count() == 0
        errands.interrupt_all("shutdown")
        assert not control.drain_requested

    in_a_loop(check, 60)
