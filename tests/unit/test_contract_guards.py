"""Guards of the contract that no golden vector reaches: each test fails when its guard is taken away."""

import json
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from api.contract.consultation import CONSULTATION, ConsultationState
from api.contract.context import ContractPlan, budget_of, parts_of
from api.contract.domains import SHIPPED
from api.contract.evidence import Admission, Admitted, HeldSources
from api.contract.models import ContextAnswer, RetrievedKnowledge
from api.contract.parsing import MAX_FAULTS, ContractError, Parsed, parse_contract
from api.contract.router import ContractRun
from api.contract.states import Advanced, advance, watch
from api.contract.turn import ContractTurn, Origin, Reading, TurnFailedError, digest
from api.contract.versions import read_version, standing_of
from api.problems import Refusal
from api.strict_json import MAX_DEPTH, JsonFaultError, MalformedJsonError, read_object
from api.workers import WorkerPool
from checkpoint.window import WindowLimits, window_from_pairs
from graph.run import StageEvent
from nodes.answer.prompts import PromptBudget
from nodes.contracts import Caller
from nodes.notices import empty_window
from nodes.retrieve.documents import Record

FOLDER = Path(__file__).parents[1] / "contract" / "vectors"
FULL: dict[str, Any] = json.loads((FOLDER / "valid_full.json").read_text(encoding="utf-8"))["contract"]
EMPTY: dict[str, Any] = {
    "stage": "collecting_details",
    "chief_complaint": "膝盖下坠感",
    "body_parts": [],
    "symptoms": [],
    "aggravating_factors": [],
    "red_flags": [],
    "missing_slots": ["duration", "pain_level", "swelling"],
    "pending_answer_for": [],
}


def parsed(*changes: tuple[str, Any]) -> Parsed:
    """The full contract with these members put in their dotted places."""
    sent = deepcopy(FULL)
    for path, value in changes:
        *parents, name = path.split(".")
        place = sent
        for part in parents:
            place = place[part]
        place[name] = value
    return parse_contract(json.dumps(sent, ensure_ascii=False), SHIPPED)


def faults(*changes: tuple[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(ContractError) as caught:
        parsed(*changes)
    return [(fault.path, fault.rule) for fault in caught.value.faults]


def said(text: str, *pending: str, **changes: Any) -> Advanced:
    state = ConsultationState.model_validate({**EMPTY, "pending_answer_for": list(pending), **changes})
    return advance(CONSULTATION, state, text, "zh")


# --- versions ---


@pytest.mark.parametrize("text", ["1.1٠.0", "1.0.0\n", " 1.0.0", "1.0.0.0", "01.0.0", "1.1234567890.0"])
def test_only_plain_digits_make_a_version(text: str) -> None:
    assert read_version(text) is None


@pytest.mark.parametrize(
    ("text", "standing"),
    [
        ("1.0.0", "known"),
        ("1.0.9", "known"),
        ("1.0.0-rc.1+build", "known"),
        ("1.1.0", "newer_minor"),
        ("0.9.9", "other_major"),
        ("2.0.0", "other_major"),
    ],
)
def test_major_and_minor_decide(text: str, standing: str) -> None:
    version = read_version(text)
    assert version is not None
    assert standing_of(version) == standing


# --- JSON ---


def nested(levels: int, opening: str, closing: str) -> str:
    return f'{{"a": {opening * (levels - 1)}1{closing * (levels - 1)}}}'


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"b":', "}")])
def test_nesting_is_taken_to_exactly_its_bound(opening: str, closing: str) -> None:
    assert read_object(nested(MAX_DEPTH, opening, closing))
    with pytest.raises(JsonFaultError) as caught:
        read_object(nested(MAX_DEPTH + 1, opening, closing))
    assert caught.value.faults == (((), "too_deep"),)


def test_integers_are_exact_to_the_bound_of_their_digits() -> None:
    longest = "9" * 4300
    assert read_object(f'{{"a": {longest}}}') == {"a": int(longest)}
    with pytest.raises(MalformedJsonError):
        read_object(f'{{"a": {longest}9}}')


def test_every_key_given_twice_is_named_with_its_place() -> None:
    with pytest.raises(JsonFaultError) as caught:
        read_object('{"a": [{"b": 1, "b": 2}], "c": 1, "c": 1, "c": 1}')
    assert set(caught.value.faults) == {(("c",), "duplicate_key"), (("a", 0, "b"), "duplicate_key")}


# --- fields ---


def test_faults_are_bounded() -> None:
    many = {f"unknown_{number}": 1 for number in range(MAX_FAULTS + 20)}
    assert len(faults(*many.items())) == MAX_FAULTS


@pytest.mark.parametrize("value", [{"x": 1}, [[1]], [{"x": 1}], float("1e999"), [float("-1e999")]])
def test_a_profile_is_flat_and_its_numbers_finite(value: Any) -> None:
    text = json.dumps(FULL).replace('"user_profile": {', '"user_profile": {"odd": @,', 1)
    number = json.dumps(value).replace("-Infinity", "-1e999").replace("Infinity", "1e999")
    with pytest.raises(ContractError) as caught:
        parse_contract(text.replace("@", number), SHIPPED)
    assert [(fault.path, fault.rule) for fault in caught.value.faults] == [
        ("context.user_profile.odd", "profile_value")
    ]


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("odd\x00", 1, "text_has_nul"),
        ("odd", "a\x00", "text_has_nul"),
        ("odd", ["a\x00"], "text_has_nul"),
        ("odd", "\ud800", "text_has_surrogate"),
    ],
)
def test_names_and_words_of_a_profile_are_text(name: str, value: Any, rule: str) -> None:
    sent = deepcopy(FULL)
    sent["context"]["user_profile"][name] = value
    with pytest.raises(ContractError) as caught:
        parse_contract(json.dumps(sent), SHIPPED)
    assert [fault.rule for fault in caught.value.faults] == [rule]


@pytest.mark.parametrize("age", ["35", 35.0, True])
def test_a_profile_is_as_strict_as_the_rest(age: Any) -> None:
    assert faults(("context.user_profile.age", age)) == [("context.user_profile.age", "integer")]


@pytest.mark.parametrize(
    "given", [("pain", "pain_score"), ("pain_level", "pain"), ("pain", "pain_level"), ("swollen", "swelling")]
)
def test_a_slot_given_twice_is_no_guess_whatever_the_order(given: tuple[str, str]) -> None:
    state = {name: value for name, value in EMPTY.items() if name not in given} | dict.fromkeys(given, "6")
    found = faults(("context.consultation_state", state))
    assert found == [("context.consultation_state", "alias_conflict")]


# --- the budget ---


def test_a_quarter_at_most_1024_is_the_answers_and_a_little_is_the_second_tries() -> None:
    assert budget_of(8000) == PromptBudget(8000 - 64, 1024)
    assert budget_of(400) == PromptBudget(400 - 64, 100)
    assert budget_of(1) == PromptBudget(2, 1)


def test_parts_are_ordered_by_priority_and_show_what_was_stated_only() -> None:
    contract = parsed(
        ("context.conversation_summary", "较早谈过膝盖"),
        ("context.user_profile", {"age": 35, "club": "晨跑"}),
        ("meta.summary_version", 1),
    ).contract
    state = ConsultationState.model_validate({**EMPTY, "last_question": "疼吗？"}).model_dump()
    parts = parts_of(contract, state, "zh")
    assert [part.name for part in parts] == ["consultation_state", "conversation_summary", "user_profile"]
    assert parts[0].text == "用户已说明的情况：\nchief_complaint：膝盖下坠感"
    assert parts[2].text == "用户资料：\nage：35\nclub：晨跑"


def test_every_reason_of_a_cut_window_is_told_and_nothing_where_nothing_is_cut() -> None:
    pairs = [(role, "长" * 900) for _ in range(12) for role in ("user", "assistant")]
    stray = [("assistant", "短")]  # an answer without its question
    for given, expected in ((pairs, True), (stray, True), (pairs[:2], False), ([], False)):
        window = window_from_pairs(given, limits=WindowLimits(), language="zh")
        plan = ContractPlan(budget_of(100_000), [])
        plan("原因？", language="zh", passages=[], window=window, budget=PromptBudget())
        told = [one for one in plan.omitted if one.part == "recent_messages"]
        assert bool(told) == expected
        if told:
            assert told[0].reason.split(",") == list(window.reasons)
            assert told[0].count == window.omitted_turns


# --- the state ---


def test_a_value_said_again_counts_only_where_it_was_asked_for() -> None:
    assert said("疼痛6分", pain_level="6").filled == ()
    assert said("6分", "pain_level", pain_level="6").filled == ("pain_level",)


def test_what_is_asked_for_is_wanted_even_where_it_is_not_missing() -> None:
    assert said("我想想", "swelling", missing_slots=[]).state.missing_slots == ["swelling"]


def test_a_consultation_whose_sender_misses_something_has_begun() -> None:
    found = said("我想想", chief_complaint=None, missing_slots=["swelling"])
    assert found.state.missing_slots == ["swelling"]


def test_no_text_and_no_value_takes_a_warning_sign_away() -> None:
    known = ["发热", "自己的标记"]
    for text in ("没有发烧", "退烧了", "都没有", "no fever any more", "疼痛0分", "取消", ""):
        if text:
            assert said(text, "pain_level", "swelling", red_flags=known).state.red_flags == known


def test_a_message_that_is_not_answered_says_which_signs_are_new() -> None:
    state = ConsultationState.model_validate({**EMPTY, "red_flags": ["麻木"]})
    found = watch(CONSULTATION, state, "发烧了，也麻木", "zh")
    assert (found.state.red_flags, found.new_flags, found.state.stage) == (
        ["麻木", "发热"],
        ("发热",),
        "red_flag",
    )
    again = watch(CONSULTATION, found.state, "发烧", "zh")
    assert (again.state.red_flags, again.new_flags) == (["麻木", "发热"], ())


@pytest.mark.parametrize(
    ("complaint", "factors", "language"),
    [("knee pain", [], "en"), ("膝盖疼", [], "zh"), (None, ["walking"], "zh"), ("knee pain", ["走路"], "en")],
)
def test_a_message_without_letters_is_in_the_language_of_the_complaint(
    complaint: str | None, factors: list[str], language: str
) -> None:
    state = {**EMPTY, "chief_complaint": complaint, "aggravating_factors": factors}
    turn: Any = ContractTurn(
        *(None, None),  # type: ignore[arg-type]
        parsed(("context.consultation_state", state), ("user_message", "6")),
        *(None, None),  # type: ignore[arg-type]
    )
    assert turn._language == language


# --- evidence ---


class Shelf:
    """The part of a knowledge store that names are read from; `version` moves with what it holds."""

    def __init__(self, *records: Record) -> None:
        self.held, self.version, self.walks = list(records), "1", 0

    def knowledge_version(self) -> str:
        return self.version

    def records(self, document_ids: Any = None) -> list[Record]:
        self.walks += document_ids is None
        return [each for each in self.held if document_ids is None or each.document_id in document_ids]

    def text_of(self, *_key: str) -> str | None:
        return None


def test_names_are_walked_once_a_version_and_anew_for_the_next() -> None:
    shelf = Shelf(Record("kb_1", "1", "题", "a.md"), Record("kb_2", "1", "题", ""))
    held = HeldSources(shelf)  # type: ignore[arg-type]
    assert [each.document_id for each in held.records("KB_1")] == ["kb_1"]
    assert held.records("kb_3") == []
    assert shelf.walks == 1
    shelf.held.append(Record("kb_3", "1", "题", "c.md"))
    shelf.version = "2"
    assert [each.document_id for each in held.records("C.md")] == ["kb_3"]
    assert shelf.walks == 2
    assert held.records(" \u3000") == []  # a name of nothing is nobody's


def test_ones_own_word_is_cited_whole_and_a_text_that_is_gone_denies_nothing() -> None:
    held = HeldSources(Shelf(Record("kb_1", "1", "题", "a.md")))  # type: ignore[arg-type]
    caller = Caller(scopes=frozenset({"contract"}))
    item = RetrievedKnowledge(title="题", content="膝盖无力", source="kb_1", relevance_score=0.5)
    admission = Admission(held, link=lambda *_: [], rerank=lambda *_: [])
    (passage,) = admission.admit([item], caller=caller, on_date="2026-01-01").passages
    assert (passage["start"], passage["end"], passage["text"]) == (0, 4, "膝盖无力")


# --- the run ---


@dataclass
class Course:
    """A turn whose course is given: what its events raise, or that they end without an answer."""

    fault: Exception | None
    parsed: Any = field(default_factory=parsed)
    origin: Origin = field(default_factory=lambda: Origin("r-1", "2026-01-01T08:00:00.000+08:00"))

    def events(self, *_: Any) -> Any:
        if self.fault:
            raise self.fault
        yield StageEvent("gate", None)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (LookupError("机密"), "internal_error"),
        (TurnFailedError("failed"), "processing_failed"),
        (None, "processing_failed"),
    ],
)
def test_a_run_that_fails_frees_its_worker_and_then_says_so_once(fault: Exception | None, code: str) -> None:
    pool = WorkerPool(1)
    run = ContractRun(Course(fault), None, "/v1/context/turns", pool.reserve())  # type: ignore[arg-type]
    busy_at: dict[str, int] = {}
    run.feed.listen(lambda: busy_at.update({run.feed.after(0)[-1].name: pool.busy()}))
    run.work()
    assert run.feed.ended
    assert (busy_at["created"], busy_at["error"]) == (1, 0)
    assert "机密" not in str([event.wire for event in run.feed.after(0)])
    refusal = run.ended.exception(0)
    assert isinstance(refusal, Refusal)
    assert refusal.code == code


def test_a_run_frees_its_worker_before_it_tells_its_answer() -> None:
    pool = WorkerPool(1)
    run = ContractRun(Course(None), None, "/v1/context/turns", pool.reserve())  # type: ignore[arg-type]
    busy_at: dict[str, int] = {}
    run.feed.listen(lambda: busy_at.update({run.feed.after(0)[-1].name: pool.busy()}))
    run._conclude(answer())
    assert busy_at["done"] == 0
    assert run.ended.result(0).answer == "答"


def answer() -> ContextAnswer[Any]:
    meta = {
        "context_version": "1.0.0", "request_id": "r-1", "status": "completed", "kind": "question",
        "language": "zh", "degraded": False, "question": None, "retrieval": "none", "filled_slots": [],
        "new_red_flags": [], "decision_digest": "0", "window": empty_window(),
        "tokens": {"budget": 1, "prompt": 1}, "omitted": [], "ignored_fields": [], "usage": None,
    }  # fmt: skip
    given = {"session_id": "s", "turn_id": "t", "answer": "答", "sources": [], "meta": meta}
    state = ConsultationState.model_validate(EMPTY)
    return ContextAnswer[ConsultationState].model_validate({**given, "consultation_state": state})


# --- the digest ---


def digested(before: str, after: str, *, question: str | None = None, decided: str | None = None) -> str:
    """Of a reading that went from one degree of pain to another."""
    read = parsed(("context.consultation_state", {**EMPTY, "pain_level": before}))
    state = ConsultationState.model_validate({**EMPTY, "pain_level": after})
    return digest(Reading(read, "zh", Advanced(state), Admitted(), question), decided)


def test_the_digest_is_over_all_that_was_decided_and_nothing_else() -> None:
    same = digested("3", "8", question="原因？", decided="d")
    assert digested("3", "8", question="原因？", decided="d") == same
    others = [
        digested("4", "8", question="原因？", decided="d"),
        digested("3", "9", question="原因？", decided="d"),
        digested("3", "8", question="怎么办？", decided="d"),
        digested("3", "8", question="原因？", decided="e"),
    ]
    assert len({same, *others}) == 5
