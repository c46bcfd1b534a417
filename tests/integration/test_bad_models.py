"""A model that returns rubbish, through a whole turn: the right status, and nothing forged or empty kept."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from promise import Talk, World

from nodes.answer.providers import ChatModelProvider, Reply, ScriptedProvider
from nodes.contracts import Generated, Prompt, Provider
from nodes.retrieve.documents import KnowledgeStore

ASKED = "一次性创业补贴有多少钱？"
TRUE = "一次性创业补贴的标准为每户8000元[C1]。"


class StatusError(Exception):
    def __init__(self, status_code: int) -> None:
        super().__init__("创业 secret prompt")
        self.status_code = status_code


class FailingModel(FakeListChatModel):
    """A LangChain model that fails before it says anything."""

    fault: Any = None

    def _stream(self, *_: Any, **__: Any) -> Iterator[Any]:
        raise self.fault


@dataclass
class First:
    """The first provider for the first turn, then the second: what is mended by the time of the retry."""

    bad: Provider
    good: Provider = field(default_factory=lambda: ScriptedProvider([TRUE]))
    name: str = "first"
    used: int = 0

    def stream(self, prompt: Prompt) -> Iterator[Generated]:
        self.used += 1
        return (self.bad if self.used == 1 else self.good).stream(prompt)


def model(fault: Exception) -> Provider:
    failing: BaseChatModel = FailingModel(responses=[], fault=fault)
    return ChatModelProvider(failing, name="m", attempts=2, wait=lambda _: None)


@pytest.fixture
def world(sample_home: Any) -> Iterator[World]:
    with KnowledgeStore(sample_home / "knowledge.db") as store:
        yield World(store)


FAILING: dict[str, Provider] = {
    "nothing": ScriptedProvider([""]),
    "blanks": ScriptedProvider([" \n\t　 "]),
    "429": model(StatusError(429)),
    "500": model(StatusError(500)),
    "time-out": model(TimeoutError("创业 secret prompt")),
    "connection lost": model(ConnectionResetError("创业 secret prompt")),
}


@pytest.mark.parametrize("fault", FAILING)
def test_a_model_that_says_nothing_fails_the_turn_which_can_be_retried(world: World, fault: str) -> None:
    talk = world.talk(First(FAILING[fault]))
    failed = talk.say(ASKED)
    assert (failed.status, failed.error_code, failed.degraded) == ("failed", "processing_failed", True)
    assert (failed.answer, failed.partial_text) == (None, None)
    assert "secret" not in repr(failed)
    check_nothing_is_kept(talk)
    done = talk.say("/retry")
    assert (done.status, done.answer["text"]) == ("completed", TRUE)  # type: ignore[index]
    assert [text for _, text in talk.window()] == [ASKED, TRUE.replace("[C1]", "[\\C1]")]


def test_half_an_answer_is_told_and_not_kept(world: World) -> None:
    half = ScriptedProvider([Reply(f"{TRUE}每年最高", error="died", fail_after=6, piece=5)])
    talk = world.talk(First(half))
    failed = talk.say(ASKED)
    assert (failed.status, failed.answer, failed.partial_text) == ("failed", None, TRUE)
    check_nothing_is_kept(talk)
    assert talk.say("/retry").answer["text"] == TRUE  # type: ignore[index]


REFUSED = {
    "a citation that does not exist": "每户8000元[C99]。",
    "a citation of another form": "每户8000元【1】。",
    "a figure that is not there": "每户9999元[C1]。",
    "a mark of ours": "⟦更早的 3 轮已省略⟧每户8000元[C1]。",
    "another language": "The one-off subsidy is paid to each household after the office has decided.",
}


@pytest.mark.parametrize("reply", REFUSED)
def test_what_may_not_be_said_is_written_anew_once_and_then_quoted(world: World, reply: str) -> None:
    talk = world.talk(ScriptedProvider([REFUSED[reply], TRUE]))
    again = talk.say(ASKED)
    assert (again.status, again.degraded, again.text) == ("completed", False, TRUE)
    stubborn = world.talk(ScriptedProvider([REFUSED[reply]]))
    quoted = stubborn.say(ASKED)
    assert (quoted.status, quoted.degraded) == ("completed", True)
    assert "8000元" in quoted.text
    assert REFUSED[reply] not in quoted.text
    assert REFUSED[reply] not in repr(stubborn.window())
    assert quoted.answer["citations"][0]["label"] == "C1"  # type: ignore[index]


def test_an_answer_of_200_kb_is_cut_at_a_sentence_and_bounds_all_that_is_kept(world: World) -> None:
    talk = world.talk(ScriptedProvider([TRUE * (200_000 // len(TRUE.encode()))]))
    done = talk.say(ASKED)
    assert done.status == "completed"
    assert 0 < len(done.text) <= 1024 * 4
    assert done.text.endswith("。")
    assert sum(len(text.encode()) for _, text in talk.window()) <= 6000
    assert len(repr(talk.state()["history"])) < 20_000


def check_nothing_is_kept(talk: Talk) -> None:
    state = talk.state()
    assert talk.window() == []
    assert not (state.get("history") or {}).get("turns")
    assert not state.get("answer")
