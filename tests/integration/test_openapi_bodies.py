"""Bad bodies, on every operation that takes one: a clear problem each, and nothing stored, held or told."""

import gzip
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from door import WAIT_SECONDS, Door
from fastapi.routing import APIRoute
from openapi_doors import real_door

from api.bodies import StrictRoute
from api.document import operations_in
from api.strict_json import MAX_DEPTH

pytestmark = pytest.mark.xdist_group("openapi")
JSON = {"Content-Type": "application/json"}
CONTRACTS = ("/v1/context/turns", "/v1/context/turns/stream")
LIMIT = 65_536
KNOWN = "unknown-to-all"  # stands for any id: a bad body is refused before anything is looked up


@pytest.fixture(scope="module")
def door(sample_home: Path, redis_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with real_door(sample_home, tmp_path_factory.mktemp("door"), redis_server) as door:
        yield door


@pytest.fixture(scope="module")
def with_body(door: Door) -> list[tuple[str, str, Any]]:
    """(method, path, a body that is fine) of every operation that takes one."""
    document = door.http.get("/openapi.json").json()
    found = []
    for (method, path), entry in operations_in(document):
        if "requestBody" in entry:
            examples = entry["requestBody"]["content"]["application/json"]["examples"]
            place = path
            for name in ("conversation_id", "message_id", "thread_id"):
                place = place.replace(f"{{{name}}}", KNOWN)
            found.append((method, place, next(iter(examples.values()))["value"]))
    return found


def raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def member(value: str) -> bytes:
    """A body with one member of this value, as JSON text."""
    return raw(f'{{"member": {value}}}')


# name -> (body, problem of most routes, problem of contracts)
BAD: dict[str, tuple[bytes, tuple[int, str], tuple[int, str]]] = {
    "malformed": (b'{"a": ', (400, "malformed_json"), (400, "malformed_json")),
    "two values": (b"{} {}", (400, "malformed_json"), (400, "malformed_json")),
    "not UTF-8": (b'{"a": "\xff"}', (400, "malformed_json"), (400, "malformed_json")),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), (400, "malformed_json"), (400, "malformed_json")),
    "half a character, raw": (b'{"a": "\xed\xa0\x80"}', (400, "malformed_json"), (400, "malformed_json")),
    "raw NUL": (b'{"a": "\x00"}', (400, "malformed_json"), (400, "malformed_json")),
    "NaN": (member("NaN"), (400, "malformed_json"), (400, "malformed_json")),
    "Infinity": (member("-Infinity"), (400, "malformed_json"), (400, "malformed_json")),
    "a number without end": (member("9" * 5000), (400, "malformed_json"), (400, "malformed_json")),
    "a list": (b"[]", (422, "invalid_body"), (422, "invalid_contract")),
    "a text": (b'"x"', (422, "invalid_body"), (422, "invalid_contract")),
    "null": (b"null", (422, "invalid_body"), (422, "invalid_contract")),
    "unknown field": (member("1"), (422, "invalid_body"), (422, "invalid_contract")),
    "unknown field of odd name": (rb'{"\ud800\u0000": 1}', (422, "invalid_body"), (422, "invalid_contract")),
    "deep": (
        member("[" * MAX_DEPTH + "]" * MAX_DEPTH),
        (422, "invalid_body"),
        (422, "invalid_contract"),
    ),
    "very deep": (
        member("[" * 30_000 + "]" * 30_000),
        (422, "invalid_body"),
        (422, "invalid_contract"),
    ),
    "deep objects": (
        raw('{"a":' * 9_000 + "1" + "}" * 9_000),
        (422, "invalid_body"),
        (422, "invalid_contract"),
    ),
}


def keys_in(redis_client: Any) -> list[bytes]:
    return list(redis_client.keys("*"))


@pytest.mark.parametrize("case", BAD)
def test_a_bad_body_is_a_problem_on_every_route(
    door: Door, with_body: list[tuple[str, str, Any]], redis_client: Any, case: str
) -> None:
    content, most, contracts = BAD[case]
    for method, path, _ in with_body:
        response = door.http.request(method, path, content=content, headers=JSON)
        expected = contracts if path in CONTRACTS else most
        assert (response.status_code, response.json()["code"]) == expected, (method, path)
        assert response.headers["content-type"] == "application/problem+json"
    assert keys_in(redis_client) == []
    assert door.http.get("/conversations").json()["items"] == []


def test_a_key_given_twice_is_named(door: Door, with_body: list[tuple[str, str, Any]]) -> None:
    """Two readers of one body must not see two meanings: not the first one and not the last."""
    for method, path, fine in with_body:
        name, value = next(iter(fine.items()))
        twice = json.dumps(fine)[:-1] + f", {json.dumps(name)}: {json.dumps(value)}}}"
        problem = door.http.request(method, path, content=twice, headers=JSON).json()
        assert problem["status"] == 422, (method, path)
        if path in CONTRACTS:
            assert [(each["path"], each["rule"]) for each in problem["errors"]] == [(name, "duplicate_key")]
        else:
            assert problem["errors"] == [{"field": name, "code": "duplicate_key"}], (method, path)


def test_every_other_type_in_every_field_is_refused(
    door: Door, with_body: list[tuple[str, str, Any]]
) -> None:
    odd = [1, 1.5, 10**400, True, [], {}, "\ud800", "x\x00y", "\ud800\udc00\ud800"]
    for method, path, fine in with_body:
        for name, value in fine.items():
            for each in odd:
                if type(each) is type(value) and isinstance(each, dict | list):
                    continue
                if isinstance(each, bool) and isinstance(value, bool):
                    continue
                sent = {**fine, name: each}
                response = door.http.request(method, path, content=json.dumps(sent), headers=JSON)
                assert response.status_code == 422, (method, path, name, each, response.text)
                assert "x\\u0000y" not in response.text


@pytest.mark.parametrize("kind", ["gzip", "deflate", "br", "identity, gzip", "GZIP"])
def test_a_compressed_body_is_not_unpacked(
    door: Door, with_body: list[tuple[str, str, Any]], kind: str
) -> None:
    for method, path, fine in with_body:
        content = gzip.compress(json.dumps(fine).encode())
        response = door.http.request(method, path, content=content, headers=JSON | {"Content-Encoding": kind})
        assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type"), path
        assert response.headers["accept-encoding"] == "identity"


def test_a_body_may_say_that_it_is_not_compressed(door: Door) -> None:
    headers = JSON | {"Content-Encoding": "identity"}
    response = door.http.post("/v1/ask", content=json.dumps({"question": "你好"}), headers=headers)
    assert response.status_code == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_another_media_type_is_refused_on_every_route(
    door: Door, with_body: list[tuple[str, str, Any]], kind: str
) -> None:
    for method, path, fine in with_body:
        headers = {"Content-Type": kind} if kind else {}
        response = door.http.request(method, path, content=json.dumps(fine).encode(), headers=headers)
        assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type"), path


def sized(fine: Any, size: int) -> bytes:
    content = json.dumps(fine).encode()
    return content[:-1] + b" " * (size - len(content)) + b"}"


def test_64_kilobytes_are_read_and_one_more_is_not(door: Door, with_body: list[tuple[str, str, Any]]) -> None:
    for method, path, fine in with_body:
        largest = door.http.request(method, path, content=sized(fine, LIMIT), headers=JSON)
        assert largest.status_code in (200, 201, 404, 409), (method, path, largest.text)
        larger = door.http.request(method, path, content=sized(fine, LIMIT + 1), headers=JSON)
        assert (larger.status_code, larger.json()["code"]) == (413, "body_too_large"), (method, path)


def test_a_body_in_chunks_is_refused_as_soon_as_it_is_too_large(
    door: Door, with_body: list[tuple[str, str, Any]]
) -> None:
    chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
    for method, path, _ in with_body:
        with socket.create_connection(("127.0.0.1", door.port), timeout=WAIT_SECONDS) as connection:
            head = f"{method.upper()} {path} HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\n"
            kind = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            connection.sendall((head + kind).encode() + chunk * 17)  # the last chunk is never sent
            assert connection.recv(4096).startswith(b"HTTP/1.1 413"), path


def test_a_body_where_none_belongs_is_bounded_too(door: Door) -> None:
    for path in ("/conversations", "/health/live", "/version"):
        response = door.http.request("GET", path, content=b" " * (LIMIT + 1), headers=JSON)
        assert response.status_code == 413


def test_a_contract_of_many_messages_is_bounded_like_every_body(door: Door) -> None:
    """The contract has no other bound on how many messages it may hold."""
    message = {"role": "user", "content": "好", "turn_id": "t", "timestamp": ""}
    state = {
        "stage": "", "body_parts": [], "symptoms": [], "aggravating_factors": [], "red_flags": [],
        "missing_slots": [], "pending_answer_for": [],
    }  # fmt: skip
    for count, status in ((600, 200), (1200, 413)):
        sent = {
            "session_id": "s", "turn_id": "t", "user_message": "我膝盖有下坠感",
            "context": {"recent_messages": [message] * count, "consultation_state": state},
            "meta": {
                "context_version": "1.0.0", "token_budget": 8000, "included_message_count": count,
                "summary_version": 0,
            },
        }  # fmt: skip
        body = json.dumps(sent, ensure_ascii=False)
        response = door.http.post(CONTRACTS[0], content=body.encode(), headers=JSON)
        assert response.status_code == status, response.text


def test_every_route_with_a_body_reads_it_strictly(door: Door, with_body: list[tuple[str, str, Any]]) -> None:
    """By its class, or, for contracts, by its own reader; so a new route cannot be forgotten."""
    waiting, routes = list(door.app.routes), []
    while waiting:
        route = waiting.pop()
        inner = getattr(route, "original_router", None) or getattr(route, "router", None)
        waiting.extend(getattr(inner, "routes", []))
        if isinstance(route, APIRoute) and route.body_field is not None:
            routes.append(route)
    assert len(routes) == len(with_body) - len(CONTRACTS)
    assert all(isinstance(route, StrictRoute) for route in routes)


@pytest.mark.parametrize("words", ["a\x00b", "\ud800"])
def test_words_deep_in_a_body_are_text_too(door: Door, words: str) -> None:
    for path in ("/v1/ask", "/v1/ask/stream"):
        sent = {"question": "你好", "history": [["user", words]]}
        response = door.http.post(path, content=json.dumps(sent), headers=JSON)
        assert (response.status_code, response.json()["code"]) == (422, "invalid_body")
        assert response.json()["errors"][0]["field"] == "history.0.1"


def test_what_is_refused_holds_no_slot_and_no_lease(door: Door) -> None:
    for content, _, _ in BAD.values():
        door.http.post("/api/chat", content=content, headers=JSON)
    door.wait_idle()
