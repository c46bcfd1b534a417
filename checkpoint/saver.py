"""The sync saver: LangGraph's checkpointer contract on one Redis hash per thread."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from checkpoint import codec, copying, erase, requests
from checkpoint.config import ContextConfig
from checkpoint.connect import SyncClient, check_given, check_server, connect
from checkpoint.errors import ConfigError, Walk
from checkpoint.layout import context_key
from checkpoint.memory import Memory
from checkpoint.plan import Cursor, Plan, Plans, Target, next_version, read_target
from checkpoint.requests import RequestRecord
from checkpoint.wire import Result, Wire, ask, converse

HISTORY_CHANNEL = "history"


class ContextSaver(BaseCheckpointSaver[str]):
    """What the sync and the async saver share: settings, serializer, and the plans. Opens nothing."""

    def __init__(self, config: ContextConfig, *, serde: SerializerProtocol | None = None) -> None:
        if not isinstance(config, ContextConfig):
            raise ConfigError(
                "config",
                f"it is a {type(config).__name__}",
                "Give load_context_config() or a ContextConfig; a client of yours goes into client=",
            )
        super().__init__(serde=serde or codec.make_serializer(config.aes_key))
        self.config = config
        self.plans = Plans(
            config.key_prefix,
            config.ttl_seconds,
            config.compress_from_bytes,
            Memory(config.remember_threads),
        )

    def get_next_version(self, current: str | int | None, channel: None = None) -> str:  # noqa: ARG002 - the contract's
        return next_version(current)

    def plan_put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Plan[RunnableConfig]:
        """Store; and where KEEP_TURNS is set and a turn begins, drop what is older than that."""
        put = self.plans.put(self.serde, config, checkpoint, metadata, new_versions)
        turns = self.config.keep_turns
        if turns is None or metadata.get("source") != "input" or read_target(config).namespace:
            return put
        return self.plan_put_and_prune(put, read_target(config).thread_id, turns)

    def plan_put_and_prune(
        self, put: Plan[RunnableConfig], thread_id: object, turns: int
    ) -> Plan[RunnableConfig]:
        stored = yield from put
        key = context_key(self.plans.prefix, thread_id)
        yield from erase.erase(self.plans, key, lambda items: erase.choose_turns(items, turns))
        return stored

    def plan_window(self, thread_id: object, checkpoint_id: str | None) -> Plan[Any]:
        return self.plans.get_channel(self.serde, Target(thread_id, "", checkpoint_id, ""), HISTORY_CHANNEL)

    def start(
        self,
        config: RunnableConfig | None,
        key: str | None,
        filter: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Cursor | None:
        """Where a listing begins: in the config's thread, or in that of `key`."""
        found: Mapping[str, Any] = (config or {}).get("configurable") or {}
        thread_id = read_target(config).thread_id if config else None
        bounds: Mapping[str, Any] = cast(Mapping[str, Any], before or {})
        bounds = bounds.get("configurable", bounds)
        namespace, only = found.get("checkpoint_ns"), found.get("checkpoint_id")
        return self.plans.start_listing(
            thread_id,
            key or context_key(self.plans.prefix, thread_id),
            namespace,
            only or None,
            filter=filter,
            before=bounds.get("checkpoint_id") or None,
            limit=limit,
        )


class RedisContextSaver(ContextSaver):
    """LangGraph checkpoints, request records and context windows in Redis or Valkey.

    One round trip for each of put, put_writes, get_tuple and delete_thread, one a page for list, whatever
    the length of the thread. Connects when made, and raises at once when it cannot work: ConfigError,
    CheckpointUnavailable. Threads may share it. `client` must give bytes; it is not closed by close().
    """

    def __init__(
        self,
        config: ContextConfig,
        *,
        client: SyncClient | None = None,
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(config, serde=serde)
        if client is not None:
            check_given(client, awaits=False)
            check_server(client)
        self._link = Link(config, client)
        self._link.wire  # noqa: B018 - connect now: a wrong setting is told here

    @property
    def wire(self) -> Wire:
        return self._link.wire

    def run(self, plan: Plan[Result]) -> Result:
        return self._link.wire.run(converse(plan))

    def close(self) -> None:
        """Let go of the server. Clones made by with_allowlist share the connection and end with it."""
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- LangGraph's contract ---

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return self.run(self.plan_put(config, checkpoint, metadata, new_versions))

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        self.run(self.plans.put_writes(self.serde, config, writes, task_id, task_path))

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self.run(self.plans.get_tuple(self.serde, config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Newest first. Without a config every thread, one after the other."""
        keys = [None] if config else self.wire.scan(self.plans.prefix)
        for key in keys:
            cursor = self.start(config, key, filter, before, limit)
            while cursor is not None:
                page, cursor = self.run(self.plans.list_page(self.serde, cursor))
                yield from page
                limit = None if limit is None else limit - len(page)

    def delete_thread(self, thread_id: str) -> None:
        self.wire.run(ask("delete_thread", erase.delete_thread(self.plans, thread_id)))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete what these runs stored, in every thread. Reads the records of all threads.

        A thread that cannot be read keeps no other from being done; it is told of at the end.
        """
        wanted, walk = {str(run_id) for run_id in run_ids}, Walk()
        for key in self.wire.scan(self.plans.prefix) if wanted else ():
            with walk.step():
                self.run(erase.erase(self.plans, key, lambda items: erase.choose_runs(items, wanted)))
        walk.end()

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self.run(copying.copy_thread(self.plans, source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`keep_latest`, or `delete` (also called `delete_all`). Request records stay."""
        erase.check_strategy(strategy)
        for thread_id in thread_ids:
            self.run(erase.prune(self.plans, thread_id, strategy))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return self.run(self.plans.get_delta_channel_history(self.serde, config, channels))

    # --- windows and request records ---

    def restore_window(self, thread_id: object, checkpoint_id: str | None = None) -> Any:
        """The raw `history` of a thread's latest or named checkpoint, in one read; None if there is none."""
        return self.run(self.plan_window(thread_id, checkpoint_id))

    def put_request(self, record: Mapping[str, Any], *, lease: str | None = None) -> None:
        """Write or replace a request record of exactly 13 keys (requests.py)."""
        self.run(requests.put_request(self.plans, record, lease))

    def list_requests(self, thread_id: object) -> Sequence[RequestRecord]:
        """A thread's records by received_at, then request_id."""
        key = context_key(self.plans.prefix, thread_id)
        found = dict(self.wire.scan_fields(key, requests.record_pattern()))
        return requests.in_order(requests.decode_record(*pair) for pair in found.items())

    def scan_requests(self) -> Iterator[RequestRecord]:
        """All records of all threads, each at least once, in no order; what cannot be read is told last."""
        walk = Walk()
        for field, value in self.scan_request_fields():
            record = None
            with walk.step():
                record = requests.decode_record(field, value)
            if record is not None:
                yield record
        walk.end()

    def scan_request_fields(self) -> Iterator[tuple[bytes, bytes]]:
        for key in self.wire.scan(self.plans.prefix):
            yield from self.wire.scan_fields(key, requests.record_pattern())

    def repair(self, field: bytes, value: bytes, now: datetime) -> bool:
        """Mend one stored record whose worker is gone; see requests.sweep."""
        return self.run(requests.repair_request(self.plans, field, value, now))


class Link:
    """A connection made at first use and shared by a saver's clones."""

    def __init__(self, config: ContextConfig, client: SyncClient | None) -> None:
        self._config = config
        self._owned = client is None
        self._lock = threading.Lock()
        self._wire = None if client is None else Wire(client)

    @property
    def wire(self) -> Wire:
        if self._wire is None:
            with self._lock:
                if self._wire is None:
                    client = connect(self._config)
                    server = getattr(client, "server", None)
                    self._wire = Wire(client, server and server.revive, own=True)
        return self._wire

    def close(self) -> None:
        with self._lock:
            wire, self._wire = self._wire, None if self._owned else self._wire
        if wire is not None and self._owned:
            wire.client.close()
