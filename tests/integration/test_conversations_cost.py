"""Saving a turn at a PostgreSQL server: round trips, counted on the wire, and what a lost one leaves."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from door import until
from relay import Proxy
from sqlalchemy import text

from checkpoint.conversations import at_once
from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.errors import StoreRevisionError, StoreUnavailable
from checkpoint.conversations.prepared import Prepared
from checkpoint.conversations.rows import Owner, Question, Reply, Saved, StoredMessage
from checkpoint.conversations.sent import NUMBERED, Kept
from checkpoint.conversations.store import ConversationStore, open_store

ME = Owner("t1", "u1")
SOCKET = ".s.PGSQL.5432"


@pytest.fixture
def relay(postgres: Any) -> Iterator[Proxy]:
    folder = Path(tempfile.mkdtemp(prefix="ba-"))
    made = Proxy(folder, f"unix://{postgres.folder / SOCKET}")
    (folder / SOCKET).symlink_to(made.path)  # clients look for a name of their own in the folder
    yield made
    made.close()
    shutil.rmtree(folder)


@pytest.fixture
def store(
    relay: Proxy, postgres: Any, new_database: Callable[..., StoreConfig]
) -> Iterator[ConversationStore]:
    """Behind the relay, with one connection."""
    config = new_database("postgresql", pool_size=1)
    assert config.url
    behind = config.url.replace(str(postgres.folder), str(relay.path.parent))
    with open_store(replace(config, url=behind)) as opened:
        yield opened


def ask(store: ConversationStore, name: str, **more: Any) -> Saved:
    question = Question(str(uuid4()), "创业补贴有多少？", more.pop("client", None), "trace")
    return store.save_question(
        ME, question, name=name, knowledge_base="default", only_when_settled=True, **more
    )


def answer(store: ConversationStore, saved: Saved, *, is_as_asked: bool = True) -> StoredMessage:
    reply = Reply("答。", sources=[{"n": 1}], standalone_question="全问", is_as_asked=is_as_asked)
    return store.save_reply(ME, saved.conversation.id, saved.message.request_id or "", reply)


def take_turn(store: ConversationStore, name: str, *, is_as_asked: bool = True, **more: Any) -> Saved:
    saved = ask(store, name, **more)
    answer(store, saved, is_as_asked=is_as_asked)
    return saved


def roles(store: ConversationStore, saved: Saved) -> list[str]:
    return [row.role for row in store.walk_messages(ME, saved.conversation.id)]


def test_a_turn_is_two_round_trips(store: ConversationStore, relay: Proxy) -> None:
    """Its cost beside a turn's is measured by `scripts.bench store`."""
    known = {"conversation_id": take_turn(store, "c").conversation.id}
    ways: list[tuple[str, dict[str, Any], int]] = [
        ("c", {}, 2),
        ("c", {"client": "m"}, 2),
        ("c", known, 2),
        ("c", {"is_as_asked": False}, 2),
        ("first of its name", {}, 3),
    ]
    for prefix in ("planned once, ", ""):
        for name, more, trips in ways:
            of_way = {key: prefix + value if key == "client" else value for key, value in more.items()}
            relay.reset()
            take_turn(store, name if name == "c" else prefix + name, **of_way)
            assert prefix or relay.round_trips == trips, more


def test_a_save_whose_reply_is_lost_is_kept_once(
    store: ConversationStore, relay: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    take_turn(store, "c")
    relay.cut_replies = 1
    saved = ask(store, "c")
    assert relay.cut_replies == 0
    assert roles(store, saved) == ["USER", "ASSISTANT", "USER"]
    relay.cut_replies = 1
    assert answer(store, saved).sequence_no == 4
    assert relay.cut_replies == 0
    assert roles(store, saved) == ["USER", "ASSISTANT", "USER", "ASSISTANT"]
    assert not caplog.records  # the pool is told, and does not find out by a fault of its own


def test_an_answer_is_on_its_way_while_other_work_is_done(store: ConversationStore, relay: Proxy) -> None:
    saved = take_turn(store, "c")
    for is_awaited in (True, False):
        saved = ask(store, "c")
        relay.reset()
        with saving(store, saved) as call:
            until(lambda: relay.received > 0)  # the server has done it, and nobody has waited
            kept = call() if is_awaited else None
        assert relay.round_trips == 1
        assert roles(store, saved)[-1] == "ASSISTANT"
        assert kept is None or kept.sequence_no == 4
    assert take_turn(store, "c").message.sequence_no == 7


def saving(store: ConversationStore, saved: Saved) -> Any:
    request_id = saved.message.request_id or ""
    return store.saving_reply(ME, saved.conversation.id, request_id, Reply("答。", is_as_asked=True))


def test_no_answer_on_its_way_keeps_a_connection_that_others_need(
    new_database: Callable[..., StoreConfig],
) -> None:
    with (
        open_store(new_database("postgresql", pool_size=3, timeout_seconds=0.2)) as store,
        ExitStack() as stack,
    ):
        asked = [ask(store, f"c{number}") for number in range(4)]
        calls = [stack.enter_context(saving(store, saved)) for saved in asked]
        assert store.database.engine.pool.checkedout() == 2  # type: ignore[attr-defined]
        assert [call().sequence_no for call in reversed(calls)] == [2, 2, 2, 2]
        assert store.database.engine.pool.checkedout() == 0  # type: ignore[attr-defined]


def test_what_cannot_be_sent_is_said_by_the_call_and_not_before(store: ConversationStore) -> None:
    saved = ask(store, "c")
    rename(store, "message", "gone")
    with saving(store, saved) as call:
        pass
    with saving(store, saved) as call, pytest.raises(StoreRevisionError):
        call()
    rename(store, "gone", "message")
    with saving(store, saved) as call:
        assert call().sequence_no == 2


def test_a_server_that_forgot_a_statement_is_told_it_again(store: ConversationStore, relay: Proxy) -> None:
    take_turn(store, "c")
    with store.database.read("test") as connection:
        connection.execute(text("DEALLOCATE ALL"))
    relay.reset()
    saved = take_turn(store, "c")
    assert relay.round_trips == 5  # unknown, made known, run; of the second no more is believed known
    assert roles(store, saved) == ["USER", "ASSISTANT"] * 2
    relay.reset()
    take_turn(store, "c")
    assert relay.round_trips == 2


def test_a_pooler_that_keeps_no_statements_is_named(
    store: ConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Kept, "_prepare", lambda _kept, _prepared: b"on another connection")
    with pytest.raises(StoreUnavailable, match="max_prepared_statements"):
        ask(store, "c")
    monkeypatch.undo()
    assert take_turn(store, "c").message.sequence_no == 1


@pytest.mark.parametrize("statement", [at_once.QUESTION_BY_ID, at_once.REPLY, at_once.REPLY_AS_ASKED])
def test_a_save_finds_its_conversation_by_its_id_on_a_server_that_counted_nothing_yet(
    store: ConversationStore, statement: Prepared
) -> None:
    plan = generic_plan(store, statement)
    assert "conversation_pk" in plan
    assert "conversation_name_uk" not in plan


def generic_plan(store: ConversationStore, statement: Prepared) -> str:
    """As it is kept for a connection: without a look at the values."""
    known = statement.on(NUMBERED)
    values = ", ".join(["NULL"] * len(known.order or ()))
    with store.database.read("test") as connection:
        for setting in ("plan_cache_mode = force_generic_plan", "enable_seqscan = off"):
            connection.execute(text(f"SET LOCAL {setting}"))
        connection.exec_driver_sql(f"PREPARE planned AS {known.text}")
        rows = connection.exec_driver_sql(f"EXPLAIN EXECUTE planned({values})").fetchall()
        connection.exec_driver_sql("DEALLOCATE planned")
        return "\n".join(row[0] for row in rows)


def test_after_a_save_its_connection_has_transactions_again(store: ConversationStore) -> None:
    saved = take_turn(store, "c")
    assert is_undone(store, saved)
    rename(store, "message", "gone")
    with pytest.raises(StoreRevisionError):
        ask(store, "c")
    assert is_undone(store, saved)


def rename(store: ConversationStore, table: str, name: str) -> None:
    with store.database.write("test") as connection:
        connection.execute(text(f"ALTER TABLE {table} RENAME TO {name}"))


def is_undone(store: ConversationStore, saved: Saved) -> bool:
    with pytest.raises(KeyError):
        leave_in_the_middle(store)
    return store.get(ME, saved.conversation.id).title == saved.conversation.title


def leave_in_the_middle(store: ConversationStore) -> None:
    with store.database.write("test") as connection:
        connection.execute(text("UPDATE conversation SET title = 'half'"))
        raise KeyError
