"""One conversation through several processes: workers behind one port, and services on two ports."""

import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from processes import (
    NARRATIVE,
    WAIT_SECONDS,
    NotServingError,
    Service,
    read_event,
    refuses,
    rest_of,
    send,
    servers_in,
    serving,
    until,
)

from api.identity import BindRefusedError
from api.service import listening, serve, serve_with
from graph.settings import Settings, SettingsError

together = pytest.mark.xdist_group("pair of processes")  # each start of the pair costs seconds


@dataclass
class Pair:
    """Two processes that serve the same conversations, and the gate that a started answer waits at."""

    one: tuple[Service, psutil.Process | None]
    other: tuple[Service, psutil.Process | None]
    gate: Path

    def start(self, thread_id: str) -> tuple[Any, str]:
        """A turn at the first process, up to its first sentence -> (its stream, request id)."""
        self.gate.unlink(missing_ok=True)
        service, worker = self.one
        reply = send(
            service.connect(worker), "POST", "/api/chat", {"thread_id": thread_id, "message": NARRATIVE}
        )
        request_id = None
        while True:
            _, name, data = read_event(reply)
            request_id = data.get("request_id", request_id)
            if name == "token":
                return reply, str(request_id)

    def at_other(self, method: str, path: str, body: Any = None) -> Any:
        service, worker = self.other
        return service.call(method, path, body, worker)

    def rejoin(self, request_id: str, after: int) -> Any:
        service, worker = self.other
        path = f"/api/chat/{request_id}/events"
        return send(service.connect(worker), "GET", path, **{"Last-Event-ID": str(after)})


@pytest.fixture(scope="module", params=["two workers", "two hosts"])
def pair(
    request: pytest.FixtureRequest, sample_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    home = Path(shutil.copytree(sample_home, tmp_path_factory.mktemp("pair") / "home"))
    gate = home / "gate"
    env = {"MODEL": "gated_provider:make", "GATE": str(gate)}
    if request.param == "two workers":
        with serving(home, "--workers", "2", **env) as service:
            first, second = service.workers()
            yield Pair((service, first), (service, second), gate)
            ended_in_order(service)
        return
    url = request.getfixturevalue("redis_server")
    shared = {"REDIS_URL": url, "DATABASE_URL": f"sqlite:///{home}/shared.db"}
    other_home = Path(shutil.copytree(sample_home, tmp_path_factory.mktemp("pair") / "home"))
    with serving(home, **env, **shared) as one, serving(other_home, **env, **shared) as other:
        yield Pair((one, None), (other, None), gate)
        ended_in_order(one)
        ended_in_order(other)


def ended_in_order(service: Service) -> None:
    assert service.end() == 0
    until(lambda: not servers_in(service.home))  # it serves nobody; its process may be about to go
    assert refuses(service.port)


@together
def test_a_turn_is_rejoined_and_listed_at_the_other_process(pair: Pair) -> None:
    _, request_id = pair.start("rejoined")
    again = pair.rejoin(request_id, after=2)
    number, name, data = read_event(again)
    assert (number, name, data) == (3, "reset", {"reason": "gap"})
    pair.gate.touch()
    (*_, (_, last, done)) = rest_of(again)
    assert (last, done["status"], done["request_id"]) == ("done", "completed", request_id)
    assert "8000元[C1]" in done["text"]
    (record,) = pair.at_other("GET", "/api/threads/rejoined/requests")["items"]
    assert (record["request_id"], record["status"]) == (request_id, "completed")
    (named,) = [c for c in pair.at_other("GET", "/conversations")["items"] if c["externalId"] == "rejoined"]
    messages = pair.at_other("GET", f"/conversations/{named['id']}/messages")["items"]
    assert [message["role"] for message in messages] == ["USER", "ASSISTANT"]


@together
def test_a_thread_is_busy_for_the_other_process(pair: Pair) -> None:
    stream, _ = pair.start("busy")
    service, worker = pair.other
    refused = send(service.connect(worker), "POST", "/api/chat", {"thread_id": "busy", "message": "你好"})
    assert refused.status == 409
    pair.gate.touch()
    assert rest_of(stream)[-1][2]["status"] == "completed"


@together
def test_a_turn_is_stopped_from_the_other_process(pair: Pair) -> None:
    stream, _ = pair.start("stopped")
    assert pair.at_other("POST", "/api/chat/stop", {"thread_id": "stopped"})["stopping"] is True
    assert rest_of(stream)[-1][2]["status"] == "stopped"  # the gate is still closed
    (record,) = pair.at_other("GET", "/api/threads/stopped/requests")["items"]
    assert record["status"] == "stopped"


@together
def test_the_next_turn_sees_the_history_that_the_other_process_wrote(pair: Pair) -> None:
    pair.gate.touch()
    service, worker = pair.one
    first = send(service.connect(worker), "POST", "/api/chat", {"thread_id": "told", "message": NARRATIVE})
    assert rest_of(first)[-1][2]["status"] == "completed"
    service, worker = pair.other
    second = send(service.connect(worker), "POST", "/api/chat", {"thread_id": "told", "message": NARRATIVE})
    assert rest_of(second)[-1][2]["window"]["turns"] == 1


def test_one_fleet_from_start_to_end(home: Path) -> None:
    """In one test, because each start costs seconds: a worker that dies, a renewal, and a drain."""
    gate = home / "gate"
    env = {"MODEL": "gated_provider:make", "GATE": str(gate), "DRAIN_SECONDS": "60"}
    with serving(home, "--workers", "2", **env) as service:
        survive_a_dead_worker(service)
        renew_while_serving(service)
        drain(service, gate)
        until(lambda: not servers_in(home))
        assert not list((home / "metrics").iterdir())


def survive_a_dead_worker(service: Service) -> None:
    """Whichever worker is asked tells what all have counted, also those that ended."""
    first, second = service.workers()
    for worker in (first, second, second):
        service.call("GET", "/version", to=worker)
    for worker in (first, second):  # one counts a request when its reader may have gone on to the other
        until(lambda worker=worker: counted(service, worker) == 3.0)
    begin(service, "left in the middle", first)
    first.kill()
    until(lambda: len(service.lines("worker_serves")) == 3)
    assert counted(service) == 3.0
    assert measured(service, "workers") == 2.0
    assert measured(service, "turns_limit") == 32.0
    # The question itself, and no dead one's.
    until(lambda: measured(service, "http_requests_running") == 1.0)
    assert measured(service, "turns_running") == 0.0
    (folder,) = (service.home / "metrics").iterdir()
    assert len(list(folder.glob("*.db"))) == 6


def renew_while_serving(service: Service) -> None:
    before = service.workers()
    service.process.send_signal(signal.SIGHUP)
    while any(worker.is_running() for worker in before):
        assert service.call("GET", "/health/live")
    until(lambda: len(service.workers()) == 2)
    assert len(service.lines("worker_serves")) == 5
    assert counted(service) == 3.0


def drain(service: Service, gate: Path) -> None:
    """Every worker finishes what it has; nothing new is taken meanwhile."""
    workers = service.workers()
    streams = [begin(service, f"t{n}", worker) for n, worker in enumerate(workers)]
    service.process.send_signal(signal.SIGTERM)
    until(lambda: refuses(service.port))
    gate.touch()
    assert [rest_of(stream)[-1][2]["status"] for stream in streams] == ["completed", "completed"]
    assert service.process.wait(WAIT_SECONDS) == 0
    assert not any(worker.is_running() for worker in workers)


def begin(service: Service, thread_id: str, worker: psutil.Process | None = None) -> Any:
    """A turn up to its first sentence."""
    body = {"thread_id": thread_id, "message": NARRATIVE}
    stream = send(service.connect(worker), "POST", "/api/chat", body)
    assert stream.status == 200, stream.read()
    name = ""
    while name != "token":
        _, name, data = read_event(stream)
        assert name not in ("done", "error"), data
    return stream


def values(service: Service, name: str, to: psutil.Process | None) -> list[float]:
    link = service.connect(to)
    text = send(link, "GET", "/metrics").read().decode()
    link.close()
    found = [line for line in text.splitlines() if line.startswith(f"business_assistant_{name} ")]
    return [float(line.rsplit(" ", 1)[1]) for line in found]


def measured(service: Service, name: str, to: psutil.Process | None = None) -> float:
    (value,) = values(service, name, to)
    return value


def counted(service: Service, to: psutil.Process | None = None) -> float:
    """Nothing at first: a series begins with the first of its kind."""
    return sum(values(service, 'http_requests_total{method="GET",route="/version",status="200"}', to))


def test_workers_whose_fleet_was_killed_finish_and_leave(home: Path) -> None:
    gate = home / "gate"
    with serving(home, "--workers", "2", MODEL="gated_provider:make", GATE=str(gate)) as service:
        workers = service.workers()
        stream = begin(service, "t")
        service.process.kill()
        service.process.wait()
        gate.touch()
        assert rest_of(stream)[-1][2]["status"] == "completed"
        _, left = psutil.wait_procs(workers, WAIT_SECONDS)
        assert not left
        assert refuses(service.port)
        until(lambda: not servers_in(home))  # nobody is left who would end it


def test_a_killed_service_leaves_no_server_behind(home: Path) -> None:
    with serving(home) as service:
        (server,) = servers_in(home)
        service.call("POST", "/v1/ask", {"question": NARRATIVE})
        service.process.kill()
        service.process.wait()
        server.wait(WAIT_SECONDS)
        until(lambda: not servers_in(home))


def test_everything_killed_at_once_leaves_no_server_behind(home: Path) -> None:
    with serving(home, "--workers", "2") as service:
        (server,) = servers_in(home)
        for process in (psutil.Process(service.process.pid), *service.workers()):
            process.kill()
        server.wait(WAIT_SECONDS)


def test_what_cannot_start_is_told_with_its_code(home: Path) -> None:
    with pytest.raises(NotServingError) as told:
        Service(home, "--workers", "2", REDIS_URL="redis://127.0.0.1:1")
    code, said = told.value.args
    assert code == 3
    assert "REDIS_URL" in said
    assert "Traceback" not in said


def alone(settings: Settings, host: str, port: int) -> None:
    serve(settings, host, port)


def several(settings: Settings, host: str, port: int) -> None:
    serve_with(settings, host, port, 2)


@pytest.mark.parametrize("start", [alone, several])
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104 - it must be refused
def test_who_cannot_be_told_apart_is_not_listened_to(settings: Settings, host: str, start: Any) -> None:
    with pytest.raises(BindRefusedError):
        start(settings, host, 0)


@pytest.mark.parametrize("start", [alone, several])
def test_a_taken_port_is_said(settings: Settings, start: Any) -> None:
    with listening("127.0.0.1", 0) as taken, pytest.raises(SettingsError, match="--port"):
        start(settings, "127.0.0.1", taken.getsockname()[1])
