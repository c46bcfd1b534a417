"""Copying one branch of a thread: a checkpoint with its ancestors, and nothing that came after it.

The copy ends at that checkpoint: what its steps had written already is left out, so a turn that was cut
there begins its next step anew. Request records are of the thread they were made in and stay there.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from checkpoint.copying import copy_calls, read_items
from checkpoint.erase import Stored, read_item, walk
from checkpoint.errors import CheckpointError
from checkpoint.layout import Slot, context_key
from checkpoint.plan import Plan, Plans, Target, check_status


class UnknownCheckpointError(CheckpointError):
    """The thread has no such checkpoint, or no longer."""

    def __init__(self, checkpoint_id: str) -> None:
        super().__init__(f"no checkpoint {checkpoint_id!r} in this thread: list its checkpoints")


def copy_branch(plans: Plans, source: object, target: object, checkpoint_id: str | None) -> Plan[str]:
    """Copy the branch that ends in the checkpoint, the latest if None; -> its id. `target` must be empty.

    Oldest first, so that at every moment the copy is a thread whose every reference holds. Raises
    UnknownCheckpointError before anything is written.
    """
    key = context_key(plans.prefix, source)
    items = yield from read_items(plans, source)
    stored = [read_item(key, item[0], item[1], item[2]) for item in items]
    root = {found.id: found for found in stored if found.namespace == ""}
    head = checkpoint_id or max(root, default="")
    chosen = branch_of(root, head)
    sent: set[tuple[bytes, Slot]] = set()
    for item, found in reversed(list(zip(items, stored, strict=True))):
        if not is_part(found, chosen, head):
            continue
        last = without_writes(item) if found.id == head and not found.namespace else item
        for call in copy_calls(plans, source, Target(target, "", None, ""), last, sent):
            check_status((yield call), call, target)
    return head


def branch_of(root: Mapping[str, Stored], head: str) -> frozenset[str]:
    """The checkpoint's id and those of its ancestors, as far as they are stored."""
    if head not in root:
        raise UnknownCheckpointError(head)
    return frozenset(found.id for found in walk(root, root[head]))


def is_part(found: Stored, chosen: frozenset[str], head: str) -> bool:
    """Subgraph checkpoints go with the root checkpoint they belong to; those of the head come after it."""
    return found.id in chosen if not found.namespace else found.anchor in chosen - {head}


def without_writes(item: Sequence[Any]) -> list[Any]:
    space, checkpoint_id, record, frames, _, _ = item
    return [space, checkpoint_id, record, frames, None, []]
