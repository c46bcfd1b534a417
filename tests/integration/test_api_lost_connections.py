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


@pytest.mark.parametrize("index", range(1, 7))
@pytest.mark.parametrize("end", [socket.socket.close, reset])
def test_a_connection_that_ends_at_any_event_loses_nothing(
    saver: RedisContextSaver, redis_client: Any, index: int, end: Any
) -> None:
    """created, stage, token, token, citations, done: the reader goes with the byte that ends each."""
    with open_door(stand_in(saver), run_turn=Script()) as door:
        for number in range(3):
            connection = door.send_raw("好", f"t{number}")
            read_until(connection, f"id: {index}\n")
            end(connection)
        for number in range(3):
            until(lambda name=f"t{number}": [row["status"] for row in door.records(name)] == ["completed"])
        door.wait_idle()
        assert redis_client.keys("business-assistant:lease:*") == []
        assert all(not run.feed._listeners for run in door.desk._runs._runs.values())
        assert endings(door.ask("下一个", "t0")) == ["done"]
        assert door.app.state.metrics.value("turns_running") == 0


HEAD = b"POST /api/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize("sent", [b"", b"P", HEAD, HEAD + b"Content-Length: 40\r\n\r\n", HEAD + b"\x00"])
@pytest.mark.parametrize("end", [socket.socket.close, reset])
def test_a_connection_that_ends_before_its_request_does_starts_nothing(
    door: Door, script: Script, redis_client: Any, sent: bytes, end: Any
) -> None:
    for _ in range(10):
        connection = socket.create_connection(("127.0.0.1", door.port))
        connection.sendall(sent)
        end(connection)
    assert endings(door.ask("好", "other")) == ["done"]
    assert [run["thread_id"] for run in script.runs] == ["other"]
    until(lambda: door.app.state.metrics.value("http_requests_running") == 0)
    assert door.desk.pool.busy() == 0


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


class TestTimes:
    """What the settings of times do."""

    def test_a_run_that_takes_too_long_is_ended(self, saver: RedisContextSaver, script: Script) -> None:
        with open_door(stand_in(saver, run_timeout_seconds=0.2), run_turn=script) as door:
            assert door.ask("hold")[-1][1]["status"] == "stopped"
            assert script.runs[0]["control"].drain_reason == "timeout"
            door.wait_idle()
            assert endings(door.ask("下一个")) == ["done"]

    def test_a_run_that_nobody_reads_goes_on_for_the_grace_and_no_longer(
        self, saver: RedisContextSaver, script: Script
    ) -> None:
        with open_door(stand_in(saver, detach_seconds=0.2), run_turn=script) as door:
            connection = door.send_raw("hold")
            read_until(connection, "event: token")
            reset(connection)
            until(lambda: [record["status"] for record in door.records()] == ["stopped"])
            assert script.runs[0]["control"].drain_reason == "disconnect"
            door.wait_idle()

    def test_within_the_grace_it_goes_on(self, door: Door, script: Script) -> None:
        connection = door.send_raw("hold")
        read_until(connection, "event: token")
        reset(connection)
        until(lambda: door.desk._runs.active()[0].abandoned is not None)
        door.desk._runs.active()[0].check_time(door.desk._patience)
        assert not script.runs[0]["control"].drain_requested
        script.go.set()
        until(lambda: [record["status"] for record in door.records()] == ["completed"])

    def test_a_silent_stream_is_kept_alive(self, saver: RedisContextSaver, script: Script) -> None:
        with open_door(stand_in(saver, heartbeat_seconds=0.05), run_turn=script) as door:
            connection = door.send_raw("hold")
            read_until(connection, "event: token")
            read_until(connection, ": still here\n\n")
            script.go.set()
            read_rest(connection)

    def test_a_lease_lasts_as_set(self, saver: RedisContextSaver, script: Script, redis_client: Any) -> None:
        with open_door(stand_in(saver, lease_seconds=70), run_turn=script) as door:
            connection = door.send_raw("hold")
            read_until(connection, "event: token")
            (key,) = redis_client.keys("business-assistant:lease:*")
            assert 15_000 < redis_client.pttl(key) <= 70_000
            script.go.set()
            read_rest(connection)

    def test_a_drain_lasts_as_set(self, saver: RedisContextSaver) -> None:
        from api.app import create_app, make_server

        app = create_app(stand_in(saver, drain_seconds=3.5))
        server = make_server(app, "127.0.0.1", 0)
        assert (app.state.grace_seconds, server._grace_seconds) == (3.5, 3.5)
        assert server.config.timeout_graceful_shutdown >= 7
        app.state.desk.close(0)


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
        config = ContextConfig(url=server.url, timeout_seconds=10)
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

    def test_with_everything_under_way(self, server: Any, script: Script, home: Path) -> None:
        """Runs, readers and repeated sends meet a server that is gone; all end, and all is well again."""
        config = ContextConfig(url=server.url, timeout_seconds=10)
        with (
            RedisContextSaver(config) as saver,
            open_door(stand_in(saver, max_workers=4), run_turn=script, lease_ms=600_000) as door,
        ):
            streams = [door.send_raw("hold", f"t{number}", client_message_id="m") for number in range(4)]
            for stream in streams:
                read_until(stream, "event: token")
            _end(server)
            # The pool is full, so these look up what was sent before, and are refused at once.
            for number in range(4):
                refused = door.post("hold", f"t{number}", client_message_id="m")
                assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
                assert refused.headers["retry-after"] == "2"
            script.go.set()
            for stream in streams:
                assert '"code":"store_unavailable"' in read_rest(stream)
            door.wait_idle()
            for _ in range(3):
                for path in ("/api/chat", "/api/chat/stop"):
                    body = (
                        {"thread_id": "t", "message": "不在"} if path == "/api/chat" else {"thread_id": "t"}
                    )
                    assert door.http.post(path, json=body).status_code == 503
                door.wait_idle()
            again = open_embedded(home)
            # A thread that nothing ran in is answered at once; the others as soon as their leases, which
            # could not be given back while it was away and would last for ten minutes, are.
            assert endings(door.ask("回来了")) == ["done"]
            for number in range(4):
                sent = {"thread_id": f"t{number}", "client_message_id": "m"}
                until(lambda sent=sent: endings(door.ask("hold", **sent)) == ["done"])
            door.wait_idle()
            assert [row["status"] for row in door.records("t0")] == ["completed"]
            _end(again)


class TestRedisHangs:
    """It takes the connection and says nothing: worse than one that is gone."""

    def test_each_wait_is_bounded_and_the_first_request_after_it_is_answered(
        self, proxy: Any, script: Script
    ) -> None:
        config = ContextConfig(url=proxy.url, timeout_seconds=2, connect_timeout_seconds=2)
        with RedisContextSaver(config) as saver, open_door(stand_in(saver), run_turn=script) as door:
            door.ask("好")
            proxy.hold.set()
            refused = door.post("不在", client_message_id="m1")
            assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
            assert door.http.get("/health/ready").status_code == 503
            assert door.http.get("/health/live").status_code == 200
            door.wait_idle()
            proxy.hold.clear()
            until(lambda: door.post("在", "another").status_code == 200)
            door.wait_idle()


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
        app = create_app(assistant, run_turn=Script(), grace_seconds=1, lease_ms=6000)
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
