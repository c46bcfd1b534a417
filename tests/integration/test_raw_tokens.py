"""A model's raw token reaches no client: in no stream mode that a door requests, and in no byte over HTTP."""

import ast
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from door import events_of, open_door
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

import graph.run
from checkpoint.conversations.store import open_store
from graph.build import build_graph
from graph.compose import Assistant, caller_of_context
from graph.run import config_for
from graph.steps import RequestContext
from nodes.answer.providers import ChatModelProvider
from nodes.contracts import Caller

ROOT = Path(__file__).parents[2]
CANARY = "CANARY-0000-云湖"
QUESTION = "创业补贴有多少？"
FIGURE = "98765.4"  # its point stands in no random id
SAID = f"一次性创业补贴为8000元[C1]。识别标记是{CANARY}，金额为{FIGURE}万元[C1]。"
OURS = ("custom", "messages")  # what a client of the graph itself is shown while it runs
NEVER = {"checkpoints", "debug", "updates", "messages"}  # what no door requests


class SayingModel(BaseChatModel):
    """Says the same, a few characters at a time; `fails` ends it with an error that quotes the canary."""

    said: str = SAID
    fails: bool = False

    @property
    def _llm_type(self) -> str:
        return "saying"

    def _generate(self, messages: list[BaseMessage], *args: Any, **more: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=self.said))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **more: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for at in range(0, len(self.said), 5):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=self.said[at : at + 5]))
            if run_manager:
                run_manager.on_llm_new_token(str(chunk.message.content), chunk=chunk)
            yield chunk
        if self.fails:
            raise ValueError(self.said)


@pytest.fixture
def saying(assistant: Assistant) -> Callable[..., Assistant]:
    """The assistant with this model; the graph is compiled anew around it."""

    def make(**how: Any) -> Assistant:
        provider = ChatModelProvider(SayingModel(**how))
        services = replace(assistant.services, provider=provider, resolver=provider)
        return replace(
            assistant, services=services, graph=build_graph(services, assistant.saver, caller_of_context)
        )

    return make


def seen_in(assistant: Assistant, mode: str, question: str = QUESTION) -> list[Any]:
    request = {"request_id": str(uuid4()), "text": question, "received_at": assistant.clock()}
    return list(
        assistant.graph.stream(
            {"request": request},
            config_for(str(uuid4())),
            context=RequestContext(Caller()),
            stream_mode=mode,  # type: ignore[call-overload]
            durability="sync",
        )
    )


def without_replies(value: Any) -> Any:
    """The value without what is kept for replay alone."""
    if isinstance(value, dict):
        return {key: without_replies(each) for key, each in value.items() if key != "replies"}
    if isinstance(value, list | tuple):
        return [without_replies(each) for each in value]
    return value


@pytest.mark.parametrize("mode", ["values", "updates", "custom", "messages", "tasks", "checkpoints", "debug"])
def test_no_stream_mode_shows_a_raw_token(saying: Callable[..., Assistant], mode: str) -> None:
    """The state keeps the raw reply under `replies`, for replay; nowhere else is it in any mode."""
    seen = seen_in(saying(), mode)
    assert seen or mode == "messages"
    assert CANARY not in repr(without_replies(seen))
    assert FIGURE not in repr(without_replies(seen))
    assert (CANARY in repr(seen)) is (mode not in OURS)  # the model did say it


def test_the_mode_messages_yields_no_piece_of_the_model(saying: Callable[..., Assistant]) -> None:
    assert [chunk for chunk, _ in seen_in(saying(), "messages") if isinstance(chunk, AIMessageChunk)] == []


def test_without_the_tag_the_mode_messages_would_show_it(
    saying: Callable[..., Assistant], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = SayingModel.stream
    monkeypatch.setattr(SayingModel, "stream", lambda self, said, config=None: stream(self, said))
    seen = seen_in(saying(), "messages")
    assert CANARY in "".join(str(chunk.content) for chunk, _ in seen)


def test_a_true_sentence_does_leave(saying: Callable[..., Assistant]) -> None:
    """Silence would pass the tests above: what stands in the evidence is told."""
    told = "".join(
        chunk.get("token", "") for chunk in seen_in(saying(said="一次性创业补贴为8000元[C1]。"), "custom")
    )
    assert "8000元" in told


@pytest.mark.parametrize("fails", [False, True])
def test_no_raw_token_is_in_any_byte_over_http(saying: Callable[..., Assistant], fails: bool) -> None:
    assistant = saying(fails=fails)
    told: list[str] = []
    with (
        open_store(assistant.settings.conversations) as store,
        open_door(assistant, store=store) as door,
    ):
        told.append(door.post(QUESTION).text)
        assert events_of(told[0])[-1][0] in ("done", "error")
        held = door.http.get("/conversations").json()["items"][0]["id"]
        for route, body in (
            ("/v1/ask", {"question": QUESTION}),
            ("/v1/ask/stream", {"question": QUESTION}),
            (f"/conversations/{held}/messages", {"question": "/retry"}),
            (f"/conversations/{held}/messages", {"question": QUESTION, "stream": True}),
        ):
            told.append(door.http.post(route, json=body).text)
        for route in (
            "/api/threads/t/requests",
            "/api/threads/t/window",
            f"/conversations/{held}",
            f"/conversations/{held}/messages",
            f"/conversations/{held}/export",
            f"/conversations/{held}/export?format=markdown",
        ):
            response = door.http.get(route)
            assert response.status_code == 200
            told.append(response.text)
    everything = "\n".join(told)
    assert "创业补贴" in everything
    assert "CANARY" not in everything
    assert FIGURE not in everything
    assert '"replies"' not in everything
    kept = assistant.graph.get_state(config_for("t")).values["answer"]
    assert fails or CANARY in repr(kept["replies"])  # it was said, and is kept where no door shows it


def test_no_result_of_a_run_shows_replies(saying: Callable[..., Assistant]) -> None:
    assistant = saying()
    request = {"request_id": "r", "text": QUESTION, "received_at": assistant.clock()}
    events = list(graph.run.stream_turn(assistant, request, thread_id="r", caller=Caller()))  # type: ignore[arg-type]
    told = repr(events) + json.dumps(events[-1].to_json(), ensure_ascii=False)  # type: ignore[union-attr]
    assert "replies" not in told
    assert CANARY not in told


def modes_requested() -> dict[str, set[str]]:
    """File -> stream modes that product code asks the graph for."""
    found: dict[str, set[str]] = {}
    for file in sorted(each for room in ("api", "graph", "nodes") for each in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "stream_mode":
                modes = {each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant)}
                found.setdefault(str(file.relative_to(ROOT)), set()).update(map(str, modes))
    return found


def test_no_door_requests_a_mode_that_shows_states() -> None:
    """One place streams, and of `values` and `tasks`, which hold states, it tells a door names alone."""
    assert modes_requested() == {"graph/run.py": {"custom", "tasks", "values"}}
    assert not NEVER & modes_requested()["graph/run.py"]


def test_no_door_names_replies() -> None:
    for file in sorted((ROOT / "api").rglob("*.py")):
        words = {
            node.value
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant)
        }
        assert "replies" not in words, file
