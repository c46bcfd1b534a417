"""One request through the graph: what a door calls, and the events it gets back."""

import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Protocol

import structlog
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.graph import END
from langgraph.runtime import RunControl

from checkpoint.errors import CheckpointUnavailable, LeaseLostError
from graph.build import TurnGraph
from graph.steps import RequestContext
from nodes.answer.step import STOP, TurnInterrupted
from nodes.clarify.step import PAGE_SIZE
from nodes.contracts import (
    Caller,
    Clarification,
    InputKind,
    Language,
    Outcome,
    Request,
    Suggestions,
    ToldSummary,
    Usage,
    WindowReport,
)
from nodes.gate import BadTextError, check_text
from nodes.notices import WHICH_QUESTION, closed, empty_window, how_to_reply, notice

__all__ = [
    "STOP",
    "BadTextError",
    "ResetEvent",
    "StageEvent",
    "TokenEvent",
    "TurnEvent",
    "TurnResult",
    "check_text",
    "stream_turn",
]

Status = Literal["completed", "needs_input", "failed", "stopped", "incomplete"]

log = structlog.get_logger(__name__)


class Runnable(Protocol):
    """What this module uses of an assistant."""

    @property
    def graph(self) -> TurnGraph: ...


@dataclass(frozen=True)
class StageEvent:
    """A step has begun. `input_kind` is known once the gate has decided."""

    node: str
    input_kind: InputKind | None


@dataclass(frozen=True)
class TokenEvent:
    """Checked text, to be shown at once."""

    text: str


@dataclass(frozen=True)
class ResetEvent:
    """The text shown so far is withdrawn."""


@dataclass(frozen=True)
class TurnResult:
    """How the request ended; always the last event."""

    status: Status
    input_kind: InputKind
    error_code: Literal["processing_failed", "unfinished_turn"] | None = None
    degraded: bool = False
    turn_id: str | None = None
    original_question: str | None = None
    standalone_question: str | None = None
    history_shaped: bool = (
        False  # the question was worded from history and nobody confirmed it (FOLLOW_UP=auto)
    )
    answer: dict[str, Any] | None = None
    clarification: dict[str, Any] | None = None
    notice: str | None = None
    window: WindowReport = field(default_factory=empty_window)
    decision_digest: str | None = None
    usage: Usage | None = None
    partial_text: str | None = None  # what was shown before a stop or a failure

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def text(self) -> str:
        """All that a reader is told, as one text."""
        parts = [self.notice, self.answer["text"] if self.answer else None]
        if self.clarification:
            parts.append(lines_of(self.clarification))
        return "\n\n".join(part for part in dict.fromkeys(parts) if part)


TurnEvent = StageEvent | TokenEvent | ResetEvent | TurnResult


def stream_turn(
    assistant: Runnable,
    request: Request,
    *,
    thread_id: str,
    caller: Caller,
    lease: str | None = None,
    control: RunControl | None = None,
    summary: ToldSummary | None = None,
) -> Iterator[TurnEvent]:
    """Run one request and yield its events; the last one is the TurnResult.

    `summary` of older turns may shape the words of a narrative answer, like the window and below it.

    A node's error ends in a TurnResult with status "failed" and leaves the turn retryable. Raises
    BadTextError before the graph runs; CheckpointUnavailable, LeaseLostError when the state cannot be kept.
    """
    check_text(request.get("text"))
    run = _Run(
        assistant.graph, request, config_for(thread_id, lease), caller, control or RunControl(), summary
    )
    yield from run.events()


def config_for(thread_id: str, lease: str | None = None) -> RunnableConfig:
    configurable = {"thread_id": thread_id}
    return {"configurable": {**configurable, "__lease": lease} if lease else configurable}


@dataclass
class _Run:
    graph: TurnGraph
    request: Request
    config: RunnableConfig
    caller: Caller
    control: RunControl
    summary: ToldSummary | None = None
    state: dict[str, Any] = field(default_factory=dict)
    shown: str = ""
    node: str | None = None

    def events(self) -> Iterator[TurnEvent]:
        try:
            yield from self._steps()
        except LeaseLostError:
            raise
        except CheckpointUnavailable as lost:
            yield self._stored_result(lost)
        except (GraphDrained, TurnInterrupted):
            yield self._stopped()
        except Exception as error:  # noqa: BLE001 - the boundary: any fault of a step fails its request only
            self._log(error)
            yield self._result("failed", error_code="processing_failed", degraded=True)
        else:
            outcome = self._outcome()
            status = outcome["status"] if outcome and outcome["status"] else "incomplete"
            yield self._result(status)

    def _steps(self) -> Iterator[TurnEvent]:
        stream = self.graph.stream(
            {"request": self.request},
            self.config,
            context=RequestContext(self.caller, self.summary),
            stream_mode=["custom", "tasks", "values"],
            durability="sync" if self.graph.checkpointer else None,  # LangGraph fails on it without a saver
            control=self.control,
        )
        for mode, chunk in stream:
            event = self._take(mode, chunk)
            if event is not None:
                yield event

    def _take(self, mode: str, chunk: Any) -> TurnEvent | None:
        if mode == "values":
            self.state = chunk
        elif mode == "custom":
            return self._take_text(chunk)
        elif "input" in chunk:  # a task that begins; one that ends carries a result
            self.node = chunk["name"]
            outcome = self._outcome()
            return StageEvent(chunk["name"], outcome["input_kind"] if outcome else None)
        return None

    def _take_text(self, chunk: dict[str, Any]) -> TurnEvent | None:
        if "token" in chunk:
            self.shown += chunk["token"]
            return TokenEvent(chunk["token"])
        self.shown = ""
        return ResetEvent()

    def _stored_result(self, lost: CheckpointUnavailable) -> TurnResult:
        """The result if the thread holds it although a save was reported lost; raises that report if not.

        A save may be done and only its reply be lost. To call that a failure would leave an answer in the
        thread that nobody was given.
        """
        self.state = stored_values(self.graph, self.config)
        outcome = self._outcome()
        if outcome is None or outcome["status"] is None:
            raise lost
        return self._result(outcome["status"])

    def _outcome(self) -> Outcome | None:
        """The outcome of this request; None while the state still shows the one before."""
        outcome: Outcome | None = self.state.get("outcome")
        if outcome and outcome["message_id"] == self.request.get("request_id"):
            return outcome
        return None

    def _stopped(self) -> TurnResult:
        """A user's stop closes the turn; any other reason leaves it to be retried."""
        if self.control.drain_reason == STOP and self._turn_is_open():
            intent = self.state.get("intent")
            text = self.shown or notice("stopped", intent["language"] if intent else "zh")
            answer = {**closed("stopped", text, intent), "partial": True}
            update = {"answer": answer, "clarification": None}
            self.graph.update_state(self.config, update, as_node="answer")
            self.state = {**self.state, **update}
        return self._result("stopped")

    def _turn_is_open(self) -> bool:
        outcome = self._outcome()
        return outcome is not None and outcome["turn_id"] is not None and not self.state.get("answer")

    def _result(self, status: Status, **known: Any) -> TurnResult:
        outcome = self._outcome()
        if outcome is None:
            return TurnResult(status, "unknown", partial_text=self.shown or None, **known)
        result = result_of(self.state, outcome, status)
        return replace(result, partial_text=None if result.answer else self.shown or None, **known)

    def _log(self, error: Exception) -> None:
        """The fault's type and place. Its message may quote the user, so it stays out."""
        log.error(
            "step_failed",
            node=self.node,
            request_id=self.request.get("request_id"),
            error=type(error).__name__,
            at=[f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-3:]],
        )


def stored_values(graph: TurnGraph, config: RunnableConfig) -> dict[str, Any]:
    """The thread's values as its newest checkpoint holds them.

    `get_state` also shows what a step wrote whose checkpoint was never stored; the next request drops that.
    """
    found = graph.get_state(config)
    if any(task.result is not None for task in found.tasks):
        found = graph.get_state(found.config)  # by its id it is shown as it was stored
    return dict(found.values)


def finish_step(graph: TurnGraph, config: RunnableConfig) -> None:
    """Store the checkpoint of a step that had ended when its process died: what it wrote is there already.

    Without this, whoever goes on with the turn runs the step once more, and pays for the model once more.
    """
    if any(task.result is not None for task in graph.get_state(config).tasks):
        graph.update_state(config, None, as_node=END)


def result_of(state: dict[str, Any], outcome: Outcome, status: Status) -> TurnResult:
    suggestions = state.get("suggestions")
    result = TurnResult(
        status,
        outcome["input_kind"],
        error_code=outcome["error_code"],
        degraded=outcome["degraded"] or bool(suggestions and suggestions["degraded"]),
        notice=outcome["notice"],
    )
    turn = state.get("turn")
    if turn is None or outcome["turn_id"] != turn["turn_id"]:
        return result
    result = replace(
        result,
        turn_id=turn["turn_id"],
        original_question=turn["original_question"],
        standalone_question=turn["standalone_question"],
        history_shaped=turn["standalone_reason"] == "auto",
    )
    answer, pending = state.get("answer"), state.get("clarification")
    if answer:
        return _with_answer(result, answer)
    if pending and status == "needs_input":
        asked = clarification_shown(pending, suggestions, state["intent"]["language"])
        return replace(result, clarification=asked, decision_digest=pending["decision_digest"])
    return result


def _with_answer(result: TurnResult, answer: dict[str, Any]) -> TurnResult:
    shown = {key: answer[key] for key in ("kind", "text", "citations")}
    shown |= {key: answer[key] for key in ("partial", "informed_by") if answer.get(key)}
    return replace(
        result,
        answer=shown,
        notice=None if result.notice == answer["text"] else result.notice,
        window=answer["window"],
        decision_digest=answer["decision_digest"],
        usage=answer["usage"],
    )


def clarification_shown(
    pending: Clarification, suggestions: Suggestions | None, language: Language
) -> dict[str, Any]:
    """The pending question as a reader sees it: the options of its page, numbered over the whole list."""
    options, prompt = pending["options"], pending["prompt"]
    if pending["slot"] == "reference" and suggestions and suggestions["options"]:
        options, prompt = suggestions["options"], WHICH_QUESTION[language]
    first = (pending["page"] - 1) * PAGE_SIZE
    numbered = [{"number": number, **option} for number, option in enumerate(options, start=1)]
    return {
        "slot": pending["slot"],
        "mention": pending["mention"],
        "prompt": prompt,
        "options": numbered[first : first + PAGE_SIZE],
        "page": pending["page"],
        "pages": pending["pages"],
        "how_to_reply": how_to_reply(pending["pages"], language) if options else None,
    }


def lines_of(clarification: dict[str, Any]) -> str:
    lines = [f"{option['number']}. {option['label']}" for option in clarification["options"]]
    pages = f"({clarification['page']}/{clarification['pages']}) " if clarification["pages"] > 1 else ""
    how = [f"{pages}{clarification['how_to_reply']}"] if lines else []
    return "\n".join([clarification["prompt"], *lines, *how])


def last_result(
    events: Iterator[TurnEvent], on_event: Callable[[TurnEvent], None] | None = None
) -> TurnResult:
    """Run the events to their end and give the result."""
    result: TurnResult | None = None
    for event in events:
        if isinstance(event, TurnResult):
            result = event
        elif on_event:
            on_event(event)
    if result is None:
        raise RuntimeError("The run ended without a result: report this as a bug.")
    return result
