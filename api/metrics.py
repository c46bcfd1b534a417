"""What is counted and measured, for Prometheus. Base units; no label comes from a user's text.

Labels are routes, methods, statuses, codes, kinds, steps and the configured model: few values each, all ours.
With several worker processes, files in a folder that they share (`PROMETHEUS_MULTIPROC_DIR`) let whichever
is asked tell of all. A file is named after a worker's slot, which a later worker has again: so counters go on
where an ended worker left them, and there are never more files than workers. Only its gauges are dropped.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

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
    "connections_ended": ("counter", ("reason",), "Connections ended by us: silent, slow, stuck, room, full"),
    "requests_broken_off": ("counter", ("code",), "Accepted requests whose end could not be stored"),
    "turns": ("counter", ("status", "input_kind"), "Requests that the graph has ended"),
    "turn_duration_seconds": ("histogram", ("status",), "Worker start to graph end"),
    "turns_running": ("gauge", (), "Requests that the graph works on"),
    "turns_limit": ("gauge", (), "Requests that it may work on at once: `MAX_WORKERS` of every process"),
    "workers": ("gauge", (), "Processes that serve"),
    "answers": ("counter", ("kind", "degraded"), "Answers, by kind"),
    "model_tokens": ("counter", ("model", "direction"), "Tokens of models, by direction in and out"),
    "window_omitted_turns": ("counter", (), "Turns left out of what a model saw"),
}


class Metrics:
    """The measures of one app. Every method is safe from any thread."""

    def __init__(self, env: Mapping[str, str] = os.environ) -> None:
        self._folder = env.get("PROMETHEUS_MULTIPROC_DIR")
        if self._folder:
            Path(self._folder).mkdir(parents=True, exist_ok=True, mode=0o700)
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

    def set(self, name: str, value: float) -> None:
        """A gauge's value in this process. Those of all worker processes are told as their sum."""
        self._made[name].set(value)

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
        if not self._folder:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, path=self._folder)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    def _of(self, name: str, labels: tuple[str, ...]) -> Any:
        made = self._made[name]
        return made.labels(*labels) if labels else made


@contextmanager
def metrics_folder(home: Path) -> Iterator[Path]:
    """A new folder for the measures of several processes, removed at the end.

    Those of services that were killed are removed too: their locks are free.
    """
    folders = home / "metrics"
    folders.mkdir(parents=True, exist_ok=True, mode=0o700)
    for left in folders.iterdir():
        with (left / "lock").open("a") as file:
            if _is_free(file):
                shutil.rmtree(left)
    folder = Path(mkdtemp(dir=folders))
    with (folder / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)


def share_metrics(slot: int) -> None:
    """Before any `Metrics` is made in a worker process: its measures go into the files of its slot."""
    values.ValueClass = values.MultiProcessValue(process_identifier=lambda: slot)  # type: ignore[no-untyped-call]


def forget_worker(folder: Path, slot: int) -> None:
    """After a worker's end: what it was doing is done by nobody. What it counted stays counted."""
    mark_process_dead(slot, str(folder))  # type: ignore[no-untyped-call]


def _is_free(file: Any) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def metrics_table() -> str:
    """The documentation's table."""
    lines = ["| metric | kind | unit | labels | what |", "|---|---|---|---|---|"]
    for name, (kind, labels, meaning) in METRICS.items():
        full = f"business_assistant_{name}" + ("_total" if kind == "counter" else "")
        unit = "seconds" if kind == "histogram" else "1"
        names = ", ".join(f"`{label}`" for label in labels) or "—"
        lines.append(f"| `{full}` | {kind} | {unit} | {names} | {meaning} |")
    return "\n".join(lines)
