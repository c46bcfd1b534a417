"""The request log in the thread's hash: written in place, swept, and read with nothing but a Redis client."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
import redis
from langgraph.checkpoint.conformance.test_utils import (
    generate_checkpoint,
    generate_config,
    generate_metadata,
)

from checkpoint import CannotRestoreError, RedisContextSaver
from checkpoint.layout import context_key, request_field, sibling_key
from checkpoint.requests import sweep

NOW = datetime(2026, 1, 31, 0, 5, 9, 123000, UTC)


def make_record(request_id: str = "r1", thread: str = "t", **changes: Any) -> dict[str, Any]:
    return {
        "schema_version": 1, "request_id": request_id, "thread_id": thread, "question": "营收?",
        "original_question": None, "input_kind": "unknown", "received_at": "2026-01-01T00:00:00.000+08:00",
        "started_at": "2026-01-01T00:00:00.001+08:00", "finished_at": None, "duration_ms": None,
        "status": "running", "degraded": False, "error_code": None,
    } | changes  # fmt: skip


async def test_a_record_is_updated_in_place(any_saver: Any, redis_client: redis.Redis) -> None:
    await any_saver.aput_request(make_record())
    await any_saver.aput_request(make_record(status="completed", duration_ms=7))
    (record,) = await any_saver.alist_requests("t")
    assert (record["status"], record["duration_ms"]) == ("completed", 7)
    assert await any_saver.alist_requests("other") == []


async def test_anyone_reads_the_records(any_saver: Any, redis_client: redis.Redis) -> None:
    await any_saver.aput_request(make_record("example-request", "example-window"))
    key = context_key(any_saver.config.key_prefix, "example-window")
    value = redis_client.hget(key, '["request","v1","example-request"]')
    assert value is not None
    assert json.loads(value) == make_record("example-request", "example-window")


async def test_records_and_checkpoints_do_not_meet(any_saver: Any) -> None:
    await any_saver.aput_request(make_record())
    assert await any_saver.aget_tuple(generate_config("t")) is None
    assert [f async for f in any_saver.alist(None)] == []
    await any_saver.aput(
        generate_config("t"),
        generate_checkpoint(channel_values={"history": [1]}, channel_versions={"history": 1}),
        generate_metadata(run_id="x"),
        {"history": 1},
    )
    for erase in (any_saver.aprune(["t"], strategy="delete"), any_saver.adelete_for_runs(["x"])):
        await erase
        assert len(await any_saver.alist_requests("t")) == 1
    await any_saver.acopy_thread("t", "copy")
    assert await any_saver.alist_requests("copy") == []
    await any_saver.adelete_thread("t")
    assert await any_saver.alist_requests("t") == []


async def test_records_stay_plain_with_encryption(make_any_saver: Any, redis_client: redis.Redis) -> None:
    saver = make_any_saver(aes_key=b"k" * 32)
    await saver.aput_request(make_record())
    (value,) = [v for k, v in redis_client.hgetall(redis_client.keys()[0]).items() if k.startswith(b"[")]
    assert json.loads(value)["question"] == "营收?"


def test_scanning_gives_every_record(saver: RedisContextSaver) -> None:
    for thread in range(30):
        for number in range(20):
            saver.put_request(make_record(f"{thread}-{number}", f"t{thread}"))
        saver.put(generate_config(f"t{thread}"), generate_checkpoint(), generate_metadata(), {})
    assert {record["request_id"] for record in saver.scan_requests()} == {
        f"{thread}-{number}" for thread in range(30) for number in range(20)
    }
    assert [record["request_id"] for record in saver.list_requests("t3")] == sorted(
        f"3-{n}" for n in range(20)
    )


def test_scanning_gives_all_that_can_be_read_and_then_tells_of_the_rest(
    saver: RedisContextSaver, redis_client: redis.Redis
) -> None:
    for thread in ("a", "b", "c"):
        saver.put_request(make_record("r" + thread, thread))
        redis_client.hset(context_key(saver.config.key_prefix, thread), request_field("odd"), b"{")
    records = saver.scan_requests()
    assert {next(records)["request_id"] for _ in range(3)} == {"ra", "rb", "rc"}
    with pytest.raises(CannotRestoreError, match="odd"):
        next(records)


def test_the_sweeper_mends_what_nobody_holds(saver: RedisContextSaver, redis_client: redis.Redis) -> None:
    saver.put_request(make_record("gone", "gone", original_question="q"))
    saver.put_request(make_record("held", "held"))
    saver.put_request(make_record("done", "gone", status="completed"))
    lease = sibling_key("lease", context_key(saver.config.key_prefix, "held"))
    redis_client.set(lease, "token", px=60_000)
    key = context_key(saver.config.key_prefix, "gone")
    redis_client.expire(key, 100)
    assert sweep(saver, now=lambda: NOW) == 1
    assert redis_client.ttl(key) > 100  # a repair is a write
    records = {record["request_id"]: record for record in saver.scan_requests()}
    assert records["gone"] == make_record("gone", "gone", original_question="q") | {
        "status": "incomplete", "finished_at": "2026-01-31T08:05:09.123+08:00", "duration_ms": None,
        "degraded": True,
    }  # fmt: skip
    assert records["held"]["status"] == "running"
    assert records["done"]["status"] == "completed"
    redis_client.delete(lease)
    assert sweep(saver, now=lambda: NOW) == 1
    assert sweep(saver, now=lambda: NOW) == 0


def test_reading_never_mends(saver: RedisContextSaver) -> None:
    saver.put_request(make_record())
    assert saver.list_requests("t")[0]["status"] == "running"
    assert next(iter(saver.scan_requests()))["status"] == "running"
    assert saver.list_requests("t")[0]["status"] == "running"


def test_the_sweeper_never_overwrites_a_final_record(saver: RedisContextSaver) -> None:
    """The record is finished between the sweeper's look and its hand."""
    saver.put_request(make_record())
    (found,) = saver.scan_request_fields()
    saver.put_request(make_record(status="completed"))
    assert saver.repair(*found, NOW) is False
    assert saver.list_requests("t")[0]["status"] == "completed"


def test_the_sweeper_brings_no_deleted_thread_back(
    saver: RedisContextSaver, redis_client: redis.Redis
) -> None:
    saver.put_request(make_record())
    (found,) = saver.scan_request_fields()
    saver.delete_thread("t")
    assert saver.repair(*found, NOW) is False
    assert redis_client.keys() == []


def test_as_the_reader_is_shown(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from checkpoint import load_context_config

    monkeypatch.setenv("REDIS_URL", redis_url)
    saver = RedisContextSaver(load_context_config())
    saver.put_request(make_record("example-request", "example-window"))
    records = saver.list_requests("example-window")
    saver.close()
    assert [record["request_id"] for record in records] == ["example-request"]


async def test_windows_are_read_alone(any_saver: Any) -> None:
    assert await any_saver.arestore_window("t") is None
    first: Any = None
    for number in (1, 2):
        config = generate_config("t", checkpoint_id=first and "1")
        first = await any_saver.aput(
            config,
            generate_checkpoint(
                checkpoint_id=str(number),
                channel_values={"history": {"turns": [number]}, "history2": 0, "big": "x" * 50_000},
                channel_versions={"history": number, "history2": 1, "big": 1},
            ),
            generate_metadata(),
            {"history": number, "history2": 1, "big": 1},
        )
    assert await any_saver.arestore_window("t") == {"turns": [2]}
    assert await any_saver.arestore_window("t", "1") == {"turns": [1]}
    assert await any_saver.arestore_window("t", "absent") is None
    await any_saver.aput(generate_config("u"), generate_checkpoint(), generate_metadata(), {})
    assert await any_saver.arestore_window("u") is None
