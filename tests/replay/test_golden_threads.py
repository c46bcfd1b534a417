"""Threads that earlier versions stored, byte for byte: each is read in full and goes on where it stood."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from checkpoint import ContextConfig
from checkpoint.errors import CheckpointError
from checkpoint.layout import context_key
from graph.compose import Assistant, open_assistant
from graph.settings import load_settings
from scripts.golden import CASES, FOLDER, THREAD, ask, seen_in

FILES = sorted(FOLDER.glob("*.json"))
NAMES = [file.stem for file in FILES]


@contextmanager
def taken_over(file: Path, client: redis.Redis, home: Path, url: str, **more: str) -> Iterator[Assistant]:
    """An assistant of this version on a server that holds the thread."""
    kept = json.loads(file.read_text(encoding="utf-8"))["fields"]
    fields: dict[Any, Any] = {base64.b64decode(k): base64.b64decode(v) for k, v in kept.items()}
    client.hset(context_key(ContextConfig().key_prefix, THREAD), mapping=fields)
    env = {"BUSINESS_ASSISTANT_HOME": str(home), "REDIS_URL": url, **more}
    with open_assistant(load_settings(env)) as assistant:
        yield assistant


def case_of(file: Path) -> Any:
    return CASES[file.stem.split("-")[-1]]


def test_every_case_of_a_version_is_kept() -> None:
    versions = {name.rsplit("-", 1)[0] for name in NAMES}
    assert versions
    assert set(NAMES) == {f"{version}-{case}" for version in versions for case in CASES}


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_a_stored_thread_is_read_in_full(
    file: Path, redis_client: redis.Redis, home: Path, redis_url: str
) -> None:
    seen = json.loads(file.read_text(encoding="utf-8"))["seen"]
    with taken_over(file, redis_client, home, redis_url, **dict(case_of(file).env)) as assistant:
        assert seen_in(assistant.saver) == seen
    assert seen["window"]["turns"]
    assert len(seen["requests"]) == len(case_of(file).texts)


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_a_stored_thread_goes_on(file: Path, redis_client: redis.Redis, home: Path, redis_url: str) -> None:
    case = case_of(file)
    with taken_over(file, redis_client, home, redis_url, **dict(case.env)) as assistant:
        before = assistant.saver.restore_window(THREAD)["turns"]
        result = ask(assistant, case.following, "next")
        after = assistant.saver.restore_window(THREAD)["turns"]
    assert (result.status, result.input_kind) == ("completed", case.input_kind)
    assert result.original_question == case.original_question
    assert after[: len(before)] == before
    assert after[-1]["question"] == case.original_question


def test_a_sealed_thread_stays_sealed(redis_client: redis.Redis, home: Path, redis_url: str) -> None:
    file = next(file for file in FILES if file.stem.endswith("sealed"))
    with (
        taken_over(file, redis_client, home, redis_url) as assistant,
        pytest.raises(CheckpointError, match="CONTEXT_AES_KEY"),
    ):
        seen_in(assistant.saver)
