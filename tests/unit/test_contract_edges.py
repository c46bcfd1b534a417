"""Edges of the contract's rules: bounds to the letter, words in both languages, what may not be changed."""

import dataclasses
import importlib
import json
import pkgutil
import re
from typing import Any, Literal

import pytest
from pydantic import Field

import api.contract
from api.contract.consultation import CONSULTATION, ConsultationState
from api.contract.context import parts_of
from api.contract.domains import SHIPPED
from api.contract.hearing import Lexicon, polarity
from api.contract.models import DialogueState
from api.contract.parsing import ContractError, Fault, parse_contract
from api.contract.readers import Choice, Degree, YesOrNo
from api.contract.states import Advanced, Domain, ListSlot, advance, is_set, watch

LANGUAGES = ("zh", "en")
DOMAINS = pytest.mark.parametrize("name", SHIPPED.names)
EMPTY: dict[str, Any] = {
    "stage": "collecting_details",
    "body_parts": [],
    "symptoms": [],
    "aggravating_factors": [],
    "red_flags": [],
    "missing_slots": [],
    "pending_answer_for": [],
}
SWELLING = re.compile("肿")


def said(text: str, *pending: str, **values: Any) -> Advanced:
    before = ConsultationState.model_validate({**EMPTY, "pending_answer_for": list(pending), **values})
    return advance(CONSULTATION, before, text, "zh" if re.search("[一-龥]", text) else "en")


def value(slot: str, text: str, *pending: str) -> Any:
    found = said(text, *pending)
    return found.state.model_dump()[slot] if slot in found.filled else None


# Words


def domain_of(name: str) -> Domain:
    found = SHIPPED.find(name)
    assert found is not None
    return found


def labels_of(domain: Domain) -> list[Any]:
    """Everything of a domain that is said to people."""
    found: list[Any] = [domain.notice, *(label for _, label in domain.flags.entries)]
    for words in domain.collected.values():
        found += [label for _, label in words.entries]
    for slot in domain.slots:
        found.append(slot.ask)
        if isinstance(slot, ListSlot):
            found += [
                slot.none,
                *(label for words in (slot.strict, slot.loose) for _, label in words.entries),
            ]
        elif isinstance(slot.read, Choice):
            found += [*(label for _, label in slot.read.choices), slot.read.otherwise]
        elif isinstance(slot.read, Degree):
            found += [label for _, label in slot.read.levels]
        elif isinstance(slot.read, YesOrNo):
            found += [label for label in (slot.read.yes, slot.read.no) if label]
    return found


@DOMAINS
def test_everything_that_is_said_is_said_in_both_languages(name: str) -> None:
    for label in labels_of(domain_of(name)):
        assert set(label) == set(LANGUAGES)
        assert all(text.strip() for text in label.values())


@DOMAINS
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_question_of_a_complete_state_holds_all_that_is_known(name: str, language: Any) -> None:
    domain = domain_of(name)
    fields = domain.model.model_fields
    lists = {slot for slot in domain.slot_names if fields[slot].annotation != str | None}
    known = {slot: [f"<{slot}>", "<more>"] if slot in lists else f"<{slot}>" for slot in domain.slot_names}
    asked = domain.question(known, language)
    assert all(f"<{slot}>" in asked for slot in domain.slot_names)
    assert ("<more>" in asked) == bool(lists)
    bare = domain.question(dict.fromkeys(domain.slot_names), language)
    assert "<" not in bare
    assert "None" not in bare
    long = domain.question(dict.fromkeys(domain.slot_names, "长" * 1000), language)
    assert len(long) < 200 * len(known) + 200


FILLED: dict[str, Any] = {
    "request": "一次性创业补贴？", "applicant": "高校毕业生", "registered_for": "8个月",
    "social_insurance": "x" * 99,
    "employees": None, "received_before": None, "chief_complaint": "膝盖疼", "duration": "一周",
    "aggravating_factors": ["走路", "下蹲"], "pain_level": "6", "swelling": None, "trauma": "无",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "language", "expected"),
    [
        (
            "consultation", "zh",
            "膝盖疼，持续一周，加重因素：走路、下蹲，疼痛程度：6，外伤：无。可能是什么原因，应该注意什么？",
        ),
        (
            "consultation", "en",
            "膝盖疼, for 一周, worse with: 走路, 下蹲, pain: 6, injury: 无. "
            "What are possible causes, and what should be done?",
        ),
        (
            "startup_subsidy", "zh",
            f"一次性创业补贴。申请人：高校毕业生；登记注册时间：8个月；社会保险：{'x' * 80}。"
            "申请条件和补贴标准是什么？",
        ),
        (
            "startup_subsidy", "en",
            f"一次性创业补贴. applicant: 高校毕业生; registered for: 8个月; social insurance: {'x' * 80}. "
            "What are the conditions and the amount?",
        ),
    ],
)  # fmt: skip
def test_the_question_is_worded_from_what_is_known(name: str, language: Any, expected: str) -> None:
    domain = domain_of(name)
    asked = domain.question({slot: FILLED[slot] for slot in domain.slot_names}, language)
    assert asked == expected


def test_a_subsidy_without_a_request_is_the_start_up_subsidy() -> None:
    domain = domain_of("startup_subsidy")
    nothing = dict.fromkeys(domain.slot_names)
    assert domain.question(nothing, "zh").startswith("创业补贴。")
    assert domain.question(nothing, "en").startswith("start-up subsidy. ")


def test_context_is_worded_in_the_language_of_the_turn() -> None:
    sent = {
        "session_id": "s", "turn_id": "t", "user_message": "why?",
        "context": {
            "recent_messages": [], "conversation_summary": "earlier", "consultation_state": EMPTY,
            "user_profile": {"age": 0, "likes": ["tea", "go"], "gender": ""},
        },
        "meta": {
            "context_version": "1.0.0", "token_budget": 900,
            "included_message_count": 0, "summary_version": 1,
        },
    }  # fmt: skip
    contract = parse_contract(json.dumps(sent), SHIPPED).contract
    state = {**EMPTY, "body_parts": ["knee", "hip"], "duration": None}
    assert [part.text for part in parts_of(contract, state, "en")] == [
        "What the user has stated:\nbody_parts: knee, hip",
        "The earlier conversation:\nearlier",
        "About the user:\nage: 0\nlikes: tea, go",
    ]
    assert parts_of(contract, state, "zh")[0].text == "用户已说明的情况：\nbody_parts：knee、hip"
    assert [part.name for part in parts_of(contract, EMPTY, "en")] == ["conversation_summary", "user_profile"]


# Affirmed or denied


@pytest.mark.parametrize(
    ("clause", "verdict"),
    [
        ("不累很疼没有肿", False),  # the nearest mark decides, whatever stands further off
        ("很疼没有伤有点肿", True),
        ("没有肿很肿", True),  # and the last mention
        ("走路", None),
    ],
)
def test_the_nearest_mark_decides(clause: str, verdict: bool | None) -> None:
    assert polarity(clause, SWELLING) is verdict


def test_what_is_gone_is_not_collected_and_a_sign_of_it_counts() -> None:
    found = said("膝盖无力消失了，麻木消失了").state.model_dump()
    assert (found["symptoms"], found["red_flags"]) == ([], ["麻木"])


def test_a_lexicon_takes_a_name_for_itself_in_every_language() -> None:
    words: Lexicon = CONSULTATION.flags
    assert words.same("发热") == words.same("fever") == {"发热", "fever"}
    assert words.same("自己的") == {"自己的"}
    assert said("I have a fever", red_flags=["发热"]).state.red_flags == ["发热"]


# Readers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("平时走路的时候都挺厉害的", "重度"),  # 12 characters
        ("平时走路的时候都挺厉害的啊", None),
        ("it's really bad", "severe"),  # 3 words
        ("it's really quite bad", None),
    ],
)
def test_a_degree_in_words_alone_is_a_short_reply(text: str, expected: str | None) -> None:
    assert value("pain_level", text, "pain_level") == expected


def test_a_degree_in_chinese_numerals_counts_within_a_sentence() -> None:
    assert value("pain_level", "疼痛六分，没有肿") == "6"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3", "3"), ("大概三个人", "3"), ("没有", "0"), ("不知道", "不清楚"), ("谢谢", None), ("好的", None)],
)
def test_how_many_in_reply(text: str, expected: str | None) -> None:
    domain = domain_of("startup_subsidy")
    before = {"domain": domain.name, "stage": "", "red_flags": [], "request": "补贴", "missing_slots": []}
    state = domain.model.model_validate({**before, "pending_answer_for": ["employees"]})
    assert advance(domain, state, text, "zh").state.model_dump()["employees"] == expected


def test_only_signs_that_were_not_known_are_new() -> None:
    found = said("发烧，麻木", red_flags=["发热"])
    assert (found.state.red_flags, found.new_flags) == (["发热", "麻木"], ("麻木",))


def test_own_words_are_cut_and_a_bare_yes_is_none() -> None:
    assert value("chief_complaint", "酸" * 300, "chief_complaint") == "酸" * 200
    for bare in ("是的", "没有", "不知道"):
        assert value("chief_complaint", bare, "chief_complaint") is None


def test_not_knowing_answers_only_what_was_asked() -> None:
    assert value("duration", "不知道", "duration") == "不清楚"
    assert value("duration", "不知道", "swelling") is None
    assert value("duration", "不知道") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("之前肿过，还没消", "有"),
        ("肿了，还没消", "有"),
        ("反复肿，现在好了", "有"),  # what comes and goes is there
        ("好像有点肿", "有"),  # in doubt there is one; only in doubt that it is over it is asked again
        ("肿可能消了", None),
        ("还没消", None),  # of nothing that was named
        ("好了", None),
    ],
)
def test_a_condition_in_two_clauses(text: str, expected: str | None) -> None:
    assert value("swelling", text, "swelling") == expected


@pytest.mark.parametrize(
    ("slot", "text", "expected"),
    [
        ("swelling", "肿过，自己消了", "无"),
        ("swelling", "刚开始肿，现在没有", "无"),
        ("duration", "从昨天开始", "从昨天开始"),
        ("duration", "it began two weeks ago", "two weeks"),
        ("duration", "many weeks", "many weeks"),
        ("trauma", "I hurt my knee", "yes"),
        ("trauma", "I hit my knee", "yes"),
        ("trauma", "someone knocked it", "yes"),
        ("swelling", "no, I don't", "no"),
        ("swelling", "万一肿了怎么办", None),
    ],
)
def test_words_of_a_reply(slot: str, text: str, expected: str | None) -> None:
    assert value(slot, text, slot) == expected


@pytest.mark.parametrize(
    ("text", "flags"), [("chest pressure", ["chest pain"]), ("万一发烧就糟了", []), ("万一发烧怎么办", [])]
)
def test_signs_that_are_named_and_supposed(text: str, flags: list[str]) -> None:
    assert said(text).state.red_flags == flags


# States and faults


@pytest.mark.parametrize(
    ("given", "expected"), [(None, False), ("", False), ([], False), ("0", True), ([""], True)]
)
def test_a_slot_has_a_value_or_none(given: Any, expected: bool) -> None:
    assert is_set(given) is expected


class CodedState(DialogueState):
    domain: Literal["coded"]
    code: str = Field(min_length=2, max_length=3)


@pytest.mark.parametrize(("code", "rule"), [("a", "too_short"), ("abcd", "too_long"), (1, "string")])
def test_the_bounds_of_another_domain_are_told_by_the_same_rules(code: Any, rule: str) -> None:
    shaped = Domain("coded", CodedState, (), Lexicon(()), {"zh": "", "en": ""}, lambda _values, _language: "")
    state = {name: [] for name in ("red_flags", "missing_slots", "pending_answer_for")}
    sent = {
        "session_id": "s", "turn_id": "t", "user_message": "?",
        "context": {
            "recent_messages": [],
            "consultation_state": {**state, "domain": "coded", "stage": "", "code": code},
        },
        "meta": {
            "context_version": "1.0.0", "token_budget": 900,
            "included_message_count": 0, "summary_version": 0,
        },
    }  # fmt: skip
    with pytest.raises(ContractError) as caught:
        parse_contract(json.dumps(sent), SHIPPED.with_domain(shaped))
    assert [(fault.path, fault.rule) for fault in caught.value.faults] == [
        ("context.consultation_state.code", rule)
    ]


def test_a_message_that_is_not_answered_fills_nothing_and_asks_nothing() -> None:
    before = ConsultationState.model_validate({**EMPTY, "missing_slots": ["swelling"]})
    assert watch(CONSULTATION, before, "肿了怎么办？", "zh") == Advanced(before)
    assert not Advanced(before).asks


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ([Fault("a.b", "required")], "1 faults, the first at a.b: required"),
        ([Fault("", "too_deep"), Fault("x", "list")], "2 faults, the first at the top: too_deep"),
    ],
)
def test_an_error_says_how_many_faults_and_where_the_first_is(faults: list[Fault], message: str) -> None:
    assert str(ContractError(faults)) == message
    assert faults[0].to_json() == {"path": faults[0].path, "rule": faults[0].rule, "detail": ""}


CHANGING = {"ContractPlan", "ContractRun", "_Graph"}  # each belongs to one turn, which notes its course in it


def test_what_is_decided_is_never_changed() -> None:
    frozen, open_ = set(), set()
    for found in pkgutil.iter_modules(api.contract.__path__, "api.contract."):
        for name, kind in vars(importlib.import_module(found.name)).items():
            if dataclasses.is_dataclass(kind) and kind.__module__ == found.name:
                (frozen if kind.__dataclass_params__.frozen else open_).add(name)  # type: ignore[union-attr]
    assert open_ == CHANGING
    assert {"Parsed", "Reading", "Advanced", "Domain", "Version", "Fault"} <= frozen
    assert DialogueState.model_config["frozen"]
