"""A whole assistant with a model that counts, waits and fails as a test says; the rest of it is real."""

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from integration.door import WAIT_SECONDS, Door, open_door, until

from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.store import open_store
from graph.build import build_graph
from graph.compose import Assistant, caller_of_context, open_assistant
from graph.run import TurnResult, config_for, last_result, stream_turn
from graph.settings import load_settings
from nodes.contracts import Caller, Generated, Prompt, ProviderError

FACT = "云帆科技2023年的营业收入是多少？"
OTHER_FACT = "北渚茶业2024年净利润是多少？"
VAGUE = "云帆2023年营业收入是多少？"  # several companies share the short name
NARRATIVE = "创业补贴有多少？"
OTHER_NARRATIVE = "租房补贴怎么申请？"
NOBODY = Caller()


@dataclass
class Model:
    """Quotes sentences of its first passage. Keeps every prompt; `log` counts calls across processes."""

    log: Path | None = None
    name: str = "counted"
    prompts: list[Prompt] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)  # used up one a call: "error", "blank", "dies"
    holds: bool = False  # waits until `go` when its first sentence has left
    waiting: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)
    go_file: Path | None = None  # the same for another process to give: there once it exists

    def stream(self, prompt: Prompt) -> Iterator[Generated]:
        self.prompts.append(prompt)
        if self.log:
            with self.log.open("a", encoding="utf-8") as log:
                log.write(f"{os.getpid()}\n")
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "error":
            raise ProviderError("the model answered 429")
        if fault == "blank":
            yield Generated(" \n")
            return
        for place, sentence in enumerate(_sentences(prompt)):
            # A sentence leaves when the next has begun.
            yield Generated(f"{sentence}[C1]。")
            if place == 1 and fault == "dies":
                raise ProviderError("the connection was reset")
            if place == 1 and self.holds:
                self._wait()

    def _wait(self) -> None:
        self.waiting.set()
        if self.go_file:
            until(self.go_file.exists)
        else:
            self.go.wait(WAIT_SECONDS)

    def shown(self) -> str:
        """All text of all prompts."""
        return "\n".join(message.content for prompt in self.prompts for message in prompt.messages)


def _sentences(prompt: Prompt) -> list[str]:
    found = [part.strip() for part in prompt.passages[0]["text"].replace("\n", "。").split("。")]
    return [part for part in found if len(part) > 8 and not part.startswith("#")][:3]


@dataclass(frozen=True)
class Home:
    """Where one deployment keeps its things: data folder, Redis, database."""

    folder: Path
    redis_url: str
    more: dict[str, str] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        return {"BUSINESS_ASSISTANT_HOME": str(self.folder), "REDIS_URL": self.redis_url, **self.more}

    @contextmanager
    def assistant(self, model: Any = None) -> Iterator[Assistant]:
        with open_assistant(load_settings(self.env)) as opened:
            yield with_model(opened, model) if model else opened

    @contextmanager
    def door(
        self, model: Any = None, *, store: Any = None, saver: Any = None, **options: Any
    ) -> Iterator[Door]:
        """A server with its durable record. `store` and `saver` wrap the real ones: functions of them."""
        with ExitStack() as stack:
            if model:
                stack.callback(model.go.set)
            kept = stack.enter_context(open_store(StoreConfig(home=self.folder)))
            assistant = stack.enter_context(self.assistant(model))
            if saver:
                assistant = with_saver(assistant, saver(assistant.saver))
            door = stack.enter_context(open_door(assistant, store=store(kept) if store else kept, **options))
            yield door
            if model:
                model.go.set()
            door.wait_idle()


def with_model(assistant: Assistant, model: Any) -> Assistant:
    services = replace(assistant.services, provider=model)
    graph = build_graph(services, assistant.saver, caller_of_context)
    return replace(assistant, services=services, graph=graph)


def with_saver(assistant: Assistant, saver: Any) -> Assistant:
    return replace(assistant, saver=saver, graph=build_graph(assistant.services, saver, caller_of_context))


def say(
    assistant: Assistant, text: str, thread: str = "t", caller: Caller = NOBODY, **more: Any
) -> TurnResult:
    request: Any = {"request_id": assistant.new_id(), "text": text, "received_at": assistant.clock()}
    return last_result(stream_turn(assistant, request, thread_id=thread, caller=caller, **more))


def state_of(assistant: Assistant, thread: str = "t", checkpoint_id: str | None = None) -> dict[str, Any]:
    config = config_for(thread)
    if checkpoint_id:
        config["configurable"]["checkpoint_id"] = checkpoint_id
    return dict(assistant.graph.get_state(config).values)


def conversation(door: Door, name: str = "t", **how: Any) -> str:
    """The id of the conversation with this name; fails where there is none."""
    listed = door.http.get("/conversations", **how).json()["items"]
    return str(next(held["id"] for held in listed if held["externalId"] == name))


def rows(door: Door, name: str = "t") -> list[dict[str, Any]]:
    """The messages that a reader is shown, oldest first; none where the conversation is unknown."""
    listed = door.http.get("/conversations").json()["items"]
    for held in listed:
        if held["externalId"] == name:
            response = door.http.get(f"/conversations/{held['id']}/messages")
            assert response.status_code == 200, response.text
            found: list[dict[str, Any]] = response.json()["items"]
            return found
    return []


def forms(door: Door, name: str = "t") -> list[tuple[str, str]]:
    return [(row["role"], row["status"]) for row in rows(door, name)]


def context(door: Door, name: str = "t") -> list[dict[str, str]]:
    """What a model would be shown of the thread."""
    response = door.http.get(f"/api/threads/{name}/window")
    found: list[dict[str, str]] = response.json()["messages"] if response.status_code == 200 else []
    return found


def agreed(door: Door, name: str = "t") -> bool:
    """Whether the window is made of the shown question-answer pairs, in their order."""
    shown = rows(door, name)
    pairs = [
        (one["content"], other["content"])
        for one, other in pairwise(shown)
        if (one["role"], other["role"], other["status"]) == ("USER", "ASSISTANT", "COMPLETE")
    ]
    seen = [message["content"] for message in context(door, name)]
    windowed = list(zip(seen[::2], seen[1::2], strict=True))
    return [question for question, _ in windowed] == [question for question, _ in pairs][-len(windowed) :]


ANSWERED = [("USER", "COMPLETE"), ("ASSISTANT", "COMPLETE")]
