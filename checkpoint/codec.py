"""Bytes: how values, checkpoints and writes look inside the hash. Pure; knows no server.

Every frame starts with a byte that says how it was made, so that a later form is recognised instead of
misread. Loading imports nothing and calls nothing beyond the few plain types that LangGraph itself lists as
safe; what cannot be restored raises, it never becomes None or a bare dict.
"""

import importlib
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import ormsgpack
from langgraph.checkpoint.base import WRITES_IDX_MAP, ChannelVersions, Checkpoint
from langgraph.checkpoint.serde import _msgpack as safe_lists
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from checkpoint.layout import part, read_parts, read_slot, slot_of, to_text

PLAIN, PACKED = 1, 2
LARGEST_UNPACKED = 512 * 1024 * 1024
CONSTRUCTED = range(6)  # codes whose data names a class; see JsonPlusSerializer
METHOD, NUMPY_ARRAY, DELTA_SNAPSHOT = 3, 6, 7
NON_STR_KEYS = ormsgpack.OPT_NON_STR_KEYS


class UnreadableError(Exception):
    """A frame cannot be read. Callers add where it was found."""


class StrictSerializer(JsonPlusSerializer):
    """LangGraph's serializer with an explicit allow-list, empty unless given. It raises instead of guessing.

    Only null, bytes and msgpack are read: no pickle and no JSON constructors, whatever the environment says.
    """

    def __init__(self, allowed: Sequence[tuple[str, ...]] = ()) -> None:
        super().__init__(pickle_fallback=False, allowed_json_modules=None, allowed_msgpack_modules=allowed)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, body = data
        if kind == "msgpack":
            return self._unpack(body)
        if kind in ("null", "bytes", "bytearray"):
            return super().loads_typed(data)
        sealed = "; it is encrypted: set CONTEXT_AES_KEY to the key that it was written with"
        raise UnreadableError(f"type {kind!r} is not accepted{sealed if kind.endswith('+aes') else ''}")

    def _unpack(self, body: bytes) -> Any:
        # The decoder replaces whatever a hook raises with an error of its own that tells no reason.
        reasons: list[UnreadableError] = []

        def restore(code: int, inner: bytes) -> Any:
            try:
                return self._restore(code, ormsgpack.unpackb(inner, ext_hook=restore, option=NON_STR_KEYS))
            except UnreadableError as fault:
                reasons.append(fault)
                raise

        try:
            return ormsgpack.unpackb(body, ext_hook=restore, option=NON_STR_KEYS)
        except ValueError:
            if reasons:
                raise reasons[0] from None
            raise

    def _restore(self, code: int, content: Any) -> Any:
        if code == DELTA_SNAPSHOT:
            return _DeltaSnapshot(content)
        if code == NUMPY_ARRAY:
            return restore_array(*content)
        if code not in CONSTRUCTED:
            raise UnreadableError(f"extension code {code} is unknown")
        self._check(code, *content[:2], *(content[3:4] if code == METHOD else ()))
        return construct(code, content)

    def _check(self, code: int, module: str, name: str, method: str | None = None) -> None:
        if code == METHOD:
            allowed = (module, name, method) in safe_lists.SAFE_MSGPACK_METHODS
        else:
            listed = self._allowed_msgpack_modules
            allowed = (module, name) in safe_lists.SAFE_MSGPACK_TYPES or (
                isinstance(listed, set) and (module, name) in listed
            )
        if not allowed:
            raise UnreadableError(
                f"{module}.{name} may not be loaded; keep plain values in the state, "
                f"or allow it: saver.with_allowlist([({module!r}, {name!r})])"
            )


def construct(code: int, content: Sequence[Any]) -> Any:
    """Rebuild one value whose class is on the allow-list: as JsonPlusSerializer, without its fallbacks."""
    module, name, payload = content[:3]
    if (module, name) == ("langgraph.types", "Send"):
        # Send takes its timeout by keyword only.
        target = importlib.import_module(module).Send
        return target(*payload[:2]) if len(payload) == 2 else target(*payload[:2], timeout=payload[2])
    target = getattr(importlib.import_module(module), name)
    if code == 0:
        return target(payload)
    if code == 1:
        return target(*payload)
    if code == METHOD:
        return getattr(target, content[3])(payload)
    return target(**payload)


def restore_array(dtype: str, shape: Sequence[int], order: str, data: bytes) -> Any:
    import numpy

    # numpy itself makes no array of Python objects from bytes.
    return numpy.frombuffer(data, dtype=numpy.dtype(dtype)).reshape(tuple(shape), order=cast(Any, order))


def make_serializer(aes_key: bytes | None) -> SerializerProtocol:
    """The default serializer, encrypting when a key is set."""
    strict = StrictSerializer()
    return strict if aes_key is None else EncryptedSerializer.from_pycryptodome_aes(strict, key=aes_key)


# --- values ---


def encode_value(serde: SerializerProtocol, value: object, compress_from: int | None = None) -> bytes:
    """One value as a frame: form, length of the type's name, type, data."""
    kind, data = serde.dumps_typed(value)
    name = kind.encode()
    if len(name) > 255:
        raise ValueError(f"the serializer's type name has {len(name)} bytes; 255 is the most")
    if (
        compress_from is not None
        and len(data) >= compress_from
        and not isinstance(serde, EncryptedSerializer)
    ):
        smaller = zlib.compress(data, 1)
        if len(smaller) < len(data):
            return b"%c%c%b%b%b" % (PACKED, len(name), name, len(data).to_bytes(4, "big"), smaller)
    return b"%c%c%b%b" % (PLAIN, len(name), name, data)


def decode_value(serde: SerializerProtocol, frame: bytes) -> Any:
    """The value of a frame. Raises UnreadableError, whatever is wrong with it."""
    try:
        kind, data = open_frame(frame)
        refuse_plaintext(serde, kind)
        return serde.loads_typed((kind, data))
    except UnreadableError:
        raise
    except Exception as fault:
        # Damaged bytes can make a decoder raise anything, and its text may hold the value.
        raise UnreadableError(f"it is damaged ({type(fault).__name__})") from fault


def refuse_plaintext(serde: SerializerProtocol, kind: str) -> None:
    """EncryptedSerializer would read a plain value; whoever can write to the server could plant one."""
    if isinstance(serde, EncryptedSerializer) and "+" not in kind:
        raise UnreadableError("it is not encrypted, and CONTEXT_AES_KEY is set")


def open_frame(frame: bytes) -> tuple[str, bytes]:
    if len(frame) < 2 or frame[0] not in (PLAIN, PACKED):
        raise UnreadableError("its form is unknown; it is damaged or was written by a newer version")
    start = 2 + frame[1]
    kind = frame[2:start].decode()
    if frame[0] == PLAIN:
        return kind, frame[start:]
    size = int.from_bytes(frame[start : start + 4], "big")
    if size > LARGEST_UNPACKED:
        raise UnreadableError(f"it claims {size} bytes")
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(frame[start + 4 :], size or 1)
    if len(data) != size or unpacker.unconsumed_tail or not unpacker.eof:
        raise UnreadableError("it is longer or shorter than it claims")
    return kind, data


# --- checkpoints ---


class Header(NamedTuple):
    """What the server and `prune` must know of a checkpoint without reading its content; never secret.

    valued: slots that hold a value here. possible: slots that may hold one from an earlier checkpoint.
    empty: slots known to be without. Together they are the checkpoint's channel_versions.
    anchor: the root checkpoint that a subgraph's checkpoint belongs to. unseeded: delta channels whose value
    must be rebuilt from ancestors.
    """

    parent: str
    run_id: str
    source: str
    anchor: str
    unseeded: list[str]
    valued: list[str]
    possible: list[str]
    empty: list[str]


class EncodedCheckpoint(NamedTuple):
    """A checkpoint ready to be sent. `carried` counts the first of `header.valued`, those not in `values`."""

    header: Header
    payload: bytes
    values: list[tuple[str, bytes]]
    carried: int


def encode_checkpoint(
    serde: SerializerProtocol,
    checkpoint: Checkpoint,
    metadata: Mapping[str, Any],
    *,
    parent: str | None,
    new_versions: ChannelVersions,
    compress_from: int | None = None,
) -> EncodedCheckpoint:
    """Split a checkpoint into a record and the values that are new. Unchanged values are only referred to."""
    values, versions = checkpoint["channel_values"], checkpoint["channel_versions"]
    carried, fresh, possible, empty = [], [], [], []
    for channel, version in versions.items():
        slot = slot_of(channel, version)
        if channel in values:
            if channel in new_versions:
                fresh.append((slot, encode_value(serde, values[channel], compress_from)))
            else:
                carried.append(slot)
        elif channel in new_versions:
            empty.append(slot)
        else:
            possible.append(slot)
    rest = {k: v for k, v in checkpoint.items() if k not in ("channel_values", "channel_versions")}
    loose = {k: v for k, v in values.items() if k not in versions}
    content = [rest, metadata, loose] if loose else [rest, metadata]
    header = Header(
        parent=parent or "",
        run_id=str(metadata.get("run_id") or ""),
        source=str(metadata.get("source") or ""),
        anchor=str((metadata.get("parents") or {}).get("") or ""),
        unseeded=[c for c in metadata.get("counters_since_delta_snapshot") or {} if c not in values],
        valued=carried + [slot for slot, _ in fresh],
        possible=possible,
        empty=empty,
    )
    return EncodedCheckpoint(header, encode_value(serde, content, compress_from), fresh, len(carried))


def encode_values(
    serde: SerializerProtocol, checkpoint: Checkpoint, slots: Sequence[str], compress_from: int | None
) -> list[tuple[str, bytes]]:
    """The values of these slots, for a thread that lost them."""
    values = checkpoint["channel_values"]
    return [(slot, encode_value(serde, values[read_slot(slot)[0]], compress_from)) for slot in slots]


def pack_header(header: Header) -> bytes:
    return ormsgpack.packb(tuple(header))


def split_record(record: bytes) -> tuple[str, Header, bytes]:
    """A stored record: the next lower id in its namespace, its header, and its payload's frame."""
    try:
        (size,) = struct.unpack_from(">I", record)
        prev = to_text(record[4 : 4 + size])
        start = 8 + size
        (length,) = struct.unpack_from(">I", record, start - 4)
        header = Header(*ormsgpack.unpackb(record[start : start + length]))
    except (struct.error, TypeError, ValueError) as fault:
        raise UnreadableError("its record is damaged") from fault
    return prev, header, record[start + length :]


def channel_of(slot: str) -> str:
    return cut_part(slot.encode())[0]


def read_versions(header: Header) -> ChannelVersions:
    return dict(read_slot(slot) for slots in header[5:8] for slot in slots)


# --- writes ---

ENTRY = struct.Struct(">iI")


class Write(NamedTuple):
    """One stored write. Its order is (task_path, task_id, position)."""

    task_path: str
    task_id: str
    position: int
    channel: str
    frame: bytes


def encode_writes(
    serde: SerializerProtocol,
    writes: Sequence[tuple[str, Any]],
    task_path: str,
    compress_from: int | None = None,
) -> bytes:
    """A batch: for each write its index, its length, and task path, channel and value.

    Two special writes of one kind share an index; the last of them counts.
    """
    path = part(task_path)
    indexed = {WRITES_IDX_MAP.get(write[0], position): write for position, write in enumerate(writes)}
    parts: list[bytes] = []
    for index, (channel, value) in indexed.items():
        body = path + part(channel) + encode_value(serde, value, compress_from)
        parts += (ENTRY.pack(index, len(body)), body)
    return b"".join(parts)


def read_writes(task_id: str, batch: bytes) -> list[Write]:
    found, at = [], 0
    try:
        while at < len(batch):
            index, size = ENTRY.unpack_from(batch, at)
            body = batch[at + ENTRY.size : at + ENTRY.size + size]
            if len(body) != size:
                raise UnreadableError("its writes are cut short")
            path, rest = cut_part(body)
            channel, frame = cut_part(rest)
            found.append(Write(path, task_id, index, channel, frame))
            at += ENTRY.size + size
    except (struct.error, ValueError) as fault:
        raise UnreadableError("its writes are damaged") from fault
    return found


def cut_part(data: bytes) -> tuple[str, bytes]:
    size, _, rest = data.partition(b":")
    length = int(size)
    return to_text(rest[:length]), rest[length:]


def sort_writes(index: bytes | None, batches: Sequence[bytes | None]) -> list[Write]:
    """All writes of a checkpoint in the order in which a run applies them."""
    tasks = read_parts(index or b"")
    found = [
        write
        for task, batch in zip(tasks, batches, strict=True)
        if batch
        for write in read_writes(task, batch)
    ]
    return sorted(found, key=lambda write: write[:3])
