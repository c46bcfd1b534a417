"""The savers that are compared, each on its own real server, with what is counted of it.

A peer whose package or server is not here is left out, and the report says why.
"""

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from scripts.bench.floor import TTL_SECONDS, FloorSaver
from scripts.bench.relay import Relay
from scripts.bench.servers import CannotRunError, postgres, postgres_url, redis_stack, valkey


@dataclass(frozen=True)
class Contestant:
    """A saver; the same through a relay that counts; commands its server has run; bytes it has stored."""

    name: str
    saver: Any
    stored: Callable[[], float]
    relayed: Any = None
    relay: Relay | None = None
    commands: Callable[[], int] | None = None


Opener = Callable[[Path], AbstractContextManager[Contestant]]


@contextmanager
def ours(folder: Path) -> Iterator[Contestant]:
    from checkpoint import ContextConfig, RedisContextSaver

    def make(socket: Path) -> Any:
        return RedisContextSaver(ContextConfig(url=f"unix://{socket}"))

    with (
        valkey(folder) as socket,
        relayed(socket) as (relay, path),
        make(socket) as saver,
        make(path) as counted,
    ):
        yield redis_contestant("ours", saver, counted, relay, socket)


def floor(*, atomic: bool) -> Opener:
    name = "atomic floor" if atomic else "floor"

    @contextmanager
    def opened(folder: Path) -> Iterator[Contestant]:
        with (
            valkey(folder) as socket,
            relayed(socket) as (relay, path),
            client(socket) as near,
            client(path) as far,
        ):
            saver, counted = FloorSaver(near, atomic=atomic), FloorSaver(far, atomic=atomic)
            counted.latest = saver.latest
            yield redis_contestant(name, saver, counted, relay, socket)

    return opened


@contextmanager
def memory(_folder: Path) -> Iterator[Contestant]:
    from langgraph.checkpoint.memory import InMemorySaver

    saver = InMemorySaver()

    def stored() -> float:
        kept = [saver.blobs, saver.writes, saver.storage]
        return float(sum(map(bytes_in, kept)))

    yield Contestant("memory", saver, stored)


@contextmanager
def sqlite(folder: Path) -> Iterator[Contestant]:
    try:
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError as fault:
        raise CannotRunError(f"not installed ({fault.name})") from fault
    file = folder / "checkpoints.db"
    with SqliteSaver.from_conn_string(str(file)) as saver, sqlite3.connect(file) as reader:

        def stored() -> float:
            (pages,), (size,) = reader.execute("PRAGMA page_count"), reader.execute("PRAGMA page_size")
            return float(pages[0] * size[0])

        yield Contestant("SQLite", saver, stored)


@contextmanager
def postgresql(folder: Path) -> Iterator[Contestant]:
    try:
        import psycopg
        from langgraph.checkpoint.postgres import PostgresSaver
        from psycopg.rows import dict_row
        from psycopg_pool import ConnectionPool
    except ImportError as fault:
        raise CannotRunError(f"not installed ({fault.name})") from fault
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    name = ".s.PGSQL.5432"
    with ExitStack() as stack:
        place = stack.enter_context(postgres(folder))
        relay, path = stack.enter_context(relayed(place / name, name))
        pools = [
            stack.enter_context(ConnectionPool(postgres_url(at), kwargs=options, min_size=1, max_size=16))
            for at in (place, path.parent)
        ]
        savers = [PostgresSaver(pool) for pool in pools]  # type: ignore[arg-type]
        savers[0].setup()
        reader = stack.enter_context(psycopg.connect(postgres_url(place), autocommit=True))

        def stored() -> float:
            size = (
                "SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
                "WHERE relname LIKE 'checkpoint%' AND relkind = 'r'"
            )
            (found,) = reader.execute(size).fetchone() or (0,)
            return float(found)

        yield Contestant("PostgreSQL", savers[0], stored, savers[1], relay)


@contextmanager
def stack_peer(folder: Path) -> Iterator[Contestant]:
    try:
        from langgraph.checkpoint.redis import RedisSaver
    except ImportError as fault:
        raise CannotRunError(f"not installed ({fault.name})") from fault

    def make(found: redis.Redis) -> Any:
        saver = RedisSaver(redis_client=found, ttl={"default_ttl": TTL_SECONDS // 60})
        saver.setup()
        return saver

    with (
        redis_stack(folder) as socket,
        relayed(socket) as (relay, path),
        client(socket) as near,
        client(path) as far,
    ):
        yield redis_contestant("checkpoint-redis", make(near), make(far), relay, socket)


@contextmanager
def plain_peer(folder: Path) -> Iterator[Contestant]:
    try:
        from langgraph_checkpoint_plainredis import RedisSaver
    except ImportError as fault:
        raise CannotRunError(f"not installed ({fault.name})") from fault

    with (
        valkey(folder) as socket,
        relayed(socket) as (relay, path),
        client(socket) as near,
        client(path) as far,
    ):
        savers = [RedisSaver(client=found, ttl=TTL_SECONDS) for found in (near, far)]
        yield redis_contestant("plainredis", savers[0], savers[1], relay, socket)


@contextmanager
def valkey_peer(folder: Path) -> Iterator[Contestant]:
    try:
        from langgraph_checkpoint_aws import ValkeySaver
        from valkey import Valkey
    except ImportError as fault:
        raise CannotRunError(f"not installed ({fault.name})") from fault

    with valkey(folder) as socket, relayed(socket) as (relay, path):
        clients = [Valkey(unix_socket_path=str(at)) for at in (socket, path)]
        savers = [ValkeySaver(found, ttl=TTL_SECONDS) for found in clients]
        yield redis_contestant("aws Valkey", savers[0], savers[1], relay, socket)
        for found in clients:
            found.close()


OPENERS: dict[str, Opener] = {
    "ours": ours,
    "floor": floor(atomic=False),
    "atomic floor": floor(atomic=True),
    "memory": memory,
    "SQLite": sqlite,
    "PostgreSQL": postgresql,
    "checkpoint-redis": stack_peer,
    "plainredis": plain_peer,
    "aws Valkey": valkey_peer,
}


def open_all(names: list[str], stack: ExitStack) -> tuple[list[Contestant], dict[str, str]]:
    """Those that can run here, and for each other one the reason."""
    found, missing = [], {}
    for name in names:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ba-bench-")))
        try:
            found.append(stack.enter_context(OPENERS[name](folder)))
        except CannotRunError as reason:
            missing[name] = str(reason)
    return found, missing


def client(socket: Path) -> redis.Redis:
    return redis.Redis(unix_socket_path=str(socket), protocol=2)


@contextmanager
def relayed(target: Path, name: str = "relay.sock") -> Iterator[tuple[Relay, Path]]:
    with tempfile.TemporaryDirectory(prefix="ba-relay-") as folder:
        path = Path(folder) / name
        relay = Relay(path, target)
        yield relay, path
        relay.close()


def redis_contestant(name: str, saver: Any, counted: Any, relay: Relay, socket: Path) -> Contestant:
    def stored() -> float:
        with client(socket) as asking:
            return float(asking.info("memory")["used_memory_dataset"])  # type: ignore[index]

    def commands() -> int:
        """All that the server has carried out, inside scripts too, but for the question itself."""
        with client(socket) as asking:
            found: Any = asking.info("commandstats")
        return sum(each["calls"] for command, each in found.items() if command not in IGNORED)

    return Contestant(name, saver, stored, counted, relay, commands)


IGNORED = ("cmdstat_info", "cmdstat_client|setinfo", "cmdstat_ping", "cmdstat_hello")


def bytes_in(kept: Any) -> int:
    """The serialized bytes somewhere inside what InMemorySaver keeps."""
    if isinstance(kept, bytes):
        return len(kept)
    if isinstance(kept, dict):
        return sum(map(bytes_in, kept.values()))
    return sum(map(bytes_in, kept)) if isinstance(kept, tuple) else 0
