"""Connections that say nothing, too little or no HTTP: they end, and hold up nobody."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
import pytest
from door import (
    WAIT_SECONDS,
    Door,
    Script,
    chat_request,
    connect,
    endings,
    open_door,
    problem_in,
    read_rest,
    read_until,
    stand_in,
    until,
    what_comes,
)

from api.connections import MAX_HEAD_BYTES, House, allow_files, places_for
from checkpoint import RedisContextSaver

HEAD = b"POST /api/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@contextmanager
def serving(saver: Any, script: Any = None, **settings: Any) -> Iterator[Door]:
    with open_door(stand_in(saver, **settings), run_turn=script or Script()) as door:
        yield door
        door.wait_idle()


def ended(door: Door, reason: str) -> float:
    count: float = door.app.state.metrics.value("connections_ended", reason)
    return count


def test_a_connection_that_says_nothing_ends(saver: RedisContextSaver, below: Any) -> None:
    with serving(saver, idle_seconds=0.2) as door:
        assert what_comes(connect(door)) == b""
        assert ended(door, "silent") == 1


def in_time(attempt: Callable[[], Any]) -> Any:
    """What the attempt gives. A busy machine may let the server's patience end before its first word is sent,
    or between two: then it gives nothing, and is made again."""
    found: list[Any] = []
    until(lambda: found.append(attempt()) or found[-1])
    return found[-1]


@pytest.mark.parametrize("words", [b"P", b"POST /api/chat HTTP/1.1\r\n", HEAD])
def test_half_a_head_is_said_to_be_too_slow(saver: RedisContextSaver, below: Any, words: bytes) -> None:
    with serving(saver, idle_seconds=0.2) as door:

        def say() -> bytes:
            connection = connect(door)
            with suppress(ConnectionError):
                connection.sendall(words)
            return what_comes(connection)

        problem = problem_in(in_time(say))
        assert (problem["status"], problem["code"]) == (408, "head_timeout")
        assert ended(door, "slow") == 1


def test_bytes_that_trickle_in_buy_no_time(saver: RedisContextSaver, below: Any) -> None:
    with serving(saver, idle_seconds=0.3) as door:

        def trickle() -> bool:
            deadline = time.monotonic() + WAIT_SECONDS
            with connect(door) as connection, suppress(ConnectionError):
                for byte in HEAD * 100:
                    assert time.monotonic() < deadline, "it was listened to for ever"
                    connection.sendall(bytes([byte]))
                    time.sleep(0.02)
            return ended(door, "slow") == 1

        in_time(trickle)


def test_an_answered_connection_may_ask_again_and_ends_when_it_does_not(
    saver: RedisContextSaver, below: Any
) -> None:
    with serving(saver, idle_seconds=0.5) as door:

        def ask_again() -> socket.socket | None:
            connection = connect(door)
            try:
                for _ in range(4):  # in all longer than one silence may last
                    connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                    read_until(connection, '{"status":"ok"}')
                    time.sleep(0.2)
            except ConnectionError:
                connection.close()
                return None
            return connection

        assert what_comes(in_time(ask_again)) == b""


def test_a_stream_may_be_silent_for_longer(saver: RedisContextSaver, below: Any) -> None:
    script = Script()
    with serving(saver, script, idle_seconds=0.1) as door:

        def begin() -> socket.socket | None:
            connection = connect(door)
            try:
                connection.sendall(chat_request("hold"))
                read_until(connection, "event: token")
            except ConnectionError:
                connection.close()
                return None
            return connection

        connection = in_time(begin)
        time.sleep(0.5)
        script.go.set()
        assert '"status":"completed"' in read_rest(connection)


def test_a_full_house_makes_room_for_who_speaks(saver: RedisContextSaver, below: Any) -> None:
    """Three hundred that say nothing, where a hundred have room: the longest silent ones end."""
    with serving(saver, idle_seconds=60, max_connections=100) as door:
        silent = [connect(door) for _ in range(300)]
        assert endings(door.ask("好")) == ["done"]
        until(lambda: ended(door, "room") >= 200)
        assert what_comes(silent[0]) == b""
        assert endings(door.ask("再来")) == ["done"]
        assert door.desk.pool.busy() == 0
        for connection in silent:
            connection.close()


def test_waves_of_silent_connections_hold_up_no_stream(saver: RedisContextSaver, below: Any) -> None:
    script = Script()
    with serving(saver, script, idle_seconds=60, max_connections=20) as door:
        streams = [door.send_raw("hold", f"t{number}") for number in range(4)]
        for stream in streams:
            read_until(stream, "event: token")
        silent = [connect(door) for _ in range(200)]
        assert endings(door.ask("好", "another")) == ["done"]
        script.go.set()
        for stream in streams:
            assert '"status":"completed"' in read_rest(stream)
        for connection in silent:
            connection.close()


def test_where_all_are_being_answered_a_new_one_is_turned_away(saver: RedisContextSaver, below: Any) -> None:
    script = Script()
    with serving(saver, script, max_connections=8, max_workers=16) as door:
        streams = [door.send_raw("hold", f"t{number}") for number in range(8)]
        for stream in streams:
            read_until(stream, "event: token")
        connection = connect(door)
        with suppress(ConnectionError):
            connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        seen = what_comes(connection)
        problem = problem_in(seen)
        assert (problem["status"], problem["code"]) == (503, "too_many_connections")
        assert b"retry-after: 5" in seen.lower()
        assert ended(door, "full") == 1
        script.go.set()
        for stream in streams:
            read_rest(stream)
        until(lambda: is_answered(door))


def is_answered(door: Door) -> bool:
    """False where it was turned away, told so or not."""
    try:
        return door.http.get("/health/live").status_code == 200
    except httpx.TransportError:
        return False


def test_readers_that_vanish_leave_their_places(saver: RedisContextSaver, below: Any) -> None:
    script = Script()
    with serving(saver, script, max_connections=8, max_workers=64) as door:
        for number in range(24):
            stream = door.send_raw("hold", f"t{number}")
            read_until(stream, "event: token")
            stream.close()
        script.go.set()
        assert endings(door.ask("好", "another")) == ["done"]
        assert ended(door, "full") == 0


@pytest.mark.parametrize(
    "words",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello",
        b"GET\r\n\r\n",
        b"POST /api/chat HTTP/1.1\r\nHost: x\r\nContent-Length: ten\r\n\r\n",
        b"POST /api/chat HTTP/1.1\r\nHost: x\r\nX-A: 1\x00\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nnot a size\r\n",
    ],
)
def test_what_is_no_http_is_a_problem(
    saver: RedisContextSaver, below: Any, redis_client: Any, words: bytes
) -> None:
    with serving(saver) as door:
        connection = connect(door)
        connection.sendall(words)
        problem = problem_in(what_comes(connection))
        assert (problem["status"], problem["code"]) == (400, "bad_request")
        assert endings(door.ask("好", "another")) == ["done"]
    assert redis_client.exists("t") == 0


def test_an_endless_head_ends(saver: RedisContextSaver, below: Any) -> None:
    with serving(saver) as door:
        connection = connect(door)
        connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        sent = 0
        with suppress(ConnectionError):
            while sent < 1000 * MAX_HEAD_BYTES:
                connection.sendall(b"X-More: " + b"x" * 2000 + b"\r\n")
                sent += 2010
        connection.close()
        assert sent < 1000 * MAX_HEAD_BYTES
        assert door.http.get("/health/live").status_code == 200


LONG = b"x" * (MAX_HEAD_BYTES - 200)


@pytest.mark.parametrize(
    ("path", "more", "status"),
    [
        (b"/health/live?" + LONG, b"", 200),
        (b"/health/live?" + LONG + b"x" * 200, b"", 431),
        (b"/health/live", b"X-A: " + LONG + b"\r\n", 200),
        (b"/health/live", b"X-A: " + LONG + b"\r\nX-B: " + b"x" * 200 + b"\r\n", 431),
        (b"/health/live", b"X-A: 1\r\n" * 100, 200),
        (b"/health/live", b"X-A: 1\r\n" * 5000, 431),
    ],
    ids=["long query", "longer query", "long header", "longer headers", "many headers", "more headers"],
)
def test_a_whole_head_that_comes_at_once_is_bounded_too(
    saver: RedisContextSaver, below: Any, path: bytes, more: bytes, status: int
) -> None:
    with serving(saver) as door:
        connection = connect(door)
        connection.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + more)
        with suppress(ConnectionError):
            connection.sendall(b"\r\n")
        seen = what_comes(connection)
        if status == 200:
            assert seen.startswith(b"HTTP/1.1 200 ")
        else:
            problem = problem_in(seen)
            assert (problem["status"], problem["code"]) == (431, "head_too_large")


def test_a_head_that_names_two_hosts_is_refused(saver: RedisContextSaver, below: Any) -> None:
    with serving(saver) as door:
        connection = connect(door)
        connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n")
        problem = problem_in(what_comes(connection))
        assert (problem["status"], problem["code"]) == (400, "bad_request")


def test_what_is_sent_must_be_taken(saver: RedisContextSaver, below: Any) -> None:
    """A large answer that nobody reads: its connection ends, and with it what it keeps in memory."""
    with serving(saver, idle_seconds=0.3) as door:

        @door.app.get("/large")
        async def large() -> list[str]:
            return ["x" * 1000] * 40_000

        connection = connect(door)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        until(lambda: ended(door, "silent") + ended(door, "stuck") == 1)
        connection.close()


def test_a_slow_reader_that_goes_on_reading_gets_all(saver: RedisContextSaver, below: Any) -> None:
    with serving(saver, idle_seconds=0.4) as door:

        @door.app.get("/large")
        async def large() -> list[str]:
            return ["x" * 1000] * 16_000

        def read_slowly() -> bool:
            seen = 0
            with connect(door) as connection, suppress(ConnectionError):
                connection.sendall(b"GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                while piece := connection.recv(256 * 1024):
                    seen += len(piece)
                    time.sleep(0.03)
            return seen > 16_000_000

        assert in_time(read_slowly)


def test_bytes_after_a_connection_was_turned_away_are_not_read(saver: RedisContextSaver, below: Any) -> None:
    with serving(saver) as door:
        connection = connect(door)
        with suppress(ConnectionError):
            connection.sendall(b"no http\r\n\r\n")
            connection.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}")
        assert what_comes(connection).count(b"HTTP/1.1 ") <= 1
        assert endings(door.ask("好")) == ["done"]


class TestHouse:
    """The count itself, without sockets."""

    class Guest:
        def __init__(self, house: House) -> None:
            self.house, self.end_reasons = house, []

        def end(self, reason: str) -> None:
            self.end_reasons.append(reason)

    def house(self, limit: int = 2) -> tuple[House, Callable[[], Any]]:
        house = House(limit, 1.0, lambda: "r")
        return house, lambda: self.Guest(house)

    def test_the_longest_silent_goes_first(self) -> None:
        house, guest = self.house()
        one, two, three = guest(), guest(), guest()
        assert house.enter(one)
        assert house.enter(two)
        house.hears(one)
        house.has_answered(one)  # silent again, for less long than the other
        assert house.enter(three)
        assert (one.end_reasons, two.end_reasons) == ([], ["room"])
        assert len(house.silent) + len(house.answered) == 2

    def test_nobody_who_is_answered_goes(self) -> None:
        house, guest = self.house()
        for _ in range(2):
            busy = guest()
            assert house.enter(busy)
            house.hears(busy)
        assert not house.enter(guest())

    def test_who_left_is_not_counted(self) -> None:
        house, guest = self.house(1)
        for _ in range(5):
            visitor = guest()
            assert house.enter(visitor)
            house.hears(visitor)
            house.leave(visitor)
            house.has_answered(visitor)  # its answer ended after it had left
        assert not house.silent
        assert not house.answered


@pytest.mark.parametrize(
    ("wanted", "files", "kept", "waiting"),
    [(2000, 20_000, 2000, 2048), (2000, 1024, 640, 128), (2000, 256, 160, 32), (10, 1024, 10, 128)],
)
def test_connections_leave_files_for_everything_else(
    wanted: int, files: int, kept: int, waiting: int
) -> None:
    places = places_for(wanted, files)
    assert (places.kept, places.waiting) == (kept, waiting)
    assert kept + waiting < files


def test_the_limit_of_files_is_raised_as_far_as_may_be() -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(512, before[0] // 2), before[1]))
        assert allow_files(before[0]) == before[0]
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == before[0]
        assert allow_files(10) == before[0]
        if before[1] != resource.RLIM_INFINITY:
            assert allow_files(before[1] * 2) == before[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
