"""What every request meets first: its id, its time, and the bounds of its body.

The time is taken before a byte of the body is read. The body is read here, whole but bounded in size and
time, so nothing behind this point waits for a client. What no other part handled ends here as a problem.
"""

import asyncio
import re
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import structlog

from api.connections import MAX_HEAD_BYTES
from api.problems import Refusal, problem_response
from nodes.contracts import Clock, NewId

MAX_BODY_BYTES = 64 * 1024
BODY_TIMEOUT_SECONDS = 20.0
LINE_ENDS = 2  # bytes between the parts of a head: a colon and a blank, or the end of a line

_TRACE = re.compile(rb"[\x21-\x7e]{1,128}")
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = structlog.get_logger("api")


@dataclass(frozen=True)
class Origin:
    """What is known of a request before it is read. `trace` is the caller's own id for it, if any."""

    request_id: str
    received_at: str
    path: str
    trace: str | None


class Arrivals:
    """How long the bodies of requests are waited for: each for `seconds`, and none when the server has left.

    Used in the server's event loop only.
    """

    def __init__(self, seconds: float = BODY_TIMEOUT_SECONDS) -> None:
        self._seconds = seconds
        self._awaited: set[asyncio.Timeout] = set()
        self._last: float | None = None  # on the loop's clock

    @property
    def is_last(self) -> bool:
        """Whether the server leaves, so that no connection is used again."""
        return self._last is not None

    def end_in(self, seconds: float) -> None:
        """The server leaves: what has not arrived by then is refused, so that it can be sent elsewhere."""
        self._last = last = asyncio.get_running_loop().time() + seconds
        for wait in self._awaited:
            if not wait.expired():
                wait.reschedule(min(last, wait.when() or last))

    async def body_of(self, receive: Receive) -> bytes:
        """The whole body, or a Refusal as soon as it is known to be too large or too slow."""
        latest = asyncio.get_running_loop().time() + self._seconds
        try:
            async with asyncio.timeout_at(latest if self._last is None else min(latest, self._last)) as wait:
                self._awaited.add(wait)
                try:
                    return await _read(receive)
                finally:
                    self._awaited.discard(wait)
        except TimeoutError:
            raise Refusal(
                "shutting_down" if self.is_last else "body_timeout", headers={"Connection": "close"}
            ) from None


class Edge:
    """ASGI middleware; puts an Origin into the request's state and X-Request-ID on every response."""

    def __init__(self, app: App, *, clock: Clock, new_id: NewId, arrivals: Arrivals | None = None) -> None:
        self._app = app
        self._clock = clock
        self._new_id = new_id
        self._arrivals = arrivals or Arrivals()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = quote(scope["path"], errors="replace")
        origin = Origin(self._new_id(), self._clock(), path, _trace_of(scope))
        scope.setdefault("state", {})["origin"] = origin
        reply = _Reply(send, origin, self._arrivals)
        try:
            _check_head(scope)
            body = await self._read_body(scope, receive)
            await self._app(scope, _replay(body, receive), reply.send)
        except Refusal as refusal:
            await reply.refuse(refusal, scope, receive)
        except ClientGoneError:
            log.info("request_abandoned", request_id=origin.request_id)
        except Exception as error:  # noqa: BLE001 - the outermost boundary; the fault is logged by type and place
            _log_fault(error, origin)
            await reply.refuse(Refusal("internal_error"), scope, receive)

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes:
        declared = _header(scope, b"content-length") or b"0"
        if declared.isdigit() and int(declared) > MAX_BODY_BYTES:
            raise _too_large()
        body = await self._arrivals.body_of(receive)
        if body and not _is_json(_header(scope, b"content-type") or b""):
            raise Refusal("unsupported_media_type")
        if body and _is_encoded(scope):
            raise _no_encoding()
        return body


def _check_head(scope: Scope) -> None:
    """However its bytes came, at once or in pieces, a head is bounded and names one host."""
    words = [scope.get(name, "") for name in ("method", "raw_path", "query_string")]
    lines = [words, *scope["headers"]]
    if sum(len(part) + LINE_ENDS for line in lines for part in line) > MAX_HEAD_BYTES:
        raise Refusal("head_too_large", headers={"Connection": "close"})
    if sum(name == b"host" for name, _ in scope["headers"]) > 1:
        raise Refusal("bad_request", headers={"Connection": "close"})


class ClientGoneError(Exception):
    """The connection ended before its request was read, or answered."""


class _Reply:
    """Passes a response on with our headers, and knows whether one has begun."""

    def __init__(self, send: Send, origin: Origin, arrivals: Arrivals) -> None:
        self._send = send
        self._origin = origin
        self._arrivals = arrivals
        self._has_begun = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._has_begun = True
            headers = list(message.get("headers", ()))
            if all(name != b"x-request-id" for name, _ in headers):
                # A stream names the request it tells of, which may be an earlier one that this repeats.
                headers.append((b"x-request-id", self._origin.request_id.encode()))
            if self._arrivals.is_last and all(name != b"connection" for name, _ in headers):
                headers.append((b"connection", b"close"))
            message["headers"] = [*headers, *_HEADERS]
        await self._send(message)

    async def refuse(self, refusal: Refusal, scope: Scope, receive: Receive) -> None:
        """Nothing can be said once a response has begun; the server then closes the connection."""
        if not self._has_begun:
            scope["state"]["refusal"] = refusal.code
            log_refusal(refusal, self._origin)
            response = problem_response(
                refusal, request_id=self._origin.request_id, instance=self._origin.path
            )
            await response(scope, receive, self.send)


def log_refusal(refusal: Refusal, origin: Origin) -> None:
    """Refused requests are logged without anything of their text; the caller's own id is text of theirs."""
    log.info("request_refused", request_id=origin.request_id, code=refusal.code)


def _log_fault(error: Exception, origin: Origin) -> None:
    """Type and place; a message may quote the user, so it stays out."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    log.error(
        "request_fault",
        request_id=origin.request_id,
        error=type(error).__name__,
        at=[f"{frame.name}:{frame.lineno}" for frame in frames],
    )


async def _read(receive: Receive) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > MAX_BODY_BYTES:
            raise _too_large()
        if not message.get("more_body", False):
            return b"".join(chunks)


def _replay(body: bytes, receive: Receive) -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


def _too_large() -> Refusal:
    # What is left of the body is not read, so the connection cannot be used again.
    return Refusal("body_too_large", headers={"Connection": "close"})


def _no_encoding() -> Refusal:
    """A small compressed body can be a huge one; what is not taken is not unpacked either."""
    return Refusal(
        "unsupported_media_type",
        "Send the body as it is, without Content-Encoding.",
        headers={"Accept-Encoding": "identity"},
    )


def _is_encoded(scope: Scope) -> bool:
    kinds = (value for name, value in scope["headers"] if name == b"content-encoding")
    return any(kind.strip().lower() not in (b"", b"identity") for kind in kinds)


def _is_json(content_type: bytes) -> bool:
    # Asking for this type also keeps other sites' forms out: browsers send it across sites only when allowed.
    kind = content_type.split(b";")[0].strip().lower()
    return kind == b"application/json" or (kind.startswith(b"application/") and kind.endswith(b"+json"))


def _trace_of(scope: Scope) -> str | None:
    value = _header(scope, b"x-request-id") or b""
    return value.decode("ascii") if _TRACE.fullmatch(value) else None


def _header(scope: Scope, name: bytes) -> bytes | None:
    return next((value for key, value in scope["headers"] if key == name), None)
