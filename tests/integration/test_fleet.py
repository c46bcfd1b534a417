"""What keeps worker processes: started, replaced, renewed one by one, and none of them left behind.

The workers here are small programs of the same manners as the real ones.
"""

import os
import select
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import structlog

from api.fleet import Fleet, Patience, Worker

WAIT_SECONDS = 120.0

# argv: link, slot. Files in the folder tell it to misbehave: fail, crash, hush or cling, each with the slot.
WORKER = textwrap.dedent("""
    import os, select, socket, sys, time
    link, slot = socket.socket(fileno=int(sys.argv[1])), sys.argv[2]
    told = lambda what: os.path.exists(what + slot)
    if told("fail"):
        sys.exit(3)
    while True:
        if not told("hush"):
            link.send(b"s")
        if told("crash"):
            os.unlink("crash" + slot)
            os.abort()
        if select.select([link], [], [], 0.05)[0]:
            while told("cling"):
                link.send(b"s")
                time.sleep(0.05)
            sys.exit(0)
""")


class Small:
    """A fleet of small workers in a folder, and a record of what it did."""

    def __init__(self, folder: Path, count: int = 2, **limits: float) -> None:
        self.folder = folder
        self.started: list[tuple[int, int]] = []  # (slot, pid)
        self.said: list[str] = []
        self.steps: list[Callable[[], None]] = []
        self.fleet = Fleet(
            self._start,
            count,
            on_ready=lambda: self.said.append("ready"),
            on_end=lambda slot: self.said.append(f"end {slot}"),
            on_leaving=lambda: self.said.append("leaving"),
            limits=Patience(**{"first_pause": 0.01, **limits}),
        )

    def _start(self, slot: int, link: socket.socket) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", WORKER, str(link.fileno()), str(slot)],
            pass_fds=(link.fileno(),),
            cwd=self.folder,
            stderr=subprocess.DEVNULL,
        )
        self.started.append((slot, process.pid))
        return process

    def tell(self, what: str) -> None:
        (self.folder / what).touch()

    def run(self, *course: Callable[[], Any]) -> int:
        """Run it; meanwhile do one thing after the other, then end it with a signal."""
        fault: list[BaseException] = []
        ended = threading.Event()

        def drive() -> None:
            try:
                for step in course:
                    step()
            except BaseException as error:  # noqa: BLE001 - raised below, in the test's own thread
                fault.append(error)
            os.kill(os.getpid(), signal.SIGTERM)
            if not ended.wait(WAIT_SECONDS):
                fault.append(AssertionError("the fleet did not end"))
                for _, pid in self.started:
                    psutil.Process(pid).kill()

        driver = threading.Thread(target=drive)
        before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it may come after the end
        driver.start()
        try:
            code = self.fleet.run()
        finally:
            ended.set()
            driver.join()
            assert signal.signal(signal.SIGTERM, before) == signal.SIG_IGN
        if fault:
            raise fault[0]
        assert not [pid for _, pid in self.started if psutil.pid_exists(pid)]
        return code

    def until(self, condition: Callable[[], Any]) -> Callable[[], None]:
        def wait() -> None:
            deadline = time.monotonic() + WAIT_SECONDS
            while not condition():
                assert time.monotonic() < deadline, (self.started, self.said)
                time.sleep(0.01)

        return wait

    @property
    def ready(self) -> Callable[[], None]:
        return self.until(lambda: "ready" in self.said)


@pytest.fixture(autouse=True)
def logged() -> Any:
    with structlog.testing.capture_logs() as lines:
        yield lines


def hang_up() -> None:
    os.kill(os.getpid(), signal.SIGHUP)


def test_it_is_ready_once_and_leaves_nobody_behind(tmp_path: Path) -> None:
    small = Small(tmp_path, 3)
    assert small.run(small.ready) == 0
    assert [slot for slot, _ in small.started] == [1, 2, 3]
    assert small.said[:2] == ["ready", "leaving"]
    assert sorted(small.said[2:]) == ["end 1", "end 2", "end 3"]


def test_a_worker_that_cannot_start_at_first_ends_all_with_its_code(tmp_path: Path) -> None:
    small = Small(tmp_path)
    small.tell("fail2")
    assert small.run(small.until(lambda: "end 1" in small.said)) == 3
    assert "ready" not in small.said
    assert len(small.started) == 2


def test_a_worker_that_dies_is_replaced_in_its_slot(tmp_path: Path) -> None:
    small = Small(tmp_path)
    replaced = small.until(lambda: len(small.started) == 3)
    assert small.run(small.ready, lambda: small.tell("crash1"), replaced) == 0
    assert small.started[2][0] == 1
    assert small.said.index("end 1") < small.said.index("leaving")


def test_pauses_grow_up_to_a_bound() -> None:
    pauses = [Patience(first_pause=0.5, longest_pause=30.0).pause_after(n) for n in (0, 1, 2, 6, 10_000)]
    assert pauses == [0.5, 1.0, 2.0, 30.0, 30.0]


def test_a_replacement_that_cannot_start_is_tried_again_after_a_pause(tmp_path: Path) -> None:
    asked: list[int] = []

    class Noted(Patience):
        def pause_after(self, failures: int) -> float:
            asked.append(failures)
            return 0.01

    small = Small(tmp_path)
    small.fleet.limits = Noted()
    course = (
        small.ready,
        lambda: small.tell("fail1"),
        lambda: small.tell("crash1"),
        small.until(lambda: len(small.started) >= 5),
        lambda: (tmp_path / "fail1").unlink(),
        small.until(lambda: small.fleet._failures == 0),
    )
    assert small.run(*course) == 0
    assert {slot for slot, _ in small.started[2:]} == {1}
    assert asked[:2] == [0, 1]


def test_a_silent_worker_is_killed_and_replaced(tmp_path: Path, logged: list[Any]) -> None:
    small = Small(tmp_path, silence=0.5)
    quiet = lambda: small.tell("hush2")  # noqa: E731
    course = (small.ready, quiet, small.until(lambda: "end 2" in small.said), (tmp_path / "hush2").unlink)
    assert small.run(*course) == 0
    assert {"worker_killed"} <= {line["event"] for line in logged}


def test_a_fleet_that_was_asleep_takes_nobody_for_silent(tmp_path: Path, logged: list[Any]) -> None:
    """What workers said meanwhile is heard before anybody's silence is measured."""
    small = Small(tmp_path)
    listen = small.fleet._listen

    def sleep_and_listen(told: socket.socket) -> None:
        sleeps = "ready" in small.said and "slept" not in small.said
        for worker in small.fleet._workers if sleeps else []:
            assert select.select([worker.link], [], [], WAIT_SECONDS)[0]
            worker.heard -= 2 * small.fleet.limits.silence
        listen(told)
        if sleeps:
            small.said.append("slept")

    small.fleet._listen = sleep_and_listen  # type: ignore[method-assign]
    assert small.run(small.ready, small.until(lambda: "slept" in small.said)) == 0
    assert not [line for line in logged if line["event"] == "worker_killed"]


def test_renewal_lets_an_old_one_go_only_when_a_new_one_serves(tmp_path: Path) -> None:
    small = Small(tmp_path)
    least: list[int] = []
    bury = small.fleet._bury

    def watch() -> None:
        bury()
        serving = [worker for worker in small.fleet._workers if worker.serves and not worker.leaving]
        if "ready" in small.said and "leaving" not in small.said:
            least.append(len(serving))

    small.fleet._bury = watch  # type: ignore[method-assign]
    renewed = small.until(
        lambda: len(small.started) == 4 and not small.fleet._outdated and len(small.fleet._workers) == 2
    )
    assert small.run(small.ready, hang_up, renewed) == 0
    assert min(least) >= 2
    assert {pid for _, pid in small.started[:2]}.isdisjoint(pid for _, pid in small.started[2:])
    assert max(slot for slot, _ in small.started) == 3  # slots are used again


def test_a_renewal_that_fails_leaves_the_old_ones(tmp_path: Path, logged: list[Any]) -> None:
    small = Small(tmp_path)
    given_up = small.until(lambda: any(line["event"] == "renewal_given_up" for line in logged))
    assert small.run(small.ready, lambda: small.tell("fail3"), hang_up, given_up) == 0
    assert [slot for slot, _ in small.started] == [1, 2, 3]
    assert small.said.index("leaving") < small.said.index("end 1")


def test_in_a_terminal_a_hang_up_ends_it(tmp_path: Path) -> None:
    small = Small(tmp_path)
    small.fleet.renews_on_hangup = False
    assert small.run(small.ready, hang_up, small.until(lambda: "leaving" in small.said)) == 0
    assert len(small.started) == 2


def test_who_clings_is_killed_when_its_time_is_over(tmp_path: Path) -> None:
    small = Small(tmp_path, drain=0.3)
    small.tell("cling1")
    assert small.run(small.ready) == 0


def test_what_a_leaving_worker_says_buys_it_no_time(tmp_path: Path) -> None:
    small = Small(tmp_path)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        leaving = Worker(1, object(), ours, heard=0.0, serves=True, leaving=True)  # type: ignore[arg-type]
        theirs.send(b"s")
        small.fleet._hear(leaving)
        assert leaving.heard == 0.0


def test_the_second_signal_waits_for_nobody(tmp_path: Path) -> None:
    small = Small(tmp_path, drain=600.0)
    small.tell("cling1")
    small.tell("cling2")
    leave = lambda: os.kill(os.getpid(), signal.SIGINT)  # noqa: E731
    assert small.run(small.ready, leave, small.until(lambda: "leaving" in small.said)) == 0
