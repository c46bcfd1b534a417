"""Checkpoints kept by langgraph-checkpoint-redis, all else by ours: for those whose threads live there.

Selected by CHECKPOINTER=redis-stack. Leases, request records and limits stay in our hash of the same thread,
on the same server. What that saver cannot do is refused by name; a save is looked at against the lease just
before it is sent and not in one step with it, so a worker that loses its lease in between is not stopped.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)

from checkpoint.config import ContextConfig
from checkpoint.errors import BadRequestError, ConfigError, LeaseLostError
from checkpoint.importing import open_redis_stack
from checkpoint.plan import make_config, read_target
from checkpoint.saver import HISTORY_CHANNEL, RedisContextSaver
from checkpoint.wire import FAULTS, ask, translate

SETTING = "CHECKPOINTER"


@contextmanager
def open_stack_saver(config: ContextConfig) -> Iterator["StackSaver"]:
    """Both savers on the server of REDIS_URL.

    Raises ConfigError when the extra, the server's modules or an address is missing, or when a setting asks
    for what that saver cannot do; CheckpointUnavailable when the server does not answer.
    """
    check(config)
    minutes = max(1, config.ttl_seconds // 60)
    with (
        open_redis_stack(config.url or "", ttl_minutes=minutes) as inner,
        StackSaver(config, inner) as saver,
    ):
        yield saver


def check(config: ContextConfig) -> None:
    if config.url is None or "+" in config.url.split(":", 1)[0]:
        raise ConfigError(
            SETTING,
            "redis-stack needs one server with RedisJSON and RediSearch",
            "Set REDIS_URL to its redis://, rediss:// or unix:// address, or unset CHECKPOINTER",
        )
    if config.aes_key is not None:
        raise ConfigError(
            SETTING, "redis-stack stores checkpoints unencrypted", "Unset CONTEXT_AES_KEY or CHECKPOINTER"
        )
    if config.keep_turns is not None:
        raise ConfigError(SETTING, "redis-stack cannot drop single turns", "Unset KEEP_TURNS or CHECKPOINTER")


class StackSaver(RedisContextSaver):
    """Our saver, but for the checkpoints themselves."""

    def __init__(self, config: ContextConfig, inner: BaseCheckpointSaver[Any]) -> None:
        super().__init__(config)
        self.inner = inner

    def get_next_version(self, current: Any, channel: None = None) -> str:
        return str(self.inner.get_next_version(current, channel))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        self.check_lease("put", config)
        with told("put", config):
            return self.inner.put(config, checkpoint, metadata, new_versions)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        self.check_lease("put_writes", config)
        with told("put_writes", config):
            self.inner.put_writes(config, writes, task_id, task_path)

    def check_lease(self, doing: str, config: RunnableConfig) -> None:
        """Raises LeaseLostError when the config's token no longer holds the thread."""
        target = read_target(config)
        lease = self.plans.names(target.thread_id).lease
        if target.lease and self.wire.run(ask(doing, ("GET", lease))) != target.lease.encode():
            raise LeaseLostError(target.thread_id, doing)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        with told("get_tuple", config):
            return self.inner.get_tuple(config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        with told("list", config):
            yield from self.inner.list(config, filter=filter, before=before, limit=limit)

    def delete_thread(self, thread_id: str) -> None:
        """Ours first: without the lease, a run that still goes on saves nothing more."""
        super().delete_thread(thread_id)
        with told("delete_thread", make_config(thread_id, "", "")):
            self.inner.delete_thread(thread_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:  # noqa: ARG002 - the contract's
        raise unable("delete_for_runs")

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:  # noqa: ARG002 - the contract's
        raise unable("copy_thread")

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:  # noqa: ARG002 - the contract's
        raise unable("prune")

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Step by step through the ancestors, as LangGraph does for savers that know no better."""
        return BaseCheckpointSaver.get_delta_channel_history(self, config=config, channels=channels)

    def restore_window(self, thread_id: object, checkpoint_id: str | None = None) -> Any:
        config: Any = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
        if checkpoint_id:
            config["configurable"]["checkpoint_id"] = checkpoint_id
        found = self.get_tuple(config)
        return found and found.checkpoint["channel_values"].get(HISTORY_CHANNEL)


@contextmanager
def told(doing: str, config: RunnableConfig | None) -> Iterator[None]:
    """Faults of the server as our errors, with their remedies."""
    try:
        yield
    except FAULTS as fault:
        thread = ((config or {}).get("configurable") or {}).get("thread_id", "")
        raise translate(fault, doing, str(thread)) from fault


def unable(method: str) -> BadRequestError:
    return BadRequestError(
        f"langgraph-checkpoint-redis has no {method}: import the threads (business-assistant import-threads) "
        f"and unset {SETTING}"
    )
