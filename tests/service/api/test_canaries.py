"""RESTRICTED documents over HTTP: no route tells anything of them to a caller without the grant."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from integration.door import Door, open_door
from promise import NOW, RESTRICTED_QUESTIONS, SECRETS, require_no_secret

from api.logs import log_as_json
from graph.compose import open_assistant
from graph.settings import load_settings

PROMISE = "RESTRICTED stays with the granted"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What the service logs in this test."""
    written = io.StringIO()
    log_as_json(lambda: NOW, written)
    yield written
    structlog.reset_defaults()


@pytest.fixture
def door(home: Path, redis_url: str) -> Iterator[Door]:
    settings = load_settings({"BUSINESS_ASSISTANT_HOME": str(home), "REDIS_URL": redis_url})
    with open_assistant(settings) as assistant, open_door(assistant) as door:
        yield door


def test_no_canary_leaves_or_stays(log: io.StringIO, door: Door, redis_client: Any, home: Path) -> None:
    told: list[str] = []
    for text in RESTRICTED_QUESTIONS:
        told.append(door.post(text).text)
        told.append(door.post("取消").text)
        for route in ("/v1/ask", "/v1/ask/stream"):
            told.append(door.http.post(route, json={"question": text}).text)
    for what in ("requests", "window"):
        told.append(door.http.get(f"/api/threads/t/{what}").text)
    told.append(door.post("x" * 5000).text)
    require_no_secret("\n".join(told), PROMISE)
    kept = [redis_client.dump(key) for key in redis_client.keys("*")]
    kept += [value for key in redis_client.keys("*:context:*") for value in redis_client.hvals(key)]
    kept += [file.read_bytes() for file in home.rglob("*") if file.is_file() and "knowledge" not in file.name]
    everything = b"\n".join(kept)
    assert kept
    assert [secret for secret in SECRETS if secret.encode() in everything] == []
    logged = log.getvalue()
    assert "request_ended" in logged
    require_no_secret(logged, PROMISE)
    assert [text for text in RESTRICTED_QUESTIONS if text in logged] == []
