"""Thousands of connections that send nothing: is a user still answered, and is anything left?

    python -m scripts.bench silent [--connections 10000] [--places 10500] [--idle 30] [--turns 20]

The service runs as `serve` starts it, with sign-in, in a process of its own; the connections are this one's,
over loopback. A signed-in user asks over new connections before the silent ones come, while they are open,
and after the service has ended them. With fewer `--places` (MAX_CONNECTIONS) than connections, the longest
silent make room all along. Each end needs a descriptor a connection: `ulimit -Hn` bounds the run.
"""

import argparse
import http.client
import json
import os
import re
import secrets
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt
import psutil

from api.connections import allow_files
from scripts.bench.machine import about

PACKAGES = ("fastapi", "uvicorn", "uvloop", "httptools")
QUESTION = "云帆科技2023年的营业收入是多少？"
SETTLE_SECONDS = 10.0
START_SECONDS = 120.0
OWN_FILES = 512
ENDED = "connections_ended_total"


@dataclass
class Moment:
    """What the service's process holds, and how long its user waited, in milliseconds."""

    bytes: int
    files: int
    waits: list[float]


@dataclass
class Found:
    """`open_before`, `open_after`: silent connections open when the user's turns began, and ended."""

    connections: int
    opening: float = 0.0
    open_before: int = 0
    open_after: int = 0
    ended_within: float = 0.0
    never_ended: int = 0
    counted: dict[str, int] = field(default_factory=dict)
    moments: dict[str, Moment] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m scripts.bench silent")
    options.add_argument("--connections", type=int, default=10_000)
    options.add_argument("--places", type=int, default=10_500, help="MAX_CONNECTIONS of the service")
    options.add_argument("--idle", type=float, default=30.0, help="IDLE_SECONDS of the service")
    options.add_argument("--turns", type=int, default=20, help="turns of the user at each of three times")
    chosen = options.parse_args()
    found = run(chosen.connections, chosen.places, chosen.idle, chosen.turns)
    print(report(found))
    sys.exit(1 if found.never_ended or any(found.left.values()) else 0)


def run(connections: int, places: int, idle: float, turns: int) -> Found:
    wanted = connections + OWN_FILES
    if (files := allow_files(wanted)) < wanted:
        sys.exit(f"{wanted} descriptors are needed and {files} allowed: raise `ulimit -Hn`.")
    with service(MAX_CONNECTIONS=str(places), IDLE_SECONDS=str(idle)) as user, ExitStack() as opened:
        user.take(turns)  # what is loaded at the first questions is no matter of connections
        found = Found(connections, moments={"before": user.moment(turns)})
        began = time.monotonic()
        silent = [opened.enter_context(connect(user.port)) for _ in range(connections)]
        found.opening = time.monotonic() - began
        found.open_before = len(silent) - len(ended_of(silent))
        found.moments["while open"] = user.moment(turns)
        found.open_after = len(silent) - len(ended_of(silent))
        found.never_ended = await_ends(silent, began + 2 * idle + 60)
        found.ended_within = time.monotonic() - began
        found.moments["after"] = user.moment(turns)
        found.counted, found.left = user.counted(), user.left()
    return found


@dataclass
class User:
    """A signed-in caller of the service at this port, and what can be seen of its process."""

    port: int
    process: psutil.Process
    token: str

    def moment(self, turns: int) -> Moment:
        """What is held is looked at between the turns, when nothing runs."""
        waits = self.take(turns)
        return Moment(self.process.memory_info().rss, self.process.num_fds(), waits)

    def take(self, turns: int) -> list[float]:
        return [1000 * self._turn(f"user-{number}") for number in range(turns)]

    def _turn(self, thread: str) -> float:
        """Seconds from before the connection to the end of the answer."""
        began = time.monotonic()
        body = json.dumps({"thread_id": thread, "message": QUESTION})
        said = self._call("POST", "/api/chat", body)
        if '"status":"completed"' not in said:
            raise RuntimeError(f"the user was not answered: {said[:300]}")
        return time.monotonic() - began

    def _call(self, method: str, path: str, body: str | None = None) -> str:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_SECONDS)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            link.request(method, path, body and body.encode(), headers)
            reply = link.getresponse()
            return reply.read().decode()
        finally:
            link.close()

    def _metrics(self) -> str:
        return self._call("GET", "/metrics")

    def counted(self) -> dict[str, int]:
        """Connections that the service ended, by reason."""
        told = re.findall(rf'{ENDED}{{reason="(\w+)"}} ([\d.]+)', self._metrics())
        return {reason: int(float(count)) for reason, count in told}

    def left(self) -> dict[str, int]:
        """What must be nothing: turns that run, and connections but the one that asks; what stays is left."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while any((found := self._open()).values()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return found

    def _open(self) -> dict[str, int]:
        running = re.findall(r"(?m)^business_assistant_turns_running ([\d.]+)", self._metrics())
        here = [each for each in self.process.net_connections("tcp") if each.raddr]
        return {"turns running": int(float(running[0])), "connections": len(here)}


@contextmanager
def service(**settings: str) -> Iterator[User]:
    """`business-assistant serve` with the sample knowledge and the embedded server, ended with the block."""
    secret = secrets.token_hex(32)
    with tempfile.TemporaryDirectory(prefix="ba-silent-") as home:
        env = {**os.environ, "BUSINESS_ASSISTANT_HOME": home, "JWT_SECRET": secret, **settings}
        command = [sys.executable, "-P", "-m", "api", "serve", "--port", "0"]
        env["PYTHONPATH"] = str(Path(__file__).parents[2])
        with (Path(home) / "service.log").open("w") as log:
            process = subprocess.Popen(
                command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True
            )
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            if not address:
                raise RuntimeError(f"it did not start: {(Path(home) / 'service.log').read_text()}")
            yield User(int(address.rsplit(":", 1)[1]), psutil.Process(process.pid), token_of(secret))
        finally:
            process.terminate()
            process.communicate(timeout=START_SECONDS)


def token_of(secret: str) -> str:
    claims: dict[str, Any] = {"tenant": "t", "sub": "u", "exp": int(time.time()) + 3600}
    return jwt.encode(claims, secret, "HS256")


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=START_SECONDS)


def ended_of(connections: Collection[socket.socket]) -> list[socket.socket]:
    """Those that the other side has ended: nothing is ever sent on them, so all else is no news."""
    poll = select.poll()
    by_file = {each.fileno(): each for each in connections}
    for file in by_file:
        poll.register(file, select.POLLIN | select.POLLRDHUP)
    return [by_file[file] for file, _ in poll.poll(0)]


def await_ends(connections: Sequence[socket.socket], deadline: float) -> int:
    """-> how many the other side has not ended by then."""
    left = set(connections)
    while left and time.monotonic() < deadline:
        left.difference_update(ended_of(left))
        time.sleep(0.2)
    return len(left)


def report(found: Found) -> str:
    rows = [
        f"| {name} | {statistics.median(each.waits):.0f} | {max(each.waits):.0f} | {each.bytes / 2**20:.1f} "
        f"| {each.files} |"
        for name, each in found.moments.items()
    ]
    more = (found.moments["while open"].bytes - found.moments["before"].bytes) / 2**20
    return "\n".join(
        [
            about(PACKAGES),
            "",
            f"{found.connections} connections that send nothing, opened in {found.opening:.1f} s. Open when "
            f"the user's turns began: {found.open_before}, when they ended: {found.open_after}. All ended "
            f"{found.ended_within:.1f} s after the first was opened; never ended: {found.never_ended}. "
            f"Ended by the service: {found.counted}.",
            f"Memory while they were open: {more:+.1f} MiB. Left: {found.left}.",
            "",
            "| | median ms of the user's turns | slowest | service, MiB | descriptors |",
            "|---|---|---|---|---|",
            *rows,
        ]
    )
