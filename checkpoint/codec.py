"""Bytes: how values, checkpoints and writes look inside the hash. Pure; knows no server.

Every frame starts with a byte that says how it was made, so that a later form is recognised instead of
misread. Loading imports nothing and calls nothing beyond the few plain types that LangGraph itself lists as
safe; what cannot be restored raises, it never becomes None or a bare dict.
"""

import importlib
import itertools
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

PLAIN, PACKED, UNDER = 1, 2, 3
SMALLEST_PACKED = 400  # below it, a third of a put's time would buy some hundred bytes
MOST_ENDS = 120
FRAME_BYTES = len(b"\x01\x07msgpack")
PACKING = 6  # a sixth slower than 1 for what is stored here, and a twentieth smaller
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
    if kind == "msgpack" and (compress_from is None or len(data) < compress_from):
        return b"\x01\x07msgpack" + data
    name = kind.encode()
    if len(name) > 255:
        raise ValueError(f"the serializer's type name has {len(name)} bytes; 255 is the most")
    if (
        compress_from is not None
        and len(data) >= compress_from
        and not isinstance(serde, EncryptedSerializer)
    ):
        packer = make_packer(len(data))
        smaller = packer.compress(data) + packer.flush()
        if is_worth(len(smaller), len(data)):
            return b"%c%c%b%b%b" % (PACKED, len(name), name, len(data).to_bytes(4, "big"), smaller)
    return b"%c%c%b%b" % (PLAIN, len(name), name, data)


def make_packer(size: int, dictionary: bytes = b"") -> Any:
    """For data of this size. Making one with the largest tables takes longer than packing a small value."""
    bits = min(15, max(10, size.bit_length()))
    return zlib.compressobj(PACKING, zlib.DEFLATED, bits, bits - 7, zdict=dictionary)


def did_not_shrink(frame: bytes | None, compress_from: int | None) -> bool:
    """A channel's last value stayed as it was, so that the next is not even tried."""
    return (
        frame is not None
        and compress_from is not None
        and len(frame) >= compress_from + FRAME_BYTES
        and frame[0] == PLAIN
    )


def is_worth(smaller: int, size: int) -> bool:
    """Whether packing pays for the time that reading takes longer by. What is random shrinks by a quarter."""
    return smaller < 0.7 * size


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
    return kind, unpack(frame, start, zlib.decompressobj())


def unpack(frame: bytes, start: int, unpacker: Any) -> bytes:
    size = int.from_bytes(frame[start : start + 4], "big")
    if size > LARGEST_UNPACKED:
        raise UnreadableError(f"it claims {size} bytes")
    data: bytes = unpacker.decompress(frame[start + 4 :], size or 1)  # 0 would mean without a limit
    if len(data) != size or unpacker.unused_data or not unpacker.eof:
        raise UnreadableError("it is longer or shorter than it claims")
    return data


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


HEADER_TYPES = [str] * 4 + [list] * 4

NOT_KEPT, UNSURE = b"not kept", b"unsure"


class Held(NamedTuple):
    """A channel of a checkpoint: its version, its slot, and the slot's value, None where it has none.

    By identity: NOT_KEPT, the server has a value that is not known here; UNSURE, perhaps it has one.
    """

    version: str | int | float
    slot: str
    frame: bytes | None


class EncodedCheckpoint(NamedTuple):
    """A checkpoint ready to be sent. `carried` counts the first of `header.valued`, those not in `values`.

    `channels`: all of its channels. `is_sure`: what it carries is among what was known to be stored.
    """

    header: Header
    payload: bytes
    values: list[tuple[str, bytes]]
    carried: int
    channels: Mapping[str, Held] = {}
    is_sure: bool = False


def encode_checkpoint(
    serde: SerializerProtocol,
    checkpoint: Checkpoint,
    metadata: Mapping[str, Any],
    *,
    parent: str | None,
    new_versions: ChannelVersions,
    compress_from: int | None = None,
    known: Mapping[str, Held] | None = None,
) -> EncodedCheckpoint:
    """Split a checkpoint into a record and the values that are new. Unchanged values are only referred to.

    `known` are the channels of the checkpoint on which it follows, if they are remembered.
    """
    values, versions = checkpoint["channel_values"], checkpoint["channel_versions"]
    carried: list[str] = []
    fresh, possible, empty, channels, is_sure = [], [], [], {}, True
    for channel, version in versions.items():
        last = held = known.get(channel) if known else None
        if held is None or held.version != version or type(version) is not str:
            held = Held(version, slot_of(channel, version), UNSURE)
        slot = held.slot
        if channel in new_versions:
            frame = None
            if channel in values:
                limit = None if last and did_not_shrink(last.frame, compress_from) else compress_from
                frame = encode_value(serde, values[channel], limit)
            held = Held(version, slot, frame)
            if frame is None:
                empty.append(slot)
            else:
                fresh.append((slot, frame))
        elif channel in values:
            carried.append(slot)
            is_sure = is_sure and held.frame is not None and held.frame is not UNSURE
        else:
            possible.append(slot)
        channels[channel] = held
    rest = checkpoint.copy()
    del rest["channel_values"], rest["channel_versions"]
    content = [rest, metadata]
    if not values.keys() <= versions.keys():
        content.append({k: v for k, v in values.items() if k not in versions})
    unseeded = metadata.get("counters_since_delta_snapshot")
    parents = metadata.get("parents")
    header = Header(
        parent or "",
        str(metadata.get("run_id") or ""),
        str(metadata.get("source") or ""),
        str(parents.get("") or "") if parents else "",
        [c for c in unseeded if c not in values] if unseeded else [],
        carried + [slot for slot, _ in fresh],
        possible,
        empty,
    )
    payload = encode_value(serde, content, compress_from)
    return EncodedCheckpoint(header, payload, fresh, len(carried), channels, is_sure)


def prove(encoded: EncodedCheckpoint) -> EncodedCheckpoint:
    """What a put has stored for certain when nothing that was known counts any more."""
    fresh, valued, empty = dict(encoded.values), set(encoded.header.valued), set(encoded.header.empty)

    def frame_of(slot: str) -> bytes | None:
        if slot in valued:
            return fresh.get(slot, NOT_KEPT)
        return None if slot in empty else UNSURE

    channels = {name: held._replace(frame=frame_of(held.slot)) for name, held in encoded.channels.items()}
    return encoded._replace(channels=channels)


def encode_values(
    serde: SerializerProtocol, checkpoint: Checkpoint, slots: Sequence[str], compress_from: int | None
) -> list[tuple[str, bytes]]:
    """The values of these slots, for a thread that lost them."""
    values = checkpoint["channel_values"]
    return [(slot, encode_value(serde, values[read_slot(slot)[0]], compress_from)) for slot in slots]


def pack_header(header: Header) -> bytes:
    """Each slot as its channel and one character: the place, from 1, of its version in a ninth list."""
    ends: dict[str, str] = {}
    lists = [[shorten(slot, ends) for slot in slots] for slots in header[5:8]]
    if len(ends) >= MOST_ENDS or None in itertools.chain(*lists):
        return ormsgpack.packb(tuple(header))
    return ormsgpack.packb((*header[:5], *lists, list(ends)))


def shorten(slot: str, ends: dict[str, str]) -> str | None:
    """None where characters are not bytes: what counts bytes would count wrong."""
    if not slot.isascii():
        return None
    size, _, _ = slot.partition(":")
    cut = len(size) + 1 + int(size)
    end = slot[cut:]
    return slot[:cut] + ends.setdefault(end, chr(len(ends) + 1))


def unpack_header(packed: bytes) -> Header:
    found = ormsgpack.unpackb(packed)
    if len(found) == 9:
        ends = found.pop()
        found[5:] = [[slot[:-1] + ends[ord(slot[-1]) - 1] for slot in slots] for slots in found[5:]]
    if list(map(type, found)) != HEADER_TYPES:
        raise ValueError("not a header")
    return Header(*found)


def join_record(prev: bytes, header: Header, payload: bytes) -> bytes:
    """A record as the server keeps it."""
    packed = pack_header(header)
    sizes = len(prev).to_bytes(4, "big"), len(packed).to_bytes(4, "big")
    return b"".join((sizes[0], prev, sizes[1], packed, pack_under(payload, packed)))


def split_record(record: bytes) -> tuple[str, Header, bytes]:
    """A stored record: the next lower id in its namespace, its header, and its payload's frame."""
    try:
        (size,) = struct.unpack_from(">I", record)
        prev = to_text(record[4 : 4 + size])
        start = 8 + size
        (length,) = struct.unpack_from(">I", record, start - 4)
        packed = record[start : start + length]
        header = unpack_header(packed)
        return prev, header, unpack_under(record[start + length :], packed)
    except (struct.error, TypeError, ValueError, LookupError, AttributeError, zlib.error) as fault:
        raise UnreadableError("its record is damaged") from fault


def pack_under(frame: bytes, header: bytes) -> bytes:
    """A payload packed with its record's header as the dictionary: most of its names stand there too."""
    start = 2 + frame[1]
    if len(frame) < SMALLEST_PACKED or frame[0] != PLAIN or b"+" in frame[2:start]:
        return frame
    packer = make_packer(len(frame) + len(header), header)
    smaller = packer.compress(frame[start:]) + packer.flush()
    if not is_worth(len(smaller), len(frame)):
        return frame
    return b"%c%b%b%b" % (UNDER, frame[1:start], (len(frame) - start).to_bytes(4, "big"), smaller)


def unpack_under(frame: bytes, header: bytes) -> bytes:
    if frame[:1] != b"%c" % UNDER or len(frame) < 2:
        return frame
    start = 2 + frame[1]
    return b"%c%b%b" % (PLAIN, frame[1:start], unpack(frame, start, zlib.decompressobj(zdict=header)))


def channel_of(slot: str) -> str:
    try:
        if slot.isascii():
            size, _, rest = slot.partition(":")
            return rest[: int(size)]
        return cut_part(slot.encode())[0]
    except (ValueError, AttributeError) as fault:
        raise UnreadableError("its record is damaged") from fault


def read_versions(header: Header) -> ChannelVersions:
    try:
        return dict(read_slot(slot) for slots in header[5:8] for slot in slots)
    except (ValueError, AttributeError) as fault:
        raise UnreadableError("its record is damaged") from fault


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
        name, frame = part(channel), encode_value(serde, value, compress_from)
        parts += (ENTRY.pack(index, len(path) + len(name) + len(frame)), path, name, frame)
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
