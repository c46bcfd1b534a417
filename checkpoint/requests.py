"""The request log: one plain JSON record per accepted request, in the hash of its thread."""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, Literal, TypedDict, cast

from checkpoint import scripts
from checkpoint.errors import BadRequestError, CannotRestoreError
from checkpoint.layout import REQUEST_PREFIX, escape_glob, request_field, to_bytes
from checkpoint.plan import Call, Plan, Plans, Target, check_status

RequestStatus = Literal["running", "completed", "needs_input", "failed", "stopped", "incomplete"]
STATUSES = ("running", "completed", "needs_input", "failed", "stopped", "incomplete")
INPUT_KINDS = ("new_question", "clarification_reply", "retry", "unfinished_turn_input", "unknown")
ERROR_CODES = (None, "processing_failed", "unfinished_turn")
ALWAYS_READ = frozenset({"thread_id", "request_id", "received_at", "status"})
MAY_BE_NULL = frozenset({"original_question", "finished_at", "duration_ms", "error_code"})

# Shanghai has had one offset and no summer time since 1991, so no zone data are needed.
SHANGHAI = timezone(timedelta(hours=8))


class RequestRecord(TypedDict):
    """Exactly these 13 keys, always present. Times are Shanghai's, ISO 8601 with milliseconds."""

    schema_version: Literal[1]
    request_id: str
    thread_id: str
    question: str
    original_question: str | None
    input_kind: str
    received_at: str
    started_at: str
    finished_at: str | None
    duration_ms: int | None
    status: RequestStatus
    degraded: bool
    error_code: str | None


TYPES: dict[str, type] = {
    "schema_version": int, "request_id": str, "thread_id": str, "question": str, "original_question": str,
    "input_kind": str, "received_at": str, "started_at": str, "finished_at": str, "duration_ms": int,
    "status": str, "degraded": bool, "error_code": str,
}  # fmt: skip
CHOICES: dict[str, tuple[object, ...]] = {
    "schema_version": (1,), "status": STATUSES, "input_kind": INPUT_KINDS, "error_code": ERROR_CODES,
}  # fmt: skip


def shanghai_time(moment: datetime) -> str:
    """`2026-01-31T08:05:09.123+08:00` for any aware moment."""
    return moment.astimezone(SHANGHAI).isoformat(timespec="milliseconds")


def check_record(record: Mapping[str, Any]) -> RequestRecord:
    """The record, or BadRequestError naming the first key that is wrong."""
    if record.keys() != TYPES.keys():
        odd = sorted(record.keys() ^ TYPES.keys())
        raise BadRequestError(
            f"a request record has exactly 13 keys; missing or unknown: {', '.join(map(str, odd))}"
        )
    for name, kind in TYPES.items():
        value = record[name]
        if value is None and name in MAY_BE_NULL:
            continue
        if type(value) is not kind:
            raise BadRequestError(
                f"{name} of a request record must be {kind.__name__}, not {type(value).__name__}"
            )
        if name in CHOICES and value not in CHOICES[name]:
            raise BadRequestError(f"{name} of a request record cannot be {value!r}")
    return cast(RequestRecord, dict(record))


def encode_record(record: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(check_record(record), ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as fault:
        raise BadRequestError("a request record holds a lone surrogate, which is no text") from fault


def decode_record(field: bytes, value: bytes) -> RequestRecord:
    try:
        record = json.loads(value)
    except (ValueError, RecursionError) as fault:
        raise CannotRestoreError("it is no JSON", {"request": field.decode(errors="replace")}) from fault
    if not (isinstance(record, dict) and record.keys() >= ALWAYS_READ):
        raise CannotRestoreError("it is no request record", {"request": field.decode(errors="replace")})
    return cast(RequestRecord, record)


def record_pattern() -> str:
    """For HSCAN: record fields and nothing else."""
    return escape_glob(REQUEST_PREFIX) + "*"


def in_order(records: Iterable[RequestRecord]) -> list[RequestRecord]:
    return sorted(records, key=lambda record: (record["received_at"], record["request_id"]))


def put_request(plans: Plans, record: Mapping[str, Any], lease: str | None) -> Plan[None]:
    """Write or replace a record. With a lease token, only while that token holds the thread."""
    value = encode_record(record)
    target = Target(record["thread_id"], "", None, lease or "")
    args = (request_field(record["request_id"]), value)
    call = plans.write_call("put_request", scripts.REQUEST, target, args)
    check_status((yield call), call, target.thread_id)


def repair_request(plans: Plans, field: bytes, value: bytes, now: datetime) -> Plan[bool]:
    """Turn a running record whose thread nobody holds into an incomplete one. True when it was done."""
    record = decode_record(field, value)
    if record["status"] != "running":
        return False
    mended = {
        **record,
        "status": "incomplete",
        "finished_at": shanghai_time(now),
        "duration_ms": None,
        "degraded": True,  # as api/records.py has it: there is less than was asked for
    }
    key, lease, _ = plans.keys(record["thread_id"])
    text = json.dumps(mended, ensure_ascii=False, separators=(",", ":"))
    args = (plans.ttl_seconds, field, value, to_bytes(text))
    reply = yield Call("sweep", scripts.REPAIR, (key, lease), args)
    return bool(reply[0] == b"ok")


def sweep(saver: Any, *, now: Callable[[], datetime]) -> int:
    """Mark the requests of crashed workers: every `running` record whose lease is gone becomes `incomplete`.

    Returns how many. Safe to run anywhere at any time, also twice at once: each repair is one atomic step
    that first looks whether the lease is still gone and the record still the same. A record that cannot be
    read is left as it is and keeps nothing else from being repaired.
    """
    return sum(_repaired(saver, field, value, now()) for field, value in saver.scan_request_fields())


def _repaired(saver: Any, field: bytes, value: bytes, now: datetime) -> bool:
    try:
        return bool(saver.repair(field, value, now))
    except CannotRestoreError:
        return False
