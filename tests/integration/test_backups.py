"""Backup and restore of conversations, by the very commands of the operations page, on both databases."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from store_fixtures import find_postgres

from api.retention import prune
from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.rows import Owner, Question, Reply
from checkpoint.conversations.store import ConversationStore, open_store
from graph.settings import load_settings

PAGES = [Path(__file__).parents[2] / "docs" / name for name in ("operations.md", "operations.zh.md")]
ME = Owner("local", "local")
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def documented(page: Path, database: str, program: str) -> list[str]:
    """The commands of the database's row that begin with this program."""
    row = re.search(rf"^\| {database} \|.*$", page.read_text(), re.MULTILINE)
    assert row
    return [words for words in re.findall(r"`([^`]+)`", row[0]) if words.split()[0] == program]


def run(commands: list[str], folder: Path, **env: str) -> None:
    assert commands
    path = os.pathsep.join([str(find_postgres()), os.environ["PATH"]])
    for command in commands:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=folder,
            env={**os.environ, "PATH": path, **env},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def talk(store: ConversationStore, name: str) -> None:
    saved = store.save_question(ME, Question(f"r-{name}", "问"), name=name, knowledge_base="default")
    store.save_reply(ME, saved.conversation.id, f"r-{name}", Reply("答"))


def fill(store: ConversationStore) -> None:
    """One conversation that stays, and one that was deleted so long ago that a purge takes it."""
    talk(store, "kept")
    talk(store, "deleted")
    now, store.now = store.now, lambda: datetime.now(UTC) - timedelta(days=40)
    held = store.find(ME, "deleted")
    assert held
    store.delete(ME, held.id)
    store.now = now


def check_restored(env: dict[str, str]) -> None:
    """What was there at the backup is, what came later is not, and prune purges again what was deleted."""
    settings = load_settings(env)
    assert prune(settings).to_json()["purge"]["conversations"]
    with open_store(settings.conversations) as store:
        held = store.find(ME, "kept")
        assert held
        assert [found.content for found in store.list_messages(ME, held.id).items] == ["问", "答"]
        assert store.find(ME, "later") is None


@pages
@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed")
def test_sqlite_comes_back_also_beside_the_log_of_a_service_that_was_killed(
    page: Path, tmp_path: Path, redis_url: str
) -> None:
    running, killed = tmp_path / "running", tmp_path / "killed"
    with open_store(StoreConfig(home=running)) as store:
        fill(store)
        run(documented(page, "SQLite", "sqlite3"), running)
        talk(store, "later")
        shutil.copytree(running, killed)  # as a kill leaves it
    assert (killed / "conversations.db-wal").stat().st_size > 0
    run([*documented(page, "SQLite", "rm"), *documented(page, "SQLite", "mv")], killed)
    check_restored({"BUSINESS_ASSISTANT_HOME": str(killed), "REDIS_URL": redis_url})


@pages
def test_postgresql_comes_back_in_another_database(
    page: Path, tmp_path: Path, redis_url: str, new_database: Callable[..., StoreConfig]
) -> None:
    config, target = new_database("postgresql"), new_database("postgresql", empty=True)
    assert config.url
    assert target.url
    with open_store(config) as store:
        fill(store)
        run(documented(page, "PostgreSQL", "pg_dump"), tmp_path, DATABASE_URL=config.url)
        talk(store, "later")
    run(documented(page, "PostgreSQL", "pg_restore"), tmp_path, DATABASE_URL=target.url)
    home = str(tmp_path)
    check_restored({"BUSINESS_ASSISTANT_HOME": home, "REDIS_URL": redis_url, "DATABASE_URL": target.url})
