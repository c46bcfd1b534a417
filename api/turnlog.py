"""What is noted of an ended request: ids, counts, lengths and keyed hashes, in the log and in the metrics.

A keyed hash lets an operator who holds the key see that two questions were the same; without the key it says
nothing, also not for a question that one can guess.
"""

import hashlib
import hmac
from collections.abc import Mapping
from secrets import token_bytes
from typing import Any

import structlog

from api.metrics import Metrics
from graph.run import TurnResult
from graph.settings import Settings

HASH_CHARACTERS = 32

log = structlog.get_logger("api")


class TurnLog:
    """Notes each ended request once."""

    def __init__(self, key: bytes, metrics: Metrics) -> None:
        self._key = key
        self.metrics = metrics

    def ended(self, record: Mapping[str, Any], result: TurnResult, ids: Mapping[str, Any]) -> None:
        """`ids`: of the conversation, its two messages, and `summary_sequence`, as far as there are any."""
        names = ("request_id", "input_kind", "status", "degraded", "error_code", "duration_ms")
        log.info(
            "request_ended",
            **{name: record[name] for name in names},
            **ids,
            question=self._said(result.original_question),
            standalone_question=self._said(result.standalone_question),
            window=window_of(result),
            passages=passages_of(result),
            **_usage_of(result),
        )
        self._count(record, result)

    def _said(self, text: str | None) -> dict[str, Any] | None:
        """A text's hash and length in characters; never the text."""
        if text is None:
            return None
        digest = hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
        return {"hash": digest[:HASH_CHARACTERS], "length": len(text)}

    def _count(self, record: Mapping[str, Any], result: TurnResult) -> None:
        metrics = self.metrics
        metrics.count("turns", record["status"], record["input_kind"])
        metrics.measure("turn_duration_seconds", record["duration_ms"] / 1000, record["status"])
        if result.answer:
            metrics.count("answers", result.answer["kind"], str(record["degraded"]).lower())
        if result.usage:
            for direction, name in (("in", "prompt_tokens"), ("out", "completion_tokens")):
                metrics.count("model_tokens", result.usage["model"], direction, by=result.usage[name])  # type: ignore[literal-required]
        metrics.count("window_omitted_turns", by=result.window["omitted_turns"])


def turn_log(settings: Settings, metrics: Metrics) -> TurnLog:
    key = settings.log_hash_key
    return TurnLog(key.get_secret_value().encode() if key else token_bytes(32), metrics)


def window_of(result: TurnResult) -> dict[str, Any]:
    """Which of the eligible turns, counted from 1, the model saw; both ends 0 where it saw none."""
    seen = result.window
    first = seen["omitted_turns"] + 1 if seen["turns"] else 0
    return {"first": first, "last": first and first + seen["turns"] - 1, "bytes": seen["bytes"]}


def passages_of(result: TurnResult) -> list[str]:
    citations = result.answer["citations"] if result.answer else []
    return [_passage(citation) for citation in citations]


def _passage(citation: Mapping[str, Any]) -> str:
    place = f"#{citation['start']}-{citation['end']}" if "start" in citation else ""
    return f"{citation['document_id']}@{citation['version']}{place}"


def _usage_of(result: TurnResult) -> dict[str, Any]:
    usage = result.usage
    if usage is None:
        return {"model": None, "prompt_tokens": None, "completion_tokens": None}
    return dict(usage)
