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
from langgraph.checkpoint.base import WRITES_IDX_MAP, ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.serde import _msgpack as safe_lists
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from checkpoint.layout import Slot, part, read_part, read_parts, read_slot, slot_of, split_slot, to_text

PLAIN, PACKED, UNDER = 1, 2, 3
MOST_MARKS = 120  # one byte each, which is what the server's scripts look at
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
    if compress_from is None or len(data) < compress_from:
        head = HEADS.get(kind)
        return make_head(PLAIN, kind) + data if head is None else head + data
    if not isinstance(serde, EncryptedSerializer):
        packer = make_packer(len(data))
        smaller = packer.compress(data) + packer.flush()
        if is_worth(len(smaller), len(data)):
            return b"%b%b%b" % (make_head(PACKED, kind), len(data).to_bytes(4, "big"), smaller)
    return make_head(PLAIN, kind) + data


def make_head(form: int, kind: str) -> bytes:
    name = kind.encode()
    if len(name) > 255:
        raise ValueError(f"the serializer's type name has {len(name)} bytes; 255 is the most")
    return b"%c%c%b" % (form, len(name), name)


# Of the values that are most frequent.
HEADS = {kind: make_head(PLAIN, kind) for kind in ("msgpack", "null")}


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
    valued: list[Slot]
    possible: list[Slot]
    empty: list[Slot]


HEADER_TYPES = [str] * 4 + [list] * 4

NOT_KEPT, UNSURE = b"not kept", b"unsure"


class Held(NamedTuple):
    """A channel of a checkpoint: its version, its slot, and the slot's value, None where it has none.

    By identity: NOT_KEPT, the server has a value that is not known here; UNSURE, perhaps it has one.
    """

    version: str | int | float
    slot: Slot
    frame: bytes | None


class EncodedCheckpoint(NamedTuple):
    """A checkpoint ready to be sent. `carried` counts the first of `header.valued`, those not in `values`.

    `channels`: all of its channels. `is_sure`: what it carries is among what was known to be stored.
    """

    header: Header
    payload: bytes
    values: list[tuple[Slot, bytes]]
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
    values, fresh, carried, possible, empty = checkpoint["channel_values"], [], [], [], []
    channels, is_sure, known = {}, True, known or {}
    for channel, version in checkpoint["channel_versions"].items():
        held = known.get(channel)
        if channel in new_versions:
            slot, frame = slot_of(channel, version), None
            if channel in values:
                limit = None if held and did_not_shrink(held.frame, compress_from) else compress_from
                frame = encode_value(serde, values[channel], limit)
                fresh.append((slot, frame))
            else:
                empty.append(slot)
            held = Held(version, slot, frame)
        else:
            if held is None or held.version != version or type(version) is not str:
                held = Held(version, slot_of(channel, version), UNSURE)
            if channel in values:
                carried.append(held.slot)
                is_sure = is_sure and held.frame is not None and held.frame is not UNSURE
            else:
                possible.append(held.slot)
        channels[channel] = held
    valued = carried + [slot for slot, _ in fresh]
    header = make_header(metadata, values, parent, (valued, possible, empty))
    payload = encode_content(serde, checkpoint, metadata, compress_from)
    return EncodedCheckpoint(header, payload, fresh, len(carried), channels, is_sure)


def make_header(
    metadata: Mapping[str, Any],
    values: Mapping[str, Any],
    parent: str | None,
    slots: tuple[list[Slot], list[Slot], list[Slot]],
) -> Header:
    unseeded = metadata.get("counters_since_delta_snapshot")
    parents = metadata.get("parents")
    return Header(
        parent or "",
        str(metadata.get("run_id") or ""),
        str(metadata.get("source") or ""),
        str(parents.get("") or "") if parents else "",
        [channel for channel in unseeded if channel not in values] if unseeded else [],
        *slots,
    )


def encode_content(
    serde: SerializerProtocol,
    checkpoint: Checkpoint,
    metadata: Mapping[str, Any],
    compress_from: int | None,
) -> bytes:
    """What neither field names nor the header tell: the rest, the metadata, values without a version; and
    versions_seen, most of which are versions of the header.
    """
    rest = cast(dict[str, Any], checkpoint.copy())
    values, versions = rest.pop("channel_values"), rest.pop("channel_versions")
    seen = shorten_seen(rest.pop("versions_seen", {}), versions)
    del rest["id"]
    loose = {} if values.keys() <= versions.keys() else {k: v for k, v in values.items() if k not in versions}
    return encode_value(serde, [rest, metadata, loose, seen], compress_from)


def shorten_seen(seen: Mapping[str, ChannelVersions], versions: ChannelVersions) -> dict[str, list[Any]]:
    """For each node channel, version, channel, version ...: a channel by its place in the order of names, a
    version by the place of a channel that has it; without such a place as it is, in a list unless it is text.

    This takes a third of what packing takes, and saves more.
    """
    order = sorted(versions)
    channels = dict(zip(order, itertools.count()))
    places = dict(zip(map(versions.__getitem__, order), itertools.count()))
    short: dict[str, list[Any]] = {}
    for node, those in seen.items():
        told = short[node] = []
        for channel, version in those.items():
            told.append(channels.get(channel, channel))
            told.append(places.get(version, version) if type(version) is str else [version])
    return short


def expand_seen(seen: Mapping[str, list[Any]], versions: ChannelVersions) -> dict[str, ChannelVersions]:
    order = sorted(versions)
    found: dict[str, ChannelVersions] = {}
    for node, told in seen.items():
        those = found[node] = {}
        for channel, version in zip(told[::2], told[1::2], strict=True):
            name = order[channel] if type(channel) is int else channel
            if type(version) is int:
                those[name] = versions[order[version]]
            else:
                (those[name],) = (version,) if type(version) is str else version
    return found


class Content(NamedTuple):
    """A payload's content."""

    rest: dict[str, Any]
    metadata: CheckpointMetadata
    loose: Mapping[str, Any] = {}
    seen: Mapping[str, Any] | None = None


def read_content(content: Any) -> Content:
    if type(content) is not list or not 2 <= len(content) <= 4:
        raise UnreadableError("its record is damaged")
    return Content(*content)


def join_checkpoint(
    checkpoint_id: str, content: Content, values: dict[str, Any], versions: ChannelVersions
) -> Checkpoint:
    """The whole checkpoint again. Raises UnreadableError where the content does not fit the versions."""
    try:
        values.update(content.loose)
        whole = {**content.rest, "id": checkpoint_id, "channel_values": values, "channel_versions": versions}
        # The first form has all of it in the rest.
        if content.seen is not None:
            whole["versions_seen"] = expand_seen(content.seen, versions)
    except (LookupError, TypeError, ValueError, AttributeError) as fault:
        raise UnreadableError("its record is damaged") from fault
    return cast(Checkpoint, whole)


def prove(encoded: EncodedCheckpoint) -> EncodedCheckpoint:
    """What a put has stored for certain when nothing that was known counts any more."""
    fresh, valued, empty = dict(encoded.values), set(encoded.header.valued), set(encoded.header.empty)

    def frame_of(slot: Slot) -> bytes | None:
        if slot in valued:
            return fresh.get(slot, NOT_KEPT)
        return None if slot in empty else UNSURE

    channels = {name: held._replace(frame=frame_of(held.slot)) for name, held in encoded.channels.items()}
    return encoded._replace(channels=channels)


def encode_values(
    serde: SerializerProtocol, checkpoint: Checkpoint, slots: Sequence[Slot], compress_from: int | None
) -> list[tuple[Slot, bytes]]:
    """The values of these slots, for a thread that lost them."""
    values = checkpoint["channel_values"]
    return [(slot, encode_value(serde, values[channel_of(slot)], compress_from)) for slot in slots]


def pack_header(header: Header) -> bytes:
    """Each slot as its channel and one character: the place, from 1, of its version in a ninth list."""
    marks: dict[str, str] = {}
    lists = []
    for slots in header[5:8]:
        short = []
        for name, token in slots:
            mark = marks.get(token)
            if mark is None:
                mark = marks[token] = chr(len(marks) + 1)
            short.append(name + mark)
        lists.append(short)
    if len(marks) > MOST_MARKS:
        return ormsgpack.packb(
            (*header[:5], *([name + token for name, token in slots] for slots in header[5:8]))
        )
    return ormsgpack.packb((*header[:5], *lists, list(marks)))


def unpack_header(packed: bytes) -> Header:
    found = ormsgpack.unpackb(packed)
    if len(found) == 9:
        tokens = found.pop()
        found[5:] = [[(slot[:-1], tokens[ord(slot[-1]) - 1]) for slot in slots] for slots in found[5:]]
    else:
        found[5:] = [[split_slot(slot) for slot in slots] for slots in found[5:]]
    if list(map(type, found)) != HEADER_TYPES:
        raise ValueError("not a header")
    return Header(*found)


def join_record(prev: bytes, header: Header, payload: bytes) -> bytes:
    """A record as the server keeps it."""
    packed = pack_header(header)
    return b"%b%b%b%b%b" % (
        len(prev).to_bytes(4, "big"),
        prev,
        len(packed).to_bytes(4, "big"),
        packed,
        payload,
    )


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


def unpack_under(frame: bytes, header: bytes) -> bytes:
    """The payload of a first form's record, packed with the header as the dictionary, as it was."""
    if frame[:1] != b"%c" % UNDER or len(frame) < 2:
        return frame
    start = 2 + frame[1]
    return b"%c%b%b" % (PLAIN, frame[1:start], unpack(frame, start, zlib.decompressobj(zdict=header)))


def channel_of(slot: Slot) -> str:
    try:
        return read_part(slot[0])
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
