"""Purge and prune: what goes, what stays, and that nothing of it can be found afterwards."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from door import Door, open_door
from sqlalchemy import text

from api.retention import archive, prune, stats
from checkpoint import RedisContextSaver
from checkpoint.archive import write_records
from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.erasure import prune_messages, purge
from checkpoint.conversations.errors import ConversationNotFoundError
from checkpoint.conversations.forking import Cut, fork_conversation
from checkpoint.conversations.rows import Owner, Question, Reply
from checkpoint.conversations.store import ConversationStore, open_store
from graph.compose import open_assistant
from graph.settings import Settings, load_settings

ME = Owner("local", "local")
MARK = "标记XQZ7"
QUESTION = f"创业补贴有多少？（{MARK}）"
FACT = "云帆科技2023年的营业收入是多少？"
VAGUE = "云帆2023年营业收入是多少？"
START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.at = START

    def __call__(self) -> datetime:
        return self.at

    def pass_days(self, days: float) -> None:
        self.at += timedelta(days=days)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(store_config: StoreConfig, clock: Clock) -> Iterator[ConversationStore]:
    with open_store(store_config, now=clock) as opened:
        yield opened


def talk(
    store: ConversationStore, request_id: str, words: str = "问", name: str = "c", owner: Owner = ME
) -> Any:
    saved = store.save_question(owner, Question(request_id, words), name=name, knowledge_base="default")
    store.save_reply(owner, saved.conversation.id, request_id, Reply("答"))
    return saved.conversation


def record(request_id: str, thread: str, at: datetime) -> Any:
    from checkpoint.requests import shanghai_time

    moment = shanghai_time(at)
    return {
        "schema_version": 1, "request_id": request_id, "thread_id": thread, "question": "问",
        "original_question": "问", "input_kind": "new_question", "received_at": moment, "started_at": moment,
        "finished_at": moment, "duration_ms": 1, "status": "completed", "degraded": False, "error_code": None,
    }  # fmt: skip


def run_purge(store: ConversationStore, erased: list[str] | None = None) -> Any:
    erased = [] if erased is None else erased

    def erase(thread_id: str) -> bool:
        erased.append(thread_id)
        return True

    return purge(store, thread_of=lambda _owner, name: name, erase_thread=erase)


def count(store: ConversationStore, table: str) -> int:
    with store.database.read("test") as connection:
        return connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()  # noqa: S608


def test_rows_go_when_their_time_has_come_and_the_receipt_names_them(
    timed: ConversationStore, clock: Clock
) -> None:
    gone, kept = talk(timed, "r1"), talk(timed, "r2", name="d")
    write_records(timed.database, [record("r1", "c", START), record("r2", "d", START)], START)
    timed.delete(ME, gone.id)
    clock.pass_days(29)
    assert run_purge(timed).conversations == []
    clock.pass_days(1)
    erased: list[str] = []
    receipt = run_purge(timed, erased).to_json()
    assert receipt["conversations"] == [
        {
            "conversation_id": str(gone.id), "messages": 2, "summaries": 0, "requests": 1,
            "thread_erased": True,
        }
    ]  # fmt: skip
    assert erased == ["c"]
    assert [count(timed, table) for table in ("conversation", "message", "request_archive")] == [1, 2, 1]
    assert timed.get(ME, kept.id)
    assert run_purge(timed).conversations == []


def test_the_newer_conversation_of_a_name_keeps_its_thread_and_records(
    timed: ConversationStore, clock: Clock
) -> None:
    old = talk(timed, "r1")
    timed.delete(ME, old.id)
    clock.pass_days(1)
    talk(timed, "r2")
    write_records(timed.database, [record("r1", "c", START), record("r2", "c", clock())], START)
    clock.pass_days(29)
    erased: list[str] = []
    (purged,) = run_purge(timed, erased).conversations
    assert (purged.requests, purged.thread_erased, erased) == (1, False, [])
    with timed.database.read("test") as connection:
        assert connection.execute(text("SELECT request_id FROM request_archive")).scalars().all() == ["r2"]


def test_a_rehearsed_deletion_leaves_everything_as_it_was(timed: ConversationStore) -> None:
    held = timed.archive(ME, talk(timed, "r1").id)
    timed.rehearse_delete(ME, held.id)
    assert timed.get(ME, held.id) == held
    assert count(timed, "audit") == 0
    with pytest.raises(ConversationNotFoundError):
        timed.rehearse_delete(Owner("local", "another"), held.id)


def test_purging_a_fork_leaves_the_records_of_what_it_was_copied_from(
    timed: ConversationStore, clock: Clock
) -> None:
    source = talk(timed, "r1")
    fork = fork_conversation(timed, source, "fork", Cut("r1", is_answered=True, at=START))
    write_records(timed.database, [record("r1", "c", START), record("r2", "fork", START)], START)
    timed.delete(ME, fork.id)
    clock.pass_days(30)
    (purged,) = run_purge(timed).conversations
    assert (purged.messages, purged.requests) == (2, 1)
    with timed.database.read("test") as connection:
        assert connection.execute(text("SELECT request_id FROM request_archive")).scalars().all() == ["r1"]


def test_audit_archive_and_logs_have_times_of_their_own(
    timed: ConversationStore, clock: Clock, tmp_path: Path
) -> None:
    talk(timed, "r1")
    timed.record(ME, "list")
    write_records(timed.database, [record("r1", "c", START)], START)
    logs = timed.config.home / "logs"
    logs.mkdir(parents=True)
    for name, day in (("old.log", 0), ("new.log", 360)):
        (logs / name).write_text("x")
        at = (START + timedelta(days=day)).timestamp()
        os.utime(logs / name, (at, at))
    clock.pass_days(364)
    receipt = run_purge(timed)
    assert (receipt.audit_rows, receipt.archive_rows, receipt.log_files) == (0, 0, 1)
    assert [file.name for file in logs.iterdir()] == ["new.log"]
    clock.pass_days(2)
    assert run_purge(timed).audit_rows == 1
    clock.pass_days(1095)
    assert run_purge(timed).archive_rows == 1
    assert count(timed, "message") == 2


def test_old_messages_go_in_whole_turns_and_the_newest_stays(timed: ConversationStore, clock: Clock) -> None:
    held = talk(timed, "r1")
    clock.pass_days(10)
    timed.save_question(ME, Question("r2", "问"), name="c", knowledge_base="default")
    clock.pass_days(10)
    timed.save_reply(ME, held.id, "r2", Reply("晚到的答"))
    other = talk(timed, "r3", name="d")
    clock.pass_days(100)
    assert prune_messages(timed, before=START + timedelta(days=15)) == 2
    assert [row.sequence_no for row in timed.walk_messages(ME, held.id)] == [3, 4]
    assert prune_messages(timed, before=clock()) == 0  # the newest turn of each stays
    assert len(list(timed.walk_messages(ME, other.id))) == 2
    for number in range(4, 9):
        talk(timed, f"r{number}")
    assert prune_messages(timed, keep_turns=2) == 8
    rows = list(timed.walk_messages(ME, held.id))
    assert [row.request_id for row in rows] == ["r7", "r7", "r8", "r8"]
    assert talk(timed, "r9")
    assert list(timed.walk_messages(ME, held.id))[-1].sequence_no == rows[-1].sequence_no + 2


def test_the_files_hold_nothing_of_what_was_purged_while_the_store_is_open(
    new_database: Callable[..., StoreConfig], clock: Clock
) -> None:
    config = new_database("sqlite")
    with open_store(config, now=clock) as store:
        gone = talk(store, "r1", QUESTION)
        assert places_with(MARK, config.home)
        store.delete(ME, gone.id)
        clock.pass_days(30)
        run_purge(store)
        assert places_with(MARK, config.home) == []


def test_a_purge_beside_a_long_reader_says_that_the_bytes_are_still_there(
    new_database: Callable[..., StoreConfig], clock: Clock
) -> None:
    config = new_database("sqlite", timeout_seconds=0.1)
    with open_store(config, now=clock) as store:
        store.delete(ME, talk(store, "r1", QUESTION).id)
        clock.pass_days(30)
        with store.database.read("a long reading") as connection:
            connection.execute(text("SELECT count(*) FROM message"))
            assert run_purge(store).is_overwritten is False
            assert places_with(MARK, config.home)
        assert run_purge(store).is_overwritten is True
        assert places_with(MARK, config.home) == []


# --- the whole service ---


@contextmanager
def serving(settings: Settings) -> Iterator[Door]:
    with (
        open_store(settings.conversations) as store,
        open_assistant(settings) as assistant,
        open_door(assistant, store=store) as door,
    ):
        yield door
        door.wait_idle()


def settings_of(home: Path, **env: str) -> Settings:
    return load_settings({"BUSINESS_ASSISTANT_HOME": str(home), **env})


def places_with(mark: str, folder: Path) -> list[str]:
    """Files below the folder that hold the mark, as text or as JSON writes it."""
    forms = [mark.encode(), mark.encode("unicode_escape"), mark.encode("utf-16-le")]
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file.name for file in files if any(form in file.read_bytes() for form in forms)]


def test_nothing_of_a_deleted_conversation_can_be_found_after_the_purge(
    sample_home: Path, short_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    import shutil

    home = short_folder / "erasing"
    shutil.copytree(sample_home, home)
    settings = settings_of(home, RETAIN_DELETED_DAYS="0")
    with RedisContextSaver(settings.context):  # keeps the embedded server up over the steps
        with serving(settings) as door:
            door.ask(QUESTION, "erasing")
            door.ask("谢谢", "erasing")
            (held,) = door.http.get("/conversations").json()["items"]
            door.http.get(f"/conversations/{held['id']}/export")
            archive(settings)
            assert places_with(MARK, home)
            assert door.http.delete(f"/conversations/{held['id']}").status_code == 200
            door.wait_idle()
        receipt = prune(settings)
        (purged,) = receipt.purge.conversations
        assert (purged.conversation_id, purged.messages, purged.requests) == (held["id"], 4, 2)
        with RedisContextSaver(settings.context) as saver:
            client = saver.wire.client
            assert client.keys("*") == []
            deadline = datetime.now(UTC) + timedelta(seconds=120)
            while places_with(MARK, home) and datetime.now(UTC) < deadline:
                client.ping()  # the server removes its old files in the background
        assert places_with(MARK, home) == []
    told = capfd.readouterr()
    assert MARK not in told.out + told.err


def test_pruning_breaks_no_pending_question_and_keeps_what_is_recent(home: Path, redis_url: str) -> None:
    settings = settings_of(home, REDIS_URL=redis_url)
    with serving(settings) as door:
        for _ in range(3):
            door.ask(FACT, "a")
        door.ask(VAGUE, "a")
        before = steps(settings, "a")
        assert prune(settings, older_than_days=1).threads.checkpoints == 0
        receipt = prune(settings, keep_turns=1)
        assert receipt.threads.checkpoints > 0
        assert steps(settings, "a") < before
        done = door.ask("1", "a")[-1][1]
        assert (done["status"], done["answer"]["kind"]) == ("completed", "fact")
        window = door.http.get("/api/threads/a/window").json()
        assert window["turns"] == 4


def steps(settings: Settings, thread: str) -> int:
    with RedisContextSaver(settings.context) as saver:
        return len(list(saver.list({"configurable": {"thread_id": thread}})))


def test_records_go_only_after_they_are_archived_and_counts_stay(home: Path, redis_url: str) -> None:
    settings = settings_of(home, REDIS_URL=redis_url)
    with RedisContextSaver(settings.context) as saver:
        long_ago = datetime.now(UTC) - timedelta(days=10)
        saver.put_request(record("old", "t", long_ago))
        saver.put_request(record("new", "t", datetime.now(UTC)))
        saver.put_request({**record("running", "t", long_ago), "status": "running", "finished_at": None})
        receipt = prune(settings, older_than_days=5, records=True)
        assert receipt.threads.records == 1
        assert [each["request_id"] for each in saver.list_requests("t")] == ["running", "new"]
    assert receipt.archived_before is not None
    assert receipt.archived_before.written == 3
    assert sum(day.questions for day in stats(settings)) == 3
    assert receipt.to_json()["threads"]["records"] == 1


def test_a_deletion_that_was_cut_off_before_redis_is_finished_by_the_purge(
    home: Path, redis_url: str
) -> None:
    settings = settings_of(home, REDIS_URL=redis_url, RETAIN_DELETED_DAYS="0")
    with serving(settings) as door:
        door.ask(FACT, "a")
    with open_store(settings.conversations) as store:
        held = store.find(ME, "a")
        assert held is not None
        store.delete(ME, held.id)
    prune(settings)
    with redis.Redis.from_url(redis_url) as client:
        assert client.keys("*") == []
