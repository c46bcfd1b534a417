"""What the conversation store promises, on SQLite and on PostgreSQL alike."""

import multiprocessing
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import inspect, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError

from checkpoint.conversations import statements
from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.errors import (
    BadCursorError,
    ConversationNotFoundError,
    ConversationStoreError,
    MessageIdReusedError,
    MessageNotFoundError,
    NameTakenError,
    StoreFullError,
    StoreReadOnlyError,
    StoreRevisionError,
    StoreUnavailable,
    UnsettledError,
)
from checkpoint.conversations.rows import Conversation, Owner, Page, Question, Reply, Saved
from checkpoint.conversations.store import ConversationStore, open_store

ME = Owner("t1", "u1")
OTHERS = [Owner("t1", "u2"), Owner("t2", "u1"), Owner("", ""), Owner("t1", "")]


def ask(
    store: ConversationStore, words: str, name: str = "c", request_id: str | None = None, **more
) -> Saved:
    owner = more.pop("owner", ME)
    client = more.pop("client", None)
    question = Question(request_id or str(uuid4()), words, client, "trace")
    return store.save_question(owner, question, name=name, knowledge_base="default", **more)


def answer(store: ConversationStore, saved: Saved, words: str = "答。", **more):
    return store.save_reply(
        saved.conversation.owner, saved.conversation.id, saved.message.request_id, Reply(words, **more)
    )


def rows(store: ConversationStore, conversation: Conversation):
    return list(store.walk_messages(conversation.owner, conversation.id))


# --- order and once ---


def test_the_question_is_saved_first_and_the_answer_once(store: ConversationStore) -> None:
    saved = ask(store, "创业补贴有哪些？")
    assert [(row.role, row.content) for row in rows(store, saved.conversation)] == [
        ("USER", "创业补贴有哪些？")
    ]
    source = {"label": "C1", "document_id": "d", "version": "1", "passage": "原文"}
    usage = {"model": "m", "prompt_tokens": 10, "completion_tokens": 2}
    first = answer(store, saved, "答[C1]。", sources=[source], standalone_question="全问", **usage)
    again = answer(store, saved, "另一个")
    assert again == first
    found = rows(store, saved.conversation)
    assert [(row.sequence_no, row.role, row.status) for row in found] == [
        (1, "USER", "COMPLETE"),
        (2, "ASSISTANT", "COMPLETE"),
    ]
    assert (found[1].sources, found[1].model, found[1].prompt_tokens) == ([source], "m", 10)
    assert found[0].standalone_question == "全问"
    assert found[0].trace_id == "trace"


def test_saving_the_same_question_again_is_the_same_row(store: ConversationStore) -> None:
    saved = ask(store, "问", request_id="r1", client="m1")
    assert ask(store, "问", request_id="r1", client="m1").message == saved.message
    assert len(rows(store, saved.conversation)) == 1


def test_a_client_message_answered_before_gives_its_answer(store: ConversationStore) -> None:
    saved = ask(store, "问", client="m1")
    first = answer(store, saved)
    again = ask(store, "问", client="m1")
    assert again.answer == first
    assert again.message.request_id == saved.message.request_id
    assert len(rows(store, saved.conversation)) == 2


def test_a_client_message_that_failed_stands_for_the_new_request(store: ConversationStore) -> None:
    saved = ask(store, "问", request_id="r1", client="m1")
    assert store.mark_failed(ME, saved.conversation.id, "r1")
    again = ask(store, "问", request_id="r2", client="m1")
    assert (again.message.id, again.message.request_id, again.message.status) == (
        saved.message.id,
        "r2",
        "COMPLETE",
    )
    assert again.answer is None


def test_a_client_message_id_with_another_text_is_refused_and_changes_nothing(
    store: ConversationStore,
) -> None:
    saved = ask(store, "问", client="m1")
    before = rows(store, saved.conversation)
    with pytest.raises(MessageIdReusedError):
        ask(store, "别的", client="m1")
    assert rows(store, saved.conversation) == before


def test_a_refused_question_leaves_its_conversation_as_it_was(store: ConversationStore) -> None:
    """Not even its time or its first title is changed."""
    saved = ask(store, "/new", request_id="r1", client="m1", only_when_settled=True)
    assert store.get(ME, saved.conversation.id) == saved.conversation
    with pytest.raises(UnsettledError):
        ask(store, "二", only_when_settled=True)
    held = store.mark_failed(ME, saved.conversation.id, "r1") and store.get(ME, saved.conversation.id)
    for again in ({"client": "m1"}, {"request_id": "r1"}):
        for place in ({}, {"conversation_id": saved.conversation.id}):
            with pytest.raises(MessageIdReusedError):
                ask(store, "别的", only_when_settled=True, **again, **place)
    assert store.get(ME, saved.conversation.id) == held
    assert held.title is None


def test_a_client_message_id_belongs_to_one_conversation_and_owner(store: ConversationStore) -> None:
    ids = {ask(store, "问", client="m1").message.id, ask(store, "别的", "d", client="m1").message.id}
    ids.add(ask(store, "别的", client="m1", owner=OTHERS[0]).message.id)
    assert len(ids) == 3


def test_a_failed_request_leaves_its_question_and_no_answer(store: ConversationStore) -> None:
    saved = ask(store, "问", request_id="r1")
    assert store.mark_failed(ME, saved.conversation.id, "r1")
    assert [(row.role, row.status) for row in rows(store, saved.conversation)] == [("USER", "FAILED")]
    answer(store, saved)  # it was answered after all: taken over by a later try
    assert not store.mark_failed(ME, saved.conversation.id, "r1")
    assert [row.status for row in rows(store, saved.conversation)] == ["COMPLETE", "COMPLETE"]


def test_an_interrupted_answer_is_partial(store: ConversationStore) -> None:
    saved = ask(store, "问")
    answer(store, saved, "说到一", status="PARTIAL")
    assert rows(store, saved.conversation)[1].status == "PARTIAL"


def test_unanswered_questions_are_found_until_they_are_answered_or_marked(store: ConversationStore) -> None:
    first, second = ask(store, "一", request_id="r1"), ask(store, "二", request_id="r2")
    identity = first.conversation.id
    assert [row.request_id for row in store.unanswered(identity)] == ["r1", "r2"]
    answer(store, second)
    store.mark_failed(ME, identity, "r1")
    assert store.unanswered(identity) == []


def write_many(config: StoreConfig, writer: int, count: int) -> None:
    with open_store(config) as store:
        threads = [
            threading.Thread(target=lambda at=at: ask(store, f"{writer}-{at}", client=f"{writer}-{at}"))
            for at in range(count)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def test_twenty_writers_in_two_processes_get_numbers_in_a_row(store_config: StoreConfig) -> None:
    with open_store(store_config) as store:
        first = ask(store, "0")
        spawn = multiprocessing.get_context("spawn")
        workers = [spawn.Process(target=write_many, args=(store_config, n, 10)) for n in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(300)
        assert [worker.exitcode for worker in workers] == [0, 0]
        found = rows(store, first.conversation)
        assert [row.sequence_no for row in found] == list(range(1, 22))
        assert len({row.content for row in found}) == 21


def answer_many(config: StoreConfig, conversation_id: UUID, writer: int, count: int) -> None:
    with open_store(config) as store:
        threads = [
            threading.Thread(
                target=lambda at=at: store.save_reply(ME, conversation_id, f"r{writer}-{at}", Reply("答"))
            )
            for at in range(count)
            for _ in range(2)  # each of them twice at once
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def test_answers_of_two_processes_get_numbers_in_a_row_and_are_saved_once(store_config: StoreConfig) -> None:
    with open_store(store_config) as store:
        saved = [ask(store, "问", request_id=f"r{writer}-{at}") for writer in range(2) for at in range(5)]
        identity = saved[0].conversation.id
        spawn = multiprocessing.get_context("spawn")
        workers = [spawn.Process(target=answer_many, args=(store_config, identity, n, 5)) for n in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(300)
        assert [worker.exitcode for worker in workers] == [0, 0]
        found = rows(store, saved[0].conversation)
        assert [row.sequence_no for row in found] == list(range(1, 21))
        assert {row.request_id for row in found[10:]} == {each.message.request_id for each in saved}


def test_a_name_begun_by_many_at_once_is_one_conversation_with_one_question(
    store: ConversationStore,
) -> None:
    told: list[object] = []

    def begin(at: int) -> None:
        try:
            told.append(ask(store, f"问{at}", "new", only_when_settled=True))
        except UnsettledError as found:
            told.append(found.conversation.id)

    threads = [threading.Thread(target=begin, args=(at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (saved,) = (each for each in told if isinstance(each, Saved))
    assert [each for each in told if each != saved] == [saved.conversation.id] * 7
    assert [row.content for row in rows(store, saved.conversation)] == [saved.message.content]
    assert store.find(ME, "new") == saved.conversation


def test_rows_of_one_millisecond_keep_their_order(store_config: StoreConfig) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    with open_store(store_config, now=lambda: at) as store:
        for number in range(5):
            answer(store, ask(store, str(number)), f"答{number}")
        words = [row.content for row in rows(store, store.find(ME, "c"))]
    assert words == [word for number in range(5) for word in (str(number), f"答{number}")]


# --- text ---


def test_text_that_no_database_takes_is_mended_in_answers(store: ConversationStore) -> None:
    saved = ask(store, "问")
    answer(store, saved, "a\x00b\ud800c", sources=[{"passage": "x\x00y\udfff", "n": [1, None]}])
    row = rows(store, saved.conversation)[1]
    assert row.content == "a\ufffdb\ufffdc"
    assert row.sources == [{"passage": "x\ufffdy\ufffd", "n": [1, None]}]


@pytest.mark.parametrize(
    "words", ["🇨🇳𠮷é\u2028\r\n\t\ufeff", "'; DROP TABLE message; --", "%s :id \\", "x" * 4000]
)
def test_any_question_comes_back_as_it_was(store: ConversationStore, words: str) -> None:
    saved = ask(store, words, name=words[:500])
    assert rows(store, saved.conversation)[0].content == words
    assert store.find(ME, words[:500]) == store.get(ME, saved.conversation.id)


def test_titles_begin_as_the_first_question_and_stay(store: ConversationStore) -> None:
    assert ask(store, "/retry").conversation.title is None
    assert ask(store, "第一个\n问题").conversation.title == "第一个 问题"
    assert ask(store, "第二个问题").conversation.title == "第一个 问题"
    saved = ask(store, "👨‍👩‍👧" * 60, "long")
    assert saved.conversation.title == "👨‍👩‍👧" * 16
    assert store.set_title(ME, saved.conversation.id, "新").title == "新"
    with pytest.raises(ValueError, match="255"):
        store.set_title(ME, saved.conversation.id, "x" * 10_000)


# --- pages ---


def walk(read: Callable[[str | None], Page], between: Callable[[], object] = lambda: None) -> list:
    found, cursor = [], None
    while True:
        page = read(cursor)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found
        between()


def test_conversation_pages_lose_and_double_nothing_while_turns_are_written(store: ConversationStore) -> None:
    made = [store.create(ME, knowledge_base="default", name=f"c{number}") for number in range(23)]
    written = iter(made)

    def write() -> None:
        answer(store, ask(store, "问", next(written).external_id))
        ask(store, "新", str(uuid4()))

    found = walk(lambda cursor: store.list_conversations(ME, limit=5, cursor=cursor), write)
    assert [each.id for each in found] == [each.id for each in reversed(made)]


def test_message_pages_lose_and_double_nothing_while_turns_are_written(store: ConversationStore) -> None:
    for number in range(12):
        saved = ask(store, str(number))
    identity = saved.conversation.id
    read = store.list_messages

    def write() -> None:
        ask(store, "neu")

    backwards = walk(lambda at: read(ME, identity, limit=5, cursor=at, newest_first=True), write)
    assert [row.content for row in backwards] == [str(number) for number in reversed(range(12))]
    forwards = walk(lambda at: read(ME, identity, limit=9, cursor=at))
    assert [row.sequence_no for row in forwards] == list(range(1, 15))


@pytest.mark.parametrize(
    "cursor", ["", "x", "a" * 600, "W10", "bnVsbA", "WyJ4IiwxXQ", "\u00e9", "W1tbW1tbW1tb", "e30"]
)
def test_a_wrong_cursor_is_refused(store: ConversationStore, cursor: str) -> None:
    identity = ask(store, "问").conversation.id
    with pytest.raises(BadCursorError):
        store.list_conversations(ME, cursor=cursor)
    with pytest.raises(BadCursorError):
        store.list_messages(ME, identity, cursor=cursor)


def test_a_cursor_of_another_listing_or_with_a_forged_key_is_refused(store: ConversationStore) -> None:
    from checkpoint.conversations.cursors import encode_cursor

    for name in "abc":
        ask(store, "问", name)
        ask(store, "问", name)
    first, second = (store.find(ME, name).id for name in "ab")
    cursor = store.list_messages(ME, first, limit=1).next_cursor
    for wrong in (
        lambda: store.list_messages(ME, second, cursor=cursor),
        lambda: store.list_messages(ME, first, cursor=cursor, newest_first=True),
        lambda: store.list_conversations(ME, cursor=cursor),
        lambda: store.list_messages(ME, first, cursor=encode_cursor(("messages", first, False), [2**63])),
        lambda: store.list_conversations(
            ME,
            cursor=encode_cursor(("conversations", "t1", "u1", "ACTIVE"), ["0001-01-01T00:00:00+23:00", "x"]),
        ),
    ):
        with pytest.raises(BadCursorError):
            wrong()
    listed = store.list_conversations(ME, limit=1).next_cursor
    with pytest.raises(BadCursorError):
        store.list_conversations(OTHERS[0], cursor=listed)


@pytest.mark.parametrize("limit", [0, -1, 201])
def test_a_page_is_bounded(store: ConversationStore, limit: int) -> None:
    with pytest.raises(ValueError, match="200"):
        store.list_conversations(ME, limit=limit)


# --- ownership and deleting ---


def every_use(store: ConversationStore, owner: Owner, identity: UUID, message_id: UUID) -> list:
    question = Question("r-x", "问")
    return [
        lambda: store.get(owner, identity),
        lambda: store.list_messages(owner, identity),
        lambda: store.set_title(owner, identity, "x"),
        lambda: store.archive(owner, identity),
        lambda: store.set_feedback(owner, identity, message_id, {"rating": "up"}),
        lambda: store.save_question(
            owner, question, name="c", knowledge_base="default", conversation_id=identity
        ),
        lambda: store.save_reply(owner, identity, "r1", Reply("x")),
        lambda: store.mark_failed(owner, identity, "r1"),
    ]


@pytest.mark.parametrize("owner", OTHERS, ids=str)
def test_another_owners_conversation_is_an_unknown_one(store: ConversationStore, owner: Owner) -> None:
    saved = ask(store, "问", request_id="r1")
    row = answer(store, saved)
    before = rows(store, saved.conversation)
    uses = every_use(store, owner, saved.conversation.id, row.id)
    for use in [*uses, lambda: store.delete(owner, saved.conversation.id)]:
        with pytest.raises(ConversationNotFoundError) as foreign:
            use()
        unknown = uuid4()
        with pytest.raises(ConversationNotFoundError) as none:
            store.get(owner, unknown)
        assert str(foreign.value).replace(str(saved.conversation.id), "") == str(none.value).replace(
            str(unknown), ""
        )
    assert store.find(owner, "c") is None
    assert store.list_conversations(owner).items == []
    assert rows(store, saved.conversation) == before


def test_a_deleted_conversation_is_an_unknown_one_for_every_use(store: ConversationStore) -> None:
    saved = ask(store, "问", request_id="r1")
    row = answer(store, saved)
    store.delete(ME, saved.conversation.id)
    for use in every_use(store, ME, saved.conversation.id, row.id):
        with pytest.raises(ConversationNotFoundError):
            use()
    assert store.find(ME, "c") is None
    assert store.list_conversations(ME).items == []


def test_deleting_twice_gives_the_same_receipt(store: ConversationStore) -> None:
    saved = ask(store, "问")
    answer(store, saved)
    receipt = store.delete(ME, saved.conversation.id)
    assert receipt.messages == 2
    assert receipt.purge_after - receipt.deleted_at == timedelta(days=30)
    assert store.delete(ME, saved.conversation.id) == receipt
    with store.database.read("test") as connection:
        actions = connection.execute(text("SELECT id, action FROM audit")).all()
    assert [action for _, action in actions] == ["delete"]


def test_a_late_answer_of_a_deleted_conversation_is_refused(store: ConversationStore) -> None:
    saved = ask(store, "问")
    store.delete(ME, saved.conversation.id)
    with pytest.raises(ConversationNotFoundError):
        answer(store, saved)


def test_a_name_is_free_again_after_deleting(store: ConversationStore) -> None:
    old = ask(store, "问").conversation
    store.delete(ME, old.id)
    new = ask(store, "另").conversation
    assert new.id != old.id
    assert [row.content for row in rows(store, new)] == ["另"]


def test_a_name_is_taken_once(store: ConversationStore) -> None:
    store.create(ME, knowledge_base="default", name="c")
    with pytest.raises(NameTakenError):
        store.create(ME, knowledge_base="default", name="c")
    store.create(OTHERS[0], knowledge_base="default", name="c")


def test_an_archived_conversation_is_listed_apart_until_it_goes_on(store: ConversationStore) -> None:
    identity = ask(store, "问").conversation.id
    assert store.archive(ME, identity).status == "ARCHIVED"
    assert store.list_conversations(ME).items == []
    assert [each.id for each in store.list_conversations(ME, status="ARCHIVED").items] == [identity]
    assert ask(store, "再问").conversation.status == "ACTIVE"


def test_feedback_is_for_answers(store: ConversationStore) -> None:
    saved = ask(store, "问")
    row = answer(store, saved)
    identity = saved.conversation.id
    assert store.set_feedback(ME, identity, row.id, {"rating": "up"}).feedback == {"rating": "up"}
    assert store.set_feedback(ME, identity, row.id, None).feedback is None
    other = store.create(ME, knowledge_base="default").id
    for where, which in ((identity, saved.message.id), (identity, uuid4()), (other, row.id)):
        with pytest.raises(MessageNotFoundError):
            store.set_feedback(ME, where, which, {"rating": "up"})


def test_the_audit_trail_says_who_did_what_and_no_words(store: ConversationStore) -> None:
    identity = ask(store, "秘密的问题").conversation.id
    store.record(ME, "read", identity, {"messages": 3})
    store.record(ME, "list")
    with store.database.read("test") as connection:
        found = connection.execute(text("SELECT * FROM audit")).all()
    assert len(found) == 2
    assert "秘密" not in str(found)


# --- a database in trouble ---


def test_a_database_that_is_down_is_said_at_once_with_what_to_do(tmp_path) -> None:
    gone = StoreConfig(url=f"postgresql://u:geheim@/x?host={tmp_path}", timeout_seconds=2)
    with pytest.raises(StoreUnavailable, match="DATABASE_URL") as error, open_store(gone):
        pass
    assert "geheim" not in str(error.value)


def test_a_folder_that_cannot_be_made_is_said(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(StoreUnavailable, match="BUSINESS_ASSISTANT_HOME"),
        open_store(StoreConfig(home=tmp_path / "file" / "home")),
    ):
        pass


def test_a_file_that_is_no_database_is_said(tmp_path) -> None:
    StoreConfig(home=tmp_path).file.write_bytes(b"x" * 5000)
    with pytest.raises(ConversationStoreError, match="no database"), open_store(StoreConfig(home=tmp_path)):
        pass


def read_only(config: StoreConfig, store: ConversationStore) -> StoreConfig:
    if config.url is None:
        return StoreConfig(url=f"sqlite:///file:{config.file}?mode=ro&uri=true")
    with store.database.engine.connect() as connection:
        name = connection.execute(text("SELECT current_database()")).scalar_one()
        connection.execute(text(f"ALTER DATABASE {name} SET default_transaction_read_only = on"))
        connection.commit()
    return config


def test_a_read_only_database_is_read_and_says_that_it_cannot_be_written(store_config: StoreConfig) -> None:
    with open_store(store_config) as store:
        saved = ask(store, "问")
        with open_store(read_only(store_config, store)) as other:
            assert other.get(ME, saved.conversation.id) == store.get(ME, saved.conversation.id)
            with pytest.raises(StoreReadOnlyError, match="read-only"):
                ask(other, "再问")
        assert len(rows(store, saved.conversation)) == 1


def fill_up(store: ConversationStore) -> None:
    """Change something, then run out of room in the same transaction."""
    with store.database.write("test") as connection:
        connection.execute(text("UPDATE conversation SET title = 'half'"))
        if store.database.is_sqlite:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
            connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
            connection.execute(text("UPDATE conversation SET summary = :it"), {"it": "x" * 500_000})
        else:  # the server's own report; a full disk cannot be had without a disk to fill
            connection.execute(text("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '53100'; END $$"))


def test_a_full_disk_is_said_and_leaves_nothing_half_written(store: ConversationStore) -> None:
    saved = ask(store, "问")
    with pytest.raises(StoreFullError, match="full"):
        fill_up(store)
    assert store.get(ME, saved.conversation.id).title == "问"


def test_what_a_connection_keeps_of_the_file_is_bounded(new_database: Callable[..., StoreConfig]) -> None:
    with open_store(new_database("sqlite")) as store, store.database.write("test") as connection:
        assert connection.exec_driver_sql("PRAGMA cache_size").scalar_one() == -256  # KiB


def test_tables_of_an_unknown_revision_are_left_alone(store_config: StoreConfig) -> None:
    with open_store(store_config) as store, store.database.write("test") as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreRevisionError, match=r"9999.*Upgrade"), open_store(store_config):
        pass


def test_a_table_that_is_not_there_is_said(store: ConversationStore) -> None:
    with store.database.write("test") as connection:
        connection.execute(text("DROP TABLE audit"))
    with pytest.raises(StoreRevisionError, match="migrations"):
        store.record(ME, "list")


def leave_in_the_middle(store: ConversationStore) -> None:
    with store.database.write("test") as connection:
        connection.execute(text("UPDATE conversation SET title = 'half'"))
        raise KeyError


def test_the_pool_is_bounded_and_its_connections_come_back(
    new_database: Callable[..., StoreConfig],
) -> None:
    with open_store(new_database("postgresql", pool_size=2, timeout_seconds=2)) as store:
        saved = ask(store, "问")
        with (
            store.database.read("a"),
            store.database.read("b"),
            pytest.raises(StoreUnavailable, match="DATABASE_POOL_SIZE"),
        ):
            ask(store, "再问")
        for _ in range(20):  # twenty uses that end in the middle
            with pytest.raises(KeyError):
                leave_in_the_middle(store)
        for _ in range(5):
            ask(store, "再问")
        assert store.get(ME, saved.conversation.id).title == "问"


def test_a_server_that_came_back_is_used_again(new_database: Callable[..., StoreConfig], postgres) -> None:
    with open_store(new_database("postgresql")) as store:
        ask(store, "一")
        postgres.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname LIKE 'test_%'"
        )
        assert ask(store, "二").message.sequence_no == 2


def test_a_busy_file_is_waited_for_and_then_said(new_database: Callable[..., StoreConfig]) -> None:
    config = new_database("sqlite", timeout_seconds=0.1)
    with open_store(config) as store, open_store(config) as other:
        ask(store, "一")
        with store.database.write("long"), pytest.raises(StoreUnavailable, match="locked"):
            ask(other, "二")
        assert ask(other, "二").message.sequence_no == 2


# --- speed that the plan shows ---


def plan_of(store: ConversationStore, query) -> str:
    compiled = query.compile(store.database.engine, compile_kwargs={"render_postcompile": True})
    explain = "EXPLAIN QUERY PLAN " if store.database.is_sqlite else "EXPLAIN "
    with store.database.read("plan") as connection:
        if not store.database.is_sqlite:
            connection.execute(text("SET LOCAL enable_seqscan = off"))
        raw = connection.exec_driver_sql(explain + str(compiled), _parameters(compiled))
        return "\n".join(str(row) for row in raw)


def _parameters(compiled):
    values = compiled.construct_params()
    processed = {
        name: (compiled._bind_processors.get(name, lambda value: value))(value)
        for name, value in values.items()
    }
    return tuple(processed[name] for name in compiled.positiontup) if compiled.positional else processed


def test_listings_go_through_their_index_without_sorting(store: ConversationStore) -> None:
    from checkpoint.conversations.erasure import due_query
    from checkpoint.conversations.store import conversations_query, messages_query

    for name in "ab":
        ask(store, "问", name)
        ask(store, "问", name)
    listing = ("conversations", ME.tenant_id, ME.user_id, "ACTIVE")
    identity = store.find(ME, "a").id
    of_messages = ("messages", identity, False)
    cursor = store.list_conversations(ME, limit=1).next_cursor
    next_messages = store.list_messages(ME, identity, limit=1).next_cursor
    for query, index in (
        (conversations_query(ME, "ACTIVE", 50, None, listing), "conversation_listing"),
        (conversations_query(ME, "ACTIVE", 50, cursor, listing), "conversation_listing"),
        (messages_query(identity, 50, None, of_messages, newest_first=False), "sequence_no"),
        (messages_query(identity, 50, next_messages, of_messages, newest_first=False), "sequence_no"),
        (due_query(datetime.now(UTC)), "conversation_deleted"),
    ):
        plan = plan_of(store, query)
        assert index in plan or "sqlite_autoindex_message_2" in plan, plan
        assert "SCAN" not in plan.upper().replace("INDEX SCAN", "").replace("INDEX ONLY SCAN", ""), plan
        assert "B-TREE" not in plan, plan
        assert "Sort" not in plan, plan


def test_a_turn_is_eight_statements_in_two_transactions(new_database: Callable[..., StoreConfig]) -> None:
    """On SQLite, counted at the driver. Its cost beside a turn's is measured by `scripts.bench store`."""
    said: list[str] = []
    with open_store(new_database("sqlite")) as store:
        ask(store, "问")
        with store.database.read("watching") as connection:
            connection.connection.driver_connection.set_trace_callback(said.append)
        saved = ask(store, "问", "another", request_id="r1", only_when_settled=True)
        said.clear()
        answer(store, saved, is_as_asked=True)
        again = ask(store, "再问", "another", request_id="r2", only_when_settled=True)
        assert again.message.sequence_no == 3
        assert words_of(said) == [
            *("BEGIN", "UPDATE", "INSERT", "COMMIT"),
            *("BEGIN", "UPDATE", "WITH", "COMMIT"),
        ]
        said.clear()
        ask(store, "问", "a third", only_when_settled=True)
        assert words_of(said) == [*("BEGIN", "UPDATE", "ROLLBACK"), *("BEGIN", "INSERT", "WITH", "COMMIT")]


def words_of(said: list[str]) -> list[str]:
    return [statement.split()[0] for statement in said if not statement.startswith("--")]


def test_a_lost_connection_is_noticed_by_a_save_and_by_reads_whatever_was_pooled(
    new_database: Callable[..., StoreConfig], postgres
) -> None:
    with open_store(new_database("postgresql", pool_size=3)) as store:
        saved = ask(store, "一", only_when_settled=True)

        def lose_three() -> None:
            with store.database.read("a"), store.database.read("b"), store.database.read("c"):
                pass
            postgres.execute(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname LIKE 'test_%'"
            )

        lose_three()
        assert answer(store, saved, is_as_asked=True).sequence_no == 2
        lose_three()
        assert store.get(ME, saved.conversation.id).title == "一"
        lose_three()
        assert ask(store, "二", only_when_settled=True).message.sequence_no == 3


def test_the_plans_of_a_save_are_kept_over_reads_and_first_questions(
    new_database: Callable[..., StoreConfig],
) -> None:
    """A rollback makes the driver forget every plan of its connection."""
    with open_store(new_database("postgresql", pool_size=1)) as store:
        answer(store, ask(store, "一", only_when_settled=True), is_as_asked=True)
        with store.database.read("watching") as connection:
            before = connection.execute(text("SELECT name FROM pg_prepared_statements")).scalars().all()
        rows(store, ask(store, "二", only_when_settled=True).conversation)
        answer(store, ask(store, "一", "other", only_when_settled=True), is_as_asked=True)
        with store.database.read("watching") as connection:
            after = connection.execute(text("SELECT name FROM pg_prepared_statements")).scalars().all()
    assert len(before) == 3  # a question of a name, the first of one, an answer
    assert set(before) <= set(after)


def test_no_save_binds_what_an_index_is_limited_to() -> None:
    """SQLite plans a statement anew at each use where a bound value decides whether an index serves."""
    dialect = sqlite.dialect()  # type: ignore[no-untyped-call]
    for touch in (statements.TOUCH, statements.USUAL_TOUCH, statements.USUAL_TOUCH_NAMED):
        said = touch.on(dialect).text
        assert "status != 'DELETED'" in said
        assert "DELETED" not in touch.on(dialect).fixed.values()


def test_a_turn_moves_its_conversation_in_no_index(store: ConversationStore) -> None:
    from checkpoint.conversations.statements import TOUCH, TOUCH_FOR_QUESTION, TOUCH_NAMED_FOR_QUESTION

    indexes = inspect(store.database.engine).get_indexes("conversation")
    of_all = {
        name for index in indexes if index["name"] != "conversation_deleted" for name in index["column_names"]
    }
    assert {"external_id", "status"} <= of_all
    for touch in (TOUCH, TOUCH_FOR_QUESTION, TOUCH_NAMED_FOR_QUESTION):
        setting = str(touch.statement).split(" SET ")[1].split(" WHERE ")[0]
        changed = {part.split("=")[0].strip() for part in setting.split(", ") if "=" in part}
        assert "updated_at" in changed
        assert changed.isdisjoint(of_all)
    (deleted,) = (index for index in indexes if index["name"] == "conversation_deleted")
    kinds = deleted["dialect_options"]
    assert "DELETED" in str(kinds.get("sqlite_where", kinds.get("postgresql_where")))


def test_a_fault_of_a_saving_quotes_nobody(store: ConversationStore) -> None:
    words = "秘密的问题"
    with store.database.write("test") as connection:
        connection.execute(text("ALTER TABLE message RENAME TO gone"))
    for settled in (False, True):
        with pytest.raises(StoreRevisionError) as found:
            ask(store, words, only_when_settled=settled)
        fault = found.value.__cause__
        assert isinstance(fault, DBAPIError)
        assert (fault.params, words in str(fault)) == (None, False)


def test_an_archived_conversation_that_is_asked_is_active_in_the_row_too(store: ConversationStore) -> None:
    saved = ask(store, "问")
    for settled in (False, True):
        answer(store, saved)
        store.archive(ME, saved.conversation.id)
        saved = ask(store, "再问", only_when_settled=settled)
        assert saved.conversation.status == "ACTIVE"
        assert store.get(ME, saved.conversation.id).status == "ACTIVE"


def test_copied_rows_without_a_request_leave_a_conversation_settled(store: ConversationStore) -> None:
    saved = ask(store, "问", request_id="r1")
    answer(store, saved)
    with store.database.write("test") as connection:
        connection.execute(text("UPDATE message SET request_id = NULL"))
    assert store.unanswered(saved.conversation.id) == []
    assert ask(store, "再问", only_when_settled=True).message.sequence_no == 3
