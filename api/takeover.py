"""What became of a request whose process died, read from its thread's state. Reads only.

The outcome in the state names the request it belongs to, so a request that is sent again is either
answered from there, or continued, or simply run: never answered twice.
"""

from collections.abc import Mapping
from typing import Any

from graph.run import TurnResult, result_of
from nodes.contracts import Outcome

State = Mapping[str, Any]


def is_half_done(state: State, request_id: str) -> bool:
    """Whether the request opened or continued a turn that still waits for its answer."""
    outcome = _outcome(state, request_id)
    return outcome is not None and outcome["status"] is None and not state.get("answer")


def finished_result(state: State, request_id: str) -> TurnResult | None:
    """The result of the request if its graph had ended, else None."""
    outcome = _outcome(state, request_id)
    if outcome is None or outcome["status"] is None:
        return None
    return result_of(dict(state), outcome, outcome["status"])


def _outcome(state: State, request_id: str) -> Outcome | None:
    outcome: Outcome | None = state.get("outcome")
    return outcome if outcome and outcome["message_id"] == request_id else None
