"""Scripted dialogues through the whole graph: is each request taken for what it is, and does it end so?

Labelled by the gate's table, not from a run. `model_fails` makes the model of that one request fail; where
a step names no expectation of a kind, it is not scored.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from langgraph.checkpoint.memory import InMemorySaver
from structlog.testing import capture_logs

from checkpoint.window import WindowLimits
from graph.build import Services, TurnGraph, build_graph
from graph.compose import caller_of_context, services_over
from graph.run import TurnResult, last_result, stream_turn
from nodes.answer.providers import ExtractiveProvider
from nodes.contracts import Caller, Generated, Prompt, ProviderError, Request
from nodes.retrieve.documents import KnowledgeStore
from nodes.retrieve.exits import open_retriever
from scripts.eval.knowledge import RECEIVED_AT, sample_store
from scripts.eval.own_sets import read_rows
from scripts.eval.report import Cell, Options, Report, Table, share

Dialogue = Mapping[str, Any]
Said = Mapping[str, Any]  # what was observed of one step
EXPECTED = ("input_kind", "status", "slot", "answer", "error_code")
LANGUAGES = ("zh", "en")


class FailingAtWill:
    """Quotes, or fails where the script says that the model is down."""

    name = "scripted"
    only_quotes = True
    is_down = False

    def stream(self, prompt: Prompt) -> Iterator[Generated]:
        if self.is_down:
            raise ProviderError("the scripted model is down; try again with /retry")
        yield from ExtractiveProvider().stream(prompt)


class Stage:
    """The graph over the sample, with a memory of its own for each dialogue."""

    def __init__(self, store: KnowledgeStore) -> None:
        self.model = FailingAtWill()
        self._services: Services = services_over(
            store,
            retriever=open_retriever(store),
            provider=self.model,
            topics=(),
            limits=WindowLimits(),
            follow_up="confirm",
            clock=lambda: RECEIVED_AT,
        )
        self.graph: TurnGraph

    def play(self, dialogue: Dialogue) -> list[Said]:
        self.graph = build_graph(self._services, InMemorySaver(), caller_of_context)
        return [
            self._say(dialogue["id"], number, step) for number, step in enumerate(dialogue["steps"], start=1)
        ]

    def _say(self, thread_id: str, number: int, step: Mapping[str, Any]) -> Said:
        self.model.is_down = step.get("model_fails", False)
        request: Request = {
            "request_id": str(UUID(int=number)),
            "text": step["say"],
            "received_at": RECEIVED_AT,
        }
        events = stream_turn(self, request, thread_id=thread_id, caller=Caller())
        return observed(last_result(events))


def observed(result: TurnResult) -> Said:
    return {
        "input_kind": result.input_kind,
        "status": result.status,
        "slot": result.clarification["slot"] if result.clarification else None,
        "answer": result.answer["kind"] if result.answer else None,
        "error_code": result.error_code,
    }


def evaluate(_options: Options) -> Report:
    dialogues = read_rows("dialogues")
    with capture_logs(), sample_store() as store:  # the failures are scripted
        stage = Stage(store)
        return evaluate_dialogues(dialogues, [stage.play(dialogue) for dialogue in dialogues])


def evaluate_dialogues(dialogues: Sequence[Dialogue], played: Sequence[Sequence[Said]]) -> Report:
    steps = [
        (dialogue, step, said)
        for dialogue, all_said in zip(dialogues, played, strict=True)
        for step, said in zip(dialogue["steps"], all_said, strict=True)
    ]
    kinds = list(dict.fromkeys(step["input_kind"] for _, step, _ in steps if "input_kind" in step))
    by_kind = [
        [kind, *(_right("input_kind", steps, language, kind) for language in LANGUAGES)] for kind in kinds
    ]
    by_expectation = [[name, *(_right(name, steps, language) for language in LANGUAGES)] for name in EXPECTED]
    whole: list[Cell] = ["whole dialogues"]
    for language in LANGUAGES:
        held = [dialogue["id"] for dialogue in dialogues if dialogue["language"] == language]
        failed = {dialogue["id"] for dialogue, step, said in steps if wrong(step, said)}
        whole.append(share(sum(one not in failed for one in held), len(held)))
    misses = [
        {"id": dialogue["id"], "title": dialogue["title"], "say": step["say"], **wrong(step, said)}
        for dialogue, step, said in steps
        if wrong(step, said)
    ]
    return Report(
        "gate",
        [
            Table("Input kinds, by what is expected", ("input_kind", *LANGUAGES), by_kind),
            Table("All that is expected of a step", ("expected", *LANGUAGES), [*by_expectation, whole]),
        ],
        misses,
    )


def wrong(step: Mapping[str, Any], said: Said) -> dict[str, str]:
    return {
        name: f"wanted {step[name]}, was {said[name]}"
        for name in EXPECTED
        if name in step and step[name] != said[name]
    }


def _right(
    name: str,
    steps: Sequence[tuple[Dialogue, Mapping[str, Any], Said]],
    language: str,
    wanted: str | None = None,
) -> str:
    held = [
        (step, said)
        for dialogue, step, said in steps
        if dialogue["language"] == language and name in step and wanted in (None, step[name])
    ]
    return share(sum(name not in wrong(step, said) for step, said in held), len(held))
