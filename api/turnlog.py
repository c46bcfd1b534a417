"""What is noted of an ended request: ids, counts, lengths and keyed hashes, in the log and in the metrics.

A keyed hash lets an operator who holds the key see that two questions were the same; without the key it says
nothing, also not for a question that one can guess.
"""

import hashlib
import hmac
import traceback
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

    def ended(
        self,
        record: Mapping[str, Any],
        result: TurnResult,
        ids: Mapping[str, Any],
        cause: str | None = None,
    ) -> None:
        """`ids`: of the conversation, its two messages, and `summary_sequence`, as far as there are any.

        `cause`: why the run was told to end, if it was: a user's stop, a time-out, a shutdown, …
        """
        names = ("request_id", "input_kind", "status", "degraded", "error_code", "duration_ms")
        known = {name: record[name] for name in names}
        log.info("request_ended", **known, cause=cause, **ids, **self._told(result))
        self._count(record, result)

    def asked(
        self, request_id: str, question: str, result: TurnResult, seconds: float, cause: str | None = None
    ) -> None:
        """A question without a conversation, and without a record. `cause` as in `ended`."""
        known = {
            "request_id": request_id, "status": result.status, "degraded": result.degraded, "cause": cause
        }  # fmt: skip
        told = {**self._told(result), "question": self._said(question)}
        log.info("ask_ended", **known, duration_ms=round(seconds * 1000), **told)
        self._count_tokens(result)

    def _told(self, result: TurnResult) -> dict[str, Any]:
        return {
            "question": self._said(result.original_question),
            "standalone_question": self._said(result.standalone_question),
            "window": window_of(result),
            "passages": passages_of(result),
            **_usage_of(result),
        }

    def broken_off(self, request_id: str, code: str, cause: str | None) -> None:
        """An accepted request whose end could not be stored."""
        log.warning("request_broken_off", request_id=request_id, code=code, cause=cause)
        self.metrics.count("requests_broken_off", code)

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
        self._count_tokens(result)
        metrics.count("window_omitted_turns", by=result.window["omitted_turns"])

    def _count_tokens(self, result: TurnResult) -> None:
        metrics = self.metrics
        if result.usage:
            for direction, name in (("in", "prompt_tokens"), ("out", "completion_tokens")):
                metrics.count("model_tokens", result.usage["model"], direction, by=result.usage[name])  # type: ignore[literal-required]


def log_fault(event: str, request_id: str, error: Exception) -> None:
    """An error's type and place. Its message may quote the user, so it stays out of the log."""
    log.error(event, request_id=request_id, error=type(error).__name__, at=_places_in(error))


def log_part_fault(part: str, error: Exception) -> None:
    """As `log_fault`, of a part of the service that was only looked at. Its message may tell where it is."""
    log.error("part_fault", part=part, error=type(error).__name__, at=_places_in(error))


def _places_in(error: Exception) -> list[str]:
    return [f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-3:]]


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
