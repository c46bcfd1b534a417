"""Saves on PostgreSQL that wait for another writer's transaction go on from what it left, not from before.

The writer is a transaction that is held open here until the save waits for it, so nothing is left to chance.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, text

from checkpoint.conversations import saving
from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.errors import ConversationNotFoundError, ConversationStoreError, UnsettledError
from checkpoint.conversations.rows import Owner, Place, Question, Reply, Saved, Stamp
from checkpoint.conversations.store import ConversationStore, open_store

ME = Owner("t1", "u1")
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


@pytest.fixture
def store(new_database: Callable[..., StoreConfig]) -> Iterator[ConversationStore]:
    with open_store(new_database("postgresql", timeout_seconds=30)) as opened:
        yield opened


def ask(store: ConversationStore, words: str, request_id: str, client: str | None = None) -> Saved:
    question = Question(request_id, words, client)
    return store.save_question(ME, question, name="c", knowledge_base="default", only_when_settled=True)


def answer(store: ConversationStore, saved: Saved, request_id: str) -> int:
    reply = Reply("答。", standalone_question="全问")
    return store.save_reply(ME, saved.conversation.id, request_id, reply).sequence_no


@contextmanager
def writer_that_is_waited_for(store: ConversationStore, save: Callable[[], Any]) -> Iterator[Connection]:
    """A transaction in which the block writes, committed once `save` waits for it. Then `save` has ended."""
    thread = threading.Thread(target=save)
    with store.database.write("the other writer") as connection:
        yield connection
        thread.start()
        while not waits(store):
            assert thread.is_alive()
            time.sleep(0.005)
    thread.join()


def waits(store: ConversationStore) -> bool:
    with store.database.read("watching") as connection:
        return bool(connection.execute(text(WAITING)).scalar_one())


def noted(results: list[Any], save: Callable[[], Any]) -> Callable[[], None]:
    def run() -> None:
        try:
            results.append(save())
        except ConversationStoreError as error:
            results.append(error)

    return run


def ask_within(store: ConversationStore, connection: Connection, question: Question) -> None:
    stamp, place = Stamp(store.new_id(), store.now()), Place("c", "default")
    held = saving.hold_for_question(connection, ME, place, question, stamp)
    saving.save_question(connection, held, question, Stamp(store.new_id(), stamp.at), only_when_settled=False)


def test_a_question_sees_the_one_that_was_saved_while_it_waited(store: ConversationStore) -> None:
    answer(store, ask(store, "一", "r1"), "r1")
    results: list[Any] = []
    with writer_that_is_waited_for(store, noted(results, lambda: ask(store, "三", "r3"))) as connection:
        ask_within(store, connection, Question("r2", "二"))
    assert [type(each) for each in results] == [UnsettledError]


def test_a_question_sees_the_failed_one_that_is_asked_again_while_it_waited(store: ConversationStore) -> None:
    """That adds no row, so no number is in its way."""
    saved = ask(store, "一", "r1", client="m1")
    assert store.mark_failed(ME, saved.conversation.id, "r1")
    results: list[Any] = []
    with writer_that_is_waited_for(store, noted(results, lambda: ask(store, "三", "r3"))) as connection:
        ask_within(store, connection, Question("r2", "一", "m1"))
    assert [type(each) for each in results] == [UnsettledError]


def test_a_client_message_that_came_while_it_waited_is_the_same_row(store: ConversationStore) -> None:
    answer(store, ask(store, "一", "r1"), "r1")
    results: list[Any] = []
    with writer_that_is_waited_for(store, noted(results, lambda: ask(store, "二", "r2", "m2"))) as connection:
        ask_within(store, connection, Question("r2", "二", "m2"))
    (saved,) = results
    assert [row.sequence_no for row in store.walk_messages(ME, saved.conversation.id)] == [1, 2, 3]
    assert saved.message.sequence_no == 3


def test_an_answer_gets_the_number_after_the_message_that_was_saved_while_it_waited(
    store: ConversationStore,
) -> None:
    saved = ask(store, "一", "r1")
    results: list[Any] = []
    with writer_that_is_waited_for(store, noted(results, lambda: answer(store, saved, "r1"))) as connection:
        ask_within(store, connection, Question("r2", "二"))
    assert results == [3]
    first = next(store.walk_messages(ME, saved.conversation.id))
    assert first.standalone_question == "全问"


def test_an_answer_that_was_saved_while_it_waited_stays(store: ConversationStore) -> None:
    saved = ask(store, "一", "r1")
    results: list[Any] = []
    with writer_that_is_waited_for(store, noted(results, lambda: answer(store, saved, "r1"))) as connection:
        saving.hold(connection, ME, saved.conversation.id, store.now())
        stamp = Stamp(store.new_id(), store.now())
        saving.save_reply(connection, saved.conversation.id, "r1", Reply("先", is_as_asked=True), stamp)
    assert results == [2]
    rows = list(store.walk_messages(ME, saved.conversation.id))
    assert [(row.content, row.standalone_question) for row in rows] == [("一", "一"), ("先", None)]


def test_nothing_is_saved_in_a_conversation_that_was_deleted_while_it_waited(
    store: ConversationStore,
) -> None:
    saved = ask(store, "一", "r1")
    results: list[Any] = []
    with writer_that_is_waited_for(store, noted(results, lambda: answer(store, saved, "r1"))) as connection:
        saving.touch(connection, ME, saved.conversation.id, store.now(), status="DELETED")
    assert [type(each) for each in results] == [ConversationNotFoundError]
