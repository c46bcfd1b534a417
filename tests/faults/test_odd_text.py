"""Text that a store, a wire or a serializer cannot take: refused or kept whole on every way in."""

import json
from pathlib import Path
from typing import Any

import pytest
from faults.parts import FACT, Home, rows
from integration.door import endings, events_of

ODD = {
    "NUL": "补贴\x00多少",
    "half a character": "补贴\ud800多少",
    "other half": "\udfff",
    "byte order mark": "\ufeff补贴多少",
    "four bytes": "𠮷野家的补贴𡨚",
    "family": "👨‍👩‍👧补贴🇨🇳e\u0301",
    "line ends": "补贴\r\n\u2028\u2029\x85多少",
    "not a character": "补贴\uffff\ufffe",
    "control": "补\x07贴\x1b[31m多\x7f少",
    "20,000 characters": "补贴" * 10_000,
}
PLACES = ("message", "session", "history", "state", "profile")
VECTOR = Path(__file__).parents[1] / "contract" / "vectors" / "valid_minimal.json"


def contract(place: str, text: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(VECTOR.read_text(encoding="utf-8"))["contract"]
    if place == "message":
        made["user_message"] = text
    elif place == "session":
        made["session_id"] = text
    elif place == "history":
        message = {"role": "user", "content": text, "turn_id": "1", "timestamp": "2026-11-30T10:00:00+08:00"}
        made["context"]["recent_messages"] = [message]
        made["meta"]["included_message_count"] = 1
    elif place == "state":
        made["context"]["consultation_state"]["symptoms"] = [text]
    else:
        made["context"]["user_profile"] = {text: text}
    return made


def sends(identity: str, message_id: str, text: str) -> list[tuple[str, str, Any]]:
    """Every field of every body that takes words."""
    here = f"/conversations/{identity}"
    asks = [{"role": "user", "content": text}, {"role": "assistant", "content": "好"}]
    return [
        ("POST", "/api/chat", {"thread_id": "t", "message": text}),
        ("POST", "/api/chat", {"thread_id": text, "message": FACT}),
        ("POST", "/api/chat", {"thread_id": "t", "message": FACT, "client_message_id": text}),
        ("POST", "/api/chat/stop", {"thread_id": text}),
        ("POST", "/api/chat", {text: text}),
        ("POST", "/conversations", {"title": text}),
        ("POST", "/conversations", {"externalId": text}),
        ("POST", f"{here}/messages", {"question": text}),
        ("POST", f"{here}/messages", {"question": FACT, "clientMessageId": text}),
        ("PATCH", f"{here}/title", {"title": text}),
        ("PUT", f"{here}/messages/{message_id}/feedback", {"rating": "up", "comment": text}),
        ("POST", "/v1/ask", {"question": text}),
        ("POST", "/v1/ask", {"question": FACT, "history": asks}),
        *[("POST", "/v1/context/turns", contract(place, text)) for place in PLACES],
    ]


def test_no_text_is_a_fault_anywhere(place: Home) -> None:
    with place.door() as door:
        done = door.ask(FACT)[-1][1]
        identity, message_id = done["conversation_id"], done["assistant_message_id"]
        for name, text in ODD.items():
            for method, path, body in sends(identity, message_id, text):
                told = door.http.request(
                    method,
                    path,
                    content=json.dumps(body).encode(),  # escaped, as JSON allows halves of characters
                    headers={"Content-Type": "application/json"},
                )
                why = (name, path, list(body), told.text[:300])
                assert told.status_code < 500, why
                if told.headers["content-type"].startswith("text/event-stream"):
                    events = events_of(told.text)
                    assert endings(events) == ["done"], why
                    assert events[-1][1]["status"] != "failed", why
                elif told.status_code >= 400:
                    assert told.json()["code"], why
        door.wait_idle()
        assert not {record["status"] for record in door.records()} & {"running", "failed"}


@pytest.mark.parametrize("name", ["NUL", "half a character", "other half", "20,000 characters"])
def test_what_is_refused_leaves_no_trace(place: Home, redis_client: Any, name: str) -> None:
    with place.door() as door:
        body = json.dumps({"thread_id": "t", "message": ODD[name]}).encode()
        told = door.http.post("/api/chat", content=body, headers={"Content-Type": "application/json"})
        assert told.status_code in (413, 422)
        assert redis_client.keys("*") == []
        assert rows(door) == []


@pytest.mark.parametrize("name", ["byte order mark", "four bytes", "family", "line ends", "control"])
def test_what_is_accepted_is_kept_to_the_letter_by_every_store(place: Home, name: str) -> None:
    with place.door() as door:
        events = door.ask(ODD[name])
        assert endings(events) == ["done"]
        (record,) = door.records()
        assert record["question"] == ODD[name]
        assert rows(door)[0]["content"] == ODD[name]
        state = door.app.state.assistant.graph.get_state({"configurable": {"thread_id": "t"}}).values
        assert state["turn"]["original_question"] == ODD[name]
        exported = door.http.get(f"/conversations/{events[-1][1]['conversation_id']}/export").json()
        assert exported["messages"][0]["content"] == ODD[name]
