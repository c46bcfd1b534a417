"""Readiness: which part is down, by name, and nothing of where it is or with which password."""

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from door import Door, open_door
from structlog.testing import capture_logs
from test_api_lost_connections import _end

from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.revisions import head
from checkpoint.conversations.store import open_store
from checkpoint.embedded import open_embedded
from graph.compose import open_assistant
from graph.settings import load_settings
from nodes.retrieve.documents import KnowledgeError


def ready(door: Door) -> tuple[int, dict[str, Any]]:
    response = door.http.get("/health/ready")
    body = response.json()
    assert body["status"] == ("ok" if response.status_code == 200 else "down")
    return response.status_code, body["parts"]


def places_and_passwords(told: str) -> list[str]:
    """Those of the tests below; no random id can hold them."""
    return [word for word in ("place-7731", "secret-7731") if word in told]


def down(parts: dict[str, Any]) -> list[str]:
    return sorted(name for name, part in parts.items() if not part["up"])


@pytest.fixture(params=["sqlite", "postgresql"])
def config(request: pytest.FixtureRequest, new_database: Callable[..., StoreConfig]) -> StoreConfig:
    return new_database(request.param)


def test_every_part_is_named(assistant: Any, config: StoreConfig) -> None:
    with open_store(config) as store, open_door(assistant, store=store) as door:
        status, parts = ready(door)
        assert (status, down(parts)) == (200, [])
        assert set(parts) == {"redis", "knowledge", "model", "database"}
        kind = "sqlite" if store.database.is_sqlite else "postgresql"
        assert parts["database"] == {"up": True, "kind": kind, "revision": head()}


def test_a_database_that_does_not_answer(assistant: Any) -> None:
    """A server that refuses the connection; its address and password are nobody's business here."""
    url = "postgresql://somebody:secret-7731@127.0.0.1:1/place-7731"
    from checkpoint.conversations.database import Database, open_engine
    from checkpoint.conversations.store import ConversationStore

    config = StoreConfig(url=url, timeout_seconds=2)
    database = Database(open_engine(config))
    store = ConversationStore(database, config, now=lambda: None, new_id=lambda: None)  # type: ignore[arg-type,return-value]
    with open_door(assistant, store=store) as door:
        response = door.http.get("/health/ready")
        assert (response.status_code, down(response.json()["parts"])) == (503, ["database"])
        assert response.json()["parts"]["database"] == {"up": False, "kind": "postgresql"}
        assert not places_and_passwords(response.text)
        assert door.http.get("/health/live").status_code == 200
    database.close()


def test_a_database_without_tables_and_one_of_a_newer_release(assistant: Any, tmp_path: Path) -> None:
    config = StoreConfig(home=tmp_path)
    with open_store(config) as store, open_door(assistant, store=store) as door:
        revision = lambda to: _write(config, "UPDATE alembic_version SET version_num = ?", (to,))  # noqa: E731
        revision("from-the-future")
        assert ready(door)[1]["database"] == {"up": True, "kind": "sqlite", "revision": "from-the-future"}
        _write(config, "DELETE FROM alembic_version", ())
        assert down(ready(door)[1]) == ["database"]
        revision_row = "INSERT INTO alembic_version VALUES (?)"
        _write(config, revision_row, (head(),))
        assert ready(door)[0] == 200


def _write(config: StoreConfig, statement: str, values: tuple[str, ...]) -> None:
    with sqlite3.connect(config.file) as connection:
        connection.execute(statement, values)
    connection.close()


@pytest.fixture
def short_home() -> Iterator[Path]:
    home = Path(tempfile.mkdtemp(prefix="ba-"))
    yield home
    shutil.rmtree(home)


def test_redis_down_is_said_by_name(home: Path, short_home: Path) -> None:
    server = open_embedded(short_home)
    env = {"BUSINESS_ASSISTANT_HOME": str(home), "REDIS_URL": server.url}
    with open_assistant(load_settings(env)) as assistant, open_door(assistant) as door:
        assert ready(door)[0] == 200
        _end(server)
        status, parts = ready(door)
        assert (status, down(parts), parts["redis"]) == (503, ["redis"], {"up": False})
        again = open_embedded(short_home)
        assert ready(door)[0] == 200
        _end(again)


@pytest.mark.parametrize("part", ["redis", "knowledge", "database"])
def test_a_part_that_fails_as_nobody_foresaw_is_said_by_name(
    assistant: Any, config: StoreConfig, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    def fail(*_: Any) -> Any:
        raise RecursionError("/place-7731 with secret-7731")

    with open_store(config) as store, open_door(assistant, store=store) as door:
        asked: dict[str, tuple[Any, str]] = {
            "redis": (door.app.state.keeper, "ping"),
            "knowledge": (assistant.services.retriever, "knowledge_version"),
            "database": (store.database, "is_read_only"),
        }
        with monkeypatch.context() as broken, capture_logs() as logged:
            broken.setattr(*asked[part], fail)
            response = door.http.get("/health/ready")
        assert (response.status_code, down(response.json()["parts"])) == (503, [part])
        assert response.json()["parts"][part] == {"up": False}
        (line,) = [line for line in logged if line["event"] == "part_fault"]
        assert (line["part"], line["error"], line["log_level"]) == (part, "RecursionError", "error")
        assert line["at"][-1].startswith("fail:")
        assert not places_and_passwords(response.text + str(logged))
        assert ready(door)[0] == 200


def test_knowledge_that_cannot_be_read_is_said_by_name(
    assistant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> str:
        raise KnowledgeError("/place-7731/knowledge.db cannot be read")

    with open_door(assistant) as door:
        monkeypatch.setattr(assistant.services.retriever, "knowledge_version", fail)
        response = door.http.get("/health/ready")
        assert (response.status_code, down(response.json()["parts"])) == (503, ["knowledge"])
        assert not places_and_passwords(response.text)
