"""Slots: bounded, refused when full, and freed exactly once whatever happens."""

import gc
import threading
import time
import weakref
from contextvars import ContextVar

import pytest

from api.problems import Refusal
from api.workers import IDLE_NAME, Threads, WorkerPool

WAIT_SECONDS = 120.0  # how long anything may take before a test gives up; nothing is asserted about speed


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
    slot.start(lambda: go.wait(WAIT_SECONDS) and None, "job")
    with pytest.raises(Refusal):
        pool.reserve()
    go.set()
    assert pool.wait_idle(WAIT_SECONDS)
    assert pool.busy() == 0


def test_a_job_that_raises_frees_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda args: seen.append(args.exc_type))
    pool = WorkerPool(1)
    slot = pool.reserve()

    def fail() -> None:
        raise LookupError

    slot.start(fail, "job")
    assert pool.wait_idle(WAIT_SECONDS)
    wait_for(lambda: seen == [LookupError])  # what it raised goes on after the slot is free


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


def wait_for(what) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def run_one(threads: Threads, job, name: str = "job") -> None:
    done = threading.Event()

    def and_say() -> None:
        try:
            job()
        finally:
            done.set()

    threads.run(and_say, name)
    assert done.wait(WAIT_SECONDS)


def test_a_thread_that_is_through_takes_the_next_job() -> None:
    threads, seen = Threads(), []
    for number in range(5):
        run_one(threads, lambda: seen.append(threading.get_ident()), f"turn-{number}")
        wait_for(lambda: threads.idle() == 1)
    assert len(set(seen)) == 1


def test_jobs_at_once_have_a_thread_each() -> None:
    threads, together = Threads(), threading.Barrier(4)
    for number in range(3):
        threads.run(lambda: together.wait(WAIT_SECONDS) and None, f"turn-{number}")
    together.wait(WAIT_SECONDS)
    wait_for(lambda: threads.idle() == 3)


def test_a_thread_goes_by_its_job_and_then_by_none() -> None:
    threads, here = Threads(), []
    run_one(threads, lambda: here.append(threading.current_thread()), "turn-1")
    wait_for(lambda: here[0].name == IDLE_NAME)
    run_one(threads, lambda: here.append(threading.current_thread().name), "turn-2")
    assert here[1] == "turn-2"


def test_nothing_of_a_job_is_there_for_the_next_one() -> None:
    threads, left, seen = Threads(), ContextVar("left", default="nothing"), []
    run_one(threads, lambda: left.set("something") and None)
    wait_for(lambda: threads.idle() == 1)
    run_one(threads, lambda: seen.append(left.get()))
    assert seen == ["nothing"]


class Held:
    pass


def test_a_thread_that_waits_holds_nothing_of_its_last_job() -> None:
    threads, held = Threads(), Held()
    alive = weakref.ref(held)
    threads.run(lambda held=held: None, "job")
    del held
    wait_for(lambda: threads.idle() == 1)
    wait_for(lambda: gc.collect() is not None and alive() is None)


def test_a_thread_that_nobody_needs_ends() -> None:
    threads, here = Threads(idle_seconds=0.01), []
    run_one(threads, lambda: here.append(threading.current_thread()))
    here[0].join(WAIT_SECONDS)
    assert not here[0].is_alive()
    assert threads.idle() == 0
    run_one(threads, lambda: here.append(1))
    assert here[1] == 1


def test_no_job_is_lost_while_threads_end_and_begin() -> None:
    threads, done = Threads(idle_seconds=0.0), []
    for number in range(300):
        threads.run(lambda number=number: done.append(number), "job")
    wait_for(lambda: len(done) == 300)
    assert sorted(done) == list(range(300))


def test_a_job_that_raises_takes_no_other_job_along(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, threads = [], Threads()
    monkeypatch.setattr(threading, "excepthook", lambda args: seen.append(args.exc_type))

    def fail() -> None:
        raise LookupError

    run_one(threads, fail)
    wait_for(lambda: seen == [LookupError])
    assert threads.idle() == 0
    run_one(threads, lambda: seen.append(1))
    assert seen[1] == 1
