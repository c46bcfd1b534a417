"""What outlives a turn: LangGraph checkpoints, request records and context windows in Redis or Valkey.

    saver = RedisContextSaver(load_context_config())

Importing this package reads no environment and opens nothing; the savers are loaded when first named.
"""

from typing import TYPE_CHECKING, Any

from checkpoint.config import ContextConfig, load_context_config
from checkpoint.errors import (
    BadRequestError,
    CannotRestoreError,
    CheckpointError,
    CheckpointUnavailable,
    ConfigError,
    EmbeddedServerError,
    LeaseLostError,
    NewerFormatError,
    WrongTypeError,
)

if TYPE_CHECKING:
    from checkpoint.async_saver import AsyncRedisContextSaver
    from checkpoint.saver import RedisContextSaver

__all__ = [
    "AsyncRedisContextSaver",
    "BadRequestError",
    "CannotRestoreError",
    "CheckpointError",
    "CheckpointUnavailable",
    "ConfigError",
    "ContextConfig",
    "EmbeddedServerError",
    "LeaseLostError",
    "NewerFormatError",
    "RedisContextSaver",
    "WrongTypeError",
    "load_context_config",
]


def __getattr__(name: str) -> Any:
    if name == "RedisContextSaver":
        from checkpoint.saver import RedisContextSaver

        return RedisContextSaver
    if name == "AsyncRedisContextSaver":
        from checkpoint.async_saver import AsyncRedisContextSaver

        return AsyncRedisContextSaver
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
