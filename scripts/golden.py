"""Stored threads as this version writes them, kept for ever: each later version must still read them.

    python -m scripts.golden            # writes tests/replay/golden/<version>-<case>.json

Run once when a version is released; a released file is never written again. A file holds the fields of one
thread hash as the server has them (base64), and what a reader saw in them; the test asks `seen_in` too.
"""

import base64
import hashlib
import json
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from checkpoint import RedisContextSaver
from checkpoint.layout import context_key
from graph.build import build_graph
from graph.compose import Assistant, caller_of_context, open_assistant, prepare_knowledge
from graph.run import config_for, last_result, stream_turn
from graph.settings import load_settings
from nodes.answer.providers import ScriptedProvider
from nodes.contracts import Caller

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "replay" / "golden"
AES_KEY = "golden-key-16byt"  # of the sealed thread; it protects nothing else
THREAD = "golden"


@dataclass(frozen=True)
class Case:
    """A conversation to store, and the request with which a later version takes it over."""

    texts: tuple[str, ...]
    following: str
    input_kind: str
    original_question: str
    env: tuple[tuple[str, str], ...] = ()
    last_fails: bool = False  # the model raises in the last turn


FACT = "云帆科技2023年营收是多少？"
NEXT = "北渚茶业2024年净利润是多少？"
NARRATIVE = "一次性创业补贴有多少钱？"
COMPARISON = "云帆科技和云帆能源2023年净利润对比"
VAGUE = "云帆2023年净利润是多少？"
CASES = {
    "answered": Case(
        ("你好", FACT, NARRATIVE, "云帆科技和云帆能源2023年净利润对比"), NEXT, "new_question", NEXT
    ),
    "pending": Case((FACT, VAGUE), "第二个", "clarification_reply", VAGUE),
    "unfinished": Case((FACT, NARRATIVE), "/retry", "retry", NARRATIVE, last_fails=True),
    "sealed": Case((FACT, NARRATIVE), NEXT, "new_question", NEXT, env=(("CONTEXT_AES_KEY", AES_KEY),)),
}


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    for name, case in CASES.items():
        file = FOLDER / f"{version}-{name}.json"
        if file.exists() and "--again" not in sys.argv:
            sys.exit(f"{file.name} is there already; --again replaces what no release has carried yet")
        file.write_text(json.dumps(stored(case), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        print(file.name, f"{file.stat().st_size / 1000:.0f} kB")


def stored(case: Case) -> dict[str, Any]:
    """The thread's fields and what is seen in them."""
    with opened(case) as assistant:
        for place, text in enumerate(case.texts, start=1):
            fails = case.last_fails and place == len(case.texts)
            ask(with_failing_model(assistant) if fails else assistant, text, f"request-{place}")
        fields = assistant.saver.wire.client.hgetall(context_key(assistant.saver.config.key_prefix, THREAD))
        return {
            "fields": {encoded(name): encoded(value) for name, value in sorted(fields.items())},
            "seen": seen_in(assistant.saver),
        }


@contextmanager
def opened(case: Case) -> Iterator[Assistant]:
    with tempfile.TemporaryDirectory(prefix="ba-") as home:
        settings = load_settings({"BUSINESS_ASSISTANT_HOME": home, **dict(case.env)})
        prepare_knowledge(settings)
        with open_assistant(settings, clock=lambda: "2026-11-30T09:00:00.000+08:00") as assistant:
            yield assistant


def with_failing_model(assistant: Assistant) -> Assistant:
    services = replace(assistant.services, provider=ScriptedProvider([], once=True))
    return replace(assistant, graph=build_graph(services, assistant.saver, caller_of_context))


def ask(assistant: Assistant, text: str, request_id: str) -> Any:
    """The result of one request, recorded as the doors record it."""
    at = assistant.clock()
    result = last_result(
        stream_turn(
            assistant,
            {"request_id": request_id, "text": text, "received_at": at},
            thread_id=THREAD,
            caller=Caller(),
        )
    )
    known = ("original_question", "input_kind", "status", "degraded", "error_code")
    record = {"schema_version": 1, "request_id": request_id, "thread_id": THREAD, "question": text}
    times = {"received_at": at, "started_at": at, "finished_at": at, "duration_ms": 1}
    assistant.saver.put_request(record | times | {name: getattr(result, name) for name in known})
    return result


def seen_in(saver: RedisContextSaver) -> dict[str, Any]:
    """What a reader finds in the thread, as plain JSON."""
    found = list(saver.list(config_for(THREAD)))
    seen = {
        "latest": found[0].checkpoint["channel_values"],
        "checkpoints": {each.checkpoint["id"]: digest(each.checkpoint["channel_values"]) for each in found},
        "steps": [(each.metadata["source"], each.metadata["step"]) for each in found],
        "pending_writes": [len(each.pending_writes or ()) for each in found],
        "window": saver.restore_window(THREAD),
        "requests": list(saver.list_requests(THREAD)),
    }
    return json.loads(json.dumps(seen))  # type: ignore[no-any-return]


def digest(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()


if __name__ == "__main__":
    main()
