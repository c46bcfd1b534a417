"""The gate's table, row by row, and the input it takes."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from nodes.contracts import Caller
from nodes.gate import BadTextError, check_text, make_gate, pair_of_messages

NOW = "2026-11-30T10:00:00.000+08:00"
TURN = {
    "turn_id": "t1",
    "original_question": "云帆2023年营收",
    "standalone_question": "云帆2023年营收",
    "standalone_reason": "independent",
    "opened_at": NOW,
    "received_at": NOW,
    "audience": "a",
}
INTENT = {
    "kind": "fact",
    "language": "zh",
    "companies": [],
    "periods": ["2023"],
    "metrics": ["revenue"],
    "ambiguous": [["yunfan-tech", "yunfan-energy"]],
    "sub_questions": [],
    "needs": ["company"],
    "safety": None,
}
OPTIONS = [{"value": "yunfan-tech", "label": "云帆科技"}, {"value": "yunfan-energy", "label": "云帆能源"}]
PENDING = {
    "slot": "company",
    "mention": None,
    "options": OPTIONS,
    "page": 1,
    "pages": 1,
    "asked": 1,
    "prompt": "哪家公司？",
    "reply": None,
    "decision_digest": "d",
}
OPEN: dict[str, Any] = {"turn": TURN, "intent": INTENT, "answer": None, "clarification": None}
STATES: dict[str, dict[str, Any]] = {
    "no open turn": {**OPEN, "answer": {"kind": "fact"}},
    "fresh": {},
    "pending": {**OPEN, "clarification": PENDING},
    "reference pending": {**OPEN, "clarification": {**PENDING, "slot": "reference", "options": []}},
    "unfinished": OPEN,
    "reply not used": {**OPEN, "clarification": {**PENDING, "reply": "2"}},
}


def read(text: str, received_at: str) -> Any:
    """A complete question of another company, else nothing complete."""
    complete = {**INTENT, "ambiguous": [], "needs": []}
    if text.startswith("云帆科技2023年营收") and text.endswith("怎么申请？"):
        parts = [{"text": part, "kind": "narrative"} for part in text.split("？")]
        return {**complete, "companies": ["yunfan-tech"], "sub_questions": parts}
    if text.startswith("北渚"):
        return {**complete, "companies": ["beizhu"]}
    if text.startswith("云帆科技2023年营收"):
        return {**complete, "companies": ["yunfan-tech"]}
    if text.startswith("云帆科技2024年"):
        return {**complete, "companies": ["yunfan-tech"], "periods": ["2024"]}
    return {**complete, "kind": "small_talk" if text == "你好" else "narrative", "needs": ["reference"]}


ids = iter(f"id{n}" for n in range(100_000))
gate = make_gate(
    read_intent=read, audience=lambda caller: caller.user, clock=lambda: NOW, new_id=lambda: next(ids)
)


def decide(state: str, text: str) -> dict[str, Any]:
    request = {"request_id": "r1", "text": text, "received_at": NOW}
    return gate({**STATES[state], "request": request, "turn_count": 4}, caller=Caller(user="me"))  # type: ignore[typeddict-item]


TABLE = [
    # state, text, input_kind, status, error_code, opens, closes
    ("fresh", "你好", "new_question", None, None, True, None),
    ("no open turn", "你好", "new_question", None, None, True, None),
    ("no open turn", "/retry", "retry", "completed", None, False, None),
    ("no open turn", "重试", "retry", "completed", None, False, None),
    ("no open turn", "/discard", "unfinished_turn_input", "completed", None, False, None),
    ("no open turn", "放弃", "unfinished_turn_input", "completed", None, False, None),
    ("no open turn", "下一页", "clarification_reply", "completed", None, False, None),
    ("no open turn", "cancel", "clarification_reply", "completed", None, False, None),
    ("fresh", "上一页", "clarification_reply", "completed", None, False, None),
    ("pending", "2", "clarification_reply", None, None, False, None),
    ("pending", "云帆能源", "clarification_reply", None, None, False, None),
    ("pending", "下一页", "clarification_reply", None, None, False, None),
    ("pending", "取消", "clarification_reply", None, None, False, None),
    ("pending", "/discard", "clarification_reply", None, None, False, None),
    ("pending", "/retry", "clarification_reply", None, None, False, None),
    ("pending", "你好", "clarification_reply", None, None, False, None),
    ("pending", "北渚茶业2023年营收", "new_question", None, None, True, None),
    ("pending", "云帆科技2023年营收是多少", "clarification_reply", None, None, False, None),
    ("pending", "云帆科技2024年营收是多少", "new_question", None, None, True, None),
    ("pending", "云帆科技2023年营收？贷款怎么申请？", "new_question", None, None, True, None),
    ("reference pending", "北渚茶业2023年营收", "clarification_reply", None, None, False, None),
    ("unfinished", "/retry", "retry", None, None, False, None),
    ("unfinished", "  重试 ", "retry", None, None, False, None),
    ("unfinished", "/discard", "unfinished_turn_input", "completed", None, False, "discarded"),
    ("unfinished", "北渚茶业2023年营收", "unfinished_turn_input", "failed", "unfinished_turn", False, None),
    ("unfinished", "下一页", "unfinished_turn_input", "failed", "unfinished_turn", False, None),
    ("reply not used", "你好", "unfinished_turn_input", "failed", "unfinished_turn", False, None),
    ("reply not used", "/retry", "retry", None, None, False, None),
]


@pytest.mark.parametrize(("state", "text", "kind", "status", "error", "opens", "closes"), TABLE)
def test_row(state: str, text: str, kind: str, status: Any, error: Any, opens: bool, closes: Any) -> None:
    writes = decide(state, text)
    outcome = writes["outcome"]
    assert (outcome["input_kind"], outcome["status"], outcome["error_code"]) == (kind, status, error)
    assert ("turn" in writes and writes["turn"]["turn_id"] != "t1") is opens
    assert (writes.get("answer") or {}).get("kind") == closes
    assert bool(outcome["notice"]) is (status is not None or (state == "pending" and opens))


def test_a_new_turn_resets_all_that_belonged_to_the_last_one() -> None:
    writes = decide("no open turn", "北渚茶业2023年营收")
    per_turn = ("intent", "clarification", "suggestions", "evidence", "facts", "answer")
    assert {key: writes[key] for key in per_turn} == dict.fromkeys(per_turn)  # type: ignore[literal-required]
    assert writes["turn"]["original_question"] == writes["turn"]["standalone_question"]
    assert writes["turn_count"] == 5


def test_a_refused_input_leaves_the_unfinished_turn_as_it_was() -> None:
    assert set(decide("unfinished", "别的问题")) == {"outcome", "messages"}


def test_a_notice_without_an_open_turn_concerns_no_turn() -> None:
    assert decide("no open turn", "/retry")["outcome"]["turn_id"] is None


def test_a_retry_takes_the_permissions_of_its_own_request() -> None:
    assert decide("unfinished", "/retry")["turn"]["audience"] == "me"


def test_what_is_written_of_a_new_turn_and_of_its_request() -> None:
    writes = decide("fresh", "北渚茶业2023年营收")
    turn = writes["turn"]
    assert turn == {
        "turn_id": turn["turn_id"],
        "original_question": "北渚茶业2023年营收",
        "standalone_question": "北渚茶业2023年营收",
        "standalone_reason": "independent",
        "opened_at": NOW,
        "received_at": NOW,
        "audience": "me",
    }
    assert writes["outcome"] == {
        "status": None,
        "input_kind": "new_question",
        "error_code": None,
        "degraded": False,
        "notice": None,
        "turn_id": turn["turn_id"],
        "message_id": "r1",
    }


def test_a_reply_is_kept_with_what_was_asked() -> None:
    writes = decide("pending", "2")
    assert writes["clarification"] == {**PENDING, "reply": "2"}
    assert writes["outcome"]["turn_id"] == "t1"


def test_a_complete_question_replaces_a_pending_one_that_was_not_understood() -> None:
    request = {"request_id": "r1", "text": "云帆科技2023年营收", "received_at": NOW}
    writes = gate({**STATES["pending"], "intent": None, "request": request}, caller=Caller())  # type: ignore[typeddict-item]
    assert writes["outcome"]["input_kind"] == "new_question"


def test_a_discarded_turn_is_closed_with_nothing_pending() -> None:
    writes = decide("unfinished", "/discard")
    assert writes["clarification"] is None
    assert writes["outcome"]["turn_id"] == "t1"
    assert writes["answer"]["text"] == writes["outcome"]["notice"]


def test_the_chat_client_gets_its_text_back_and_a_notice_only_where_the_request_ends_here() -> None:
    asked, replied = decide("no open turn", "/retry")["messages"]
    assert asked == {"type": "human", "content": "/retry", "id": "r1"}
    assert (replied["type"], replied["content"]) == (
        "ai",
        decide("no open turn", "/retry")["outcome"]["notice"],
    )
    assert [message["type"] for message in decide("fresh", "你好")["messages"]] == ["human"]
    assert [message["type"] for message in decide("pending", "北渚茶业2023年营收")["messages"]] == ["human"]


@pytest.mark.parametrize(
    ("turns_language", "text", "words"),
    [
        ("en", "/discard", "was dropped"),
        ("zh", "/discard", "已放弃"),
        ("en", "别的问题", "还没有处理完"),
        ("zh", "another question", "is not finished"),
    ],
)
def test_a_bare_command_speaks_the_turns_language_and_a_text_its_own(
    turns_language: str, text: str, words: str
) -> None:
    intent = {**INTENT, "language": turns_language}
    state: Any = {**STATES["unfinished"], "intent": intent, "request": {"text": text, "received_at": NOW}}
    assert words in str(gate(state, caller=Caller())["outcome"]["notice"])


@pytest.mark.parametrize(
    ("text", "code", "remedy"),
    [
        ("", "text_empty", "type a question"),
        (" \n\t　", "text_empty", "type a question"),
        ("字" * 4001, "text_too_long", "has 4001 characters: shorten it to 4,000"),
        ("a\x00b", "text_has_nul", "NUL character: remove it"),
        ("a\ud800b", "text_has_surrogate", "retype it"),
        (None, "text_not_a_string", "string of text"),
        (["x"], "text_not_a_string", "string of text"),
    ],
)
def test_text_that_cannot_be_accepted(text: Any, code: str, remedy: str) -> None:
    with pytest.raises(BadTextError, match=remedy) as refused:
        check_text(text)
    assert refused.value.code == code
    with pytest.raises(BadTextError):
        gate({"request": {"text": text}}, caller=Caller())


def test_the_longest_text_is_accepted() -> None:
    assert check_text("字" * 4000) == "字" * 4000


def test_missing_ids_and_times_are_filled_in() -> None:
    writes = gate({"request": {"text": "你好"}}, caller=Caller())
    assert writes["turn"]["received_at"] == NOW
    assert writes["outcome"]["message_id"].startswith("id")


HUMAN = {"type": "human", "content": "问题", "id": "m1"}


def test_a_chat_message_is_a_request_once() -> None:
    first = gate({"messages": [HUMAN]}, caller=Caller())  # type: ignore[typeddict-item]
    assert first["turn"]["original_question"] == "问题"
    with pytest.raises(BadTextError, match="no new input"):
        gate({"messages": [HUMAN], "outcome": first["outcome"]}, caller=Caller())  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    "messages",
    [None, [], [HUMAN, {"type": "ai", "content": "答", "id": "m2"}]],
    ids=["none", "empty", "answered"],
)
def test_without_a_new_text_there_is_no_input(messages: Any) -> None:
    with pytest.raises(BadTextError, match="no new input") as refused:
        gate({"messages": messages}, caller=Caller())
    assert refused.value.code == "no_input"


def test_a_request_counts_before_a_message_left_over() -> None:
    writes = gate({"messages": [HUMAN], "request": {"text": "新"}}, caller=Caller())  # type: ignore[typeddict-item]
    assert writes["turn"]["original_question"] == "新"


def test_messages_keep_the_current_pair_only() -> None:
    answer = {"type": "ai", "content": "答", "id": "m2"}
    pair = pair_of_messages([HUMAN], [answer])
    assert pair == [HUMAN, answer]
    whole = [{"role": "user", "content": "一"}, {"role": "assistant", "content": "二"}]
    newest = pair_of_messages(pair, [*whole, {"role": "user", "content": "三", "id": "m9"}])
    assert newest == [{"type": "human", "content": "三", "id": "m9"}]
    assert pair_of_messages(pair, []) == pair


def test_content_blocks_become_text() -> None:
    blocks = [{"type": "text", "text": "甲"}, {"type": "text", "text": "乙"}]
    assert pair_of_messages(None, [{"role": "user", "content": blocks, "id": "x"}])[0]["content"] == "甲乙"


@pytest.mark.parametrize("time", ["yesterday", "2026-11-30", "2026-11-30T10:00:00", 5])
def test_a_time_that_cannot_be_read_is_refused(time: Any) -> None:
    with pytest.raises(BadTextError, match="received_at") as refused:
        gate({"request": {"text": "你好", "received_at": time}}, caller=Caller())
    assert refused.value.code == "time_unreadable"


# Found missing by mutation


def test_the_first_turn_is_number_one() -> None:
    assert gate({"request": {"text": "你好"}}, caller=Caller())["turn_count"] == 1


def test_a_message_that_comes_alone_is_taken_as_one() -> None:
    assert pair_of_messages(None, HUMAN) == [HUMAN]
    assert pair_of_messages(None, []) == []


def test_two_messages_are_kept_and_the_answer_is_the_newest() -> None:
    old, new = ({"type": "ai", "content": text, "id": text} for text in ("旧", "新"))
    later = {**HUMAN, "content": "又问", "id": "m3"}
    assert pair_of_messages(None, [HUMAN, old, new]) == [HUMAN, old]
    assert pair_of_messages([HUMAN, old], [new]) == [HUMAN, new]
    assert pair_of_messages([HUMAN, old], [old, new]) == [HUMAN, new]
    assert pair_of_messages([HUMAN, later], [new]) == [later, new]
    assert pair_of_messages(None, [new]) == [new]


@pytest.mark.parametrize(
    ("message", "kind", "content"),
    [
        ({"role": "user", "content": "甲", "id": "x"}, "human", "甲"),
        ({"type": "human", "content": "甲", "id": "x"}, "human", "甲"),
        ({"role": "assistant", "content": "甲", "id": "x"}, "ai", "甲"),
        ({"role": "system", "content": "甲", "id": "x"}, "ai", "甲"),
        (HumanMessage("甲", id="x"), "human", "甲"),
        (AIMessage("甲", id="x"), "ai", "甲"),
        ({"role": "user", "content": ["甲", {"text": "乙"}, {"type": "image"}], "id": "x"}, "human", "甲乙"),
        ({"role": "user", "content": None, "id": "x"}, "human", ""),
    ],
)  # fmt: skip
def test_a_message_of_any_form_becomes_plain(message: Any, kind: str, content: str) -> None:
    assert pair_of_messages(None, [message]) == [{"type": kind, "content": content, "id": "x"}]


def test_a_message_without_an_id_gets_one_of_its_own() -> None:
    ids_given = [pair_of_messages(None, [{"role": "user", "content": "甲"}])[0]["id"] for _ in range(2)]
    assert all(ids_given)
    assert len(set(ids_given)) == 2
