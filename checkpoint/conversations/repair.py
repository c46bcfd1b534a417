"""Bringing SQL up to what the thread knows, after a crash or a failure between the two.

A request leaves its question in SQL first, its answer in the thread, then its answer in SQL. Whatever broke
off in between is seen as a question without answer or mark, and mended from the thread on the next read or
before the next question, repeatably: an answer row is unique by its request.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from checkpoint.conversations.errors import ConversationNotFoundError
from checkpoint.conversations.rows import Conversation, Reply, StoredMessage
from checkpoint.conversations.store import ConversationStore


@dataclass(frozen=True)
class Ended:
    """How a request ended, as its thread tells. `reply` is what the reader was told, if anything."""

    status: Literal["completed", "needs_input", "stopped", "failed", "incomplete"]
    reply: Reply | None = None


# (thread id, request id) -> how it ended; None: the thread knows nothing of it. Reads only.
EndedOf = Callable[[str, str], Ended | None]


def repair(
    store: ConversationStore,
    conversation: Conversation,
    thread_id: str,
    ended_of: EndedOf,
    *,
    running: str | None = None,
    is_idle: Callable[[], bool] = lambda: True,
) -> int:
    """Give every unanswered question its answer or its mark. -> how many were mended.

    Call it only while no other request than `running` can be at work on the thread, or with `is_idle`, which
    says whether none is: one that begins meanwhile is left alone. A conversation deleted meanwhile needs no
    repair. Errors of `ended_of` propagate: then nothing is known, so nothing is marked.
    """
    mended = 0
    for question in store.unanswered(conversation.id):
        request_id = question.request_id
        if request_id is None or request_id == running:
            continue
        try:
            settle(store, conversation, request_id, ended_of(thread_id, request_id), is_over=is_idle)
        except ConversationNotFoundError:
            return mended
        mended += 1
    return mended


def settle(
    store: ConversationStore,
    conversation: Conversation,
    request_id: str,
    ended: Ended | None,
    *,
    is_over: Callable[[], bool] = lambda: True,
) -> StoredMessage | None:
    """Write down how a request ended. -> its answer, whole or interrupted; None: the question is marked."""
    with settling(store, conversation, request_id, ended, is_over=is_over) as settled:
        return settled()


@contextmanager
def settling(
    store: ConversationStore,
    conversation: Conversation,
    request_id: str,
    ended: Ended | None,
    *,
    is_over: Callable[[], bool] = lambda: True,
) -> Iterator[Callable[[], StoredMessage | None]]:
    """`settle` beside other work: an answer may be on its way meanwhile, and the call waits for it."""
    owner, identity = conversation.owner, conversation.id
    if ended is None or ended.status in ("failed", "incomplete"):

        def marked() -> None:
            store.mark_failed(owner, identity, request_id, is_over=is_over)

        yield marked
        return
    # The text of an answer can be gone while its record is not: it is then left out, never made up.
    reply = ended.reply or Reply("", status="PARTIAL")
    with store.saving_reply(owner, identity, request_id, reply) as saved:
        yield saved
