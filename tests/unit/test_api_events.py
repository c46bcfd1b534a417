"""What goes over the wire, and what a feed keeps."""

import asyncio
import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.events import HEARTBEAT, EventStream, Feed, line_of

NASTY = "a\r\nb\rc\nd\u2028e\u2029f\x85g\x0bh\x0ci\x1cj\x00k data: id: 1\n\n\ud800 😀"


def parse(wire: bytes) -> list[tuple[int, str, dict[str, Any]]]:
    """An independent reader of the format: blocks by blank line, fields by line."""
    events = []
    for block in wire.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line and line[0] != ":")
        if fields:
            events.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
    return events


def wire_of(feed: Feed) -> bytes:
    return b"".join(event.wire for event in feed.after(0))


@given(st.text(st.characters(codec=None), max_size=200))
def test_any_text_arrives_exactly_and_on_one_line(text: str) -> None:
    line = line_of({"text": text})
    assert json.loads(line) == {"text": text}
    assert len(line.splitlines()) == 1
    line.encode()  # nothing in it that UTF-8 cannot carry


def test_nasty_text_survives_a_whole_event() -> None:
    feed = Feed()
    feed.say("token", {"text": NASTY})
    assert parse(wire_of(feed)) == [(1, "token", {"text": NASTY})]


def test_numbers_count_from_one_without_a_gap() -> None:
    feed = Feed()
    for name in ("created", "stage", "token", "done"):
        feed.say(name, {})
    assert [event.number for event in feed.after(0)] == [1, 2, 3, 4]
    assert [event.name for event in feed.after(2)] == ["token", "done"]


def test_nothing_follows_the_terminal_event() -> None:
    feed = Feed()
    feed.say("done", {})
    feed.say("error", {})
    feed.say("token", {"text": "late"})
    assert [event.name for event in feed.after(0)] == ["done"]


def test_a_feed_keeps_bounded_text_and_always_its_end() -> None:
    feed = Feed(max_bytes=2_000)
    for _ in range(1_000):
        feed.say("token", {"text": "字" * 30})
    feed.say("citations", {"citations": []})
    feed.say("done", {"status": "completed"})
    names = [event.name for event in feed.after(0)]
    assert len(wire_of(feed)) < 2_500
    assert names[-3:] == ["reset", "citations", "done"]
    assert names.count("reset") == 1
    assert [event.number for event in feed.after(0)] == list(range(1, len(names) + 1))


class Connection:
    """The ASGI side of one reader: what was sent, and when it leaves or stops taking."""

    def __init__(self, leaves_after: int | None = None, is_stuck: bool = False) -> None:
        self.bodies: list[bytes] = []
        self.messages: list[dict[str, Any]] = []
        self._leaves_after = leaves_after
        self._is_stuck = is_stuck
        self._gone = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.messages.append(message)
        if message["type"] == "http.response.body":
            if self._is_stuck:
                await asyncio.Event().wait()
            self.bodies.append(message["body"])
            if len(self.bodies) == self._leaves_after:
                self._gone.set()


async def test_a_stream_ends_with_its_feed() -> None:
    feed, connection = Feed(), Connection()
    stream = EventStream(feed, request_id="r1")
    task = asyncio.create_task(stream({}, connection.receive, connection.send))
    await asyncio.sleep(0)
    worker = threading.Thread(target=lambda: [feed.say(name, {}) for name in ("created", "token", "done")])
    worker.start()
    await task
    worker.join()
    assert [name for _, name, _ in parse(b"".join(connection.bodies))] == ["created", "token", "done"]
    assert connection.messages[-1]["more_body"] is False
    assert (b"x-request-id", b"r1") in connection.messages[0]["headers"]


async def test_a_silent_feed_is_kept_alive_by_comments() -> None:
    feed, connection = Feed(), Connection(leaves_after=2)
    await EventStream(feed, request_id="r", heartbeat_seconds=0.01)({}, connection.receive, connection.send)
    assert connection.bodies[:2] == [HEARTBEAT, HEARTBEAT]
    assert parse(b"".join(connection.bodies)) == []


async def test_a_reader_that_leaves_ends_its_stream_and_is_reported() -> None:
    feed, connection, left = Feed(), Connection(leaves_after=1), []
    feed.say("created", {})
    stream = EventStream(feed, request_id="r", on_abandoned=lambda: left.append(True))
    await stream({}, connection.receive, connection.send)
    assert left == [True]


async def test_a_reader_that_takes_nothing_is_let_go() -> None:
    feed, connection, left = Feed(), Connection(is_stuck=True), []
    feed.say("created", {})
    stream = EventStream(
        feed, request_id="r", send_timeout_seconds=0.01, on_abandoned=lambda: left.append(True)
    )
    async with asyncio.timeout(120):  # ends the test, not the stream
        await stream({}, connection.receive, connection.send)
    assert left == [True]


async def test_a_run_that_another_reader_still_follows_is_not_abandoned() -> None:
    feed, connection, left = Feed(), Connection(leaves_after=1), []
    feed.say("created", {})
    feed.listen(other := lambda: None)
    stream = EventStream(feed, request_id="r", on_abandoned=lambda: left.append(True))
    await stream({}, connection.receive, connection.send)
    assert left == []
    assert feed.leave(other)


async def test_two_readers_get_the_same_events_at_their_own_pace() -> None:
    feed = Feed()
    feed.say("created", {})
    feed.say("token", {"text": "一"})
    early, late = Connection(), Connection()
    first = asyncio.create_task(EventStream(feed, request_id="r")({}, early.receive, early.send))
    await asyncio.sleep(0)
    feed.say("done", {})
    await first
    await EventStream(feed, request_id="r", after=1)({}, late.receive, late.send)
    assert [name for _, name, _ in parse(b"".join(early.bodies))] == ["created", "token", "done"]
    assert [number for number, _, _ in parse(b"".join(late.bodies))] == [2, 3]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_json_is_a_fault_of_ours_not_a_broken_line(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        line_of({"value": value})
