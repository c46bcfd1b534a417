"""What became of a request whose process died, read from its thread's state. Reads only.

The outcome in the state names the request it belongs to, so a request that is sent again is either
answered from there, or continued, or simply run: never answered twice.
"""

from collections.abc import Mapping
from typing import Any

from graph.run import TurnResult, clarification_shown

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
    turn = state.get("turn") if outcome["turn_id"] else None
    return TurnResult(
        outcome["status"],
        outcome["input_kind"],
        error_code=outcome["error_code"],
        degraded=outcome["degraded"],
        notice=outcome["notice"],
        **(_of_turn(state, turn, outcome["status"]) if turn else {}),
    )


def _of_turn(state: State, turn: Mapping[str, Any], status: str) -> dict[str, Any]:
    known = {name: turn[name] for name in ("turn_id", "original_question", "standalone_question")}
    answer, pending = state.get("answer"), state.get("clarification")
    if answer:
        shown = {name: answer[name] for name in ("kind", "text", "citations")}
        kept = {name: answer[name] for name in ("window", "decision_digest", "usage")}
        return {**known, "answer": shown, **kept}
    if pending and status == "needs_input":
        return {**known, "clarification": clarification_shown(pending, state.get("suggestions"))}
    return known


def _outcome(state: State, request_id: str) -> Mapping[str, Any] | None:
    outcome: Mapping[str, Any] | None = state.get("outcome")
    return outcome if outcome and outcome["message_id"] == request_id else None
