"""A real server on loopback in a thread of this process, and the two sides of a test around it.

`Script` stands in for the graph where a test needs to hold a run at a certain point or to make it fail;
the leases, the saver, the records and the sockets are the real ones.
"""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import httpx

from api.app import create_app, make_server
from checkpoint import CheckpointUnavailable
from graph.run import StageEvent, TokenEvent, TurnEvent, TurnResult
from graph.settings import Settings

Event = tuple[str, dict[str, Any]]
WAIT_SECONDS = 120.0  # how long anything may take before a test gives up; nothing is asserted about speed


def shanghai_now() -> str:
    return datetime.now(timezone(timedelta(hours=8))).isoformat(timespec="milliseconds")


class Script:
    """A run whose course is in its text: `hold` waits in the middle, `fail` raises, `vanish` just ends."""

    def __init__(self) -> None:
        self.runs: list[dict[str, Any]] = []
        self.reached = threading.Event()
        self.go = threading.Event()
        self._guard = threading.Lock()

    def __call__(
        self, assistant: Any, request: Any, *, thread_id: str, caller: Any, lease: str, control: Any
    ) -> Iterator[TurnEvent]:
        del assistant, caller
        text = request["text"]
        with self._guard:
            self.runs.append({**request, "thread_id": thread_id, "lease": lease, "control": control})
        yield StageEvent("gate", None)
        yield TokenEvent(f"一：{text}")
        if "hold" in text:
            self.reached.set()
            self._wait(control)
        if control.drain_requested:
            yield TurnResult("stopped", "new_question", original_question=text, partial_text=f"一：{text}")
            return
        if "fail" in text:
            raise LookupError(text)
        if "vanish" in text:
            return
        yield TokenEvent("二。")
        yield result_for(text)

    def _wait(self, control: Any) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not (self.go.is_set() or control.drain_requested) and time.monotonic() < deadline:
            time.sleep(0.005)


def result_for(text: str) -> TurnResult:
    citation = {"label": "C1", "document_id": "d1", "version": "1", "title": "办法", "passage": "原文"}
    answer = {"kind": "narrative", "text": f"一：{text}二。", "citations": [citation]}
    return TurnResult(
        "completed",
        "new_question",
        turn_id="t1",
        original_question=text,
        standalone_question=text,
        answer=answer,
    )


def stand_in(saver: Any, *, max_workers: int = 8, on_disconnect: str = "continue", **settings: Any) -> Any:
    """What a door uses of an assistant, around a real saver."""
    return SimpleNamespace(
        saver=saver,
        settings=Settings.model_validate(
            {
                "context": saver.config,
                "max_workers": max_workers,
                "on_disconnect": on_disconnect,
                **settings,
            }
        ),
        services=SimpleNamespace(
            retriever=SimpleNamespace(knowledge_version=lambda: "k1"),
            provider=SimpleNamespace(name="scripted"),
        ),
        graph=SimpleNamespace(get_state=lambda _config: SimpleNamespace(values={}, tasks=())),
        store=SimpleNamespace(source_sets=dict),
        clock=shanghai_now,
        new_id=lambda: str(uuid4()),
    )


class WatchedSaver:
    """The real saver, with a look at each record on its way; `fail_at` makes the store fail there, once."""

    def __init__(self, saver: Any) -> None:
        self._saver = saver
        self.puts: list[tuple[dict[str, Any], str | None]] = []
        self.fail_at: str | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._saver, name)

    def put_request(self, record: dict[str, Any], *, lease: str | None = None) -> None:
        self.puts.append((record, lease))
        if record["status"] == self.fail_at:
            self.fail_at = None
            raise CheckpointUnavailable("put_request", "no answer", "Try again")
        self._saver.put_request(record, lease=lease)


class Door:
    """One running server and a client of it."""

    def __init__(self, app: Any, address: str, server: Any) -> None:
        self.app = app
        self.server = server
        self.address = address
        self.port = int(address.rsplit(":", 1)[1])
        self.http = httpx.Client(base_url=address, timeout=WAIT_SECONDS, trust_env=False)

    @property
    def desk(self) -> Any:
        return self.app.state.desk

    @property
    def house(self) -> Any:
        return self.server._leaving.house

    def post(self, message: str, thread_id: str = "t", **more: Any) -> httpx.Response:
        return self.http.post("/api/chat", json={"thread_id": thread_id, "message": message, **more})

    def ask(self, message: str, thread_id: str = "t", **more: Any) -> list[Event]:
        response = self.post(message, thread_id, **more)
        assert response.status_code == 200, response.text
        return events_of(response.text)

    def records(self, thread_id: str = "t") -> list[dict[str, Any]]:
        response = self.http.get(f"/api/threads/{thread_id}/requests")
        assert response.status_code in (200, 404)
        items: list[dict[str, Any]] = response.json().get("items", [])
        return items

    def send_raw(self, message: str, thread_id: str = "t", **more: Any) -> socket.socket:
        """A request on a socket of its own, so that the test decides how the connection ends."""
        connection = connect(self)
        connection.sendall(chat_request(message, thread_id, **more))
        return connection

    def wait_idle(self) -> None:
        """Until no slot and no lease is held; fails when one is lost."""
        pool, keeper = self.desk.pool, self.app.state.keeper
        until(lambda: pool.busy() == 0 and keeper.held_count() == 0)


def chat_request(message: str, thread_id: str = "t", **more: Any) -> bytes:
    body = json.dumps({"thread_id": thread_id, "message": message, **more}).encode()
    head = (
        "POST /api/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@contextmanager
def open_door(assistant: Any, *, grace_seconds: float = 0.2, **options: Any) -> Iterator[Door]:
    addresses: list[str] = []
    started = threading.Event()

    def announce(address: str) -> None:
        addresses.append(address)
        started.set()

    app = create_app(assistant, grace_seconds=grace_seconds, **options)
    server = make_server(app, "127.0.0.1", 0, grace_seconds=grace_seconds, announce=announce)
    thread = threading.Thread(target=server.run, name="door")
    thread.start()
    try:
        assert started.wait(WAIT_SECONDS)
        door = Door(app, addresses[0], server)
        try:
            yield door
        finally:
            door.http.close()
    finally:
        server.should_exit = True
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive()


def events_of(text: str) -> list[Event]:
    """The events of a whole stream; checks their form as any strict reader would."""
    events: list[Event] = []
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            number, name, data = (line.split(": ", 1)[1] for line in lines)
            assert int(number) == len(events) + 1
            events.append((name, json.loads(data)))
    return events


def endings(events: list[Event]) -> list[str]:
    return [name for name, _ in events if name in ("done", "error")]


def read_until(connection: socket.socket, mark: str) -> str:
    """What arrives until the mark has; raises when the server ends first."""
    seen = b""
    while mark.encode() not in seen:
        piece = connection.recv(65536)
        if not piece:
            raise ConnectionError(f"ended before {mark!r}: {seen!r}")
        seen += piece
    return seen.decode(errors="replace")


def read_rest(connection: socket.socket) -> str:
    """What arrives until the stream ends, which must be with a terminal event; closes the connection."""
    with connection:
        rest = read_until(connection, "0\r\n\r\n")
    assert "event: done" in rest or "event: error" in rest
    return rest


def until(condition: Callable[[], Any], seconds: float = WAIT_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.01)


def connect(door: Door) -> socket.socket:
    return socket.create_connection(("127.0.0.1", door.port), timeout=WAIT_SECONDS)


def what_comes(connection: socket.socket) -> bytes:
    """All that arrives until the server ends the connection, which it must."""
    seen = b""
    with connection, suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            seen += piece
    return seen


def problem_in(seen: bytes) -> dict[str, Any]:
    head, _, body = seen.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head
    assert b"x-request-id: " in head.lower()
    assert b"connection: close" in head.lower()
    problem: dict[str, Any] = json.loads(body)
    return problem


def refuses(port: int) -> bool:
    with socket.socket() as link:
        return link.connect_ex(("127.0.0.1", port)) != 0
