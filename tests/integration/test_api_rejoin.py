"""A stream followed again after a lost connection: at any event, in any process, by its owner."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from door import Door, Script, endings, open_door, read_rest, read_until, stand_in

from checkpoint import RedisContextSaver
from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.store import open_store
from nodes.retrieve.sample import SAMPLE_SET

NARRATIVE = "创业补贴有多少？"
Numbered = tuple[int, str, str]


@pytest.fixture
def real_doors(assistant: Any, new_database: Callable[..., StoreConfig]) -> Iterator[tuple[Door, Door, Any]]:
    """Two processes' worth of doors on one Redis and one database."""
    with (
        open_store(new_database("sqlite")) as store,
        open_door(assistant, store=store) as one,
        open_door(assistant, store=store) as other,
    ):
        yield one, other, assistant


def blocks(text: str) -> list[Numbered]:
    """(id, name, data) of each event; comments are left out."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if lines:
            found.append((int(lines["id"]), lines["event"], lines["data"]))
    return found


def rejoin(door: Door, request_id: str, after: int | None = None, **query: Any) -> Any:
    headers = {} if after is None else {"Last-Event-ID": str(after)}
    return door.http.get(f"/api/chat/{request_id}/events", headers=headers, params=query)


def test_at_every_event_the_rest_is_the_same(door: Door) -> None:
    whole = door.post("好")
    events = blocks(whole.text)
    for after in range(len(events)):
        again = rejoin(door, whole.headers["x-request-id"], after)
        assert blocks(again.text) == events[after:]
        assert again.headers["x-request-id"] == whole.headers["x-request-id"]
    assert blocks(rejoin(door, whole.headers["x-request-id"]).text) == events


def test_after_the_last_event_there_is_nothing_to_follow(door: Door) -> None:
    whole = door.post("好")
    done = rejoin(door, whole.headers["x-request-id"], len(blocks(whole.text)))
    assert (done.status_code, done.content) == (204, b"")


def test_while_it_runs(door: Door, script: Script) -> None:
    connection = door.send_raw("hold")
    head = read_until(connection, "event: token")
    connection.close()
    request_id = head.split('"request_id":"')[1].split('"')[0]
    script.go.set()
    events = blocks(rejoin(door, request_id, 2).text)
    assert [number for number, _, _ in events] == list(range(3, 3 + len(events)))
    assert [name for _, name, _ in events][-1] == "done"
    assert len(script.runs) == 1


def test_a_reader_who_came_back_is_no_reason_to_give_up(door: Door, script: Script) -> None:
    connection = door.send_raw("hold")
    head = read_until(connection, "event: token")
    request_id = head.split('"request_id":"')[1].split('"')[0]
    (run,) = door.desk._runs.active()
    run.abandoned = 0.0
    with door.http.stream("GET", f"/api/chat/{request_id}/events") as response:
        lines = response.iter_lines()
        next(lines)
        assert run.abandoned is None
        script.go.set()
        assert "event: done" in list(lines)
    read_rest(connection)


@pytest.mark.parametrize("after", [0, 3, 2**31])
def test_at_another_process_a_gap_is_said_and_the_outcome_follows(
    real_doors: tuple[Door, Door, Any], after: int
) -> None:
    one, other, _ = real_doors
    whole = one.post(NARRATIVE)
    events = blocks(whole.text)
    again = blocks(rejoin(other, whole.headers["x-request-id"], after).text)
    assert [(number - after, name) for number, name, _ in again] == [
        (1, "reset"), (2, "citations"), (3, "done"),
    ]  # fmt: skip
    assert again[0][2] == '{"reason":"gap"}'
    import json

    assert json.loads(again[-1][2]) == json.loads(events[-1][2])


def test_an_id_from_the_future_is_a_gap(real_doors: tuple[Door, Door, Any]) -> None:
    one, _, _ = real_doors
    whole = one.post(NARRATIVE)
    again = blocks(rejoin(one, whole.headers["x-request-id"], 1000).text)
    assert [name for _, name, _ in again] == ["reset", "citations", "done"]


def test_an_older_request_is_told_from_the_database(real_doors: tuple[Door, Door, Any]) -> None:
    one, other, _ = real_doors
    whole = one.post(NARRATIVE)
    one.ask("谢谢")
    again = blocks(rejoin(other, whole.headers["x-request-id"], 1).text)
    assert [name for _, name, _ in again] == ["reset", "citations", "done"]


def test_what_was_withdrawn_meanwhile_is_not_told_again(real_doors: tuple[Door, Door, Any]) -> None:
    one, other, assistant = real_doors
    whole = one.post(NARRATIVE)
    passage = blocks(whole.text)[-1][2].split('"passage":"')[1][:20]
    assistant.store.remove(SAMPLE_SET)
    for door in (one, other):
        told = rejoin(door, whole.headers["x-request-id"], 0).text
        assert "event: done" in told
        assert passage not in told


def test_while_it_runs_at_another_process(saver: RedisContextSaver, script: Script, door: Door) -> None:
    connection = door.send_raw("hold")
    head = read_until(connection, "event: token")
    request_id = head.split('"request_id":"')[1].split('"')[0]
    with open_door(stand_in(saver), run_turn=script) as other:
        assert rejoin(other, request_id).status_code == 404  # no database, and no name to look under
        with other.http.stream(
            "GET", f"/api/chat/{request_id}/events", params={"thread_id": "t"}, headers={"Last-Event-ID": "2"}
        ) as again:
            lines = again.iter_lines()
            assert next(lines) == "id: 3"
            script.go.set()
            rest = "\n".join(lines)
    assert '"status":"completed"' in rest
    assert rest.count("event: done") == 1
    read_rest(connection)


def test_a_run_whose_process_died_is_an_error(saver: RedisContextSaver, door: Door) -> None:
    from api import records

    times = ("2026-01-31T08:00:00.000+08:00", "2026-01-31T08:00:00.001+08:00")
    with open_door(stand_in(saver)) as other:  # its sweep is over before the record is there
        saver.put_request(records.running(records.Started("r1", "t", "问", *times)))
        events = blocks(rejoin(other, "r1", 4, thread_id="t").text)
    assert events[0][1:] == ("reset", '{"reason":"gap"}')
    assert events[-1][1] in ("error", "done")
    assert len([name for _, name, _ in events if name in ("error", "done")]) == 1


@pytest.mark.parametrize("value", ["abc", "-1", "1.5", "٣", str(2**64), "1 2", ""])
def test_a_wrong_last_event_id_is_a_problem(door: Door, value: str) -> None:
    request_id = door.post("好").headers["x-request-id"]
    headers = {"Last-Event-ID": value.encode()}
    refused = door.http.get(f"/api/chat/{request_id}/events", headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_body")


def test_an_unknown_request_is_not_found(door: Door) -> None:
    door.ask("好")
    for query in ({}, {"thread_id": "t"}, {"thread_id": "unknown"}):
        assert rejoin(door, str(uuid.uuid4()), **query).status_code == 404


def test_a_deleted_thread_is_not_found(real_doors: tuple[Door, Door, Any]) -> None:
    one, other, _ = real_doors
    request_id = one.post(NARRATIVE).headers["x-request-id"]
    assert one.http.delete("/api/threads/t").status_code == 204
    assert rejoin(other, request_id).status_code == 404
    assert rejoin(one, request_id).status_code == 404
    assert endings(one.ask("从头来")) == ["done"]
