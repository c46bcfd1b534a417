"""The saver for LangGraph's studio server.

In langgraph.json: `"checkpointer": {"path": "./checkpoint/studio.py:open_saver"}`.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from checkpoint.async_saver import AsyncRedisContextSaver
from checkpoint.config import load_context_config


@asynccontextmanager
async def open_saver() -> AsyncIterator[AsyncRedisContextSaver]:
    """An async saver on the environment's settings, opened and closed without blocking the event loop."""
    config = await asyncio.to_thread(load_context_config)
    async with AsyncRedisContextSaver(config) as saver:
        yield saver
