"""What every test may use: a real Valkey server of this worker's own, and savers on it."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from checkpoint import ContextConfig, RedisContextSaver
from checkpoint.embedded import open_embedded


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the slow suites in full")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--long"):
        skip = pytest.mark.skip(reason="the full form runs with --long")
        for item in items:
            if "long" in item.keywords:
                item.add_marker(skip)


@pytest.fixture(scope="session")
def is_long(pytestconfig: pytest.Config) -> bool:
    """Whether the slow suites run in full."""
    return bool(pytestconfig.getoption("--long"))


@pytest.fixture(scope="session")
def short_folder() -> Iterator[Path]:
    """A temporary folder with a path short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="ba-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def redis_server(short_folder: Path) -> Iterator[str]:
    """The address of a Valkey server on a unix socket, one for each test process."""
    server = open_embedded(short_folder)
    yield server.url
    with redis.Redis.from_url(server.url) as client:
        client.shutdown(nosave=True)
    server.close()


@pytest.fixture
def redis_url(redis_server: str) -> str:
    """The server's address, with nothing stored."""
    with redis.Redis.from_url(redis_server) as client:
        client.flushall()
    return redis_server


@pytest.fixture
def redis_client(redis_url: str) -> Iterator[redis.Redis]:
    """A plain client that gives bytes."""
    with redis.Redis.from_url(redis_url, protocol=2) as client:
        yield client


@pytest.fixture
def saver(redis_url: str) -> Iterator[RedisContextSaver]:
    with RedisContextSaver(ContextConfig(url=redis_url)) as opened:
        yield opened
