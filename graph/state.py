"""The channels of the turn state machine. Values are plain JSON, of one turn or of the thread."""

from typing import Annotated, Any, TypedDict

from langgraph.channels import EphemeralValue

from nodes.contracts import (
    Answer,
    ChatMessage,
    Clarification,
    Evidence,
    FactLookup,
    Intent,
    Outcome,
    Request,
    Suggestions,
    Turn,
)
from nodes.gate import pair_of_messages


class TurnInput(TypedDict, total=False):
    """What a caller may send. There is no field for history, identity or permissions."""

    request: Request
    messages: list[Any]


class TurnState(TypedDict, total=False):
    # Lives for one step, so that a request left over from a crash is never taken for a new one.
    request: Annotated[Request, EphemeralValue]
    messages: Annotated[list[ChatMessage], pair_of_messages]
    turn: Turn | None
    intent: Intent | None
    clarification: Clarification | None
    suggestions: Suggestions | None
    evidence: Evidence | None
    facts: list[FactLookup] | None
    answer: Answer | None
    outcome: Outcome | None
    history: Any  # candidates for the window; parsed where it is used, rubbish is an empty window
    turn_count: int
