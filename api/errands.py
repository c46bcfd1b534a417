"""Runs without a record: what ends one before its end, since nobody can come back for it.

They are those of `/v1/…`. Each ends at its next step or sentence when it takes too long, when the server is
told to end, and when its stream has lost its reader.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from langgraph.runtime import RunControl

from api.problems import Refusal


class Errands:
    """Those of one process. `seconds` is how long each may run."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._running: dict[RunControl, Callable[[], None]] = {}
        self._ends: str | None = None
        self._guard = threading.Lock()

    def begin(self, control: RunControl, ended: "Future[Any]", give_up: Callable[[], None]) -> None:
        """From now until `ended`, this one is watched. Called in the event loop.

        `give_up` tells its reader that no answer comes, where it hears nothing.
        """
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._seconds, _interrupt, control, "timeout")
        with self._guard:
            self._running[control] = give_up
            ends = self._ends
        if ends:
            _interrupt(control, ends)

        def leave(_ended: object) -> None:
            with self._guard:
                self._running.pop(control, None)
            with suppress(RuntimeError):  # of a loop that is closed
                loop.call_soon_threadsafe(timer.cancel)

        ended.add_done_callback(leave)

    def count(self) -> int:
        with self._guard:
            return len(self._running)

    def interrupt_all(self, reason: str) -> None:
        """All that run, and all that begin from now on."""
        with self._guard:
            self._ends = reason
            running = list(self._running)
        for control in running:
            _interrupt(control, reason)

    def give_up(self) -> None:
        with self._guard:
            left = list(self._running.values())
        for tell in left:
            tell()


def _interrupt(control: RunControl, reason: str) -> None:
    if not control.drain_requested:
        control.request_drain(reason)


def why_unanswered(control: RunControl, what: str) -> Refusal:
    """The problem of a run that gave no answer."""
    is_late = control.drain_reason == "timeout"
    reason = "It took longer than it may" if is_late else "It could not be processed"
    return Refusal("processing_failed", f"{reason}; send the {what} again.")
