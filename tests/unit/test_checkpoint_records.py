"""Request records: exactly 13 keys, of the right kinds, in Shanghai's time."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from checkpoint import BadRequestError, CannotRestoreError
from checkpoint.requests import (
    check_record,
    decode_record,
    encode_record,
    in_order,
    record_pattern,
    shanghai_time,
)

RECORD: dict[str, Any] = {
    "schema_version": 1, "request_id": "r", "thread_id": "t", "question": "营收?",
    "original_question": None, "input_kind": "unknown", "received_at": "2026-01-01T00:00:00.000+08:00",
    "started_at": "2026-01-01T00:00:00.001+08:00", "finished_at": None, "duration_ms": None,
    "status": "running", "degraded": False, "error_code": None,
}  # fmt: skip


def test_a_record_comes_back_as_plain_json() -> None:
    value = encode_record(RECORD)
    assert json.loads(value) == RECORD
    assert "营收?".encode() in value
    assert decode_record(b"f", value) == RECORD
    assert len(json.loads(value)) == 13


def test_keys_are_exact() -> None:
    for name in RECORD:
        with pytest.raises(BadRequestError, match=name):
            check_record({key: value for key, value in RECORD.items() if key != name})
    with pytest.raises(BadRequestError, match="extra"):
        check_record(RECORD | {"extra": 1})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("schema_version", 2), ("schema_version", True), ("request_id", None), ("question", None),
        ("thread_id", 7),
        ("received_at", None), ("started_at", None), ("status", "done"), ("status", None), ("degraded", None),
        ("degraded", 0), ("error_code", "boom"), ("duration_ms", 1.5), ("duration_ms", True),
        ("input_kind", "question"), ("original_question", 1),
    ],
)  # fmt: skip
def test_kinds_are_exact(name: str, value: object) -> None:
    with pytest.raises(BadRequestError, match=name):
        check_record(RECORD | {name: value})


@pytest.mark.parametrize("status", ["running", "completed", "needs_input", "failed", "stopped", "incomplete"])
def test_every_status_is_accepted(status: str) -> None:
    finished = {"status": status, "finished_at": "2026-01-01T00:00:01.000+08:00", "duration_ms": 5}
    assert check_record(RECORD | finished | {"error_code": "unfinished_turn"})["status"] == status


def test_text_that_is_no_text_is_refused() -> None:
    with pytest.raises(BadRequestError, match="surrogate"):
        encode_record(RECORD | {"question": "\ud800"})


def test_a_damaged_record_is_named() -> None:
    with pytest.raises(CannotRestoreError, match="no JSON"):
        decode_record(b'["request","v1","r"]', b"{")


def test_times_are_shanghais() -> None:
    assert shanghai_time(datetime(2026, 1, 31, 0, 5, 9, 123999, UTC)) == "2026-01-31T08:05:09.123+08:00"
    assert shanghai_time(datetime(2026, 7, 1, tzinfo=UTC)) == "2026-07-01T08:00:00.000+08:00"
    elsewhere = timezone(timedelta(hours=-5))
    assert shanghai_time(datetime(2026, 1, 1, 19, tzinfo=elsewhere)) == "2026-01-02T08:00:00.000+08:00"


def test_order_is_by_arrival_then_id() -> None:
    records: Any = [
        RECORD | {"request_id": id_, "received_at": at}
        for id_, at in (("c", "2026-01-02"), ("b", "2026-01-02"), ("z", "2026-01-01"))
    ]
    assert [record["request_id"] for record in in_order(records)] == ["z", "b", "c"]


def test_the_pattern_matches_record_fields_only() -> None:
    assert record_pattern() == '\\["request","v1",*'
