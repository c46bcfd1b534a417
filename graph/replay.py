"""Run stored requests again on a scratch copy and compare what was decided, found and answered.

Each request starts from the state that was stored before it, so one that differs does not pull the next
ones along. The stored thread is only read. Without `live` the model's recorded replies are used.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver

from checkpoint.saver import ContextSaver
from graph.build import TurnGraph, build_graph
from graph.compose import Assistant, caller_of_context
from graph.run import config_for, last_result, stream_turn
from nodes.answer.providers import ExtractiveProvider, ScriptedProvider
from nodes.contracts import Answer, Caller, Provider, Request, Turn

Verdict = Literal["equal", "different", "not_comparable"]
COMPARED = ("status", "input_kind", "decision_digest", "evidence", "answer")


@dataclass(frozen=True)
class ReplayedRequest:
    """One stored request and how its replay compares. `differences` are readable lines."""

    request_id: str
    checkpoint_id: str
    verdict: Verdict
    differences: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReplayReport:
    thread_id: str
    requests: tuple[ReplayedRequest, ...]

    @property
    def is_equal(self) -> bool:
        """Nothing differs. What cannot be compared is not a difference."""
        return all(request.verdict != "different" for request in self.requests)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "is_equal": self.is_equal}

    def as_text(self) -> str:
        lines = [f"{request.verdict:<15} {request.request_id}" for request in self.requests]
        for index, request in reversed(list(enumerate(self.requests))):
            lines[index + 1 : index + 1] = [f"    {line}" for line in request.differences]
        count = sum(request.verdict == "equal" for request in self.requests)
        return "\n".join([*lines, f"{count} of {len(self.requests)} requests are equal."])


class UnknownThreadError(ValueError):
    """There is nothing stored under this thread id, or not at this checkpoint."""


@dataclass(frozen=True)
class Stored:
    """A request as stored: the state before it, its input, and the state it ended in."""

    before: CheckpointTuple | None
    request: Request
    after: CheckpointTuple


def replay_thread(
    assistant: Assistant,
    thread_id: str,
    *,
    caller: Caller,
    checkpoint_id: str | None = None,
    live: bool = False,
) -> ReplayReport:
    """Replay the branch that ends in `checkpoint_id`, by default the latest. Raises UnknownThreadError."""
    branch = branch_of(assistant, thread_id, checkpoint_id)
    requests = [_replay(assistant, stored, caller, live=live) for stored in requests_of(branch)]
    return ReplayReport(thread_id, tuple(requests))


def branch_of(assistant: Assistant, thread_id: str, checkpoint_id: str | None) -> list[CheckpointTuple]:
    """The checkpoints from the thread's first to the given one, along parents."""
    config: RunnableConfig = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
    stored = {item.checkpoint["id"]: item for item in assistant.saver.list(config)}
    head = checkpoint_id or max(stored, default=None)
    if head not in stored:
        where = f" at checkpoint {checkpoint_id}" if checkpoint_id else ""
        raise UnknownThreadError(f"Nothing is stored for thread {thread_id}{where}: check the id.")
    branch: list[CheckpointTuple] = []
    while head in stored:
        branch.append(stored[head])
        parent = stored[head].parent_config
        head = parent["configurable"]["checkpoint_id"] if parent else ""
    return branch[::-1]


def requests_of(branch: list[CheckpointTuple]) -> Iterator[Stored]:
    starts = [index for index, item in enumerate(branch) if item.metadata.get("source") == "input"]
    for start, end in zip(starts, [*starts[1:], len(branch)], strict=True):
        sent = branch[start].checkpoint["channel_values"].get("__start__") or {}
        after = branch[end - 1]
        request = sent.get("request") or _request_from_chat(after)
        if request:
            yield Stored(branch[start - 1] if start else None, _completed(request, after), after)


def _request_from_chat(after: CheckpointTuple) -> Request | None:
    messages = after.checkpoint["channel_values"].get("messages") or []
    asked = [message for message in messages if message["type"] == "human"]
    return {"text": asked[-1]["content"], "request_id": asked[-1]["id"]} if asked else None


def _completed(request: Request, after: CheckpointTuple) -> Request:
    """With the id and time that the gate filled in when it ran."""
    values = after.checkpoint["channel_values"]
    outcome, turn = values.get("outcome") or {}, values.get("turn") or {}
    known: Request = {
        "request_id": outcome.get("message_id") or "",
        "received_at": turn.get("received_at") or "",
    }
    return {**known, **request}


def _replay(assistant: Assistant, stored: Stored, caller: Caller, *, live: bool) -> ReplayedRequest:
    reason = why_not_comparable(assistant, stored, caller)
    if reason:
        return _request(stored, "not_comparable", (reason,))
    graph = _scratch_graph(assistant, stored, live=live)
    scratch = replace(assistant, graph=graph)
    last_result(stream_turn(scratch, stored.request, thread_id="scratch", caller=caller))
    values = graph.get_state(config_for("scratch")).values
    was, is_now = compared(stored.after.checkpoint["channel_values"]), compared(values)
    found = tuple(
        f"{key}: was {was[key]!r}, is {is_now[key]!r}" for key in COMPARED if was[key] != is_now[key]
    )
    return _request(stored, "different" if found else "equal", found)


def _request(stored: Stored, verdict: Verdict, found: tuple[str, ...]) -> ReplayedRequest:
    request_id = stored.request.get("request_id", "")
    return ReplayedRequest(request_id, stored.after.checkpoint["id"], verdict, found)


def why_not_comparable(assistant: Assistant, stored: Stored, caller: Caller) -> str | None:
    """Another audience, another knowledge, or a request that never ended: apart from different."""
    values = stored.after.checkpoint["channel_values"]
    outcome, turn, answer = values.get("outcome") or {}, values.get("turn"), values.get("answer")
    if outcome.get("status") is None:
        return "the request did not end when it was stored"
    if turn and turn["audience"] != assistant.services.audience(caller):
        return "it was asked by a caller with other permissions"
    version = answer and answer["knowledge_version"]
    if version and version != assistant.services.retriever.knowledge_version():
        return "the knowledge has changed since"
    return None


def _recorded_resolver(stored: Stored) -> Provider | None:
    """What a resolver said when its question was used without asking; else none, since the user picks."""
    turn: Turn | None = stored.after.checkpoint["channel_values"].get("turn")
    if turn is None or turn["standalone_reason"] != "auto":
        return None
    return ScriptedProvider([json.dumps({"standalone_questions": [turn["standalone_question"]]})])


class ScratchSaver(InMemorySaver):
    """Memory that counts versions on in the stored thread's own format, so that they keep their order."""

    get_next_version = ContextSaver.get_next_version


def _scratch_graph(assistant: Assistant, stored: Stored, *, live: bool) -> TurnGraph:
    """A graph over memory that holds only the state before the request."""
    services = assistant.services
    answer: Answer | None = stored.after.checkpoint["channel_values"].get("answer")
    if not live:
        services = replace(services, resolver=_recorded_resolver(stored))
    if not live and answer and answer["replies"] and not isinstance(services.provider, ExtractiveProvider):
        services = replace(services, provider=ScriptedProvider(answer["replies"]))
    saver = ScratchSaver()
    if stored.before:
        config: RunnableConfig = {"configurable": {"thread_id": "scratch", "checkpoint_ns": ""}}
        before = stored.before.checkpoint
        saver.put(config, before, stored.before.metadata, before["channel_versions"])
    return build_graph(services, saver, caller_of_context)


def compared(values: dict[str, Any]) -> dict[str, Any]:
    """What counts of a state: how the request ended, what was decided, found and said."""
    outcome, answer = values.get("outcome") or {}, values.get("answer") or {}
    pending, evidence = values.get("clarification") or {}, values.get("evidence") or {}
    return {
        "status": outcome.get("status"),
        "input_kind": outcome.get("input_kind"),
        "decision_digest": answer.get("decision_digest") or pending.get("decision_digest"),
        "evidence": [
            (passage["document_id"], passage["version"], passage["passage_hash"])
            for passage in evidence.get("passages") or ()
        ],
        "answer": answer.get("text"),
    }
