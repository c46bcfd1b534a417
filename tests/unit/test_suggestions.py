"""Suggestions by rule: from stored forms of history, and for a question that says nothing of its own."""

from typing import Any

import pytest

from checkpoint.window import PastTurn
from nodes.clarify.suggest import asked_at, reworded

NOW = "2026-12-01T09:00:00.000+08:00"


def past(at: str) -> PastTurn:
    turn: Any = {
        "turn_id": "",
        "question": "去年营收",
        "answer": "a",
        "kind": "fact",
        "sources": [],
        "at": at,
    }
    return turn


@pytest.mark.parametrize("at", ["", "yesterday", "2026-13-01"])
def test_a_turn_without_a_time_counts_from_now(at: str) -> None:
    assert asked_at(past(at), NOW) == past(NOW)


def test_a_turn_keeps_its_own_time() -> None:
    assert asked_at(past("2024-05-01T08:00:00+08:00"), NOW)["at"] == "2024-05-01T08:00:00+08:00"


@pytest.mark.parametrize("text", ["刚才那个再说一遍", "重复一下", "Say that again"])
def test_the_same_once_more_is_the_past_question_itself(text: str) -> None:
    unread: Any = None
    assert reworded(text, unread, past(NOW), unread, unread) == "去年营收"
