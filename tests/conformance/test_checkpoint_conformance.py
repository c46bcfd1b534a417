"""The savers against LangGraph's own conformance suite: every capability, async and sync."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance.capabilities import Capability
from langgraph.checkpoint.conformance.initializer import RegisteredCheckpointer
from langgraph.checkpoint.conformance.validate import validate

from checkpoint import AsyncRedisContextSaver, ContextConfig, RedisContextSaver

TESTS_IN_THE_SUITE = 81


class SyncShim(BaseCheckpointSaver[str]):
    """The sync saver behind the async methods that the suite calls."""

    def __init__(self, inner: RedisContextSaver) -> None:
        super().__init__(serde=inner.serde)
        self.inner = inner

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


async def check(name: str, config: ContextConfig, is_sync: bool) -> None:
    async def make() -> AsyncGenerator[BaseCheckpointSaver[str], None]:
        if is_sync:
            with await asyncio.to_thread(RedisContextSaver, config) as inner:
                yield SyncShim(inner)
        else:
            async with AsyncRedisContextSaver(config) as saver:
                yield saver

    report = await validate(RegisteredCheckpointer(name=name, factory=make))
    failures = [failure for result in report.results.values() for failure in result.failures or []]
    assert failures == []
    assert {name for name, result in report.results.items() if result.passed} == {c.value for c in Capability}
    assert sum(result.tests_passed for result in report.results.values()) == TESTS_IN_THE_SUITE


@pytest.mark.parametrize("is_sync", [False, True], ids=["async", "sync"])
async def test_all_capabilities(redis_url: str, is_sync: bool) -> None:
    await check("valkey", ContextConfig(url=redis_url), is_sync)


@pytest.mark.parametrize("is_sync", [False, True], ids=["async", "sync"])
async def test_all_capabilities_encrypted(redis_url: str, is_sync: bool) -> None:
    await check("encrypted", ContextConfig(url=redis_url, aes_key=b"k" * 32), is_sync)
