"""Somebody else's conversation is an unknown one, by every route there is and whatever it is called by."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import jwt
import pytest
import redis
from faults.parts import FACT, NARRATIVE, OTHER_NARRATIVE, Home, Model, conversation
from integration.door import Door, endings, events_of, until

from api.identity import thread_of
from nodes.contracts import Caller

SECRET = "a secret for these tests, long enough"
NAME = "quarterly plan"
ALICE, BOB = ("acme", "alice"), ("globex", "bob")
BODIES: dict[str, dict[str, Any]] = {
    "/title": {"title": "mine"},
    "/messages": {"question": FACT},
    "/feedback": {"rating": "up"},
    "/fork": {"new_thread_id": "copy"},
}


def as_caller(caller: tuple[str, str]) -> dict[str, str]:
    claims = {"tenant": caller[0], "sub": caller[1], "exp": time.time() + 10**6}
    return {"Authorization": f"Bearer {jwt.encode(claims, SECRET, 'HS256')}"}


@pytest.fixture
def signed(place: Home) -> Home:
    return Home(place.folder, place.redis_url, {"JWT_SECRET": SECRET})


@contextmanager
def alices(signed: Home, model: Model) -> Iterator[tuple[Door, dict[str, str]]]:
    """A door at which Alice has asked something, and all names that lead to it."""
    with signed.door(model) as door:
        asked = door.http.post(
            "/api/chat", json={"thread_id": NAME, "message": NARRATIVE}, headers=as_caller(ALICE)
        )
        done = events_of(asked.text)[-1][1]
        assert done["status"] == "completed"
        yield (
            door,
            {
                "conversation_id": conversation(door, NAME, headers=as_caller(ALICE)),
                "message_id": done["assistant_message_id"],
                "request_id": done["request_id"],
                "thread_id": NAME,
            },
        )


def stored(client: redis.Redis) -> dict[bytes, Any]:
    return {key: client.hgetall(key) for key in client.keys("business-assistant:context:*")}


def routes_with_names(door: Door) -> list[tuple[str, str]]:
    """Every route whose path names something, from the server's own description of itself."""
    paths = door.http.get("/openapi.json").json()["paths"]
    return [
        (method.upper(), path)
        for path, operations in paths.items()
        for method in operations
        if "{" in path and method in ("get", "post", "put", "patch", "delete")
    ]


def send(
    door: Door, method: str, path: str, names: dict[str, str], caller: tuple[str, str]
) -> httpx.Response:
    filled = path.replace(":path}", "}").format_map(names)
    body = next((body for end, body in BODIES.items() if path.endswith(end) and method != "GET"), None)
    return door.http.request(method, filled, json=body, headers=as_caller(caller))


def test_a_foreign_name_is_an_unknown_one_on_every_route(
    signed: Home, model: Model, redis_client: redis.Redis
) -> None:
    with alices(signed, model) as (door, hers):
        routes = routes_with_names(door)
        assert len(routes) >= 12
        unknown = {
            "conversation_id": "11111111-2222-3333-4444-555555555555",
            "message_id": "11111111-2222-3333-4444-666666666666",
            "request_id": "11111111-2222-3333-4444-777777777777",
            "thread_id": "never heard of",
        }
        derived = {**hers, "thread_id": thread_of(Caller(tenant=ALICE[0], user=ALICE[1]), NAME)}
        before, calls = stored(redis_client), len(model.prompts)
        for method, path in routes:
            expected = send(door, method, path, unknown, BOB)
            assert expected.status_code == 404, (method, path, expected.text)
            for names in (hers, derived):
                found = send(door, method, path, names, BOB)
                assert (found.status_code, found.json()["code"]) == (404, expected.json()["code"]), (
                    method,
                    path,
                )
                assert NARRATIVE not in found.text
        assert stored(redis_client) == before
        assert len(model.prompts) == calls
        for method, path in routes:  # and to Alice they are known
            if method == "GET":
                assert send(door, method, path, hers, ALICE).status_code == 200, path


def test_the_same_name_is_another_conversation(signed: Home, model: Model) -> None:
    with alices(signed, model) as (door, hers):
        model.prompts.clear()
        for message in (OTHER_NARRATIVE, "1", "/retry", "/discard"):
            told = door.http.post(
                "/api/chat", json={"thread_id": NAME, "message": message}, headers=as_caller(BOB)
            )
            assert endings(events_of(told.text)) == ["done"]
            assert NARRATIVE not in told.text
        assert NARRATIVE not in model.shown()
        his = conversation(door, NAME, headers=as_caller(BOB))
        assert his != hers["conversation_id"]
        mine = door.http.get("/conversations", headers=as_caller(ALICE)).json()["items"]
        assert [held["id"] for held in mine] == [hers["conversation_id"]]
        listed = door.http.get(f"/conversations/{hers['conversation_id']}/messages", headers=as_caller(ALICE))
        assert len(listed.json()["items"]) == 2


def test_the_same_message_id_is_anothers_message(signed: Home, model: Model) -> None:
    """Two tenants, one name and one client's id: two turns, neither refused nor told the other's answer."""
    with signed.door(model) as door:
        told = []
        for caller, text in ((ALICE, NARRATIVE), (BOB, OTHER_NARRATIVE)):
            body = {"thread_id": NAME, "message": text, "client_message_id": "m1"}
            told.append(
                events_of(door.http.post("/api/chat", json=body, headers=as_caller(caller)).text)[-1][1]
            )
        assert [done["original_question"] for done in told] == [NARRATIVE, OTHER_NARRATIVE]
        assert len(model.prompts) == 2


def test_nobody_stops_anothers_answer(signed: Home, model: Model) -> None:
    model.holds = True
    with signed.door(model) as door:
        body = json.dumps({"thread_id": NAME, "message": NARRATIVE})
        with door.http.stream(
            "POST",
            "/api/chat",
            content=body,
            headers={**as_caller(ALICE), "Content-Type": "application/json"},
        ) as answering:
            pieces = answering.iter_text()
            until(lambda: "event: token" in next(pieces))
            for name in (NAME, thread_of(Caller(tenant=ALICE[0], user=ALICE[1]), NAME)):
                stop = door.http.post("/api/chat/stop", json={"thread_id": name}, headers=as_caller(BOB))
                assert (stop.status_code, stop.json()["code"]) == (404, "not_found")
            model.holds = False
            model.go.set()
            assert '"status":"completed"' in "".join(pieces)


@pytest.mark.parametrize("header", [None, "Bearer x", "Basic YTpi", "Bearer " + "x" * 9000])
def test_without_a_believed_token_nothing_is_done(
    signed: Home, model: Model, redis_client: redis.Redis, header: str | None
) -> None:
    with signed.door(model) as door:
        headers = {"Authorization": header} if header else {}
        refused = door.http.post("/api/chat", json={"thread_id": NAME, "message": FACT}, headers=headers)
        assert refused.status_code == 401
        assert redis_client.keys("*") == []
