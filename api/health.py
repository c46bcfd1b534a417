"""Whether the process lives, and whether it can answer: which part is down, and nothing secret."""

import tomllib
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from api.leases import LeaseKeeper
from api.turnlog import log_part_fault
from checkpoint.conversations.errors import ConversationStoreError
from checkpoint.conversations.revisions import revision_of
from checkpoint.conversations.store import ConversationStore
from checkpoint.errors import CheckpointUnavailable
from graph.compose import Assistant
from nodes.retrieve.documents import KnowledgeError
from nodes.retrieve.sample import SAMPLE_SET

PACKAGE = "business-assistant"


def version_of_package() -> str:
    """As installed, else as the source tree says that we run from."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return version_of_source(Path(__file__).parents[1] / "pyproject.toml")


def version_of_source(project: Path) -> str:
    try:
        return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return "0+unknown"


def parts(
    assistant: Assistant, keeper: LeaseKeeper, store: ConversationStore | None = None
) -> dict[str, dict[str, Any]]:
    """Each part with whether it is up. A model is named and not asked: each question would cost money."""
    looks: dict[str, Callable[[], dict[str, Any]]] = {
        "redis": lambda: _redis(keeper),
        "knowledge": lambda: _knowledge(assistant),
        "model": lambda: {"up": True, "kind": assistant.services.provider.name},
    }
    if store:
        looks["database"] = lambda: _database(store)
    return {name: _seen(name, look) for name, look in looks.items()}


def _seen(name: str, look: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A part that fails in a way that nobody foresaw is down as well."""
    try:
        return look()
    except Exception as error:  # noqa: BLE001 - whatever a part raises; logged by type and place
        log_part_fault(name, error)
        return {"up": False}


def _knowledge(assistant: Assistant) -> dict[str, Any]:
    try:
        version = assistant.services.retriever.knowledge_version()
        is_sample = set(assistant.store.source_sets()) == {SAMPLE_SET}
    except KnowledgeError:
        return {"up": False}
    return {"up": True, "version": version, "is_sample": is_sample}


def _database(store: ConversationStore) -> dict[str, Any]:
    """Its kind and revision, never its place. A revision newer than ours is up: an upgrade is under way.

    One that is read-only is up too: what is there can be read.
    """
    kind = "sqlite" if store.database.is_sqlite else "postgresql"
    try:
        with store.database.read("looking at the database") as connection:
            revision = revision_of(connection)
        read_only = {"read_only": True} if store.database.is_read_only() else {}
    except ConversationStoreError:
        return {"up": False, "kind": kind}
    return {"up": revision is not None, "kind": kind, "revision": revision, **read_only}


def _redis(keeper: LeaseKeeper) -> dict[str, Any]:
    try:
        keeper.ping()
    except CheckpointUnavailable:
        return {"up": False}
    return {"up": True}
