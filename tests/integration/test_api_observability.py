"""What logs, metrics and spans say of a request, and that nothing of its text, token or keys is in them."""

import io
import json
import logging
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import structlog
from door import Door, Script, endings, events_of, open_door, read_rest, read_until, stand_in, until
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from span_keeper import keep_spans
from test_api_strangers import token

from api.logs import log_as_json
from api.metrics import METRICS, Metrics
from api.turnlog import TurnLog
from api.watch import Watch
from checkpoint import RedisContextSaver
from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.store import open_store
from graph.compose import open_assistant
from graph.settings import load_settings
from graph.traces import SPANS
from nodes.contracts import ProviderError, ToldSummary

NARRATIVE = "创业补贴有多少？"
MARKER = "标记文本MARKERTEXT7731"
SECRET = "marker-secret-7731-of-at-least-32-characters"
AES_KEY = "MARKERAESKEY7731"
HASH_KEY = "MARKERHASHKEY7731"
API_KEY = "sk-MARKERAPIKEY7731"


@pytest.fixture(scope="module")
def exported() -> Iterator[InMemorySpanExporter]:
    with keep_spans() as exporter:
        yield exporter


@pytest.fixture
def spans(exported: InMemorySpanExporter) -> Callable[[], list[ReadableSpan]]:
    exported.clear()
    return lambda: list(exported.get_finished_spans())


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    to = io.StringIO()
    log_as_json(lambda: "2026-01-31T08:00:00.000+08:00", to)
    yield to
    structlog.reset_defaults()


def lines(logged: io.StringIO, event: str) -> list[dict[str, Any]]:
    found = (json.loads(line) for line in logged.getvalue().splitlines())
    return [line for line in found if line["event"] == event]


def samples(door: Door) -> dict[str, float]:
    text = door.http.get("/metrics").text
    rows = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name.removeprefix("business_assistant_"): float(value) for name, value in rows}


@pytest.fixture
def full_door(
    home: Any, redis_url: str, new_database: Callable[..., StoreConfig], logged: io.StringIO
) -> Iterator[Door]:
    """Every secret set to a marker."""
    env = {
        "BUSINESS_ASSISTANT_HOME": str(home), "REDIS_URL": redis_url, "JWT_SECRET": SECRET,
        "CONTEXT_AES_KEY": AES_KEY, "LOG_HASH_KEY": HASH_KEY, "OPENAI_API_KEY": API_KEY,
    }  # fmt: skip
    with (
        open_assistant(load_settings(env)) as assistant,
        open_store(new_database("sqlite")) as store,
        open_door(assistant, store=store) as door,
    ):
        yield door


def test_no_text_token_or_key_is_anywhere(
    full_door: Door, logged: io.StringIO, spans: Callable[[], list[ReadableSpan]]
) -> None:
    bearer = token(f"t-{MARKER}", f"u-{MARKER}", SECRET)
    headers = {
        "Authorization": f"Bearer {bearer}",
        "X-Marker": MARKER.encode(),
        "traceparent": MARKER.encode(),
    }
    post = full_door.http.post
    for message in (f"{NARRATIVE}{MARKER}", MARKER, "/retry", "云帆2023年营业收入是多少？", f"x{MARKER}\x00"):
        body = {"thread_id": MARKER, "message": message, "client_message_id": MARKER}
        post("/api/chat", json=body, headers=headers)
    post(
        "/api/chat", content=f'{{"{MARKER}'.encode(), headers={**headers, "content-type": "application/json"}
    )
    post("/v1/ask", json={"question": MARKER, "history": [["user", MARKER]]}, headers=headers)
    post("/conversations", json={"title": MARKER, "externalId": f"x{MARKER}"}, headers=headers)
    post(
        "/api/chat",
        json={"thread_id": MARKER, "message": MARKER},
        headers={"Authorization": f"Bearer {MARKER}".encode()},
    )
    for path in (f"/{MARKER}", f"/api/threads/{MARKER}/requests", f"/api/threads/{MARKER}/window?q={MARKER}"):
        full_door.http.get(path, headers=headers)
    full_door.wait_idle()
    told = {
        "logs": logged.getvalue(),
        "metrics": full_door.http.get("/metrics").text,
        "spans": "".join(span.to_json() for span in spans()),
    }
    assert lines(logged, "request_ended")
    for place, text in told.items():
        assert len(text) > 500, place
        for secret in ("MARKERTEXT7731", SECRET, AES_KEY, HASH_KEY, API_KEY, bearer, bearer.split(".")[1]):
            assert secret not in text, (place, secret)


def test_each_turn_logs_what_an_operator_needs(full_door: Door, logged: io.StringIO) -> None:
    headers = {"Authorization": f"Bearer {token('acme', 'alice', SECRET)}"}
    body = {"thread_id": "t", "message": NARRATIVE}
    first = events_of(full_door.http.post("/api/chat", json=body, headers=headers).text)[-1][1]
    second = events_of(full_door.http.post("/api/chat", json=body, headers=headers).text)[-1][1]
    one, two = lines(logged, "request_ended")
    for line, done in ((one, first), (two, second)):
        for name in ("request_id", "conversation_id", "user_message_id", "assistant_message_id"):
            assert line[name] == done[name]
        assert line["question"] == line["standalone_question"]
        assert line["question"]["length"] == len(NARRATIVE)
        assert line["model"] == "extractive"
        assert line["duration_ms"] >= 0
        assert (line["summary_sequence"], line["summary_version"]) == (0, 0)
        assert line["cause"] is None
        assert line["question_sequence"] == (1 if line is one else 3)
        assert re.fullmatch(r"[\w-]+@[\w-]+#\d+-\d+", line["passages"][0])
    assert one["question"]["hash"] == two["question"]["hash"]
    assert one["window"] == {"first": 0, "last": 0, "bytes": 0}
    assert (two["window"]["first"], two["window"]["last"]) == (1, 1)


def test_a_question_without_a_conversation_logs_the_same_but_ids(
    full_door: Door, logged: io.StringIO
) -> None:
    headers = {"Authorization": f"Bearer {token('acme', 'alice', SECRET)}"}
    body = {"question": NARRATIVE, "history": [["user", MARKER], ["assistant", MARKER]]}
    asked = full_door.http.post("/v1/ask", json=body, headers=headers).json()
    full_door.http.post("/api/chat", json={"thread_id": "t", "message": NARRATIVE}, headers=headers)
    full_door.wait_idle()
    (line,), (turn,) = lines(logged, "ask_ended"), lines(logged, "request_ended")
    assert line["request_id"] == asked["request_id"]
    assert line["question"] == turn["question"]
    assert line["passages"] == turn["passages"]
    assert (line["model"], line["status"], line["degraded"]) == ("extractive", "completed", False)
    assert (line["window"]["first"], line["window"]["last"]) == (1, 1)
    assert line["duration_ms"] >= 0
    assert MARKER not in logged.getvalue()


def test_a_summary_that_was_used_is_named_by_its_version(
    full_door: Door, logged: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {"Authorization": f"Bearer {token('acme', 'alice', SECRET)}"}
    ledger = full_door.desk._ledger
    told = replace(ledger, summary_of=lambda _held, _caller: ToldSummary(MARKER, (), 3))
    monkeypatch.setattr(full_door.desk, "_ledger", told)
    full_door.http.post("/api/chat", json={"thread_id": "t", "message": NARRATIVE}, headers=headers)
    (line,) = lines(logged, "request_ended")
    assert line["summary_version"] == 3
    assert MARKER not in logged.getvalue()


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        (lambda door: door.http.post("/api/chat/stop", json={"thread_id": "t"}), "stop"),
        (lambda door: door.desk.interrupt_all(), "shutdown"),
        (lambda door: setattr(door.desk._runs.active()[0], "began", -1e9), "timeout"),
        (lambda door: setattr(door.desk._runs.active()[0], "abandoned", -1e9), "disconnect"),
    ],
)
def test_why_a_run_ended_is_logged_by_its_id(
    saver: RedisContextSaver, logged: io.StringIO, end: Callable[[Door], Any], cause: str
) -> None:
    with open_door(stand_in(saver), run_turn=Script()) as door:
        connection = door.send_raw("hold")
        read_until(connection, "event: token")
        end(door)
        read_rest(connection)
        (record,) = door.records()
    (line,) = lines(logged, "request_ended")
    assert (line["request_id"], line["status"], line["cause"]) == (record["request_id"], "stopped", cause)


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        (lambda door, redis: door.http.delete("/api/threads/t"), "deleted"),
        (lambda door, redis: [redis.set(key, "another") for key in redis.keys("*:lease:*")], "lease_lost"),
    ],
)
def test_why_a_run_was_broken_off_is_logged_by_its_id(
    saver: RedisContextSaver,
    redis_client: Any,
    logged: io.StringIO,
    end: Callable[[Door, Any], Any],
    cause: str,
) -> None:
    with open_door(stand_in(saver), run_turn=Script()) as door:
        connection = door.send_raw("hold")
        seen = read_until(connection, "event: token")
        end(door, redis_client)
        read_rest(connection)
        assert samples(door)['requests_broken_off_total{code="lease_lost"}'] == 1
    (line,) = lines(logged, "request_broken_off")
    assert line["request_id"] in seen
    assert (line["code"], line["cause"]) == ("lease_lost", cause)


def test_an_inbound_id_is_in_no_log(saver: RedisContextSaver, logged: io.StringIO) -> None:
    """It is the caller's text like any other."""
    headers = {"X-Request-ID": "INBOUND-7731"}
    with open_door(stand_in(saver), run_turn=Script()) as door:
        for message in ("好", "\x00"):
            door.http.post("/api/chat", json={"thread_id": "t", "message": message}, headers=headers)
    assert lines(logged, "request_refused")
    assert lines(logged, "request_ended")
    assert "INBOUND" not in logged.getvalue()


def test_who_leaves_before_the_body_came_is_no_fault(saver: RedisContextSaver, logged: io.StringIO) -> None:
    with open_door(stand_in(saver), run_turn=Script()) as door:
        with socket.create_connection(("127.0.0.1", door.port)) as connection:
            connection.sendall(b"POST /api/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{")
        until(lambda: lines(logged, "request_abandoned"))
        until(lambda: samples(door)["http_requests_running"] == 1)  # the question itself
    assert not lines(logged, "request_fault")


def test_a_fault_of_ours_is_logged_by_type_and_place_and_not_in_its_words(
    saver: RedisContextSaver, logged: io.StringIO, spans: Callable[[], list[ReadableSpan]]
) -> None:
    """Whoever raises it may have put the question, a token or a key into its message."""
    with open_door(stand_in(saver), run_turn=Script()) as door:

        @door.app.get("/broken")
        async def broken() -> None:
            raise LookupError(MARKER)

        assert door.http.get("/broken").json()["code"] == "internal_error"
        door.ask(f"fail {MARKER}")  # raised in a worker, with the question as its message
        door.wait_idle()
        counted = door.http.get("/metrics").text
    (fault,), (turn,) = lines(logged, "request_fault"), lines(logged, "turn_fault")
    assert (fault["error"], turn["error"]) == ("LookupError", "LookupError")
    assert fault["at"][-1].startswith("broken:")
    told = "".join(span.to_json() for span in spans())
    assert "GET /broken" in told
    for text in (logged.getvalue(), counted, told):
        assert MARKER not in text
        assert "MARKERTEXT7731" not in text


def test_what_libraries_log_is_cut_down_to_where_it_came_from(logged: io.StringIO) -> None:
    library = logging.getLogger("some.module")
    try:
        {}[MARKER]
    except KeyError:
        library.exception("failed with %s", MARKER)
    library.warning(MARKER)
    library.setLevel(logging.DEBUG)  # as some do for themselves
    library.info("not worth a line")
    library.setLevel(logging.NOTSET)
    failed, warned = lines(logged, "library_log")
    assert (failed["level"], failed["logger"], failed["error"]) == ("error", "some.module", "KeyError")
    assert (warned["level"], warned["error"]) == ("warning", None)
    assert failed["at"].startswith("test_api_observability:")
    assert MARKER not in logged.getvalue()


def test_bytes_that_are_no_http_are_logged_as_json(
    saver: RedisContextSaver, logged: io.StringIO, capfd: pytest.CaptureFixture[str]
) -> None:
    with open_door(stand_in(saver), run_turn=Script()) as door, door.send_raw("好") as connection:
        read_until(connection, "0\r\n\r\n")
        connection.sendall(f"{MARKER}\r\n\r\n".encode())
        assert b"400" in connection.recv(4096)
    assert lines(logged, "library_log")
    assert MARKER not in logged.getvalue()
    assert MARKER not in "".join(capfd.readouterr())


def test_the_hash_is_keyed() -> None:
    from api.metrics import Metrics

    one, other = (TurnLog(key, Metrics({}))._said(NARRATIVE) for key in (b"one" * 9, b"two" * 9))
    assert one is not None
    assert other is not None
    assert one["hash"] != other["hash"]
    import hashlib

    assert not hashlib.sha256(NARRATIVE.encode()).hexdigest().startswith(one["hash"])


def test_refusals_are_logged_and_counted_by_code_without_text(
    saver: RedisContextSaver, logged: io.StringIO
) -> None:
    script = Script()
    with open_door(stand_in(saver, max_workers=1), run_turn=script) as door:
        connection = door.send_raw("hold")
        read_until(connection, "event: token")
        assert door.post(MARKER, "other").status_code == 429
        assert door.post(f"{MARKER}\x00").status_code == 422
        assert door.http.post("/api/chat", content=MARKER.encode()).status_code == 415
        assert door.http.get(f"/{MARKER}").status_code == 404
        script.go.set()
        read_rest(connection)
        counted = samples(door)
    codes = ["pool_full", "invalid_text", "unsupported_media_type", "not_found"]
    assert [line["code"] for line in lines(logged, "request_refused")] == codes
    assert [counted[f'refusals_total{{code="{code}"}}'] for code in codes] == [1] * len(codes)
    assert MARKER not in logged.getvalue()
    assert counted['http_requests_total{method="POST",route="/api/chat",status="429"}'] == 1
    assert counted['http_requests_total{method="POST",route="/api/chat",status="200"}'] == 1
    assert counted["turns_running"] == 0


def test_metrics_count_turns_and_name_routes_by_template(assistant: Any) -> None:
    with open_door(assistant) as door:
        door.ask(NARRATIVE)
        door.ask("fail" * 3, "other")
        door.http.get("/api/threads/t/requests")
        door.http.get("/nothing/here")
        door.http.get("/api/threads/t/checkpoints")
        door.http.post("/v1/ask", json={"question": NARRATIVE})
        door.http.request("PROPFIND", "/")
        counted = samples(door)
    assert counted['turns_total{input_kind="new_question",status="completed"}'] == 2
    assert counted['turn_duration_seconds_count{status="completed"}'] == 2
    assert counted['answers_total{degraded="false",kind="narrative"}'] >= 1
    assert (
        counted['http_requests_total{method="GET",route="/api/threads/{thread_id}/requests",status="200"}']
        == 1
    )
    assert counted[
        'http_requests_total{method="GET",route="/api/threads/{thread_id}/checkpoints",status="200"}'
    ]
    assert counted['http_requests_total{method="POST",route="/v1/ask",status="200"}'] == 1
    assert counted['http_requests_total{method="GET",route="unrouted",status="404"}'] == 1
    assert any(name.startswith('http_requests_total{method="OTHER"') for name in counted)
    assert counted["http_requests_running"] == 1  # the question itself


def test_every_metric_is_declared_with_a_base_unit(assistant: Any) -> None:
    with open_door(assistant) as door:
        door.ask(NARRATIVE)
        text = door.http.get("/metrics").text
    types = dict(re.findall(r"# TYPE business_assistant_(\w+) (\w+)", text))
    for name, (kind, _, _) in METRICS.items():
        assert types[f"{name}_total" if kind == "counter" else name] == kind
        assert kind != "histogram" or name.endswith("_seconds")


def shape(span: ReadableSpan) -> str:
    """Which row of the table a span is of."""
    first = span.name.split(" ", 1)[0]
    return next((row for row in SPANS if row.split(" ", 1)[0] == first), "{method} {route}")


def test_spans_are_as_the_table_says_and_hang_together(
    assistant: Any, spans: Callable[[], list[ReadableSpan]]
) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with open_door(assistant) as door:
        response = door.http.post(
            "/api/chat", json={"thread_id": "t", "message": NARRATIVE}, headers={"traceparent": parent}
        )
        assert endings(events_of(response.text)) == ["done"]
        door.wait_idle()
    trace_id = int("0af7651916cd43dd8448eb211c80319c", 16)
    mine = [span for span in spans() if span.context and span.context.trace_id == trace_id]
    names = {span.name for span in mine}
    assert {
        "POST /api/chat",
        "step gate",
        "step intent",
        "step retrieve",
        "step answer",
        "chat extractive",
    } <= names
    assert "redis EVALSHA" in names
    for span in mine:
        kind, attributes, _ = SPANS[shape(span)]
        assert span.kind.name.lower() == kind, span.name
        assert set(span.attributes or {}) <= set(attributes), span.name
        assert not span.events
    (request,) = [span for span in mine if span.name == "POST /api/chat"]
    assert request.parent is not None
    assert request.parent.span_id == int("b7ad6b7169203331", 16)
    assert dict(request.attributes or {})["request.id"] == response.headers["x-request-id"]
    ids = {span.context.span_id for span in mine if span.context}
    assert all(span.parent and span.parent.span_id in {*ids, request.parent.span_id} for span in mine)
    (model,) = [span for span in mine if span.name == "chat extractive"]
    (answer,) = [span for span in mine if span.name == "step answer"]
    assert answer.context is not None
    assert model.parent is not None
    assert model.parent.span_id == answer.context.span_id


@pytest.mark.parametrize("header", ["", "00-zz-zz-01", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "x" * 5000])
def test_a_broken_traceparent_is_ignored(
    saver: RedisContextSaver, spans: Callable[[], list[ReadableSpan]], header: str
) -> None:
    with open_door(stand_in(saver), run_turn=Script()) as door:
        assert door.http.get("/version", headers={"traceparent": header}).status_code == 200
    (span,) = [span for span in spans() if span.name == "GET /version"]
    assert span.parent is None


def test_an_error_leaves_its_type_in_the_span_and_not_its_words(
    assistant: Any, spans: Callable[[], list[ReadableSpan]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_prompt: Any) -> Any:
        raise ProviderError(MARKER)
        yield

    monkeypatch.setattr(assistant.services.provider, "stream", fail)
    with open_door(assistant) as door:
        assert door.ask(NARRATIVE)[-1][1]["status"] == "failed"
    failed = {span.name: span for span in spans() if "error.type" in (span.attributes or {})}
    assert {"chat extractive", "step answer"} <= set(failed)
    assert dict(failed["step answer"].attributes or {})["error.type"] == "ProviderError"
    assert "MARKERTEXT7731" not in "".join(span.to_json() for span in spans())


async def test_a_fault_that_gets_past_everything_leaves_its_type_in_the_span_and_not_its_words(
    spans: Callable[[], list[ReadableSpan]],
) -> None:
    async def failing(_scope: Any, _receive: Any, _send: Any) -> None:
        raise LookupError(MARKER)

    metrics = Metrics({})
    nothing: Any = None
    with pytest.raises(LookupError):
        await Watch(failing, metrics=metrics)(
            {"type": "http", "method": "GET", "path": f"/{MARKER}", "headers": []}, nothing, nothing
        )
    (span,) = spans()
    assert span.attributes is not None
    assert (span.name, span.attributes["error.type"]) == ("GET unrouted", "LookupError")
    assert "MARKERTEXT7731" not in span.to_json()  # its other characters are escaped there
    assert not span.events
    assert not span.status.is_ok
    assert metrics.value("http_requests_running") == 0
    assert metrics.value("http_requests", "GET", "unrouted", "0") == 1


def test_without_an_sdk_tracing_changes_nothing(saver: RedisContextSaver) -> None:
    """And an exporter that is asked for and missing is said at the start, not found out later."""
    from api.tracing import exporting_spans

    with exporting_spans(load_settings({})):
        pass
