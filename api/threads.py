"""The steps of a thread, and a fork: one branch of it copied into a conversation of its own."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Depends, Path, Query, Request
from langgraph.types import StateSnapshot
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from api.bodies import Body, CheckpointId, StrictRoute, ThreadId
from api.edge import Origin
from api.identity import caller_of, thread_of
from api.leases import LeaseKeeper, ThreadBusyError
from api.ledger import Ledger, owner_of
from api.problems import Refusal, responses
from checkpoint.conversations.errors import NameTakenError
from checkpoint.conversations.forking import Cut, fork_conversation
from checkpoint.conversations.rows import Conversation
from checkpoint.conversations.store import ConversationStore
from checkpoint.forking import UnknownCheckpointError, copy_branch
from checkpoint.requests import shanghai_time
from graph.compose import Assistant, window_of
from graph.run import config_for
from nodes.contracts import Caller

MOST_STEPS = 200

_KNOWN = responses(
    *("bad_request", "forbidden", "not_found", "invalid_body", "store_unavailable", "internal_error"),
    *("body_timeout", "body_too_large"),
)
_ON_FORK = responses(
    *("malformed_json", "unsupported_media_type", "name_taken", "database_unavailable", "shutting_down"),
    *("database_read_only", "database_full"),
)


class Step(BaseModel):
    """One stored step of a thread."""

    checkpoint_id: str
    parent_checkpoint_id: str | None
    created_at: str
    step: int
    source: str = Field(description="input, loop, update or fork.")
    next: list[str] = Field(description="The steps that come next; empty where a request had ended.")
    turn_id: str | None
    original_question: str | None
    input_kind: str | None
    status: str | None = Field(description="How the request ended, once it has.")
    answer_kind: str | None
    decision_digest: str | None
    turns_in_window: int = Field(description="Turns that the history holds at this step.")
    window: dict[str, Any] | None = Field(
        description="What the answer was given of the history, in numbers, and why some was left out."
    )


class StepList(BaseModel):
    items: list[Step] = Field(description="Newest first.")
    next_before: str | None = Field(description="`before` of the next page, where there is one.")


class ForkBody(Body):
    checkpoint_id: CheckpointId | None = Field(
        None, description="Where the branch ends; the latest step when left out."
    )
    new_thread_id: ThreadId | None = Field(
        None, description="The new conversation's name; one is made up when left out."
    )


OF_THE_LATEST = ForkBody(checkpoint_id=None, new_thread_id=None)


class Forked(BaseModel):
    thread_id: str = Field(description="The new conversation's name.")
    conversation_id: str | None
    checkpoint_id: str
    turns_in_window: int = Field(description="Turns of the branch that a model would see.")


@dataclass(frozen=True)
class ThreadParts:
    """What these routes need. Without a ledger, a fork is the thread alone."""

    assistant: Assistant
    keeper: LeaseKeeper
    ledger: Ledger | None

    @property
    def store(self) -> ConversationStore | None:
        return self.ledger.store if self.ledger else None


def threads_router(parts: ThreadParts) -> APIRouter:
    router = APIRouter(route_class=StrictRoute)
    here = Annotated[Caller, Depends(caller_of)]
    name_here = Annotated[ThreadId, Path()]

    @router.get("/api/threads/{thread_id:path}/checkpoints", responses=_KNOWN, summary="Its stored steps")
    async def checkpoints(
        thread_id: name_here,
        caller: here,
        limit: Annotated[int, Query(ge=1, le=MOST_STEPS)] = 50,
        before: Annotated[CheckpointId | None, Query()] = None,
    ) -> StepList:
        return await run_in_threadpool(read_steps, parts, caller, thread_id, limit, before)

    @router.post(
        "/api/threads/{thread_id:path}/fork",
        status_code=201,
        responses={**_KNOWN, **_ON_FORK},
        summary="Copy a branch into a new conversation",
    )
    async def fork(
        request: Request, thread_id: name_here, caller: here, body: ForkBody = OF_THE_LATEST
    ) -> Forked:
        origin: Origin = request.scope["state"]["origin"]
        return await run_in_threadpool(fork_thread, parts, caller, thread_id, body, origin.request_id)

    return router


def read_steps(parts: ThreadParts, caller: Caller, name: str, limit: int, before: str | None) -> StepList:
    """A page of the caller's thread of this name, recorded in the audit trail."""
    found = steps_of(parts, thread_of(caller, name), limit, before)
    if parts.ledger:
        parts.ledger.note_thread_read(caller, name, {"checkpoints": len(found.items)})
    return found


def steps_of(parts: ThreadParts, thread_id: str, limit: int, before: str | None) -> StepList:
    _require(parts, thread_id)
    bound: Any = {"configurable": {"thread_id": thread_id, "checkpoint_id": before}} if before else None
    history = parts.assistant.graph.get_state_history(config_for(thread_id), before=bound, limit=limit + 1)
    found = [step_of(snapshot) for snapshot in history]
    more = found[limit - 1].checkpoint_id if len(found) > limit else None
    return StepList(items=found[:limit], next_before=more)


def step_of(snapshot: StateSnapshot) -> Step:
    """What of a state says where the conversation stood; not the state itself."""
    values: dict[str, Any] = snapshot.values
    metadata: dict[str, Any] = dict(snapshot.metadata or {})
    turn, outcome, answer = (values.get(name) or {} for name in ("turn", "outcome", "answer"))
    return Step(
        checkpoint_id=_id_of(snapshot.config) or "",
        parent_checkpoint_id=_id_of(snapshot.parent_config),
        created_at=shanghai_time(_time_of(snapshot)),
        step=metadata.get("step", 0),
        source=metadata.get("source", "loop"),
        next=list(snapshot.next),
        turn_id=turn.get("turn_id"),
        original_question=turn.get("original_question"),
        input_kind=outcome.get("input_kind"),
        status=outcome.get("status"),
        answer_kind=answer.get("kind"),
        decision_digest=answer.get("decision_digest"),
        turns_in_window=_turns_in(values.get("history")),
        window=answer.get("window"),
    )


def fork_thread(parts: ThreadParts, caller: Caller, name: str, body: ForkBody, request_id: str) -> Forked:
    """Under the new thread's lease, and all or nothing: a copy that cannot be finished is erased again."""
    source, new_name = thread_of(caller, name), body.new_thread_id or str(uuid4())
    target = thread_of(caller, new_name)
    _require(parts, source)
    try:
        with parts.keeper.hold(target, request_id):
            if parts.keeper.knows_thread(target):
                raise Refusal("name_taken")
            return _copied(parts, caller, (name, source), (new_name, target), body.checkpoint_id)
    except (ThreadBusyError, NameTakenError):
        raise Refusal("name_taken") from None
    except UnknownCheckpointError:
        raise Refusal("not_found") from None


def _copied(
    parts: ThreadParts,
    caller: Caller,
    source: tuple[str, str],
    target: tuple[str, str],
    checkpoint_id: str | None,
) -> Forked:
    saver = parts.assistant.saver
    try:
        head = saver.run(copy_branch(saver.plans, source[1], target[1], checkpoint_id))
        held = _fork_rows(parts, caller, source[0], target)
    except Exception:
        saver.delete_thread(target[1])
        raise
    window = window_of(parts.assistant, target[1], caller, "zh")
    return Forked(
        thread_id=target[0],
        conversation_id=str(held.id) if held else None,
        checkpoint_id=head,
        turns_in_window=window.turns,
    )


def _fork_rows(parts: ThreadParts, caller: Caller, name: str, target: tuple[str, str]) -> Conversation | None:
    held = parts.store.find(owner_of(caller), name) if parts.store else None
    if parts.store is None or held is None:
        return None
    state = parts.assistant.graph.get_state(config_for(target[1]))
    return fork_conversation(parts.store, held, target[0], cut_of(state))


def cut_of(head: StateSnapshot) -> Cut:
    outcome = head.values.get("outcome") or {}
    is_answered = outcome.get("status") is not None or bool(head.values.get("answer"))
    return Cut(outcome.get("message_id"), is_answered, _time_of(head))


def _require(parts: ThreadParts, thread_id: str) -> None:
    if not parts.keeper.knows_thread(thread_id):
        raise Refusal("not_found")


def _id_of(config: Any) -> str | None:
    found: str | None = config["configurable"].get("checkpoint_id") if config else None
    return found


def _time_of(snapshot: StateSnapshot) -> datetime:
    return datetime.fromisoformat(snapshot.created_at or "1970-01-01T00:00:00+00:00")


def _turns_in(history: Any) -> int:
    turns = history.get("turns") if isinstance(history, dict) else None
    return len(turns) if isinstance(turns, list) else 0
