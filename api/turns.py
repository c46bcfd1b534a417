"""A request's life, from the accepted body to its terminal event.

The order is fixed: slot, lease and claim, `running` record, graph, final record, release, terminal event.
A run belongs to its worker thread and to nobody's connection: readers only follow its feed. So a reader
that vanishes, or a stream that never began, holds no slot and no lease.
"""

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from secrets import token_bytes
from typing import Any, Literal
from uuid import UUID

import structlog
from langgraph.runtime import RunControl
from starlette.concurrency import run_in_threadpool

from api import records, takeover
from api.edge import Origin
from api.errands import Errands
from api.events import Feed
from api.identity import limit_of, thread_of
from api.leases import (
    CallerLimitError,
    Claim,
    ClaimedError,
    Lease,
    LeaseError,
    LeaseKeeper,
    Seats,
    ThreadBusyError,
)
from api.ledger import Entry, Ledger, owner_of, refusal_of
from api.metrics import Metrics
from api.problems import Refusal, problem_body, too_many
from api.turnlog import TurnLog, log_fault
from api.workers import Slot, WorkerPool
from checkpoint.conversations.errors import ConversationNotFoundError, ConversationStoreError
from checkpoint.conversations.rows import Question
from checkpoint.errors import CheckpointUnavailable, LeaseLostError
from graph.compose import Assistant
from graph.run import (
    STOP,
    ResetEvent,
    StageEvent,
    TokenEvent,
    TurnEvent,
    TurnResult,
    config_for,
    finish_step,
    stored_values,
    stream_turn,
)
from nodes.contracts import Caller, Request

RUNS_KEPT = 256  # finished runs whose events can still be followed, and for how long
RUN_KEPT_SECONDS = 120.0
ELSEWHERE_POLL_SECONDS = 0.5

StreamTurn = Callable[..., Iterator[TurnEvent]]
Ending = tuple[Literal["done", "error"], dict[str, Any]]

log = structlog.get_logger("api")


@dataclass(frozen=True)
class Ask:
    """One accepted body, with whose it is."""

    thread_id: str
    message: str
    caller: Caller
    origin: Origin
    client_message_id: str | None = None
    name: str | None = None  # what the caller calls the conversation; the thread's own id when not given
    conversation_id: UUID | None = None  # of a conversation that must exist

    @property
    def shown_name(self) -> str:
        """The conversation as its caller knows it; the thread's own id is nobody's business."""
        return self.name or self.thread_id

    @property
    def claim(self) -> Claim | None:
        if self.client_message_id is None:
            return None
        return Claim(self.client_message_id, hashlib.sha256(self.message.encode()).hexdigest())


@dataclass(frozen=True)
class Patience:
    """How long a run may take, and go on without a reader; in seconds."""

    run: float
    detached: float


@dataclass
class Run:
    """One request being worked on, or just finished, or going on in another process."""

    ask: Ask
    request_id: str
    feed: Feed = field(default_factory=Feed)
    control: RunControl = field(default_factory=RunControl)
    accepted: "Future[None]" = field(default_factory=Future)
    began: float = field(default_factory=time.monotonic)
    started_at: str = ""
    abandoned: float | None = None
    ended: float | None = None
    summary_version: int = 0  # of the summary that it was given; 0 for none

    def accept(self) -> None:
        self.feed.say(
            "created", {"request_id": self.request_id, "thread_id": self.ask.shown_name, "turn_id": None}
        )
        self.accepted.set_result(None)

    def refuse(self, error: Exception) -> None:
        if not self.accepted.done():
            self.accepted.set_exception(error)

    def stop(self) -> None:
        self.control.request_drain(STOP)

    def interrupt(self, reason: str) -> None:
        """End at the next step or sentence and leave the turn retryable; a user's stop stays a stop."""
        if not self.control.drain_requested:
            self.control.request_drain(reason)

    def check_time(self, patience: Patience) -> None:
        now, abandoned = time.monotonic(), self.abandoned
        if now - self.began > patience.run:
            self.interrupt("timeout")
        if abandoned is not None and now - abandoned > patience.detached:
            self.interrupt("disconnect")

    @property
    def cause(self) -> str | None:
        """Why it was told to end before its end, if it was."""
        return self.control.drain_reason if self.control.drain_requested else None

    def error(self, code: str) -> Ending:
        body = problem_body(Refusal(code), request_id=self.request_id, instance=self.ask.origin.path)
        return ("error", body)


class _RunVanishedError(Exception):
    """The process that ran a request is gone, and nothing of it is left to tell."""


class Runs:
    """The runs of this process by request id; finished ones for a short while, in bounded number."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._guard = threading.Lock()

    def add(self, run: Run) -> None:
        with self._guard:
            self._fade()
            self._runs[run.request_id] = run

    def drop(self, run: Run) -> None:
        with self._guard:
            self._runs.pop(run.request_id, None)

    def rename(self, run: Run, request_id: str) -> None:
        with self._guard:
            self._runs.pop(run.request_id, None)
            run.request_id = request_id
            self._runs[request_id] = run

    def get(self, request_id: str) -> Run | None:
        with self._guard:
            return self._runs.get(request_id)

    def active(self, thread_id: str | None = None) -> list[Run]:
        with self._guard:
            runs = [run for run in self._runs.values() if run.ended is None]
        return [run for run in runs if thread_id is None or run.ask.thread_id == thread_id]

    def _fade(self) -> None:
        oldest = time.monotonic() - RUN_KEPT_SECONDS
        ended = [run for run in self._runs.values() if run.ended is not None]
        surplus = max(0, len(ended) - RUNS_KEPT)
        for place, run in enumerate(ended):
            if place < surplus or (run.ended is not None and run.ended < oldest):
                del self._runs[run.request_id]


class Desk:
    """Takes requests in and sees each through to its end. One per process."""

    def __init__(
        self,
        assistant: Assistant,
        keeper: LeaseKeeper,
        pool: WorkerPool,
        *,
        run_turn: StreamTurn = stream_turn,
        stop_on_disconnect: bool = False,
        ledger: Ledger | None = None,
        turn_log: TurnLog | None = None,
    ) -> None:
        self._turn_log = turn_log or TurnLog(token_bytes(32), Metrics())
        self._assistant = assistant
        self._keeper = keeper
        self.pool = pool
        self._run_turn = run_turn
        self._stop_on_disconnect = stop_on_disconnect
        self._ledger = ledger
        settings = assistant.settings
        self._patience = Patience(settings.run_timeout_seconds, settings.detach_seconds)
        self.errands = Errands(settings.run_timeout_seconds)
        self._runs = Runs()
        self._followers: set[asyncio.Task[None]] = set()
        self._followed: dict[Feed, Run] = {}
        self._draining = False

    async def take(self, ask: Ask) -> Run:
        """-> the run that answers this request: a new one, or the one it repeats. Raises Refusal."""
        if self._draining:
            raise Refusal("shutting_down")
        try:
            return await self._start(ask, await self._slot_for(ask))
        except ClaimedError as known:
            return self._known(ask, known)
        except ThreadBusyError as busy:
            raise Refusal("thread_busy", retry_after=busy.retry_after_seconds) from None
        except CallerLimitError as full:
            raise too_many("caller_limit", full.limit) from None
        except LeaseLostError:  # the thread was deleted in this very moment
            raise Refusal("thread_busy") from None
        except CheckpointUnavailable:
            raise Refusal("store_unavailable") from None
        except ConversationStoreError as error:
            raise refusal_of(error) from None

    async def _slot_for(self, ask: Ask) -> Slot:
        """Raises Refusal where there is none, and ClaimedError when none is needed: it was sent before."""
        try:
            return self.pool.reserve(limit_of(ask.caller))
        except Refusal:
            await self._look_up(ask)
            raise

    def stop(self, caller: Caller, name: str) -> bool:
        """Stop the running request of the caller's conversation, in whatever process. False when none runs.

        Raises Refusal "not_found" where the caller has nothing of this name.
        """
        thread_id = thread_of(caller, name)
        mine = self._runs.active(thread_id)
        for run in mine:
            run.stop()
        stopping = bool(mine) or self._keeper.request_stop(thread_id)
        if not stopping and not self._knows(caller, name, thread_id):
            raise Refusal("not_found")
        return stopping

    def _knows(self, caller: Caller, name: str, thread_id: str) -> bool:
        """Whether there is a thread of this name, or a conversation whose thread has expired or not begun."""
        if self._keeper.knows_thread(thread_id):
            return True
        if self._ledger is None:
            return False
        return self._ledger.store.find(owner_of(caller), name) is not None

    def run_of(self, request_id: str) -> Run | None:
        """A run of this process, while its events are kept. Whose it is, is the caller's to check."""
        return self._runs.get(request_id)

    def is_held(self, thread_id: str) -> bool:
        return self._keeper.is_held(thread_id)

    def erase(self, thread_id: str) -> bool:
        """Delete the thread with everything in it; a run in progress can store nothing more."""
        existed = self._keeper.knows_thread(thread_id) or self._keeper.is_held(thread_id)
        for run in self._runs.active(thread_id):
            run.interrupt("deleted")
        self._assistant.saver.delete_thread(thread_id)
        self._keeper.forget_thread(thread_id)
        return existed

    def abandon(self, run: Run) -> None:
        """Nobody follows the run any more."""
        run.abandoned = time.monotonic()
        if self._stop_on_disconnect:
            run.interrupt("disconnect")

    def drain(self) -> None:
        """Take nothing more; what runs goes on."""
        self._draining = True

    def close(self, grace_seconds: float) -> None:
        """Let running requests end, then interrupt and record the rest, then stop renewing leases."""
        self.drain()
        if not self.pool.wait_idle(grace_seconds):
            self.interrupt_all()
            self.pool.wait_idle(grace_seconds)
        self._keeper.close()

    def interrupt_all(self) -> None:
        """End what runs here; who follows a run of another process is told to come back."""
        for run in self._runs.active():
            run.interrupt("shutdown")
        self.errands.interrupt_all("shutdown")
        for run in list(self._followed.values()):
            run.feed.say(*run.error("shutting_down"))

    def give_up(self) -> None:
        """Tell the readers of what heard no interruption, since the process ends without it."""
        for run in self._runs.active():
            run.feed.say(*run.error("shutting_down"))
        self.errands.give_up()

    @contextmanager
    def following(self, run: Run) -> Iterator[None]:
        """While its feed waits for a run that may be in another process."""
        self._followed[run.feed] = run
        try:
            yield
        finally:
            del self._followed[run.feed]

    async def _start(self, ask: Ask, slot: Slot) -> Run:
        run = Run(ask, ask.origin.request_id)
        self._runs.add(run)
        try:
            slot.start(lambda: self._work(run, slot), name=f"turn-{run.request_id[:8]}")
        except RuntimeError:  # the system has no thread to give
            self._runs.drop(run)
            raise too_many("pool_full", self.pool.size) from None
        await asyncio.shield(asyncio.wrap_future(run.accepted))
        return run

    async def _look_up(self, ask: Ask) -> None:
        if ask.claim:
            await run_in_threadpool(self._keeper.look_up, ask.thread_id, ask.origin.request_id, ask.claim)

    def _known(self, ask: Ask, known: ClaimedError) -> Run:
        if known.state == "other":
            raise Refusal("message_id_reused")
        here = self._runs.get(known.request_id)
        # What has ended is told again as it may be shown now; a live feed has only just been authorised.
        if here is not None and (self._ledger is None or here.ended is None):
            here.abandoned = None  # it has a reader again
            return here
        run = Run(ask, known.request_id)
        run.accept()
        task = asyncio.create_task(self._follow(run, known))
        self._followers.add(task)
        task.add_done_callback(self._followers.discard)
        return run

    async def _follow(self, run: Run, known: ClaimedError) -> None:
        """Tell the outcome of a run that is not in this process; while it runs, its lease bounds the wait."""
        try:
            with self.following(run):
                while known.state == "running":
                    await asyncio.sleep(ELSEWHERE_POLL_SECONDS)
                    known = await self._look_again(run.ask)
            stored = await run_in_threadpool(self._stored, run, known.outcome)
        except CheckpointUnavailable:
            run.feed.say(*run.error("store_unavailable"))
        except _RunVanishedError:
            run.feed.say(*run.error("run_vanished"))
        except Exception as error:  # noqa: BLE001 - a stream must end; logged by type and place
            log_fault("follower_fault", run.request_id, error)
            run.feed.say(*run.error("internal_error"))
        else:
            tell_outcome(run.feed, stored)
            run.feed.say("done", stored)

    async def _look_again(self, ask: Ask) -> ClaimedError:
        try:
            await self._look_up(ask)
        except ClaimedError as known:
            return known
        raise _RunVanishedError

    def _stored(self, run: Run, outcome: bytes | None) -> dict[str, Any]:
        if outcome:
            stored = self._decode(outcome)
            return self._ledger.shown(stored, run.ask.caller) if self._ledger else stored
        for record in self._assistant.saver.list_requests(run.ask.thread_id):
            if record["request_id"] == run.request_id:
                return faded({**record, "thread_id": run.ask.shown_name})
        raise _RunVanishedError

    def _work(self, run: Run, slot: Slot) -> None:
        """The worker's job. Whatever happens, the feed of an accepted run ends with a terminal event."""
        ending = run.error("internal_error")
        refusal: Exception | None = None
        self._turn_log.metrics.begin("turns_running")
        try:
            run.began, run.started_at = time.monotonic(), self._assistant.clock()
            ending = self._process_leased(run)
        except (LeaseError, CheckpointUnavailable, LeaseLostError) as error:
            refusal, ending = error, run.error("store_unavailable")
        except ConversationStoreError as error:
            refusal, ending = error, run.error(refusal_of(error).code)
        except Exception as error:  # noqa: BLE001 - the thread's boundary; logged by type and place
            refusal = Refusal("internal_error")
            log_fault("worker_fault", run.request_id, error)
        finally:
            self._finish(run, slot, ending, refusal)

    def _finish(self, run: Run, slot: Slot, ending: Ending, refusal: Exception | None) -> None:
        slot.release()
        self._turn_log.metrics.end("turns_running")
        run.ended = time.monotonic()
        if not run.accepted.done():
            self._runs.drop(run)
            run.refuse(refusal or RuntimeError("the worker ended before the request was accepted"))
        elif ending[0] == "error":
            self._turn_log.broken_off(run.request_id, ending[1]["code"], run.cause)
        try:
            run.feed.say(*ending)
        except (TypeError, ValueError) as error:  # an outcome that cannot be told; its stream must end
            log_fault("ending_fault", run.request_id, error)
            run.feed.say(*run.error("internal_error"))

    def _process_leased(self, run: Run) -> Ending:
        with self._keeper.hold(
            run.ask.thread_id,
            run.request_id,
            claim=run.ask.claim,
            seats=self._seats_of(run.ask.caller),
            on_stop=run.stop,
            on_lost=lambda: run.interrupt("lease_lost"),
            on_tick=lambda: run.check_time(self._patience),
        ) as lease:
            if lease.request_id != run.request_id:
                self._runs.rename(run, lease.request_id)
            return self._process(run, lease)

    def _seats_of(self, caller: Caller) -> Seats | None:
        name, limit = limit_of(caller), self._assistant.settings.caller_max_running
        return None if name is None else Seats(name, limit)

    def _process(self, run: Run, lease: Lease) -> Ending:
        started = records.Started(
            request_id=run.request_id,
            thread_id=run.ask.thread_id,
            question=run.ask.message,
            received_at=run.ask.origin.received_at,
            started_at=run.started_at,
        )
        entry = self._open_entry(run)
        if entry and entry.answer and entry.answer.request_id != run.request_id:
            return self._tell_again(run, lease, entry)
        self._assistant.saver.put_request(records.running(started), lease=lease.token)
        lease.begin()
        run.accept()
        try:
            result = self._answer(run, lease, entry)
            seconds = time.monotonic() - run.began
            record = records.ended(started, result, finished_at=self._assistant.clock(), seconds=seconds)
            with self._closing(run, entry, result) as closed:  # the record goes to Redis beside the answer
                self._assistant.saver.put_request(record, lease=lease.token)
                stored = outcome_of(run, result, record)
                ids = closed()
        except (LeaseLostError, ConversationNotFoundError):
            return run.error("lease_lost")
        except CheckpointUnavailable:
            return run.error("store_unavailable")
        except ConversationStoreError as error:
            # The thread has the answer; the same message sent again, or the next read, saves it.
            return run.error(refusal_of(error).code)
        self._turn_log.ended(record, result, {**ids, **_summary_of(run, entry)}, run.cause)
        stored |= ids
        if lease.claim:
            lease.conclude(self._encode(stored))
        return ("done", stored)

    def _open_entry(self, run: Run) -> Entry | None:
        """Save the question before anything is done with it."""
        if self._ledger is None:
            return None
        ask = run.ask
        trace = ask.origin.trace or run.request_id
        question = Question(run.request_id, ask.message, ask.client_message_id, trace)
        return self._ledger.open(ask.caller, ask.name or ask.thread_id, question, ask.conversation_id)

    def _closing(
        self, run: Run, entry: Entry | None, result: TurnResult
    ) -> AbstractContextManager[Callable[[], dict[str, Any]]]:
        if self._ledger is None or entry is None:
            return nullcontext(dict)
        return self._ledger.closing(entry, run.ask.caller, run.request_id, result)

    def _tell_again(self, run: Run, lease: Lease, entry: Entry) -> Ending:
        """The answer that this very message got before, when only the durable record remembers it."""
        assert self._ledger is not None  # noqa: S101 - an entry comes from it
        stored = self._ledger.told_before(entry, run.ask.caller, run.ask.shown_name)
        lease.begin()
        run.accept()
        tell_outcome(run.feed, stored)
        lease.conclude(self._encode(stored))
        return ("done", stored)

    def _answer(self, run: Run, lease: Lease, entry: Entry | None) -> TurnResult:
        """Run the graph, telling the feed. Raises LeaseLostError only: any other fault is a result."""
        try:
            result = self._finished_before(run, lease) if lease.taken_over else None
            result = result or self._stream(run, lease, self._given(run, entry))
        except LeaseLostError:
            raise
        except Exception as error:  # noqa: BLE001 - the record of the request must be closed whatever failed
            log_fault("turn_fault", run.request_id, error)
            result = TurnResult("failed", "unknown", error_code="processing_failed", degraded=True)
        tell_outcome(run.feed, result.to_json())
        return result

    def _given(self, run: Run, entry: Entry | None) -> dict[str, Any]:
        """What else the run is given: a summary of older turns, where there is one."""
        if self._ledger is None or entry is None:
            return {}
        try:
            summary = self._ledger.summary_of(entry.conversation, run.ask.caller)
        except ConversationStoreError:
            return {}  # the omission mark says that older turns are missing
        if summary is None:
            return {}
        run.summary_version = summary.version
        return {"summary": summary}

    def _stream(self, run: Run, lease: Lease, given: dict[str, Any]) -> TurnResult:
        half_done = lease.taken_over and takeover.is_half_done(self._state(run), run.request_id)
        request: Request = {
            "request_id": run.request_id,
            "text": "/retry" if half_done else run.ask.message,
            "received_at": run.ask.origin.received_at,
        }
        events = self._run_turn(
            self._assistant,
            request,
            thread_id=run.ask.thread_id,
            caller=run.ask.caller,
            lease=lease.token,
            control=run.control,
            **given,
        )
        result: TurnResult | None = None
        for event in events:
            if isinstance(event, TurnResult):
                result = event
            else:
                tell(run.feed, event)
        return result or _result_of_silence(run.control)

    def _finished_before(self, run: Run, lease: Lease) -> TurnResult | None:
        finish_step(self._assistant.graph, config_for(run.ask.thread_id, lease.token))
        return takeover.finished_result(self._state(run), run.request_id)

    def _state(self, run: Run) -> dict[str, Any]:
        return stored_values(self._assistant.graph, config_for(run.ask.thread_id))

    def _encode(self, stored: dict[str, Any]) -> bytes:
        """With the saver's own serializer, so that a stored answer is as protected as the thread itself."""
        kind, value = self._assistant.saver.serde.dumps_typed(json.dumps(stored))
        return bytes(kind.encode() + b"\n" + value)

    def _decode(self, outcome: bytes) -> dict[str, Any]:
        kind, _, value = outcome.partition(b"\n")
        stored: dict[str, Any] = json.loads(self._assistant.saver.serde.loads_typed((kind.decode(), value)))
        return stored


def _result_of_silence(control: RunControl) -> TurnResult:
    """The graph left without an end event: stopped when a stop was seen, else incomplete."""
    status: Literal["stopped", "incomplete"] = "stopped" if control.drain_requested else "incomplete"
    return TurnResult(status, "unknown", degraded=True)


def outcome_of(run: Run, result: TurnResult, record: records.Record) -> dict[str, Any]:
    """The `done` event: how the request ended, and all that a reader may see of it."""
    stored = {
        "request_id": run.request_id,
        "thread_id": run.ask.shown_name,
        **result.to_json(),
        "degraded": record["degraded"],
        "text": result.text,
    }
    if result.status == "failed" and result.error_code:
        stored["error"] = run.error(result.error_code)[1]
    return stored


def faded(record: records.Record) -> dict[str, Any]:
    """The done event of a request whose text is no longer kept for it: how it ended, from its record."""
    names = ("request_id", "thread_id", "status", "degraded", "error_code", "input_kind", "original_question")
    return {**{name: record[name] for name in names}, "answer": None, "usage": None, "faded": True}


def _summary_of(run: Run, entry: Entry | None) -> dict[str, int]:
    """Which summary of the conversation the run was given, how far it reached, and which message this is."""
    if entry is None:
        return {}
    reached = entry.conversation.summary_message_sequence
    return {
        "question_sequence": entry.question.sequence_no,
        "summary_version": run.summary_version,
        "summary_sequence": reached,
    }


def tell(feed: Feed, event: StageEvent | TokenEvent | ResetEvent) -> None:
    if isinstance(event, TokenEvent):
        feed.say("token", {"text": event.text})
    elif isinstance(event, StageEvent):
        feed.say("stage", {"node": event.node, "input_kind": event.input_kind})
    else:
        feed.say("reset", {"reason": "withdrawn"})


def tell_outcome(feed: Feed, result: dict[str, Any]) -> None:
    answer = result.get("answer")
    if answer and answer.get("citations"):
        feed.say("citations", {"citations": answer["citations"]})
    if result.get("clarification"):
        feed.say("clarification", result["clarification"])
