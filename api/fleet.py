"""Several worker processes behind one listening socket: started, watched, renewed one by one, and drained.

A worker holds one end of a link and the fleet the other. Over it a worker says that it serves and, again and
again, that it still does; the end of the link tells each side that the other is gone, so that no worker
outlives its fleet. A worker is asked to leave over the link and never by a signal: a service manager may send
its own signal to every process as well, and a second one would cut answers off.
"""

import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog

SERVES, LEAVE = b"s", b"l"

log = structlog.get_logger("api")


@dataclass(frozen=True)
class Patience:
    """Seconds. `drain` is how long a worker may take to leave before it is killed."""

    drain: float = 60.0
    start: float = 120.0
    silence: float = 60.0
    first_pause: float = 0.5
    longest_pause: float = 30.0

    def pause_after(self, failures: int) -> float:
        """Before a worker is started again, when so many before it could not start one after the other."""
        return float(min(self.longest_pause, self.first_pause * 2 ** min(failures, 32)))


@dataclass
class Worker:
    """One process. Its slot is a small number of its own while it lives; a later worker has it again."""

    slot: int
    process: "subprocess.Popen[Any]"
    link: socket.socket
    heard: float
    serves: bool = False
    leaving: bool = False
    link_ended: bool = False

    def send_away(self, now: float) -> None:
        if not self.leaving:
            self.leaving, self.heard = True, now
            try:
                self.link.send(LEAVE)
            except OSError:
                self.link_ended = True  # it is ending by itself

    def patience(self, limits: Patience) -> float:
        if self.leaving:
            return limits.drain
        return limits.silence if self.serves else limits.start


StartProcess = Callable[[int, socket.socket], "subprocess.Popen[Any]"]


@dataclass
class Fleet:
    """Keeps `count` workers serving until it is told to end.

    `start_process(slot, link)` starts one that inherits the link. `on_ready` is called once, when all serve;
    `on_end(slot)` after each worker's end, before its slot is used again; `on_leaving` when the end begins.
    """

    start_process: StartProcess
    count: int
    on_ready: Callable[[], None] = lambda: None
    on_end: Callable[[int], None] = lambda _slot: None
    on_leaving: Callable[[], None] = lambda: None
    limits: Patience = field(default_factory=Patience)
    renews_on_hangup: bool = True  # else it ends, as what a terminal holds does when it is closed
    _workers: list[Worker] = field(default_factory=list)
    _outdated: list[Worker] = field(default_factory=list)
    _failures: int = 0
    _not_before: float = 0.0
    _is_ready: bool = False
    _ends: bool = False
    _code: int = 0

    def run(self) -> int:
        """Until no worker is left -> exit code: that of a worker that could not start at first, else 0."""
        with signals_as_bytes(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as told:
            while self._workers or not self._ends:
                self._fill()
                self._renew()
                self._listen(told)
                self._bury()
                self._end_the_silent()
        return self._code

    def end(self) -> None:
        """Send every worker away; called again, kill them."""
        if self._ends:
            for worker in self._workers:
                worker.process.kill()
            return
        self._ends = True
        self.on_leaving()
        for worker in self._workers:
            worker.send_away(time.monotonic())

    def renew(self) -> None:
        """Replace every worker by one that starts with the code and the settings as they are now."""
        self._outdated = [worker for worker in self._workers if not worker.leaving]

    def _fill(self) -> None:
        staying = [worker for worker in self._workers if not worker.leaving]
        while not self._ends and len(staying) < self.count and time.monotonic() >= self._not_before:
            staying.append(self._start())

    def _renew(self) -> None:
        """One at a time: a new one first, and only once it serves does an old one leave."""
        if self._ends or not self._outdated or not all(w.serves and not w.leaving for w in self._workers):
            return
        if len(self._workers) > self.count:
            self._outdated.pop(0).send_away(time.monotonic())
        else:
            self._start()

    def _start(self) -> Worker:
        taken = {worker.slot for worker in self._workers}
        slot = next(number for number in range(1, len(taken) + 2) if number not in taken)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            process = self.start_process(slot, theirs)
        worker = Worker(slot, process, ours, time.monotonic())
        self._workers.append(worker)
        log.info("worker_started", worker=slot, pid=process.pid)
        return worker

    def _listen(self, told: socket.socket) -> None:
        """What workers and signals say, for at most a second."""
        with selectors.DefaultSelector() as selector:
            selector.register(told, selectors.EVENT_READ)
            for worker in self._workers:
                if not worker.link_ended:
                    selector.register(worker.link, selectors.EVENT_READ, worker)
            ready = selector.select(1.0 if not any(w.link_ended for w in self._workers) else 0.05)
        for key, _ in ready:
            if key.data is not None:
                self._hear(key.data)
            else:
                self._obey(told.recv(64))

    def _hear(self, worker: Worker) -> None:
        try:
            said = worker.link.recv(4096)
        except OSError:
            said = b""
        if not said:
            worker.link_ended = True
            return
        if not worker.leaving:
            worker.heard = time.monotonic()
        if not worker.serves:
            worker.serves, self._failures, self._not_before = True, 0, 0.0
            self._welcome(worker)

    def _welcome(self, worker: Worker) -> None:
        log.info("worker_serves", worker=worker.slot, pid=worker.process.pid)
        if not self._is_ready and len([each for each in self._workers if each.serves]) >= self.count:
            self._is_ready = True
            self.on_ready()

    def _obey(self, signals: bytes) -> None:
        for number in signals:
            if number == signal.SIGHUP and self.renews_on_hangup:
                self.renew()
            else:
                self.end()

    def _bury(self) -> None:
        for worker in list(self._workers):
            code = worker.process.poll()
            if code is not None:
                self._workers.remove(worker)
                worker.link.close()
                self.on_end(worker.slot)
                self._reckon(worker, code)

    def _reckon(self, worker: Worker, code: int) -> None:
        """What follows from a worker's end."""
        note = log.info if worker.leaving else log.error
        note("worker_ended", worker=worker.slot, pid=worker.process.pid, code=code)
        if worker in self._outdated:
            self._outdated.remove(worker)
        if worker.leaving or worker.serves:
            return
        if not self._is_ready:  # it would fail in the same way again
            self._code = code if code > 0 else 1
            if not self._ends:
                self.end()
            return
        if self._outdated:
            self._outdated = []
            log.error("renewal_given_up")
        self._not_before = time.monotonic() + self.limits.pause_after(self._failures)
        self._failures += 1

    def _end_the_silent(self) -> None:
        now = time.monotonic()
        for worker in self._workers:
            if now - worker.heard > worker.patience(self.limits):
                log.error("worker_killed", worker=worker.slot, pid=worker.process.pid)
                worker.process.kill()


@contextmanager
def signals_as_bytes(*numbers: signal.Signals) -> Iterator[socket.socket]:
    """A socket from which each of these signals is read as one byte, for the block."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    before = {number: signal.signal(number, lambda *_: None) for number in numbers}
    wakeup = signal.set_wakeup_fd(writer.fileno())
    try:
        with reader, writer:
            yield reader
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
