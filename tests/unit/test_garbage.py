"""A search for garbage stops every turn, so a service that begins leaves what it is made of out of it."""

import gc
import socket
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import pytest

from api import service
from graph.settings import load_settings


def serve() -> None:
    service.serve(load_settings({}), "127.0.0.1", 0)


def work() -> None:
    door, link = socket.socketpair()
    with door, link:
        service.work(load_settings({}), 0, door, link)


@pytest.mark.parametrize("begin", [serve, work])
def test_what_is_there_when_serving_begins_is_not_searched(
    monkeypatch: pytest.MonkeyPatch, begin: Callable[[], None]
) -> None:
    seen: list[int] = []

    class Server:
        def run(self, **_sockets: Any) -> None:
            seen.append(gc.get_freeze_count() - before)

    @contextmanager
    def open_app(*_settings: Any, **_worker: Any) -> Any:
        yield [[] for _ in range(10_000)]

    monkeypatch.setattr(service, "check_bind", lambda *_args, **_more: None)
    monkeypatch.setattr(service, "share_metrics", lambda _slot: None)
    monkeypatch.setattr(service, "open_app", open_app)
    monkeypatch.setattr(service, "make_server", lambda *_args, **_more: Server())
    before = gc.get_freeze_count()
    try:
        begin()
    finally:
        gc.unfreeze()
    assert seen[0] >= 10_000
