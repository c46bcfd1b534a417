"""Every earlier form of the tables, with data in it, becomes this release's and keeps what it held."""

import multiprocessing
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect, text
from store_fixtures import BACKENDS

from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.database import Database, open_engine
from checkpoint.conversations.models import metadata
from checkpoint.conversations.revisions import check_revision, head, known_revisions, migrate, revision_of
from checkpoint.conversations.rows import Owner, Question, Reply
from checkpoint.conversations.store import open_store

ME = Owner("t", "u")
IDENTITY, QUESTION_ID, ANSWER_ID = uuid4(), uuid4(), uuid4()


@pytest.fixture(params=BACKENDS)
def config(request: pytest.FixtureRequest, new_database: Callable[..., StoreConfig]) -> StoreConfig:
    return new_database(request.param, empty=True)


@pytest.fixture
def database(config: StoreConfig) -> Iterator[Database]:
    opened = Database(open_engine(config))
    yield opened
    opened.close()


def fill(database: Database) -> None:
    """Rows in every table of the first revision, written as SQL so that no later code is involved."""
    key = (lambda value: value.hex) if database.is_sqlite else str
    at = "2026-01-31 08:00:00.000000" + ("" if database.is_sqlite else "+00")
    rows: list[tuple[str, dict[str, Any]]] = [
        (
            "INSERT INTO conversation (id, external_id, tenant_id, user_id, knowledge_base_id, title, "
            "summary, summary_message_sequence, created_at, updated_at) "
            "VALUES (:id, '名', 't', 'u', 'default', '题', '旧摘要', 2, :at, :at)",
            {"id": key(IDENTITY), "at": at},
        ),
        *(
            (
                "INSERT INTO message (id, conversation_id, sequence_no, role, content, sources, request_id, "
                "created_at) VALUES (:id, :c, :n, :role, :words, :sources, 'r1', :at)",
                {"id": key(identity), "c": key(IDENTITY), "n": number, "role": role, "words": words,
                 "sources": sources, "at": at},
            )
            for identity, number, role, words, sources in (
                (QUESTION_ID, 1, "USER", "问", None),
                (ANSWER_ID, 2, "ASSISTANT", "答[C1]", '[{"label": "C1"}]'),
            )
        ),
        (
            "INSERT INTO request_archive (request_id, schema_version, thread_id, question, input_kind, "
            "received_at, started_at, status, degraded, received_on, archived_at) "
            "VALUES ('r1', 1, 'th', '问', 'new_question', '2026-01-31T16:00:00.000+08:00', "
            "'2026-01-31T16:00:00.001+08:00', 'running', false, '2026-01-31', :at)",
            {"at": at},
        ),
        (
            "INSERT INTO audit (id, tenant_id, user_id, action, conversation_id, at) "
            "VALUES (:id, 't', 'u', 'read', :c, :at)",
            {"id": key(uuid4()), "c": key(IDENTITY), "at": at},
        ),
    ]  # fmt: skip
    with database.write("test") as connection:
        for statement, values in rows:
            typed = (
                statement if database.is_sqlite else statement.replace(":sources", "CAST(:sources AS JSONB)")
            )
            connection.execute(text(typed), values)


@pytest.mark.parametrize("revision", known_revisions())
def test_data_of_every_revision_is_still_there(
    config: StoreConfig, database: Database, revision: str
) -> None:
    migrate(database, revision)
    fill(database)
    with open_store(config) as store:
        held = store.find(ME, "名")
        assert held is not None
        assert (held.id, held.title, held.status) == (IDENTITY, "题", "ACTIVE")
        assert held.created_at == datetime(2026, 1, 31, 8, tzinfo=UTC)
        rows = list(store.walk_messages(ME, IDENTITY))
        assert [(row.id, row.content, row.sources) for row in rows] == [
            (QUESTION_ID, "问", None),
            (ANSWER_ID, "答[C1]", [{"label": "C1"}]),
        ]
        saved = store.save_question(ME, Question("r2", "再问"), name="名", knowledge_base="default")
        assert saved.message.sequence_no == 3
        store.save_reply(ME, IDENTITY, "r2", Reply("再答"))
    with database.read("test") as connection:
        assert revision_of(connection) == head()
        assert connection.execute(text("SELECT count(*) FROM request_archive")).scalar_one() == 1
        assert connection.execute(text("SELECT count(*) FROM audit")).scalar_one() == 1


def test_a_summary_without_sources_is_dropped_on_the_way(config: StoreConfig, database: Database) -> None:
    migrate(database, "0001")
    fill(database)
    with open_store(config) as store:
        held = store.get(ME, IDENTITY)
    assert (held.summary, held.summary_message_sequence) == (None, 0)


def test_the_migrations_lead_to_the_models(database: Database) -> None:
    migrate(database)
    with database.read("test") as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        found = inspect(connection)
        for table in metadata.sorted_tables:
            wanted = {index.name for index in table.indexes}
            assert wanted <= {index["name"] for index in found.get_indexes(table.name)}


def test_a_migration_that_fails_leaves_the_database_as_it_was(database: Database) -> None:
    migrate(database, "0001")
    fill(database)
    with database.write("test") as connection:  # the name that the next revision wants
        connection.execute(text("CREATE TABLE summary_version (id INTEGER)"))
    with pytest.raises(Exception, match="summary_version"):
        migrate(database)
    with database.read("test") as connection:
        assert revision_of(connection) == "0001"
        assert connection.execute(text("SELECT summary FROM conversation")).scalar_one() == "旧摘要"


def test_each_revision_goes_back_and_forth(database: Database) -> None:
    from alembic import command

    from checkpoint.conversations.revisions import _config

    migrate(database)
    with database.write("test") as connection:
        config = _config()
        config.attributes.update(connection=connection, metadata=metadata)
        command.downgrade(config, "base")
    migrate(database)
    check_revision(database)


def start(config: StoreConfig) -> None:
    with open_store(config):
        pass


def test_processes_that_start_at_once_migrate_once(config: StoreConfig, database: Database) -> None:
    spawn = multiprocessing.get_context("spawn")
    children = [spawn.Process(target=start, args=(config,)) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(300)
    assert [child.exitcode for child in children] == [0, 0, 0]
    check_revision(database)


def test_there_is_more_than_one_revision_to_prove_the_path() -> None:
    assert known_revisions() == ["0001", "0002", "0003"]
    assert isinstance(IDENTITY, UUID)
