"""What is counted and measured, for Prometheus. Base units; no label comes from a user's text.

Labels are routes, methods, statuses, codes, kinds, steps and the configured model: few values each, all ours.
With several worker processes, `PROMETHEUS_MULTIPROC_DIR` lets whichever is asked tell of all.
"""

import os
from collections.abc import Mapping
from typing import Any, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

Kind = Literal["counter", "gauge", "histogram"]

# name: (kind, labels, meaning). Counters get the suffix _total.
METRICS: Mapping[str, tuple[Kind, tuple[str, ...], str]] = {
    "http_requests": ("counter", ("method", "route", "status"), "HTTP requests, by route and status"),
    "http_request_duration_seconds": ("histogram", ("method", "route"), "Until the last byte was sent"),
    "http_first_byte_seconds": ("histogram", ("method", "route"), "Until the response began"),
    "http_requests_running": ("gauge", (), "HTTP requests, open streams among them"),
    "refusals": ("counter", ("code",), "Requests refused, by problem code"),
    "turns": ("counter", ("status", "input_kind"), "Requests that the graph has ended"),
    "turn_duration_seconds": ("histogram", ("status",), "Worker start to graph end"),
    "turns_running": ("gauge", (), "Requests that the graph works on"),
    "answers": ("counter", ("kind", "degraded"), "Answers, by kind"),
    "model_tokens": ("counter", ("model", "direction"), "Tokens of models, by direction in and out"),
    "window_omitted_turns": ("counter", (), "Turns left out of what a model saw"),
}


class Metrics:
    """The measures of one app. Every method is safe from any thread."""

    def __init__(self, env: Mapping[str, str] = os.environ) -> None:
        self._folder = env.get("PROMETHEUS_MULTIPROC_DIR")
        self._registry = CollectorRegistry()
        self._made = {name: self._make(name, *row) for name, row in METRICS.items()}

    def _make(self, name: str, kind: Kind, labels: tuple[str, ...], meaning: str) -> Any:
        full = f"business_assistant_{name}"
        if kind == "counter":
            return Counter(full, meaning, labels, registry=self._registry)
        if kind == "gauge":
            return Gauge(full, meaning, labels, registry=self._registry, multiprocess_mode="livesum")
        return Histogram(full, meaning, labels, registry=self._registry, buckets=SECONDS)

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        self._of(name, labels).inc(by)

    def measure(self, name: str, seconds: float, *labels: str) -> None:
        self._of(name, labels).observe(seconds)

    def begin(self, name: str) -> None:
        self._made[name].inc()

    def end(self, name: str) -> None:
        self._made[name].dec()

    def value(self, name: str, *labels: str) -> float:
        """A gauge's or counter's value in this process."""
        found: float = self._of(name, labels)._value.get()
        return found

    def exposition(self) -> bytes:
        """All measures as text; those of all worker processes where they share a folder."""
        if self._folder is None:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, path=self._folder)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    def _of(self, name: str, labels: tuple[str, ...]) -> Any:
        made = self._made[name]
        return made.labels(*labels) if labels else made


def metrics_table() -> str:
    """The documentation's table."""
    lines = ["| metric | kind | labels | what |", "|---|---|---|---|"]
    for name, (kind, labels, meaning) in METRICS.items():
        full = f"business_assistant_{name}" + ("_total" if kind == "counter" else "")
        lines.append(f"| `{full}` | {kind} | {', '.join(labels) or '—'} | {meaning} |")
    return "\n".join(lines)
