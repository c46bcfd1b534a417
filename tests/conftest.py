"""What every test may use: a real Valkey server of this worker's own, and savers on it."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis
from hypothesis_examples import choose_examples
from langgraph.checkpoint.base import BaseCheckpointSaver
from redis.backoff import NoBackoff
from redis.retry import Retry
from relay import Proxy
from store_fixtures import new_database, postgres, store, store_config  # noqa: F401 - fixtures

from checkpoint import AsyncRedisContextSaver, ContextConfig, RedisContextSaver
from checkpoint.embedded import open_embedded

if TYPE_CHECKING:
    # The saver's tests need no graph, so it is loaded where it is used.
    from graph.build import Services
    from graph.compose import Assistant
    from graph.settings import Settings


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the slow suites in full")


def pytest_configure(config: pytest.Config) -> None:
    choose_examples(is_long=bool(config.getoption("--long")))


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
def end_server() -> Callable[[str], None]:
    """Ends the server at an address, whoever is connected, without trying again to reach it."""

    def end(url: str) -> None:
        with redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0)) as client:
            client.shutdown(nosave=True)

    return end


@pytest.fixture(scope="session")
def redis_server(short_folder: Path, end_server: Callable[[str], None]) -> Iterator[str]:
    """The address of a Valkey server on a unix socket, one for each test process."""
    server = open_embedded(short_folder)
    with redis.Redis.from_url(server.url) as client:
        client.config_set("appendfsync", "no")  # it would answer nobody while a busy disk takes its time
    yield server.url
    end_server(server.url)
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


@pytest.fixture(scope="session")
def sample_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the sample knowledge loaded, to copy from."""
    from graph.compose import prepare_knowledge
    from graph.settings import load_settings

    home = tmp_path_factory.mktemp("sample")
    prepare_knowledge(load_settings({"BUSINESS_ASSISTANT_HOME": str(home)}))
    return home


@pytest.fixture
def home(sample_home: Path, tmp_path: Path) -> Path:
    """A data folder of this test's own, with the sample knowledge."""
    return Path(shutil.copytree(sample_home, tmp_path / "home"))


@pytest.fixture
def settings(home: Path, redis_url: str) -> "Settings":
    from graph.settings import load_settings

    return load_settings({"BUSINESS_ASSISTANT_HOME": str(home), "REDIS_URL": redis_url})


@pytest.fixture
def assistant(settings: "Settings") -> "Iterator[Assistant]":
    from graph.compose import open_assistant

    with open_assistant(settings) as opened:
        yield opened


@pytest.fixture
def services(assistant: "Assistant") -> "Services":
    return assistant.services


class SyncShim(BaseCheckpointSaver[str]):
    """The sync saver behind the async methods, so that one test can hold both to the same rules."""

    def __init__(self, inner: RedisContextSaver) -> None:
        super().__init__(serde=inner.serde)
        self.inner = inner
        self.config = inner.config

    def get_next_version(self, current: Any, channel: None = None) -> str:
        return self.inner.get_next_version(current)

    async def aget_tuple(self, config: Any) -> Any:
        return await asyncio.to_thread(self.inner.get_tuple, config)

    async def alist(self, config: Any, **options: Any) -> AsyncIterator[Any]:
        for found in await asyncio.to_thread(lambda: list(self.inner.list(config, **options))):
            yield found

    async def aput(self, *args: Any) -> Any:
        return await asyncio.to_thread(self.inner.put, *args)

    async def aput_writes(self, *args: Any, **options: Any) -> None:
        await asyncio.to_thread(lambda: self.inner.put_writes(*args, **options))

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.inner.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Any) -> None:
        await asyncio.to_thread(self.inner.delete_for_runs, run_ids)

    async def acopy_thread(self, source: str, target: str) -> None:
        await asyncio.to_thread(self.inner.copy_thread, source, target)

    async def aprune(self, thread_ids: Any, *, strategy: str = "keep_latest") -> None:
        await asyncio.to_thread(lambda: self.inner.prune(thread_ids, strategy=strategy))

    async def aget_delta_channel_history(self, *, config: Any, channels: Any) -> Any:
        return await asyncio.to_thread(
            lambda: self.inner.get_delta_channel_history(config=config, channels=channels)
        )

    async def aput_request(self, record: Any, *, lease: str | None = None) -> None:
        await asyncio.to_thread(lambda: self.inner.put_request(record, lease=lease))

    async def alist_requests(self, thread_id: object) -> Any:
        return await asyncio.to_thread(self.inner.list_requests, thread_id)

    async def arestore_window(self, thread_id: object, checkpoint_id: str | None = None) -> Any:
        return await asyncio.to_thread(self.inner.restore_window, thread_id, checkpoint_id)

    async def aclose(self) -> None:
        await asyncio.to_thread(self.inner.close)


def make_saver(config: ContextConfig, is_sync: bool) -> Any:
    """A saver with async methods, whichever class does the work."""
    return SyncShim(RedisContextSaver(config)) if is_sync else AsyncRedisContextSaver(config)


SaverMaker = Callable[..., Any]


@pytest.fixture(params=["async", "sync"])
async def make_any_saver(request: pytest.FixtureRequest, redis_url: str) -> AsyncIterator[SaverMaker]:
    """Makes savers of one class, closed at the end: `make_any_saver(ttl_seconds=5)`."""
    made: list[Any] = []

    def make(**settings: Any) -> Any:
        config = ContextConfig(**({"url": redis_url} | settings))
        made.append(make_saver(config, request.param == "sync"))
        return made[-1]

    yield make
    for each in made:
        await each.aclose()


@pytest.fixture
def any_saver(make_any_saver: SaverMaker) -> Any:
    """Each saver in turn, behind the async methods."""
    return make_any_saver()


@pytest.fixture
def proxy(redis_url: str, short_folder: Path) -> Iterator[Proxy]:
    relay = Proxy(short_folder, redis_url)
    yield relay
    relay.close()
