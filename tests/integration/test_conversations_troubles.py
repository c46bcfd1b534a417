"""Every conversation route while its database is away, read-only, full or of another release, and with
cursors that were made up: a clear problem each, and nothing half-written in SQL or in Redis.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import redis
import structlog
from door import Door, open_door
from sqlalchemy import Connection, event, text

from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.database import IMMEDIATE, Database, open_engine
from checkpoint.conversations.errors import StoreFullError, StoreReadOnlyError
from checkpoint.conversations.revisions import known_revisions, migrate
from checkpoint.conversations.rows import Owner, Question
from checkpoint.conversations.store import ConversationStore, open_store

FACT = "云帆科技2023年的营业收入是多少？"
TABLES = ("conversation", "message", "audit", "summary_version")
Call = tuple[str, str, dict[str, Any] | None]


@pytest.fixture
def store(new_database: Callable[..., StoreConfig]) -> Iterator[ConversationStore]:
    with open_store(new_database("postgresql", timeout_seconds=2)) as opened:
        yield opened


@pytest.fixture
def door(assistant: Any, store: ConversationStore) -> Iterator[Door]:
    with open_door(assistant, store=store) as opened:
        yield opened


def begin(door: Door, name: str = "t") -> tuple[str, str]:
    """A conversation with one answer; -> its id and the answer's."""
    identity = door.http.post("/conversations", json={"externalId": name}).json()["id"]
    told = door.http.post(f"/conversations/{identity}/messages", json={"question": FACT}).json()
    return identity, told["assistantMessageId"]


def reads(identity: str) -> list[Call]:
    base = f"/conversations/{identity}"
    return [
        ("GET", "/conversations", None),
        ("GET", base, None),
        ("GET", f"{base}/messages", None),
        ("GET", f"{base}/export", None),
        ("GET", f"{base}/export?format=markdown", None),
    ]


def writes(identity: str, message_id: str) -> list[Call]:
    base = f"/conversations/{identity}"
    return [
        ("POST", "/conversations", {"title": "x"}),
        ("PATCH", f"{base}/title", {"title": "x"}),
        ("POST", f"{base}/archive", None),
        ("POST", f"{base}/restore", None),
        ("PUT", f"{base}/messages/{message_id}/feedback", {"rating": "up"}),
        ("POST", f"{base}/messages", {"question": "你好"}),
        ("POST", f"{base}/messages", {"question": "你好", "stream": True}),
        ("POST", "/api/chat", {"thread_id": "t", "message": "你好"}),
        ("POST", "/api/threads/t/fork", {"new_thread_id": "u"}),
        ("DELETE", base, None),
        ("DELETE", "/api/threads/t", None),
    ]


def call(door: Door, each: Call) -> Any:
    method, path, body = each
    return door.http.request(method, path, json=body) if body else door.http.request(method, path)


def answers(door: Door, calls: list[Call]) -> dict[str, tuple[int, str, bool]]:
    found = {}
    for each in calls:
        response = call(door, each)
        kind = response.headers["content-type"]
        assert kind == "application/problem+json", (each, response.status_code, response.text[:300])
        problem = response.json()
        found[f"{each[0]} {each[1]}"] = (response.status_code, problem["code"], problem["retryable"])
        assert int(response.headers.get("retry-after", 0)) > 0, (each, problem)
    return found


def contents(store: ConversationStore) -> dict[str, list[Any]]:
    with store.database.read("test") as connection:
        return {
            table: sorted(map(str, connection.execute(text(f"SELECT * FROM {table}")).all()))  # noqa: S608
            for table in TABLES
        }


def stored_in_redis(redis_url: str) -> dict[bytes, Any]:
    with redis.Redis.from_url(redis_url) as client:
        return {key: sorted(client.hkeys(key)) for key in client.keys("*") if client.type(key) == b"hash"}


def as_owner(store: ConversationStore, *statements: str) -> None:
    with store.database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in statements:
            connection.execute(text(statement))


def name_of(store: ConversationStore) -> str:
    return str(store.database.engine.url.database)


def test_away_every_route_says_so_at_once_and_works_again_afterwards(
    door: Door, store: ConversationStore, postgres: Any, redis_url: str
) -> None:
    identity, message_id = begin(door)
    door.wait_idle()
    before, kept = contents(store), stored_in_redis(redis_url)
    name = name_of(store)
    postgres.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    postgres.execute(
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname LIKE 'test_%'"
    )
    found = answers(door, [*reads(identity), *writes(identity, message_id)])
    assert set(found.values()) == {(503, "database_unavailable", True)}, found
    door.wait_idle()
    assert stored_in_redis(redis_url) == kept
    postgres.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    assert contents(store) == before
    assert door.http.get(f"/conversations/{identity}").json()["open_turn"] is None
    again = door.http.post(f"/conversations/{identity}/messages", json={"question": FACT})
    assert again.json()["status"] == "completed"


def make_read_only(store: ConversationStore) -> None:
    if store.database.is_sqlite:
        event.listen(store.database.engine, "connect", lambda raw, _: raw.execute("PRAGMA query_only=ON"))
    else:
        as_owner(store, f"ALTER DATABASE {name_of(store)} SET default_transaction_read_only = on")
    store.database.engine.dispose()


def read_as(door: Door, calls: list[Call]) -> list[Any]:
    """What each of them answers, without the times of the export."""
    found = []
    for each in calls:
        response = call(door, each)
        assert response.status_code == 200, (each, response.text)
        found.append(re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+\+08:00", "", response.text))
    return found


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"])
def test_read_only_everything_is_read_and_nothing_written(
    assistant: Any, new_database: Callable[..., StoreConfig], backend: str, redis_url: str
) -> None:
    """Who read what is then in the log, with all that its row would hold."""
    with (
        open_store(new_database(backend, timeout_seconds=2)) as store,
        open_door(assistant, store=store) as door,
        structlog.testing.capture_logs() as logs,
    ):
        identity, message_id = begin(door)
        door.wait_idle()
        shown = read_as(door, reads(identity))
        before, kept = contents(store), stored_in_redis(redis_url)
        logs.clear()
        make_read_only(store)
        assert read_as(door, reads(identity)) == shown
        noted = [each for each in logs if each["event"] == "audit_not_written"]
        assert [(each["action"], each["conversation_id"]) for each in noted] == [
            ("list", None),
            *([("read", identity)] * 2),
            *([("export", identity)] * 2),
        ]
        assert {each["log_level"] for each in noted} == {"warning"}
        assert all(each["user_id"] and each["tenant_id"] for each in noted)
        assert noted[2]["detail"] == {"messages": 2}
        assert FACT not in str(logs)
        found = answers(door, writes(identity, message_id))
        assert set(found.values()) == {(503, "database_read_only", True)}, found
        door.wait_idle()
        assert contents(store) == before
        assert stored_in_redis(redis_url) == kept
        parts = door.http.get("/health/ready").json()["parts"]
        assert (parts["database"]["up"], parts["database"]["read_only"]) == (True, True)


def test_read_only_a_question_that_broke_off_is_shown_as_it_stands_and_mended_later(
    door: Door, store: ConversationStore
) -> None:
    identity, _ = begin(door)
    held = store.find(Owner("local", "local"), "t")
    assert held
    saved = store.save_question(
        held.owner, Question("lost", "还有呢？"), name="t", knowledge_base=held.knowledge_base_id
    )
    as_owner(store, f"ALTER DATABASE {name_of(store)} SET default_transaction_read_only = on")
    store.database.engine.dispose()
    with structlog.testing.capture_logs() as logs:
        page = door.http.get(f"/conversations/{identity}/messages").json()["items"]
    assert [(row["role"], row["status"]) for row in page][2:] == [("USER", "COMPLETE")]
    (postponed,) = (each for each in logs if each["event"] == "repair_postponed")
    assert (postponed["conversation_id"], postponed["log_level"]) == (identity, "warning")
    writable = f"ALTER DATABASE {name_of(store)} SET default_transaction_read_only = off"
    as_owner(store, "SET default_transaction_read_only = off", writable)
    store.database.engine.dispose()
    page = door.http.get(f"/conversations/{identity}/messages").json()["items"]
    assert [(row["id"], row["status"]) for row in page][2:] == [(str(saved.message.id), "FAILED")]


def test_read_only_tables_of_an_earlier_release_are_left_alone_and_said(tmp_path: Path) -> None:
    config = StoreConfig(home=tmp_path)
    database = Database(open_engine(config))
    migrate(database, known_revisions()[0])
    database.close()
    as_it_was = config.file.read_bytes()
    only_read = StoreConfig(url=f"sqlite:///file:{config.file}?mode=ro&uri=true", home=tmp_path)
    with pytest.raises(StoreReadOnlyError, match="writable"), open_store(only_read):
        pass
    assert config.file.read_bytes() == as_it_was


def test_a_file_and_folder_that_nobody_may_write_can_be_served_as_they_are(tmp_path: Path) -> None:
    config = StoreConfig(home=tmp_path / "home")
    with open_store(config) as store:
        me = Owner("t", "u")
        held = store.save_question(me, Question("r", "问"), name="c", knowledge_base="d").conversation
    config.file.chmod(0o444)
    config.home.chmod(0o555)
    try:
        as_they_are = StoreConfig(url=f"sqlite:///file:{config.file}?immutable=1&uri=true")
        with open_store(as_they_are) as store:
            assert store.get(me, held.id) == held
            assert store.database.is_read_only()
            with pytest.raises(StoreReadOnlyError):
                store.set_title(me, held.id, "x")
        assert [each.name for each in config.home.iterdir()] == [config.file.name]
    finally:
        config.home.chmod(0o755)


FULL = """
CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$
"""


def fill(store: ConversationStore, *tables: str) -> None:
    """From now on the server itself reports a full disk at each change of these tables."""
    as_owner(
        store,
        FULL,
        *(
            f"CREATE TRIGGER full BEFORE INSERT OR UPDATE ON {table} EXECUTE FUNCTION no_room()".replace(
                "full", '"full"', 1
            )
            for table in tables
        ),
    )


def test_full_nothing_is_half_written(door: Door, store: ConversationStore, redis_url: str) -> None:
    identity, message_id = begin(door)
    door.wait_idle()
    kept = stored_in_redis(redis_url)
    shown = read_as(door, reads(identity))
    before = contents(store)
    fill(store, "conversation", "message", "audit")
    with structlog.testing.capture_logs() as logs:
        assert read_as(door, reads(identity)) == shown
    assert [each["event"] for each in logs].count("audit_not_written") == 5
    found = answers(door, writes(identity, message_id))
    assert set(found.values()) == {(503, "database_full", True)}, found
    door.wait_idle()
    assert contents(store) == before
    assert stored_in_redis(redis_url) == kept


def test_a_full_disk_that_is_found_only_at_the_end_leaves_the_thread_of_what_should_go(
    assistant: Any, new_database: Callable[..., StoreConfig], redis_url: str
) -> None:
    """As SQLite finds it: changes stay in memory until they are committed."""

    def find_no_room(connection: Connection) -> None:
        if connection.get_execution_options().get(IMMEDIATE):
            raise StoreFullError("test", "the disk is full", "Make room")

    with open_store(new_database("sqlite")) as store, open_door(assistant, store=store) as door:
        identity, _ = begin(door)
        door.wait_idle()
        kept = stored_in_redis(redis_url)
        before = contents(store)
        event.listen(store.database.engine, "commit", find_no_room)
        found = answers(
            door, [("DELETE", f"/conversations/{identity}", None), ("DELETE", "/api/threads/t", None)]
        )
        assert set(found.values()) == {(503, "database_full", True)}, found
        assert (contents(store), stored_in_redis(redis_url)) == (before, kept)
        event.remove(store.database.engine, "commit", find_no_room)
        assert door.http.delete(f"/conversations/{identity}").status_code == 200
        assert stored_in_redis(redis_url) == {}


@pytest.mark.parametrize(
    "change",
    ["ALTER TABLE message RENAME COLUMN trace_id TO trace", "ALTER TABLE message RENAME COLUMN role TO who"],
)
def test_of_another_release_sqlite_names_the_cause_too(
    assistant: Any, new_database: Callable[..., StoreConfig], change: str
) -> None:
    with open_store(new_database("sqlite")) as store, open_door(assistant, store=store) as door:
        identity, _ = begin(door)
        door.wait_idle()
        with store.database.write("test") as connection:
            connection.execute(text(change))
        base = f"/conversations/{identity}/messages"
        calls: list[Call] = [
            ("GET", base, None),
            ("POST", base, {"question": "你好"}),
            ("POST", "/api/chat", {"thread_id": "t", "message": "你好"}),
        ]
        found = answers(door, calls)
        assert set(found.values()) == {(503, "database_of_another_release", True)}, found


def test_of_another_release_every_route_names_the_cause(
    door: Door, store: ConversationStore, redis_url: str
) -> None:
    """Another release has changed the tables under a running server."""
    identity, message_id = begin(door)
    door.wait_idle()
    kept = stored_in_redis(redis_url)
    as_owner(
        store,
        "ALTER TABLE conversation RENAME COLUMN title TO name",
        "ALTER TABLE message RENAME COLUMN role TO who",
    )
    found = answers(door, [*reads(identity), *writes(identity, message_id)])
    assert set(found.values()) == {(503, "database_of_another_release", True)}, found
    door.wait_idle()
    assert stored_in_redis(redis_url) == kept


# --- deleted ones ---


def test_a_deleted_conversation_is_unknown_on_every_route(door: Door, store: ConversationStore) -> None:
    identity, message_id = begin(door)
    assert door.http.delete(f"/conversations/{identity}").status_code == 200
    before = {table: rows for table, rows in contents(store).items() if table != "audit"}
    of_it = [
        each
        for each in [*reads(identity), *writes(identity, message_id)]
        if identity in each[1] and each[0] != "DELETE"
    ]
    assert len(of_it) == 10
    for each in of_it:
        response = call(door, each)
        assert (response.status_code, response.json()["code"]) == (404, "not_found"), each
        assert FACT not in response.text
    assert {table: rows for table, rows in contents(store).items() if table != "audit"} == before
    listed = door.http.get("/conversations", params={"externalId": "t"}).json()["items"]
    assert listed == door.http.get("/conversations").json()["items"] == []
    assert door.http.get("/conversations", params={"status": "ARCHIVED"}).json()["items"] == []


@pytest.mark.parametrize("spelling", ["{{{}}}", "urn:uuid:{}", "{}%0A", "%20{}", "{}x"])
def test_an_id_has_one_spelling(door: Door, spelling: str) -> None:
    identity, _ = begin(door)
    assert door.http.get(f"/conversations/{spelling.format(identity)}").status_code == 404
    assert door.http.get(f"/conversations/{identity.replace('-', '')}").status_code == 404
    assert door.http.get(f"/conversations/{identity.upper()}").status_code == 200


# --- titles ---


def test_titles_are_bounded_and_on_one_line(door: Door) -> None:
    identity, _ = begin(door)
    path = f"/conversations/{identity}/title"
    for title in ("长" * 256, "x" * 10_000, "", "a\nb", "a\x00b", "a\x7fb", None, 5, ["x"]):
        for response in (
            door.http.patch(path, json={"title": title}),
            door.http.post("/conversations", json={"title": title}) if title is not None else None,
        ):
            if response is not None:
                assert (response.status_code, response.json()["code"]) == (422, "invalid_body"), title
                assert response.json()["errors"][0]["field"] == "title"
    longest = "😀" * 255
    assert door.http.patch(path, json={"title": longest}).json()["title"] == longest
    assert door.http.get(f"/conversations/{identity}").json()["title"] == longest


# --- cursors ---


def forged(*parts: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


@pytest.fixture
def paged(door: Door) -> tuple[Door, list[str]]:
    made = [begin(door, name)[0] for name in "abc"]
    door.http.post(f"/conversations/{made[0]}/messages", json={"question": "你好"})
    return door, made


def test_a_cursor_is_of_one_listing_only(paged: tuple[Door, list[str]]) -> None:
    door, made = paged
    first, second = f"/conversations/{made[0]}/messages", f"/conversations/{made[1]}/messages"
    of_list = door.http.get("/conversations", params={"limit": 1}).json()["nextCursor"]
    of_messages = door.http.get(first, params={"limit": 1}).json()["nextCursor"]
    mark = json.loads(base64.urlsafe_b64decode(of_messages + "=="))[0]
    wrong: list[tuple[str, dict[str, Any]]] = [
        (first, {"cursor": of_list}),
        ("/conversations", {"cursor": of_messages}),
        (second, {"cursor": of_messages}),  # of another conversation
        (first, {"cursor": of_messages, "order": "newest_first"}),  # of the other direction
        ("/conversations", {"cursor": of_list, "status": "ARCHIVED"}),
        (first, {"cursor": of_messages[:-2]}),
        (first, {"cursor": of_messages + "AA"}),
        (first, {"cursor": forged("0" * 12, 1)}),
        (first, {"cursor": forged(mark, -1)}),
        (first, {"cursor": forged(mark, 2**63)}),
        (first, {"cursor": forged(mark, "1")}),
        (first, {"cursor": forged(mark, 1, 1)}),
        (first, {"cursor": forged(mark, True)}),
        (first, {"cursor": forged(mark, 1.0)}),
        (first, {"cursor": forged(mark, None)}),
        (first, {"cursor": "' OR 1=1 --"}),
        (first, {"cursor": "\x00"}),
        (first, {"cursor": "游标"}),
        (first, {"cursor": ""}),
    ]
    for path, query in wrong:
        response = door.http.get(path, params=query)
        assert (response.status_code, response.json()["code"]) == (422, "invalid_cursor"), (path, query)
    assert door.http.get(first, params={"cursor": of_messages}).status_code == 200
    assert door.http.get(first, params={"cursor": "x" * 513}).json()["code"] == "invalid_body"


def test_a_cursor_grants_nothing(paged: tuple[Door, list[str]], store: ConversationStore) -> None:
    door, made = paged
    path = f"/conversations/{made[0]}/messages"
    cursor = door.http.get(path, params={"limit": 1}).json()["nextCursor"]
    door.http.delete(f"/conversations/{made[0]}")
    assert door.http.get(path, params={"cursor": cursor}).status_code == 404
    unknown = f"/conversations/{uuid4()}/messages"
    assert door.http.get(unknown, params={"cursor": cursor}).status_code == 404
