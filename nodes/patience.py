"""How long a reply is waited for: until the turn is stopped, whatever the model does meanwhile.

A model may think for a minute before its first word, or hang. So another thread asks it for each piece, and
the turn looks up while it waits. What a model says after it was given up is read by nobody.
"""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from contextvars import copy_context
from typing import Any

from nodes.contracts import Generated

LOOK_UP_SECONDS = 0.05
CLOSE_SECONDS = 1.0  # how long it may take to end a reply between two pieces

End = tuple[BaseException | None]  # how the pieces ended


class Awaited:
    """The pieces of one reply, in order, as an iterator that ends early once `stopped`.

    `ask` is called, and each piece is asked for when it is wanted, in a thread of its own and in a copy of
    this context. An error is raised here.
    """

    def __init__(self, ask: Callable[[], Iterator[Generated]], stopped: Callable[[], bool]) -> None:
        self._ask = ask
        self._stopped = stopped
        self._wanted: queue.SimpleQueue[bool] = queue.SimpleQueue()  # False: nothing more
        self._said: queue.SimpleQueue[Generated | End] = queue.SimpleQueue()
        self._is_due = False
        read = copy_context().run
        self._reader = threading.Thread(target=read, args=(self._read,), name="reply", daemon=True)

    def __iter__(self) -> Iterator[Generated]:
        if self._stopped():
            return
        self._reader.start()
        while (said := self._next()) is not None:
            if not isinstance(said, tuple):
                yield said
                continue
            if said[0] is not None:
                raise said[0]
            return

    def close(self) -> None:
        """End the reply. A model that owes a piece is left behind; its thread ends when it gives it."""
        self._wanted.put(False)
        if not self._is_due and self._reader.is_alive():
            self._reader.join(CLOSE_SECONDS)

    def _next(self) -> Generated | End | None:
        self._is_due = True
        self._wanted.put(True)
        while not self._stopped():
            try:
                said = self._said.get(timeout=LOOK_UP_SECONDS)
            except queue.Empty:
                continue
            self._is_due = False
            return said
        return None

    def _read(self) -> None:
        self._said.put((self._end(),))

    def _end(self) -> BaseException | None:
        """Say each piece that is wanted. -> what ended them, if it was an error."""
        try:
            with ExitStack() as stack:
                pieces: Any = self._ask()
                if hasattr(pieces, "close"):
                    stack.callback(pieces.close)
                piece: Any = iter(pieces)
                while self._wanted.get():
                    self._said.put(next(piece))
        except StopIteration:
            return None
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            return error
        return None
