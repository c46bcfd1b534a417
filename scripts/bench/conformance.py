"""How much of the savers' contract each of them keeps: langgraph-checkpoint-conformance, on real servers.

python -m scripts.bench conformance
"""

import asyncio
import logging
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from scripts.bench.ratios import table
from scripts.bench.servers import CannotRunError, postgres, postgres_url, redis_stack, valkey

Opener = Callable[[Path], AbstractAsyncContextManager[Any]]


@asynccontextmanager
async def ours(folder: Path) -> AsyncIterator[Any]:
    from checkpoint import AsyncRedisContextSaver, ContextConfig

    with valkey(folder) as socket:
        async with AsyncRedisContextSaver(ContextConfig(url=f"unix://{socket}")) as saver:
            yield saver


@asynccontextmanager
async def memory(_folder: Path) -> AsyncIterator[Any]:
    from langgraph.checkpoint.memory import InMemorySaver

    yield InMemorySaver()


@asynccontextmanager
async def sqlite(folder: Path) -> AsyncIterator[Any]:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    async with AsyncSqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
        yield saver


@asynccontextmanager
async def postgresql(folder: Path) -> AsyncIterator[Any]:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    with postgres(folder) as place:
        async with AsyncPostgresSaver.from_conn_string(postgres_url(place)) as saver:
            await saver.setup()
            yield saver


@asynccontextmanager
async def stack_peer(folder: Path) -> AsyncIterator[Any]:
    from langgraph.checkpoint.redis.aio import AsyncRedisSaver

    with redis_stack(folder) as socket:
        async with AsyncRedisSaver.from_conn_string(f"unix://{socket}") as saver:
            await saver.asetup()
            yield saver


@asynccontextmanager
async def plain_peer(folder: Path) -> AsyncIterator[Any]:
    import redis.asyncio
    from langgraph_checkpoint_plainredis import AsyncRedisSaver

    with valkey(folder) as socket:
        async with redis.asyncio.Redis(unix_socket_path=str(socket), protocol=2) as client:
            yield AsyncRedisSaver(client=client)


@asynccontextmanager
async def valkey_peer(folder: Path) -> AsyncIterator[Any]:
    from langgraph_checkpoint_aws import AsyncValkeySaver
    from valkey.asyncio import Valkey

    with valkey(folder) as socket:
        async with Valkey(unix_socket_path=str(socket)) as client:
            yield AsyncValkeySaver(client)


OPENERS: dict[str, Opener] = {
    "ours": ours,
    "memory": memory,
    "SQLite": sqlite,
    "PostgreSQL": postgresql,
    "checkpoint-redis": stack_peer,
    "plainredis": plain_peer,
    "aws Valkey": valkey_peer,
}


def main() -> None:
    logging.disable(logging.CRITICAL)  # the suite provokes faults, and some savers log them at length
    print(asyncio.run(compare()))


async def compare() -> str:
    from langgraph.checkpoint.conformance.capabilities import Capability

    head = ["saver", *(each.value for each in Capability), "capabilities", "tests passed"]
    rows, missing = [], []
    for name, opener in OPENERS.items():
        with tempfile.TemporaryDirectory(prefix="ba-bench-") as folder:
            try:
                async with opener(Path(folder)) as saver:
                    rows.append([name, *await judge(name, saver)])
            except (CannotRunError, ImportError) as reason:
                missing.append(f"Not run: {name}: {reason}.")
    return "\n\n".join([table(head, rows), *missing])


async def judge(name: str, saver: Any) -> list[object]:
    """Passed of tried tests by capability (None: not offered), capabilities kept, tests passed."""
    from langgraph.checkpoint.conformance.capabilities import Capability
    from langgraph.checkpoint.conformance.initializer import RegisteredCheckpointer
    from langgraph.checkpoint.conformance.validate import validate

    async def make() -> AsyncGenerator[Any, None]:
        yield saver

    found = (await validate(RegisteredCheckpointer(name=name, factory=make))).results
    cells: list[object] = []
    for capability in Capability:
        result = found[capability.value]
        tried = result.tests_passed + result.tests_failed
        cells.append(f"{result.tests_passed} of {tried}" if tried else None)
    kept = sum(result.passed is True for result in found.values())
    return [*cells, f"{kept} of {len(Capability)}", sum(result.tests_passed for result in found.values())]
