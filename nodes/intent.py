"""Intent: what does the question say? Read from its text and the time it was asked, nothing else.

Reads `turn` (the question and `received_at`). Writes `intent`.
"""

from collections.abc import Callable
from typing import TypedDict

from nodes.contracts import Intent, ReadIntent, Turn


class IntentReads(TypedDict, total=False):
    turn: Turn


class IntentWrites(TypedDict):
    intent: Intent


def make_intent(*, read_intent: ReadIntent) -> Callable[[IntentReads], IntentWrites]:
    def intent(state: IntentReads) -> IntentWrites:
        turn = state["turn"]
        found = read_intent(turn["standalone_question"], turn["received_at"])
        if turn["standalone_reason"] == "independent":
            return {"intent": found}
        # The user has just said what was meant: asking again what it refers to would never end.
        return {"intent": {**found, "needs": [slot for slot in found["needs"] if slot != "reference"]}}

    return intent
