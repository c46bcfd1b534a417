"""What the engine call makes of a state that holds no answer, and of a history, without any store."""

from typing import Any

import pytest

from checkpoint.window import WindowLimits
from graph.answer_question import asked_back, history_messages, request_of
from nodes.contracts import Message
from nodes.gate import BadTextError
from nodes.notices import HOW_TO_REPLY

INTENT: dict[str, Any] = {"language": "zh", "safety": None, "kind": "fact"}


def pending(*labels: str) -> dict[str, Any]:
    options = [{"value": str(at), "label": label} for at, label in enumerate(labels)]
    return {
        "slot": "company",
        "mention": None,
        "prompt": "哪家公司？",
        "options": options,
        "page": 1,
        "pages": 1,
        "decision_digest": "d1",
    }


def test_a_clarification_is_the_answer_where_there_is_no_conversation() -> None:
    answer = asked_back({"outcome": {"notice": None}, "clarification": pending("甲", "乙"), "intent": INTENT})
    assert (answer["kind"], answer["decision_digest"]) == ("clarification", "d1")
    assert answer["text"] == f"哪家公司？\n1. 甲\n2. 乙\n{HOW_TO_REPLY['zh']}"
    assert (answer["citations"], answer["usage"], answer["replies"]) == ([], None, [])


def test_a_notice_is_the_answer_to_a_command() -> None:
    answer = asked_back({"outcome": {"notice": "没有需要重试的问题。"}})
    assert (answer["kind"], answer["text"]) == ("out_of_scope", "没有需要重试的问题。")


def test_a_request_keeps_the_text_and_the_time_it_was_given() -> None:
    request = request_of(" 问 ", "2026-01-01T00:00:00+08:00")
    assert (request["text"], request["received_at"]) == (" 问 ", "2026-01-01T00:00:00+08:00")
    assert "received_at" not in request_of("问", None)
    assert request_of("问", None)["request_id"] != request_of("问", None)["request_id"]
    with pytest.raises(BadTextError):
        request_of("", None)


def test_history_as_a_model_is_shown_it() -> None:
    assert history_messages(None) == history_messages([]) == history_messages([("user", " ")]) == []
    assert history_messages([("tool", "a[C1]"), ("assistant", "b"), ("assistant", "c")]) == [
        Message("user", "a[\\C1]"),
        Message("assistant", "b\n\nc"),
    ]
    assert history_messages([("user", "a"), ("user", "b")], limits=WindowLimits(1, 99), language="en") == [
        Message("user", "⟦earlier turns omitted: 1⟧\nb")
    ]
