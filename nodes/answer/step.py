"""Answer: say what was found, and close the turn.

Reads the turn, its intent, the evidence and facts, and `history`: for the words of a narrative answer only.
Writes the answer, the request's outcome, the history with this turn added, and the chat client's pair.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from checkpoint.window import Window, WindowLimits, remember, restore
from nodes.answer.asking import names_document
from nodes.answer.prompts import PromptBudget, PromptPlan, plan_prompt
from nodes.answer.release import Released, release
from nodes.answer.rendering import (
    Names,
    Rendered,
    cited,
    fixed_text,
    names_for,
    not_found,
    render_ended,
    render_everyone,
    render_facts,
    render_growth,
    small_talk,
    unknown_companies,
)
from nodes.contracts import (
    Answer,
    AnswerKind,
    Caller,
    ChatMessage,
    Citation,
    Clock,
    CompanyDirectory,
    Emit,
    Evidence,
    FactLookup,
    Intent,
    NewId,
    NodeError,
    Outcome,
    Passage,
    Provider,
    Reset,
    SourceGuard,
    Stopped,
    ToldSummary,
    Turn,
    Usage,
    WindowReport,
)
from nodes.digest import decision_digest
from nodes.notices import empty_window, ended, said

MAX_SOURCES = 128  # documents kept with a turn, to be authorised again before it is shown
STOP = "stop"  # a user's stop; any other reason leaves the turn to be retried

Source = tuple[str, str]  # (document id, version)
Screen = Callable[[str], str | None]  # why a sentence may not leave, or None
RestoreWindow = Callable[..., Window]  # as `checkpoint.window.restore`
PlanPrompt = Callable[..., PromptPlan]  # as `nodes.answer.prompts.plan_prompt`


class AnswerReads(TypedDict, total=False):
    turn: Turn
    intent: Intent
    evidence: Evidence | None
    facts: list[FactLookup] | None
    history: object
    outcome: Outcome


class AnswerWrites(TypedDict):
    answer: Answer
    outcome: Outcome
    history: object
    messages: list[ChatMessage]


class TurnInterrupted(NodeError):  # noqa: N818 - not a fault: a time-out or a shutdown came first
    """The answer was cut short from outside. The turn stays unfinished and can be retried."""


@dataclass(frozen=True)
class Door:
    """The way out to the reader of this request."""

    emit: Emit
    reset: Reset
    stopped: Stopped


@dataclass(frozen=True)
class Asker:
    """Who asks now, and what is left of the turns before the window, if anything."""

    caller: Caller
    summary: ToldSummary | None = None


@dataclass(frozen=True)
class Said:
    """What was said, and all that is kept of how it came about."""

    kind: AnswerKind
    text: str
    citations: tuple[Citation, ...] = ()
    window: WindowReport | None = None
    usage: Usage | None = None
    replies: tuple[str, ...] = ()
    degraded: bool = False
    partial: bool = False
    # Documents whose text may be in these words, cited or not: all that the model was shown.
    shown: tuple[Source, ...] = ()


@dataclass(frozen=True)
class Answerer:
    """The step with what it needs for the process's life. One instance serves all threads."""

    directory: CompanyDirectory
    provider: Provider
    may_see: SourceGuard
    screen: Screen
    limits: WindowLimits
    clock: Clock
    new_id: NewId
    budget: PromptBudget = PromptBudget()  # noqa: RUF009 - frozen
    restore: RestoreWindow = restore
    plan: PlanPrompt = plan_prompt

    def __call__(
        self,
        state: AnswerReads,
        *,
        caller: Caller,
        emit: Emit,
        reset: Reset,
        stopped: Stopped,
        summary: ToldSummary | None = None,
    ) -> AnswerWrites:
        intent, door = state["intent"], Door(emit, reset, stopped)
        if intent["kind"] in ("refused", "out_of_scope", "small_talk"):
            made = self._fixed(state, door)
        else:
            made = self._found(state, Asker(caller, summary), door)
        answer = _answer(made, state, self._informed_by(made))
        return {
            "answer": answer,
            "outcome": ended(
                state["outcome"], "stopped" if made.partial else "completed", degraded=made.degraded
            ),
            "history": self._remembered(state, answer, made.shown),
            "messages": said(answer["text"], self.new_id()),
        }

    def _fixed(self, state: AnswerReads, door: Door) -> Said:
        intent, question = state["intent"], state["turn"]["standalone_question"]
        if intent["kind"] == "small_talk":
            made = Said("small_talk", small_talk(question, intent["language"]))
        elif intent["kind"] == "refused":
            made = Said("refused", fixed_text("refused", intent["language"]))
        else:
            made = Said("out_of_scope", fixed_text("out_of_scope", intent["language"]))
        door.emit(made.text)
        return made

    def _found(self, state: AnswerReads, asker: Asker, door: Door) -> Said:
        """Facts first, rendered by rule; then the narrative, worded from passages."""
        intent, facts, evidence = state["intent"], state.get("facts") or [], state.get("evidence")
        narratives = _narrative_questions(intent, state["turn"])
        passages = evidence["passages"] if evidence and narratives else []
        today = state["turn"]["received_at"][:10]
        has_ended = evidence is not None and evidence["filters"]["on_date"] < today
        if evidence and has_ended:
            passages = _named(passages, "\n".join(narratives))
            state = {**state, "evidence": {**evidence, "passages": passages}}
        if not facts and not passages and not intent.get("unknown"):
            return self._not_found(state["turn"]["standalone_question"], intent, door)
        rendered = self._rendered(state, facts) if facts or intent.get("unknown") else None
        if rendered and not narratives:
            return _say(Said(rendered.kind, rendered.text, tuple(rendered.citations)), door)
        if has_ended and passages:
            rendered = _above_ended(rendered, passages, intent)
        return self._with_narrative(state, asker, door, rendered)

    def _rendered(self, state: AnswerReads, facts: list[FactLookup]) -> Rendered:
        """What the facts say; then which companies nobody knows here."""
        intent = state["intent"]
        names = self._names(intent)
        unknown = unknown_companies(intent.get("unknown", []), intent["language"])
        if not facts:
            return unknown
        if intent.get("everyone"):
            by_growth = bool(intent.get("grows")) and len(intent["periods"]) == 2
            return render_growth(facts, names=names) if by_growth else render_everyone(facts, names=names)
        told = render_facts(
            facts, kind="comparison" if intent["kind"] == "comparison" else "fact", names=names
        )
        return replace(told, text=f"{told.text}\n{unknown.text}".strip())

    def _names(self, intent: Intent) -> Names:
        return names_for(intent["language"], self.directory.companies(), self.directory.metrics())

    def _not_found(self, question: str, intent: Intent, door: Door) -> Said:
        """All companies together are none that was named."""
        named = [] if intent.get("everyone") else intent["companies"]
        return _say(Said("not_found", not_found(question, self._names(intent), named)), door)

    def _with_narrative(
        self, state: AnswerReads, asker: Asker, door: Door, rendered: Rendered | None
    ) -> Said:
        """A narrative answer, under the facts where both were asked at once."""
        if rendered is None:
            return self._narrative(state, asker, door)
        first_label = len(rendered.citations) + 1
        told = self._narrative(state, asker, _under(f"{rendered.text}\n\n", door), first_label)
        found = "narrative" if told.kind == "narrative" or rendered.kind == "not_found" else rendered.kind
        return replace(
            told,
            kind=told.kind if told.partial else found,
            text=f"{rendered.text}\n\n{told.text}",
            citations=(*rendered.citations, *told.citations),
        )

    def _narrative(self, state: AnswerReads, asker: Asker, door: Door, first_label: int = 1) -> Said:
        intent, evidence = state["intent"], state.get("evidence")
        question = "\n".join(_narrative_questions(intent, state["turn"]))
        if not evidence or not evidence["passages"]:
            return self._not_found(question, intent, door)
        passages = evidence["passages"]
        window, summary = traceable(self._window(state, asker.caller), asker.summary, passages)
        plan = self.plan(
            question,
            language=intent["language"],
            passages=passages,
            window=window,
            budget=self.budget,
            summary=summary.text if summary else None,
        )
        if not plan.prompt.passages:  # none fits the budget, and without evidence nobody is asked
            return self._not_found(question, intent, door)
        released = release(
            self.provider,
            plan.prompt,
            emit=door.emit,
            reset=door.reset,
            stopped=lambda: door.stopped() is not None,
            screen=self.screen,
            first_label=first_label,
        )
        citations = cited(released.cited, passages, first_label)
        told = replace(_narrated(released, plan.report, door), citations=tuple(citations))
        return replace(told, shown=_shown(plan, summary))

    def _window(self, state: AnswerReads, caller: Caller) -> Window:
        return self.restore(
            state.get("history"),
            limits=self.limits,
            may_see=lambda sources: self.may_see(caller, sources),
            language=state["intent"]["language"],
        )

    def _informed_by(self, made: Said) -> list[list[str]]:
        """The documents shown but not cited; none for one who only quotes, since each quote is cited."""
        if getattr(self.provider, "only_quotes", False):
            return []
        cited_here = {(citation["document_id"], citation["version"]) for citation in made.citations}
        return [list(source) for source in made.shown if source not in cited_here]

    def _remembered(self, state: AnswerReads, answer: Answer, shown: Sequence[Source]) -> object:
        """History with this turn as a candidate; a turn of another kind leaves it as it was."""
        turn = state["turn"]
        cited_here = ((citation["document_id"], citation["version"]) for citation in answer["citations"])
        sources = {*cited_here, *shown}
        return remember(
            state.get("history"),
            {
                "turn_id": turn["turn_id"],
                "question": turn["standalone_question"],
                "answer": answer["text"],
                "kind": answer["kind"],
                "sources": [list(source) for source in sorted(sources)],
                "at": turn["received_at"],
            },
            self.limits,
        )


def _named(passages: Sequence[Passage], question: str) -> list[Passage]:
    """Of documents that have ended, those that the question is about, and not what merely touches on it."""
    return [passage for passage in passages if names_document(question, passage["title"])]


def _above_ended(rendered: Rendered | None, passages: Sequence[Passage], intent: Intent) -> Rendered:
    """What the facts say, then that the passages are of documents that have ended."""
    above = rendered or Rendered("not_found", "")
    ended_ones = render_ended(passages, intent["language"], len(above.citations) + 1)
    return replace(
        above,
        text=f"{above.text}\n\n{ended_ones.text}".strip(),
        citations=[*above.citations, *ended_ones.citations],
    )


def _narrative_questions(intent: Intent, turn: Turn) -> list[str]:
    parts = intent["sub_questions"]
    if parts:
        return [part["text"] for part in parts if part["kind"] == "narrative"]
    return [turn["standalone_question"]] if intent["kind"] == "narrative" else []


def _under(text: str, door: Door) -> Door:
    """The door for what follows this text, which is said at once, and again after each reset."""

    def reset() -> None:
        door.reset()
        door.emit(text)

    door.emit(text)
    return replace(door, reset=reset)


def traceable(
    window: Window, summary: ToldSummary | None, passages: Sequence[Passage]
) -> tuple[Window, ToldSummary | None]:
    """What of both a model may be shown, so that a turn can keep all the sources of its words.

    At most MAX_SOURCES, so that state stays bounded: the summary goes first, then the oldest turns. Words
    whose sources were not kept could not be taken back with them.
    """
    while window.turns and len(_sources_of(window, passages)) > MAX_SOURCES:
        window = window.newest(window.turns - 1, reason="over_source_limit")
    if summary and len(_sources_of(window, passages) | set(summary.sources)) > MAX_SOURCES:
        summary = None
    return window, summary


def _sources_of(window: Window, passages: Sequence[Passage]) -> set[Source]:
    return {*_behind_passages(passages), *_behind_window(window)}


def _behind_passages(passages: Sequence[Passage]) -> list[Source]:
    return [(passage["document_id"], passage["version"]) for passage in passages]


def _behind_window(window: Window) -> list[Source]:
    """Newest turn first."""
    newest_first = reversed(window.past_turns)
    return [(source[0], source[1]) for turn in newest_first for source in turn["sources"]]


def _shown(plan: PromptPlan, summary: ToldSummary | None) -> tuple[Source, ...]:
    """The documents behind the prompt's passages, its earlier answers and its summary, each once.

    An answer may have taken its words from any of them.
    """
    told = summary.sources if summary and plan.has_summary else ()
    passages = _behind_passages(plan.prompt.passages)
    return tuple(dict.fromkeys((*passages, *_behind_window(plan.window), *told)))


def _say(made: Said, door: Door) -> Said:
    door.emit(made.text)
    return made


def _narrated(released: Released, window: WindowReport, door: Door) -> Said:
    if released.partial and door.stopped() != STOP:
        raise TurnInterrupted("The answer was interrupted: type /retry to go on.")
    kind: AnswerKind = "narrative" if released.is_answer else "not_found"
    return Said(
        "stopped" if released.partial else kind,
        released.text,
        window=window,
        usage=released.usage,
        replies=released.replies,
        degraded=released.degraded,
        partial=released.partial,
    )


def _answer(made: Said, state: AnswerReads, informed_by: list[list[str]]) -> Answer:
    evidence = state.get("evidence")
    answer: Answer = {
        "kind": made.kind,
        "text": made.text,
        "citations": list(made.citations),
        "decision_digest": decision_digest(state["intent"], evidence, state.get("facts")),
        "knowledge_version": evidence["knowledge_version"] if evidence else None,
        "window": made.window or empty_window(),
        "usage": made.usage,
        "replies": list(made.replies),
    }
    if informed_by:
        answer["informed_by"] = informed_by
    return {**answer, "partial": True} if made.partial else answer
