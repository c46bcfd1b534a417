"""Names: which key holds a thread and which field holds what. Pure, and injective for any id.

A thread is one hash. Its fields:

    c                         form and thread id, `1:<json>`
    cs                        stamp of the last put; gone when checkpoints have been removed (memory.py)
    cl{ns}                    greatest checkpoint id of a namespace
    cn, cm{ns}                newest namespace, and the one before each: a chain through all of them
    cc{ns}{id}                a checkpoint's record (codec.py), which also names the next lower id
    cv{ns}{channel}{version}  a channel's value
    wi{ns}{id}                tasks that have written to a checkpoint
    ww{ns}{id}{task}          what one task wrote
    ["request","v1",id]       a request record, plain JSON

Parts in braces are length-prefixed (`5:hello`), so that no id, whatever its characters, can be taken for
two parts or for another field.
"""

import json
from hashlib import sha256
from typing import Literal

from checkpoint.errors import BadRequestError

FORM = "1"
META = b"c"
STAMP = b"cs"
NEWEST_NAMESPACE = b"cn"
REQUEST_PREFIX = '["request","v1",'

SiblingKind = Literal["lease", "once", "stop", "hold"]
Slot = tuple[str, str]  # the part of a channel's name, and that of a version's token


def context_key(prefix: str, thread_id: object) -> str:
    """The key of a thread's hash. One-way: the id itself is kept in the hash."""
    return prefix + sha256(str(thread_id).encode("utf-8", "surrogatepass")).hexdigest()


def sibling_key(kind: SiblingKind, context_key: str) -> str:
    """A short-lived helper of a thread, in the same cluster slot as its hash."""
    return f"business-assistant:{kind}:v1:{{{context_key}}}"


def to_bytes(text: str) -> bytes:
    """UTF-8: its byte order equals code point order. BadRequestError for a lone surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError as fault:
        raise BadRequestError("a name holds a lone surrogate and cannot be stored") from fault


def to_text(data: bytes) -> str:
    return data.decode()


def part(text: str) -> bytes:
    data = to_bytes(text)
    return b"%d:%b" % (len(data), data)


def read_parts(data: bytes) -> list[str]:
    """The parts of a name, in order. Raises ValueError when `data` is not a run of parts."""
    found = []
    while data:
        size, colon, rest = data.partition(b":")
        if not colon or not size.isdigit() or len(rest) < int(size):
            raise ValueError("not a length-prefixed name")
        found.append(to_text(rest[: int(size)]))
        data = rest[int(size) :]
    return found


def latest_field(namespace: str) -> bytes:
    return b"cl" + part(namespace)


def record_field(namespace: str, checkpoint_id: str) -> bytes:
    return b"cc" + part(namespace) + part(checkpoint_id)


def value_field(namespace: str, slot: Slot) -> bytes:
    return b"cv" + part(namespace) + to_bytes(slot[0] + slot[1])


def writes_field(namespace: str, checkpoint_id: str, task_id: str) -> bytes:
    return b"ww" + part(namespace) + part(checkpoint_id) + part(task_id)


def writes_index_field(namespace: str, checkpoint_id: str) -> bytes:
    return b"wi" + part(namespace) + part(checkpoint_id)


def slot_of(channel: str, version: object) -> Slot:
    """A channel at a version. Versions of different types never meet: 1, 1.0 and "1" are three slots."""
    if isinstance(version, str):
        if channel.isascii() and version.isascii():
            return f"{len(channel)}:{channel}", f"{len(version) + 1}:s{version}"
        token = "s" + version
    elif isinstance(version, int):
        token = f"i{int(version)}"
    elif isinstance(version, float):
        token = f"f{version!r}"
    else:
        raise TypeError(f"a channel version must be str, int or float, not {type(version).__name__}")
    return text_part(channel), text_part(token)


def text_part(text: str) -> str:
    """A part as text; its length still counts bytes."""
    return f"{len(text) if text.isascii() else len(to_bytes(text))}:{text}"


def split_slot(text: str) -> Slot:
    """A slot that stands in one piece. Raises ValueError when it is none."""
    channel, token = read_parts(to_bytes(text))
    return text_part(channel), text_part(token)


def read_slot(slot: Slot) -> tuple[str, str | int | float]:
    return read_part(slot[0]), read_version(slot[1])


def read_part(name: str) -> str:
    """The text in a part. Raises ValueError when it is none."""
    text = name.partition(":")[2]
    if name != text_part(text):
        raise ValueError("not a length-prefixed name")
    return text


def read_version(token: str) -> str | int | float:
    """The version in a slot's second part. Raises ValueError when there is none."""
    text = read_part(token)
    kind, rest = text[:1], text[1:]
    if kind == "s":
        return rest
    if kind == "i":
        return int(rest)
    if kind == "f":
        return float(rest)
    raise ValueError(f"unknown kind of version {kind!r}")


def request_field(request_id: str) -> bytes:
    """A record's field: the compact JSON of `["request","v1",id]`, readable in any language."""
    return to_bytes(json.dumps(["request", "v1", request_id], ensure_ascii=False, separators=(",", ":")))


def thread_mark(thread_id: object) -> bytes:
    """The value of field `c`: the form of this hash, and the id that the key does not give back."""
    kept = thread_id if type(thread_id) in (str, int) else str(thread_id)
    return to_bytes(f"{FORM}:{json.dumps(kept)}")


def read_thread_mark(mark: bytes) -> str | int:
    form, _, rest = mark.partition(b":")
    if form != FORM.encode():
        raise ValueError(to_text(form))
    kept = json.loads(rest)
    return kept if isinstance(kept, int) else str(kept)


def escape_glob(text: str) -> str:
    """`text` as a SCAN pattern that matches only itself."""
    return "".join("\\" + char if char in "*?[]^\\" else char for char in text)
