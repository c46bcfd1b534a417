"""Real services in processes of their own: `business-assistant serve` as a person starts it."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[2]
WAIT_SECONDS = 120.0  # how long anything may take before a test gives up; nothing is asserted about speed
NARRATIVE = "一次性创业补贴有多少钱？"


class NotServingError(Exception):
    """args: exit code, what was said on standard error."""


class Service:
    """One `serve` command: an address, and one or several processes that answer at it."""

    def __init__(self, home: Path, *arguments: str, **env: str) -> None:
        self.home = home
        self.links: list[http.client.HTTPConnection] = []  # all that were opened; closed at the end
        self.log = home / f"service-{time.monotonic_ns()}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "api", "serve", "--port", "0", *arguments],
                env={**os.environ, **environment(home), **env},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            self.kill()
            raise NotServingError(self.process.returncode, self.log.read_text())
        self.port = int(self.address.rsplit(":", 1)[1])

    def workers(self) -> list[psutil.Process]:
        """The processes that answer: the children of a fleet, else the one there is."""
        command = psutil.Process(self.process.pid)
        return [child for child in command.children() if "work" in words_of(child)] or [command]

    def connect(self, to: psutil.Process | None = None) -> http.client.HTTPConnection:
        """A connection, accepted by this one of the workers: the others are asleep until it has been."""
        others = [worker for worker in self.workers() if to is not None and worker.pid != to.pid]
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_SECONDS)
        self.links.append(link)
        for other in others:
            other.suspend()
        try:
            link.connect()
            if to is not None:
                port = link.sock.getsockname()[1]
                until(lambda: port in ports_of(to))
        finally:
            for other in others:
                other.resume()
        return link

    def call(self, method: str, path: str, body: Any = None, to: psutil.Process | None = None) -> Any:
        """The JSON reply of a status below 400."""
        link = self.connect(to)
        try:
            reply = send(link, method, path, body)
            text = reply.read().decode()
            assert reply.status < 400, text
            return json.loads(text) if text else None
        finally:
            link.close()

    def lines(self, event: str) -> list[dict[str, Any]]:
        said = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in said if line["event"] == event]

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(WAIT_SECONDS)

    def kill(self) -> None:
        """Leave nothing behind, also after a test that failed in the middle."""
        for link in self.links:
            link.close()
        for process in [*self.workers(), *servers_in(self.home)] if self.is_alive() else []:
            process.kill()
        self.process.kill()
        self.process.communicate()

    def is_alive(self) -> bool:
        return self.process.poll() is None


def environment(home: Path) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
    return {"PYTHONPATH": path, "BUSINESS_ASSISTANT_HOME": str(home)}


@contextmanager
def serving(home: Path, *arguments: str, **env: str) -> Iterator[Service]:
    service = Service(home, *arguments, **env)
    try:
        yield service
    finally:
        service.kill()


def send(
    link: http.client.HTTPConnection, method: str, path: str, body: Any = None, **headers: str
) -> http.client.HTTPResponse:
    text = None if body is None else json.dumps(body)
    link.request(method, path, text, {"Content-Type": "application/json", **headers})
    return link.getresponse()


def words_of(process: psutil.Process) -> list[str]:
    """Its command line; nothing for one that has just ended."""
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


def ports_of(process: psutil.Process) -> set[int]:
    """The far ports of the connections that this process has accepted."""
    return {each.raddr.port for each in process.net_connections("tcp") if each.raddr}


def read_event(reply: http.client.HTTPResponse) -> tuple[int, str, dict[str, Any]]:
    """(id, name, data) of the next event."""
    assert reply.headers["Content-Type"].startswith("text/event-stream"), reply.read()
    found: dict[str, str] = {}
    while line := reply.readline().decode():
        if line == "\n" and found:
            return int(found["id"]), found["event"], json.loads(found["data"])
        if line != "\n" and not line.startswith(":"):
            name, _, value = line.rstrip("\n").partition(": ")
            found[name] = value
    raise EOFError("the stream ended")


def rest_of(reply: http.client.HTTPResponse) -> list[tuple[int, str, dict[str, Any]]]:
    """The events up to the stream's end, which must be a terminal one."""
    events = []
    while not events or events[-1][1] not in ("done", "error"):
        events.append(read_event(reply))
    assert reply.readline() in (b"", b"\n")
    return events


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.01)


def servers_in(home: Path) -> list[psutil.Process]:
    """The embedded servers that work in this folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if "valkey" in process.name() and Path(process.cwd()) == home:
                found.append(process)
        except (psutil.AccessDenied, psutil.NoSuchProcess, FileNotFoundError):
            continue
    return found


def refuses(port: int) -> bool:
    with socket.socket() as link:
        return link.connect_ex(("127.0.0.1", port)) != 0
