"""Whether the process lives, and whether it can answer: which part is down, and nothing secret."""

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from api.leases import LeaseKeeper
from checkpoint.errors import CheckpointUnavailable
from graph.compose import Assistant
from nodes.retrieve.sample import SAMPLE_SET

PACKAGE = "business-assistant"


def version_of_package() -> str:
    """As installed; a source tree that was never installed has none."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return "0+unknown"


def parts(assistant: Assistant, keeper: LeaseKeeper) -> dict[str, dict[str, Any]]:
    return {
        "redis": _redis(keeper),
        "knowledge": {
            "up": True,
            "version": assistant.services.retriever.knowledge_version(),
            "is_sample": set(assistant.store.source_sets()) == {SAMPLE_SET},
        },
        "model": {"up": True, "kind": assistant.services.provider.name},
    }


def _redis(keeper: LeaseKeeper) -> dict[str, Any]:
    try:
        keeper.ping()
    except CheckpointUnavailable:
        return {"up": False}
    return {"up": True}
