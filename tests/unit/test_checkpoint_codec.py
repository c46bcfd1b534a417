"""Frames and the strict serializer: what comes back, and that crafted bytes load nothing and run nothing."""

import base64
import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import pickle
import re
import subprocess
import sys
import uuid
from collections import deque
from typing import Any

import numpy as np
import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.conformance.test_utils import generate_checkpoint
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Interrupt, Send
from pydantic import BaseModel

from checkpoint import codec
from checkpoint.codec import StrictSerializer, UnreadableError, decode_value, encode_value, make_serializer
from checkpoint.layout import Slot

LOADED: list[str] = []


class Trap:
    """Notes that it was made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        LOADED.append("made")

    @classmethod
    def model_construct(cls) -> None:
        LOADED.append("constructed")


@dataclasses.dataclass
class Data:
    text: str


@dataclasses.dataclass
class Other:
    text: str


class Model(BaseModel):
    text: str


class Color(enum.Enum):
    RED = "red"


STRICT = StrictSerializer()
PLAIN_VALUES: list[Any] = [
    None, True, 1, -1, 2**63, 1.5, "", "中文\0", b"", b"\xff", bytearray(b"a"), [], [1, [None]], {},
    {"a": {"b": 1}}, {1: "int key"}, datetime.datetime.now(datetime.UTC), datetime.date(2026, 1, 1),
    datetime.time(1, 2), datetime.timedelta(seconds=1),
    uuid.uuid4(), decimal.Decimal("1.10"), {1, 2}, frozenset({"a"}), deque([1]),
    pathlib.Path("/a/b"), re.compile("a+", re.IGNORECASE),
    HumanMessage("hi", id="1"), AIMessage("ho", id="2"), Send("node", {"a": 1}),
    Send("node", {"a": 1}, timeout=2.5), Interrupt(value="v", id="i"),
    _DeltaSnapshot([1, 2]),
]  # fmt: skip


@pytest.mark.parametrize("value", PLAIN_VALUES, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("serde", [STRICT, make_serializer(b"k" * 16)], ids=["plain", "encrypted"])
@pytest.mark.parametrize("compress_from", [None, 0])
def test_values_come_back(value: Any, serde: Any, compress_from: int | None) -> None:
    back = decode_value(serde, encode_value(serde, value, compress_from))
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize("array", [np.arange(6).reshape(2, 3), np.asfortranarray(np.eye(3)), np.array(["a"])])
def test_arrays_come_back(array: Any) -> None:
    back = decode_value(STRICT, encode_value(STRICT, array))
    assert back.dtype == array.dtype
    assert (back == array).all()


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@given(json_values, st.sampled_from([None, 0, 50]))
def test_any_plain_value_comes_back(value: Any, compress_from: int | None) -> None:
    assert decode_value(STRICT, encode_value(STRICT, value, compress_from)) == value


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for frame in (data, b"\x01\x07msgpack" + data, b"\x02\x07msgpack" + data):
        try:
            decode_value(STRICT, frame)
        except UnreadableError:
            continue


# --- crafted bytes ---


def ext(code: int, *content: Any) -> bytes:
    return ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(list(content))))


TRAP = (__name__, "Trap")
CRAFTED = {
    "constructor, one argument": ext(0, *TRAP, "x"),
    "constructor, arguments": ext(1, *TRAP, ["x"]),
    "constructor, names": ext(2, *TRAP, {"x": 1}),
    "method": ext(3, *TRAP, {}, "model_construct"),
    "method of an allowed type": ext(3, "pathlib", "Path", "/", "unlink"),
    "pydantic 1": ext(4, *TRAP, {}),
    "pydantic 2": ext(5, *TRAP, {}, "model_validate_json"),
    "system call": ext(0, "os", "system", "echo pwned"),
    "builtin": ext(0, "builtins", "eval", "LOADED.append('eval')"),
    "module not loaded": ext(0, "antigravity", "fly", 1),
    "unknown code": ext(99, *TRAP, "x"),
    "unknown code of an allowed type": ext(99, "pathlib", "Path", {}),
    "array of objects": ext(6, "|O", [1], "C", b"\0" * 8),
    "hidden in an allowed type": ormsgpack.packb(
        ormsgpack.Ext(
            0, ormsgpack.packb(["builtins", "set", [ormsgpack.Ext(0, ormsgpack.packb([*TRAP, 1]))]])
        )
    ),
    "hidden in a snapshot": ormsgpack.packb(
        ormsgpack.Ext(7, ormsgpack.packb(ormsgpack.Ext(2, ormsgpack.packb([*TRAP, {}]))))
    ),
    "allowed type that fails": ext(0, "decimal", "Decimal", "not a number"),
    "allowed name that is gone": ext(0, "langchain_core.messages.base", "BaseMessageChunk", "x"),
}


@pytest.mark.parametrize("crafted", CRAFTED.values(), ids=CRAFTED.keys())
def test_crafted_values_load_nothing(crafted: bytes) -> None:
    LOADED.clear()
    with pytest.raises(UnreadableError):
        decode_value(STRICT, b"\x01\x07msgpack" + crafted)
    assert LOADED == []
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize("kind", ["pickle", "json", "msgpack2", "pydantic", ""])
def test_other_types_are_refused(kind: str) -> None:
    class Boom:
        def __reduce__(self) -> Any:
            return (LOADED.append, ("pickled",))

    LOADED.clear()
    bodies = [
        pickle.dumps(Boom()),
        json.dumps({"lc": 2, "type": "constructor", "id": list(TRAP), "kwargs": {}}).encode(),
        json.dumps(
            {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "x"], "kwargs": {}}
        ).encode(),
    ]
    for body in bodies:
        with pytest.raises(UnreadableError, match="not accepted"):
            decode_value(STRICT, bytes([1, len(kind)]) + kind.encode() + body)
    assert LOADED == []


@pytest.mark.parametrize("strict", ["true", "false", None])
def test_the_environment_changes_nothing(strict: str | None) -> None:
    program = (
        "from checkpoint.codec import *\n"
        "import ormsgpack\n"
        "body = ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb(['antigravity', 'fly', 1])))\n"
        "try:\n"
        "    decode_value(make_serializer(None), b'\\x01\\x07msgpack' + body)\n"
        "except UnreadableError as fault:\n"
        "    print(fault)\n"
        "import sys; print('antigravity' in sys.modules)\n"
    )
    environment = {} if strict is None else {"LANGGRAPH_STRICT_MSGPACK": strict}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment | {"PYTHONPATH": str(pathlib.Path(codec.__file__).parents[1])},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "antigravity.fly may not be loaded" in done.stdout
    assert done.stdout.endswith("False\n")


@pytest.mark.parametrize(
    "value", [Data("x"), Model(text="x"), Color.RED], ids=["dataclass", "pydantic", "enum"]
)
def test_our_own_classes_raise_until_allowed(value: Any) -> None:
    """Never a bare dict or str in place of the object that was stored."""
    frame = encode_value(STRICT, [value])
    with pytest.raises(UnreadableError, match="may not be loaded; keep plain values"):
        decode_value(STRICT, frame)
    wider = STRICT.with_msgpack_allowlist([(type(value).__module__, type(value).__name__)])
    assert decode_value(wider, frame) == [value]
    with pytest.raises(UnreadableError):
        decode_value(STRICT, frame)  # the clone widened nothing but itself
    with pytest.raises(UnreadableError, match="may not be loaded"):
        decode_value(wider, encode_value(STRICT, Other("x")))  # and nothing but what was named


def test_what_has_no_plain_form_is_refused_when_it_is_saved() -> None:
    """JsonPlusSerializer can fall back to pickle, whose bytes would be refused when it is too late."""
    with pytest.raises(TypeError, match="not msgpack serializable"):
        encode_value(STRICT, lambda: 1)


def test_a_renamed_class_raises() -> None:
    frame = encode_value(STRICT, Data("x")).replace(b"Data", b"Gone")
    wider = STRICT.with_msgpack_allowlist([(__name__, "Gone")])
    with pytest.raises(UnreadableError):
        decode_value(wider, frame)


# --- encryption ---


def test_encrypted_values_show_nothing_and_need_the_key() -> None:
    serde = make_serializer(b"k" * 32)
    assert isinstance(serde, EncryptedSerializer)
    frame = encode_value(serde, "a secret", 0)
    assert b"secret" not in frame
    with pytest.raises(UnreadableError):
        decode_value(make_serializer(b"j" * 32), frame)
    with pytest.raises(UnreadableError):
        decode_value(STRICT, frame)
    for position in range(len(frame)):
        damaged = bytearray(frame)
        damaged[position] ^= 1
        with pytest.raises(UnreadableError):
            decode_value(serde, bytes(damaged))


@pytest.mark.parametrize("value", [None, b"x", "x", {"a": 1}])
def test_plain_values_are_refused_when_encryption_is_on(value: Any) -> None:
    with pytest.raises(UnreadableError, match="not encrypted"):
        decode_value(make_serializer(b"k" * 32), encode_value(JsonPlusSerializer(), value))


def test_an_allowlist_keeps_the_encryption() -> None:
    from checkpoint import ContextConfig
    from checkpoint.saver import ContextSaver

    saver = ContextSaver(ContextConfig(url="redis://x", aes_key=b"k" * 32))
    wider = saver.with_allowlist([(__name__, "Data")])
    assert decode_value(wider.serde, encode_value(saver.serde, Data("x"))) == Data("x")
    with pytest.raises(UnreadableError, match="not encrypted"):
        decode_value(wider.serde, encode_value(STRICT, "x"))


# --- frames ---


@pytest.mark.parametrize("frame", [b"", b"\x01", b"\x00\x00", b"\x03\x07msgpack\xc0", b"\x80\x04null"])
def test_unknown_forms_are_named(frame: bytes) -> None:
    with pytest.raises(UnreadableError, match="newer version"):
        decode_value(STRICT, frame)


def test_compressed_values_must_be_as_long_as_they_claim() -> None:
    frame = encode_value(STRICT, "a" * 1000, 0)
    assert frame[0] == codec.PACKED
    assert len(frame) < 100
    start = 2 + frame[1]
    for size in (0, 1, 999, 100_000):
        with pytest.raises(UnreadableError, match="longer or shorter"):
            decode_value(STRICT, frame[:start] + size.to_bytes(4, "big") + frame[start + 4 :])
    with pytest.raises(UnreadableError, match="claims"):
        decode_value(STRICT, frame[:start] + (2**32 - 1).to_bytes(4, "big") + frame[start + 4 :])
    with pytest.raises(UnreadableError):
        decode_value(STRICT, frame[:-3])
    with pytest.raises(UnreadableError, match="longer or shorter"):
        decode_value(STRICT, frame + b"more")


def test_values_are_packed_from_their_limit_on() -> None:
    packed = encode_value(STRICT, "a" * 997, 1000)  # the data are three bytes longer
    assert packed[0] == codec.PACKED
    assert encode_value(STRICT, "a" * 997, 1001)[0] == codec.PLAIN
    assert encode_value(STRICT, b"a" * 999, 1000)[0] == codec.PLAIN
    assert encode_value(STRICT, b"a" * 1000, 1000)[0] == codec.PACKED


def test_a_name_of_a_type_has_255_bytes_at_most() -> None:
    class Naming(StrictSerializer):
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            return "n" * obj, b""

    assert encode_value(Naming(), 255)[:2] == b"\x01\xff"
    with pytest.raises(ValueError, match="255 is the most"):
        encode_value(Naming(), 256)


def test_no_claim_lifts_the_limit() -> None:
    class Unpacker:
        unused_data, eof, most = b"", True, None

        def decompress(self, data: bytes, most: int) -> bytes:
            self.most = most
            return b""

    unpacker = Unpacker()
    assert codec.unpack(b"\0\0\0\0", 0, unpacker) == b""
    assert unpacker.most == 1


def test_an_honest_bomb_is_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = encode_value(STRICT, "a" * 1000, 0)
    monkeypatch.setattr(codec, "LARGEST_UNPACKED", 900)
    with pytest.raises(UnreadableError, match="claims"):
        decode_value(STRICT, frame)


def test_incompressible_values_stay_plain() -> None:
    assert encode_value(STRICT, uuid.uuid4().bytes * 1, 0)[0] == codec.PLAIN
    random = b"".join(uuid.uuid4().bytes for _ in range(100))
    assert encode_value(STRICT, base64.b64encode(random), 0)[0] == codec.PLAIN  # a quarter is not enough
    assert encode_value(STRICT, random.hex(), 0)[0] == codec.PACKED


def test_unchanged_values_are_only_referred_to() -> None:
    checkpoint = generate_checkpoint(
        channel_values={"old": 1, "new": 2}, channel_versions={"old": 1, "new": 2, "stale": 1, "cleared": 2}
    )
    encoded = codec.encode_checkpoint(
        STRICT, checkpoint, {"source": "loop"}, parent="p", new_versions={"new": 2, "cleared": 2}
    )
    assert [slot for slot, _ in encoded.values] == [("3:new", "2:i2")]
    assert encoded.header.valued == [("3:old", "2:i1"), ("3:new", "2:i2")]
    assert encoded.carried == 1
    assert encoded.header.possible == [("5:stale", "2:i1")]
    assert encoded.header.empty == [("7:cleared", "2:i2")]
    assert codec.read_versions(encoded.header) == checkpoint["channel_versions"]


def test_a_header_tells_what_pruning_must_know() -> None:
    checkpoint = generate_checkpoint(channel_values={"kept": 1}, channel_versions={"kept": 1})
    told: dict[str, Any] = {"run_id": "r", "source": "input", "parents": {"": "above"}}
    told["counters_since_delta_snapshot"] = {"delta": 1, "kept": 1}
    for metadata, parent, expected in (
        (told, "p", ("p", "r", "input", "above", ["delta"])),
        ({}, None, ("", "", "", "", [])),
        ({"run_id": None, "source": None, "parents": {}}, "", ("", "", "", "", [])),
        ({"parents": {"other": "x"}}, None, ("", "", "", "", [])),
    ):
        encoded = codec.encode_checkpoint(STRICT, checkpoint, metadata, parent=parent, new_versions={})
        assert encoded.header[:5] == expected


def test_values_without_a_version_travel_in_the_payload_and_no_others() -> None:
    checkpoint = generate_checkpoint(channel_values={"a": 1, "bare": 2}, channel_versions={"a": 1})
    encoded = codec.encode_checkpoint(STRICT, checkpoint, {}, parent=None, new_versions={"a": 1})
    assert decode_value(STRICT, encoded.payload)[2:] == [{"bare": 2}, {}]
    del checkpoint["channel_values"]["bare"]
    encoded = codec.encode_checkpoint(STRICT, checkpoint, {}, parent=None, new_versions={"a": 1})
    assert decode_value(STRICT, encoded.payload)[2:] == [{}, {}]


@given(st.binary(max_size=200))
def test_damaged_records_and_writes_are_refused(data: bytes) -> None:
    for read in (codec.split_record, lambda piece: codec.read_writes("task", piece)):
        try:
            read(data)
        except UnreadableError:
            continue


def header_of(*slots: Slot) -> codec.Header:
    return codec.Header("p", "run", "loop", "", ["d"], list(slots[:2]), list(slots[2:3]), list(slots[3:]))


HEADER = header_of(("1:a", "3:s12"), ("4:b:c0", "3:s12"), ("3:问", "5:s1.xy"), ("2:dd", "3:s12"))
# The same as the first form wrote it: each slot in one piece.
FIRST = (*HEADER[:5], *(["".join(slot) for slot in slots] for slots in HEADER[5:]))


def test_a_header_tells_each_version_once() -> None:
    packed = codec.pack_header(HEADER)
    assert packed.count(b"3:s12") == 1
    assert len(packed) < len(ormsgpack.packb(FIRST))
    assert codec.unpack_header(packed) == HEADER
    assert codec.unpack_header(ormsgpack.packb(FIRST)) == HEADER


@pytest.mark.parametrize("versions", [120, 121])
def test_more_versions_than_marks_are_kept_too(versions: int) -> None:
    many = header_of(*(("1:a", f"{len(str(n)) + 1}:s{n}") for n in range(versions)))
    packed = codec.pack_header(many)
    assert codec.unpack_header(packed) == many
    # The server's scripts look at one byte.
    assert len(ormsgpack.unpackb(packed)) == (9 if versions == 120 else 8)


def test_a_payload_packed_under_its_header_is_read() -> None:
    payload = encode_value(STRICT, {"seen": ["4:b:c03:s12"] * 90})
    packed = codec.pack_header(HEADER)
    packer = codec.make_packer(len(payload), packed)
    smaller = packer.compress(payload[9:]) + packer.flush()
    under = b"\x03\x07msgpack" + (len(payload) - 9).to_bytes(4, "big") + smaller
    record = codec.join_record(b"before", HEADER, under)
    assert codec.split_record(record) == ("before", HEADER, payload)
    with pytest.raises(UnreadableError):
        codec.split_record(record.replace(b"3:s12", b"3:s13"))


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
some_version = st.one_of(st.sampled_from(["1", "2", "x"]), st.integers(0, 2), st.floats(0, 2))


@given(
    st.dictionaries(texts, some_version, max_size=4),
    st.dictionaries(texts, st.dictionaries(texts, some_version, max_size=3), max_size=3),
)
def test_versions_seen_come_back_with_their_types(versions: Any, seen: Any) -> None:
    for node in list(seen):
        seen[node] |= versions
    back = codec.expand_seen(ormsgpack.unpackb(ormsgpack.packb(codec.shorten_seen(seen, versions))), versions)
    assert back == seen
    assert [[*map(type, those.values())] for those in back.values()] == [
        [*map(type, those.values())] for those in seen.values()
    ]


def test_versions_seen_are_told_by_their_places() -> None:
    versions: Any = {"b": "long version", "a": "another one"}
    seen: Any = {"node": {"a": "long version", "other": "gone", "b": 7}}
    assert codec.shorten_seen(seen, versions) == {"node": [0, 1, "other", "gone", 1, [7]]}


@pytest.mark.parametrize(
    "content",
    [None, [], [{}], [{}, {}, {}, {}, {}], [{}, {}, {}, {"n": [0]}], [{}, {}, {}, {"n": [0, 9]}],
     [{}, {}, {}, {"n": [9, 0]}], [{}, {}, {}, {"n": ["a", []]}], [{}, {}, {}, {"n": 3}], [{}, {}, {}, []],
     [3, {}, {}, {}], [{}, {}, 3, {}]],
)  # fmt: skip
def test_content_that_does_not_fit_its_header_is_refused(content: Any) -> None:
    with pytest.raises(UnreadableError, match="record is damaged"):
        codec.join_checkpoint("1", codec.read_content(content), {}, {"a": "1"})


def test_a_payload_of_the_first_form_is_read() -> None:
    rest = {"v": 4, "ts": "now", "id": "1", "versions_seen": {"n": {"a": "1"}}}
    content = codec.read_content([rest, {"step": 1}, {"loose": 2}])
    assert codec.join_checkpoint("1", content, {"a": 1}, {"a": "1"}) == {
        **rest,
        "channel_values": {"a": 1, "loose": 2},
        "channel_versions": {"a": "1"},
    }
    assert content.metadata == {"step": 1}


def test_what_did_not_shrink_is_not_tried_again() -> None:
    frame = encode_value(STRICT, "x" * 3000)
    assert codec.did_not_shrink(frame, 1024)
    assert not codec.did_not_shrink(frame, 4096)
    assert not codec.did_not_shrink(frame, None)
    assert not codec.did_not_shrink(encode_value(STRICT, "x" * 3000, 1024), 1024)
    assert not codec.did_not_shrink(None, 1024)
