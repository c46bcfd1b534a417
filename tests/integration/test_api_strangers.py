"""What others cannot reach: every operation of the OpenAPI document, with somebody else's names and ids.

The table below must name every operation, so a new route cannot be forgotten.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from uuid import uuid4

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from door import Door, endings, events_of, open_door
from sqlalchemy import text

from api.identity import thread_of
from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.store import ConversationStore, open_store
from checkpoint.layout import context_key
from graph.compose import open_assistant
from graph.settings import load_settings
from nodes.contracts import Caller

SECRET = "a secret of at least 32 characters"
QUESTION = "创业补贴有多少？"
NAME = "alices-thread"


def token(tenant: str, user: str, key: Any = SECRET, algorithm: str = "HS256", **claims: Any) -> str:
    made = {"tenant": tenant, "sub": user, "exp": time.time() + 10**6, **claims}
    return jwt.encode(made, key, algorithm, headers={"kid": claims.pop("kid", "k")})


ALICE = token("acme", "alice")
STRANGERS = {
    "another user": token("acme", "bob"),
    "another tenant": token("other", "alice"),
    "letters moved": token("acm", "ealice"),
    "in the same groups": token("acme", "bob", groups=["hr"]),
}

# (method, path) -> (status, body). Ids in braces are alice's or, beside them, unknown ones.
Row = tuple[int, Any]
HIDDEN: dict[tuple[str, str], Row] = {
    ("get", "/api/chat/{request_id}/events"): (404, None),
    ("get", "/api/threads/{thread_id}/requests"): (404, None),
    ("get", "/api/threads/{thread_id}/window"): (404, None),
    ("get", "/api/threads/{thread_id}/checkpoints"): (404, None),
    ("post", "/api/threads/{thread_id}/fork"): (404, {"checkpoint_id": "{checkpoint_id}"}),
    ("delete", "/api/threads/{thread_id}"): (404, None),
    ("get", "/conversations/{conversation_id}"): (404, None),
    ("delete", "/conversations/{conversation_id}"): (404, None),
    ("patch", "/conversations/{conversation_id}/title"): (404, {"title": "mine"}),
    ("post", "/conversations/{conversation_id}/archive"): (404, None),
    ("post", "/conversations/{conversation_id}/restore"): (404, None),
    ("get", "/conversations/{conversation_id}/export"): (404, None),
    ("get", "/conversations/{conversation_id}/messages"): (404, None),
    ("post", "/conversations/{conversation_id}/messages"): (404, {"question": "/retry"}),
    ("put", "/conversations/{conversation_id}/messages/{message_id}/feedback"): (404, {"rating": "up"}),
    ("post", "/api/chat/stop"): (404, {"thread_id": "{thread_id}"}),
    # These make or touch only what is the caller's own, whatever it is called.
    ("post", "/conversations"): (201, {"externalId": "{thread_id}"}),
    ("post", "/api/chat"): (200, {"thread_id": "{thread_id}", "message": "/retry"}),
    ("get", "/conversations"): (200, None),
}
# Nothing of anybody's is behind these, but a caller there must be.
OF_NOBODY = {
    ("post", "/v1/ask"): {"question": QUESTION},
    ("post", "/v1/ask/stream"): {"question": QUESTION},
    ("post", "/v1/context/turns"): {},
    ("post", "/v1/context/turns/stream"): {},
}
PUBLIC = {("get", "/health/live"), ("get", "/health/ready"), ("get", "/version"), ("get", "/metrics")}


@dataclass
class House:
    """A signed-in door with something of alice's behind it."""

    door: Door
    store: ConversationStore
    redis: Any
    ids: dict[str, str]

    def call(self, operation: tuple[str, str], body: Any, ids: dict[str, str], who: str | None) -> Any:
        method, path = operation
        content = fill(json.dumps(body), ids) if body is not None else None
        headers = {"Authorization": f"Bearer {who}"} if who else {}
        if content:
            headers["Content-Type"] = "application/json"
        return self.door.http.request(method, fill(path, ids), content=content, headers=headers)

    def of_alice(self) -> Any:
        """All that is stored of hers, in Redis and in SQL."""
        key = context_key("business-assistant:context:v1:", thread_of(Caller("acme", "alice"), NAME))
        with self.store.database.read("test") as connection:
            rows = [
                connection.execute(
                    text(f"SELECT * FROM {table} WHERE {column} = :id"),  # noqa: S608 - both are ours
                    {"id": self.ids["conversation_id"].replace("-", "")},
                ).all()
                for table, column in (("conversation", "id"), ("message", "conversation_id"))
            ]
        assert all(rows)
        return self.redis.hgetall(key), rows


def fill(template: str, ids: dict[str, str]) -> str:
    return re.sub(r"\{(\w+_id)\}", lambda match: ids[match[1]], template)


def unknown(ids: dict[str, str]) -> dict[str, str]:
    return {**{name: str(uuid4()) for name in ids}, "thread_id": f"unknown-{uuid4()}"}


def likeness(response: httpx.Response, ids: dict[str, str]) -> Any:
    """A response without what must differ between two requests: ids, times and the names that were sent."""
    seen = response.text
    for value in ids.values():
        seen = seen.replace(value, "…")
    seen = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "…", seen)
    seen = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+\+08:00", "…", seen)
    names = set(response.headers.keys()) - {"content-length"}
    return response.status_code, seen, names


@pytest.fixture
def house(
    home: Any, redis_url: str, redis_client: Any, new_database: Callable[..., StoreConfig]
) -> Iterator[House]:
    env = {"BUSINESS_ASSISTANT_HOME": str(home), "REDIS_URL": redis_url, "JWT_SECRET": SECRET}
    with (
        open_assistant(load_settings(env)) as assistant,
        open_store(new_database("sqlite")) as store,
        open_door(assistant, store=store) as door,
    ):
        ids = begin(door)
        yield House(door, store, redis_client, ids)


def begin(door: Door) -> dict[str, str]:
    headers = {"Authorization": f"Bearer {ALICE}"}
    asked = door.http.post("/api/chat", json={"thread_id": NAME, "message": QUESTION}, headers=headers)
    done = events_of(asked.text)[-1][1]
    steps = door.http.get(f"/api/threads/{NAME}/checkpoints", headers=headers).json()["items"]
    return {
        "thread_id": NAME,
        "request_id": done["request_id"],
        "conversation_id": done["conversation_id"],
        "message_id": done["assistant_message_id"],
        "checkpoint_id": steps[0]["checkpoint_id"],
    }


def operations(door: Door) -> set[tuple[str, str]]:
    paths = door.http.get("/openapi.json").json()["paths"]
    return {(method, path) for path, item in paths.items() for method in item}


def test_the_table_names_every_operation(house: House) -> None:
    assert operations(house.door) == {*HIDDEN, *OF_NOBODY, *PUBLIC}


def test_the_document_says_which_routes_have_a_caller(house: House) -> None:
    paths = house.door.http.get("/openapi.json").json()["paths"]
    for method, path in operations(house.door):
        operation = paths[path][method]
        assert ("security" in operation) == ((method, path) not in PUBLIC), (method, path)
        assert ("401" in operation["responses"]) == ((method, path) not in PUBLIC), (method, path)


def test_her_own_names_and_ids_work_for_herself(house: House) -> None:
    """So that a 404 below is about who asks, not about a mistake in the table."""
    last = [("delete", "/api/threads/{thread_id}"), ("delete", "/conversations/{conversation_id}")]
    taken = ("post", "/conversations")
    for operation, (_, body) in HIDDEN.items():
        if operation not in (*last, taken):
            response = house.call(operation, body, house.ids, ALICE)
            assert response.status_code in (200, 201), (operation, response.text)
    assert house.call(taken, HIDDEN[taken][1], house.ids, ALICE).status_code == 409
    assert house.call(last[1], None, house.ids, ALICE).status_code == 200


@pytest.mark.parametrize("stranger", STRANGERS)
def test_strangers_see_what_they_would_see_if_it_were_not_there(house: House, stranger: str) -> None:
    before = house.of_alice()
    for operation, (status, body) in HIDDEN.items():
        nothing = unknown(house.ids)
        hers = house.call(operation, body, house.ids, STRANGERS[stranger])
        none = house.call(operation, body, nothing, STRANGERS[stranger])
        assert hers.status_code == status, (operation, hers.text)
        if operation != ("get", "/conversations"):  # where the two calls before have made conversations
            assert likeness(hers, house.ids) == likeness(none, nothing), operation
        assert "8000元" not in hers.text  # an id may hold the digits
    assert house.of_alice() == before


@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_name_with_which_to_look_opens_nothing(house: House, stranger: str) -> None:
    headers = {"Authorization": f"Bearer {STRANGERS[stranger]}"}
    for name in (NAME, thread_of(Caller("acme", "alice"), NAME)):
        address = f"/api/chat/{house.ids['request_id']}/events"
        found = house.door.http.get(address, params={"thread_id": name}, headers=headers)
        assert found.status_code == 404
        assert house.door.http.get(f"/api/threads/{name}/requests", headers=headers).status_code == 404


def test_a_list_shows_ones_own_only(house: House) -> None:
    bob = {"Authorization": f"Bearer {STRANGERS['another user']}"}
    assert house.door.http.get("/conversations", headers=bob).json()["items"] == []


def test_a_stop_of_the_same_name_stops_nothing_of_hers(house: House) -> None:
    bob = {"Authorization": f"Bearer {STRANGERS['another user']}"}
    hers = thread_of(Caller("acme", "alice"), NAME)
    with house.door.app.state.keeper.hold(hers, "r1") as lease:
        answer = house.door.http.post("/api/chat/stop", json={"thread_id": NAME}, headers=bob)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert house.redis.exists(lease.keys.stop) == 0


def test_two_callers_may_use_one_name_and_one_message_id(house: House) -> None:
    told = []
    for who in (ALICE, *STRANGERS.values()):
        body = {"thread_id": "same", "message": QUESTION, "client_message_id": "m1"}
        response = house.door.http.post("/api/chat", json=body, headers={"Authorization": f"Bearer {who}"})
        events = events_of(response.text)
        assert endings(events) == ["done"]
        assert events[0][1]["thread_id"] == events[-1][1]["thread_id"] == "same"
        told.append(events[-1][1]["request_id"])
    assert len(set(told)) == len(STRANGERS)  # bob is there twice


@pytest.mark.parametrize(
    ("header", "error"),
    [
        (None, None),
        ("Bearer", "invalid_token"),
        ("Bearer abc", "invalid_token"),
        (f"Basic {ALICE}", "invalid_request"),
        (ALICE, "invalid_request"),
        (f"Bearer {ALICE}x", "invalid_token"),
        (f"Bearer {ALICE}, Bearer {ALICE}", "invalid_token"),
        ("Bearer " + "x" * 20_000, "invalid_token"),
        ("Bearer " + token("acme", "alice", exp=1), "invalid_token"),
    ],
)
def test_without_a_token_that_is_believed_nothing_happens(
    house: House, header: str | None, error: str | None
) -> None:
    before = set(house.redis.keys("*"))
    bodies = {**{operation: body for operation, (_, body) in HIDDEN.items()}, **OF_NOBODY}
    for operation, body in bodies.items():
        method, path = operation
        headers = {"Authorization": header} if header is not None else {}
        request = house.door.http.build_request(method, fill(path, house.ids), headers=headers)
        if body is not None:
            content = fill(json.dumps(body), house.ids)
            headers["Content-Type"] = "application/json"
            request = house.door.http.build_request(
                method, fill(path, house.ids), headers=headers, content=content
            )
        response = house.door.http.send(request)
        assert (response.status_code, response.json()["code"]) == (401, "unauthorized"), operation
        challenge = 'Bearer realm="business-assistant"' + (f', error="{error}"' if error else "")
        assert response.headers["www-authenticate"] == challenge
        assert response.headers["content-type"] == "application/problem+json"
        assert ALICE not in response.text
    assert set(house.redis.keys("*")) == before


def test_two_authorization_headers_are_one_too_many(house: House) -> None:
    twice = [("Authorization", f"Bearer {STRANGERS['another user']}"), ("Authorization", f"Bearer {ALICE}")]
    assert house.door.http.get("/conversations", headers=twice).status_code == 401


def test_health_and_version_need_no_token(house: House) -> None:
    for _, path in PUBLIC:
        assert house.door.http.get(path).status_code == 200, path


def test_a_missing_scope_is_a_403_that_names_it(home: Any, redis_url: str) -> None:
    env = {"BUSINESS_ASSISTANT_HOME": str(home), "REDIS_URL": redis_url}
    settings = load_settings({**env, "JWT_SECRET": SECRET, "JWT_SCOPE": "assistant.ask"})
    with open_assistant(settings) as assistant, open_door(assistant) as door:
        for scope, status in (("", 403), ("assistant", 403), ("openid assistant.ask", 404)):
            headers = {"Authorization": f"Bearer {token('acme', 'alice', scope=scope)}"}
            answer = door.http.post("/api/chat/stop", json={"thread_id": "t"}, headers=headers)
            assert answer.status_code == status
            if status == 403:
                assert answer.json()["code"] == "insufficient_scope"
                assert 'scope="assistant.ask"' in answer.headers["www-authenticate"]


class KeyServer:
    """An issuer's key set on a real port of this machine."""

    def __init__(self) -> None:
        self.document: bytes | None = b'{"keys": []}'
        self.asked = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                if outer.document is None:
                    self.send_response(302)
                    self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                    self.end_headers()
                    return
                self.send_response(200)
                self.end_headers()
                self.wfile.write(outer.document)

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/keys"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def publish(self, **keys: Any) -> None:
        to_jwk = jwt.get_algorithm_by_name("RS256").to_jwk
        jwks = [{**to_jwk(key.public_key(), as_dict=True), "kid": kid} for kid, key in keys.items()]  # type: ignore[call-overload]
        self.document = json.dumps({"keys": jwks}).encode()


@pytest.fixture
def issuer() -> Iterator[KeyServer]:
    server = KeyServer()
    yield server
    server.server.shutdown()
    server.server.server_close()


def test_published_keys_sign_callers_in_and_a_redirect_is_not_followed(
    home: Any, redis_url: str, issuer: KeyServer
) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    env = {"BUSINESS_ASSISTANT_HOME": str(home), "REDIS_URL": redis_url}
    settings = load_settings({**env, "JWT_JWKS_URL": issuer.url, "JWT_AUDIENCE": "us"})
    signed = token("acme", "alice", key, "RS256", aud="us")
    headers = {"Authorization": f"Bearer {signed}"}

    def status(**more: Any) -> int:
        body = {"thread_id": "t"}
        with open_assistant(settings) as assistant, open_door(assistant) as door:
            answers = [
                door.http.post("/api/chat/stop", json=body, headers={**headers, **more}) for _ in range(3)
            ]
        (found,) = {answer.status_code for answer in answers}
        return found

    issuer.publish(k=key)
    assert status() == 404  # she is believed, and has no thread yet
    assert issuer.asked == 1
    assert status(Authorization="Bearer " + token("acme", "alice", key, "RS256", aud="other")) == 401
    issuer.publish(other=key)
    assert status() == 401
    issuer.document = None
    assert status() == 503
