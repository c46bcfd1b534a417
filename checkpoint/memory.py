"""What this process remembers of threads, so that it need not be sent again. Never believed on its own.

Every put gives a hash a new random stamp, and whatever removes checkpoints takes it away. What is remembered
goes with the stamp under which it was seen; the server compares the two inside the same call, and does the
whole work when they differ. So a change by anyone else costs a longer reply, and nothing more.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from checkpoint.codec import NOT_KEPT, UNSURE, EncodedCheckpoint, Header, Held
from checkpoint.layout import context_key, read_slot, sibling_key, thread_mark

LARGEST_KEPT, MOST_NAMES = 256 * 1024, 256
PLAIN = frozenset((str, int, float, bool, type(None), bytes))


class Value(NamedTuple):
    """A channel's value. `copy` makes a fresh one of `plain`; None: the frame has to be decoded again."""

    channel: str
    frame: bytes
    copy: Callable[[Any], Any] | None
    plain: Any


@dataclass(slots=True)
class Kept:
    """The latest checkpoint of a namespace. Only a whole one can be read from here."""

    id: str
    parent: str
    payload: bytes
    channels: Mapping[str, Held]
    is_whole: bool
    values: list[Value] | None = None


class Known(NamedTuple):
    """The namespaces of a thread as they were under a stamp."""

    stamp: bytes
    spaces: Mapping[str, Kept]


class Names(NamedTuple):
    """A thread's hash, its lease, where a refused transaction parks the hash; and the mark inside."""

    key: str
    lease: str
    hold: str
    mark: bytes


def name_thread(prefix: str, thread_id: object) -> Names:
    key = context_key(prefix, thread_id)
    return Names(key, sibling_key("lease", key), sibling_key("hold", key), thread_mark(thread_id))


class Memory:
    """The threads last used, `most` of them; 0 remembers none. Threads of a process may share it."""

    def __init__(self, most: int) -> None:
        self._most = most
        # Each of its methods is one step under Python's own lock; another could be left locked by a fork.
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._names: OrderedDict[str, Names] = OrderedDict()

    def names(self, prefix: str, thread_id: object) -> Names:
        """What is made of a thread's id alone, made once for those in use: the newest `MOST_NAMES`."""
        if type(thread_id) is not str:
            return name_thread(prefix, thread_id)
        found = self._names.get(thread_id)
        if found is None:
            found = self._names[thread_id] = name_thread(prefix, thread_id)
            if len(self._names) > MOST_NAMES:
                self._names.popitem(last=False)
        return found

    def get(self, key: str) -> Known | None:
        return self._known.get(key)

    def set(self, key: str, known: Known) -> None:
        if self._most:
            self._known.pop(key, None)
            self._known[key] = known
            if len(self._known) > self._most:
                self._known.popitem(last=False)

    def forget(self, key: str) -> None:
        self._known.pop(key, None)


def keep_read(checkpoint_id: str, header: Header, payload: bytes, frames: Sequence[bytes | None]) -> Kept:
    """What a full reply told."""
    found = dict(zip([*header.valued, *header.possible], frames, strict=True))
    found.update(dict.fromkeys(header.empty))
    channels = {}
    for slot, frame in found.items():
        channel, version = read_slot(slot)
        channels[channel] = Held(version, slot, frame)
    return keep(checkpoint_id, header.parent, payload, channels)


def keep_put(checkpoint_id: str, encoded: EncodedCheckpoint) -> Kept:
    """What a put has stored."""
    return keep(checkpoint_id, encoded.header.parent, encoded.payload, encoded.channels)


def keep(checkpoint_id: str, parent: str, payload: bytes, channels: Mapping[str, Held]) -> Kept:
    """Where the content is large, only which values are stored."""
    frames = [held.frame for held in channels.values() if held.frame]
    size = len(payload) + sum(map(len, frames))
    if size <= LARGEST_KEPT:
        is_whole = NOT_KEPT not in frames and UNSURE not in frames
        return Kept(checkpoint_id, parent, payload, channels, is_whole)
    names = {
        channel: held if held.frame in (None, UNSURE) else held._replace(frame=NOT_KEPT)
        for channel, held in channels.items()
    }
    return Kept(checkpoint_id, parent, b"", names, is_whole=False)


def keep_value(channel: str, frame: bytes, value: Any) -> Value:
    """A value that is copied faster than decoded is kept beside its frame."""
    if type(value) in PLAIN:
        return Value(channel, frame, as_it_is, value)
    if type(value) is list and PLAIN.issuperset(map(type, value)):
        return Value(channel, frame, list, value)
    if type(value) is dict and PLAIN.issuperset(map(type, value.values())):
        return Value(channel, frame, dict, value)
    return Value(channel, frame, None, None)


def as_it_is(value: Any) -> Any:
    return value
