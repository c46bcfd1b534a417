"""The durable record through the HTTP door, around the real graph: on SQLite and PostgreSQL."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from door import Door, open_door

from checkpoint.conversations.store import ConversationStore

FACT = "云帆科技2023年的营业收入是多少？"


@pytest.fixture
def door(assistant: Any, store: ConversationStore) -> Iterator[Door]:
    with open_door(assistant, store=store) as opened:
        yield opened


def create(door: Door, **body: Any) -> dict[str, Any]:
    response = door.http.post("/conversations", json=body)
    assert response.status_code == 201, response.text
    return response.json()


def send(door: Door, identity: str, question: str, **more: Any) -> dict[str, Any]:
    response = door.http.post(f"/conversations/{identity}/messages", json={"question": question, **more})
    assert response.status_code == 200, response.text
    return response.json()


def messages(door: Door, identity: str, **query: Any) -> list[dict[str, Any]]:
    response = door.http.get(f"/conversations/{identity}/messages", params=query)
    assert response.status_code == 200, response.text
    return response.json()["items"]


def test_a_question_is_answered_and_kept(door: Door) -> None:
    held = create(door)
    told = send(door, held["id"], FACT, clientMessageId="m1")
    assert told["status"] == "completed"
    assert told["originalQuestion"] == told["standaloneQuestion"] == FACT
    assert told["sources"]
    rows = messages(door, held["id"])
    assert [row["role"] for row in rows] == ["USER", "ASSISTANT"]
    assert [row["id"] for row in rows] == [told["userMessageId"], told["assistantMessageId"]]
    assert rows[1]["content"] == told["answer"]
    assert rows[1]["requestId"] == told["requestId"]
    detail = door.http.get(f"/conversations/{held['id']}").json()
    assert (detail["title"], detail["open_turn"], detail["hasContext"]) == (FACT, None, True)
