"""Where a turn goes next. Pure functions of narrow views; none of them can name history.

The resume point is the first missing of intent, evidence, answer. No stage marker can get out of step.
"""

from collections.abc import Callable
from typing import Literal, TypedDict

from nodes.contracts import Answer, Clarification, Evidence, Intent, Outcome, Suggestions

Target = Literal["intent", "clarify", "suggest", "adopt", "retrieve", "answer", "__end__"]
FollowUp = Literal["confirm", "off", "auto"]

ANSWERED_AT_ONCE = ("refused", "small_talk", "out_of_scope")


class RouteReads(TypedDict, total=False):
    intent: Intent | None
    clarification: Clarification | None
    evidence: Evidence | None
    answer: Answer | None
    outcome: Outcome | None


class AfterClarifyReads(TypedDict, total=False):
    intent: Intent | None
    clarification: Clarification | None
    suggestions: Suggestions | None
    evidence: Evidence | None
    answer: Answer | None


def after_gate(state: RouteReads) -> Target:
    """A request that the gate itself ended goes nowhere; any other goes to the first step still missing."""
    outcome = state.get("outcome")
    if outcome is not None and outcome["status"] is not None:
        return "__end__"
    return first_missing(state.get("intent"), state.get("clarification"), state.get("evidence"))


def after_intent(state: RouteReads) -> Target:
    return first_missing(state.get("intent"), None, state.get("evidence"))


def make_after_clarify(follow_up: FollowUp) -> Callable[[AfterClarifyReads], Target]:
    def after_clarify(state: AfterClarifyReads) -> Target:
        if state.get("answer") is not None:
            return "__end__"
        pending = state.get("clarification")
        if pending is None:
            return first_missing(state.get("intent"), None, state.get("evidence"))
        wants_words = pending["slot"] == "reference" and state.get("suggestions") is None
        return "suggest" if wants_words and follow_up != "off" else "__end__"

    return after_clarify


class AfterSuggestReads(TypedDict, total=False):
    suggestions: Suggestions | None


def make_after_suggest(follow_up: FollowUp) -> Callable[[AfterSuggestReads], Target]:
    """The user picks; only `auto` goes on by itself, and only where there is something to go on with."""

    def after_suggest(state: AfterSuggestReads) -> Target:
        suggestions = state.get("suggestions")
        found = suggestions is not None and bool(suggestions["options"])
        return "adopt" if follow_up == "auto" and found else "__end__"

    return after_suggest


def first_missing(
    intent: Intent | None, clarification: Clarification | None, evidence: Evidence | None
) -> Target:
    if clarification is not None:
        return "clarify"
    if intent is None:
        return "intent"
    if intent["kind"] in ANSWERED_AT_ONCE:
        return "answer"
    if intent["needs"]:
        return "clarify"
    return "retrieve" if evidence is None else "answer"
