"""The service in one process or in several: what is done once, what they share, and what each of them is.

`make_app` is a factory for any ASGI server: `uvicorn --factory api.service:make_app`.
"""

import asyncio
import gc
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from api.app import DrainingServer, address_of, make_server, open_app
from api.fleet import SERVES, Fleet, Patience
from api.identity import check_bind
from api.logs import log_as_json
from api.metrics import forget_worker, metrics_folder, share_metrics
from checkpoint.conversations.store import open_store
from checkpoint.embedded import open_embedded
from graph.compose import prepare_knowledge, shanghai_now
from graph.settings import Settings, SettingsError, load_settings

SOURCE = Path(__file__).parents[1]
BEAT_SECONDS = 5.0
BACKLOG = 2048

Announce = Callable[[str], None]


def make_app() -> FastAPI:
    """The app with everything it needs, from the environment; closed when its lifespan ends.

    Whoever cannot be told apart is served on loopback only, wherever the server listens.
    """
    settings = load_settings()
    prepare_knowledge(settings)
    parts = ExitStack()
    app = parts.enter_context(open_app(settings))
    lifespan = app.router.lifespan_context

    @asynccontextmanager
    async def whole_life(app: FastAPI) -> AsyncIterator[Any]:
        async with lifespan(app) as state:
            yield state
        await run_in_threadpool(parts.close)

    app.router.lifespan_context = whole_life
    return app


def serve(settings: Settings, host: str, port: int, *, announce: Announce = print) -> None:
    """Serve from this process until a signal.

    Raises BindRefusedError where callers could not be told apart, and SettingsError for an address that
    cannot be listened on.
    """
    check_bind(host, sign_in=settings.has_sign_in)
    with listening(host, port) as door, open_app(settings) as app:
        server = make_server(app, host, port, announce=announce)
        keep_for_good()
        server.run(sockets=[door])


def serve_with(settings: Settings, host: str, port: int, workers: int, *, announce: Announce = print) -> int:
    """Serve from several processes until a signal -> exit code. What is done once is done here.

    Raises as `serve` does.
    """
    check_bind(host, sign_in=settings.has_sign_in)
    with (
        listening(host, port) as door,
        redis_for_all(settings),
        metrics_folder(settings.home) as folder,
    ):
        with open_store(settings.conversations):
            pass  # the tables are brought to this release's form before any worker looks at them
        log_as_json(shanghai_now)
        fleet = Fleet(
            starter(door, environment_of_workers(settings, folder)),
            workers,
            on_ready=lambda: announce(address_of(host, door.getsockname()[1])),
            on_end=lambda slot: forget_worker(folder, slot),
            on_leaving=door.close,
            limits=Patience(drain=2 * settings.drain_seconds + 45),
            renews_on_hangup=not (sys.stdin and sys.stdin.isatty()),
        )
        return fleet.run()


@contextmanager
def redis_for_all(settings: Settings) -> Iterator[None]:
    """Without REDIS_URL, the embedded server, which then lives until the last worker has gone."""
    if settings.context.url is not None:
        yield
        return
    with closing(open_embedded(settings.context.home)):
        yield


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind((host, port))
        except OSError as error:
            raise SettingsError(
                f"--host {host} --port {port}: cannot be listened on ({error.strerror}); choose others."
            ) from None
        door.listen(BACKLOG)
        yield door


def environment_of_workers(settings: Settings, folder: Path) -> dict[str, str]:
    """Ours, with what workers share: the folder of measures, and one key for the hashes in their logs."""
    given = {"PROMETHEUS_MULTIPROC_DIR": str(folder), "PYTHONPATH": _path_with(SOURCE)}
    if settings.log_hash_key is None:  # one that is set reaches them as it reached us, perhaps by `.env`
        given["LOG_HASH_KEY"] = secrets.token_hex(32)
    return {**os.environ, **given}


def _path_with(folder: Path) -> str:
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))


def starter(door: socket.socket, env: dict[str, str]) -> Callable[[int, socket.socket], Any]:
    def start(slot: int, link: socket.socket) -> "subprocess.Popen[bytes]":
        numbers = [str(number) for number in (slot, door.fileno(), link.fileno())]
        return subprocess.Popen(  # noqa: S603 - our own program and three numbers
            [sys.executable, "-P", "-m", "api", "work", *numbers],
            pass_fds=(door.fileno(), link.fileno()),
            env=env,
            stdin=subprocess.DEVNULL,
            process_group=0,  # Ctrl-C is for the fleet, which sends its workers away in its own manner
        )

    return start


def work(settings: Settings, slot: int, door: socket.socket, link: socket.socket) -> None:
    """Be one worker of a fleet until its link says to leave, or ends."""
    share_metrics(slot)
    with open_app(settings, worker=slot) as app:
        server = make_server(app, "", 0, announce=lambda _address: Tie(server, link).hold())
        keep_for_good()
        server.run(sockets=[door])


def keep_for_good() -> None:
    """What is there when serving begins stays as long as the process: no search for garbage looks at it.

    Such a search stops every turn of the process while it lasts.
    """
    gc.collect()
    gc.freeze()


class Tie:
    """Holds a serving worker to its fleet: tells that it serves, and ends it when told to or left alone."""

    def __init__(self, server: DrainingServer, link: socket.socket) -> None:
        self._server = server
        self._link = link
        self._loop = asyncio.get_running_loop()

    def hold(self) -> None:
        self._link.setblocking(False)
        self._loop.add_reader(self._link, self._hear)
        self._beat()

    def _hear(self) -> None:
        """Whatever is said means to leave, and so does the end of the link."""
        self._loop.remove_reader(self._link)
        self._server.should_exit = True

    def _beat(self) -> None:
        try:
            self._link.send(SERVES)
        except BlockingIOError:
            pass  # the fleet is busy, and has enough to read
        except OSError:
            return  # it is gone, which its end of the link tells as well
        self._loop.call_later(BEAT_SECONDS, self._beat)
