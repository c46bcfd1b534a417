"""What fits a prompt, by priority, and what is told about the rest."""

from typing import Any

import pytest

from api.contract.context import (
    ContractPlan,
    Part,
    budget_of,
    least_budget,
    room_of,
)
from checkpoint.window import WindowLimits, window_from_pairs
from nodes.answer.prompts import PromptBudget, estimate_tokens
from nodes.contracts import Passage

PARTS = [Part("state", "甲" * 60), Part("summary", "乙" * 60), Part("profile", "丙" * 60)]
QUESTION = "原因是什么？"


def passage(source: str, title: str = "t", text: str = "丁" * 100) -> Passage:
    return Passage(
        document_id=source,
        version="1",
        title=title,
        source=source,
        text=text,
        start=0,
        end=len(text),
        passage_hash="",
        score=1.0,
        valid_from=None,
        valid_until=None,
    )


def planned(total: int, passages: Any, parts: Any = PARTS) -> tuple[Any, ContractPlan]:
    window = window_from_pairs(
        [("user", "问" * 40), ("assistant", "答" * 40)], limits=WindowLimits(), language="zh"
    )
    plan = ContractPlan(budget_of(total), parts)
    made = plan(QUESTION, language="zh", passages=passages, window=window, budget=PromptBudget())
    return made, plan


def test_parts_go_one_by_one_from_the_last() -> None:
    passages = [passage("a"), passage("b")]
    kept: list[str] = []
    for total in range(3000, least_budget(QUESTION, "zh"), -10):
        made, plan = planned(total, passages)
        system = made.prompt.messages[0].content
        here = "".join(
            letter
            for letter, is_there in (
                ("d", "丁" * 100 in system),
                ("w", made.window.turns == 1),
                ("s", "甲" in system),
                ("y", "乙" in system),
                ("p", "丙" in system),
            )
            if is_there
        )
        kept.append(here)
        lost = {omission.part for omission in plan.omitted}
        assert {"state", "summary", "profile"} & lost == {
            name
            for name, letter in (("state", "s"), ("summary", "y"), ("profile", "p"))
            if letter not in here
        }
        assert made.tokens <= room_of(plan.budget)
        assert plan.tokens == (made.tokens if made.prompt.passages else 0)
    assert list(dict.fromkeys(kept))[:5] == ["dwsyp", "dwsy", "dws", "dw", "d"]


def test_a_first_passage_that_no_cut_makes_fit_is_left_out_and_told() -> None:
    made, plan = planned(least_budget(QUESTION, "zh") + 40, [passage("a", title="长" * 512), passage("b")])
    assert made.prompt.passages == []
    assert made.tokens <= room_of(plan.budget)
    (omission,) = [one for one in plan.omitted if one.part == "retrieved_knowledge"]
    assert (omission.reason, omission.count, omission.sources) == ("over_token_budget", 2, ["a", "b"])


def test_a_passage_that_is_shortened_is_told() -> None:
    _, plan = planned(900, [passage("a", text="丁丁丁。" * 400)], [])
    assert [(one.reason, one.sources) for one in plan.omitted if one.part == "retrieved_knowledge"] == [
        ("shortened", ["a"])
    ]


@pytest.mark.parametrize("question", ["好？", QUESTION * 100, QUESTION * 660])
def test_the_least_budget_is_the_least(question: str) -> None:
    least = least_budget(question, "zh")
    bare = estimate_tokens(question)
    assert least > bare
    plan = ContractPlan(budget_of(least), [])
    made = plan(question, language="zh", passages=[], window=None, budget=PromptBudget())
    assert made.tokens <= room_of(budget_of(least))
    assert made.tokens > room_of(budget_of(least - 1))
