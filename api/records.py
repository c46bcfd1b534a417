"""The request log's record: what is written when a request starts and when it ends. Pure.

Exactly 13 keys, always all of them. Times are the clock's own strings; a duration counts whole
milliseconds of a monotonic clock from the worker's start to the graph's end.
"""

from dataclasses import dataclass
from typing import Any

from graph.run import TurnResult

Record = dict[str, Any]

# A stop, a crash of the stream or a fault leaves less than was asked for.
_CUT_SHORT = ("stopped", "incomplete")


@dataclass(frozen=True)
class Started:
    """What is known when the worker begins."""

    request_id: str
    thread_id: str
    question: str
    received_at: str
    started_at: str


def running(started: Started) -> Record:
    return _record(started, input_kind="unknown", status="running")


def ended(started: Started, result: TurnResult, *, finished_at: str, seconds: float) -> Record:
    return _record(
        started,
        input_kind=result.input_kind,
        status=result.status,
        original_question=result.original_question,
        finished_at=finished_at,
        duration_ms=round(seconds * 1000),
        degraded=result.degraded or result.status in _CUT_SHORT,
        error_code=result.error_code if result.status == "failed" else None,
    )


def _record(
    started: Started,
    *,
    input_kind: str,
    status: str,
    original_question: str | None = None,
    finished_at: str | None = None,
    duration_ms: int | None = None,
    degraded: bool = False,
    error_code: str | None = None,
) -> Record:
    return {
        "schema_version": 1,
        "request_id": started.request_id,
        "thread_id": started.thread_id,
        "question": started.question,
        "original_question": original_question,
        "input_kind": input_kind,
        "received_at": started.received_at,
        "started_at": started.started_at,
        "finished_at": finished_at,
        "duration_ms": duration_ms,
        "status": status,
        "degraded": degraded,
        "error_code": error_code,
    }
