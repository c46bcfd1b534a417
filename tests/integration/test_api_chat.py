"""POST /api/chat on a real server: its events, its records, and who may run when."""

import threading
from typing import Any

import pytest
from door import (
    Door,
    Script,
    WatchedSaver,
    endings,
    events_of,
    open_door,
    read_rest,
    read_until,
    result_for,
    stand_in,
    until,
)

from checkpoint import RedisContextSaver
from checkpoint.layout import context_key

KEYS = {
    "schema_version", "request_id", "thread_id", "question", "original_question", "input_kind", "received_at",
    "started_at", "finished_at", "duration_ms", "status", "degraded", "error_code",
}  # fmt: skip
NASTY = "甲\r\n乙\u2028丙\u2029丁\x85戊\ndata: 己\n\nevent: done\r辛 😀 \x1c"


def together(jobs: list[Any]) -> list[Any]:
    """Run the jobs at once and give their results in order."""
    results: list[Any] = [None] * len(jobs)
    start = threading.Barrier(len(jobs))

    def run(place: int) -> None:
        start.wait()
        results[place] = jobs[place]()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_a_request_is_told_from_created_to_done(door: Door) -> None:
    response = door.post("补贴多少")
    events = events_of(response.text)
    assert [name for name, _ in events] == ["created", "stage", "token", "token", "citations", "done"]
    created, done = events[0][1], events[-1][1]
    assert created == {"request_id": created["request_id"], "thread_id": "t", "turn_id": None}
    assert response.headers["x-request-id"] == created["request_id"] == done["request_id"]
    assert response.headers["content-type"].startswith("text/event-stream")
    assert (done["status"], done["degraded"], done["error_code"]) == ("completed", False, None)
    assert done["answer"]["text"] == "一：补贴多少二。"
    assert events[4][1]["citations"] == done["answer"]["citations"]


def test_the_record_is_exact_and_saved_before_done(door: Door, saver: RedisContextSaver) -> None:
    events = door.ask("补贴多少")
    (record,) = saver.list_requests("t")
    assert record.keys() == KEYS
    assert record["request_id"] == events[0][1]["request_id"]
    assert record["question"] == record["original_question"] == "补贴多少"
    assert (record["status"], record["input_kind"], record["error_code"]) == (
        "completed",
        "new_question",
        None,
    )
    assert record["received_at"] <= record["started_at"] <= record["finished_at"]
    assert all(record[name].endswith("+08:00") for name in ("received_at", "started_at", "finished_at"))
    assert type(record["duration_ms"]) is int
    assert door.records() == [record]


def test_the_record_says_running_until_the_graph_ended(door: Door, script: Script) -> None:
    connection = door.send_raw("hold")
    read_until(connection, "event: token")
    (record,) = door.records()
    assert (record["status"], record["finished_at"], record["duration_ms"]) == ("running", None, None)
    assert (record["original_question"], record["degraded"]) == (None, False)
    script.go.set()
    read_rest(connection)
    (record,) = door.records()
    assert record["status"] == "completed"


def test_records_come_oldest_first(door: Door) -> None:
    for number in range(4):
        door.ask(f"问题{number}")
    assert [record["question"] for record in door.records()] == [f"问题{number}" for number in range(4)]


def test_any_text_arrives_exactly(door: Door) -> None:
    events = door.ask(NASTY)
    assert events[2][1]["text"] == f"一：{NASTY}"
    assert door.records()[0]["question"] == NASTY
    assert endings(events) == ["done"]


def test_two_sends_at_once_are_one_200_and_one_409(door: Door, script: Script, redis_client: Any) -> None:
    def send(text: str) -> int:
        with door.http.stream("POST", "/api/chat", json={"thread_id": "t", "message": text}) as response:
            if response.status_code == 409:
                assert int(response.headers["retry-after"]) >= 1
                script.go.set()
            response.read()
            return response.status_code

    assert sorted(together([lambda: send("hold 一"), lambda: send("hold 二")])) == [200, 409]
    assert len(script.runs) == len(door.records()) == 1
    assert (
        redis_client.hlen(context_key("business-assistant:context:v1:", "t")) == 2
    )  # the record and the mark
    assert endings(door.ask("第三轮")) == ["done"]
    assert [record["status"] for record in door.records()] == ["completed", "completed"]


def test_other_threads_are_not_held_up(door: Door, script: Script) -> None:
    connection = door.send_raw("hold", "one")
    read_until(connection, "event: token")
    assert endings(door.ask("两个", "two")) == ["done"]
    script.go.set()
    read_rest(connection)


def test_a_full_pool_refuses_before_anything_is_stored(saver: RedisContextSaver, script: Script) -> None:
    with open_door(stand_in(saver, max_workers=1), run_turn=script) as door:
        connection = door.send_raw("hold", "one")
        read_until(connection, "event: token")
        refused = door.post("不行", "two")
        assert (refused.status_code, refused.json()["code"]) == (429, "pool_full")
        assert int(refused.headers["retry-after"]) >= 1
        assert saver.list_requests("two") == []
        script.go.set()
        read_rest(connection)
        # The slot is free by the time a client hears of the end.
        assert endings(door.ask("行", "two")) == ["done"]
        door.wait_idle()


def test_a_failed_turn_ends_in_one_terminal_event_without_its_cause(door: Door) -> None:
    events = door.ask("fail 机密")
    assert endings(events) == ["done"]
    done = events[-1][1]
    assert (done["status"], done["error_code"], done["degraded"]) == ("failed", "processing_failed", True)
    assert done["error"]["code"] == "processing_failed"
    assert "LookupError" not in str(events)
    (record,) = door.records()
    assert (record["status"], record["error_code"], record["degraded"]) == (
        "failed",
        "processing_failed",
        True,
    )


def test_a_graph_that_leaves_without_an_end_is_incomplete(door: Door) -> None:
    events = door.ask("vanish")
    assert endings(events) == ["done"]
    (record,) = door.records()
    assert (record["status"], record["error_code"], record["degraded"]) == ("incomplete", None, True)


def test_stop_ends_the_run_as_stopped(door: Door) -> None:
    connection = door.send_raw("hold")
    read_until(connection, "event: token")
    answer = door.http.post("/api/chat/stop", json={"thread_id": "t"})
    assert answer.json() == {"thread_id": "t", "stopping": True}
    assert '"status":"stopped"' in read_rest(connection)
    (record,) = door.records()
    assert (record["status"], record["error_code"]) == ("stopped", None)
    assert endings(door.ask("下一个")) == ["done"]


def test_stop_reaches_a_run_at_another_door(saver: RedisContextSaver, script: Script, door: Door) -> None:
    connection = door.send_raw("hold")
    read_until(connection, "event: token")
    with open_door(stand_in(saver), run_turn=script) as other:
        assert other.http.post("/api/chat/stop", json={"thread_id": "t"}).json()["stopping"] is True
        read_rest(connection)
    assert door.records()[0]["status"] == "stopped"


def test_nothing_to_stop(door: Door) -> None:
    door.ask("好")
    assert door.http.post("/api/chat/stop", json={"thread_id": "t"}).json()["stopping"] is False
    refused = door.http.post("/api/chat/stop", json={"thread_id": "none"})
    assert (refused.status_code, refused.json()["code"]) == (404, "not_found")


def test_two_doors_share_the_lease(saver: RedisContextSaver, script: Script, door: Door) -> None:
    connection = door.send_raw("hold")
    read_until(connection, "event: token")
    with open_door(stand_in(saver), run_turn=script) as other:
        assert other.post("二").status_code == 409
        script.go.set()
        read_rest(connection)
        assert endings(other.ask("三")) == ["done"]


def test_a_run_whose_lease_is_taken_over_can_store_nothing_more(
    door: Door, script: Script, redis_client: Any
) -> None:
    connection = door.send_raw("hold")
    read_until(connection, "event: token")
    (key,) = redis_client.keys("business-assistant:lease:*")
    redis_client.set(key, "somebody else")
    assert '"code":"lease_lost"' in read_rest(connection)
    assert script.runs[0]["control"].drain_reason == "lease_lost"  # it did not go on for nothing
    assert door.records()[0]["status"] == "running"  # the sweeper's to repair once the lease is gone
    assert redis_client.get(key) == b"somebody else"


def test_every_record_is_written_under_the_lease(saver: RedisContextSaver, script: Script) -> None:
    watched = WatchedSaver(saver)
    with open_door(stand_in(watched), run_turn=script) as door:
        door.ask("好")
    token = script.runs[0]["lease"]
    assert [(record["status"], lease) for record, lease in watched.puts] == [
        ("running", token),
        ("completed", token),
    ]


def test_slot_and_lease_are_free_by_the_time_the_end_is_told(door: Door, redis_client: Any) -> None:
    held: list[Any] = []
    connection = door.send_raw("hold")
    read_until(connection, "event: token")
    (run,) = door.desk._runs.active()

    def look() -> None:
        if run.feed.ended:
            held.append((door.desk.pool.busy(), redis_client.keys("business-assistant:lease:*")))

    run.feed.listen(look)
    door.http.post("/api/chat/stop", json={"thread_id": "t"})
    read_rest(connection)
    until(lambda: held)
    assert held == [(0, [])]


def test_a_store_that_fails_at_the_first_record_leaves_none(saver: RedisContextSaver, script: Script) -> None:
    watched = WatchedSaver(saver)
    watched.fail_at = "running"
    with open_door(stand_in(watched), run_turn=script) as door:
        assert door.post("好", client_message_id="m1").status_code == 503
        door.wait_idle()
        assert script.runs == []
        assert endings(door.ask("别的", client_message_id="m1")) == ["done"]


def test_a_store_that_fails_at_the_last_record_is_an_error_and_the_request_goes_on_under_its_id(
    saver: RedisContextSaver, script: Script
) -> None:
    watched = WatchedSaver(saver)
    watched.fail_at = "completed"
    with open_door(stand_in(watched), run_turn=script) as door:
        first = door.ask("好", client_message_id="m1")
        assert endings(first) == ["error"]
        assert first[-1][1]["code"] == "store_unavailable"
        assert door.records()[0]["status"] == "running"
        door.wait_idle()
        again = door.post("好", client_message_id="m1")
        assert again.headers["x-request-id"] == first[0][1]["request_id"]
        assert [record["status"] for record in door.records()] == ["completed"]


def test_deleting_a_thread_ends_its_run_and_nothing_comes_back(door: Door, redis_client: Any) -> None:
    connection = door.send_raw("hold", client_message_id="m1")
    read_until(connection, "event: token")
    assert door.http.delete("/api/threads/t").status_code == 204
    read_rest(connection)
    door.wait_idle()
    assert redis_client.keys("*") == []
    assert door.http.delete("/api/threads/t").status_code == 404
    assert endings(door.ask("从头来")) == ["done"]


class TestSentTwice:
    """`client_message_id`: one turn, one record, the same result."""

    def test_five_at_once(self, door: Door, script: Script) -> None:
        responses = together([lambda: door.post("一次", client_message_id="m1")] * 5)
        assert {response.status_code for response in responses} == {200}
        assert len({response.headers["x-request-id"] for response in responses}) == 1
        assert len({response.text for response in responses}) == 1
        assert len(script.runs) == len(door.records()) == 1

    def test_after_the_end(self, door: Door, script: Script) -> None:
        first = door.ask("一次", client_message_id="m1")
        assert door.ask("一次", client_message_id="m1") == first
        assert len(script.runs) == len(door.records()) == 1

    def test_after_the_end_at_another_door(
        self, saver: RedisContextSaver, script: Script, door: Door
    ) -> None:
        first = door.ask("一次", client_message_id="m1")
        with open_door(stand_in(saver), run_turn=script) as other:
            again = other.ask("一次", client_message_id="m1")
        assert [name for name, _ in again] == ["created", "citations", "done"]
        assert again[-1] == first[-1]
        assert len(script.runs) == 1

    def test_while_it_runs_at_another_door(
        self, saver: RedisContextSaver, script: Script, door: Door
    ) -> None:
        connection = door.send_raw("hold", client_message_id="m1")
        read_until(connection, "event: token")
        with open_door(stand_in(saver), run_turn=script) as other:
            twin = other.send_raw("hold", client_message_id="m1")
            read_until(twin, "event: created")
            script.go.set()
            assert '"status":"completed"' in read_rest(twin)
        read_rest(connection)
        assert len(script.runs) == 1

    def test_with_another_message(self, door: Door, script: Script) -> None:
        door.ask("一次", client_message_id="m1")
        refused = door.post("别的", client_message_id="m1")
        assert (refused.status_code, refused.json()["code"]) == (422, "message_id_reused")
        assert len(script.runs) == len(door.records()) == 1

    def test_in_another_thread(self, door: Door, script: Script) -> None:
        door.ask("一次", "one", client_message_id="m1")
        door.ask("一次", "two", client_message_id="m1")
        assert len(script.runs) == 2

    def test_with_a_full_pool_it_is_still_known(self, saver: RedisContextSaver, script: Script) -> None:
        with open_door(stand_in(saver, max_workers=1), run_turn=script) as door:
            first = door.ask("一次", "one", client_message_id="m1")
            connection = door.send_raw("hold", "two")
            read_until(connection, "event: token")
            assert door.ask("一次", "one", client_message_id="m1") == first
            assert door.post("新的", "one", client_message_id="m2").status_code == 429
            script.go.set()
            read_rest(connection)

    def test_an_id_of_a_refused_request_stays_free(self, door: Door, script: Script) -> None:
        connection = door.send_raw("hold")
        read_until(connection, "event: token")
        assert door.post("甲", client_message_id="m1").status_code == 409
        script.go.set()
        read_rest(connection)
        assert endings(door.ask("乙", client_message_id="m1")) == ["done"]

    def test_the_stored_result_is_no_plain_text_for_a_saver_that_encrypts(
        self, redis_url: str, redis_client: Any, script: Script
    ) -> None:
        from checkpoint import ContextConfig

        with (
            RedisContextSaver(ContextConfig(url=redis_url, aes_key=b"k" * 32)) as saver,
            open_door(stand_in(saver), run_turn=script) as door,
        ):
            first = door.ask("机密", client_message_id="m1")
            (key,) = redis_client.keys("business-assistant:once:*")
            assert "机密".encode() not in b"".join(redis_client.hvals(key))
            with open_door(stand_in(saver), run_turn=script) as other:
                assert other.ask("机密", client_message_id="m1")[-1] == first[-1]


def test_fifty_at_once_do_not_mix(saver: RedisContextSaver, script: Script) -> None:
    with open_door(stand_in(saver, max_workers=64), run_turn=script) as door:

        def send(number: int) -> list[Any]:
            return door.ask(f"标记{number}。", f"thread-{number}")

        results = together([lambda number=number: send(number) for number in range(50)])
        for number, events in enumerate(results):
            assert events[-1][1]["thread_id"] == f"thread-{number}"
            assert events[-1][1]["answer"]["text"] == f"一：标记{number}。二。"
        door.wait_idle()


def test_a_killed_workers_record_is_closed_once_its_lease_is_gone(
    saver: RedisContextSaver, script: Script, redis_client: Any
) -> None:
    from api import records

    started = records.Started(
        "r1", "t", "问", "2026-01-31T08:00:00.000+08:00", "2026-01-31T08:00:00.001+08:00"
    )
    saver.put_request(records.running(started))
    with open_door(stand_in(saver), run_turn=script) as door:
        until(lambda: door.records()[0]["status"] == "incomplete")
        (record,) = door.records()
    assert record["finished_at"].endswith("+08:00")
    assert record["duration_ms"] is None


@pytest.mark.parametrize("damage", [b"no json", b"[1]", b"{}", b'{"status": "running"}', b"[" * 100_000])
def test_a_damaged_record_keeps_no_other_from_being_closed(
    saver: RedisContextSaver, script: Script, redis_client: Any, damage: bytes
) -> None:
    from api import records

    times = ("2026-01-31T08:00:00.000+08:00", "2026-01-31T08:00:00.001+08:00")
    for number in range(4):
        saver.put_request(records.running(records.Started(f"r{number}", f"t{number}", "问", *times)))
    key = context_key("business-assistant:context:v1:", "t1")
    redis_client.hset(key, b'["request","v1","r1"]', damage)
    with open_door(stand_in(saver), run_turn=script) as door:
        for number in (0, 2, 3):
            until(lambda name=f"t{number}": door.records(name)[0]["status"] == "incomplete")
    assert redis_client.hget(key, b'["request","v1","r1"]') == damage


class TestEveryStreamEnds:
    """One terminal event, whatever of ours fails on the way to it."""

    def test_an_outcome_that_cannot_be_told(self, saver: RedisContextSaver) -> None:
        def run(*_: Any, **__: Any) -> Any:
            from dataclasses import replace

            yield replace(result_for("好"), answer={"kind": "fact", "text": "x", "figure": float("nan")})

        with open_door(stand_in(saver), run_turn=run) as door:
            events = door.ask("好")
            assert endings(events) == ["error"]
            assert events[-1][1]["code"] == "internal_error"
            door.wait_idle()
            assert endings(door.ask("好", "other")) == ["error"]

    def test_a_stored_outcome_that_cannot_be_read(
        self, saver: RedisContextSaver, script: Script, door: Door, redis_client: Any
    ) -> None:
        door.ask("好", client_message_id="m1")
        (key,) = redis_client.keys("business-assistant:once:*")
        (field,) = [name for name in redis_client.hkeys(key) if name[:1] == b"o"]
        redis_client.hset(key, field, b"msgpack\n\xc1 damaged")
        with open_door(stand_in(saver), run_turn=script) as other:
            assert endings(other.ask("好", client_message_id="m1")) == ["error"]

    @pytest.mark.parametrize("fault", [LookupError, StopIteration])
    def test_a_worker_that_fails_before_it_accepts(
        self, saver: RedisContextSaver, script: Script, fault: type[Exception]
    ) -> None:
        """StopIteration is the one error that cannot be handed from a thread to who waits for it."""
        assistant, times = stand_in(saver), ["2026-01-31T08:00:00.000+08:00"]

        def clock() -> str:
            if not times:
                raise fault("机密")
            return times.pop()

        assistant.clock = clock
        with open_door(assistant, run_turn=script) as door:
            failed = door.post("好")
            assert (failed.status_code, failed.json()["code"]) == (500, "internal_error")
            assert "机密" not in failed.text
            door.wait_idle()
            assert script.runs == []
