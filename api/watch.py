"""One HTTP request seen from outside: its span, its counts, its times. Nothing of its text.

The route is the template of the path, never the path, which can name a conversation.
"""

import time
from typing import Any

from opentelemetry.propagators.textmap import Getter
from opentelemetry.trace import Span, SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from api.edge import App, Message, Origin, Receive, Scope, Send
from api.metrics import Metrics
from graph.traces import TRACER, mark_failed

UNROUTED = "unrouted"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class _Headers(Getter[Scope]):
    def get(self, carrier: Scope, key: str) -> list[str] | None:
        found = [value.decode("latin-1") for name, value in carrier["headers"] if name == key.encode()]
        return found or None

    def keys(self, carrier: Scope) -> list[str]:
        return [name.decode("latin-1") for name, _ in carrier["headers"]]


class Watch:
    """ASGI middleware, outside of all others."""

    def __init__(self, app: App, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._propagator = TraceContextTextMapPropagator()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        reply = _Reply(send)
        context = self._propagator.extract(scope, getter=_Headers())
        self._metrics.begin("http_requests_running")
        with TRACER.start_as_current_span(
            "request", context, SpanKind.SERVER, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                await self._app(scope, receive, reply.send)
            except BaseException as error:
                mark_failed(span, error)
                raise
            finally:
                self._metrics.end("http_requests_running")
                self._note(scope, reply, began)
                _describe(span, scope, reply)

    def _note(self, scope: Scope, reply: "_Reply", began: float) -> None:
        method, route = method_of(scope), route_of(scope)
        self._metrics.count("http_requests", method, route, str(reply.status))
        self._metrics.measure("http_request_duration_seconds", time.monotonic() - began, method, route)
        if reply.began is not None:
            self._metrics.measure("http_first_byte_seconds", reply.began - began, method, route)
        code = scope.get("state", {}).get("refusal")
        if code:
            self._metrics.count("refusals", code)


class _Reply:
    """Passes a response on and keeps its status, and when it began. Status 0: none was sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self.began: float | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.began = time.monotonic()
        await self._send(message)


def route_of(scope: Scope) -> str:
    """The template, as the OpenAPI document has it; one word for what matched none."""
    path = getattr(scope.get("route"), "path_format", None) or getattr(scope.get("route"), "path", None)
    return str(path) if path else UNROUTED


def method_of(scope: Scope) -> str:
    """A method is what a caller writes, so only those that exist are named."""
    method: str = scope["method"]
    return method if method in METHODS else "OTHER"


def _describe(span: Span, scope: Scope, reply: _Reply) -> None:
    if not span.is_recording():
        return
    origin: Origin | None = scope.get("state", {}).get("origin")
    known: dict[str, Any] = {
        "http.request.method": method_of(scope),
        "http.route": route_of(scope),
        "http.response.status_code": reply.status,
    }
    if origin:
        known["request.id"] = origin.request_id
        if origin.trace:
            known["request.trace"] = origin.trace
    span.update_name(f"{method_of(scope)} {route_of(scope)}")
    span.set_attributes(known)
