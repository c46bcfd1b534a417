"""Deleting, purging, pruning and archiving: beside each other, beside live turns, cut off in the middle."""

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis
from faults.parts import (
    ANSWERED,
    FACT,
    NARRATIVE,
    NOBODY,
    OTHER_FACT,
    OTHER_NARRATIVE,
    VAGUE,
    Home,
    Model,
    agreed,
    context,
    conversation,
    forms,
    rows,
)
from faults.test_owners import ALICE, BOB, SECRET, as_caller
from faults.test_two_stores import NOT_SAVED, FailsOnce
from integration.door import WAIT_SECONDS, Door, endings, events_of, read_rest, read_until, until
from sqlalchemy import text

from api.identity import thread_of
from api.leases import LeaseKeeper
from api.retention import archive, prune, purge_deleted, thread_of_owner
from checkpoint import RedisContextSaver
from checkpoint.archive import archive_requests, write_records
from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.erasure import prune_messages
from checkpoint.conversations.rows import Owner, Question, Reply
from checkpoint.conversations.store import ConversationStore, open_store
from checkpoint.conversations.summary import FOLD_AT_LEAST, fold, summary_for
from checkpoint.layout import context_key
from checkpoint.requests import shanghai_time
from graph.settings import Settings, load_settings
from graph.steps import RequestContext
from nodes.contracts import Caller, Generated, Prompt

PREFIX = "business-assistant:context:v1:"
ME = Owner("local", "local")
AT_ONCE = {"RETAIN_DELETED_DAYS": "0"}
SECRET_WORD = "标记QZX31"


@pytest.fixture
def quick(place: Home) -> Home:
    """A deployment that purges what was deleted at once."""
    return Home(place.folder, place.redis_url, AT_ONCE)


@contextmanager
def opened(place: Home) -> Iterator[tuple[RedisContextSaver, ConversationStore]]:
    settings = load_settings(place.env)
    with RedisContextSaver(settings.context) as saver, open_store(settings.conversations) as store:
        yield saver, store


def settings_of(place: Home) -> Settings:
    return load_settings(place.env)


def archived(place: Home) -> list[dict[str, Any]]:
    with opened(place) as (_, store), store.database.read("test") as connection:
        found = connection.execute(text("SELECT * FROM request_archive ORDER BY received_at"))
        return [dict(row) for row in found.mappings()]


def count(place: Home, table: str) -> int:
    with opened(place) as (_, store), store.database.read("test") as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())  # noqa: S608


def delete(door: Door, name: str = "t", **how: Any) -> dict[str, Any]:
    response = door.http.delete(f"/conversations/{conversation(door, name, **how)}", **how)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


# --- whose ---


def test_the_purge_finds_the_thread_of_each_owner_and_no_other(
    place: Home, model: Model, redis_client: redis.Redis
) -> None:
    """Two owners, one name. One deletes, and it is cut off before Redis: the purge erases hers alone."""
    signed = Home(place.folder, place.redis_url, {"JWT_SECRET": SECRET, **AT_ONCE})
    with signed.door(model) as door:
        for caller in (ALICE, BOB):
            for message in (NARRATIVE, VAGUE):
                body = {"thread_id": "plan", "message": message, "client_message_id": message}
                told = door.http.post("/api/chat", json=body, headers=as_caller(caller))
                assert endings(events_of(told.text)) == ["done"]
        keys = {
            caller: context_key(PREFIX, thread_of(Caller(tenant=caller[0], user=caller[1]), "plan"))
            for caller in (ALICE, BOB)
        }
        assert set(redis_client.keys(f"{PREFIX}*")) == {key.encode() for key in keys.values()}
        his = redis_client.hgetall(keys[BOB])
        archive(settings_of(signed))
        with opened(signed) as (_, store):
            held = store.find(Owner(*ALICE), "plan")
            assert held is not None
            store.delete(held.owner, held.id)
        receipt = prune(settings_of(signed)).purge
        (purged,) = receipt.conversations
        assert (purged.conversation_id, purged.thread_erased) == (str(held.id), True)
        assert (purged.messages, purged.requests) == (4, 2)
        assert not [key for key in redis_client.keys("*") if keys[ALICE].encode() in key]
        assert redis_client.hgetall(keys[BOB]) == his
        assert {row["thread_id"] for row in archived(signed)} == {thread_of_owner(Owner(*BOB), "plan")}
        # His pending question is still his.
        told = door.http.post("/api/chat", json={"thread_id": "plan", "message": "2"}, headers=as_caller(BOB))
        assert events_of(told.text)[-1][1]["answer"]["kind"] == "fact"


def test_pruning_keeps_what_signed_in_owners_need(place: Home, model: Model) -> None:
    signed = Home(place.folder, place.redis_url, {"JWT_SECRET": SECRET})
    with signed.door(model) as door:

        def ask(message: str, caller: tuple[str, str]) -> Any:
            body = {"thread_id": "plan", "message": message}
            return events_of(door.http.post("/api/chat", json=body, headers=as_caller(caller)).text)[-1][1]

        for caller in (ALICE, BOB):
            for message in (NARRATIVE, OTHER_FACT, VAGUE):
                ask(message, caller)
        receipt = prune(settings_of(signed), keep_turns=1, messages=True)
        assert receipt.threads.threads == 2
        assert receipt.threads.checkpoints > 0
        assert receipt.messages == 8
        for caller in (ALICE, BOB):
            assert ask("2", caller)["answer"]["kind"] == "fact"
            identity = conversation(door, "plan", headers=as_caller(caller))
            shown = door.http.get(f"/conversations/{identity}/messages", headers=as_caller(caller)).json()
            assert [row["role"] for row in shown["items"]] == ["USER", "ASSISTANT"] * 2
            window = door.http.get("/api/threads/plan/window", headers=as_caller(caller)).json()
            assert window["turns"] == 3


# --- deleting that was cut off ---


@pytest.mark.parametrize("is_done", [False, True], ids=["before the row is hidden", "after it"])
def test_a_name_whose_deletion_was_cut_off_starts_from_nothing(
    place: Home, model: Model, redis_client: redis.Redis, is_done: bool
) -> None:
    """Nobody deletes again, and the name is used for something new: nothing of the old one shows through."""

    def failing(kept: Any) -> Any:
        return FailsOnce(kept, "delete", lambda *_a, **_m: True, NOT_SAVED, is_done=is_done)

    with place.door(model, store=failing) as door:
        assert endings(door.ask(NARRATIVE, client_message_id="m1")) == ["done"]
        response = door.http.delete(f"/conversations/{conversation(door)}")
        assert response.status_code == 503
        for path in ("window", "requests", "checkpoints"):
            assert NARRATIVE not in door.http.get(f"/api/threads/t/{path}").text, path
        assert redis_client.keys("*") == []
        model.prompts.clear()
        done = door.ask(OTHER_NARRATIVE, client_message_id="m2")[-1][1]
        assert done["status"] == "completed"
        assert NARRATIVE not in model.shown()
        assert [record["question"] for record in door.records()] == [OTHER_NARRATIVE]
        assert [message["content"] for message in context(door)][:1] == [OTHER_NARRATIVE]
        assert forms(door) == ANSWERED * (1 if is_done else 2)


def test_nothing_begins_in_a_thread_that_is_being_deleted(
    place: Home, model: Model, redis_client: redis.Redis
) -> None:
    """A question sent between the erasing and the hiding is refused, or goes with the rest."""
    with place.door(model) as door:
        assert endings(door.ask(NARRATIVE)) == ["done"]
        erase, told = door.desk.erase, []

        def then_asked(thread_id: str) -> bool:
            existed = bool(erase(thread_id))
            if not told:
                told.append(door.post(OTHER_NARRATIVE).status_code)
            return existed

        store = door.desk._ledger.store
        hide = store.delete

        def asked_meanwhile(*args: Any) -> Any:
            told.append(door.post(FACT).status_code)
            return hide(*args)

        door.desk.erase, store.delete = then_asked, asked_meanwhile
        receipt = delete(door)
        assert told == [200, 409]
        assert receipt["hiddenMessages"] == 4
        door.wait_idle()
        # What slipped in between went with the second erasing, and nothing came after the hiding.
        assert rows(door) == []
        assert redis_client.keys("*") == []


# --- purging ---


@pytest.mark.parametrize("is_running", [False, True], ids=["it has answered", "it is answering"])
def test_a_purge_spares_a_conversation_that_begins_meanwhile(
    quick: Home, model: Model, monkeypatch: pytest.MonkeyPatch, is_running: bool
) -> None:
    """The name was free when the purge looked, and is taken before it erases."""
    with quick.door(model) as door:
        door.ask(NARRATIVE)
        delete(door)
        connection: list[Any] = []

        class Meanwhile(LeaseKeeper):
            def hold(self, *args: Any, **more: Any) -> Any:
                if not connection:
                    model.holds = is_running
                    connection.append(door.send_raw(OTHER_NARRATIVE))
                    read_until(connection[0], "event: token" if is_running else "event: done")
                return super().hold(*args, **more)

        monkeypatch.setattr("api.retention.LeaseKeeper", Meanwhile)
        with opened(quick) as (saver, store):
            receipt = purge_deleted(saver, store)
            assert (receipt.conversations, receipt.postponed) == ([], 1)
            model.holds = False
            model.go.set()
            read_rest(connection[0]) if is_running else connection[0].close()
            until(lambda: forms(door) == ANSWERED)
            door.wait_idle()
            assert [message["content"] for message in context(door)][:1] == [OTHER_NARRATIVE]
            later = purge_deleted(saver, store)
            (purged,) = later.conversations
            assert (purged.messages, purged.thread_erased, later.postponed) == (2, False, 0)
        assert agreed(door)
        assert door.ask(FACT)[-1][1]["status"] == "completed"


def test_a_conversation_is_deleted_and_purged_while_it_is_answered(
    quick: Home, model: Model, redis_client: redis.Redis
) -> None:
    """The worker goes on and saves what it has: nothing takes it."""
    model.holds = True
    with quick.door(model) as door:
        connection = door.send_raw(NARRATIVE, client_message_id="m1")
        read_until(connection, "event: token")
        archive(settings_of(quick))
        assert count(quick, "request_archive") == 1
        delete(door)
        (purged,) = prune(settings_of(quick)).purge.conversations
        assert (purged.messages, purged.requests) == (1, 1)
        model.holds = False
        model.go.set()
        assert '"code":"lease_lost"' in read_rest(connection)
        door.wait_idle()
        archive(settings_of(quick))
        assert redis_client.keys("*") == []
        tables = ("conversation", "message", "summary_version", "request_archive")
        assert [count(quick, table) for table in tables] == [0, 0, 0, 0]


@dataclass
class Summarising(Model):
    """Condenses too, and waits for `fold_go` before the first summary is whole."""

    folding: threading.Event = field(default_factory=threading.Event)
    fold_go: threading.Event = field(default_factory=threading.Event)
    folded: int = 0

    def stream(self, prompt: Prompt) -> Iterator[Generated]:
        if prompt.passages:
            yield from super().stream(prompt)
            return
        self.folding.set()
        self.fold_go.wait(WAIT_SECONDS)
        yield Generated(f"摘要{SECRET_WORD}")
        self.folded += 1


@pytest.mark.parametrize("is_purged", [False, True], ids=["deleted", "deleted and purged"])
def test_a_summary_that_comes_after_the_deletion_is_kept_nowhere(
    quick: Home, redis_client: redis.Redis, is_purged: bool
) -> None:
    model = Summarising()
    short = Home(quick.folder, quick.redis_url, {**AT_ONCE, "HISTORY_MAX_TURNS": "2"})
    with short.door(model) as door:
        for _ in range(2 + FOLD_AT_LEAST):
            assert door.ask(NARRATIVE)[-1][1]["status"] == "completed"
        assert model.folding.wait(WAIT_SECONDS)
        delete(door)
        if is_purged:
            prune(settings_of(short))
        model.fold_go.set()
        until(lambda: model.folded == 1)
        door.ask(NARRATIVE, "another")
    assert count(short, "summary_version") == 0
    with opened(short) as (_, store), store.database.read("test") as connection:
        assert connection.execute(text("SELECT summary FROM conversation")).scalars().all().count(None) >= 1
    files = [file.read_bytes() for file in short.folder.rglob("*") if file.is_file()]
    assert not [file for file in files if SECRET_WORD.encode() in file]
    assert redis_client.exists(context_key(PREFIX, "t")) == 0


# --- archiving ---


def record(number: int, thread: str, **changed: Any) -> dict[str, Any]:
    moment = "2026-09-14T17:00:00.000+08:00"
    return {
        "schema_version": 1, "request_id": f"{thread}-{number}", "thread_id": thread, "question": SECRET_WORD,
        "original_question": SECRET_WORD, "input_kind": "new_question", "received_at": moment,
        "started_at": moment, "finished_at": moment, "duration_ms": 1, "status": "completed",
        "degraded": False, "error_code": None, **changed,
    }  # fmt: skip


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"])
def test_the_archive_takes_nothing_that_was_purged_while_it_read(
    saver: RedisContextSaver, new_database: Callable[..., StoreConfig], backend: str
) -> None:
    """Read before the deletion and written after the purge: the words would stay for years."""
    with open_store(new_database(backend, deleted_days=0)) as store:
        question = Question("t-1", SECRET_WORD)
        held = store.save_question(ME, question, name="t", knowledge_base="default").conversation
        saver.put_request(record(1, "t"))
        saver.put_request(record(1, "other"))

        def erase_and_purge(*_progress: Any) -> None:
            if saver.list_requests("t"):
                saver.delete_thread("t")
                store.delete(ME, held.id)
                (purged,) = purge_deleted(saver, store).conversations
                assert purged.conversation_id == str(held.id)

        done = archive_requests(saver, store.database, now=store.now, progress=erase_and_purge)
        assert (done.read, done.written) == (2, 1)
        with store.database.read("test") as connection:
            found = connection.execute(text("SELECT request_id FROM request_archive")).scalars().all()
        assert found == ["other-1"]


def test_a_purge_waits_for_an_archive_that_is_writing(
    saver: RedisContextSaver, new_database: Callable[..., StoreConfig]
) -> None:
    """Between the look into Redis and the commit no purge can delete: its deleting comes after."""
    with open_store(new_database("postgresql", deleted_days=0)) as store:
        question = Question("t-1", SECRET_WORD)
        held = store.save_question(ME, question, name="t", knowledge_base="default").conversation
        saver.put_request(record(1, "t"))
        store.delete(ME, held.id)
        purging: list[threading.Thread] = []

        def then_purge(records: Any) -> set[str]:
            found = {each["request_id"] for each in records}
            purging.append(threading.Thread(target=lambda: purge_deleted(saver, store)))
            purging[0].start()
            until(lambda: not saver.list_requests("t"))  # its next act is to delete in SQL
            purging[0].join(1)  # time enough for that, if it could
            return found

        write_records(store.database, saver.list_requests("t"), store.now(), still_there=then_purge)
        purging[0].join(WAIT_SECONDS)
        with store.database.read("test") as connection:
            assert connection.execute(text("SELECT count(*) FROM request_archive")).scalar_one() == 0


def archive_until(place: Home, threads: int | None) -> None:
    """In a process of its own, which kills itself after so many threads."""

    def progress(done: int, _total: int, _what: str) -> None:
        if done == threads:
            os.kill(os.getpid(), signal.SIGKILL)

    with opened(place) as (saver, store):
        archive_requests(saver, store.database, now=store.now, progress=progress, batch=7)
    os._exit(0)


def test_archives_that_are_killed_and_run_at_once_lose_and_double_nothing(
    place: Home, saver: RedisContextSaver
) -> None:
    """Three are killed at different places, then two run at the same time, beside a request that ends."""
    names = {f"t{thread}": range(12) for thread in range(12)}
    for thread, numbers in names.items():
        for number in numbers:
            saver.put_request(record(number, thread))
    running = {"status": "running", "finished_at": None, "duration_ms": None}
    saver.put_request(record(99, "t0", **running))
    with opened(place):  # brings the tables about before several processes want them
        pass

    def start(threads: int | None) -> Any:
        child = multiprocessing.get_context("fork").Process(target=archive_until, args=(place, threads))
        child.start()
        return child

    before = 0
    for threads in (3, 5, 9):
        child = start(threads)
        child.join(WAIT_SECONDS)
        assert child.exitcode == -signal.SIGKILL
        found = len(archived(place))
        assert before <= found < 145
        before = found
    assert before > 0
    both = [start(None), start(None)]
    saver.put_request(record(99, "t0"))
    for child in both:
        child.join(WAIT_SECONDS)
        assert child.exitcode == 0
    archive(settings_of(place))
    rows_kept = archived(place)
    sent = {f"{thread}-{number}" for thread, numbers in names.items() for number in numbers} | {"t0-99"}
    assert sorted(row["request_id"] for row in rows_kept) == sorted(sent)
    assert {row["status"] for row in rows_kept} == {"completed"}


def test_no_record_is_pruned_that_the_archive_does_not_have_as_it_is(
    place: Home, saver: RedisContextSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended, or came, after the archive had been brought up."""
    old = datetime.now(UTC) - timedelta(days=9)
    monkeypatch.setattr("api.retention.archive_requests", lambda *_a, **_m: None)
    saver.put_request(record(1, "t", received_at=shanghai_time(old)))
    receipt = prune(settings_of(place), older_than_days=5, records=True)
    assert receipt.threads.records == 1
    assert saver.list_requests("t") == []
    assert [row["request_id"] for row in archived(place)] == ["t-1"]


# --- pruning ---


def test_pruning_beside_a_turn_that_runs(place: Home, model: Model) -> None:
    with place.door(model) as door:
        for message in (FACT, NARRATIVE, OTHER_FACT):
            door.ask(message)
        model.holds = True
        connection = door.send_raw(OTHER_NARRATIVE)
        read_until(connection, "event: token")
        for _ in range(2):
            receipt = prune(settings_of(place), keep_turns=1, records=True, messages=True)
        assert receipt.threads.checkpoints == 0  # the second one finds nothing more
        model.holds = False
        model.go.set()
        assert '"status":"completed"' in read_rest(connection)
        door.wait_idle()
        asked = [m["content"] for m in context(door) if m["role"] == "user"]
        assert asked == [FACT, NARRATIVE, OTHER_FACT, OTHER_NARRATIVE]
        assert forms(door) == ANSWERED
        assert door.ask(FACT)[-1][1]["status"] == "completed"


@pytest.mark.parametrize("way_out", ["/retry", "/discard"])
def test_pruning_leaves_an_unfinished_turn_as_it_is(place: Home, model: Model, way_out: str) -> None:
    """However often something else was tried since: the turn is not the newest request."""
    with place.door(model) as door:
        for message in (FACT, OTHER_FACT):
            door.ask(message)
        model.faults = ["error"]
        assert door.ask(NARRATIVE)[-1][1]["status"] == "failed"
        for message in (FACT, "你好"):
            assert door.ask(message)[-1][1]["error_code"] == "unfinished_turn"
        receipt = prune(settings_of(place), keep_turns=1, messages=True)
        assert receipt.threads.checkpoints > 0
        done = door.ask(way_out)[-1][1]
        assert done["status"] == "completed"
        assert done["original_question"] == NARRATIVE
        asked = [m["content"] for m in context(door) if m["role"] == "user"]
        assert asked == [FACT, OTHER_FACT, *([NARRATIVE] if way_out == "/retry" else [])]


def test_pruning_leaves_every_branch_its_newest_turn(place: Home, model: Model) -> None:
    with place.door(model) as door:
        for message in (FACT, NARRATIVE, OTHER_FACT):
            door.ask(message)
        steps = door.http.get("/api/threads/t/checkpoints?limit=200").json()["items"]
        ends = {step["original_question"]: step["checkpoint_id"] for step in steps if not step["next"]}
        graph = door.app.state.assistant.graph
        at: Any = {"configurable": {"thread_id": "t", "checkpoint_id": ends[FACT]}}
        asked = {"request": {"text": OTHER_NARRATIVE, "received_at": door.app.state.assistant.clock()}}
        graph.invoke(asked, at, context=RequestContext(NOBODY), durability="sync")
        prune(settings_of(place), keep_turns=1)
        # The branch that was left goes on from its end, under a name of its own.
        body = {"checkpoint_id": ends[OTHER_FACT], "new_thread_id": "left"}
        forked = door.http.post("/api/threads/t/fork", json=body)
        assert (forked.status_code, forked.json()["turns_in_window"]) == (201, 3)
        assert door.ask(FACT, "left")[-1][1]["status"] == "completed"
        # What was pruned is not there.
        gone = door.http.post("/api/threads/t/fork", json={"checkpoint_id": ends[NARRATIVE]})
        assert (gone.status_code, gone.json()["code"]) == (404, "not_found")
        # And the head is that of the fork.
        assert door.ask(VAGUE)[-1][1]["status"] == "needs_input"
        asked_there = [m["content"] for m in context(door) if m["role"] == "user"]
        assert asked_there == [FACT, OTHER_NARRATIVE]


def test_pruning_by_age_takes_replaced_summaries_and_leaves_the_one_in_use(
    new_database: Callable[..., StoreConfig],
) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with open_store(new_database("sqlite"), now=lambda: now) as store:
        for number in range(3 + 3 * FOLD_AT_LEAST):
            request_id = f"r{number}"
            question = Question(request_id, f"第{number}问")
            held = store.save_question(ME, question, name="c", knowledge_base="default").conversation
            store.save_reply(ME, held.id, request_id, Reply("答"))
            fold(store, held, window_turns=3, may_see=lambda _keys: True, summarise=lambda _work: SECRET_WORD)
            now += timedelta(days=1)
        used = summary_for(store, held, lambda _keys: True)
        assert used is not None
        assert used.version == 3
        rows_before = len(list(store.walk_messages(ME, held.id)))
        gone = prune_messages(store, before=now + timedelta(days=1))
        assert len(list(store.walk_messages(ME, held.id))) == 2
        assert gone == rows_before - 2 + 2  # and two summaries
        assert summary_for(store, held, lambda _keys: True) == used
        with store.database.read("test") as connection:
            versions = connection.execute(text("SELECT version FROM summary_version")).scalars().all()
        assert versions == [3]


# --- receipts ---


def test_receipts_name_what_is_gone_and_tell_no_words(quick: Home, model: Model) -> None:
    with quick.door(model) as door:
        for name in ("one", "two", "three"):
            door.ask(f"{NARRATIVE}（{SECRET_WORD}）", name)
            door.ask(FACT, name)
        archive(settings_of(quick))
        deleted = {conversation(door, name): delete(door, name) for name in ("one", "two")}
    for identity, told in deleted.items():
        assert (told["conversationId"], told["hiddenMessages"], told["threadErased"]) == (identity, 4, True)
        assert told["purgeAfter"] >= told["deletedAt"]
    before = {table: count(quick, table) for table in ("conversation", "message", "request_archive")}
    receipt = prune(settings_of(quick)).to_json()["purge"]
    after = {table: count(quick, table) for table in before}
    named = {each["conversation_id"]: each for each in receipt["conversations"]}
    assert named.keys() == deleted.keys()
    gone = {table: before[table] - after[table] for table in before}
    assert gone == {
        "conversation": len(named),
        "message": sum(each["messages"] for each in named.values()),
        "request_archive": sum(each["requests"] for each in named.values()),
    }
    assert gone["message"] == 8
    assert SECRET_WORD not in json.dumps([*deleted.values(), receipt], ensure_ascii=False)
    assert prune(settings_of(quick)).purge.conversations == []
