"""Branches inside a thread: each sees its own turns, moves its own head, and asks its own questions again."""

from collections.abc import Iterator
from typing import Any

import pytest
from faults.parts import (
    FACT,
    NARRATIVE,
    NOBODY,
    OTHER_NARRATIVE,
    VAGUE,
    Home,
    Model,
    say,
    state_of,
    with_model,
)

from checkpoint import ContextConfig, RedisContextSaver
from graph.compose import Assistant
from graph.run import config_for
from graph.steps import RequestContext

QUESTIONS = (
    FACT,
    NARRATIVE,
    "云帆能源2024年净利润是多少？",
    "研发费用补助怎么申请？",
    "湖光电子2024年营业收入是多少？",
)
CONTEXT = RequestContext(NOBODY)


@pytest.fixture
def assistant(place: Home, model: Model) -> Iterator[Assistant]:
    with place.assistant(model) as opened:
        yield opened


def history(assistant: Assistant) -> list[Any]:
    """The steps of the thread, newest first."""
    return list(assistant.graph.get_state_history(config_for("t")))


def questions_in(state: dict[str, Any]) -> list[str]:
    return [turn["question"] for turn in (state.get("history") or {"turns": []})["turns"]]


def end_of(assistant: Assistant, question: str) -> Any:
    """The config of the newest step that ends the turn of this question."""
    return next(
        step.config
        for step in history(assistant)
        if not step.next and step.values["turn"]["original_question"] == question
    )


def ask_at(assistant: Assistant, config: Any, text: str) -> dict[str, Any]:
    request = {"request": {"text": text, "received_at": assistant.clock()}}
    result: dict[str, Any] = assistant.graph.invoke(request, config, context=CONTEXT, durability="sync")
    return result


def five_turns(assistant: Assistant) -> None:
    for question in QUESTIONS:
        assert say(assistant, question).status == "completed"


def test_a_fork_sees_the_turns_of_its_branch_only(assistant: Assistant, model: Model) -> None:
    five_turns(assistant)
    main = state_of(assistant)
    second = end_of(assistant, QUESTIONS[1])
    model.prompts.clear()
    forked = ask_at(assistant, second, OTHER_NARRATIVE)
    assert questions_in(forked) == [*QUESTIONS[:2], OTHER_NARRATIVE]
    (prompt,) = model.prompts
    asked = [message.content for message in prompt.messages if message.role == "user"]
    assert asked[:-1] == list(QUESTIONS[:2])
    assert not [question for question in QUESTIONS[2:] if question in model.shown()]
    main_end = end_of(assistant, QUESTIONS[4])["configurable"]["checkpoint_id"]
    assert state_of(assistant, checkpoint_id=main_end) == main
    assert assistant.saver.restore_window("t", main_end) == main["history"]
    assert (
        assistant.saver.restore_window("t", second["configurable"]["checkpoint_id"])["turns"][-1]["question"]
        == QUESTIONS[1]
    )


def test_turns_after_a_fork_move_its_head(assistant: Assistant) -> None:
    five_turns(assistant)
    third = end_of(assistant, QUESTIONS[2])
    ask_at(assistant, third, FACT)
    assert say(assistant, NARRATIVE).status == "completed"
    assert questions_in(state_of(assistant)) == [*QUESTIONS[:3], FACT, NARRATIVE]
    # From the head, parents lead back through the fork point and touch nothing of turns 4 and 5.
    by_id = {step.config["configurable"]["checkpoint_id"]: step for step in history(assistant)}
    at: Any = assistant.graph.get_state(config_for("t"))
    passed = []
    while at is not None:
        passed.append(at.config["configurable"]["checkpoint_id"])
        parent = at.parent_config
        at = by_id[parent["configurable"]["checkpoint_id"]] if parent else None
    assert third["configurable"]["checkpoint_id"] in passed
    left = {end_of(assistant, question)["configurable"]["checkpoint_id"] for question in QUESTIONS[3:]}
    assert not left & set(passed)


def test_an_edited_state_starts_a_branch_from_there(assistant: Assistant) -> None:
    five_turns(assistant)
    second = end_of(assistant, QUESTIONS[1])
    edited = assistant.graph.update_state(second, {"turn_count": 41}, as_node="answer")
    forked = ask_at(assistant, edited, FACT)
    assert questions_in(forked) == [*QUESTIONS[:2], FACT]
    assert forked["turn_count"] == 42


def test_a_replay_from_before_a_question_back_asks_again(assistant: Assistant) -> None:
    asked = say(assistant, VAGUE)
    assert asked.clarification
    before = next(step.config for step in history(assistant) if step.next == ("clarify",))
    assert say(assistant, "2").answer
    replayed = assistant.graph.invoke(None, before, context=CONTEXT, durability="sync")
    assert replayed["answer"] is None
    assert replayed["clarification"]["reply"] is None
    assert (replayed["clarification"]["page"], replayed["clarification"]["asked"]) == (1, 1)
    assert replayed["outcome"]["status"] == "needs_input"
    # The reply that was used before is gone; another one can be given on this branch.
    assert say(assistant, "3").answer
    picked = state_of(assistant)["intent"]["companies"]
    assert picked == [replayed["clarification"]["options"][2]["value"]]


def test_a_replay_of_a_finished_turn_changes_nothing(assistant: Assistant, model: Model) -> None:
    say(assistant, NARRATIVE)
    head = state_of(assistant)
    calls = len(model.prompts)
    again = assistant.graph.invoke(None, end_of(assistant, NARRATIVE), context=CONTEXT)
    assert again["answer"] == head["answer"]
    assert len(model.prompts) == calls
    assert state_of(assistant) == head


@pytest.mark.parametrize("how", ["prune", "keep_turns"])
def test_pruning_leaves_a_pending_question_answerable(
    assistant: Assistant, model: Model, redis_url: str, how: str
) -> None:
    say(assistant, NARRATIVE)
    gone = end_of(assistant, NARRATIVE)["configurable"]["checkpoint_id"]
    if how == "prune":
        say(assistant, VAGUE)
        assistant.saver.prune(["t"])
    else:
        config = ContextConfig(url=redis_url, keep_turns=1)
        with RedisContextSaver(config) as small:
            other = with_model(Assistant(**{**vars(assistant), "saver": small}), model)
            for text in (FACT, NARRATIVE, VAGUE):
                say(other, text)
    assert state_of(assistant)["clarification"]
    done = say(assistant, "2")
    assert done.answer
    assert done.answer["kind"] == "fact"
    assert NARRATIVE in questions_in(state_of(assistant))
    # What was pruned is not there, and says so by being nothing.
    assert state_of(assistant, checkpoint_id=gone) == {}
    assert assistant.saver.restore_window("t", gone) is None
    assert assistant.saver.get_tuple({"configurable": {"thread_id": "t", "checkpoint_id": gone}}) is None
