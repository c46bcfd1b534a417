"""Copying a thread: every checkpoint with its values and writes, none of its request records."""

import os
from collections.abc import Sequence
from typing import Any

from checkpoint import scripts
from checkpoint.codec import EncodedCheckpoint, Header
from checkpoint.errors import CannotRestoreError
from checkpoint.layout import Slot, read_parts, to_text
from checkpoint.plan import (
    LARGEST_PAGE,
    PAGE_BYTES,
    Call,
    Plan,
    Plans,
    Target,
    check_status,
    split,
    where,
)


def copy_thread(plans: Plans, source: object, target: object) -> Plan[None]:
    """Oldest first, so that at every moment the copy is a thread whose every reference holds.

    Values and writes are passed on as bytes; nothing is decoded. A checkpoint that arrives in the source
    meanwhile may be left out.
    """
    if str(source) == str(target):
        return
    items = yield from read_items(plans, source)
    sent: set[tuple[bytes, Slot]] = set()
    for item in reversed(items):
        for call in copy_calls(plans, source, Target(target, "", None, ""), item, sent):
            check_status((yield call), call, target)


def read_items(plans: Plans, source: object) -> Plan[list[Any]]:
    key = plans.keys(source)[0]
    items: list[Any] = []
    heads: tuple[bytes, ...] = ()
    while True:
        call = Call("copy_thread", scripts.PAGE, (key,), (b"1", LARGEST_PAGE, PAGE_BYTES, b"", b"", *heads))
        reply = yield call
        check_status(reply, call, source)
        items.extend(reply[2])
        if not reply[3]:
            return items
        heads = tuple(piece for head in reply[3] for piece in head)


def copy_calls(
    plans: Plans, source: object, target: Target, item: Sequence[Any], sent: set[tuple[bytes, Slot]]
) -> list[Call]:
    space, checkpoint_id, record, frames, index, batches = item
    namespace = read_parts(space)[0]
    place = where(source, namespace, to_text(checkpoint_id))
    _, header, payload = split(record, place)
    values = [
        (slot, frame) for slot, frame in pick_values(header, frames, place) if (space, slot) not in sent
    ]
    sent.update((space, slot) for slot, _ in values)
    target = target._replace(namespace=namespace, checkpoint_id=to_text(checkpoint_id))
    encoded = EncodedCheckpoint(header, payload, values, 0)
    calls = [plans.put_call("copy_thread", target, encoded, os.urandom(8))]
    for task, batch in zip(read_tasks(index, place), batches, strict=True):
        calls.append(plans.writes_call("copy_thread", target, task, batch or b""))
    return calls


def read_tasks(index: bytes | None, place: dict[str, object]) -> list[str]:
    try:
        return read_parts(index or b"")
    except ValueError as fault:
        raise CannotRestoreError("its list of writes is damaged", place) from fault


def pick_values(
    header: Header, frames: Sequence[bytes | None], place: dict[str, object]
) -> list[tuple[Slot, bytes]]:
    slots = header.valued + header.possible
    if any(frame is None for frame in frames[: len(header.valued)]):
        raise CannotRestoreError("one of its values is missing", place)
    return [(slot, frame) for slot, frame in zip(slots, frames, strict=True) if frame is not None]
