"""Spans as a collector receives them, and measures in a folder that processes share."""

import fcntl
import gzip
import logging
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import structlog
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from processes import servers_in, until
from starlette.testclient import TestClient

from api.metrics import Metrics, metrics_folder
from api.service import environment_of_workers, make_app
from graph.settings import load_settings

ROOT = Path(__file__).parents[2]


class Collector(ThreadingHTTPServer):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Receiver)
        self.received: list[tuple[str, dict[str, str], ExportTraceServiceRequest]] = []


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        found = ExportTraceServiceRequest.FromString(body)
        assert isinstance(self.server, Collector)
        self.server.received.append((self.path, dict(self.headers), found))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


PROGRAM = """
    from api.tracing import exporting_spans
    from graph.settings import load_settings
    from graph.traces import step_span

    with exporting_spans(load_settings()), step_span("gate"):
        pass
    print("left")
"""


def run(program: str = PROGRAM, **env: str) -> "subprocess.CompletedProcess[str]":
    """In a process of its own: a process has one tracer provider for life."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def attributes_of(found: ExportTraceServiceRequest) -> dict[str, str]:
    return {pair.key: pair.value.string_value for pair in found.resource_spans[0].resource.attributes}


def test_a_collector_receives_the_spans_and_whose_they_are(collector: Collector) -> None:
    done = run(
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{collector.server_port}",
        OTEL_EXPORTER_OTLP_HEADERS="x-key=k1",
    )
    assert (done.returncode, done.stdout) == (0, "left\n"), done.stderr
    ((path, headers, found),) = collector.received
    assert path == "/v1/traces"
    assert {name.lower(): value for name, value in headers.items()}["x-key"] == "k1"
    (span,) = found.resource_spans[0].scope_spans[0].spans
    assert span.name == "step gate"
    assert attributes_of(found)["service.name"] == "business-assistant"
    assert attributes_of(found)["service.version"]


def test_the_service_can_be_named_otherwise(collector: Collector) -> None:
    run(
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{collector.server_port}/",
        OTEL_SERVICE_NAME="desk",
        OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test",
    )
    ((_, _, found),) = collector.received
    assert attributes_of(found)["service.name"] == "desk"
    assert attributes_of(found)["deployment.environment.name"] == "test"


def test_a_collector_that_is_gone_keeps_nobody() -> None:
    done = run(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1")
    assert (done.returncode, done.stdout) == (0, "left\n"), done.stderr


def test_a_missing_exporter_is_said_with_its_remedy() -> None:
    program = """
        import sys
        sys.modules["opentelemetry.exporter"] = None
        from api.tracing import exporting_spans
        from graph.settings import SettingsError, load_settings

        try:
            with exporting_spans(load_settings()):
                pass
        except SettingsError as error:
            print(error)
    """
    said = run(program, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1").stdout
    assert "business-assistant[otlp]" in said


def test_folders_of_killed_services_go_and_those_of_running_ones_stay(tmp_path: Path) -> None:
    killed = tmp_path / "metrics" / "killed"
    killed.mkdir(parents=True)
    (killed / "counter_1.db").touch()
    with metrics_folder(tmp_path) as running:
        (running / "counter_1.db").touch()
        with metrics_folder(tmp_path) as other:
            assert not killed.exists()
            assert (running / "counter_1.db").exists()
            assert other != running
            with (other / "lock").open() as file, pytest.raises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert list((tmp_path / "metrics").iterdir()) == []


def test_a_folder_named_by_the_operator_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "shared" / "measures"
    assert Metrics({"PROMETHEUS_MULTIPROC_DIR": str(folder)}).exposition() == b""
    assert folder.is_dir()


def test_workers_share_one_key_for_the_hashes_in_their_logs(tmp_path: Path) -> None:
    made = environment_of_workers(load_settings({}), tmp_path)
    assert len(made["LOG_HASH_KEY"]) == 64
    assert made["LOG_HASH_KEY"] != environment_of_workers(load_settings({}), tmp_path)["LOG_HASH_KEY"]
    given = environment_of_workers(load_settings({"LOG_HASH_KEY": "k" * 16}), tmp_path)
    assert given.get("LOG_HASH_KEY") == os.environ.get("LOG_HASH_KEY")  # what .env says is not overruled


@pytest.fixture
def own_logs() -> Iterator[None]:
    """A service sets up its process's logs; here the process is the tests'."""
    root = logging.getLogger()
    before = list(root.handlers)
    yield
    root.handlers = before
    structlog.reset_defaults()


@pytest.mark.usefixtures("own_logs")
def test_any_server_can_be_given_the_app_by_name(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `uvicorn --factory api.service:make_app` does: opened when made, closed when its life ends."""
    monkeypatch.setenv("BUSINESS_ASSISTANT_HOME", str(home))
    for name in ("REDIS_URL", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with TestClient(make_app(), base_url="http://127.0.0.1") as client:
        assert client.get("/health/ready").json()["status"] == "ok"
        assert servers_in(home)
        # Whoever comes from elsewhere cannot be told apart, so nobody else is served.
        assert client.get("/conversations", headers={"host": "elsewhere.example"}).status_code == 403
    until(lambda: not servers_in(home))
