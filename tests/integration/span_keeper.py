"""Spans of this process, kept in memory. A process has one tracer provider, made where there is none."""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@contextmanager
def keep_spans() -> Iterator[InMemorySpanExporter]:
    """Every span that ends in the block."""
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        trace.set_tracer_provider(TracerProvider())
    provider, exporter = trace.get_tracer_provider(), InMemorySpanExporter()
    assert isinstance(provider, TracerProvider)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield exporter
    exporter.shutdown()


def told_by(spans: tuple[ReadableSpan, ...]) -> str:
    """All words of all spans: names, attributes, events, states."""
    return "\n".join(span.to_json() for span in spans)
