"""Slots: bounded, refused when full, and freed exactly once whatever happens."""

import threading

import pytest

from api.workers import WorkerPool


def test_a_full_pool_refuses_and_a_freed_slot_serves_again() -> None:
    pool = WorkerPool(2)
    first, second = pool.reserve(), pool.reserve()
    assert first
    assert second
    assert pool.reserve() is None
    first.release()
    assert pool.reserve() is not None


def test_a_slot_is_given_back_once() -> None:
    pool = WorkerPool(1)
    slot = pool.reserve()
    assert slot
    slot.release()
    slot.release()
    assert pool.busy() == 0


def test_a_job_frees_its_slot_when_it_ends() -> None:
    pool = WorkerPool(1)
    slot = pool.reserve()
    assert slot
    go = threading.Event()
    slot.start(lambda: go.wait(5) and None, "job")
    assert pool.reserve() is None
    go.set()
    assert pool.wait_idle(5)
    assert pool.busy() == 0


def test_a_job_that_raises_frees_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda args: seen.append(args.exc_type))
    pool = WorkerPool(1)
    slot = pool.reserve()
    assert slot

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
    assert slot
    with pytest.raises(RuntimeError):
        slot.start(lambda: None, "job")
    assert pool.busy() == 0


def test_waiting_for_a_job_that_does_not_end_gives_up() -> None:
    pool = WorkerPool(1)
    assert pool.reserve()
    assert pool.wait_idle(0.01) is False
