"""What may be said while something is asked back, and that a reply serves once."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from faults.parts import NARRATIVE, NOBODY, OTHER_FACT, VAGUE, Home, Model, say, state_of, with_model

from graph.compose import Assistant
from graph.run import TurnResult, config_for
from graph.steps import RequestContext
from nodes.contracts import Company

NO_PERIOD = "云帆的营业收入是多少？"  # neither which company nor which year


@pytest.fixture
def assistant(place: Home, model: Model) -> Iterator[Assistant]:
    with place.assistant(model) as opened:
        yield opened


def candidates(assistant: Assistant) -> list[str]:
    return [option["value"] for option in state_of(assistant)["clarification"]["options"]]


def is_asked_again(result: TurnResult) -> bool:
    return result.status == "needs_input" and result.clarification is not None


@pytest.mark.parametrize("text", ["2", "２", "第二个", "②", "second"])
def test_a_number_picks_in_every_form(assistant: Assistant, text: str) -> None:
    say(assistant, VAGUE)
    offered = candidates(assistant)
    assert len(offered) > 5
    done = say(assistant, text)
    assert (done.status, done.original_question) == ("completed", VAGUE)
    assert state_of(assistant)["intent"]["companies"] == [offered[1]]


@pytest.mark.parametrize("text", ["你好", "谢谢", "99", "0", "-1", "2.5", "今天天气怎么样", "嗯", "？"])
def test_what_is_no_reply_fills_nothing_and_is_asked_again(assistant: Assistant, text: str) -> None:
    say(assistant, VAGUE)
    offered = candidates(assistant)
    again = say(assistant, text)
    assert is_asked_again(again)
    assert again.original_question == VAGUE
    assert state_of(assistant)["intent"]["companies"] == []
    assert candidates(assistant) == offered
    assert state_of(assistant)["clarification"]["reply"] is None
    assert say(assistant, "1").status == "completed"


def test_pages_and_cancelling(assistant: Assistant) -> None:
    say(assistant, VAGUE)
    assert say(assistant, "下一页").clarification["page"] == 2  # type: ignore[index]
    cancelled = say(assistant, "取消")
    assert (cancelled.status, cancelled.answer["kind"]) == ("completed", "cancelled")  # type: ignore[index]
    late = say(assistant, "2")
    assert not (late.answer and late.answer["kind"] == "fact"), "a candidate of a cancelled turn was picked"


def test_a_whole_question_takes_the_place_of_the_one_that_waits(assistant: Assistant) -> None:
    say(assistant, VAGUE)
    old = state_of(assistant)["turn"]["turn_id"]
    done = say(assistant, OTHER_FACT)
    assert (done.status, done.input_kind, done.original_question) == ("completed", "new_question", OTHER_FACT)
    assert done.notice
    assert "北渚茶业" in done.answer["text"]  # type: ignore[index]
    state = state_of(assistant)
    assert state["turn"]["turn_id"] != old
    assert [turn["question"] for turn in state["history"]["turns"]] == [OTHER_FACT]


def test_a_used_reply_answers_nothing_that_is_asked_later(assistant: Assistant) -> None:
    """Asked for the company, then for the period: no resume and no retry brings the first reply back."""
    say(assistant, NO_PERIOD)
    assert state_of(assistant)["clarification"]["slot"] == "company"
    offered = candidates(assistant)
    second = say(assistant, "2")
    assert is_asked_again(second)
    pending = state_of(assistant)["clarification"]
    assert pending["slot"] == "period"
    assert not set(offered) & {option["value"] for option in pending["options"]}
    assistant.graph.invoke(None, config_for("t"), context=RequestContext(NOBODY), durability="sync")
    assert state_of(assistant)["clarification"] == pending
    retried = say(assistant, "/retry")
    assert (retried.input_kind, retried.status) == ("clarification_reply", "needs_input")
    assert state_of(assistant)["clarification"]["slot"] == "period"
    assert state_of(assistant)["intent"]["periods"] == []
    # "2" now means the second period, and names no company of the list before.
    periods = candidates(assistant)
    done = say(assistant, "2")
    assert done.status == "completed"
    intent = state_of(assistant)["intent"]
    assert (intent["companies"], intent["periods"]) == ([offered[1]], [periods[1]])


class Shrinking:
    """A directory from which companies are taken while a question about them waits."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.gone = inner, set[str]()

    def companies(self) -> list[Company]:
        return [company for company in self.inner.companies() if company.company_id not in self.gone]

    def company(self, company_id: str) -> Company | None:
        return None if company_id in self.gone else self.inner.company(company_id)

    def metrics(self) -> Any:
        return self.inner.metrics()


def test_what_was_offered_is_looked_up_as_the_knowledge_is_when_it_is_picked(
    assistant: Assistant, model: Model
) -> None:
    """The knowledge changes while the list waits: the pick finds nothing and says so; nothing old is told."""
    directory = Shrinking(assistant.services.directory)
    services = replace(assistant.services, directory=directory)
    changing = with_model(replace(assistant, services=services), model)
    say(changing, VAGUE)
    offered = candidates(changing)
    from nodes.retrieve.sample import SAMPLE_SET

    assistant.store.remove(SAMPLE_SET)
    directory.gone = set(offered)
    done = say(changing, "2")
    assert done.status in ("completed", "needs_input")
    if done.answer:
        assert (done.answer["kind"], done.answer["citations"]) == ("not_found", [])
    assert say(changing, NARRATIVE).status == "completed"
