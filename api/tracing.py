"""Sending spans to a collector, where an address is set. Nothing of the SDK is loaded otherwise."""

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
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise SettingsError(
            "OTEL_EXPORTER_OTLP_ENDPOINT: the exporter is missing; install "
            "opentelemetry-exporter-otlp-proto-http, or unset it."
        ) from None
    resource = Resource.create({"service.name": PACKAGE, "service.version": version_of_package()})
    provider = TracerProvider(resource=resource)
    endpoint = f"{settings.otlp_endpoint.rstrip('/')}/v1/traces"
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()
