"""The three ways to the same graph that are compared, each in a process with an embedded server of its own.

`graph` calls it directly, `bare` is the least that streams it (starlette, no lease, record, row or count),
and `ours` is the service as `business-assistant serve` runs it, or without conversations. The parent talks
with a child through a pipe, so that asking for its figures is no request.
"""

import _sqlite3
import asyncio
import ctypes
import gc
import json
import logging
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from graph.compose import Assistant, open_assistant, prepare_knowledge
from graph.run import TurnResult, stream_turn
from graph.settings import load_settings
from nodes.contracts import Caller

START_SECONDS = 120.0
ANSWER_SECONDS = 900.0
SETTLE_SECONDS = 60.0
UNKEPT = "ours, without conversations"
Loops = list[asyncio.AbstractEventLoop]
Commands = dict[str, Callable[..., Any]]


@dataclass
class Door:
    """A child process: its port (0 for the graph alone) and what it can be asked."""

    name: str
    port: int
    pid: int
    _pipe: Connection = field(repr=False)

    def ask(self, command: str, *arguments: Any) -> Any:
        self._pipe.send((command, *arguments))
        if not self._pipe.poll(ANSWER_SECONDS):
            raise RuntimeError(f"{self.name} did not answer {command} within {ANSWER_SECONDS:.0f} s")
        return self._pipe.recv()

    def cpu(self) -> float:
        """Seconds of processor that the process has used."""
        used: float = self.ask("cpu")
        return used

    def settle(self) -> dict[str, float]:
        """What is open once the runs of vanished clients have ended; what is then left, is left."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while any((left := self.ask("open")).values()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return dict(left)


@contextmanager
def open_door(name: str, home: Path, **settings: str) -> Iterator[Door]:
    """`settings` as in the environment. The child ends with the block, and with it the server it started."""
    home.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    env = {"BUSINESS_ASSISTANT_HOME": str(home), **settings}
    child = context.Process(target=_child, args=(name, env, there), name=f"bench-{name}")
    child.start()
    there.close()
    try:
        if not here.poll(START_SECONDS):
            raise RuntimeError(f"{name} did not start; see {home / 'door.log'}")
        yield Door(name, here.recv(), child.pid or 0, here)
    finally:
        here.close()
        child.join(timeout=60)
        if child.is_alive():
            child.kill()


def _child(name: str, env: dict[str, str], pipe: Connection) -> None:
    log = os.open(Path(env["BUSINESS_ASSISTANT_HOME"]) / "door.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    logging.disable(logging.WARNING)  # a vanished client is what the soak wants, not news
    sys.unraisablehook = lambda _: None
    settings = load_settings(env)
    prepare_knowledge(settings)
    KINDS[name](settings, pipe)


def _answer(pipe: Connection, commands: Commands) -> None:
    """Answer the parent until it closes the pipe."""
    while True:
        try:
            command, *arguments = pipe.recv()
        except (EOFError, OSError):
            return
        pipe.send(commands[command](*arguments))


# --- the graph alone ---


def _serve_graph(settings: Any, pipe: Connection) -> None:
    with open_assistant(settings) as assistant, ThreadPoolExecutor(64) as workers:

        def take(lanes: list[list[tuple[str, str]]]) -> dict[str, float]:
            began, worked = time.perf_counter(), time.process_time()
            for job in [workers.submit(_take_lane, assistant, lane) for lane in lanes]:
                job.result()
            return {"seconds": time.perf_counter() - began, "cpu": time.process_time() - worked}

        pipe.send(0)
        _answer(pipe, {"cpu": time.process_time, "take": take})


def _take_lane(assistant: Assistant, lane: list[tuple[str, str]]) -> None:
    for thread, text in lane:
        results = [event for event in events_of(assistant, thread, text) if isinstance(event, TurnResult)]
        assert results[-1].status in ("completed", "needs_input"), results[-1]


def events_of(assistant: Assistant, thread: str, text: str) -> Iterator[Any]:
    request: Any = {"request_id": assistant.new_id(), "text": text, "received_at": assistant.clock()}
    return stream_turn(assistant, request, thread_id=thread, caller=Caller())


# --- a bare door ---


def _serve_bare(settings: Any, pipe: Connection) -> None:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route

    with open_assistant(settings) as assistant:

        def lines(thread: str, text: str) -> Iterator[str]:
            for event in events_of(assistant, thread, text):
                name = "done" if isinstance(event, TurnResult) else type(event).__name__
                yield f"event: {name}\ndata: {json.dumps(asdict(event), ensure_ascii=False)}\n\n"

        async def chat(request: Request) -> Response:
            body = await request.json()
            stream = lines(body["thread_id"], body["message"])
            return StreamingResponse(stream, media_type="text/event-stream")

        app = Starlette(routes=[Route("/api/chat", chat, methods=["POST"])])
        config = uvicorn.Config(app, "127.0.0.1", 0, log_level="warning", access_log=False)
        _run(uvicorn.Server(config), pipe, {"cpu": time.process_time})


# --- our service ---


def _serve_ours(settings: Any, pipe: Connection, *, is_kept: bool = True) -> None:
    from api.app import create_app, make_server
    from api.logs import log_as_json
    from checkpoint.conversations.store import open_store

    with ExitStack() as stack:
        store = stack.enter_context(open_store(settings.conversations)) if is_kept else None
        assistant = stack.enter_context(open_assistant(settings))
        log_as_json(assistant.clock)
        app = create_app(assistant, store=store)
        server = make_server(app, "127.0.0.1", 0, announce=lambda _address: None)
        loops: Loops = []
        server.config.app = _noting_loop(app, loops)
        commands: Commands = {
            "cpu": time.process_time,
            "memory": memory,
            "open": lambda: open_things(app, loops),
        }
        _run(server, pipe, commands)


def _noting_loop(app: Any, loops: Loops) -> Any:
    async def noting(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            loops.append(asyncio.get_running_loop())
        await app(scope, receive, send)

    return noting


def _run(server: Any, pipe: Connection, commands: Commands) -> None:
    def control() -> None:
        while not server.started:
            time.sleep(0.01)
        pipe.send(server.servers[0].sockets[0].getsockname()[1])
        _answer(pipe, commands)
        server.should_exit = True

    threading.Thread(target=control, name="bench-control", daemon=True).start()
    server.run()


def open_things(app: Any, loops: Loops) -> dict[str, float]:
    """What a request holds while it lives. All of it must be zero when none does."""
    state = app.state
    leases = state.assistant.saver.wire.client.scan_iter(match="business-assistant:lease:*", count=1000)
    return {
        "slots": state.desk.pool.busy(),
        "leases held": state.keeper.held_count(),
        "leases stored": sum(1 for _ in leases),
        "runs": len(state.desk._runs.active()),
        "listeners": sum(len(run.feed._listeners) for run in list(state.desk._runs._runs.values())),
        "followers": len(state.desk._followers),
        "turns_running": state.metrics.value("turns_running"),
        "http_requests_running": state.metrics.value("http_requests_running"),
        "worker threads": sum(thread.name.startswith("turn-") for thread in threading.enumerate()),
        "tasks": sum(not _is_servers_own(task) for task in asyncio.all_tasks(loops[0])),
        "database connections": state.desk._ledger.store.database.engine.pool.checkedout(),
    }


class Memory(NamedTuple):
    """Of a process without garbage. `None` where this platform does not tell."""

    resident: int  # bytes; also moves with what the allocators keep and how it is cut up
    blocks: int  # that Python has allocated, counted exactly
    in_use: int | None  # bytes that the C allocator has given out; those that threads keep freed count too
    sqlite: int | None  # bytes of those in SQLite's hands, its page caches among them
    others: int | None  # bytes of those in all other hands


def memory() -> Memory:
    for _ in range(3):
        gc.collect()
    with suppress(OSError, AttributeError):  # another C library keeps what it keeps
        ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    in_use, sqlite = _in_use(), _sqlite_bytes()
    others = None if in_use is None or sqlite is None else in_use - sqlite
    return Memory(pages * os.sysconf("SC_PAGE_SIZE"), sys.getallocatedblocks(), in_use, sqlite, others)


class _MallInfo(ctypes.Structure):
    """glibc's `struct mallinfo2`, ten sizes."""

    _fields_ = [(f"f{number}", ctypes.c_size_t) for number in range(10)]


def _in_use() -> int | None:
    """`uordblks`, over all arenas, and `hblkhd`, what was mapped by itself."""
    try:
        ask = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError):
        return None
    ask.restype = _MallInfo
    info = ask()
    return int(info.f7) + int(info.f4)


def _sqlite_bytes() -> int | None:
    try:
        ask = ctypes.CDLL(_sqlite3.__file__).sqlite3_memory_used
    except (OSError, AttributeError):
        return None
    ask.restype = ctypes.c_int64
    return int(ask())


def _is_servers_own(task: asyncio.Task[Any]) -> bool:
    """The server's main task and its lifespan."""
    name = getattr(task.get_coro(), "__qualname__", "")
    return name.startswith(("Server.", "LifespanOn.", "noting", "_noting_loop"))


KINDS: dict[str, Callable[[Any, Connection], None]] = {
    "graph": _serve_graph,
    "bare": _serve_bare,
    "ours": _serve_ours,
    UNKEPT: partial(_serve_ours, is_kept=False),
}
