"""The bounded pool of worker threads in which the graph runs.

A slot is reserved without waiting, before anything else of a request happens; who holds no slot starts
nothing. A signed-in caller holds a bounded number of them, so that nobody can take them all.

Threads are daemons, so a hung model call cannot keep the process from ending. One that is through waits a
moment for the next job: starting a thread waits for it to run, and the event loop, which starts the jobs,
would stand still meanwhile, on a busy machine for longer than all else it does for a request.
"""

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable
from contextvars import Context
from functools import partial

from opentelemetry import context

from api.problems import too_many

IDLE_SECONDS = 10.0  # how long a thread without a job is kept
IDLE_NAME = "worker-idle"

Jobs = queue.SimpleQueue[Callable[[], None]]


class Threads:
    """As many threads as there are jobs at once, each used again. A job that raises ends its thread."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._idle: list[Jobs] = []
        self._guard = threading.Lock()

    def run(self, job: Callable[[], None], name: str) -> None:
        """Start the job in a thread of this name. Raises RuntimeError when the system has none to give."""
        with self._guard:
            waiting = self._idle.pop() if self._idle else None
        jobs: Jobs = queue.SimpleQueue() if waiting is None else waiting
        jobs.put(partial(_run_named, job, name))
        if waiting is None:
            threading.Thread(target=self._serve, args=(jobs,), name=name, daemon=True).start()

    def idle(self) -> int:
        """How many threads wait for a job."""
        with self._guard:
            return len(self._idle)

    def _serve(self, jobs: Jobs) -> None:
        job: Callable[[], None] | None = jobs.get()
        while job is not None:
            Context().run(job)  # nothing that a job sets is there for the next one
            del job  # nor does it live on while the thread waits
            job = self._next(jobs)

    def _next(self, jobs: Jobs) -> Callable[[], None] | None:
        with self._guard:
            self._idle.append(jobs)
        try:
            return jobs.get(timeout=self._idle_seconds)
        except queue.Empty:
            with self._guard:
                if jobs in self._idle:
                    self._idle.remove(jobs)
                    return None
        return jobs.get()  # a job was given in this very moment


def _run_named(job: Callable[[], None], name: str) -> None:
    thread = threading.current_thread()
    thread.name = name
    try:
        job()
    finally:
        thread.name = IDLE_NAME


class Slot:
    """The right to run one job. Freed exactly once, whatever is called how often."""

    def __init__(self, give_back: Callable[[], None], threads: Threads) -> None:
        self._give_back: Callable[[], None] | None = give_back
        self._threads = threads
        self._guard = threading.Lock()

    def release(self) -> None:
        with self._guard:
            give_back, self._give_back = self._give_back, None
        if give_back:
            give_back()

    def start(self, job: Callable[[], None], name: str) -> None:
        """Run the job in a thread and free the slot when it ends, or when none can start."""
        here = context.get_current()  # the request's span, so that the job's spans are within it
        try:
            self._threads.run(partial(self._run, job, here), name)
        except RuntimeError:
            self.release()
            raise

    def _run(self, job: Callable[[], None], here: context.Context) -> None:
        context.attach(here)
        try:
            job()
        finally:
            self.release()


class WorkerPool:
    """At most `size` jobs at once, at most `per_caller` of one caller; the next is refused, never queued."""

    def __init__(self, size: int, *, per_caller: int | None = None) -> None:
        self.size = size
        self.per_caller = per_caller
        self._busy = 0
        self._of: Counter[Hashable] = Counter()
        self._changed = threading.Condition()
        self._threads = Threads()

    def reserve(self, caller: Hashable = None) -> Slot:
        """A slot for this caller; None is a caller without a limit of its own.

        Raises Refusal "pool_full" or "caller_limit".
        """
        with self._changed:
            if self._busy >= self.size:
                raise too_many("pool_full", self.size)
            if caller is not None and self.per_caller is not None and self._of[caller] >= self.per_caller:
                raise too_many("caller_limit", self.per_caller)
            self._busy += 1
            self._of[caller] += 1
        return Slot(partial(self._give_back, caller), self._threads)

    def busy(self) -> int:
        with self._changed:
            return self._busy

    def callers(self) -> int:
        """How many callers are remembered: those that have a job running, and nobody else."""
        with self._changed:
            return len(self._of)

    def wait_idle(self, seconds: float) -> bool:
        """Wait for every job to end; False when some still run after that many seconds."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while self._busy:
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    return not self._busy
        return True

    def _give_back(self, caller: Hashable) -> None:
        with self._changed:
            self._busy -= 1
            self._of[caller] -= 1
            if not self._of[caller]:
                del self._of[caller]
            self._changed.notify_all()
