"""The saver for LangGraph's studio server.

In langgraph.json: `"checkpointer": {"path": "./checkpoint/studio.py:open_saver"}`.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

from checkpoint.async_saver import AsyncRedisContextSaver
from checkpoint.config import load_context_config
from checkpoint.plan import Plan

# Where a step stands and which run made it.
KEPT = frozenset(
    [
        *("source", "step", "parents", "run_id", "graph_id", "assistant_id", "thread_id", "run_attempt"),
        *("checkpoint_id", "checkpoint_ns", "checkpoint_map", "langgraph_version", "langgraph_api_version"),
    ]
)


class StudioSaver(AsyncRedisContextSaver):
    """Keeps of a step's metadata what is its own.

    The server adds a client's headers, context and configuration to it, and any of them may be a secret.
    """

    def plan_put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Plan[RunnableConfig]:
        plain: RunnableConfig = {"configurable": own(config.get("configurable") or {})}
        return super().plan_put(
            plain, checkpoint, cast(CheckpointMetadata, own(cast(dict[str, Any], metadata))), new_versions
        )


def own(given: Mapping[str, Any]) -> dict[str, Any]:
    """Without what a client brought; names that begin with __ are LangGraph's, and are never stored."""
    return {name: value for name, value in given.items() if name in KEPT or name.startswith("__")}


@asynccontextmanager
async def open_saver() -> AsyncIterator[AsyncRedisContextSaver]:
    """An async saver on the environment's settings, opened and closed without blocking the event loop."""
    config = await asyncio.to_thread(load_context_config)
    async with StudioSaver(config) as saver:
        yield saver
