"""The floor: what any saver on redis-py must do, and nothing else.

It serializes with LangGraph's serializer and sends the bytes in one pipeline a call. It knows no lease, no
order of writes, no latest by id, and finds a thread again only in the process that wrote it: no saver to use.
With `atomic` a pipeline is the transaction that redis-py makes of it unless told otherwise; without, a crash
can leave values that never expire.
"""

from collections.abc import Sequence
from typing import Any

import redis
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from checkpoint.plan import next_version

TTL_SECONDS = 15 * 24 * 3600


class FloorSaver(BaseCheckpointSaver[str]):
    def __init__(self, client: redis.Redis, *, atomic: bool = False) -> None:
        super().__init__()
        self.client = client
        self.atomic = atomic
        self.latest: dict[str, tuple[str, dict[str, str]]] = {}  # thread -> checkpoint id, channel -> field

    def get_next_version(self, current: Any, channel: None = None) -> str:  # noqa: ARG002 - the contract's
        return next_version(current)

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        thread, id_ = config["configurable"]["thread_id"], checkpoint["id"]
        values = checkpoint["channel_values"]
        bare = {**checkpoint, "channel_values": {}}
        parent = config["configurable"].get("checkpoint_id")
        fields = {f"c{id_}": self.dump((bare, metadata, parent))}
        names = {name: f"v{name}{version}" for name, version in checkpoint["channel_versions"].items()}
        names = {name: field for name, field in names.items() if name in values}
        fields |= {names[name]: self.dump(values[name]) for name in new_versions if name in values}
        self.send(thread, fields)
        self.latest[thread] = (id_, names)
        return {"configurable": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": id_}}

    def put_writes(self, config: Any, writes: Sequence[Any], task_id: str, task_path: str = "") -> None:
        found = config["configurable"]
        fields = {
            f"w{found['checkpoint_id']}{task_id}{place}": self.dump((channel, value, task_path))
            for place, (channel, value) in enumerate(writes)
        }
        self.send(found["thread_id"], fields)

    def get_tuple(self, config: Any) -> CheckpointTuple | None:
        thread = config["configurable"]["thread_id"]
        if thread not in self.latest:
            return None
        id_, names = self.latest[thread]
        pipe = self.client.pipeline(transaction=False)
        pipe.hmget(f"floor:{thread}", [f"c{id_}", *names.values()])
        record, *values = pipe.execute()[0]
        checkpoint, metadata, parent = self.load(record)
        checkpoint["channel_values"] = dict(zip(names, map(self.load, values), strict=True))
        here = {"thread_id": thread, "checkpoint_ns": ""}
        return CheckpointTuple(
            {"configurable": {**here, "checkpoint_id": id_}},
            checkpoint,
            metadata,
            {"configurable": {**here, "checkpoint_id": parent}} if parent else None,
            [],
        )

    def send(self, thread: str, fields: dict[str, bytes]) -> None:
        pipe = self.client.pipeline(transaction=self.atomic)
        pipe.hset(f"floor:{thread}", mapping=fields)  # type: ignore[arg-type]
        pipe.expire(f"floor:{thread}", TTL_SECONDS)
        pipe.execute()

    def dump(self, value: Any) -> bytes:
        kind, data = self.serde.dumps_typed(value)
        return kind.encode() + b":" + data

    def load(self, frame: bytes) -> Any:
        kind, _, data = frame.partition(b":")
        return self.serde.loads_typed((kind.decode(), data))
