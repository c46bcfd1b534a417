"""A reader that goes, or stops the answer: the turn ends, is kept whole or marked, and blocks nothing."""

import socket
import struct

import pytest
from faults.parts import (
    ANSWERED,
    FACT,
    NARRATIVE,
    OTHER_NARRATIVE,
    Home,
    Model,
    context,
    forms,
    rows,
)
from integration.door import WAIT_SECONDS, endings, read_rest, read_until, until


def vanish(connection: socket.socket) -> None:
    """Without a farewell: the server's next send meets a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.parametrize("at", ["the request is sent", "event: created", "event: token", "event: citations"])
def test_an_answer_is_kept_whole_whenever_its_reader_leaves(place: Home, model: Model, at: str) -> None:
    """Before the first event, in the middle, and after the last word but before the end is told."""
    model.holds = at != "event: citations"
    with place.door(model) as door:
        connection = door.send_raw(NARRATIVE)
        if at.startswith("event"):
            read_until(connection, at)
        else:
            assert model.waiting.wait(WAIT_SECONDS)
        vanish(connection)
        model.holds = False
        model.go.set()
        until(lambda: [record["status"] for record in door.records()] == ["completed"])
        door.wait_idle()
        assert forms(door) == ANSWERED
        whole = rows(door)[1]["content"]
        assert whole.endswith("。")
        assert [message["content"] for message in context(door)][:1] == [NARRATIVE]
        assert endings(door.ask(OTHER_NARRATIVE)) == ["done"]
        assert door.ask(NARRATIVE, "another")[-1][1]["answer"]["text"] == whole


def test_with_on_disconnect_stop_what_was_shown_is_kept_as_interrupted(place: Home, model: Model) -> None:
    model.holds = True
    stopping = Home(place.folder, place.redis_url, {"ON_DISCONNECT": "stop"})
    with stopping.door(model) as door:
        connection = door.send_raw(NARRATIVE)
        read_until(connection, "event: token")
        vanish(connection)
        (run,) = door.desk._runs.active()
        until(lambda: run.control.drain_requested)
        model.holds = False
        model.go.set()
        until(lambda: [record["status"] for record in door.records()] == ["stopped"])
        door.wait_idle()
        assert forms(door) == [("USER", "COMPLETE"), ("ASSISTANT", "PARTIAL")]
        assert door.ask("/retry")[-1][1]["status"] == "completed"
        assert door.ask(FACT)[-1][1]["status"] == "completed"


def test_a_stopped_answer_is_shown_as_interrupted_and_is_no_context(place: Home, model: Model) -> None:
    model.holds = True
    with place.door(model) as door:
        connection = door.send_raw(NARRATIVE)
        read_until(connection, "event: token")
        assert door.http.post("/api/chat/stop", json={"thread_id": "t"}).json()["stopping"] is True
        model.holds = False
        model.go.set()
        assert '"status":"stopped"' in read_rest(connection)
        question, partial = rows(door)
        assert (question["content"], question["status"]) == (NARRATIVE, "COMPLETE")
        assert partial["status"] == "PARTIAL"
        assert partial["content"].strip()
        model.prompts.clear()
        assert door.ask(OTHER_NARRATIVE)[-1][1]["status"] == "completed"
        (prompt,) = model.prompts
        assert [message.role for message in prompt.messages] == ["system", "user"]
        assert NARRATIVE not in model.shown()
        assert [message["content"] for message in context(door)][:1] == [OTHER_NARRATIVE]
        assert rows(door)[:2] == [question, partial]
