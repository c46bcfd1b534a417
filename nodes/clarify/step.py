"""Clarify: ask for the one missing thing, or use the reply to what was asked.

Reads the turn, its intent, the pending clarification with its reply, and the suggestions on offer.
Writes the completed intent, the next clarification, or the end of the turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, cast

from nodes.contracts import (
    Answer,
    Caller,
    ChatMessage,
    Clarification,
    CompanyDirectory,
    FactStore,
    Intent,
    NewId,
    Option,
    Outcome,
    ReadIntent,
    Slot,
    Suggestions,
    Turn,
)
from nodes.digest import decision_digest
from nodes.naming import period_label
from nodes.notices import PROMPTS, UNKNOWN_COMPANY, closed, ended, how_to_reply, notice, said
from nodes.reading.intent import answers_itself
from nodes.reading.kinds import grown_over
from nodes.reading.references import needs_reference
from nodes.reading.replies import command, match_option, ordinal

PAGE_SIZE = 5
MAX_ASKED = 3  # the question itself and two re-asks


class ClarifyReads(TypedDict, total=False):
    turn: Turn
    intent: Intent
    clarification: Clarification | None
    suggestions: Suggestions | None
    outcome: Outcome


class ClarifyWrites(TypedDict, total=False):
    turn: Turn
    intent: Intent | None
    clarification: Clarification | None
    suggestions: Suggestions | None
    answer: Answer
    outcome: Outcome
    messages: list[ChatMessage]


@dataclass(frozen=True)
class Clarifier:
    """The step with what it needs for the process's life. One instance serves all threads."""

    directory: CompanyDirectory
    facts: FactStore
    read_intent: ReadIntent
    new_id: NewId

    def __call__(self, state: ClarifyReads, *, caller: Caller) -> ClarifyWrites:
        pending = state.get("clarification")
        if pending is None or pending["reply"] is None:
            return self._ask(state, state["intent"], caller)
        acted = command(pending["reply"])
        if acted in ("cancel", "discard"):
            return self._close(state, "cancelled")
        if acted in ("next", "previous"):
            return self._show(state, turn_page(pending, 1 if acted == "next" else -1))
        if acted == "retry":
            return self._show(state, {**pending, "reply": None})
        return self._use(state, pending, pending["reply"], caller)

    def _use(self, state: ClarifyReads, pending: Clarification, reply: str, caller: Caller) -> ClarifyWrites:
        turn = state["turn"]
        read = self.read_intent(reply, turn["received_at"])
        if read["kind"] == "refused":
            return {"intent": read, "clarification": None, "suggestions": None}
        if pending["slot"] == "reference":
            return self._use_for_reference(state, pending, reply, read, caller)
        picked = self._picked(pending, reply, read)
        if picked is None:
            return self._ask_again(state, pending)
        return self._go_on(state, fill(state["intent"], picked), caller)

    def _use_for_reference(
        self, state: ClarifyReads, pending: Clarification, reply: str, read: Intent, caller: Caller
    ) -> ClarifyWrites:
        """A picked suggestion or a typed question becomes the question; bare slots complete the old one."""
        options = (state.get("suggestions") or {"options": []})["options"]
        option = option_picked(reply, options)
        if option is not None and not option["value"]:  # "something else": the same question, openly
            nothing: Suggestions = {"options": [], "degraded": False}
            return {**self._show(state, {**pending, "reply": None}), "suggestions": nothing}
        # A whole question is itself, also where a suggestion happens to quote it.
        if answers_itself(read) and ordinal(reply) is None and (option is None or option["value"] != reply):
            return self._restate(state, reply, "typed")
        if option is not None:
            return self._restate(state, option["value"], "confirmed")
        slots = slots_of(read)
        if slots and read["kind"] in ("fact", "comparison", "narrative") and "reference" not in read["needs"]:
            intent: Intent = {**state["intent"], "needs": list(_FACT_SLOTS)}
            return self._go_on(state, fill(intent, slots), caller)
        return self._ask_again(state, pending)

    def _restate(self, state: ClarifyReads, question: str, reason: str) -> ClarifyWrites:
        """The question goes through safety, intent, permission and retrieval like any typed one."""
        turn = cast(Turn, {**state["turn"], "standalone_question": question, "standalone_reason": reason})
        return {"turn": turn, "intent": None, "clarification": None, "suggestions": None}

    def _picked(self, pending: Clarification, reply: str, read: Intent) -> dict[Slot, list[str]] | None:
        """What the reply says about the slot that was asked, and about others it names on the way."""
        slots = slots_of(read)
        option = option_picked(reply, pending["options"])
        if option is not None:
            slots[pending["slot"]] = [option["value"]]
        return slots if pending["slot"] in slots else None

    def _go_on(self, state: ClarifyReads, intent: Intent, caller: Caller) -> ClarifyWrites:
        if intent["needs"]:
            return self._ask(state, intent, caller)
        return {"intent": intent, "clarification": None, "suggestions": None}

    def _ask(self, state: ClarifyReads, intent: Intent, caller: Caller) -> ClarifyWrites:
        slot = intent["needs"][0]
        options = self._options(slot, intent, caller)
        asked: Clarification = {
            "slot": slot,
            "mention": _mention(state["turn"], intent) if slot == "reference" else None,
            "options": options,
            "page": 1,
            "pages": max(1, -(-len(options) // PAGE_SIZE)),
            "asked": 1,
            "prompt": _prompt(slot, intent),
            "reply": None,
            "decision_digest": decision_digest(intent, asked=(slot, options)),
        }
        return {**self._show(state, asked, intent), "intent": intent, "suggestions": None}

    def _ask_again(self, state: ClarifyReads, pending: Clarification) -> ClarifyWrites:
        if pending["asked"] >= MAX_ASKED:
            return self._close(state, "given_up")
        return self._show(state, {**pending, "asked": pending["asked"] + 1, "reply": None})

    def _show(self, state: ClarifyReads, asked: Clarification, intent: Intent | None = None) -> ClarifyWrites:
        text = question_text(asked, intent or state["intent"])
        return {
            "clarification": asked,
            "outcome": ended(state["outcome"], "needs_input"),
            "messages": said(text, self.new_id()),
        }

    def _close(self, state: ClarifyReads, reason: str) -> ClarifyWrites:
        language = state["intent"]["language"]
        text = notice("given_up" if reason == "given_up" else "cancelled", language)
        return {
            "answer": closed("cancelled", text, state["intent"]),
            "clarification": None,
            "suggestions": None,
            "outcome": ended(state["outcome"], "completed"),
            "messages": said(text, self.new_id()),
        }

    def _options(self, slot: Slot, intent: Intent, caller: Caller) -> list[Option]:
        in_chinese = intent["language"] == "zh"
        if slot == "company":
            return self._companies(intent)
        if slot == "metric":
            return [
                {"value": metric.metric_id, "label": metric.name if in_chinese else metric.english_name}
                for metric in self.directory.metrics()
            ]
        if slot == "period":
            return [
                {"value": period, "label": period_label(period, intent["language"])}
                for period in self._periods(intent, caller)
            ]
        return []

    def _companies(self, intent: Intent) -> list[Option]:
        candidates = intent["ambiguous"][0] if intent["ambiguous"] else None
        return [
            {
                "value": company.company_id,
                "label": _company_label(company.name, company.english_names, intent),
            }
            for company in self.directory.companies()
            if candidates is None or company.company_id in candidates
        ]

    def _periods(self, intent: Intent, caller: Caller) -> list[str]:
        """Periods that the caller may see for what was asked: years, halves, quarters, newest first."""
        metrics = intent["metrics"] or [metric.metric_id for metric in self.directory.metrics()]
        found = {
            period
            for company in intent["companies"]
            for metric in metrics
            for period in self.facts.periods(company=company, metric=metric, caller=caller)
        }
        return sorted(sorted(found, reverse=True), key=_length_rank)


_FACT_SLOTS: tuple[Slot, ...] = ("company", "period", "metric")


def _prompt(slot: Slot, intent: Intent) -> str:
    unknown = intent.get("unknown")
    if slot == "company" and unknown and intent["ambiguous"]:
        return UNKNOWN_COMPANY[intent["language"]].format(unknown[0])
    return PROMPTS[slot][intent["language"]]


def _mention(turn: Turn, intent: Intent) -> str | None:
    """The words that lean on something unsaid, as the user wrote them."""
    found = needs_reference(
        turn["standalone_question"],
        companies_found=bool(intent["companies"] or intent["ambiguous"]),
        periods_found=bool(intent["periods"]),
        metrics_found=bool(intent["metrics"]),
    )
    return found.mention if found else None


def _length_rank(period: str) -> str:
    return period[4:5]  # "" of a year sorts before H and Q


def turn_page(pending: Clarification, by: int) -> Clarification:
    """The next or previous page; the first and the last page stay where they are."""
    page = min(max(1, pending["page"] + by), pending["pages"])
    return {**pending, "page": page, "reply": None}


def option_picked(reply: str, options: Sequence[Option]) -> Option | None:
    """By number over the whole list, whatever page is shown, else by name."""
    number = ordinal(reply)
    if number is not None:
        return options[number - 1] if 1 <= number <= len(options) else None
    return match_option(reply, options)


def slots_of(read: Intent) -> dict[Slot, list[str]]:
    named: dict[Slot, list[str]] = {
        "company": read["companies"],
        "period": read["periods"],
        "metric": read["metrics"],
    }
    return {slot: values for slot, values in named.items() if values}


def fill(intent: Intent, slots: dict[Slot, list[str]]) -> Intent:
    """The intent with these slots filled where they are still needed, and what it needs after that."""
    filled: Intent = {**intent, "sub_questions": [sub.copy() for sub in intent["sub_questions"]]}
    used = {slot: values for slot, values in slots.items() if slot in intent["needs"]}
    for slot, values in used.items():
        _put(filled, slot, values)
    waiting = [slot for slot in intent["needs"] if not _is_filled(filled, slot)]
    return {**filled, "needs": waiting}


def _put(intent: Intent, slot: Slot, values: list[str]) -> None:
    if slot == "company":
        intent["companies"] = list(dict.fromkeys([*intent["companies"], *values]))
        intent["ambiguous"] = intent["ambiguous"][1:]
        intent.pop("unknown", None)
        for sub in intent["sub_questions"]:
            sub["companies"] = sub["companies"] or values
    elif slot == "period":
        growth = intent.get("grows")
        values = list(grown_over(values[0], growth)) if growth and len(values) == 1 else values
        intent["periods"] = values
        for sub in intent["sub_questions"]:
            sub["periods"] = sub["periods"] or values
    elif slot == "metric":
        intent["metrics"] = values
        for sub in intent["sub_questions"]:
            sub["metrics"] = sub["metrics"] or values


def _is_filled(intent: Intent, slot: Slot) -> bool:
    if slot == "company":
        return bool(intent["companies"]) and not intent["ambiguous"]
    if slot == "period":
        return bool(intent["periods"])
    return slot == "metric" and bool(intent["metrics"])


def question_text(asked: Clarification, intent: Intent) -> str:
    """The question with the options of its page, numbered over the whole list."""
    first = (asked["page"] - 1) * PAGE_SIZE
    shown = asked["options"][first : first + PAGE_SIZE]
    lines = [f"{first + offset + 1}. {option['label']}" for offset, option in enumerate(shown)]
    if not lines:
        return asked["prompt"]
    return "\n".join([asked["prompt"], *lines, how_to_reply(asked["pages"], intent["language"])])


def _company_label(name: str, english_names: Sequence[str], intent: Intent) -> str:
    if intent["language"] == "en" and english_names:
        return f"{english_names[0]} ({name})"
    return name
