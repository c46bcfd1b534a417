"""The bounded pool of worker threads in which the graph runs.

A slot is reserved without waiting, before anything else of a request happens; who holds no slot starts
nothing. A signed-in caller holds a bounded number of them, so that nobody can take them all. Threads are
daemons made per job, so a hung model call can neither keep the process from ending nor leave an idle thread
behind; making one costs about a hundredth of a turn.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable
from functools import partial

from opentelemetry import context

from api.problems import too_many


class Slot:
    """The right to run one job. Freed exactly once, whatever is called how often."""

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back: Callable[[], None] | None = give_back
        self._guard = threading.Lock()

    def release(self) -> None:
        with self._guard:
            give_back, self._give_back = self._give_back, None
        if give_back:
            give_back()

    def start(self, job: Callable[[], None], name: str) -> None:
        """Run the job in a thread of its own and free the slot when it ends, or when none can start."""
        here = context.get_current()  # the request's span, so that the job's spans are within it
        try:
            threading.Thread(target=self._run, args=(job, here), name=name, daemon=True).start()
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
        return Slot(partial(self._give_back, caller))

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
