"""The durable record through the HTTP door, around the real graph, saver and sample: on both databases."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any
from uuid import UUID, uuid4

import pytest
import redis
import structlog
from door import WAIT_SECONDS, Door, Script, endings, events_of, open_door, read_until, until
from sqlalchemy import text
from store_fixtures import ending

from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.errors import StoreUnavailable
from checkpoint.conversations.rows import Owner, Question
from checkpoint.conversations.store import ConversationStore, open_store
from nodes.retrieve.sample import SAMPLE_SET

FACT = "云帆科技2023年的营业收入是多少？"
NARRATIVE = "创业补贴有多少？"
VAGUE = "云帆2023年营业收入是多少？"
LOCAL = Owner("local", "local")


@pytest.fixture
def door(assistant: Any, store: ConversationStore) -> Iterator[Door]:
    with open_door(assistant, store=store) as opened:
        yield opened


@pytest.fixture
def sqlite_store(new_database: Callable[..., StoreConfig]) -> Iterator[ConversationStore]:
    with open_store(new_database("sqlite")) as opened:
        yield opened


@pytest.fixture
def plain_door(assistant: Any, sqlite_store: ConversationStore) -> Iterator[Door]:
    """One database is enough where the database plays no part."""
    with open_door(assistant, store=sqlite_store) as opened:
        yield opened


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def held_door(assistant: Any, sqlite_store: ConversationStore, script: Script) -> Iterator[Door]:
    """A door whose runs the test holds and lets go."""
    with open_door(assistant, store=sqlite_store, run_turn=script) as opened:
        yield opened
        script.go.set()


def create(door: Door, **body: Any) -> dict[str, Any]:
    response = door.http.post("/conversations", json=body)
    assert response.status_code == 201, response.text
    return response.json()


def post(door: Door, identity: str, question: str, **more: Any) -> Any:
    return door.http.post(f"/conversations/{identity}/messages", json={"question": question, **more})


def send(door: Door, identity: str, question: str, **more: Any) -> dict[str, Any]:
    response = post(door, identity, question, **more)
    assert response.status_code == 200, response.text
    return response.json()


def messages(door: Door, identity: str, **query: Any) -> list[dict[str, Any]]:
    response = door.http.get(f"/conversations/{identity}/messages", params=query)
    assert response.status_code == 200, response.text
    return response.json()["items"]


def detail(door: Door, identity: str) -> dict[str, Any]:
    response = door.http.get(f"/conversations/{identity}")
    assert response.status_code == 200, response.text
    return response.json()


def named(door: Door, name: str = "t") -> str:
    listed = door.http.get("/conversations").json()["items"]
    return next(held["id"] for held in listed if held["externalId"] == name)


def forms(door: Door, identity: str) -> list[tuple[str, str]]:
    return [(row["role"], row["status"]) for row in messages(door, identity)]


# --- asking ---


def test_a_question_is_answered_and_kept(door: Door) -> None:
    identity = create(door)["id"]
    told = send(door, identity, FACT, clientMessageId="m1")
    assert set(told) >= {
        "conversationId", "userMessageId", "assistantMessageId", "originalQuestion", "standaloneQuestion",
        "answer", "sources", "traceId",
    }  # fmt: skip
    assert (told["status"], told["conversationId"]) == ("completed", identity)
    assert told["originalQuestion"] == told["standaloneQuestion"] == FACT
    rows = messages(door, identity)
    assert [row["role"] for row in rows] == ["USER", "ASSISTANT"]
    assert [row["id"] for row in rows] == [told["userMessageId"], told["assistantMessageId"]]
    assert [row["sequenceNo"] for row in rows] == [1, 2]
    assert rows[1]["content"] == told["answer"]
    assert [source["label"] for source in rows[1]["sources"]] == [s["label"] for s in told["sources"]]
    assert rows[1]["requestId"] == told["requestId"]
    shown = detail(door, identity)
    assert (shown["title"], shown["open_turn"], shown["hasContext"]) == (FACT, None, True)


def test_the_stream_is_that_of_api_chat(plain_door: Door) -> None:
    identity = create(plain_door)["id"]
    response = post(plain_door, identity, NARRATIVE, stream=True)
    events = events_of(response.text)
    assert endings(events) == ["done"]
    names = [name for name, _ in events]
    assert names[0] == "created"
    assert {"stage", "token", "citations"} <= set(names)
    done = events[-1][1]
    assert done["conversation_id"] == identity
    assert messages(plain_door, identity)[1]["id"] == done["assistant_message_id"]
    assert response.headers["X-Request-ID"] == done["request_id"]


def test_api_chat_begins_and_continues_the_conversation_of_its_name(plain_door: Door) -> None:
    plain_door.ask(FACT, "my thread")
    identity = named(plain_door, "my thread")
    send(plain_door, identity, NARRATIVE)
    plain_door.ask("谢谢", "my thread")
    rows = messages(plain_door, identity)
    assert [row["content"] for row in rows if row["role"] == "USER"] == [FACT, NARRATIVE, "谢谢"]
    assert len(plain_door.records("my thread")) == 3


def test_a_reload_in_a_clarification_loses_nothing(door: Door) -> None:
    identity = create(door)["id"]
    asked = send(door, identity, VAGUE)
    assert asked["status"] == "needs_input"
    waiting = detail(door, identity)["open_turn"]
    assert (waiting["state"], waiting["originalQuestion"]) == ("clarification", VAGUE)
    assert waiting["clarification"] == asked["clarification"]
    assert len(waiting["clarification"]["options"]) == 5
    chosen = send(door, identity, "1")
    assert (chosen["status"], chosen["originalQuestion"]) == ("completed", VAGUE)
    assert detail(door, identity)["open_turn"] is None
    assert forms(door, identity) == [("USER", "COMPLETE"), ("ASSISTANT", "COMPLETE")] * 2


def test_a_running_turn_is_shown_with_its_question(held_door: Door, script: Script) -> None:
    identity = create(held_door, externalId="t")["id"]
    connection = held_door.send_raw("hold 问", "t")
    assert script.reached.wait(WAIT_SECONDS)
    waiting = detail(held_door, identity)["open_turn"]
    assert (waiting["state"], waiting["originalQuestion"]) == ("running", "hold 问")
    assert waiting["requestId"] == held_door.records()[0]["request_id"]
    assert forms(held_door, identity) == [("USER", "COMPLETE")]
    script.go.set()
    held_door.wait_idle()
    connection.close()
    assert forms(held_door, identity) == [("USER", "COMPLETE"), ("ASSISTANT", "COMPLETE")]


def test_a_failed_turn_marks_its_question_and_can_be_retried(
    assistant: Any, sqlite_store: ConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_door(assistant, store=sqlite_store) as door:
        identity = create(door)["id"]
        facts = type(assistant.services.facts)
        with monkeypatch.context() as broken:
            broken.setattr(facts, "look_up", lambda *_args, **_more: 1 / 0)
            refused = post(door, identity, FACT)
        assert (refused.status_code, refused.json()["code"]) == (500, "processing_failed")
        assert FACT not in refused.text
        assert forms(door, identity) == [("USER", "FAILED")]
        waiting = detail(door, identity)["open_turn"]
        assert (waiting["state"], waiting["originalQuestion"]) == ("unfinished", FACT)
        other = post(door, identity, NARRATIVE)
        assert (other.status_code, other.json()["code"]) == (409, "unfinished_turn")
        assert send(door, identity, "/retry")["originalQuestion"] == FACT
        assert forms(door, identity) == [
            ("USER", "FAILED"), ("USER", "FAILED"), ("USER", "COMPLETE"), ("ASSISTANT", "COMPLETE"),
        ]  # fmt: skip
        assert detail(door, identity)["open_turn"] is None


def test_a_stopped_answer_keeps_question_and_partial_text_as_interrupted(
    held_door: Door, script: Script
) -> None:
    identity = create(held_door, externalId="t")["id"]
    held_door.send_raw("hold 问", "t").close()
    assert script.reached.wait(WAIT_SECONDS)
    held_door.http.post("/api/chat/stop", json={"thread_id": "t"})
    held_door.wait_idle()
    rows = messages(held_door, identity)
    assert [(row["role"], row["status"], row["content"]) for row in rows] == [
        ("USER", "COMPLETE", "hold 问"),
        ("ASSISTANT", "PARTIAL", "一：hold 问"),
    ]


# --- once ---


def test_a_double_click_and_two_tabs_make_one_turn(door: Door) -> None:
    identity = create(door)["id"]
    with ThreadPoolExecutor(5) as five:
        told = list(five.map(lambda _: post(door, identity, FACT, clientMessageId="m1"), range(5)))
    assert {response.status_code for response in told} == {200}
    assert len({response.json()["assistantMessageId"] for response in told}) == 1
    assert forms(door, identity) == [("USER", "COMPLETE"), ("ASSISTANT", "COMPLETE")]
    again = send(door, identity, FACT, clientMessageId="m1")
    assert again["assistantMessageId"] == told[0].json()["assistantMessageId"]
    other = post(door, identity, NARRATIVE, clientMessageId="m1")
    assert (other.status_code, other.json()["code"]) == (422, "message_id_reused")
    elsewhere = send(door, create(door)["id"], NARRATIVE, clientMessageId="m1")
    assert elsewhere["status"] == "completed"
    assert len(messages(door, identity)) == 2


def test_a_resent_message_is_known_after_redis_has_forgotten_it(
    door: Door, redis_url: str, assistant: Any
) -> None:
    identity = create(door)["id"]
    first = send(door, identity, FACT, clientMessageId="m1")
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    again = send(door, identity, FACT, clientMessageId="m1")
    assert (again["answer"], again["assistantMessageId"]) == (first["answer"], first["assistantMessageId"])
    other = post(door, identity, NARRATIVE, clientMessageId="m1")
    assert (other.status_code, other.json()["code"]) == (422, "message_id_reused")
    assert forms(door, identity) == [("USER", "COMPLETE"), ("ASSISTANT", "COMPLETE")]
    assert detail(door, identity)["hasContext"] is False


def test_a_busy_conversation_refuses_and_stores_nothing_of_the_loser(held_door: Door, script: Script) -> None:
    identity = create(held_door, externalId="t")["id"]
    held_door.send_raw("hold 一", "t").close()
    assert script.reached.wait(WAIT_SECONDS)
    refused = post(held_door, identity, "二")
    assert (refused.status_code, refused.json()["code"]) == (409, "thread_busy")
    script.go.set()
    held_door.wait_idle()
    assert [row["content"] for row in messages(held_door, identity) if row["role"] == "USER"] == ["hold 一"]


def test_many_dropped_connections_leave_the_database_usable(
    assistant: Any, new_database: Callable[..., StoreConfig], script: Script
) -> None:
    with (
        open_store(new_database("postgresql", pool_size=2)) as store,
        open_door(assistant, store=store, run_turn=script) as door,
    ):
        identity = create(door, externalId="t")["id"]
        for number in range(20):
            with door.send_raw(f"问{number}", f"drop-{number}") as connection:
                read_until(connection, "HTTP/1.1")  # taken, so that waiting for all of them means something
        door.wait_idle()
        for number in range(5):
            assert send(door, identity, f"问{number}")["status"] == "completed"


# --- whose ---


def every_route(door: Door, identity: str, message_id: str) -> list[tuple[str, str, dict[str, Any] | None]]:
    base = f"/conversations/{identity}"
    return [
        ("GET", base, None),
        ("GET", f"{base}/messages", None),
        ("GET", f"{base}/export", None),
        ("GET", f"{base}/export?format=markdown", None),
        ("PATCH", f"{base}/title", {"title": "x"}),
        ("POST", f"{base}/archive", None),
        ("POST", f"{base}/restore", None),
        ("POST", f"{base}/messages", {"question": FACT}),
        ("POST", f"{base}/messages", {"question": FACT, "stream": True}),
        ("PUT", f"{base}/messages/{message_id}/feedback", {"rating": "up"}),
    ]


def statuses(door: Door, identity: str, message_id: str) -> list[tuple[int, str]]:
    found = []
    for method, path, body in every_route(door, identity, message_id):
        response = door.http.request(method, path, json=body) if body else door.http.request(method, path)
        found.append((response.status_code, response.json().get("code", "")))
    return found


def test_unknown_foreign_deleted_and_malformed_are_one_404_on_every_route(
    plain_door: Door, sqlite_store: ConversationStore
) -> None:
    question = Question("r1", "别人的问题")
    foreign = sqlite_store.save_question(
        Owner("local", "someone"), question, name="theirs", knowledge_base="default"
    )
    deleted = create(plain_door)["id"]
    mine = send(plain_door, deleted, FACT)
    assert plain_door.http.delete(f"/conversations/{deleted}").status_code == 200
    for identity in (str(uuid4()), str(foreign.conversation.id), deleted, "nonsense", "%00", "../x"):
        found = statuses(plain_door, identity, mine["assistantMessageId"])
        assert {status for status, _ in found} == {404}, (identity, found)
    for identity in (str(uuid4()), str(foreign.conversation.id), "nonsense"):
        assert plain_door.http.delete(f"/conversations/{identity}").status_code == 404
    rows = list(sqlite_store.walk_messages(Owner("local", "someone"), foreign.conversation.id))
    assert [row.content for row in rows] == ["别人的问题"]


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("PATCH", "/title", {"title": "x" * 10_000}, "invalid_body"),
        ("PATCH", "/title", {"title": ""}, "invalid_body"),
        ("PATCH", "/title", {"title": " \u3000"}, "invalid_body"),
        ("POST", "/messages", {"question": "x" * 4001}, "invalid_body"),
        ("POST", "/messages", {"question": "a\x00b"}, "invalid_text"),
        ("POST", "/messages", {"question": " \n"}, "invalid_text"),
        ("POST", "/messages", {"question": "x", "clientMessageId": "a\x00"}, "invalid_body"),
        ("POST", "/messages", {"question": "x", "history": []}, "invalid_body"),
        ("GET", "/messages?cursor=x", None, "invalid_cursor"),
        ("GET", "/messages?limit=0", None, "invalid_body"),
        ("GET", "/messages?limit=201", None, "invalid_body"),
        ("GET", "/export?format=pdf", None, "invalid_body"),
        ("PUT", "/messages/x/feedback", {"rating": "5"}, "invalid_body"),
    ],
)
def test_bad_input_is_a_problem_and_leaves_no_row(
    plain_door: Door, method: str, path: str, body: Any, code: str
) -> None:
    identity = create(plain_door)["id"]
    response = plain_door.http.request(method, f"/conversations/{identity}{path}", json=body)
    assert (response.status_code, response.json()["code"]) == (422, code)
    assert messages(plain_door, identity) == []
    assert plain_door.records(identity) == []


@pytest.mark.parametrize("words", ["\ud800", "x\udfff"])
def test_half_a_character_is_refused(plain_door: Door, words: str) -> None:
    identity = create(plain_door)["id"]
    body = json.dumps({"question": words}).encode()  # escaped, as JSON allows it
    headers = {"Content-Type": "application/json"}
    response = plain_door.http.post(f"/conversations/{identity}/messages", content=body, headers=headers)
    assert response.status_code == 422
    assert messages(plain_door, identity) == []


@pytest.mark.parametrize("words", ["\ufeff云帆", "𠮷野家🇨🇳", "行\u2028行\r\n", "😀" * 4000])
def test_unusual_text_is_kept_as_it_is(plain_door: Door, words: str) -> None:
    identity = create(plain_door)["id"]
    send(plain_door, identity, words)
    assert messages(plain_door, identity)[0]["content"] == words


# --- names, feedback, pages, export, audit ---


def test_title_archive_and_feedback(door: Door) -> None:
    identity = create(door, title="我的")["id"]
    told = send(door, identity, FACT)
    assert detail(door, identity)["title"] == "我的"
    renamed = door.http.patch(f"/conversations/{identity}/title", json={"title": "新名"}).json()
    assert renamed["title"] == "新名"
    assert door.http.post(f"/conversations/{identity}/archive").json()["status"] == "ARCHIVED"
    assert door.http.get("/conversations").json()["items"] == []
    archived = door.http.get("/conversations", params={"status": "ARCHIVED"}).json()["items"]
    assert [held["id"] for held in archived] == [identity]
    named = door.http.get("/conversations", params={"externalId": archived[0]["externalId"]}).json()
    assert named == {"items": archived, "nextCursor": None}
    assert door.http.get("/conversations", params={"externalId": "none"}).json()["items"] == []
    assert door.http.post(f"/conversations/{identity}/restore").json()["status"] == "ACTIVE"
    assert [held["id"] for held in door.http.get("/conversations").json()["items"]] == [identity]
    path = f"/conversations/{identity}/messages/{told['assistantMessageId']}/feedback"
    given = door.http.put(path, json={"rating": "down", "comment": "不全"}).json()
    assert given["feedback"] == {"rating": "down", "comment": "不全"}
    assert door.http.put(path, json={"rating": None}).json()["feedback"] is None
    user = f"/conversations/{identity}/messages/{told['userMessageId']}/feedback"
    assert door.http.put(user, json={"rating": "up"}).status_code == 404


def test_a_name_is_taken_once(plain_door: Door) -> None:
    create(plain_door, externalId="n")
    again = plain_door.http.post("/conversations", json={"externalId": "n"})
    assert (again.status_code, again.json()["code"]) == (409, "name_taken")


def test_pages_while_turns_are_written(door: Door) -> None:
    made = [create(door)["id"] for _ in range(7)]
    seen, cursor = [], None
    while True:
        query = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        page = door.http.get("/conversations", params=query).json()
        seen += [held["id"] for held in page["items"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
        send(door, made[0], "你好")
    assert seen == made[::-1]


def test_the_export_holds_it_all_and_is_recorded(door: Door, store: ConversationStore) -> None:
    identity = create(door)["id"]
    send(door, identity, "# 不是标题\n" + FACT)
    response = door.http.get(f"/conversations/{identity}/export")
    exported = response.json()
    assert exported["messages"] == messages(door, identity)
    assert exported["conversation"]["id"] == identity
    assert response.headers["Content-Disposition"].startswith("attachment")
    markdown = door.http.get(f"/conversations/{identity}/export", params={"format": "markdown"})
    assert markdown.headers["Content-Type"].startswith("text/markdown")
    lines = markdown.text.splitlines()
    assert "> # 不是标题" in lines
    assert sum(line.startswith("# ") for line in lines) == 1
    assert sum(line.startswith("## ") for line in lines) == 2


def test_a_title_is_no_markup_in_the_export(plain_door: Door) -> None:
    identity = create(plain_door, title="<b>[a](javascript:x)\u2028# *b*")["id"]
    told = plain_door.http.get(f"/conversations/{identity}/export", params={"format": "markdown"}).text
    assert told.splitlines()[0] == r"# \<b\>\[a\](javascript:x) \# \*b\*"


def audited(store: ConversationStore) -> list[tuple[str, str | None]]:
    with store.database.read("test") as connection:
        rows = connection.execute(text("SELECT action, conversation_id FROM audit ORDER BY at"))
        return [(action, None if identity is None else str(identity)) for action, identity in rows]


def test_reading_exporting_and_deleting_leave_audit_rows_without_words(
    plain_door: Door, sqlite_store: ConversationStore
) -> None:
    identity = create(plain_door)["id"]
    send(plain_door, identity, FACT)
    plain_door.http.get("/conversations")
    detail(plain_door, identity)
    messages(plain_door, identity)
    plain_door.http.get(f"/conversations/{identity}/export")
    plain_door.http.delete(f"/conversations/{identity}")
    assert [action for action, _ in audited(sqlite_store)] == ["list", "read", "read", "export", "delete"]
    with sqlite_store.database.read("test") as connection:
        assert "云帆" not in str(connection.execute(text("SELECT * FROM audit")).all())


@pytest.mark.parametrize("kept_here", [True, False])
def test_reading_by_way_of_the_thread_leaves_the_same_audit_rows(
    assistant: Any, sqlite_store: ConversationStore, kept_here: bool
) -> None:
    with open_door(assistant, store=sqlite_store) as door:
        door.ask(FACT, "t")
        identity = named(door)
        (record,) = door.http.get("/api/threads/t/requests").json()["items"]
        with ExitStack() as stack:
            told_by = door if kept_here else stack.enter_context(open_door(assistant, store=sqlite_store))
            for path in ("/api/threads/t/window", "/api/threads/t/checkpoints"):
                assert told_by.http.get(path).status_code == 200
            assert told_by.http.get(f"/api/chat/{record['request_id']}/events").status_code == 200
            assert told_by.http.get("/api/threads/unknown/window").status_code == 404
        told = [(action, read and str(UUID(read))) for action, read in audited(sqlite_store)]
        assert told == [("list", None), *[("read", identity)] * 4]


# --- sources ---


def test_a_withdrawn_source_is_gone_wherever_it_was_shown(door: Door, assistant: Any) -> None:
    identity = create(door)["id"]
    told = send(door, identity, NARRATIVE, clientMessageId="m1")
    assert told["sources"]
    passage = told["sources"][0]["passage"]
    assert passage in door.http.get(f"/conversations/{identity}/export").text or passage.count("\n")
    assistant.store.remove(SAMPLE_SET)
    rows = messages(door, identity)
    assert rows[1]["isWithdrawn"]
    assert [source["available"] for source in rows[1]["sources"]] == [False] * len(told["sources"])
    assert set(rows[1]["sources"][0]) == {"label", "available"}
    again = send(door, identity, NARRATIVE, clientMessageId="m1")
    texts = [
        json.dumps(rows, ensure_ascii=False),
        json.dumps(again, ensure_ascii=False),
        post(door, identity, NARRATIVE, clientMessageId="m1", stream=True).text,
        door.http.get(f"/conversations/{identity}/export").text,
        door.http.get(f"/conversations/{identity}/export", params={"format": "markdown"}).text,
    ]
    words = [told["sources"][0]["title"], told["sources"][0]["passage"].strip()[:12], told["answer"][:12]]
    for shown in texts:
        for word in words:
            assert word not in shown
    assert rows[0]["content"] == NARRATIVE


# --- deleting ---


def test_deleting_hides_at_once_ends_the_turn_and_nothing_comes_back(
    held_door: Door, script: Script, sqlite_store: ConversationStore, redis_url: str
) -> None:
    identity = create(held_door, externalId="t")["id"]
    held_door.send_raw("hold 秘密", "t").close()
    assert script.reached.wait(WAIT_SECONDS)
    receipt = held_door.http.delete(f"/conversations/{identity}")
    assert receipt.status_code == 200
    assert receipt.json()["conversationId"] == identity
    held_door.wait_idle()
    assert {status for status, _ in statuses(held_door, identity, str(uuid4()))} == {404}
    assert held_door.http.get("/conversations").json()["items"] == []
    assert held_door.http.get("/api/threads/t/requests").status_code == 404
    with redis.Redis.from_url(redis_url) as client:
        assert client.keys("*") == []
    assert held_door.http.delete(f"/conversations/{identity}").json() == receipt.json()
    assert audited(sqlite_store).count(("delete", audited(sqlite_store)[0][1])) == 1


class Interrupted:
    """A store in which something else happens just before one of its methods runs, once."""

    def __init__(self, inner: ConversationStore, method: str, calls_before: int = 0) -> None:
        self.inner = inner
        self.method = method
        self.calls_before = calls_before
        self.happens: Callable[[], object] | None = None

    def __getattr__(self, name: str) -> Any:
        if name == self.method and self.happens is not None:
            self.calls_before -= 1
            if self.calls_before < 0:
                happens, self.happens = self.happens, None
                happens()
        return getattr(self.inner, name)


def test_two_that_delete_at_once_get_the_same_receipt(
    assistant: Any, sqlite_store: ConversationStore
) -> None:
    store = Interrupted(sqlite_store, "rehearse_delete")
    with open_door(assistant, store=store) as door:
        identity = create(door)["id"]
        first: list[Any] = []
        store.happens = lambda: first.append(door.http.delete(f"/conversations/{identity}").json())
        second = door.http.delete(f"/conversations/{identity}")
        assert (second.status_code, second.json()) == (200, first[0])


def test_a_read_that_mends_leaves_a_question_alone_that_begins_meanwhile(
    assistant: Any, sqlite_store: ConversationStore, script: Script
) -> None:
    store = Interrupted(sqlite_store, "unanswered", calls_before=1)
    broken_off = Question("r0", "断了的问题")
    saved = sqlite_store.save_question(LOCAL, broken_off, name="t", knowledge_base="default")
    with open_door(assistant, store=store, run_turn=script) as door:

        def begin() -> None:
            door.send_raw("hold 新的问题", "t").close()
            assert script.reached.wait(WAIT_SECONDS)

        store.happens = begin
        identity = str(saved.conversation.id)
        assert forms(door, identity) == [("USER", "FAILED"), ("USER", "COMPLETE")]
        script.go.set()
        door.wait_idle()
        assert forms(door, identity)[1:] == [("USER", "COMPLETE"), ("ASSISTANT", "COMPLETE")]


def test_deleting_a_thread_deletes_its_conversation(plain_door: Door) -> None:
    plain_door.ask(FACT, "t")
    identity = named(plain_door)
    assert plain_door.http.delete("/api/threads/t").status_code == 204
    assert plain_door.http.get(f"/conversations/{identity}").status_code == 404
    assert plain_door.http.delete("/api/threads/t").status_code == 404


def test_deleting_again_spares_the_newer_conversation_of_that_name(plain_door: Door) -> None:
    plain_door.ask(FACT, "t")
    old = named(plain_door)
    receipt = plain_door.http.delete(f"/conversations/{old}").json()
    plain_door.ask(NARRATIVE, "t")
    new = named(plain_door)
    assert plain_door.http.delete(f"/conversations/{old}").json() == receipt
    assert detail(plain_door, new)["hasContext"] is True
    assert len(messages(plain_door, new)) == 2


# --- a database in trouble ---


class Broken:
    """A store of which one method fails so many times, as a database that is away for a moment."""

    def __init__(self, inner: ConversationStore) -> None:
        self.inner = inner
        self.failing: dict[str, int] = {}
        self.guard = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        with self.guard:
            left = self.failing.get(name, 0)
            self.failing[name] = max(0, left - 1)
        work = getattr(self.inner, name)
        if left and name == "saving_reply":
            return ending(work, self._fail)
        return self._fail if left else work

    def _fail(self, *_args: Any, **_more: Any) -> None:
        raise StoreUnavailable("test", "it is away", "Wait")


@pytest.fixture
def broken(sqlite_store: ConversationStore) -> Broken:
    return Broken(sqlite_store)


@pytest.fixture
def broken_door(assistant: Any, broken: Broken) -> Iterator[Door]:
    with open_door(assistant, store=broken) as opened:
        yield opened


def test_a_thread_is_read_while_the_database_is_away_and_the_log_has_the_row(
    broken_door: Door, broken: Broken
) -> None:
    broken_door.ask(FACT, "t")
    broken.failing = {"find": 9, "record": 9}
    with structlog.testing.capture_logs() as logs:
        for path in ("requests", "window", "checkpoints"):
            assert broken_door.http.get(f"/api/threads/t/{path}").status_code == 200
    assert [each["event"] for each in logs].count("audit_not_written") == 3


def test_without_the_question_saved_nothing_is_begun(broken_door: Door, broken: Broken) -> None:
    identity = create(broken_door, externalId="t")["id"]
    broken.failing["save_question"] = 1
    refused = post(broken_door, identity, FACT, clientMessageId="m1")
    assert (refused.status_code, refused.json()["code"]) == (503, "database_unavailable")
    assert refused.headers["Retry-After"] == "2"
    assert broken_door.records() == []
    broken_door.wait_idle()
    assert send(broken_door, identity, FACT, clientMessageId="m1")["status"] == "completed"
    assert forms(broken_door, identity) == [("USER", "COMPLETE"), ("ASSISTANT", "COMPLETE")]


def test_an_answer_that_sql_did_not_take_is_mended_on_the_next_read(
    broken_door: Door, broken: Broken
) -> None:
    identity = create(broken_door, externalId="t")["id"]
    broken.failing["saving_reply"] = 1
    refused = post(broken_door, identity, FACT)
    assert (refused.status_code, refused.json()["code"]) == (503, "database_unavailable")
    broken_door.wait_idle()
    mended = messages(broken_door, identity)
    assert [(row["role"], row["status"]) for row in mended] == [
        ("USER", "COMPLETE"),
        ("ASSISTANT", "COMPLETE"),
    ]
    assert mended[1]["sources"]
    assert messages(broken_door, identity) == mended
    assert broken_door.records()[0]["status"] == "completed"


def test_an_answer_that_sql_did_not_take_is_told_when_it_is_sent_again(
    broken_door: Door, broken: Broken
) -> None:
    identity = create(broken_door, externalId="t")["id"]
    broken.failing["saving_reply"] = 1
    assert post(broken_door, identity, NARRATIVE, clientMessageId="m1").status_code == 503
    broken_door.wait_idle()
    told = send(broken_door, identity, NARRATIVE, clientMessageId="m1")
    rows = messages(broken_door, identity)
    assert [row["id"] for row in rows] == [told["userMessageId"], told["assistantMessageId"]]
    assert len(broken_door.records()) == 1


def test_the_next_question_mends_before_it_asks_so_context_and_record_agree(
    broken_door: Door, broken: Broken
) -> None:
    identity = create(broken_door, externalId="t")["id"]
    broken.failing["saving_reply"] = 1
    post(broken_door, identity, FACT)
    broken_door.wait_idle()
    send(broken_door, identity, NARRATIVE)
    rows = messages(broken_door, identity)
    assert [row["role"] for row in rows] == ["USER", "ASSISTANT"] * 2
    seen = broken_door.http.get("/api/threads/t/window").json()["messages"]
    assert [message["content"] for message in seen if message["role"] == "user"] == [FACT, NARRATIVE]
    assert [row["content"] for row in rows if row["role"] == "USER"] == [FACT, NARRATIVE]


def test_a_database_that_is_away_is_a_503_everywhere_and_recovers(broken_door: Door, broken: Broken) -> None:
    identity = create(broken_door)["id"]
    for method, path in (("GET", ""), ("GET", "/messages"), ("DELETE", "")):
        broken.failing.update({"get": 1, "delete": 1})
        response = broken_door.http.request(method, f"/conversations/{identity}{path}")
        assert (response.status_code, response.json()["code"]) == (503, "database_unavailable")
        broken.failing.clear()
    assert detail(broken_door, identity)["id"] == identity


def test_reading_works_while_redis_has_lost_the_thread(plain_door: Door, redis_url: str) -> None:
    identity = create(plain_door, externalId="t")["id"]
    send(plain_door, identity, FACT)
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    assert forms(plain_door, identity) == [("USER", "COMPLETE"), ("ASSISTANT", "COMPLETE")]
    until(lambda: detail(plain_door, identity)["hasContext"] is False)
