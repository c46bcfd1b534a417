"""Spans of what a request does: its steps, model calls and Redis calls. Without an SDK they cost nothing.

Names and attributes only as in SPANS: no text of a user's, no body, no key. Model spans follow
OpenTelemetry's GenAI conventions with bodies off, Redis spans its database conventions without keys and
values.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from nodes.contracts import Generated, Prompt, Provider

# name: (kind, attributes, what it spans)
SPANS: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "{method} {route}": (
        "server",
        ("http.request.method", "http.route", "http.response.status_code", "request.id", "request.trace",
         "error.type"),
        "One HTTP request, to the last byte of its stream. Continues the caller's `traceparent`.",
    ),
    "step {step}": ("internal", ("step.name", "error.type"), "One step of the graph."),
    "chat {model}": (
        "client",
        ("gen_ai.operation.name", "gen_ai.request.model", "gen_ai.response.model",
         "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "error.type"),
        "One answer of a model, to its last piece.",
    ),
    "redis {command}": (
        "client",
        ("db.system.name", "db.operation.name", "error.type"),
        "One round trip to Redis; a transaction is one.",
    ),
}  # fmt: skip


TRACER = trace.get_tracer("business-assistant")


def spans_table() -> str:
    """The documentation's table."""
    lines = ["| span | kind | attributes | what |", "|---|---|---|---|"]
    for name, (kind, attributes, meaning) in SPANS.items():
        names = ", ".join(f"`{attribute}`" for attribute in attributes)
        lines.append(f"| `{name}` | {kind} | {names} | {meaning} |")
    return "\n".join(lines)


def step_span(name: str) -> AbstractContextManager[Span]:
    """Around one step. An error's message may quote the user, so only its type is recorded."""
    return _spanning(f"step {name}", SpanKind.INTERNAL, {"step.name": name})


class TracedProvider:
    """A provider whose answers are spans. Everything else of it is the provider's own."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self.name = provider.name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    def stream(self, prompt: Prompt) -> Iterator[Generated]:
        # The span is never the current one: a generator is advanced from wherever its reader is.
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": self.name}
        span = TRACER.start_span(f"chat {self.name}", kind=SpanKind.CLIENT, attributes=attributes)
        try:
            for piece in self._provider.stream(prompt):
                if piece.usage is not None:
                    span.set_attribute("gen_ai.response.model", piece.usage["model"])
                    span.set_attribute("gen_ai.usage.input_tokens", piece.usage["prompt_tokens"])
                    span.set_attribute("gen_ai.usage.output_tokens", piece.usage["completion_tokens"])
                yield piece
        except Exception as error:
            mark_failed(span, error)
            raise
        finally:
            span.end()


def watch_redis(client: Any) -> None:
    """Make a span of each round trip of this client, and of each of its pipelines."""
    client.execute_command = _watched(client.execute_command, lambda args: str(args[0]))
    make_pipeline = client.pipeline

    def pipeline(*args: Any, **options: Any) -> Any:
        made = make_pipeline(*args, **options)
        made.execute = _watched(made.execute, lambda _args: "MULTI")
        return made

    client.pipeline = pipeline


def mark_failed(span: Span, error: BaseException) -> None:
    span.set_attribute("error.type", type(error).__name__)
    span.set_status(Status(StatusCode.ERROR))


def _watched(call: Callable[..., Any], command_of: Callable[[tuple[Any, ...]], str]) -> Callable[..., Any]:
    def watched(*args: Any, **options: Any) -> Any:
        command = command_of(args).split(" ", 1)[0].upper()
        attributes = {"db.system.name": "redis", "db.operation.name": command}
        with _spanning(f"redis {command}", SpanKind.CLIENT, attributes):
            return call(*args, **options)

    return watched


class _spanning(AbstractContextManager[Span]):  # noqa: N801 - used as a function
    """The tracer's own context manager would record an exception with its message."""

    def __init__(self, name: str, kind: SpanKind, attributes: Mapping[str, str]) -> None:
        self._made = TRACER.start_as_current_span(
            name, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
        )

    def __enter__(self) -> Span:
        self._span = self._made.__enter__()
        return self._span

    def __exit__(self, kind: Any, error: BaseException | None, where: Any) -> None:
        if error is not None:
            mark_failed(self._span, error)
        self._made.__exit__(kind, error, where)
