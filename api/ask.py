"""Questions without a conversation: `/v1/ask` and `/v1/ask/stream`. Nothing of them is stored anywhere.

Earlier turns come as flat (role, text) pairs and mean what they mean to `graph.answer_question`: words for
the model, and nothing else. No field could carry another role, a tool call or a source.
"""

import asyncio
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from langgraph.runtime import RunControl
from pydantic import BaseModel, Field

from api.bodies import TEXT, Body, StrictRoute, Words
from api.edge import ClientGoneError, Origin
from api.errands import Errands, why_unanswered
from api.events import EVENT_SCHEMA, EventStream, Feed
from api.identity import caller_of, limit_of
from api.problems import Refusal, problem_body, responses, too_many
from api.turnlog import TurnLog, log_fault
from api.turns import tell, tell_outcome
from api.waiting import while_read
from api.workers import Slot, WorkerPool
from graph.answer_question import Ask, request_of
from graph.compose import Assistant
from graph.run import BadTextError, TurnResult, check_text, last_result
from nodes.contracts import Caller

MAX_PAIRS = 1000

_Pair = Annotated[list[Words], Field(min_length=2, max_length=2)]
_REFUSALS = responses(
    *("bad_request", "forbidden", "body_timeout", "body_too_large", "malformed_json"),
    *(
        "unsupported_media_type",
        "invalid_body",
        "invalid_text",
        "pool_full",
        "caller_limit",
        "internal_error",
    ),
)
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The events of /api/chat. `done` carries the body of /v1/ask, `error` a problem.",
        "content": {"text/event-stream": {"schema": EVENT_SCHEMA}},
    }
}


class AskRequest(Body):
    question: str = Field(
        min_length=1,
        max_length=4000,
        description="The question, complete in itself. Not blank, no NUL.",
        examples=["云帆科技2023年的营业收入是多少？"],
        json_schema_extra=TEXT,
    )
    history: list[_Pair] | None = Field(
        None,
        max_length=MAX_PAIRS,
        description="Earlier turns as [role, text] pairs, oldest first. `assistant` is the assistant, any "
        "other role counts as the user. They may shape the words of a narrative answer and nothing else.",
        examples=[[["user", "创业补贴有多少？"], ["assistant", "一次性创业补贴为8000元[C1]。"]]],
    )


class AskAnswer(BaseModel):
    """How a question was answered. `answer` is null where it was asked back (`clarification`, `notice`)."""

    request_id: str
    status: str = Field(description="completed, or needs_input when the question lacks something.")
    degraded: bool
    question: str
    answer: dict[str, Any] | None = Field(description="kind, text, citations, informed_by.")
    clarification: dict[str, Any] | None
    notice: str | None
    text: str = Field(description="All that a reader is told, as one text.")
    window: dict[str, Any] = Field(description="What the model saw of the history, in numbers.")
    decision_digest: str | None
    usage: dict[str, Any] | None


@dataclass
class AskRun:
    """One question being worked on. It belongs to its worker; readers follow the feed."""

    ask: Ask
    origin: Origin
    slot: Slot
    turn_log: TurnLog
    began: float = field(default_factory=time.monotonic)
    feed: Feed = field(default_factory=Feed)
    control: RunControl = field(default_factory=RunControl)
    ended: "Future[AskAnswer]" = field(default_factory=Future)

    def work(self) -> None:
        if not self.ended.set_running_or_notify_cancel():
            return  # nobody waits any more, and it has not begun
        self.feed.say("created", {"request_id": self.origin.request_id, "thread_id": None, "turn_id": None})
        try:
            result = last_result(self.ask.events(self.control), partial(tell, self.feed))
            self.slot.release()  # before the end is told, so that the reader's next question finds it free
            self._conclude(result)
        except Exception as error:  # noqa: BLE001 - the thread's boundary; logged by type and place
            log_fault("ask_fault", self.origin.request_id, error)
            self._refuse(Refusal("internal_error"))

    def _conclude(self, result: TurnResult) -> None:
        seconds = time.monotonic() - self.began
        cause = self.control.drain_reason
        self.turn_log.asked(self.origin.request_id, self.ask.request["text"], result, seconds, cause)
        if result.status not in ("completed", "needs_input"):
            self._refuse(why_unanswered(self.control, "question"))
            return
        answer = _shown(self, result)
        tell_outcome(self.feed, answer.model_dump())
        self.feed.say("done", answer.model_dump())
        self.ended.set_result(answer)

    def _refuse(self, refusal: Refusal) -> None:
        self.slot.release()
        self._say(refusal)
        self.ended.set_exception(refusal)

    def _say(self, refusal: Refusal) -> None:
        body = problem_body(refusal, request_id=self.origin.request_id, instance=self.origin.path)
        self.feed.say("error", body)

    def give_up(self) -> None:
        """The process ends without it."""
        self._say(Refusal("shutting_down"))

    def abandon(self) -> None:
        """Nobody reads it any more, and nothing keeps it: writing on would be for nobody."""
        self.control.request_drain("disconnect")


@dataclass(frozen=True)
class AskParts:
    """What the routes need. Of the assistant its saver is not used."""

    assistant: Assistant
    pool: WorkerPool
    turn_log: TurnLog
    errands: Errands


def ask_router(parts: AskParts) -> APIRouter:
    """The two routes, in worker threads of this pool. They touch neither Redis nor SQL."""
    router = APIRouter(route_class=StrictRoute)
    caller_here = Depends(caller_of)

    @router.post("/v1/ask", responses=_REFUSALS, summary="Answer one question without a conversation")
    async def ask(request: Request, body: AskRequest, caller: Caller = caller_here) -> AskAnswer:
        run = start(parts, request, body, caller)
        try:
            return await while_read(asyncio.wrap_future(run.ended), request.receive)
        except ClientGoneError:
            run.abandon()
            raise

    @router.post(
        "/v1/ask/stream",
        response_class=EventStream,
        responses={**_STREAM, **_REFUSALS},
        summary="Answer one question without a conversation, as a stream of events",
    )
    async def ask_stream(request: Request, body: AskRequest, caller: Caller = caller_here) -> EventStream:
        run = start(parts, request, body, caller)
        return EventStream(
            run.feed, request_id=run.origin.request_id, on_abandoned=partial(AskRun.abandon, run)
        )

    return router


def start(parts: AskParts, request: Request, body: AskRequest, caller: Caller) -> AskRun:
    """Checked, and given a worker. Raises Refusal before anything has begun."""
    _check(body.question)
    origin: Origin = request.scope["state"]["origin"]
    pairs = None if body.history is None else [(role, text) for role, text in body.history]
    ask = Ask(parts.assistant.services, caller, request_of(body.question, origin.received_at), pairs)
    run = AskRun(ask, origin, parts.pool.reserve(limit_of(caller)), parts.turn_log)
    _begin(run, parts.pool)
    parts.errands.begin(run.control, run.ended, run.give_up)
    return run


def _begin(run: AskRun, pool: WorkerPool) -> None:
    try:
        run.slot.start(run.work, name=f"ask-{run.origin.request_id[:8]}")
    except RuntimeError:  # the system has no thread to give
        raise too_many("pool_full", pool.size) from None


def _check(question: str) -> None:
    try:
        check_text(question)
    except BadTextError as error:
        problems = [{"field": "question", "code": error.code}]
        raise Refusal("invalid_text", str(error), errors=problems) from None


def _shown(run: AskRun, result: TurnResult) -> AskAnswer:
    return AskAnswer(
        request_id=run.origin.request_id,
        status=result.status,
        degraded=result.degraded,
        question=run.ask.request["text"],
        answer=result.answer,
        clarification=result.clarification,
        notice=result.notice,
        text=result.text,
        window=dict(result.window),
        decision_digest=result.decision_digest,
        usage=dict(result.usage) if result.usage else None,
    )
