"""Suggest: which explicit questions may a vague one have meant? The user picks; nothing is guessed.

Reads the turn, its intent, the pending clarification and `history` (re-authorised for this caller).
Writes only `suggestions`.
"""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypedDict

from checkpoint.window import PastTurn, Window, WindowLimits, restore
from nodes.clarify.resolve import resolve
from nodes.contracts import (
    Caller,
    Clarification,
    Company,
    CompanyDirectory,
    Intent,
    Language,
    Option,
    Provider,
    ProviderError,
    ReadIntent,
    SourceGuard,
    Stopped,
    Suggestions,
    Turn,
)
from nodes.naming import period_label
from nodes.notices import SOMETHING_ELSE
from nodes.reading.references import asks_again, strip_reference

MAX_SUGGESTIONS = 3


class SuggestReads(TypedDict, total=False):
    turn: Turn
    intent: Intent
    clarification: Clarification
    history: object


class SuggestWrites(TypedDict):
    suggestions: Suggestions


def make_suggest(
    *,
    read_intent: ReadIntent,
    directory: CompanyDirectory,
    may_see: SourceGuard,
    limits: WindowLimits,
    resolver: Provider | None = None,
) -> Callable[..., SuggestWrites]:
    """Suggestions worded by `resolver`, a model; without one, and where it fails, by rule.

    By rule they are the last turns' own questions, with what the new text says put in their place.
    """

    def suggest(state: SuggestReads, *, caller: Caller, stopped: Stopped = lambda: None) -> SuggestWrites:
        turn, intent = state["turn"], state["intent"]
        window = restore(
            state.get("history"),
            limits=limits,
            may_see=lambda sources: may_see(caller, sources),
            language=intent["language"],
        )
        questions, degraded = by_model(
            turn["original_question"], window, intent["language"], resolver, lambda: stopped() is not None
        )
        if not questions:
            names = Names(directory, intent["language"])
            questions = by_rule(turn, intent, window, read_intent, names)
        return {"suggestions": {"options": offered(questions, intent["language"]), "degraded": degraded}}

    return suggest


def by_model(
    text: str,
    window: Window,
    language: Language,
    resolver: Provider | None,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[list[str], bool]:
    """The model's questions, and whether it failed. None, or one that sees nothing, has not failed."""
    if resolver is None or not window.past_turns:
        return [], False
    try:
        found = resolve(text, history=window.messages, language=language, provider=resolver, stopped=stopped)
    except ProviderError:
        return [], True
    return list(dict.fromkeys(found["standalone_questions"]))[:MAX_SUGGESTIONS], False


def by_rule(turn: Turn, intent: Intent, window: Window, read_intent: ReadIntent, names: "Names") -> list[str]:
    worded = [
        reworded(turn["original_question"], intent, asked_at(past, turn["received_at"]), read_intent, names)
        for past in reversed(window.past_turns)
    ]
    return list(dict.fromkeys(question for question in worded if question))[:MAX_SUGGESTIONS]


def asked_at(past: PastTurn, now: str) -> PastTurn:
    """The turn with a time to count from: older forms of the channel have none, or none to be read."""
    try:
        datetime.fromisoformat(past["at"])
    except ValueError:
        return {**past, "at": now}
    return past


def offered(questions: Sequence[str], language: Language) -> list[Option]:
    """The questions as options, then "something else"; nothing at all where there is no question."""
    options: list[Option] = [{"value": question, "label": question} for question in questions]
    if options:
        options.append({"value": "", "label": SOMETHING_ELSE[language]})
    return options


class Names:
    """Ids back to names in the reader's language."""

    def __init__(self, directory: CompanyDirectory, language: Language) -> None:
        self._directory = directory
        self._metrics = {metric.metric_id: metric for metric in directory.metrics()}
        self._language = language

    def company(self, company_id: str) -> str:
        company = self._directory.company(company_id)
        return _company_name(company, self._language) if company else company_id

    def metric(self, metric_id: str) -> str:
        metric = self._metrics.get(metric_id)
        if metric is None:
            return metric_id
        return metric.name if self._language == "zh" else metric.english_name

    def fact_question(
        self, companies: Sequence[str] | None, periods: Sequence[str], metrics: Sequence[str]
    ) -> str:
        """`companies` None: all of them."""
        everyone = "所有公司" if self._language == "zh" else "all companies"
        company = everyone if companies is None else "、".join(map(self.company, companies))
        metric = "、".join(map(self.metric, metrics))
        if self._language == "zh":
            return f"{company}{'、'.join(period_label(period, 'zh') for period in periods)}的{metric}是多少？"
        return f"What was the {metric} of {company} in {', '.join(periods)}?"


def reworded(text: str, intent: Intent, past: PastTurn, read_intent: ReadIntent, names: Names) -> str | None:
    """An explicit question: this text's own words and slots, completed from one past question."""
    if asks_again(text):
        return past["question"]
    before = read_intent(past["question"], past["at"])
    if before["metrics"] and (intent["metrics"] or intent["companies"] or intent["periods"]):
        everyone = before.get("everyone", False) and not intent["companies"]
        return names.fact_question(
            None if everyone else intent["companies"] or before["companies"],
            periods_meant(text, intent, before, read_intent) or before["periods"],
            intent["metrics"] or before["metrics"],
        )
    topic = past["question"].rstrip("？?。.!！ ")
    rest = strip_reference(text)
    if not topic or not rest:
        return None
    return f"关于“{topic}”：{rest}" if intent["language"] == "zh" else f'About "{topic}": {rest}'


def periods_meant(text: str, intent: Intent, before: Intent, read_intent: ReadIntent) -> list[str]:
    """The text's own periods; a half or quarter without a year is one of the year asked about before."""
    if not before["periods"] or not intent["periods"] or _RELATIVE.search(text):
        return intent["periods"]
    return read_intent(text, f"{before['periods'][-1][:4]}-12-31T00:00:00+08:00")["periods"]


# Words that count from today, whatever was asked before.
_RELATIVE = re.compile(r"[去今前本]年|近.{1,2}年|\b(?:last|this|past|previous)\b", re.IGNORECASE)


def _company_name(company: Company, language: Language) -> str:
    if language == "en" and company.english_names:
        return company.english_names[0]
    return company.name
