"""The request record: exactly 13 keys, and how a result becomes one."""

import pytest

from api import records
from graph.run import TurnResult

KEYS = {
    "schema_version", "request_id", "thread_id", "question", "original_question", "input_kind", "received_at",
    "started_at", "finished_at", "duration_ms", "status", "degraded", "error_code",
}  # fmt: skip
STARTED = records.Started(
    "r1", "t1", "第二个", "2026-01-31T08:05:09.123+08:00", "2026-01-31T08:05:09.130+08:00"
)
END = "2026-01-31T08:05:10.000+08:00"


def test_a_running_record_knows_only_its_start() -> None:
    record = records.running(STARTED)
    assert record.keys() == KEYS
    assert record["status"] == "running"
    assert record["input_kind"] == "unknown"
    assert record["degraded"] is False
    assert {name for name, value in record.items() if value is None} == {
        "original_question", "finished_at", "duration_ms", "error_code",
    }  # fmt: skip


def test_an_ended_record_keeps_the_raw_input_and_the_first_question() -> None:
    result = TurnResult("completed", "clarification_reply", original_question="云帆的营收")
    record = records.ended(STARTED, result, finished_at=END, seconds=0.8704)
    assert record.keys() == KEYS
    assert (record["question"], record["original_question"]) == ("第二个", "云帆的营收")
    assert (record["finished_at"], record["duration_ms"]) == (END, 870)


@pytest.mark.parametrize(
    ("result", "degraded", "error_code"),
    [
        (TurnResult("completed", "new_question"), False, None),
        (TurnResult("completed", "new_question", degraded=True), True, None),
        (TurnResult("needs_input", "new_question"), False, None),
        (
            TurnResult("failed", "unknown", error_code="processing_failed", degraded=True),
            True,
            "processing_failed",
        ),
        (
            TurnResult("failed", "unfinished_turn_input", error_code="unfinished_turn"),
            False,
            "unfinished_turn",
        ),
        (TurnResult("stopped", "new_question"), True, None),
        (TurnResult("incomplete", "unknown"), True, None),
        (TurnResult("stopped", "unknown", error_code="processing_failed"), True, None),
    ],
)
def test_status_degraded_and_error_code(result: TurnResult, degraded: bool, error_code: str | None) -> None:
    record = records.ended(STARTED, result, finished_at=END, seconds=0)
    assert (record["status"], record["degraded"], record["error_code"]) == (
        result.status,
        degraded,
        error_code,
    )
