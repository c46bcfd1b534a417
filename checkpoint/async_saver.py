"""The async saver: the same plans, awaited. One client for each event loop that uses it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from weakref import WeakKeyDictionary

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from checkpoint import copying, erase, requests
from checkpoint.config import ContextConfig
from checkpoint.connect import (
    AsyncClient,
    check_async_server,
    check_given,
    close_async,
    make_async_client,
)
from checkpoint.embedded import EmbeddedServer, open_embedded
from checkpoint.errors import Walk
from checkpoint.layout import context_key
from checkpoint.plan import Plan
from checkpoint.requests import RequestRecord
from checkpoint.saver import Link, RedisContextSaver
from checkpoint.wire import AsyncWire, Result, ask, converse


class AsyncRedisContextSaver(RedisContextSaver):
    """RedisContextSaver for event loops. Making one does no I/O, so it may be made at import, without a loop.

    It connects at its first use in each loop; `open()` does so at once and reports a wrong setting there.
    The sync methods work too, over a sync connection of their own.
    """

    def __init__(
        self,
        config: ContextConfig,
        *,
        client: AsyncClient | None = None,
        serde: SerializerProtocol | None = None,
    ) -> None:
        super(RedisContextSaver, self).__init__(config, serde=serde)
        if client is not None:
            check_given(client, awaits=True)
        self._link = Link(config, None)
        self._links = AsyncLinks(config, client)

    @classmethod
    async def open(cls, config: ContextConfig, *, serde: SerializerProtocol | None = None) -> Self:
        saver = cls(config, serde=serde)
        await saver._links.wire()
        return saver

    async def arun(self, plan: Plan[Result]) -> Result:
        wire = await self._links.wire()
        return await wire.run(converse(plan))

    async def aclose(self) -> None:
        """Let go of this loop's connections and, when no other loop uses the saver, of everything."""
        # The sync side may be in use by another loop's threads, which would lose their replies.
        if await self._links.close():
            await asyncio.to_thread(self.close)

    async def __aenter__(self) -> Self:
        await self._links.wire()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    # --- LangGraph's contract ---

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await self.arun(self.plan_put(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await self.arun(self.plans.put_writes(self.serde, config, writes, task_id, task_path))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self.arun(self.plans.get_tuple(self.serde, config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        async for key in self._keys(config):
            cursor = self.start(config, key, filter, before, limit)
            while cursor is not None:
                page, cursor = await self.arun(self.plans.list_page(self.serde, cursor))
                for found in page:
                    yield found
                limit = None if limit is None else limit - len(page)

    async def _keys(self, config: RunnableConfig | None) -> AsyncIterator[str | None]:
        """The one key of a config's thread is known there; without a config, every thread's."""
        if config:
            yield None
            return
        wire = await self._links.wire()
        async for key in wire.scan(self.plans.prefix):
            yield key

    async def adelete_thread(self, thread_id: str) -> None:
        wire = await self._links.wire()
        await wire.run(ask("delete_thread", erase.delete_thread(self.plans, thread_id)))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        wanted, walk = {str(run_id) for run_id in run_ids}, Walk()
        if not wanted:
            return
        wire = await self._links.wire()
        async for key in wire.scan(self.plans.prefix):
            with walk.step():
                await self.arun(erase.erase(self.plans, key, lambda items: erase.choose_runs(items, wanted)))
        walk.end()

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self.arun(copying.copy_thread(self.plans, source_thread_id, target_thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        erase.check_strategy(strategy)
        for thread_id in thread_ids:
            await self.arun(erase.prune(self.plans, thread_id, strategy))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await self.arun(self.plans.get_delta_channel_history(self.serde, config, channels))

    # --- windows and request records ---

    async def arestore_window(self, thread_id: object, checkpoint_id: str | None = None) -> Any:
        return await self.arun(self.plan_window(thread_id, checkpoint_id))

    async def aput_request(self, record: Mapping[str, Any], *, lease: str | None = None) -> None:
        await self.arun(requests.put_request(self.plans, record, lease))

    async def alist_requests(self, thread_id: object) -> Sequence[RequestRecord]:
        wire = await self._links.wire()
        key = context_key(self.plans.prefix, thread_id)
        found = {field: value async for field, value in wire.scan_fields(key, requests.record_pattern())}
        return requests.in_order(requests.decode_record(*pair) for pair in found.items())


class AsyncLinks:
    """One client per event loop, made at first use. A loop that ended takes its client with it."""

    def __init__(self, config: ContextConfig, client: AsyncClient | None) -> None:
        self._config = config
        self._given = None if client is None else AsyncWire(client)
        self._wires: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncWire] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._server: EmbeddedServer | None = None

    async def wire(self) -> AsyncWire:
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        known = self._wires.get(loop)
        if known is not None:
            return known
        url, revive = self._config.url, None
        if url is None:
            server = await asyncio.to_thread(self._open_server)
            url, revive = server.url, server.revive
        client = make_async_client(url, self._config)
        await check_async_server(client)
        # Two tasks may have come this far; the first one's client is the loop's.
        wire = self._wires.setdefault(loop, AsyncWire(client, revive))
        if wire.client is not client:
            await close_async(client)
        return wire

    def _open_server(self) -> EmbeddedServer:
        with self._lock:
            if self._server is None:
                self._server = open_embedded(self._config.home)
            return self._server

    async def close(self) -> bool:
        """-> whether this was the last loop."""
        wire = self._wires.pop(asyncio.get_running_loop(), None)
        if wire is not None:
            await close_async(wire.client)
        if self._wires:
            return False
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            await asyncio.to_thread(server.close)
        return True
