"""One contract, answered: the state moves on by rule, and the question goes through the same graph as every
other question, with nothing stored.

The state reads its own values and the current message. Messages, summary and profile reach the words of an
answer and nothing else. Evidence is what was supplied and admitted, or what our own retriever finds.
"""

import hashlib
import json
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from langgraph.runtime import RunControl

from api.contract import context
from api.contract.evidence import Admission, Admitted, HeldSources, SuppliedRetriever
from api.contract.hearing import language_of
from api.contract.models import (
    AnswerSource,
    ContextAnswer,
    ContextAnswerMeta,
    ModelUsage,
    TokensUsed,
    WindowSeen,
)
from api.contract.parsing import ContractError, Fault, Parsed
from api.contract.states import RED_FLAG, Advanced, advance, watch
from api.contract.versions import SPOKEN
from graph.build import Services, TurnGraph, build_graph
from graph.compose import fixed_caller
from graph.run import ResetEvent, TokenEvent, TurnEvent, TurnResult, stream_turn
from nodes.contracts import Caller, Intent, Language, Request
from nodes.notices import empty_window

GAP = "\n\n"


@dataclass(frozen=True)
class Origin:
    """Which request this is, and when it came."""

    request_id: str
    received_at: str


@dataclass(frozen=True)
class Reading:
    """All that was decided before a word is written. None of it comes from history, summary or profile.

    `question` is what the graph answers; None where there is nothing but the next question to say.
    """

    parsed: Parsed
    language: Language
    advanced: Advanced
    admitted: Admitted
    question: str | None
    is_derived: bool = False  # worded from the state once nothing is missing, not the message itself
    asks_back: bool = False  # the question lacks something, and the graph will say what

    @property
    def retrieval(self) -> str:
        if self.question is None:
            return "none"
        return "own" if self.parsed.contract.context.retrieved_knowledge is None else "supplied"


@dataclass(frozen=True)
class ContractTurn:
    """One contract with whose it is."""

    services: Services
    held: HeldSources
    parsed: Parsed
    caller: Caller
    origin: Origin

    def read(self) -> Reading:
        """What is decided. Raises ContractError where token_budget cannot hold the rules and the question."""
        contract = self.parsed.contract
        intent = self.services.read_intent(contract.user_message, self.origin.received_at)
        move = watch if intent["kind"] == "refused" else advance
        advanced = move(self.parsed.domain, self.parsed.state, contract.user_message, self._language)
        admitted = self._admitted()
        question, is_derived = self._question(intent, advanced, admitted)
        self._check_budget(question or contract.user_message)
        lacks = question is not None and not is_derived and not admitted.passages and bool(intent["needs"])
        reading = Reading(self.parsed, self._language, advanced, admitted, question, is_derived, lacks)
        return _asking_back(reading) if lacks else reading

    def events(
        self, reading: Reading, control: RunControl | None = None
    ) -> Iterator[TurnEvent | ContextAnswer[Any]]:
        """The events of `stream_turn` with the text around the answer; the answer comes last.

        Raises TurnFailedError when no answer could be given. Draining `control` ends it early.
        """
        before, after = _around(reading)
        if before:
            yield TokenEvent(before)
        run = _Graph(self, reading)
        result = yield from run.events(before, control or RunControl())
        if result and result.status not in ("completed", "needs_input"):
            raise TurnFailedError(result.status)
        text = f"{before}{result.text if result else ''}{after}"
        yield from run.rest_of(text)
        yield _answer(self, reading, run, result, text)

    def _check_budget(self, question: str) -> None:
        budget = self.parsed.contract.meta.token_budget
        least = context.least_budget(question, self._language)
        if budget < least:
            raise ContractError([Fault("meta.token_budget", "token_budget_too_small", f"at least {least}")])

    @property
    def _language(self) -> Language:
        state = self.parsed.state.model_dump()
        complaint = next((state[slot.name] for slot in self.parsed.domain.slots if state[slot.name]), None)
        return language_of(
            self.parsed.contract.user_message,
            state["last_question"],
            complaint if isinstance(complaint, str) else None,
        )

    def _admitted(self) -> Admitted:
        supplied = self.parsed.contract.context.retrieved_knowledge or ()
        on_date = self.origin.received_at[:10]
        return Admission(self.held).admit(supplied, caller=self.caller, on_date=on_date)

    def _question(self, intent: Intent, advanced: Advanced, admitted: Admitted) -> tuple[str | None, bool]:
        """What to answer, and whether it is worded from the state.

        A message that only fills slots is no question: once nothing is missing, the state is.
        """
        message = self.parsed.contract.user_message
        if intent["kind"] in ("refused", "small_talk", "out_of_scope") and not advanced.filled:
            return message, False
        if not advanced.filled:
            is_open = advanced.is_complete or intent.get("asks", True) or bool(admitted.passages)
            return (message if is_open else None), False
        if advanced.asks:
            return message, False
        if advanced.is_complete:
            state = advanced.state.model_dump()
            return self.parsed.domain.question(state, self._language), True
        is_reply = bool(self.parsed.state.pending_answer_for)
        return (message if admitted.passages and not is_reply else None), False


class TurnFailedError(Exception):
    """No answer could be given; `status` says how the run ended."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


def _asking_back(reading: Reading) -> Reading:
    """The question goes first: what it lacks is asked for now, the slots after it."""
    state = reading.advanced.state.model_copy(update={"last_question": None, "pending_answer_for": []})
    return replace(reading, advanced=replace(reading.advanced, state=state, next_question=None))


def _around(reading: Reading) -> tuple[str, str]:
    """The text before and after the graph's: the warning while there are signs, and the next question."""
    is_warned = reading.advanced.state.stage == RED_FLAG
    notice = reading.parsed.domain.notice[reading.language] if is_warned else ""
    asked = reading.advanced.next_question or ""
    if reading.question is None:
        return GAP.join(text for text in (notice, asked) if text), ""
    return (f"{notice}{GAP}" if notice else ""), (f"{GAP}{asked}" if asked else "")


@dataclass
class _Graph:
    """The one question of a turn through the graph, which has no saver here."""

    turn: ContractTurn
    reading: Reading
    plan: context.ContractPlan = field(init=False)
    shown: str = ""

    def __post_init__(self) -> None:
        contract = self.turn.parsed.contract
        parts = context.parts_of(contract, self.reading.advanced.state.model_dump(), self.reading.language)
        self.plan = context.ContractPlan(context.budget_of(contract.meta.token_budget), parts)

    @property
    def graph(self) -> TurnGraph:
        turn, services = self.turn, self.turn.services
        window = context.window_of(turn.parsed.contract, services.limits, self.reading.language)
        supplied = SuppliedRetriever(self.reading.admitted.passages, services.retriever)
        narrowed = replace(
            services,
            follow_up="off",
            read_intent=self._read_intent,
            retriever=supplied if self.reading.retrieval == "supplied" else services.retriever,
            restore=lambda *_, **__: window,
            plan=self.plan,
        )
        return build_graph(narrowed, None, fixed_caller(turn.caller))

    def events(self, before: str, control: RunControl) -> Generator[TurnEvent, None, TurnResult | None]:
        """What is withdrawn takes the text before it along, so that is said again."""
        self.shown = before
        if self.reading.question is None:
            return None
        result: TurnResult | None = None
        for event in self._stream(self.reading.question, control):
            if isinstance(event, TurnResult):
                result = event
                continue
            yield event
            if isinstance(event, TokenEvent):
                self.shown += event.text
            elif isinstance(event, ResetEvent):
                self.shown = before
                yield from [TokenEvent(before)] if before else []
        return result

    def rest_of(self, text: str) -> Iterator[TurnEvent]:
        """What of the whole text has not been shown yet: the next question, or what the graph asks back."""
        if not text.startswith(self.shown):
            yield ResetEvent()
            self.shown = ""
        if len(text) > len(self.shown):
            yield TokenEvent(text[len(self.shown) :])

    def _stream(self, question: str, control: RunControl) -> Iterator[TurnEvent]:
        request: Request = {
            "request_id": self.turn.origin.request_id,
            "text": question,
            "received_at": self.turn.origin.received_at,
        }
        yield from stream_turn(
            self, request, thread_id=request["request_id"], caller=self.turn.caller, control=control
        )

    def _read_intent(self, text: str, received_at: str) -> Intent:
        """As everywhere, but for what the contract states itself: its language, and its evidence."""
        intent = self.turn.services.read_intent(text, received_at)
        intent = {**intent, "language": self.reading.language}
        if intent["kind"] == "refused":
            return intent
        if self.reading.is_derived or (self.reading.admitted.passages and self._is_unanswerable(intent)):
            return {
                **intent,
                "kind": "narrative",
                "needs": [],
                "sub_questions": [],
                "ambiguous": [],
                "unknown": [],
            }
        return intent

    def _is_unanswerable(self, intent: Intent) -> bool:
        """Evidence was supplied for a question that lacks something, or whose facts we do not hold."""
        if intent["kind"] not in ("fact", "comparison", "narrative"):
            return False
        if intent["needs"]:
            return True
        parts: list[Any] = [*intent["sub_questions"], intent]
        asked = [part for part in parts if part["kind"] != "narrative"]
        return bool(asked) and not any(self._has_fact(part) for part in asked)

    def _has_fact(self, part: Any) -> bool:
        facts, caller = self.turn.services.facts, self.turn.caller
        keys = product(part["companies"], part["periods"], part["metrics"])
        return any(facts.look_up(company=c, period=p, metric=m, caller=caller) for c, p, m in keys)


# The answer


def _answer(
    turn: ContractTurn, reading: Reading, run: _Graph, result: TurnResult | None, text: str
) -> ContextAnswer[Any]:
    contract = turn.parsed.contract
    state = reading.advanced.state
    if result is not None and result.clarification and reading.asks_back:
        state = state.model_copy(update={"last_question": result.clarification["prompt"]})
    model: Any = ContextAnswer[turn.parsed.domain.model]  # type: ignore[name-defined]
    return model(  # type: ignore[no-any-return]
        session_id=contract.session_id,
        turn_id=contract.turn_id,
        answer=text,
        sources=_sources(result),
        consultation_state=state,
        meta=_meta(turn, reading, run, result),
    )


def _sources(result: TurnResult | None) -> list[AnswerSource]:
    citations = result.answer["citations"] if result and result.answer else []
    names = AnswerSource.model_fields
    return [AnswerSource(**{name: citation[name] for name in names}) for citation in citations]


def _meta(turn: ContractTurn, reading: Reading, run: _Graph, result: TurnResult | None) -> ContextAnswerMeta:
    answer = result.answer if result else None
    usage = result.usage if result else None
    return ContextAnswerMeta(
        context_version=str(SPOKEN),
        request_id=turn.origin.request_id,
        status="completed" if reading.advanced.next_question is None and _is_done(result) else "needs_input",
        kind=answer["kind"] if answer else "question",
        language=reading.language,
        degraded=result.degraded if result else False,
        question=reading.question,
        retrieval=reading.retrieval,
        filled_slots=list(reading.advanced.filled),
        new_red_flags=list(reading.advanced.new_flags),
        decision_digest=digest(reading, result.decision_digest if result else None),
        window=WindowSeen(**(result.window if result else empty_window())),
        tokens=TokensUsed(budget=turn.parsed.contract.meta.token_budget, prompt=run.plan.tokens),
        omitted=context.left_out(reading.admitted.left_out) + run.plan.omitted,
        ignored_fields=list(turn.parsed.ignored),
        usage=ModelUsage(**usage) if usage else None,
    )


def _is_done(result: TurnResult | None) -> bool:
    return result is not None and result.status == "completed"


def digest(reading: Reading, decided: str | None) -> str:
    """sha256 hex over what was decided: the graph's own digest, the domain, and the state before and after.

    Messages, summary and profile are not part of it: they decide nothing.
    """
    decisions = {
        "decided": decided,
        "domain": reading.parsed.domain.name,
        "question": reading.question,
        "before": reading.parsed.state.model_dump(),
        "after": reading.advanced.state.model_dump(),
    }
    canonical = json.dumps(decisions, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
