"""Readers that vanish, servers that end, and a store that goes away: nothing stays running, busy or held."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from door import (
    WAIT_SECONDS,
    Door,
    Script,
    endings,
    events_of,
    open_door,
    read_rest,
    read_until,
    stand_in,
    until,
)

from checkpoint import ContextConfig, RedisContextSaver
from checkpoint.embedded import open_embedded


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def door(saver: RedisContextSaver, script: Script) -> Iterator[Door]:
    with open_door(stand_in(saver), run_turn=script) as door:
        yield door
        script.go.set()
        door.wait_idle()


def reset(connection: socket.socket) -> None:
    """End the connection the hard way: the server's next send meets a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.parametrize("mark", ["", "HTTP/1.1 200", "event: created", "event: stage", "event: token"])
@pytest.mark.parametrize("end", [socket.socket.close, reset])
def test_a_reader_that_vanishes_costs_nothing(door: Door, script: Script, mark: str, end: Any) -> None:
    connection = door.send_raw("hold")
    if mark:
        read_until(connection, mark)
    else:
        until(lambda: script.runs)
    end(connection)
    script.go.set()
    until(lambda: [record["status"] for record in door.records()] == ["completed"])
    door.wait_idle()
    assert endings(door.ask("下一个")) == ["done"]


def test_a_reader_that_vanishes_before_the_end_of_its_request_starts_nothing(
    door: Door, script: Script
) -> None:
    with socket.create_connection(("127.0.0.1", door.port)) as connection:
        connection.sendall(
            b"POST /api/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        )
        connection.sendall(b"Content-Length: 100\r\n\r\n" + b'{"thread_id"')
    assert endings(door.ask("好", "other")) == ["done"]
    assert [run["thread_id"] for run in script.runs] == ["other"]


def test_what_a_vanished_reader_asked_can_be_had_again_by_its_id(door: Door, script: Script) -> None:
    connection = door.send_raw("hold", client_message_id="m1")
    read_until(connection, "event: token")
    reset(connection)
    script.go.set()
    assert endings(door.ask("hold", client_message_id="m1")) == ["done"]
    assert len(script.runs) == len(door.records()) == 1


def test_on_disconnect_stop_ends_the_run(saver: RedisContextSaver, script: Script) -> None:
    with open_door(stand_in(saver, on_disconnect="stop"), run_turn=script) as door:
        connection = door.send_raw("hold")
        read_until(connection, "event: token")
        reset(connection)
        until(lambda: [record["status"] for record in door.records()] == ["stopped"])
        door.wait_idle()


def test_a_reader_that_reads_nothing_holds_no_worker(saver: RedisContextSaver) -> None:
    """Far more text than any socket buffers: the worker ends all the same, and the feed stays bounded."""
    from door import result_for

    from api.events import MAX_FEED_BYTES
    from graph.run import TokenEvent

    def flood(*_: Any, **__: Any) -> Iterator[Any]:
        for _number in range(3_000):
            yield TokenEvent("字" * 1_000)
        yield result_for("完")

    with open_door(stand_in(saver), run_turn=flood) as door:
        connection = door.send_raw("很多")
        until(lambda: [record["status"] for record in door.records()] == ["completed"])
        door.wait_idle()
        seen = read_rest(connection)
    assert len(seen.encode()) < 2 * MAX_FEED_BYTES
    assert '"reason":"too_long"' in seen


class TestRedisGoesAway:
    """Told at once, nothing lost but what was under way, and well again by itself."""

    @pytest.fixture
    def home(self, tmp_path: Path) -> Iterator[Path]:
        import shutil
        import tempfile

        home = Path(tempfile.mkdtemp(prefix="ba-"))
        yield home
        shutil.rmtree(home)

    @pytest.fixture
    def server(self, home: Path) -> Iterator[Any]:
        server = open_embedded(home)
        yield server
        _end(server)

    @pytest.fixture
    def own_door(self, server: Any, script: Script) -> Iterator[Door]:
        config = ContextConfig(url=server.url, timeout_seconds=1.0, connect_timeout_seconds=0.5)
        with RedisContextSaver(config) as saver, open_door(stand_in(saver), run_turn=script) as door:
            yield door

    def test_before_a_request(self, own_door: Door, server: Any, home: Path) -> None:
        own_door.ask("好")
        _end(server)
        refused = own_door.post("不在")
        assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
        assert refused.json()["retryable"] is True
        assert int(refused.headers["retry-after"]) >= 1
        for method, path in (("GET", "/api/threads/t/requests"), ("DELETE", "/api/threads/t")):
            assert own_door.http.request(method, path).status_code == 503
        assert own_door.http.get("/health/ready").status_code == 503
        assert own_door.http.get("/health/live").status_code == 200
        own_door.wait_idle()
        again = open_embedded(home)
        assert endings(own_door.ask("回来了")) == ["done"]
        _end(again)

    def test_during_a_request(self, own_door: Door, server: Any, script: Script, home: Path) -> None:
        connection = own_door.send_raw("hold")
        read_until(connection, "event: token")
        _end(server)
        script.go.set()
        seen = read_rest(connection)
        assert "event: error" in seen
        assert '"code":"store_unavailable"' in seen
        assert "event: done" not in seen
        own_door.wait_idle()
        again = open_embedded(home)
        assert endings(own_door.ask("回来了", "other")) == ["done"]
        _end(again)


def _end(server: Any) -> None:
    with redis.Redis.from_url(server.url) as client, suppress(redis.exceptions.ConnectionError):
        client.shutdown(nosave=True)
    server.close()


SERVER = textwrap.dedent("""
    import json, sys
    from api.app import create_app, make_server
    from checkpoint import ContextConfig, RedisContextSaver
    from door import Script, stand_in

    with RedisContextSaver(ContextConfig(url=sys.argv[1])) as saver:
        assistant = stand_in(saver, **json.loads(sys.argv[2]))
        app = create_app(assistant, run_turn=Script(), grace_seconds=1, lease_ms=1500)
        make_server(app, "127.0.0.1", 0, grace_seconds=1, announce=lambda at: print(at, flush=True)).run()
    print("closed in order", flush=True)
""")


class Process:
    """The same door in a process of its own."""

    def __init__(self, redis_url: str, **settings: Any) -> None:
        path = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[2])])
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, redis_url, json.dumps(settings)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert self.process.stdout
        self.address = self.process.stdout.readline().strip()
        self.http = httpx.Client(base_url=self.address, timeout=WAIT_SECONDS, trust_env=False)

    def hold(self, thread_id: str = "t") -> tuple[threading.Thread, list[str]]:
        """Start a request that does not end by itself; its stream's text arrives in the list."""
        seen: list[str] = []
        begun = threading.Event()

        def read() -> None:
            body = {"thread_id": thread_id, "message": "hold"}
            try:
                with self.http.stream("POST", "/api/chat", json=body) as response:
                    for piece in response.iter_text():
                        seen.append(piece)
                        if "event: token" in piece:
                            begun.set()
            except httpx.TransportError:
                seen.append("(lost)")

        thread = threading.Thread(target=read)
        thread.start()
        assert begun.wait(WAIT_SECONDS)
        return thread, seen

    def end(self, number: int) -> str:
        self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=WAIT_SECONDS)
        self.http.close()
        return rest


@pytest.fixture
def process(redis_url: str) -> Iterator[Process]:
    process = Process(redis_url)
    yield process
    process.process.kill()
    process.process.communicate()
    process.http.close()


def test_a_signal_drains_records_and_closes_in_order(process: Process, saver: RedisContextSaver) -> None:
    reading, seen = process.hold()
    rest = process.end(signal.SIGTERM)
    reading.join(WAIT_SECONDS)
    assert rest.strip().endswith("closed in order")
    assert process.process.returncode == 0
    assert endings(events_of("".join(seen))) == ["done"]
    (record,) = saver.list_requests("t")
    assert (record["status"], record["error_code"]) == ("stopped", None)


def test_a_draining_server_takes_nothing_new(door: Door, script: Script) -> None:
    connection = door.send_raw("hold")
    read_until(connection, "event: token")
    door.desk.drain()
    refused = door.post("新的", "other")
    assert (refused.status_code, refused.json()["code"]) == (503, "shutting_down")
    script.go.set()
    assert '"status":"completed"' in read_rest(connection)


def test_a_server_told_to_end_drains_while_its_runs_go_on(saver: RedisContextSaver, script: Script) -> None:
    with open_door(stand_in(saver), run_turn=script, grace_seconds=WAIT_SECONDS) as door:
        connection = door.send_raw("hold")
        read_until(connection, "event: token")
        door.server.should_exit = True
        until(lambda: door.desk._draining)
        assert len(door.desk._runs.active()) == 1
        script.go.set()
        assert '"status":"completed"' in read_rest(connection)


def test_a_killed_process_blocks_its_thread_only_until_the_lease_lapses(
    process: Process, door: Door, saver: RedisContextSaver
) -> None:
    reading, _ = process.hold()
    assert door.post("忙").status_code == 409
    process.end(signal.SIGKILL)
    reading.join(WAIT_SECONDS)
    until(lambda: door.post("好").status_code == 200)
    assert [record["status"] for record in saver.list_requests("t")] == ["running", "completed"]
    with open_door(stand_in(saver), run_turn=Script()):  # a sweep comes with every start
        until(lambda: saver.list_requests("t")[0]["status"] == "incomplete")


def test_a_process_that_slept_past_its_lease_can_store_nothing_more(
    process: Process, door: Door, saver: RedisContextSaver
) -> None:
    reading, seen = process.hold()
    process.process.send_signal(signal.SIGSTOP)
    until(lambda: door.post("好").status_code == 200)
    process.process.send_signal(signal.SIGCONT)
    reading.join(WAIT_SECONDS)
    events = events_of("".join(seen))
    assert endings(events) == ["error"]
    assert events[-1][1]["code"] == "lease_lost"
    assert [record["status"] for record in saver.list_requests("t")] == ["running", "completed"]
