"""Request records into SQL: complete, once, resumable, and beside live traffic."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from relay import Proxy
from sqlalchemy import text

from checkpoint import ContextConfig, RedisContextSaver
from checkpoint.archive import archive_requests, questions_per_day, write_records
from checkpoint.conversations.store import ConversationStore
from checkpoint.errors import CheckpointUnavailable
from checkpoint.layout import context_key, request_field


def now() -> datetime:
    return datetime(2026, 9, 14, 9, tzinfo=UTC)


def record(number: int, thread: str = "t", **changed: Any) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "request_id": f"r{number}",
        "thread_id": thread,
        "question": f"第{number}问",
        "original_question": f"第{number}问",
        "input_kind": "new_question",
        "received_at": "2026-09-14T17:00:00.000+08:00",
        "started_at": "2026-09-14T17:00:00.010+08:00",
        "finished_at": "2026-09-14T17:00:05.010+08:00",
        "duration_ms": 5000,
        "status": "completed",
        "degraded": False,
        "error_code": None,
    } | changed


RUNNING = {"status": "running", "finished_at": None, "duration_ms": None, "input_kind": "unknown"}


def archived(store: ConversationStore) -> list[dict[str, Any]]:
    with store.database.read("test") as connection:
        rows = connection.execute(text("SELECT * FROM request_archive ORDER BY received_at, request_id"))
        return [dict(row) for row in rows.mappings()]


def run(saver: RedisContextSaver, store: ConversationStore, **more: Any):
    return archive_requests(saver, store.database, now=now, **more)


def test_every_record_arrives_to_the_letter(saver: RedisContextSaver, store: ConversationStore) -> None:
    sent = [
        record(1),
        record(2, "另一个 {thread}", question="表情😀\u2028行", original_question=None),
        record(3, status="failed", error_code="processing_failed", degraded=True),
    ]
    for each in sent:
        saver.put_request(each)
    done = run(saver, store)
    assert (done.read, done.written, done.threads) == (3, 3, 2)
    rows = archived(store)
    assert [{key: row[key] for key in sent[0]} | {"degraded": bool(row["degraded"])} for row in rows] == sent


def test_twice_and_after_an_interruption_nothing_is_doubled_or_lost(
    saver: RedisContextSaver, store: ConversationStore
) -> None:
    for number in range(30):
        saver.put_request(record(number, f"t{number % 3}"))

    class BreakError(Exception):
        pass

    def interrupt(done: int, total: int, name: str) -> None:
        if done == 2:
            raise BreakError

    with pytest.raises(BreakError):
        run(saver, store, progress=interrupt, batch=4)
    before = len(archived(store))
    assert 0 < before < 30
    resumed = run(saver, store, batch=4)
    assert (resumed.read, resumed.written) == (30, 30 - before)
    assert run(saver, store).written == 0
    assert len(archived(store)) == 30


def test_progress_is_told_by_thread(saver: RedisContextSaver, store: ConversationStore) -> None:
    for number in range(3):
        saver.put_request(record(number, f"t{number}"))
    told: list[tuple[int, int, str]] = []
    run(saver, store, progress=lambda *step: told.append(step))
    assert told == [(1, 3, "archiving"), (2, 3, "archiving"), (3, 3, "archiving")]


def test_a_record_seen_running_is_read_again_until_it_ends(
    saver: RedisContextSaver, store: ConversationStore
) -> None:
    saver.put_request(record(1, **RUNNING))
    assert run(saver, store).running == 1
    assert run(saver, store).running == 1
    saver.put_request(record(1))
    assert run(saver, store).running == 0
    assert archived(store)[0]["status"] == "completed"


def test_a_record_that_ends_during_the_run_is_caught_by_it(
    saver: RedisContextSaver, store: ConversationStore
) -> None:
    saver.put_request(record(1, **RUNNING))
    run(saver, store, progress=lambda *_step: saver.put_request(record(1)), batch=1)
    assert archived(store)[0]["status"] == "completed"


def test_a_running_record_that_expired_is_said_to_be_gone_and_is_no_success(
    saver: RedisContextSaver, store: ConversationStore
) -> None:
    saver.put_request(record(1, **RUNNING))
    run(saver, store)
    saver.delete_thread("t")
    done = run(saver, store)
    assert (done.gone, done.running) == (1, 0)
    row = archived(store)[0]
    assert (row["status"], row["finished_at"]) == ("running", None)
    assert row["gone_at"] is not None
    assert run(saver, store).gone == 0


def test_an_older_reading_never_undoes_a_newer_one(store: ConversationStore) -> None:
    swept = record(1, status="incomplete", duration_ms=None, finished_at="2026-09-14T17:00:01.000+08:00")
    for reading in (record(1, **RUNNING), swept, record(1, **RUNNING)):
        write_records(store.database, [reading], now())
    assert archived(store)[0]["status"] == "incomplete"
    for reading in (record(1), swept, record(1, **RUNNING)):
        write_records(store.database, [reading], now())
    assert archived(store)[0]["status"] == "completed"


def test_what_cannot_be_read_is_counted_and_passed_over(
    saver: RedisContextSaver, store: ConversationStore
) -> None:
    saver.put_request(record(1))
    key = context_key(saver.config.key_prefix, "t")
    for number, value in enumerate((b"no json", b"[]", b"{}", json.dumps(record(2, status="?")).encode())):
        saver.wire.client.hset(key, request_field(f"bad{number}"), value)
    done = run(saver, store)
    assert (done.read, done.unreadable) == (1, 4)


def test_only_records_are_read(saver: RedisContextSaver, store: ConversationStore) -> None:
    saver.put_request(record(1))
    saver.wire.client.set("business-assistant:lease:v1:{x}", "token")
    saver.wire.client.hset("someone:else", request_field("r9"), json.dumps(record(9)))
    saver.wire.client.hset(context_key(saver.config.key_prefix, "t"), "cc4:x", b"\x00")
    assert (run(saver, store).read, len(archived(store))) == (1, 1)


def test_without_redis_the_run_says_so_and_keeps_what_it_has(
    store: ConversationStore, redis_url: str, proxy: Proxy
) -> None:
    with RedisContextSaver(ContextConfig(url=proxy.url, timeout_seconds=2)) as saver:
        saver.put_request(record(1))
        run(saver, store)
        proxy.hold.set()
        with pytest.raises(CheckpointUnavailable):
            run(saver, store)
        proxy.hold.clear()
        assert run(saver, store).read == 1
    assert len(archived(store)) == 1


def test_new_questions_are_counted_by_shanghai_day(store: ConversationStore) -> None:
    days = [
        ("2026-09-14T23:59:59.999+08:00", "new_question"),
        ("2026-09-15T00:00:00.000+08:00", "new_question"),
        ("2026-09-15T00:00:00.001+08:00", "new_question"),
        ("2026-09-15T10:00:00.000+08:00", "clarification_reply"),
        ("2026-09-15T10:00:00.000+08:00", "retry"),
        ("2026-09-16T10:00:00.000+08:00", "unknown"),
    ]
    records = [record(number, received_at=at, input_kind=kind) for number, (at, kind) in enumerate(days)]
    write_records(store.database, records, now())
    counted = [(day.day, day.questions) for day in questions_per_day(store.database)]
    assert counted == [("2026-09-14", 1), ("2026-09-15", 2)]
    assert [d.day for d in questions_per_day(store.database, since="2026-09-15")] == ["2026-09-15"]
    assert [d.day for d in questions_per_day(store.database, until="2026-09-14")] == ["2026-09-14"]


def test_counting_needs_no_table_scan(store: ConversationStore) -> None:
    if not store.database.is_sqlite:
        return  # PostgreSQL chooses by size; the same index is there
    statement = (
        "EXPLAIN QUERY PLAN SELECT received_on, count(*) FROM request_archive "
        "WHERE input_kind = 'new_question' GROUP BY received_on ORDER BY received_on"
    )
    with store.database.read("test") as connection:
        plan = str(connection.execute(text(statement)).all())
    assert "COVERING INDEX request_archive_days" in plan
    assert "B-TREE" not in plan
