"""The door of tests that say themselves when a run goes on; a module may have another of the same name."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from door import Door, Script, open_door, stand_in
from uvicorn.protocols.http.h11_impl import H11Protocol

import api.app
from api.connections import protocol_in
from checkpoint import RedisContextSaver


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def door(saver: RedisContextSaver, script: Script) -> Iterator[Door]:
    with open_door(stand_in(saver), run_turn=script) as door:
        yield door
        script.go.set()
        door.wait_idle()


def protocols() -> list[Any]:
    """Both that the server may run on: which one is found depends on what is installed."""
    found: list[Any] = [H11Protocol]
    with suppress(ImportError):
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

        found.append(HttpToolsProtocol)
    return found


@pytest.fixture(params=protocols(), ids=lambda below: below.__name__)
def below(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(api.app, "protocol_in", lambda house: protocol_in(house, request.param))
    return request.param
