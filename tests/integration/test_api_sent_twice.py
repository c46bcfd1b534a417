"""`Idempotency-Key`: the header means what `client_message_id` means, however a message is sent again."""

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest
from door import WAIT_SECONDS, Door, Script, endings, events_of, open_door, read_rest, read_until, stand_in
from test_api_chat import together
from test_api_limits import ALICE, BOB, OTHER_ALICE, signed_in
from test_api_lost_connections import reset

from api.message_ids import key_in
from api.problems import Refusal
from checkpoint import RedisContextSaver
from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.store import open_store

KEY = "8e03978e-40d5-43dd-bc93-6894a57f9324"
NARRATIVE = "创业补贴有多少？"


def send(door: Door, text: str = "好", thread_id: str = "t", key: Any = KEY, **more: Any) -> Any:
    body = {"thread_id": thread_id, "message": text, **more}
    keys = key if isinstance(key, list) else [key]
    return door.http.post("/api/chat", json=body, headers=[("Idempotency-Key", each) for each in keys])


def require_wrong(response: Any, code: str) -> None:
    assert (response.status_code, response.json()["code"]) == (422, "invalid_body")
    assert response.json()["errors"] == [{"field": "Idempotency-Key", "code": code}]


def test_five_at_once_are_one(door: Door, script: Script) -> None:
    told = together([lambda: send(door)] * 5)
    assert {response.status_code for response in told} == {200}
    assert len({response.text for response in told}) == 1
    assert len({response.headers["x-request-id"] for response in told}) == 1
    assert len(script.runs) == len(door.records()) == 1


def test_header_and_body_name_the_same_message(door: Door, script: Script) -> None:
    first = send(door)
    for again in (
        send(door),
        send(door, key=f'"{KEY}"'),
        send(door, client_message_id=KEY),
        door.post("好", client_message_id=KEY),
    ):
        assert again.text == first.text
    assert len(script.runs) == len(door.records()) == 1


def test_both_and_different_is_a_problem_and_leaves_nothing(
    door: Door, script: Script, redis_client: Any
) -> None:
    require_wrong(send(door, client_message_id="another"), "differs_from_client_message_id")
    require_wrong(send(door, key=[KEY, "another"]), "given_twice")
    assert script.runs == []
    assert redis_client.keys("*") == []
    assert endings(events_of(send(door, key=[KEY, KEY]).text)) == ["done"]


@pytest.mark.parametrize("key", ["", '"', '""', '"a', "k" * 201, "ключ".encode(), b"\xff", "a\tb"])
def test_what_is_no_key_is_a_problem_and_leaves_nothing(
    door: Door, script: Script, redis_client: Any, key: Any
) -> None:
    require_wrong(send(door, key=key), "malformed")
    assert script.runs == []
    assert redis_client.keys("*") == []


@pytest.mark.parametrize(
    ("written", "key"),
    [("abc", "abc"), ('"abc"', "abc"), ('"a\\"b\\\\c"', 'a"b\\c'), ('" a"', " a"), ("a b", "a b")],
)
def test_a_key_is_read_as_it_was_meant(written: str, key: str) -> None:
    assert key_in(written) == key


@pytest.mark.parametrize("written", ['"a\\b"', '"a"b"', '"a";x=1', '"' + "k" * 201 + '"'])
def test_a_badly_quoted_key_is_not_guessed_at(written: str) -> None:
    with pytest.raises(Refusal):
        key_in(written)


def test_another_message_under_the_same_key(door: Door, script: Script) -> None:
    send(door)
    reused = send(door, "别的")
    assert (reused.status_code, reused.json()["code"]) == (422, "message_id_reused")
    assert len(script.runs) == len(door.records()) == 1


def test_another_conversation_is_another_message(door: Door, script: Script) -> None:
    first, second = send(door, thread_id="one"), send(door, thread_id="two")
    assert first.headers["x-request-id"] != second.headers["x-request-id"]
    assert len(script.runs) == 2


def test_another_caller_is_another_message(saver: RedisContextSaver, script: Script) -> None:
    with signed_in(saver, script) as door:
        ids = set()
        for who in (ALICE, BOB, OTHER_ALICE, ALICE):
            headers = {"Authorization": f"Bearer {who}", "Idempotency-Key": KEY}
            body = {"thread_id": "t", "message": "好"}
            ids.add(door.http.post("/api/chat", json=body, headers=headers).headers["x-request-id"])
        assert len(ids) == len(script.runs) == 3


@pytest.mark.parametrize("mark", ["", "HTTP/1.1 200", "event: created", "event: token"])
def test_sent_again_after_the_reply_was_lost(door: Door, script: Script, mark: str) -> None:
    body = json.dumps({"thread_id": "t", "message": "hold"}).encode()
    head = (
        "POST /api/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Idempotency-Key: {KEY}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    connection = socket.create_connection(("127.0.0.1", door.port), timeout=WAIT_SECONDS)
    connection.sendall(head.encode() + body)
    if mark:
        read_until(connection, mark)
    else:
        assert script.reached.wait(WAIT_SECONDS)
    reset(connection)
    script.go.set()
    for _ in range(3):
        assert endings(events_of(send(door, "hold").text)) == ["done"]
    assert len(script.runs) == len(door.records()) == 1


def test_sent_again_at_another_process_while_it_runs(
    saver: RedisContextSaver, script: Script, door: Door
) -> None:
    connection = door.send_raw("hold", client_message_id=KEY)
    read_until(connection, "event: token")
    with open_door(stand_in(saver), run_turn=script) as other:
        told: list[Any] = []

        def again() -> None:
            told.append(send(other, "hold"))

        def release() -> None:
            script.go.set()

        together([again, release])
        assert endings(events_of(told[0].text)) == ["done"]
    read_rest(connection)
    assert len(script.runs) == 1


def test_conversations_take_the_header_too(assistant: Any, new_database: Callable[..., StoreConfig]) -> None:
    with open_store(new_database("sqlite")) as store, open_door(assistant, store=store) as door:
        made = door.http.post("/conversations", json={}).json()["id"]
        path, headers = f"/conversations/{made}/messages", {"Idempotency-Key": KEY}
        first = door.http.post(path, json={"question": NARRATIVE}, headers=headers)
        again = door.http.post(path, json={"question": NARRATIVE}, headers=headers)
        assert first.status_code == 200
        assert first.json()["assistantMessageId"] == again.json()["assistantMessageId"]
        other = door.http.post(path, json={"question": "别的"}, headers=headers)
        assert (other.status_code, other.json()["code"]) == (422, "message_id_reused")
        body = {"question": NARRATIVE, "clientMessageId": "another"}
        require_wrong(door.http.post(path, json=body, headers=headers), "differs_from_client_message_id")
        messages = door.http.get(path).json()["items"]
        assert [row["role"] for row in messages] == ["USER", "ASSISTANT"]
        assert messages[0]["clientMessageId"] == KEY
