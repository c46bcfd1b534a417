"""What is asked of the server and what its answers mean, for the sync and the async saver alike. No I/O.

A plan is a generator: it yields calls, is sent their replies, and returns the result. Whoever drives it does
the talking (saver.py, async_saver.py), so that everything but the waiting exists once.
"""

import os
from base64 import urlsafe_b64encode
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from checkpoint import codec, scripts
from checkpoint.codec import UnreadableError
from checkpoint.errors import (
    BadRequestError,
    CannotRestoreError,
    LeaseLostError,
    NewerFormatError,
)
from checkpoint.layout import (
    STAMP,
    context_key,
    part,
    read_parts,
    read_thread_mark,
    to_bytes,
    to_text,
    writes_field,
)
from checkpoint.memory import Kept, Known, Memory, Names, keep_put, keep_read, keep_value

# Above this many bytes of values a script costs more than a transaction of plain commands, because Lua
# copies every argument.
LARGEST_SCRIPT_BYTES = 16 * 1024
# Fields, values and other arguments that Lua takes at once.
MOST_FIELDS = 2000
FIRST_PAGE, LARGEST_PAGE, PAGE_BYTES = 16, 128, 1024 * 1024


class Target(NamedTuple):
    """What a config points at."""

    thread_id: Any
    namespace: str
    checkpoint_id: str | None
    lease: str


class Call(NamedTuple):
    """One round trip: a script, or, with `staged`, a transaction that sets fields and then runs the script.

    `doing` and `target` are for error messages. `staged` commands get the key put in second place. The first
    `fixed` arguments are the same whenever this script is called with these keys.
    """

    doing: str
    script: scripts.Script
    keys: tuple[str, ...]
    args: tuple[bytes | str | int, ...]
    staged: tuple[bytes, ...] = ()
    stage_command: str = "HSET"
    target: Target | None = None
    fixed: int = 0

    @property
    def place(self) -> dict[str, object]:
        if self.target is None:
            return {"key": self.keys[0]}
        thread_id, namespace, checkpoint_id, _ = self.target
        place: dict[str, object] = {"thread": thread_id, "namespace": namespace}
        return {**place, "checkpoint": checkpoint_id} if checkpoint_id else place


@dataclass(frozen=True)
class Cursor:
    """Where a listing goes on. `heads` is None before the first page."""

    key: str
    thread_id: Any
    filter: Mapping[str, Any] | None
    before: str
    only: str
    left: int | None
    size: int
    heads: tuple[bytes, ...]


Result = TypeVar("Result")
Plan = Generator[Call, Any, Result]


def read_target(config: RunnableConfig) -> Target:
    """Thread, namespace, checkpoint and lease token of a config. Raises BadRequestError without a thread."""
    found = config.get("configurable") or {}
    if found.get("thread_id") is None:
        raise BadRequestError('config["configurable"]["thread_id"] is missing; name the thread to work on')
    checkpoint_id = found.get("checkpoint_id")
    return Target(
        found["thread_id"],
        str(found.get("checkpoint_ns") or ""),
        str(checkpoint_id) if checkpoint_id else None,
        str(found.get("__lease") or ""),
    )


def make_config(thread_id: object, namespace: str, checkpoint_id: str) -> RunnableConfig:
    return {
        "configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
    }


def next_version(current: str | int | float | None) -> str:
    """A version above `current`, unlike any that another branch or process makes from it.

    A space and ten digits that sort, then 48 random bits from the system (a forked process would repeat a
    seeded generator). Versions are compared as text, and LangGraph's own savers and its server make theirs of
    32 digits whatever came before: the space sorts below every digit, so theirs is above ours. Going on from
    one of theirs, or from one of our first form without the space, its width is kept.
    """
    text = current.partition(".")[0] if isinstance(current, str) else f" {int(current or 0):010}"
    digits = text.lstrip()
    lead = text[: len(text) - len(digits)]
    return f"{lead}{int(digits) + 1:0{len(digits)}}.{urlsafe_b64encode(os.urandom(6)).decode()}"


def check_status(reply: Sequence[Any], call: Call, thread_id: object) -> bytes:
    """The status of a reply. Refusals that no plan handles itself are raised."""
    status = cast(bytes, reply[0])
    if status == b"lease":
        raise LeaseLostError(thread_id, call.doing)
    if status == b"form":
        raise NewerFormatError(call.keys[0], reply[1].decode(errors="replace").partition(":")[0])
    return status


@dataclass(frozen=True)
class Plans:
    """Plans for one key prefix and TTL."""

    prefix: str
    ttl_seconds: int
    compress_from: int | None
    memory: Memory = field(default_factory=lambda: Memory(0))

    def names(self, thread_id: object) -> Names:
        return self.memory.names(self.prefix, thread_id)

    def keys(self, thread_id: object) -> tuple[str, str, str]:
        """Hash, lease, and the place where a refused transaction parks the hash."""
        return self.names(thread_id)[:3]

    def put(
        self,
        serde: SerializerProtocol,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Plan[RunnableConfig]:
        """Store a checkpoint and the values that are new. When older values have vanished, all of them."""
        target = read_target(config)
        key = self.names(target.thread_id).key
        known = self.memory.get(key)
        before = known.spaces.get(target.namespace) if known else None
        is_next = before is not None and before.id == target.checkpoint_id
        encoded = codec.encode_checkpoint(
            serde,
            checkpoint,
            cast(Mapping[str, Any], get_checkpoint_metadata(config, metadata)),
            parent=target.checkpoint_id,
            new_versions=new_versions,
            compress_from=self.compress_from,
            known=before.channels if before and is_next else None,
        )
        stamp, trusted = os.urandom(8), b""
        # Code points are in the order of their UTF-8 bytes, by which the server compares.
        if known and before and is_next and encoded.is_sure and checkpoint["id"] > before.id:
            trusted = known.stamp
        target = Target(target.thread_id, target.namespace, checkpoint["id"], target.lease)
        call = self.put_call("put", target, encoded, stamp, trusted)
        reply = yield call
        if check_status(reply, call, target.thread_id) == b"gone":
            lost = codec.encode_values(
                serde, checkpoint, encoded.header.valued[: encoded.carried], self.compress_from
            )
            encoded = encoded._replace(values=lost + encoded.values, carried=0)
            call = self.put_call("put", target, encoded, stamp)
            reply = yield call
            check_status(reply, call, target.thread_id)
        if known and len(reply) == 1:
            spaces = {**known.spaces, target.namespace: keep_put(checkpoint["id"], encoded)}
            self.memory.set(key, Known(stamp, spaces))
        elif reply[1:] == [b"top"]:
            kept = keep_put(checkpoint["id"], codec.prove(encoded))
            self.memory.set(key, Known(stamp, {target.namespace: kept}))
        return make_config(target.thread_id, target.namespace, checkpoint["id"])

    def put_call(
        self,
        doing: str,
        target: Target,
        encoded: codec.EncodedCheckpoint,
        stamp: bytes,
        trusted: bytes = b"",
    ) -> Call:
        """`trusted`: the stamp under which the parent is the latest, and what is carried is stored."""
        space, raw_id = part(target.namespace), to_bytes(target.checkpoint_id or "")
        prev = to_bytes(encoded.header.parent) if trusted else b""
        prefix = b"cv" + space
        values = tuple(
            piece
            for (name, token), value in encoded.values
            for piece in (prefix + (name + token).encode(), value)
        )
        is_small = len(values) < MOST_FIELDS and sum(map(len, values)) <= LARGEST_SCRIPT_BYTES
        args = (
            trusted,
            b"%d" % encoded.carried,
            STAMP,
            stamp,
            b"cc%b%d:%b" % (space, len(raw_id), raw_id),
            codec.join_record(prev, encoded.header, encoded.payload),
            *(values if is_small else ()),
            b"cl" + space,
            raw_id,
        )
        return self.write_call(doing, scripts.PUT, target, args, staged=() if is_small else values)

    def write_call(
        self,
        doing: str,
        script: scripts.Script,
        target: Target,
        args: tuple[bytes, ...],
        *,
        staged: tuple[bytes, ...] = (),
        stage_command: str = "HSET",
    ) -> Call:
        names = self.names(target.thread_id)
        keys = names[:3] if staged else names[:2] if target.lease else names[:1]
        first = (to_bytes(target.lease), self.ttl_seconds, names.mark)
        return Call(doing, script, keys, first + args, staged, stage_command, target, len(first))

    def put_writes(
        self,
        serde: SerializerProtocol,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> Plan[None]:
        """Store what a task wrote. An ordinary write keeps its first value, a special one its last."""
        target = read_target(config)
        if not target.checkpoint_id:
            raise BadRequestError('put_writes needs config["configurable"]["checkpoint_id"]')
        if not writes:
            return
        batch = codec.encode_writes(serde, writes, task_path, self.compress_from)
        call = self.writes_call("put_writes", target, task_id, batch)
        if check_status((yield call), call, target.thread_id) == b"merge":
            call = self.merge_call("put_writes", target, task_id, batch)
            check_status((yield call), call, target.thread_id)

    def writes_call(self, doing: str, target: Target, task_id: str, batch: bytes) -> Call:
        """A batch of a task's writes for the target's checkpoint; a large one is staged."""
        if len(batch) <= LARGEST_SCRIPT_BYTES:
            return self.merge_call(doing, target, task_id, batch)
        field = writes_field(target.namespace, target.checkpoint_id or "", task_id)
        args = (self.place(target), part(task_id), b"", b"1")
        staged = (field, batch)
        return self.write_call(doing, scripts.WRITES, target, args, staged=staged, stage_command="HSETNX")

    def merge_call(self, doing: str, target: Target, task_id: str, batch: bytes) -> Call:
        args = (self.place(target), part(task_id), batch, b"")
        return self.write_call(doing, scripts.WRITES, target, args)

    def place(self, target: Target) -> bytes:
        return part(target.namespace) + part(target.checkpoint_id or "")

    def get_tuple(self, serde: SerializerProtocol, config: RunnableConfig) -> Plan[CheckpointTuple | None]:
        target = read_target(config)
        key = self.names(target.thread_id).key
        stamp, held = self.held(key, target)
        space = part(target.namespace)
        listed = b"wi" + space + part(held.id) if held else b""
        args = (space, to_bytes(target.checkpoint_id or ""), stamp, listed)
        call = Call("get_tuple", scripts.GET, (key,), args, target=target, fixed=1)
        reply = yield call
        status = check_status(reply, call, target.thread_id)
        if held and status == b"held":
            return read_kept(serde, target, held, reply[1], reply[2])
        if len(reply) < 2 or reply[1] is None:
            return None
        opened = open_item(serde, target.thread_id, reply[1])
        found = read_tuple(serde, opened)
        self.remember(key, target.namespace, opened, reply[2], reply[3])
        return found

    def held(self, key: str, target: Target) -> tuple[bytes, Kept | None]:
        """The wanted checkpoint, if it is remembered whole, and the stamp under which that counts."""
        known = self.memory.get(key)
        kept = known and known.spaces.get(target.namespace)
        if known and kept and kept.is_whole and target.checkpoint_id in (None, kept.id):
            return known.stamp, kept
        return b"", None

    def remember(
        self, key: str, namespace: str, opened: "Opened", stamp: bytes | None, top: bytes | None
    ) -> None:
        """Only the latest of a namespace is worth it."""
        _, raw_id, _, frames, _, _ = opened.item
        if stamp is None or raw_id != top:
            return
        known = self.memory.get(key)
        others = known.spaces if known and known.stamp == stamp else {}
        kept = keep_read(to_text(raw_id), opened.header, opened.payload, frames)
        self.memory.set(key, Known(stamp, {**others, namespace: kept}))

    def get_channel(self, serde: SerializerProtocol, target: Target, channel: str) -> Plan[Any]:
        """One channel's value of a checkpoint, or None when the checkpoint or the value does not exist."""
        key = context_key(self.prefix, target.thread_id)
        args = (part(target.namespace), to_bytes(target.checkpoint_id or ""), part(channel))
        call = Call("restore_window", scripts.CHANNEL, (key,), args, target=target)
        reply = yield call
        check_status(reply, call, target.thread_id)
        if len(reply) < 3:
            return None
        place = where(target.thread_id, target.namespace, to_text(reply[1]), channel)
        frame = reply[3] if len(reply) > 3 else None
        if frame is None:
            return require(reply[2], place)
        return restore(serde, frame, place)

    def start_listing(
        self,
        thread_id: object,
        key: str,
        namespace: str | None,
        only: str | None,
        *,
        filter: Mapping[str, Any] | None,
        before: str | None,
        limit: int | None,
    ) -> Cursor | None:
        """Where a listing of one thread begins; None when nothing can match."""
        if (limit is not None and limit <= 0) or (only and before and only >= before):
            return None
        size = FIRST_PAGE if limit is None or filter else min(limit, LARGEST_PAGE)
        heads: tuple[bytes, ...] = () if namespace is None else (part(namespace), b"")
        return Cursor(key, thread_id, filter, before or "", only or "", limit, size, heads)

    def list_page(
        self, serde: SerializerProtocol, cursor: Cursor
    ) -> Plan[tuple[list[CheckpointTuple], Cursor | None]]:
        """The next page's matches, newest first, and where to go on."""
        args: tuple[bytes | int, ...] = (
            b"1",
            cursor.size,
            PAGE_BYTES,
            to_bytes(cursor.before),
            to_bytes(cursor.only),
            *cursor.heads,
        )
        call = Call("list", scripts.PAGE, (cursor.key,), args)
        reply = yield call
        check_status(reply, call, cursor.thread_id)
        _, mark, items, heads = reply
        if mark is None:
            return [], None
        thread_id = read_mark(cursor.key, mark) if cursor.thread_id is None else cursor.thread_id
        matches = list(match_items(serde, thread_id, items, cursor))
        left = None if cursor.left is None else cursor.left - len(matches)
        if not heads or left == 0:
            return matches, None
        onward = tuple(piece for head in heads for piece in head)
        return matches, replace(
            cursor, before="", left=left, size=min(2 * cursor.size, LARGEST_PAGE), heads=onward
        )

    def get_delta_channel_history(
        self, serde: SerializerProtocol, config: RunnableConfig, channels: Sequence[str]
    ) -> Plan[Mapping[str, DeltaChannelHistory]]:
        """For each channel its writes along the parent chain, oldest first, down to a stored value."""
        if not channels:
            return {}
        target = read_target(config)
        key = context_key(self.prefix, target.thread_id)
        args = (
            part(target.namespace),
            to_bytes(target.checkpoint_id or ""),
            *map(part, dict.fromkeys(channels)),
        )
        call = Call("get_delta_channel_history", scripts.ANCESTORS, (key,), args, target=target)
        reply = yield call
        check_status(reply, call, target.thread_id)
        return read_history(serde, target, channels, reply[1])


def where(
    thread_id: object, namespace: str, checkpoint_id: str, channel: str | None = None
) -> dict[str, object]:
    place: dict[str, object] = {"thread": thread_id, "namespace": namespace, "checkpoint": checkpoint_id}
    return place if channel is None else {**place, "channel": channel}


def restore(serde: SerializerProtocol, frame: bytes, place: Mapping[str, object]) -> Any:
    try:
        return codec.decode_value(serde, frame)
    except UnreadableError as fault:
        raise CannotRestoreError(str(fault), place) from fault


def restore_content(serde: SerializerProtocol, payload: bytes, place: Mapping[str, object]) -> codec.Content:
    content = restore(serde, payload, place)
    try:
        return codec.read_content(content)
    except UnreadableError as fault:
        raise CannotRestoreError(str(fault), place) from fault


def require(header_list: int, place: Mapping[str, object]) -> None:
    """A slot without a value: list 6 of the header promised one, list 7 did not."""
    if header_list == 6:
        raise CannotRestoreError("its value is missing", place)


def read_mark(key: str, mark: bytes) -> str | int:
    try:
        return read_thread_mark(mark)
    except ValueError as fault:
        raise CannotRestoreError("its thread id is damaged", {"key": key}) from fault


def split(record: bytes, place: Mapping[str, object]) -> tuple[str, codec.Header, bytes]:
    try:
        return codec.split_record(record)
    except UnreadableError as fault:
        raise CannotRestoreError(str(fault), place) from fault


@dataclass(frozen=True)
class Opened:
    """A checkpoint as the server gave it, with its record read and its values and writes still closed."""

    place: dict[str, object]
    header: codec.Header
    payload: bytes
    content: codec.Content
    item: Sequence[Any]


def open_item(serde: SerializerProtocol, thread_id: object, item: Sequence[Any]) -> Opened:
    place = where(thread_id, read_parts(item[0])[0], to_text(item[1]))
    _, header, payload = split(item[2], place)
    return Opened(place, header, payload, restore_content(serde, payload, place), item)


def read_kept(
    serde: SerializerProtocol,
    target: Target,
    kept: Kept,
    index: bytes | None,
    batches: Sequence[bytes | None],
) -> CheckpointTuple:
    """The whole checkpoint from what is remembered, with the writes that the server has of it now."""
    place = where(target.thread_id, target.namespace, kept.id)
    content = restore_content(serde, kept.payload, place)
    values = copy_values(serde, kept, place)
    versions = {channel: held.version for channel, held in kept.channels.items()}
    pending = read_pending(serde, index, batches, place)
    checkpoint = join_checkpoint(place, content, values, versions)
    return make_tuple(place, checkpoint, content.metadata, kept.parent, pending)


def copy_values(serde: SerializerProtocol, kept: Kept, place: dict[str, object]) -> dict[str, Any]:
    """A caller may change what it gets: everything is a copy, or cannot be changed."""

    def decode(channel: str, frame: bytes) -> Any:
        return restore(serde, frame, {**place, "channel": channel})

    frames = [(channel, held.frame) for channel, held in kept.channels.items() if held.frame is not None]
    # Another serializer may make something else of the same bytes, and is asked each time.
    if type(serde) is not codec.StrictSerializer:
        return {channel: decode(channel, frame) for channel, frame in frames}
    if kept.values is None:
        found = [(channel, frame, decode(channel, frame)) for channel, frame in frames]
        kept.values = [keep_value(*each) for each in found]
        return {
            channel: kept.copy(value) if kept.copy else value
            for kept, (channel, _, value) in zip(kept.values, found, strict=True)
        }
    return {
        channel: copy(plain) if copy else decode(channel, frame)
        for channel, frame, copy, plain in kept.values
    }


def read_tuple(serde: SerializerProtocol, opened: Opened) -> CheckpointTuple:
    """The whole checkpoint. Raises CannotRestoreError naming the part that is bad."""
    place, header, content = opened.place, opened.header, opened.content
    versions = read_versions(header, place)
    values = read_values(serde, header, opened.item[3], place)
    pending = read_pending(serde, opened.item[4], opened.item[5], place)
    checkpoint = join_checkpoint(place, content, values, versions)
    return make_tuple(place, checkpoint, content.metadata, header.parent, pending)


def join_checkpoint(
    place: Mapping[str, object], content: codec.Content, values: dict[str, Any], versions: ChannelVersions
) -> Checkpoint:
    try:
        return codec.join_checkpoint(str(place["checkpoint"]), content, values, versions)
    except UnreadableError as fault:
        raise CannotRestoreError(str(fault), place) from fault


def make_tuple(
    place: Mapping[str, object],
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    parent: str,
    pending: list[PendingWrite],
) -> CheckpointTuple:
    thread_id, namespace = place["thread"], str(place["namespace"])
    return CheckpointTuple(
        config=make_config(thread_id, namespace, str(place["checkpoint"])),
        checkpoint=checkpoint,
        metadata=metadata,
        parent_config=make_config(thread_id, namespace, parent) if parent else None,
        pending_writes=pending,
    )


def read_versions(header: codec.Header, place: Mapping[str, object]) -> ChannelVersions:
    try:
        return codec.read_versions(header)
    except UnreadableError as fault:
        raise CannotRestoreError(str(fault), place) from fault


def read_values(
    serde: SerializerProtocol, header: codec.Header, frames: Sequence[bytes | None], place: dict[str, object]
) -> dict[str, Any]:
    values = {}
    promised = len(header.valued)
    for position, (slot, frame) in enumerate(zip(header.valued + header.possible, frames, strict=True)):
        channel = codec.channel_of(slot)
        if frame is not None:
            values[channel] = restore(serde, frame, {**place, "channel": channel})
        elif position < promised:
            raise CannotRestoreError("its value is missing", {**place, "channel": channel})
    return values


def read_pending(
    serde: SerializerProtocol, index: bytes | None, batches: Sequence[bytes | None], place: dict[str, object]
) -> list[PendingWrite]:
    try:
        writes = codec.sort_writes(index, batches)
    except (UnreadableError, ValueError) as fault:
        raise CannotRestoreError(str(fault), place) from fault
    return [
        (write.task_id, write.channel, restore(serde, write.frame, {**place, "channel": write.channel}))
        for write in writes
    ]


def match_items(
    serde: SerializerProtocol, thread_id: object, items: Sequence[Any], cursor: Cursor
) -> Iterator[CheckpointTuple]:
    """The items that fit the filter, up to the limit. Only those that fit are read in full."""
    opened = (open_item(serde, thread_id, item) for item in items)
    fitting = (found for found in opened if not cursor.filter or fits(found.content.metadata, cursor.filter))
    for found in islice(fitting, cursor.left):
        yield read_tuple(serde, found)


def fits(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether every wanted key has an equal value of the same type (1, 1.0 and True are three values)."""
    return all(name in metadata and is_same(metadata[name], value) for name, value in wanted.items())


def is_same(left: object, right: object) -> bool:
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(is_same(left[name], right[name]) for name in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(is_same, left, right))
    return type(left) is type(right) and left == right


def read_history(
    serde: SerializerProtocol, target: Target, channels: Sequence[str], steps: Sequence[Any]
) -> dict[str, DeltaChannelHistory]:
    """Sort the ancestors' writes by channel. A stored value ends a channel, its own writes included."""
    writes: dict[str, list[list[PendingWrite]]] = {channel: [] for channel in channels}
    seeds: dict[str, Any] = {}
    for raw_id, index, batches, found in steps:
        place = where(target.thread_id, target.namespace, to_text(raw_id))
        sought = [channel for channel in writes if channel not in seeds]
        for channel, pending in sort_by_channel(serde, index, batches, place, sought).items():
            writes[channel].append(pending)
        for slot, frame in found:
            channel = codec.cut_part(slot)[0]
            if frame is None:
                require(6, {**place, "channel": channel})
            seeds[channel] = restore(serde, frame, {**place, "channel": channel})
    history: dict[str, DeltaChannelHistory] = {}
    for channel in channels:
        history[channel] = {"writes": [write for step in reversed(writes[channel]) for write in step]}
        if channel in seeds:
            history[channel]["seed"] = seeds[channel]
    return history


def sort_by_channel(
    serde: SerializerProtocol,
    index: bytes | None,
    batches: Sequence[bytes | None],
    place: dict[str, object],
    sought: Sequence[str],
) -> dict[str, list[PendingWrite]]:
    found: dict[str, list[PendingWrite]] = {channel: [] for channel in sought}
    try:
        writes = codec.sort_writes(index, batches)
    except (UnreadableError, ValueError) as fault:
        raise CannotRestoreError(str(fault), place) from fault
    for write in writes:
        if write.channel in found:
            value = restore(serde, write.frame, {**place, "channel": write.channel})
            found[write.channel].append((write.task_id, write.channel, value))
    return found
