"""What a request leaves in the durable record, and how the record catches up with its thread.

The question is saved before anything else is done, the answer after the thread holds it. So whatever breaks
off in between, the thread knows what became of the request, and the next read or question writes it down.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast
from uuid import UUID

import structlog

from api import takeover
from api.leases import LeaseKeeper
from api.problems import Refusal
from checkpoint.conversations.errors import (
    BadCursorError,
    ConversationNotFoundError,
    ConversationStoreError,
    MessageIdReusedError,
    MessageNotFoundError,
    NameTakenError,
    StoreFullError,
    StoreReadOnlyError,
    StoreRevisionError,
    UnsettledError,
)
from checkpoint.conversations.repair import Ended, repair, settling
from checkpoint.conversations.rows import Conversation, Owner, Question, Reply, StoredMessage
from checkpoint.conversations.sources import MaySee, language_of, remembering, show
from checkpoint.conversations.store import ConversationStore
from graph.compose import Assistant
from graph.run import TurnResult, config_for, result_of, stored_values
from nodes.contracts import Caller, ToldSummary

TAKES_NO_WRITES = (StoreReadOnlyError, StoreFullError)
STEPS_SEARCHED = 200  # of a thread's newest, for the outcome of a request that is no longer its last

REFUSALS: tuple[tuple[type[ConversationStoreError], str], ...] = (
    (ConversationNotFoundError, "not_found"),
    (MessageNotFoundError, "not_found"),
    (MessageIdReusedError, "message_id_reused"),
    (NameTakenError, "name_taken"),
    (BadCursorError, "invalid_cursor"),
    (StoreReadOnlyError, "database_read_only"),
    (StoreFullError, "database_full"),
    (StoreRevisionError, "database_of_another_release"),
)


def refusal_of(error: ConversationStoreError) -> Refusal:
    """One table from the store's errors to problems."""
    code = next((code for kind, code in REFUSALS if isinstance(error, kind)), "database_unavailable")
    return Refusal(code)


def owner_of(caller: Caller) -> Owner:
    return Owner(caller.tenant, caller.user)


log = structlog.get_logger("api")


@dataclass(frozen=True)
class Entry:
    """A request's question as saved. `answer` is there when the same message was answered before."""

    conversation: Conversation
    question: StoredMessage
    answer: StoredMessage | None


@dataclass(frozen=True)
class Ledger:
    """The SQL side of requests. Called from worker threads; holds no connection between two calls."""

    store: ConversationStore
    assistant: Assistant
    keeper: LeaseKeeper
    thread_of: Callable[[Caller, str], str]
    after_turn: Callable[[Conversation, Caller], None] = lambda _conversation, _caller: None
    summary_of: Callable[[Conversation, Caller], ToldSummary | None] = lambda _conversation, _caller: None
    end: Callable[[], None] = lambda: None

    def open(
        self, caller: Caller, name: str, question: Question, conversation_id: UUID | None = None
    ) -> Entry:
        """Save the question, under the thread's lease. What broke off before it is mended first.

        Raises ConversationStoreError and CheckpointUnavailable; nothing is half-written.
        """
        save = partial(
            self.store.save_question,
            owner_of(caller),
            question,
            name=name,
            knowledge_base=caller.knowledge_base,
            conversation_id=conversation_id,
            only_when_settled=True,
        )
        try:
            saved = save()
        except UnsettledError as found:
            thread_id = self.thread_of(caller, found.conversation.external_id)
            repair(self.store, found.conversation, thread_id, self.ended, running=question.request_id)
            saved = save()
        return Entry(saved.conversation, saved.message, saved.answer)

    @contextmanager
    def closing(
        self, entry: Entry, caller: Caller, request_id: str, result: TurnResult
    ) -> Iterator[Callable[[], dict[str, Any]]]:
        """Save how the request ended, beside other work. The call -> the ids of its rows, for `done`.

        It raises ConversationNotFoundError when the conversation was deleted meanwhile. Left without it, the
        next read or question writes down what is missing.
        """
        as_asked = result.standalone_question == entry.question.content
        ended = ended_by(result, is_as_asked=as_asked)
        with settling(self.store, entry.conversation, request_id, ended) as settled:

            def closed() -> dict[str, Any]:
                ids = ids_of(entry, settled())
                self.after_turn(entry.conversation, caller)
                return ids

            yield closed

    def told_before(self, entry: Entry, caller: Caller, thread_id: str) -> dict[str, Any]:
        """The `done` event of a message that was answered before, as its answer may be shown now."""
        answer = cast(StoredMessage, entry.answer)
        shown = show(answer.content, answer.sources, self.may_see(caller), language_of(answer.content))
        told = {"kind": None, "text": shown.content, "citations": shown.sources}
        return {
            "request_id": answer.request_id,
            "thread_id": thread_id,
            "status": "completed" if answer.status == "COMPLETE" else "stopped",
            "input_kind": "unknown",
            "error_code": None,
            "degraded": False,
            "original_question": entry.question.content,
            "standalone_question": entry.question.standalone_question,
            "answer": told,
            "text": shown.content,
            "usage": None,
            **ids_of(entry, answer),
        }

    def shown(self, stored: dict[str, Any], caller: Caller) -> dict[str, Any]:
        """A stored `done` event as it may be told again now: a withdrawn source takes its answer along."""
        answer = stored.get("answer")
        sources = sources_of(answer)
        if not answer or not sources:
            return stored
        told = show(answer["text"], sources, self.may_see(caller), language_of(answer["text"]))
        if not told.is_withdrawn:
            return stored
        kept = {name: value for name, value in answer.items() if name != "informed_by"}
        told_answer = {**kept, "text": told.content, "citations": told.sources}
        return {**stored, "answer": told_answer, "text": told.content}

    def may_see(self, caller: Caller) -> MaySee:
        """Asked anew for every use; within one, once a source."""
        return remembering(lambda keys: self.assistant.services.may_see(caller, keys))

    def with_standing(self, sources: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Shown sources, each that is available with how it stands in the documents now."""
        available = [source for source in sources if source["available"]]
        if not available:
            return sources
        standing = iter(self.assistant.services.standing(available))
        return [{**each, "standing": next(standing)} if each["available"] else each for each in sources]

    def mend(self, held: Conversation, caller: Caller) -> int:
        """Catch up with the thread before a read. While a request runs, there is nothing to mend yet.

        A database that takes no writes is read as it stands, and mended by a later read.
        """
        if not self.store.unanswered(held.id):
            return 0
        thread_id = self.thread_of(caller, held.external_id)

        def is_idle() -> bool:
            return not self.keeper.is_held(thread_id)

        if not is_idle():
            return 0
        try:
            return repair(self.store, held, thread_id, self.ended, is_idle=is_idle)
        except TAKES_NO_WRITES as error:
            log.warning("repair_postponed", conversation_id=str(held.id), error=type(error).__name__)
            return 0

    def note_read(
        self,
        owner: Owner,
        action: Literal["list", "read", "export"],
        conversation_id: UUID | None = None,
        detail: Mapping[str, int | str] | None = None,
    ) -> None:
        """Record who read what. A database that takes no writes is read too: then the log has that row."""
        try:
            self.store.record(owner, action, conversation_id, detail)
        except TAKES_NO_WRITES as error:
            _log_unwritten(error, action, owner, conversation_id, detail)

    def note_thread_read(self, caller: Caller, name: str, detail: Mapping[str, int | str]) -> None:
        """Record that a thread was read, as a reading of its conversation where there is one.

        Threads are read while the database is away, too: then the log has that row.
        """
        owner = owner_of(caller)
        try:
            held = self.store.find(owner, name)
            self.store.record(owner, "read", held.id if held else None, detail)
        except ConversationStoreError as error:
            _log_unwritten(error, "read", owner, None, detail)

    def ended(self, thread_id: str, request_id: str) -> Ended | None:
        """How a request ended, from its thread: its state, then its record."""
        result = self._result(thread_id, request_id)
        if result:
            return ended_by(result)
        for record in self.assistant.saver.list_requests(thread_id):
            if record["request_id"] == request_id:
                status = record["status"]
                return Ended("incomplete" if status == "running" else status)
        return None

    def _result(self, thread_id: str, request_id: str) -> TurnResult | None:
        config = config_for(thread_id)
        newest = stored_values(self.assistant.graph, config)
        if not newest:
            return None
        if (newest.get("outcome") or {}).get("message_id") == request_id:
            return result_in(newest, request_id)
        steps = self.assistant.graph.get_state_history(config, limit=STEPS_SEARCHED)
        found = (result_in(step.values, request_id) for step in steps)
        return next((result for result in found if result), None)


def _log_unwritten(
    error: Exception,
    action: str,
    owner: Owner,
    conversation_id: UUID | None,
    detail: Mapping[str, int | str] | None,
) -> None:
    log.warning(
        "audit_not_written",
        action=action,
        tenant_id=owner.tenant_id,
        user_id=owner.user_id,
        conversation_id=None if conversation_id is None else str(conversation_id),
        detail=detail,
        error=type(error).__name__,
    )


def ids_of(entry: Entry, answer: StoredMessage | None) -> dict[str, Any]:
    return {
        "conversation_id": str(entry.conversation.id),
        "user_message_id": str(entry.question.id),
        "assistant_message_id": str(answer.id) if answer else None,
    }


def result_in(state: Mapping[str, Any], request_id: str) -> TurnResult | None:
    """The request's result if it ended in this state; a user's stop closes the answer, not the outcome."""
    result = takeover.finished_result(state, request_id)
    if result:
        return result
    outcome, answer = state.get("outcome"), state.get("answer")
    if outcome and outcome["message_id"] == request_id and answer and answer.get("partial"):
        return result_of(dict(state), outcome, "stopped")
    return None


def ended_by(result: TurnResult, *, is_as_asked: bool = False) -> Ended:
    """What the record keeps of a result. A failure keeps nothing: half an answer is none."""
    if result.status in ("failed", "incomplete"):
        return Ended(result.status)
    return Ended(result.status, reply_of(result, is_as_asked=is_as_asked))


def reply_of(result: TurnResult, *, is_as_asked: bool) -> Reply:
    usage = result.usage
    return Reply(
        content=result.text or result.partial_text or "",
        status="PARTIAL" if result.status == "stopped" else "COMPLETE",
        sources=sources_of(result.answer),
        standalone_question=result.standalone_question,
        model=usage["model"] if usage else None,
        prompt_tokens=usage["prompt_tokens"] if usage else None,
        completion_tokens=usage["completion_tokens"] if usage else None,
        is_as_asked=is_as_asked,
    )


def sources_of(answer: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """All that an answer's words may come from: citations; then, without a label, what else informed it."""
    if not answer:
        return []
    informed_by = ({"document_id": key[0], "version": key[1]} for key in answer.get("informed_by") or ())
    return [*(answer.get("citations") or ()), *informed_by]


def data_of(wire: bytes) -> dict[str, Any]:
    """The data of one event as it was sent."""
    data: dict[str, Any] = json.loads(wire.decode().split("data: ", 1)[1])
    return data
