"""The savers against LangGraph's own conformance suite: every capability, both ways."""

import shutil
import subprocess
import time
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance.capabilities import Capability
from langgraph.checkpoint.conformance.initializer import RegisteredCheckpointer
from langgraph.checkpoint.conformance.validate import validate

from checkpoint.embedded import answers

TESTS_IN_THE_SUITE = 81


async def check(saver: BaseCheckpointSaver[Any]) -> None:
    async def make() -> AsyncGenerator[BaseCheckpointSaver[Any], None]:
        yield saver

    report = await validate(RegisteredCheckpointer(name="ours", factory=make))
    failures = [failure for result in report.results.values() for failure in result.failures or []]
    assert failures == []
    assert {name for name, result in report.results.items() if result.passed} == {c.value for c in Capability}
    assert sum(result.tests_passed for result in report.results.values()) == TESTS_IN_THE_SUITE


async def test_all_capabilities(any_saver: Any) -> None:
    await check(any_saver)


async def test_all_capabilities_with_encryption(make_any_saver: Any) -> None:
    await check(make_any_saver(aes_key=b"k" * 32))


async def test_all_capabilities_when_everything_is_compressed(make_any_saver: Any) -> None:
    await check(make_any_saver(compress_from_bytes=1))


async def test_all_capabilities_as_transactions(make_any_saver: Any, monkeypatch: Any) -> None:
    """Every value takes the way of the large ones."""
    monkeypatch.setattr("checkpoint.plan.LARGEST_SCRIPT_BYTES", -1)
    await check(make_any_saver())


@pytest.fixture(scope="module")
def redis_itself(short_folder: Path) -> Iterator[str]:
    """The address of a Redis server (Debian's package), not a Valkey."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    path = short_folder / "redis.sock"
    words = ["--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(short_folder)]
    process = subprocess.Popen([program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while not answers(path):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield f"unix://{path}"
    finally:
        process.kill()
        process.wait()


async def test_all_capabilities_on_redis(make_any_saver: Any, redis_itself: str, monkeypatch: Any) -> None:
    with redis.Redis.from_url(redis_itself) as client:
        found = client.info("server")
        assert "valkey_version" not in found
        assert int(found["redis_version"].split(".")[0]) >= 6
    await check(make_any_saver(url=redis_itself))
    monkeypatch.setattr("checkpoint.plan.LARGEST_SCRIPT_BYTES", -1)
    await check(make_any_saver(url=redis_itself))
