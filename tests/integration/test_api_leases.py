"""The lease against a real server: one holder, a token per acquire, and claims that make a send unique."""

import multiprocessing
import threading
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
import redis

from api.leases import (
    CLAIMS_KEPT,
    OUTCOMES_KEPT,
    Claim,
    ClaimedError,
    LeaseKeeper,
    ThreadBusyError,
    hold,
    keys_of,
)
from checkpoint import ContextConfig
from checkpoint.connect import make_client
from checkpoint.errors import CheckpointUnavailable

WAIT_SECONDS = 120.0  # how long anything may take before a test gives up; nothing is asserted about speed
SOON_MS = 60_000  # before which a lease is renewed many times


@pytest.fixture
def client(redis_client: redis.Redis) -> redis.Redis:
    return redis_client


@pytest.fixture
def keeper(client: redis.Redis) -> Iterator[LeaseKeeper]:
    keeper = LeaseKeeper(client)
    yield keeper
    keeper.close()


@pytest.fixture
def thread_id() -> str:
    return f"租约 {{{uuid4()}}}"


def claim(name: str = "m1", fingerprint: str = "f1") -> Claim:
    return Claim(name, fingerprint)


def until(condition: Any) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.01)


def is_renewed(client: redis.Redis, thread_id: str) -> None:
    """Until its holder has given the lease more time than this leaves it."""
    assert client.pexpire(keys_of(thread_id).lease, SOON_MS)
    until(lambda: client.pttl(keys_of(thread_id).lease) > SOON_MS)


def test_a_second_holder_is_refused_and_stores_nothing(
    keeper: LeaseKeeper, client: redis.Redis, thread_id: str
) -> None:
    with keeper.hold(thread_id, "r1"):
        before = client.dbsize()
        with pytest.raises(ThreadBusyError) as busy, keeper.hold(thread_id, "r2", claim=claim()):
            pytest.fail("two holders")
        assert client.dbsize() == before
        assert 1 <= busy.value.retry_after_seconds <= 5
    with keeper.hold(thread_id, "r3"):
        pass


def test_nothing_is_left_after_a_release(keeper: LeaseKeeper, client: redis.Redis, thread_id: str) -> None:
    with keeper.hold(thread_id, "r1") as lease:
        assert client.get(keys_of(thread_id).lease) == lease.token.encode()
    assert client.exists(*vars(keys_of(thread_id)).values()) == 0
    assert keeper.held_count() == 0


def test_an_error_inside_releases_too(keeper: LeaseKeeper, thread_id: str) -> None:
    with pytest.raises(LookupError), keeper.hold(thread_id, "r1"):
        raise LookupError
    assert not keeper.is_held(thread_id)


def test_every_acquire_has_a_token_of_its_own(keeper: LeaseKeeper, thread_id: str) -> None:
    tokens = set()
    for _ in range(5):
        with keeper.hold(thread_id, "r1") as lease:
            tokens.add(lease.token)
    assert len(tokens) == 5


def test_a_lease_outlives_its_time_while_its_holder_lives(client: redis.Redis, thread_id: str) -> None:
    keeper = LeaseKeeper(client, lease_ms=2 * SOON_MS, tick_seconds=0.05)
    with keeper.hold(thread_id, "r1") as lease:
        for _ in range(3):
            is_renewed(client, thread_id)
        assert client.get(keys_of(thread_id).lease) == lease.token.encode()
        assert not lease.lost
    keeper.close()


def test_a_lease_whose_holder_died_lapses(client: redis.Redis, thread_id: str) -> None:
    dead = LeaseKeeper(client, lease_ms=150)
    dead.close()  # renews no more, as if its process had died
    with dead.hold(thread_id, "r1"):
        until(lambda: not dead.is_held(thread_id))
        with LeaseKeeper(client).hold(thread_id, "r2"):
            pass


def test_a_stale_holder_neither_frees_nor_renews_the_next_ones_lease(
    client: redis.Redis, thread_id: str
) -> None:
    lost = threading.Event()
    slow, other = LeaseKeeper(client), LeaseKeeper(client)
    with slow.hold(thread_id, "r1", on_lost=lost.set) as stale:
        client.delete(keys_of(thread_id).lease)
        with other.hold(thread_id, "r2") as fresh:
            assert lost.wait(WAIT_SECONDS)
            assert stale.lost
            slow._release(stale)
            assert client.get(keys_of(thread_id).lease) == fresh.token.encode()
    slow.close()
    other.close()


def test_a_stop_reaches_the_holder_in_another_keeper_within_a_second(
    client: redis.Redis, thread_id: str
) -> None:
    here, elsewhere = LeaseKeeper(client), LeaseKeeper(client)
    stopped = threading.Event()
    with here.hold(thread_id, "r1", on_stop=stopped.set):
        assert elsewhere.request_stop(thread_id)
        assert stopped.wait(WAIT_SECONDS)
    assert 2 * here._tick < 1.0  # it asks so often, and an answer takes less
    assert client.exists(keys_of(thread_id).stop) == 0
    here.close()


def test_a_stop_hits_the_run_it_was_meant_for_and_no_later_one(client: redis.Redis, thread_id: str) -> None:
    keeper = LeaseKeeper(client)
    with keeper.hold(thread_id, "r1") as first:
        pass
    client.set(keys_of(thread_id).stop, first.token)
    stopped = threading.Event()
    with keeper.hold(thread_id, "r2", on_stop=stopped.set):
        assert not stopped.wait(1.0)
    keeper.close()


def test_nobody_to_stop(keeper: LeaseKeeper, client: redis.Redis, thread_id: str) -> None:
    assert keeper.request_stop(thread_id) is False
    assert client.exists(keys_of(thread_id).stop) == 0


def test_a_claim_of_a_running_request_is_known_before_the_thread_counts_as_busy(
    keeper: LeaseKeeper, thread_id: str
) -> None:
    with keeper.hold(thread_id, "r1", claim=claim()):
        with pytest.raises(ClaimedError) as known, keeper.hold(thread_id, "r2", claim=claim()):
            pytest.fail("started twice")
        assert (known.value.state, known.value.request_id) == ("running", "r1")
        with (
            pytest.raises(ClaimedError) as other,
            keeper.hold(thread_id, "r2", claim=claim(fingerprint="f2")),
        ):
            pytest.fail("another payload")
        assert other.value.state == "other"


def test_a_concluded_claim_gives_back_its_outcome(keeper: LeaseKeeper, thread_id: str) -> None:
    with keeper.hold(thread_id, "r1", claim=claim()) as lease:
        lease.begin()
        lease.conclude(b"\x00outcome\xff")
    with pytest.raises(ClaimedError) as known:
        keeper.look_up(thread_id, "r2", claim())
    assert (known.value.state, known.value.request_id, known.value.outcome) == (
        "ended",
        "r1",
        b"\x00outcome\xff",
    )


def test_a_refused_request_leaves_its_id_free(keeper: LeaseKeeper, thread_id: str) -> None:
    with keeper.hold(thread_id, "r1", claim=claim()):
        pass  # never began
    with keeper.hold(thread_id, "r2", claim=claim(fingerprint="f2")) as lease:
        assert (lease.request_id, lease.taken_over) == ("r2", False)


def test_a_refused_request_leaves_nothing_of_its_id(
    keeper: LeaseKeeper, client: redis.Redis, thread_id: str
) -> None:
    with keeper.hold(thread_id, "r1", claim=claim()):
        pass
    assert client.exists(keys_of(thread_id).once) == 0
    with keeper.hold(thread_id, "r2", claim=claim("kept")) as lease:
        lease.begin()
        lease.conclude(b"outcome")
    before = client.hgetall(keys_of(thread_id).once)
    with keeper.hold(thread_id, "r3", claim=claim()):
        pass
    assert client.hgetall(keys_of(thread_id).once) == before


def test_a_request_that_died_keeps_its_id_whatever_keeps_it_from_going_on(
    keeper: LeaseKeeper, thread_id: str
) -> None:
    with keeper.hold(thread_id, "r1", claim=claim()) as lease:
        lease.begin()
    with keeper.hold(thread_id, "r2", claim=claim()) as again:
        assert again.taken_over  # and it ends before it could begin, as when the database is down
    with keeper.hold(thread_id, "r3", claim=claim()) as at_last:
        assert (at_last.request_id, at_last.taken_over) == ("r1", True)


def test_a_fault_of_one_lease_does_not_end_the_renewing_of_others(
    client: redis.Redis, thread_id: str
) -> None:
    keeper = LeaseKeeper(client, lease_ms=2 * SOON_MS, tick_seconds=0.05)
    ticked = threading.Event()

    def fail() -> None:
        ticked.set()
        raise LookupError

    with (
        keeper.hold(thread_id, "r1", on_tick=fail, on_stop=fail),
        keeper.hold(f"{thread_id}2", "r2") as other,
    ):
        assert ticked.wait(WAIT_SECONDS)
        assert keeper.request_stop(thread_id)
        for _ in range(3):
            is_renewed(client, f"{thread_id}2")
        assert client.get(keys_of(f"{thread_id}2").lease) == other.token.encode()
        assert not other.lost
    keeper.close()


def test_what_could_not_be_given_back_is_given_back_once_the_store_answers(
    client: redis.Redis, thread_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = LeaseKeeper(client, lease_ms=600_000)
    release, failures = keeper._release, iter([True] * 3)

    def fail(lease: Any) -> None:
        if next(failures, False):
            raise CheckpointUnavailable("the thread's lease", "it is away", "Try again")
        release(lease)

    monkeypatch.setattr(keeper, "_release", fail)
    for number in range(2):
        with keeper.hold(f"{thread_id}{number}", "r1", claim=claim()) as lease:
            lease.begin()
            lease.conclude(b"outcome")
    until(lambda: not (keeper.is_held(f"{thread_id}0") or keeper.is_held(f"{thread_id}1")))
    until(lambda: not keeper._unreleased)
    with pytest.raises(ClaimedError) as known:
        keeper.look_up(f"{thread_id}0", "r2", claim())
    assert (known.value.state, known.value.outcome) == ("ended", b"outcome")
    keeper.close()


def test_what_has_lapsed_is_no_longer_given_back(
    client: redis.Redis, thread_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = LeaseKeeper(client, lease_ms=200)
    failed: list[Any] = []

    def fail(lease: Any) -> None:
        failed.append(lease)
        raise CheckpointUnavailable("the thread's lease", "it is away", "Try again")

    monkeypatch.setattr(keeper, "_release", fail)
    with keeper.hold(thread_id, "r1"):
        pass
    assert failed
    until(lambda: not keeper._unreleased)
    keeper.close()


def test_a_lease_that_nothing_could_renew_is_given_back(
    client: redis.Redis, thread_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    keeper = LeaseKeeper(client)
    with monkeypatch.context() as no_threads:
        no_threads.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError), keeper.hold(thread_id, "r1"):
            pytest.fail("held")
    assert (keeper.held_count(), keeper.is_held(thread_id)) == (0, False)
    with keeper.hold(thread_id, "r2"):
        assert keeper._renewer is not None
    keeper.close()


def test_a_request_that_began_and_died_is_taken_over_under_its_own_id(
    keeper: LeaseKeeper, thread_id: str
) -> None:
    with keeper.hold(thread_id, "r1", claim=claim()) as lease:
        lease.begin()
    with keeper.hold(thread_id, "r2", claim=claim()) as again:
        assert (again.request_id, again.taken_over) == ("r1", True)
        with pytest.raises(ClaimedError) as known:
            keeper.look_up(thread_id, "r3", claim())
        assert (known.value.state, known.value.request_id) == ("running", "r1")


def test_claims_belong_to_their_thread(keeper: LeaseKeeper, thread_id: str) -> None:
    with (
        keeper.hold(thread_id, "r1", claim=claim()),
        keeper.hold(thread_id + "'", "r2", claim=claim()) as lease,
    ):
        assert lease.request_id == "r2"


def test_five_sends_at_once_give_one_holder(client: redis.Redis, thread_id: str) -> None:
    keeper = LeaseKeeper(client)
    outcomes: list[str] = []
    go, together = threading.Event(), threading.Barrier(5)

    def send(number: int) -> None:
        together.wait()
        try:
            with keeper.hold(thread_id, f"r{number}", claim=claim()) as lease:
                lease.begin()
                go.wait(WAIT_SECONDS)
                outcomes.append("held")
        except ClaimedError as known:
            outcomes.append(known.state)
            if len(outcomes) == 4:
                go.set()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert sorted(outcomes) == ["held", "running", "running", "running", "running"]
    keeper.close()


def test_what_is_remembered_of_claims_is_bounded(
    keeper: LeaseKeeper, client: redis.Redis, thread_id: str
) -> None:
    for number in range(CLAIMS_KEPT + 20):
        with keeper.hold(thread_id, f"r{number}", claim=claim(f"m{number}")) as lease:
            lease.begin()
            lease.conclude(b"outcome")
    fields = list(client.hkeys(keys_of(thread_id).once))
    counts = {
        letter: sum(field.startswith(letter) for field in fields) for letter in (b"c", b"k", b"i", b"e", b"o")
    }
    assert counts == {
        b"c": CLAIMS_KEPT,
        b"k": CLAIMS_KEPT,
        b"i": CLAIMS_KEPT,
        b"e": CLAIMS_KEPT,
        b"o": OUTCOMES_KEPT,
    }
    assert client.pttl(keys_of(thread_id).once) > 0
    with pytest.raises(ClaimedError) as faded:
        keeper.look_up(thread_id, "r", claim(f"m{CLAIMS_KEPT - 20}"))
    assert (faded.value.state, faded.value.outcome) == ("ended", None)


def test_a_script_that_comes_twice_takes_once(client: redis.Redis, thread_id: str) -> None:
    """The reply of the first was lost; the client sends the very same again."""
    keeper = LeaseKeeper(client, new_token=lambda: "same-token")
    taken = [keeper._take(thread_id, "r1", claim()) for _ in range(2)]
    assert [(lease.request_id, lease.taken_over) for lease in taken] == [("r1", False)] * 2


def test_forgetting_a_thread_leaves_no_helper(
    keeper: LeaseKeeper, client: redis.Redis, thread_id: str
) -> None:
    with keeper.hold(thread_id, "r1", claim=claim()) as lease:
        lease.begin()
        keeper.request_stop(thread_id)
        keeper.forget_thread(thread_id)
        client.delete(keys_of(thread_id).lease)
        lease.conclude(b"late")
    assert client.exists(*vars(keys_of(thread_id)).values()) == 0


def test_a_server_that_is_gone_is_said_so(thread_id: str) -> None:
    nowhere = make_client("redis://127.0.0.1:1/0", ContextConfig())
    keeper = LeaseKeeper(nowhere)
    with pytest.raises(CheckpointUnavailable), keeper.hold(thread_id, "r1"):
        pytest.fail("held nothing")
    with pytest.raises(CheckpointUnavailable):
        keeper.ping()


def test_scripts_survive_a_flush(keeper: LeaseKeeper, client: redis.Redis, thread_id: str) -> None:
    with keeper.hold(thread_id, "r1"):
        client.script_flush()
        assert keeper.request_stop(thread_id)
    assert not keeper.is_held(thread_id)


def _hold_in_a_process(url: str, thread_id: str, held: Any, let_go: Any) -> None:
    with redis.Redis.from_url(url) as client, hold(client, thread_id, lease_ms=2 * SOON_MS):
        held.set()
        let_go.wait(WAIT_SECONDS)


def test_a_lease_holds_across_processes_and_lapses_when_one_is_killed(
    redis_url: str, client: redis.Redis, keeper: LeaseKeeper, thread_id: str
) -> None:
    context = multiprocessing.get_context("spawn")
    held, let_go = context.Event(), context.Event()
    process = context.Process(target=_hold_in_a_process, args=(redis_url, thread_id, held, let_go))
    process.start()
    try:
        assert held.wait(WAIT_SECONDS)
        is_renewed(client, thread_id)  # over there
        with pytest.raises(ThreadBusyError), keeper.hold(thread_id, "r1"):
            pytest.fail("two holders")
        process.kill()
        process.join(WAIT_SECONDS)
        assert client.pexpire(keys_of(thread_id).lease, 500)  # as if most of its time had passed
        until(lambda: not keeper.is_held(thread_id))
        with keeper.hold(thread_id, "r2"):
            pass
    finally:
        process.kill()
        process.join(WAIT_SECONDS)
        process.close()
