"""A worker that is killed at any save, or sleeps past its lease: one answer, one record, nothing late."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis
from faults.parts import ANSWERED, NARRATIVE, OTHER_NARRATIVE, Home, Model, agreed, context, forms, rows
from integration.door import WAIT_SECONDS, Door, until

STEPS = ("the input", "gate", "intent", "retrieve", "answer")


def die(*_args: Any, **_more: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def at_call(work: Callable[..., Any], number: int, act: Callable[[], Any], *, is_done: bool) -> Any:
    """The work, with an act just before or just after its call of this number."""
    calls = [0]

    def instead(*args: Any, **more: Any) -> Any:
        calls[0] += 1
        is_now = calls[0] == number
        if is_now and not is_done:
            act()
        result = work(*args, **more)
        if is_now and is_done:
            act()
        return result

    return instead


# A turn saves where it begins, then for its input and each of its steps the writes and the checkpoint.
POINTS = {
    "before the first checkpoint": ("put", 1, False),
    **{f"after {name} ran": ("put_writes", at, False) for at, name in enumerate(STEPS, start=1)},
    **{f"after {name}'s writes": ("put_writes", at, True) for at, name in enumerate(STEPS, start=1)},
    **{f"after {name}'s checkpoint": ("put", at, True) for at, name in enumerate(STEPS, start=2)},
}
CALLED_AGAIN = {"after answer ran"}  # nothing of it had been stored: nobody can know that it ran


def run_until_killed(place: Home, log: Path, point: str) -> None:
    method, number, is_done = POINTS[point]

    def plant(saver: Any) -> Any:
        setattr(saver, method, at_call(getattr(saver, method), number, die, is_done=is_done))
        if method == "put_writes":  # the step's checkpoint is saved by another thread: it shall not be first
            saver.put = at_call(saver.put, number + 1, threading.Event().wait, is_done=False)
        return saver

    with place.door(Model(log=log), saver=plant) as door:
        door.post(NARRATIVE, client_message_id="m1")
    os._exit(1)


def killed(place: Home, log: Path, point: str) -> None:
    child = multiprocessing.get_context("fork").Process(target=run_until_killed, args=(place, log, point))
    child.start()
    child.join(WAIT_SECONDS)
    assert child.exitcode == -signal.SIGKILL
    with redis.Redis.from_url(place.redis_url) as client:
        (lease,) = client.keys("business-assistant:lease:*")
        client.delete(lease)  # as if its time had passed


def calls(log: Path) -> int:
    return len(log.read_text().splitlines()) if log.exists() else 0


def check_answered_once(door: Door, model: Model) -> None:
    """One turn in each place that keeps turns, and a conversation that goes on."""
    assert [record["status"] for record in door.records()] == ["completed"]
    assert forms(door) == ANSWERED
    assert [message["content"] for message in context(door) if message["role"] == "user"] == [NARRATIVE]
    assert door.ask(OTHER_NARRATIVE)[-1][1]["status"] == "completed"
    assert forms(door) == ANSWERED * 2
    assert agreed(door)


@pytest.mark.parametrize("point", POINTS)
def test_the_same_message_after_a_kill_is_answered_once(place: Home, tmp_path: Path, point: str) -> None:
    log = tmp_path / "calls"
    killed(place, log, point)
    model = Model(log=log)
    with place.door(model) as door:
        told = [door.ask(NARRATIVE, client_message_id="m1")[-1][1] for _ in range(2)]
        assert [done["status"] for done in told] == ["completed", "completed"]
        assert len({done["answer"]["text"] for done in told}) == 1
        assert calls(log) == (2 if point in CALLED_AGAIN else 1)
        check_answered_once(door, model)


@pytest.mark.parametrize(
    "point",
    ["after answer ran", "after answer's writes", "after answer's checkpoint"],
)
def test_a_reader_after_a_kill_is_shown_what_the_thread_holds(
    place: Home, tmp_path: Path, point: str
) -> None:
    """Nobody sends the message again: somebody reads, and then asks something else."""
    killed(place, tmp_path / "calls", point)
    model = Model()
    with place.door(model) as door:
        shown = rows(door)
        assert rows(door) == shown
        is_answered = point == "after answer's checkpoint"
        assert forms(door) == (ANSWERED if is_answered else [("USER", "FAILED")])
        assert bool(context(door)) is is_answered
        done = door.ask(OTHER_NARRATIVE)[-1][1]
        assert done["error_code"] == (None if is_answered else "unfinished_turn")
        assert rows(door)[: len(shown)] == shown


@pytest.fixture
def ends() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def run_until_woken(place: Home, log: Path, go: Path, told: Path) -> None:
    with place.door(Model(log=log, holds=True, go_file=go)) as door:
        told.write_text(door.post(NARRATIVE).text, encoding="utf-8")
    os._exit(0)


def test_a_worker_that_slept_past_its_lease_stores_nothing_more(
    place: Home, tmp_path: Path, redis_client: redis.Redis, ends: ExitStack
) -> None:
    """Another one has taken the conversation on meanwhile, and that is what stays."""
    log, go, told = (tmp_path / name for name in ("calls", "go", "told"))
    child = multiprocessing.get_context("fork").Process(target=run_until_woken, args=(place, log, go, told))
    child.start()
    ends.callback(child.kill)
    assert child.pid
    until(lambda: calls(log) == 1)
    os.kill(child.pid, signal.SIGSTOP)
    (lease,) = redis_client.keys("business-assistant:lease:*")
    assert redis_client.persist(lease)  # its time goes on when this test lets it
    with place.door(Model()) as door:
        assert door.post(OTHER_NARRATIVE).status_code == 409
        redis_client.delete(lease)
        refused = door.ask(OTHER_NARRATIVE)[-1][1]
        assert (refused["error_code"], refused["original_question"]) == ("unfinished_turn", NARRATIVE)
        retried = door.ask("/retry")[-1][1]
        assert retried["status"] == "completed"
        door.wait_idle()
        (key,) = redis_client.keys("business-assistant:context:*")
        before = (redis_client.hgetall(key), rows(door), context(door))
        go.touch()
        os.kill(child.pid, signal.SIGCONT)
        child.join(WAIT_SECONDS)
        assert child.exitcode == 0
        assert '"code":"lease_lost"' in told.read_text(encoding="utf-8")
        assert (redis_client.hgetall(key), rows(door), context(door)) == before
        assert len(door.records()) == 3
        assert door.ask(OTHER_NARRATIVE)[-1][1]["status"] == "completed"
        assert [message["content"] for message in context(door) if message["role"] == "user"] == [
            NARRATIVE,
            OTHER_NARRATIVE,
        ]
