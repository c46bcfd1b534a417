"""What is not accepted: a problem that says why, and nothing stored, held or told of the text."""

import asyncio
import io
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from door import WAIT_SECONDS, Door, Script, endings, open_door, stand_in

from api.edge import Arrivals, Edge
from api.logs import log_as_json
from api.webpage import PAGE
from checkpoint import RedisContextSaver

MEMBERS = {"type", "title", "status", "detail", "instance", "code", "request_id", "retryable"}
JSON = {"content-type": "application/json"}
SECRET = "机密文本-7731"


@pytest.fixture
def door(saver: RedisContextSaver) -> Iterator[Door]:
    with open_door(stand_in(saver), run_turn=Script()) as door:
        yield door
        door.wait_idle()


def body(**changes: Any) -> bytes:
    return json.dumps({"thread_id": "t", "message": "好", **changes}).encode()


REFUSED = {
    "malformed": (b'{"thread_id": "t", "mess', 400, "malformed_json"),
    "not utf-8": (b'{"thread_id": "t", "message": "\xff\xfe"}', 400, "malformed_json"),
    "deep nesting": (b"[" * 60_000, 422, "invalid_body"),
    "not an object": (b'["t", "m"]', 422, "invalid_body"),
    "nothing": (b"", 422, "invalid_body"),
    "unknown field": (body(history=[SECRET]), 422, "invalid_body"),
    "wrong type": (body(message=17), 422, "invalid_body"),
    "null": (body(message=None), 422, "invalid_body"),
    "missing": (b'{"thread_id": "t"}', 422, "invalid_body"),
    "empty": (body(message=""), 422, "invalid_body"),
    "blank": (body(message=" \u3000\n"), 422, "invalid_text"),
    "too long": (body(message="长" * 4001), 422, "invalid_body"),
    "NUL": (body(message=f"{SECRET}\x00"), 422, "invalid_text"),
    "lone surrogate": (body(message=f"{SECRET}\ud800"), 422, "invalid_body"),
    "empty thread": (body(thread_id=""), 422, "invalid_body"),
    "long thread": (body(thread_id="t" * 513), 422, "invalid_body"),
    "thread with NUL": (body(thread_id="t\x00"), 422, "invalid_body"),
    "thread with line end": (body(thread_id="t\r\nX-Evil: 1"), 422, "invalid_body"),
    "thread with surrogate": (body(thread_id="t\udfff"), 422, "invalid_body"),
    "empty client id": (body(client_message_id=""), 422, "invalid_body"),
    "client id with surrogate": (body(client_message_id="\ud800"), 422, "invalid_body"),
    "surrogate as a field name": (b'{"thread_id": "t", "message": "m", "\\ud800": 1}', 422, "invalid_body"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_body_is_a_problem_and_leaves_no_trace(door: Door, redis_client: Any, case: str) -> None:
    content, status, code = REFUSED[case]
    response = door.http.post("/api/chat", content=content, headers=JSON)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json().keys() - {"errors"} == MEMBERS
    assert response.headers["x-request-id"] == response.json()["request_id"]
    assert SECRET not in response.text
    assert redis_client.keys("*") == []


def test_text_of_exactly_the_limit_is_accepted(door: Door) -> None:
    assert endings(door.ask("长" * 4000)) == ["done"]


@pytest.mark.parametrize("thread_id", ["{x}", "a:b", "*", "会话", "线" * 512, "a b", "?", "%2F"])
def test_any_name_of_a_thread_works_on_its_own(door: Door, thread_id: str) -> None:
    door.ask("好", thread_id)
    other = door.ask("好", "other")
    assert endings(other) == ["done"]
    from urllib.parse import quote

    address = f"/api/threads/{quote(thread_id, safe='')}"
    assert [item["thread_id"] for item in door.http.get(f"{address}/requests").json()["items"]] == [thread_id]
    assert door.http.delete(address).status_code == 204
    assert len(door.records("other")) == 1


def test_a_name_with_slashes_is_one_name(door: Door) -> None:
    door.ask("好", "a/b/requests")
    assert len(door.http.get("/api/threads/a%2Fb%2Frequests/requests").json()["items"]) == 1


def test_another_content_type_is_refused(door: Door) -> None:
    """Which also keeps out forms of other sites, the only bodies a browser sends across sites unasked."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        response = door.http.post("/api/chat", content=body(), headers={"content-type": kind})
        assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")


def test_a_large_body_is_refused_by_its_declared_size_alone(door: Door) -> None:
    with socket.create_connection(("127.0.0.1", door.port), timeout=WAIT_SECONDS) as connection:
        connection.sendall(
            b"POST /api/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100000000\r\n\r\n"
        )
        assert connection.recv(4096).startswith(b"HTTP/1.1 413")


def test_a_large_body_without_a_declared_size_is_refused_before_its_end(door: Door) -> None:
    with socket.create_connection(("127.0.0.1", door.port), timeout=WAIT_SECONDS) as connection:
        connection.sendall(
            b"POST /api/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        for _ in range(17):  # the last chunk is never sent
            connection.sendall(b"1000\r\n" + b" " * 4096 + b"\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 413")


def test_the_largest_body_is_read(door: Door) -> None:
    content = body()
    padded = content[:-1] + b" " * (64 * 1024 - len(content)) + content[-1:]
    assert len(padded) == 64 * 1024
    assert door.http.post("/api/chat", content=padded, headers=JSON).status_code == 200
    assert door.http.post("/api/chat", content=padded + b" ", headers=JSON).status_code == 413


async def test_a_body_that_does_not_come_is_given_up() -> None:
    """A sender that trickles, or sends nothing, holds a connection for a bounded time only."""
    sent: list[Any] = []

    async def never() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    async def unreachable(*_: Any) -> None:
        pytest.fail("the app was called without a body")

    edge = Edge(unreachable, clock=lambda: "now", new_id=lambda: "r1", arrivals=Arrivals(0.01))
    scope = {"type": "http", "method": "POST", "path": "/api/chat", "headers": []}
    async with asyncio.timeout(WAIT_SECONDS):  # ends the test, not the request
        await edge(scope, never, send)
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]
    assert (b"x-request-id", b"r1") in sent[0]["headers"]


async def test_nothing_is_said_after_a_response_has_begun() -> None:
    """The server ends a connection whose response breaks off; a second head would be taken for its body."""
    sent: list[str] = []

    async def send(message: Any) -> None:
        sent.append(message["type"])

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def breaking(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise LookupError

    edge = Edge(breaking, clock=lambda: "now", new_id=lambda: "r1")
    await edge({"type": "http", "method": "GET", "path": "/", "headers": []}, receive, send)
    assert sent == ["http.response.start"]


async def test_the_time_is_taken_before_the_body_is_read() -> None:
    order: list[str] = []

    def clock() -> str:
        order.append("clock")
        return "now"

    async def receive() -> Any:
        order.append("body")
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        assert scope["state"]["origin"].received_at == "now"

    edge = Edge(app, clock=clock, new_id=lambda: "r1")
    headers = [(b"content-type", b"application/json")]
    await edge({"type": "http", "path": "/", "headers": headers}, receive, app)
    assert order == ["clock", "body"]


EVIL = [
    "/%0d%0aX-Evil:%201",
    "/api/threads/t%0d%0aX-Evil:%201/requests",
    "/api/threads/%00/requests",
    "/api/threads/%ed%a0%80/window",
    "/api/threads/%ff%fe/requests",
    "/api/threads/t%0aX-Evil:%201",
    "/api/chat/%0d%0aX-Evil:%201/events",
    "/conversations/%0d%0aX-Evil:%201",
]


@pytest.mark.parametrize("path", EVIL)
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_nothing_of_a_path_becomes_a_header_or_a_fault(door: Door, method: str, path: str) -> None:
    response = door.http.request(method, path)
    assert 400 <= response.status_code < 500
    assert "x-evil" not in response.headers
    assert response.json().keys() - {"errors"} == MEMBERS
    assert response.json()["instance"].isprintable()
    assert response.json()["instance"].isascii()


@pytest.mark.parametrize(
    "line",
    [
        b"X-Request-ID: a\r\n\tX-Evil: 1",
        b"X-Request-ID: a\x0bX-Evil: 1",
        b"X-Request-ID: " + "文".encode() * 20,
        b"X-Request-ID: " + b"a" * 4000,
        b"Last-Event-ID: 1\r\n X-Evil: 1",
        b"traceparent: \xff\xfe",
        b"Idempotency-Key: a\x00b",
        b"Cookie: " + b"\xed\xa0\x80",
        b"Content-Length: 0\r\nTransfer-Encoding: chunked",
    ],
)
def test_odd_header_lines_are_refused_or_ignored(door: Door, line: bytes) -> None:
    with socket.create_connection(("127.0.0.1", door.port), timeout=WAIT_SECONDS) as connection:
        connection.sendall(b"GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n")
        connection.sendall(line + b"\r\n\r\n")
        seen = b""
        while piece := connection.recv(4096):
            seen += piece
    assert seen.startswith((b"HTTP/1.1 200", b"HTTP/1.1 400"))
    head = seen.partition(b"\r\n\r\n")[0].lower()
    assert b"x-evil" not in head
    assert head.count(b"x-request-id: ") == 1
    assert endings(door.ask("好")) == ["done"]


def test_no_forwarded_header_makes_a_caller_local(door: Door) -> None:
    """Nor does it make one foreign: who is local is decided by the connection itself."""
    for header in ("X-Forwarded-For", "Forwarded", "X-Forwarded-Host", "X-Real-IP"):
        evil = {header: "for=127.0.0.1", "host": "evil.example"}
        assert door.http.post("/api/chat", content=body(), headers={**JSON, **evil}).status_code == 403
        assert door.http.post("/api/chat", content=body(), headers={**JSON, header: "10.0.0.1"}).is_success


def test_an_upgrade_is_not_taken(door: Door) -> None:
    headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    headers["Sec-WebSocket-Key"] = "dGhlIHNhbXBsZSBub25jZQ=="
    assert door.http.get("/health/live", headers=headers).status_code in (200, 400)
    assert door.http.get("/health/live").status_code == 200


def test_an_inbound_request_id_is_not_taken_over(door: Door) -> None:
    response = door.http.get("/health/live", headers={"x-request-id": "mine"})
    assert response.headers["x-request-id"] != "mine"


def test_paths_and_methods_that_do_not_exist_are_problems(door: Door) -> None:
    for method, path, code in (("GET", "/nope", 404), ("GET", "/api/chat", 405), ("PUT", "/", 405)):
        response = door.http.request(method, path)
        assert response.status_code == code
        assert response.json().keys() == MEMBERS
    assert door.http.get("/api/threads/unknown/requests").json()["code"] == "not_found"
    assert door.http.get("/api/threads/unknown/window").json()["code"] == "not_found"
    assert door.http.delete("/api/threads/unknown").json()["code"] == "not_found"


def test_a_wrong_method_is_told_which_is_right(door: Door) -> None:
    refused = door.http.get("/api/chat")
    assert (refused.status_code, refused.json()["code"]) == (405, "method_not_allowed")
    assert refused.headers["allow"] == "POST"


def test_a_wrong_method_on_a_part_of_a_thread_is_not_taken_for_a_longer_name(door: Door) -> None:
    door.ask("好", "a/requests")
    refused = door.http.delete("/api/threads/a/requests")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET")
    assert len(door.http.get("/api/threads/a%2Frequests/requests").json()["items"]) == 1


def test_another_host_name_is_refused_on_every_route_that_has_a_caller(door: Door, redis_client: Any) -> None:
    door.ask("好")
    evil = {"host": "evil.example"}
    requests = [
        ("POST", "/api/chat", body()),
        ("POST", "/api/chat/stop", b'{"thread_id": "t"}'),
        ("GET", "/api/threads/t/requests", None),
        ("GET", "/api/threads/t/window", None),
        ("DELETE", "/api/threads/t", None),
    ]
    for method, path, content in requests:
        response = door.http.request(method, path, content=content, headers={**JSON, **evil})
        assert (response.status_code, response.json()["code"]) == (403, "forbidden"), path
    assert len(door.records()) == 1
    assert redis_client.keys("business-assistant:lease:*") == []


def test_a_fault_of_ours_says_nothing_of_itself(
    saver: RedisContextSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_thread_id: str) -> Any:
        raise LookupError(SECRET)

    with open_door(stand_in(saver), run_turn=Script()) as door:
        door.ask("好")
        with monkeypatch.context() as broken:
            broken.setattr(saver, "list_requests", fail)
            response = door.http.get("/api/threads/t/requests")
        assert (response.status_code, response.json()["code"]) == (500, "internal_error")
        assert SECRET not in response.text
        assert endings(door.ask("好")) == ["done"]


def test_nothing_of_a_request_is_logged_but_its_ids(saver: RedisContextSaver) -> None:
    logged = io.StringIO()
    log_as_json(lambda: "2026-01-31T08:00:00.000+08:00", logged)
    try:
        with open_door(stand_in(saver), run_turn=Script()) as door:
            door.ask(SECRET)
            door.ask(f"fail {SECRET}")
            door.http.post("/api/chat", content=body(message=f"{SECRET}\x00"), headers=JSON)
            door.http.get("/health/live", params={"q": SECRET})
            ids = [record["request_id"] for record in door.records()]
    finally:
        structlog.reset_defaults()
    lines = [json.loads(line) for line in logged.getvalue().splitlines()]
    assert {line["time"] for line in lines} == {"2026-01-31T08:00:00.000+08:00"}
    ended = [line["request_id"] for line in lines if line["event"] == "request_ended"]
    assert ended == ids
    assert {"request_refused", "turn_fault"} <= {line["event"] for line in lines}
    assert SECRET not in logged.getvalue()


def test_idle_connections_do_not_hold_up_a_request(door: Door) -> None:
    idle = [socket.create_connection(("127.0.0.1", door.port), timeout=WAIT_SECONDS) for _ in range(200)]
    try:
        assert endings(door.ask("好")) == ["done"]
    finally:
        for connection in idle:
            connection.close()


PAGE_FILES = sorted(file.name for file in PAGE.iterdir())


def test_the_page_and_its_files_are_served_with_a_strict_policy(door: Door) -> None:
    page = door.http.get("/")
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert " style=" not in page.text
    assert " onclick=" not in page.text
    assert "require-trusted-types-for 'script'; trusted-types 'none'" in policy
    for name in PAGE_FILES:
        answer = door.http.get(f"/page/{name}")
        assert answer.status_code == 200
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-cache"
    assert door.http.get("/page/../app.py").status_code == 404


def test_every_answer_has_the_headers_that_keep_browsers_strict(door: Door) -> None:
    answers = [
        door.http.get("/"),
        door.http.get("/version"),
        door.http.get("/nothing"),
        door.post("好"),
        door.http.post("/api/chat", content=b"x" * 70_000, headers=JSON),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 404, 200, 413]
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "server" not in answer.headers
    assert answers[-1].headers["connection"] == "close"


def test_the_page_never_parses_text_as_markup(door: Door) -> None:
    scripts = [name for name in PAGE_FILES if name.endswith(".js")]
    assert len(scripts) >= 8
    for name in scripts:
        source = door.http.get(f"/page/{name}").text
        for sink in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
            assert sink not in source, f"{sink} in {name}"


def test_health_says_which_part_is_up_and_openapi_names_every_route(door: Door) -> None:
    assert door.http.get("/health/live").json() == {"status": "ok"}
    ready = door.http.get("/health/ready").json()
    assert ready["status"] == "ok"
    assert set(ready["parts"]) == {"redis", "knowledge", "model"}
    assert door.http.get("/version").json()["name"] == "business-assistant"
    document = door.http.get("/openapi.json").json()
    assert set(document["paths"]) >= {
        "/api/chat", "/api/chat/stop", "/api/threads/{thread_id}/requests", "/api/threads/{thread_id}/window",
        "/api/threads/{thread_id}", "/health/live", "/health/ready", "/version",
    }  # fmt: skip
    chat = document["paths"]["/api/chat"]["post"]["responses"]
    assert {"200", "400", "403", "408", "409", "413", "415", "422", "429", "500", "503"} <= set(chat)
    assert "Problem" in document["components"]["schemas"]
