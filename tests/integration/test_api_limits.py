"""How many requests run at once: of all, and of one caller, here and at other processes."""

import json
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from door import WAIT_SECONDS, Door, Script, endings, open_door, read_rest, read_until, stand_in, until
from test_api_lost_connections import Process, reset
from test_api_strangers import SECRET, token

from api.identity import limit_of
from api.leases import CallerLimitError, Lease, LeaseKeeper, Seats, seats_key
from checkpoint import RedisContextSaver
from checkpoint.errors import CheckpointUnavailable
from nodes.contracts import Caller

ALICE, BOB = token("acme", "alice"), token("acme", "bob")
OTHER_ALICE = token("other", "alice")


@contextmanager
def signed_in(saver: Any, script: Any, *, at_once: int = 2, **more: Any) -> Iterator[Door]:
    assistant = stand_in(saver, jwt_secret=SECRET, caller_max_running=at_once, **more)
    with open_door(assistant, run_turn=script) as door:
        yield door


@pytest.fixture
def door(saver: RedisContextSaver, script: Script) -> Iterator[Door]:
    with signed_in(saver, script) as door:
        yield door
        script.go.set()
        door.wait_idle()


def send(door: Door, who: str, text: str = "好", thread_id: str = "t", **more: Any) -> Any:
    body = {"thread_id": thread_id, "message": text, **more}
    return door.http.post("/api/chat", json=body, headers={"Authorization": f"Bearer {who}"})


def hold(door: Door, who: str, thread_id: str, mark: str = "event: token", **more: Any) -> socket.socket:
    """A request that runs until the script goes on."""
    body = json.dumps({"thread_id": thread_id, "message": "hold", **more}).encode()
    head = (
        f"POST /api/chat HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\nAuthorization: Bearer {who}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    connection = socket.create_connection(("127.0.0.1", door.port), timeout=WAIT_SECONDS)
    connection.sendall(head.encode() + body)
    if mark:
        read_until(connection, mark)
    return connection


def seats(redis_client: Any) -> list[bytes]:
    found: list[bytes] = redis_client.keys("business-assistant:caller:*")
    return found


def require_caller_limit(response: Any, limit: int = 2) -> None:
    assert (response.status_code, response.json()["code"]) == (429, "caller_limit")
    assert response.json()["retryable"] is True
    assert response.headers["retry-after"] == "1"
    assert response.headers["ratelimit-policy"] == f'"caller";q={limit};qu="concurrent-requests"'
    assert response.headers["ratelimit"] == '"caller";r=0;t=1'


def test_a_caller_at_the_limit_is_refused_and_others_are_not(door: Door, redis_client: Any) -> None:
    held = [hold(door, ALICE, f"t{number}") for number in range(2)]
    before = sorted(redis_client.keys("*"))
    require_caller_limit(send(door, ALICE, thread_id="t2"))
    assert sorted(redis_client.keys("*")) == before
    for who in (BOB, OTHER_ALICE):
        assert send(door, who, thread_id="t2").status_code == 200
    for connection in held:
        reset(connection)


def test_a_place_is_free_again_by_the_time_the_end_is_told(door: Door, script: Script) -> None:
    held = [hold(door, ALICE, f"t{number}") for number in range(2)]
    require_caller_limit(send(door, ALICE, thread_id="t2"))
    script.go.set()
    for connection in held:
        read_rest(connection)
    for number in range(6):
        assert send(door, ALICE, thread_id=f"t{number}").status_code == 200


def test_the_limit_holds_at_another_process(
    saver: RedisContextSaver, script: Script, door: Door, redis_client: Any
) -> None:
    """Two doors that share nothing but Redis: each counts what runs at the other."""
    with signed_in(saver, script) as other:
        held = [hold(door, ALICE, "t0"), hold(other, ALICE, "t1")]
        before = sorted(redis_client.keys("*"))
        for each in (door, other):
            require_caller_limit(send(each, ALICE, thread_id="t2", client_message_id="m1"))
        assert sorted(redis_client.keys("*")) == before
        assert send(other, BOB, thread_id="t2").status_code == 200
        script.go.set()
        for connection in held:
            read_rest(connection)
        assert send(other, ALICE, thread_id="t2", client_message_id="m1").status_code == 200
    assert seats(redis_client) == []


def test_what_was_sent_before_is_told_at_the_limit_too(
    saver: RedisContextSaver, script: Script, door: Door
) -> None:
    first = send(door, ALICE, thread_id="t9", client_message_id="m1")
    held = [hold(door, ALICE, "t0"), hold(door, ALICE, "t1", client_message_id="m2")]
    assert send(door, ALICE, thread_id="t9", client_message_id="m1").text == first.text
    with signed_in(saver, script) as other:
        again = send(other, ALICE, thread_id="t9", client_message_id="m1")
        assert again.headers["x-request-id"] == first.headers["x-request-id"]
        twin = hold(other, ALICE, "t1", "event: created", client_message_id="m2")
        script.go.set()
        assert '"status":"completed"' in read_rest(twin)
    for connection in held:
        read_rest(connection)


def leave(door: Door, script: Script, connection: socket.socket) -> None:
    reset(connection)
    script.go.set()


def stop(door: Door, script: Script, connection: socket.socket) -> None:
    headers = {"Authorization": f"Bearer {ALICE}"}
    assert door.http.post("/api/chat/stop", json={"thread_id": "t0"}, headers=headers).json()["stopping"]
    read_rest(connection)


def delete(door: Door, script: Script, connection: socket.socket) -> None:
    door.http.delete("/api/threads/t0", headers={"Authorization": f"Bearer {ALICE}"})
    read_rest(connection)


def end(door: Door, script: Script, connection: socket.socket) -> None:
    script.go.set()
    read_rest(connection)


@pytest.mark.parametrize("exit_by", [leave, stop, delete, end])
def test_a_place_is_freed_on_every_exit(
    saver: RedisContextSaver, script: Script, redis_client: Any, exit_by: Callable[..., None]
) -> None:
    with signed_in(saver, script, at_once=1) as door:
        connection = hold(door, ALICE, "t0")
        require_caller_limit(send(door, ALICE, thread_id="t1"), limit=1)
        exit_by(door, script, connection)
        door.wait_idle()
        assert (door.desk.pool.busy(), door.desk.pool.callers(), seats(redis_client)) == (0, 0, [])
        assert send(door, ALICE, thread_id="t1").status_code == 200


@pytest.mark.parametrize("text", ["fail", "vanish", "", "\x00", "长" * 4001])
def test_a_request_that_fails_or_is_refused_keeps_no_place(door: Door, redis_client: Any, text: str) -> None:
    for _ in range(5):
        send(door, ALICE, text)
    door.wait_idle()
    assert (door.desk.pool.callers(), seats(redis_client)) == (0, [])
    assert endings_of(send(door, ALICE)) == ["done"]


def endings_of(response: Any) -> list[str]:
    from door import events_of

    return endings(events_of(response.text))


def test_a_busy_thread_takes_no_place(saver: RedisContextSaver, script: Script, redis_client: Any) -> None:
    with signed_in(saver, script, at_once=2) as door:
        connection = hold(door, ALICE, "t0")
        for _ in range(5):
            assert send(door, ALICE, thread_id="t0").status_code == 409
        (key,) = seats(redis_client)
        assert redis_client.zcard(key) == 1
        script.go.set()
        read_rest(connection)


def test_the_local_caller_has_no_limit_but_the_pool(saver: RedisContextSaver, script: Script) -> None:
    with open_door(stand_in(saver, caller_max_running=1, max_workers=3), run_turn=script) as door:
        held = [door.send_raw("hold", f"t{number}") for number in range(3)]
        for connection in held:
            read_until(connection, "event: token")
        full = door.post("好", "t3")
        assert (full.status_code, full.json()["code"]) == (429, "pool_full")
        assert full.headers["ratelimit-policy"] == '"workers";q=3;qu="concurrent-requests"'
        assert full.headers["ratelimit"] == '"workers";r=0;t=1'
        assert full.headers["retry-after"] == "1"
        script.go.set()
        for connection in held:
            read_rest(connection)


def test_a_killed_processs_places_lapse(
    redis_url: str, saver: RedisContextSaver, script: Script, redis_client: Any
) -> None:
    """Its leases last 6 s in this test; so do the places that it held."""
    process = Process(redis_url, jwt_secret=SECRET, caller_max_running=1)
    try:
        process.http.headers["Authorization"] = f"Bearer {ALICE}"
        reading, _ = process.hold("t0")
        with signed_in(saver, script, at_once=1) as door:
            require_caller_limit(send(door, ALICE, thread_id="t1"), limit=1)
            process.end(signal.SIGKILL)
            reading.join(WAIT_SECONDS)
            until(lambda: send(door, ALICE, thread_id="t1").status_code == 200)
        assert seats(redis_client) == []
    finally:
        process.process.kill()
        process.process.communicate()
        process.http.close()


@pytest.mark.parametrize("path", ["/v1/ask", "/v1/ask/stream"])
def test_questions_without_a_conversation_count_for_their_process(
    home: Any, redis_url: str, path: str
) -> None:
    from graph.compose import open_assistant
    from graph.settings import load_settings

    env = {"BUSINESS_ASSISTANT_HOME": str(home), "REDIS_URL": redis_url, "JWT_SECRET": SECRET}
    settings = load_settings({**env, "CALLER_MAX_RUNNING": "1"})
    with open_assistant(settings) as assistant, open_door(assistant) as door:
        slot = door.desk.pool.reserve(limit_of(Caller("acme", "alice")))
        body = {"question": "创业补贴有多少？"}
        require_caller_limit(
            door.http.post(path, json=body, headers={"Authorization": f"Bearer {ALICE}"}), limit=1
        )
        assert door.http.post(path, json=body, headers={"Authorization": f"Bearer {BOB}"}).status_code == 200
        slot.release()
        for _ in range(3):
            answer = door.http.post(path, json=body, headers={"Authorization": f"Bearer {ALICE}"})
            assert answer.status_code == 200
        until(lambda: door.desk.pool.callers() == 0)


class TestSeats:
    """The sorted set against a real server."""

    @pytest.fixture
    def keeper(self, redis_client: Any) -> Iterator[LeaseKeeper]:
        keeper = LeaseKeeper(redis_client)
        yield keeper
        keeper.close()

    def test_exactly_so_many(self, keeper: LeaseKeeper, redis_client: Any) -> None:
        with ExitStack() as stack:
            for number in range(3):
                stack.enter_context(keeper.hold(f"t{number}", "r", seats=Seats("alice", 3)))
            with pytest.raises(CallerLimitError) as full, keeper.hold("t3", "r", seats=Seats("alice", 3)):
                pytest.fail("one too many")
            assert full.value.limit == 3
            assert not keeper.is_held("t3")
            assert redis_client.zcard(seats_key("alice")) == 3
        assert redis_client.exists(seats_key("alice")) == 0
        assert keeper.held_count() == 0

    def test_they_lapse_with_a_lease_that_nobody_renews(self, redis_client: Any) -> None:
        dead = LeaseKeeper(redis_client, lease_ms=150)
        dead.close()
        with dead.hold("t0", "r", seats=Seats("alice", 1)):
            until(lambda: not redis_client.exists(seats_key("alice")))
            with LeaseKeeper(redis_client).hold("t1", "r", seats=Seats("alice", 1)):
                pass

    def test_one_that_lapsed_is_not_counted_beside_one_that_lives(self, redis_client: Any) -> None:
        dead, living = LeaseKeeper(redis_client, lease_ms=150), LeaseKeeper(redis_client)
        dead.close()
        with living.hold("t0", "r", seats=Seats("alice", 2)), dead.hold("t1", "r", seats=Seats("alice", 2)):
            until(lambda: self._is_free(living))
        living.close()

    @staticmethod
    def _is_free(keeper: LeaseKeeper) -> bool:
        try:
            with keeper.hold("t2", "r", seats=Seats("alice", 2)):
                return True
        except CallerLimitError:
            return False

    def test_they_are_kept_while_their_holder_lives(self, redis_client: Any) -> None:
        def is_renewed(lease: Lease) -> bool:
            lease.seat_due = 0.0  # at the next tick
            is_later: bool = redis_client.zscore(seats_key("alice"), seat[0]) >= seat[1]
            return is_later

        keeper = LeaseKeeper(redis_client, lease_ms=120_000, tick_seconds=0.05)
        with keeper.hold("t0", "r", seats=Seats("alice", 1)) as lease:
            (seat,) = redis_client.zrange(seats_key("alice"), 0, -1, withscores=True)
            for _ in range(2):
                redis_client.zadd(seats_key("alice"), {seat[0]: seat[1] - 60_000})  # half its time has passed
                until(lambda: is_renewed(lease))
            with pytest.raises(CallerLimitError), keeper.hold("t1", "r", seats=Seats("alice", 1)):
                pytest.fail("one too many")
        keeper.close()

    def test_a_seat_that_is_taken_twice_is_one(self, keeper: LeaseKeeper, redis_client: Any) -> None:
        """The reply of the first was lost; the client sends the very same again."""
        with keeper.hold("t0", "r", seats=Seats("alice", 1)) as lease:
            keeper._sit(lease, Seats("alice", 1))
            assert redis_client.zcard(seats_key("alice")) == 1

    def test_one_given_up_while_it_is_renewed_does_not_come_back(
        self, keeper: LeaseKeeper, redis_client: Any
    ) -> None:
        with keeper.hold("t0", "r", seats=Seats("alice", 1)) as lease:
            pass
        keeper._sit_on(lease)
        assert redis_client.exists(seats_key("alice")) == 0

    def test_a_store_that_fails_at_the_seat_leaves_no_lease(
        self, keeper: LeaseKeeper, redis_client: Any
    ) -> None:
        redis_client.set(seats_key("alice"), "of another type")
        with pytest.raises(CheckpointUnavailable), keeper.hold("t0", "r", seats=Seats("alice", 1)):
            pytest.fail("held")
        assert not keeper.is_held("t0")

    def test_no_name_of_a_person_is_a_key(self) -> None:
        name = limit_of(Caller("acme-GmbH", "alice"))
        assert name is not None
        assert "acme" not in seats_key(name)
        assert "alice" not in seats_key(name)
        assert name != limit_of(Caller("acme-Gmb", "Halice"))
        assert limit_of(Caller()) is None
