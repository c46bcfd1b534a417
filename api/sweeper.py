"""Closes the records of requests whose process died, every so often, from whichever server is up.

A thread of its own, because a walk over all threads is long and nobody waits for it. It takes at most a
twentieth of the time: after a long walk it rests longer.
"""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

import structlog

from api.turnlog import log_fault
from checkpoint.errors import CheckpointUnavailable

REST_SECONDS = 30.0
REST_PER_WALK = 20

log = structlog.get_logger("api")


class Sweeper:
    """Calls `sweep(now)` at once and then again and again until closed."""

    def __init__(
        self, sweep: Callable[[Callable[[], datetime]], int], rest_seconds: float = REST_SECONDS
    ) -> None:
        self._sweep = sweep
        self._rest_seconds = rest_seconds
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="record-sweeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Ask it to end; a walk under way is not waited for, since each of its repairs is whole."""
        self._closed.set()
        self._thread.join(timeout=1)

    def _run(self) -> None:
        rest = 0.0
        while not self._closed.wait(rest):
            began = time.monotonic()
            try:
                repaired = self._sweep(lambda: datetime.now(UTC))
            except CheckpointUnavailable:
                log.warning("sweep_postponed")
            except Exception as error:  # noqa: BLE001 - the next walk must come whatever this one met
                log_fault("sweep_fault", "", error)
            else:
                if repaired:
                    log.info("records_repaired", count=repaired)
            rest = max(self._rest_seconds, REST_PER_WALK * (time.monotonic() - began))
