"""`POST /v1/context/turns` and its stream. Nothing of a contract is stored: no thread, no record, no row."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol

import structlog
from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse
from langgraph.runtime import RunControl
from starlette.concurrency import run_in_threadpool

from api.contract.domains import SHIPPED
from api.contract.evidence import HeldSources
from api.contract.export import request_schema, response_schema
from api.contract.models import ContextAnswer
from api.contract.parsing import ContractError, MalformedError, UnsupportedVersionError, parse_contract
from api.contract.states import StateRegistry
from api.contract.turn import ContractTurn, Origin, Reading, TurnFailedError
from api.edge import ClientGoneError
from api.errands import Errands, why_unanswered
from api.events import EventStream, Feed
from api.identity import caller_of, limit_of
from api.problems import Refusal, problem_body, responses, too_many
from api.turnlog import log_fault
from api.waiting import while_read
from api.workers import Slot, WorkerPool
from graph.build import Services
from graph.run import StageEvent, TokenEvent
from nodes.contracts import Caller
from nodes.retrieve.documents import KnowledgeStore

log = structlog.get_logger("api")

_REFUSALS = responses(
    *("bad_request", "forbidden", "body_timeout", "body_too_large", "malformed_json"),
    *("unsupported_media_type", "invalid_contract", "unsupported_context_version", "pool_full"),
    *("caller_limit", "processing_failed", "internal_error"),
)


class Answering(Protocol):
    """What of an assistant is used here; its saver is not."""

    @property
    def services(self) -> Services: ...

    @property
    def store(self) -> KnowledgeStore: ...


@dataclass(frozen=True)
class ContractParts:
    """What the routes need. `caller_of` is the dependency that gives the caller of this very request."""

    assistant: Answering
    pool: WorkerPool
    errands: Errands
    caller_of: Callable[..., Any] = caller_of
    registry: StateRegistry = SHIPPED

    @cached_property
    def held(self) -> HeldSources:
        return HeldSources(self.assistant.store)


def contract_router(parts: ContractParts) -> APIRouter:
    """The two routes, in worker threads of the pool. They touch neither Redis nor SQL."""
    router = APIRouter()
    caller_here = Depends(parts.caller_of)
    body = {"required": True, "content": {"application/json": {"schema": request_schema(parts.registry)}}}
    answer = {"application/json": {"schema": response_schema(parts.registry)}}
    stream = {"text/event-stream": {"schema": {"type": "string"}}}

    @router.post(
        "/v1/context/turns",
        response_model=None,
        responses={200: {"description": "The answer and the new state", "content": answer}, **_REFUSALS},
        openapi_extra={"requestBody": body},
        summary="Answer one turn of a conversation that the caller owns",
    )
    async def turns(request: Request, caller: Caller = caller_here) -> JSONResponse:
        run = await _start(parts, request, caller)
        try:
            answer = await while_read(asyncio.wrap_future(run.ended), request.receive)
        except ClientGoneError:
            _abandon(run)
            raise
        return JSONResponse(to_json(answer))

    @router.post(
        "/v1/context/turns/stream",
        response_class=EventStream,
        responses={
            200: {
                "description": "created, stage, token, reset, citations, and at the end done with the body "
                "of /v1/context/turns, or error with a problem.",
                "content": stream,
            },
            **_REFUSALS,
        },
        openapi_extra={"requestBody": body},
        summary="Answer one turn of a conversation that the caller owns, as a stream of events",
    )
    async def turns_stream(request: Request, caller: Caller = caller_here) -> EventStream:
        run = await _start(parts, request, caller)
        return EventStream(
            run.feed, request_id=run.turn.origin.request_id, on_abandoned=partial(_abandon, run)
        )

    return router


def to_json(answer: ContextAnswer[Any]) -> dict[str, Any]:
    """As it crosses the wire. A state that named no domain is answered without one."""
    body = answer.model_dump(mode="json")
    if body["consultation_state"].get("domain") is None:
        del body["consultation_state"]["domain"]
    return body


def refusal_of(error: ContractError) -> Refusal:
    """One table from faults to problems; each fault keeps its path and its rule."""
    code = "invalid_contract"
    if isinstance(error, MalformedError):
        return Refusal("malformed_json")
    if isinstance(error, UnsupportedVersionError):
        code = "unsupported_context_version"
    detail = error.faults[0].detail if code == "unsupported_context_version" else None
    return Refusal(
        code,
        f"This version is not spoken here; {detail}." if detail else None,
        errors=[fault.to_json() for fault in error.faults],
    )


async def _start(parts: ContractParts, request: Request, caller: Caller) -> "ContractRun":
    """Checked, read, and given a worker. Raises Refusal before anything has begun."""
    origin = request.scope["state"]["origin"]
    body = await request.body()
    slot = parts.pool.reserve(limit_of(caller))
    with ExitStack() as undo:
        undo.callback(slot.release)
        try:
            run = await run_in_threadpool(_prepared, parts, body, caller, origin, slot)
        except ContractError as error:
            raise refusal_of(error) from None
        _begin(run, parts.pool)
        parts.errands.begin(run.control, run.ended, run.give_up)
        undo.pop_all()
    return run


def _begin(run: "ContractRun", pool: WorkerPool) -> None:
    try:
        run.slot.start(run.work, name=f"contract-{run.turn.origin.request_id[:8]}")
    except RuntimeError:  # the system has no thread to give
        raise too_many("pool_full", pool.size) from None


def _prepared(parts: ContractParts, body: bytes, caller: Caller, origin: Any, slot: Slot) -> "ContractRun":
    parsed = parse_contract(body, parts.registry)
    own = Origin(origin.request_id, origin.received_at)
    turn = ContractTurn(parts.assistant.services, parts.held, parsed, caller, own)
    return ContractRun(turn, turn.read(), origin.path, slot)


@dataclass
class ContractRun:
    """One turn being worked on. It belongs to its worker; readers follow the feed."""

    turn: ContractTurn
    reading: Reading
    path: str
    slot: Slot
    feed: Feed = field(default_factory=Feed)
    control: RunControl = field(default_factory=RunControl)
    ended: "Future[ContextAnswer[Any]]" = field(default_factory=Future)

    def work(self) -> None:
        if not self.ended.set_running_or_notify_cancel():
            return  # nobody waits any more, and it has not begun
        contract = self.turn.parsed.contract
        ids = {"session_id": contract.session_id, "turn_id": contract.turn_id}
        self.feed.say("created", {"request_id": self.turn.origin.request_id, **ids})
        try:
            answer = self._answer()
        except TurnFailedError as error:
            request_id, cause = self.turn.origin.request_id, self.control.drain_reason
            log.info("contract_ended", request_id=request_id, status=error.status, kind=None, cause=cause)
            self._refuse(why_unanswered(self.control, "contract"))
        except Exception as error:  # noqa: BLE001 - the thread's boundary; logged by type and place
            log_fault("contract_fault", self.turn.origin.request_id, error)
            self._refuse(Refusal("internal_error"))
        else:
            self._conclude(answer)

    def _answer(self) -> ContextAnswer[Any]:
        answer: ContextAnswer[Any] | None = None
        for event in self.turn.events(self.reading, self.control):
            if isinstance(event, ContextAnswer):
                answer = event
            elif isinstance(event, TokenEvent):
                self.feed.say("token", {"text": event.text})
            elif isinstance(event, StageEvent):
                self.feed.say("stage", {"node": event.node, "input_kind": event.input_kind})
            else:
                self.feed.say("reset", {"reason": "withdrawn"})
        if answer is None:
            raise TurnFailedError("incomplete")
        return answer

    def _conclude(self, answer: ContextAnswer[Any]) -> None:
        self.slot.release()  # before the end is told, so that the reader's next turn finds it free
        body = to_json(answer)
        meta = answer.meta
        ids = {"request_id": meta.request_id, "cause": self.control.drain_reason}
        log.info("contract_ended", **ids, status=meta.status, kind=meta.kind)
        if body["sources"]:
            self.feed.say("citations", {"citations": body["sources"]})
        self.feed.say("done", body)
        self.ended.set_result(answer)

    def _refuse(self, refusal: Refusal) -> None:
        self.slot.release()
        self._say(refusal)
        self.ended.set_exception(refusal)

    def _say(self, refusal: Refusal) -> None:
        origin = self.turn.origin
        self.feed.say("error", problem_body(refusal, request_id=origin.request_id, instance=self.path))

    def give_up(self) -> None:
        """The process ends without it."""
        self._say(Refusal("shutting_down"))


def _abandon(run: ContractRun) -> None:
    """Nobody reads it any more, and nothing keeps it: writing on would be for nobody."""
    run.control.request_drain("disconnect")
