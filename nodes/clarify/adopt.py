"""Adopt: in `FOLLOW_UP=auto`, take the first suggestion as the question without asking.

This lies outside the promise: the question was shaped by history, and the turn says so (`standalone_reason`
"auto"). Safety and intent have read the original before this step is reached. Reads the turn, its intent, the
pending clarification and the suggestions. Writes the turn's question, and takes the clarification back.
"""

from typing import TypedDict

from nodes.contracts import Clarification, Intent, Outcome, Suggestions, Turn


class AdoptReads(TypedDict, total=False):
    turn: Turn
    suggestions: Suggestions
    outcome: Outcome


class AdoptWrites(TypedDict):
    turn: Turn
    intent: Intent | None
    clarification: Clarification | None
    suggestions: Suggestions | None
    outcome: Outcome


def adopt(state: AdoptReads) -> AdoptWrites:
    turn, suggestions, outcome = state["turn"], state["suggestions"], state["outcome"]
    question = suggestions["options"][0]["value"]
    return {
        "turn": {**turn, "standalone_question": question, "standalone_reason": "auto"},
        "intent": None,
        "clarification": None,
        "suggestions": None,
        "outcome": {**outcome, "status": None, "degraded": outcome["degraded"] or suggestions["degraded"]},
    }
