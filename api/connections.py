"""Which connections are kept, and for how long: those that say nothing cost neither a slot nor a place.

The server below has no limit to how long a first request may take to come, so it is here: a connection has
`idle_seconds` for the head of each request, bytes that trickle in do not buy more, and what it is sent must
move. A full house makes room by ending the connection that has been silent for longest, so that ten thousand
silent ones keep nobody out; only where every connection is being answered is a new one turned away.

A server that leaves still reads and answers what has come: ending a connection with a request in it unread
would be a reset to its sender, who was taken in like everybody else.
"""

import asyncio
import resource
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, ClassVar

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from api.problems import Refusal, problem_response
from nodes.contracts import NewId

MAX_HEAD_BYTES = 32 * 1024
MOST_WAITING = 2048  # connections that the system keeps for us to accept, and that we accept at once
RESERVED_FILES = 512  # for Redis, the database, the knowledge and their like
SETTLE_SECONDS = 0.1  # in which a server that leaves reads what has come to its silent connections


@dataclass
class House:
    """The connections of one server. Used in its event loop only."""

    limit: int
    idle_seconds: float
    new_id: NewId
    on_ended: Callable[[str], None] = lambda _reason: None
    last_call: float | None = None  # seconds for a first request to come, once the server leaves
    silent: "dict[KeptConnection, None]" = field(default_factory=dict)  # longest silent first
    answered: "set[KeptConnection]" = field(default_factory=set)

    def enter(self, connection: "KeptConnection") -> bool:
        """False when there is no room and none can be made."""
        if len(self.silent) + len(self.answered) >= self.limit and not self._make_room():
            self.on_ended("full")
            return False
        self.silent[connection] = None
        return True

    def hears(self, connection: "KeptConnection") -> None:
        """A whole head has come."""
        self.silent.pop(connection, None)
        self.answered.add(connection)

    def has_answered(self, connection: "KeptConnection") -> None:
        if connection in self.answered:
            self.answered.remove(connection)
            self.silent[connection] = None

    def leave(self, connection: "KeptConnection") -> None:
        self.silent.pop(connection, None)
        self.answered.discard(connection)

    def _make_room(self) -> bool:
        longest = next(iter(self.silent), None)
        if longest is None:
            return False
        self.leave(longest)
        longest.end("room")
        return True


class KeptConnection:
    """What a connection of the server below learns: put before either of its two HTTP protocols."""

    house: ClassVar[House]
    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    cycle: Any  # the request being answered, or answered last

    _since = 0.0  # when it was last answered, or came
    _head_bytes = 0
    _unsent = 0
    _watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)  # type: ignore[misc]
        if not self.house.enter(self):
            self._refuse(Refusal("too_many_connections"))
        self._since = self.loop.time()
        self._look_in(self.house.idle_seconds)
        if self.house.last_call is not None:
            self.shutdown()

    def connection_lost(self, error: Exception | None) -> None:
        if self._watch:
            self._watch.cancel()
        self.house.leave(self)
        super().connection_lost(error)  # type: ignore[misc]

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return  # it was turned away
        self._head_bytes += len(data)
        super().data_received(data)  # type: ignore[misc]
        if self._is_answered():
            self._head_bytes = 0
            self.house.hears(self)
            return
        if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse(Refusal("head_too_large"))

    def on_response_complete(self) -> None:
        super().on_response_complete()  # type: ignore[misc]
        self._since, self._unsent = self.loop.time(), self.transport.get_write_buffer_size()
        if not self._is_answered():
            self.house.has_answered(self)

    def send_400_response(self, _message: str) -> None:
        """What the server below answers to bytes that are no HTTP, as a problem like any other."""
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.close()
        else:
            is_long = self._head_bytes > MAX_HEAD_BYTES and not self._is_answered()
            self._refuse(Refusal("head_too_large" if is_long else "bad_request"))

    def shutdown(self) -> None:
        """The server leaves: what is being answered is the last, and who said nothing yet still may."""
        if self._is_answered():
            super().shutdown()  # type: ignore[misc]
        else:
            self.loop.call_later(max(SETTLE_SECONDS, self._rest_of_last_call()), self._take_leave)

    def _rest_of_last_call(self) -> float:
        """One that was answered has none: it may be ended at any time between two requests."""
        if self.cycle is not None and not self._head_bytes:
            return 0.0
        since = self.loop.time() if self._head_bytes else self._since
        return since + (self.house.last_call or 0.0) - self.loop.time()

    def _take_leave(self) -> None:
        """A request that has come by now is answered, which ends the connection."""
        if self.transport.is_closing():
            return
        if self._head_bytes:
            self._refuse(Refusal("shutting_down"))
        else:
            super().shutdown()  # type: ignore[misc]

    def end(self, reason: str) -> None:
        self.house.on_ended(reason)
        self.transport.abort()

    def _is_answered(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _look_in(self, seconds: float) -> None:
        self._watch = self.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        """End it if it has been silent for too long, or no longer takes what it was sent."""
        unsent, before = self.transport.get_write_buffer_size(), self._unsent
        self._unsent = unsent
        silence = self.loop.time() - self._since
        if 0 < unsent < before:
            self._look_in(self.house.idle_seconds)
        elif self.transport.is_closing():
            self.end("stuck")
        elif self._is_answered():
            self._look_in(self.house.idle_seconds)
        elif silence < self.house.idle_seconds:
            self._look_in(self.house.idle_seconds - silence)
        elif self._head_bytes:
            self.house.on_ended("slow")
            self._refuse(Refusal("head_timeout"))
            self._look_in(self.house.idle_seconds)
        else:
            self.end("silent")

    def _refuse(self, refusal: Refusal) -> None:
        """Said past the server below, which has no request to answer; nothing more is heard after it."""
        self.transport.write(response_of(refusal, self.house.new_id()))
        self.transport.close()


def protocol_in(house: House, below: type[Any] = AutoHTTPProtocol) -> type[asyncio.Protocol]:
    """The class of connections that uvicorn makes one of for each."""
    return type("Connection", (KeptConnection, below), {"house": house})


def response_of(refusal: Refusal, request_id: str) -> bytes:
    """A whole HTTP response with the problem, after which the connection ends."""
    response = problem_response(refusal, request_id=request_id, instance="/")
    status = HTTPStatus(response.status_code)
    headers = [*response.raw_headers, (b"x-request-id", request_id.encode()), (b"connection", b"close")]
    head = b"".join(b"%b: %b\r\n" % header for header in headers)
    line = f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode()
    return line + head + b"\r\n" + bytes(response.body)


@dataclass(frozen=True)
class Places:
    """How many connections may be open, and how many may wait to be accepted."""

    kept: int
    waiting: int


def places_for(wanted: int, files: int) -> Places:
    """What a process with so many open files can do: a share is for what waits, another for our own needs."""
    waiting = min(MOST_WAITING, max(16, files // 8))
    reserved = min(RESERVED_FILES, files // 4)
    return Places(max(8, min(wanted, files - waiting - reserved)), waiting)


def allow_files(wanted: int) -> int:
    """Raise this process's limit of open files as far as may be. -> what it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return wanted if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most
