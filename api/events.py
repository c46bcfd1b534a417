"""What a run says while it runs, and how readers get it.

The worker appends to a feed and never waits; readers follow the feed at their own pace, any number of
them, from any event on. The feed is bounded: text past MAX_FEED_BYTES is no longer kept as tokens (a
`reset` says so, and `done` carries the whole answer), while stages, citations, clarification and the one
terminal event always fit. So a slow or vanished reader costs neither a worker nor memory.
"""

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

MAX_FEED_BYTES = 256 * 1024
HEARTBEAT_SECONDS = 15.0
SEND_TIMEOUT_SECONDS = 30.0  # a reader that takes nothing for so long is gone
HEARTBEAT = b": still here\n\n"
TERMINAL = ("done", "error")
NAMES = ("created", "stage", "token", "reset", "citations", "clarification", *TERMINAL)

# One event as the OpenAPI document describes it; `data` is one JSON object.
EVENT_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "Counts from 1 within the request."},
        "event": {"type": "string", "enum": list(NAMES)},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["id", "event", "data"],
}

# Characters that JSON leaves as they are but that some readers take for the end of a line, and lone
# surrogates, which UTF-8 cannot carry.
_UNSAFE = re.compile("[\x7f\x85\u2028\u2029\ud800-\udfff]")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def line_of(data: Mapping[str, Any]) -> str:
    """One JSON object on one line, whatever its texts contain."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


@dataclass(frozen=True, slots=True)
class Event:
    """One event as sent; `number` counts from 1 within its run."""

    number: int
    name: str
    wire: bytes

    @property
    def is_terminal(self) -> bool:
        return self.name in TERMINAL


def event_of(number: int, name: str, data: Mapping[str, Any]) -> Event:
    return Event(number, name, f"id: {number}\nevent: {name}\ndata: {line_of(data)}\n\n".encode())


class Feed:
    """A run's events, in order, ending with exactly one terminal event.

    `first` counts the events that a reader has had from elsewhere: ours go on from there.
    """

    def __init__(self, max_bytes: int = MAX_FEED_BYTES, *, first: int = 0) -> None:
        self._max_bytes = max_bytes
        self._first = first
        self._events: list[Event] = []
        self._bytes = 0
        self._full = False
        self._listeners: set[Callable[[], None]] = set()
        self._guard = threading.Lock()

    def say(self, name: str, data: Mapping[str, Any]) -> None:
        """Append an event. Tokens past the bound and anything after the terminal event are dropped."""
        with self._guard:
            if self._ended() or (self._full and name in ("token", "reset")):
                return
            event = event_of(self._first + len(self._events) + 1, name, data)
            if name == "token" and self._bytes + len(event.wire) > self._max_bytes:
                self._full = True
                event = event_of(event.number, "reset", {"reason": "too_long"})
            self._events.append(event)
            self._bytes += len(event.wire)
            listeners = list(self._listeners)
        for wake in listeners:
            with suppress(RuntimeError):  # of a loop that is closed: it has no readers left
                wake()

    def after(self, number: int) -> list[Event]:
        with self._guard:
            return self._events[max(0, number - self._first) :]

    @property
    def ended(self) -> bool:
        with self._guard:
            return self._ended()

    def listen(self, wake: Callable[[], None]) -> None:
        """Call `wake`, from whatever thread, after every event from now on."""
        with self._guard:
            self._listeners.add(wake)

    def leave(self, wake: Callable[[], None]) -> bool:
        """-> whether this was the last listener of a run that goes on."""
        with self._guard:
            self._listeners.discard(wake)
            return not self._listeners and not self._ended()

    def _ended(self) -> bool:
        return bool(self._events) and self._events[-1].is_terminal


class EventStream(Response):
    """A feed as `text/event-stream`, until its terminal event or until the reader is gone.

    Written here instead of taken from a library, because the one at hand ends every stream the moment the
    server is told to stop, and a drain must let the running answers finish. Between two heartbeats lies what
    is given here, else what the app that it answers for was made with.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        feed: Feed,
        *,
        request_id: str,
        status_code: int = 200,  # by this parameter the framework knows the status for its document
        after: int = 0,
        on_abandoned: Callable[[], None] | None = None,
        heartbeat_seconds: float | None = None,
        send_timeout_seconds: float = SEND_TIMEOUT_SECONDS,
    ) -> None:
        self.status_code = status_code
        self.background = None
        self.init_headers(
            {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Request-ID": request_id}
        )
        self._feed = feed
        self._after = after
        self._on_abandoned = on_abandoned
        self._heartbeat_seconds = heartbeat_seconds
        self._send_timeout_seconds = send_timeout_seconds
        self._is_gone = False

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if self._heartbeat_seconds is None:
            self._heartbeat_seconds = heartbeat_of(scope)
        news = asyncio.Event()
        wake = _waker(asyncio.get_running_loop(), news)
        self._feed.listen(wake)
        watching = asyncio.create_task(self._watch(receive, news))
        try:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            async for chunk in self._chunks(news):
                async with asyncio.timeout(self._send_timeout_seconds):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            self._is_gone = True
        finally:
            watching.cancel()
            if self._feed.leave(wake) and self._on_abandoned:
                self._on_abandoned()

    async def _watch(self, receive: Receive, news: asyncio.Event) -> None:
        while not self._is_gone:
            message = await receive()
            self._is_gone = message["type"] == "http.disconnect"
        news.set()

    async def _chunks(self, news: asyncio.Event) -> AsyncIterator[bytes]:
        sent = self._after
        while not self._is_gone:
            news.clear()
            events = self._feed.after(sent)
            if events:
                sent = events[-1].number
                yield b"".join(event.wire for event in events)
                if events[-1].is_terminal:
                    return
                continue
            try:
                async with asyncio.timeout(self._heartbeat_seconds):
                    await news.wait()
            except TimeoutError:
                yield HEARTBEAT


def heartbeat_of(scope: Message) -> float:
    """Seconds between two heartbeats, of the app that the request came to."""
    app = scope.get("app")
    return getattr(app.state, "heartbeat_seconds", HEARTBEAT_SECONDS) if app else HEARTBEAT_SECONDS


def _waker(loop: asyncio.AbstractEventLoop, news: asyncio.Event) -> Callable[[], None]:
    """Wake the reader's loop unless it is awake already."""

    def wake() -> None:
        if not news.is_set():
            loop.call_soon_threadsafe(news.set)

    return wake
