"""Slots: bounded, refused when full, and freed exactly once whatever happens."""

import threading

import pytest

from api.problems import Refusal
from api.workers import WorkerPool


def test_a_full_pool_refuses_and_a_freed_slot_serves_again() -> None:
    pool = WorkerPool(2)
    first, _ = pool.reserve(), pool.reserve()
    with pytest.raises(Refusal) as full:
        pool.reserve()
    assert full.value.code == "pool_full"
    assert full.value.headers["RateLimit-Policy"] == '"workers";q=2;qu="concurrent-requests"'
    first.release()
    assert pool.reserve()


def test_one_caller_cannot_take_all_slots() -> None:
    pool = WorkerPool(4, per_caller=2)
    hers = [pool.reserve("alice") for _ in range(2)]
    with pytest.raises(Refusal) as full:
        pool.reserve("alice")
    assert full.value.code == "caller_limit"
    assert full.value.headers == {
        "RateLimit-Policy": '"caller";q=2;qu="concurrent-requests"',
        "RateLimit": '"caller";r=0;t=1',
    }
    pool.reserve("bob")
    hers[0].release()
    hers[0].release()
    pool.reserve("alice")
    with pytest.raises(Refusal):
        pool.reserve("alice")


def test_a_refused_caller_takes_nothing() -> None:
    pool = WorkerPool(4, per_caller=1)
    pool.reserve("alice")
    for _ in range(10):
        with pytest.raises(Refusal):
            pool.reserve("alice")
    assert pool.busy() == 1


def test_callers_are_forgotten_with_their_last_job() -> None:
    pool = WorkerPool(200, per_caller=1)
    for slot in [pool.reserve(f"caller-{number}") for number in range(100)]:
        slot.release()
    assert (pool.busy(), pool.callers()) == (0, 0)


def test_who_has_no_limit_of_their_own_may_take_all() -> None:
    pool = WorkerPool(5, per_caller=1)
    assert len([pool.reserve(None) for _ in range(5)]) == 5


def test_a_slot_is_given_back_once() -> None:
    pool = WorkerPool(1)
    slot = pool.reserve()
    slot.release()
    slot.release()
    assert pool.busy() == 0


def test_a_job_frees_its_slot_when_it_ends() -> None:
    pool = WorkerPool(1)
    slot = pool.reserve()
    go = threading.Event()
    slot.start(lambda: go.wait(5) and None, "job")
    with pytest.raises(Refusal):
        pool.reserve()
    go.set()
    assert pool.wait_idle(5)
    assert pool.busy() == 0


def test_a_job_that_raises_frees_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda args: seen.append(args.exc_type))
    pool = WorkerPool(1)
    slot = pool.reserve()

    def fail() -> None:
        raise LookupError

    slot.start(fail, "job")
    assert pool.wait_idle(5)
    assert seen == [LookupError]


def test_a_slot_is_freed_when_no_thread_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    pool = WorkerPool(1)
    slot = pool.reserve()
    with pytest.raises(RuntimeError):
        slot.start(lambda: None, "job")
    assert pool.busy() == 0


def test_waiting_for_a_job_that_does_not_end_gives_up() -> None:
    pool = WorkerPool(1)
    pool.reserve()
    assert pool.wait_idle(0.01) is False
