"""Sending spans to a collector, where an address is set. Nothing of the SDK is loaded otherwise.

The SDK reads further variables by itself (docs/operations.md), from the environment and not from `.env`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace

from api.health import PACKAGE, version_of_package
from graph.settings import Settings, SettingsError


@contextmanager
def exporting_spans(settings: Settings) -> Iterator[None]:
    """Export for the block, and what is left at its end. Raises SettingsError without an exporter."""
    if settings.otlp_endpoint is None:
        yield
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise SettingsError(
            "OTEL_EXPORTER_OTLP_ENDPOINT: the exporter is missing; install business-assistant[otlp], "
            "or unset it."
        ) from None
    # What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say goes before what we call ourselves.
    named = OTELResourceDetector().detect().attributes
    ours = {"service.name": PACKAGE, "service.version": version_of_package(), **named}
    provider = TracerProvider(resource=Resource.create(ours))
    endpoint = f"{settings.otlp_endpoint.rstrip('/')}/v1/traces"
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()
