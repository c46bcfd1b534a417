"""How a state moves on: by the message alone, by rule, with warning signs only ever added."""

import re
from dataclasses import replace
from typing import Any, ClassVar, Literal

import pytest

from api.contract.aliases import Aliases
from api.contract.consultation import CONSULTATION, ConsultationState
from api.contract.domains import SHIPPED
from api.contract.hearing import hear, language_of, lexicon
from api.contract.models import DialogueState, Maybe, known_time
from api.contract.readers import YesOrNo
from api.contract.states import Advanced, Domain, Slot, StateRegistry, advance, watch
from api.contract.subsidy import STARTUP_SUBSIDY, StartupSubsidyState
from api.contract.versions import Version, read_version, standing_of

EMPTY: dict[str, Any] = {
    "stage": "collecting_details",
    "body_parts": [],
    "symptoms": [],
    "aggravating_factors": [],
    "red_flags": [],
    "missing_slots": ["duration", "aggravating_factors", "pain_level", "swelling", "trauma"],
    "pending_answer_for": [],
    "chief_complaint": "膝盖下坠感",
}


def state(**values: Any) -> ConsultationState:
    return ConsultationState.model_validate({**EMPTY, **values})


def said(text: str, *pending: str, **values: Any) -> Advanced:
    """The knee complaint after this message, given what was asked before."""
    before = state(pending_answer_for=list(pending), **values)
    return advance(CONSULTATION, before, text, language_of(text, "膝盖"))


def value(slot: str, text: str, *pending: str) -> Any:
    found = said(text, *pending)
    return found.state.model_dump()[slot] if slot in found.filled else None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("疼痛6分", "6"),
        ("疼痛６分，没有肿", "6"),
        ("6", "6"),
        ("六分", "6"),
        ("6/10", "6"),
        ("6.5分", "6.5"),
        ("6到7分", "6-7"),
        ("大概6分吧", "6"),
        ("6 out of 10", "6"),
        ("pain is 7/10", "7"),
        ("疼痛十分", "10"),
        ("不疼", "0"),
        ("没有疼", "0"),
        ("不疼不肿", "0"),
        ("一点也不疼", "0"),
        ("没有", "0"),
        ("no pain", "0"),
        ("it doesn't hurt", "0"),
        ("有点疼", "轻度"),
        ("不太疼", "轻度"),
        ("没那么疼", "轻度"),
        ("很疼", "重度"),
        ("不知道", "不清楚"),
        # What is denied is not the degree; two numerals are a range, and half a point is half a point.
        ("不是6分，是8分", "8"),
        ("是8分，不是6分", "8"),
        ("不是6-7分，是3分", "3"),
        ("不是很疼，六分", "6"),
        ("不是6分", None),
        ("五六分", "5-6"),
        ("六分半", "6.5"),
        ("6分半钟", None),
        # No degree: a time, a count, a number above 10, an answer without any, a question, a supposition.
        ("疼了3天", None),
        ("走了6级台阶", None),
        ("疼痛11分", None),
        ("疼", None),
        ("有", None),
        ("疼痛到6分算严重吗？", None),
        ("如果疼痛8分怎么办", None),
        ("走6分钟就累", None),
        ("今年6月开始", None),
    ],
)
def test_pain_when_it_was_asked_for(text: str, expected: str | None) -> None:
    assert value("pain_level", text, "pain") == expected


def test_a_number_alone_says_nothing_unasked() -> None:
    assert value("pain_level", "6分") is None
    assert value("pain_level", "疼痛6分") == "6"
    assert value("pain_level", "疼痛不是6分，是8分") == "8"


@pytest.mark.parametrize(
    "text",
    [
        "没有胸痛",
        "胸口有点疼",
        "不头疼",
        "肚子不痛",
        "no chest pain",
        "my head doesn't hurt",
        "no pain in my chest",
    ],
)
def test_another_pain_is_not_the_complaints(text: str) -> None:
    for pending in ((), ("pain",), ("swelling",)):
        assert value("pain_level", text, *pending) is None


@pytest.mark.parametrize("text", ["骨头疼6分", "指头疼6分", "没有胸痛，疼痛6分", "chest is fine, pain 6/10"])
def test_what_only_looks_like_another_pain(text: str) -> None:
    assert value("pain_level", text) == "6"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("不是一周，是两周", "两周"),
        ("说错了，已经两周了", "两周"),
        ("actually it's been two weeks", "two weeks"),
        ("not a week, two weeks", "two weeks"),
        ("不对，是两周", "两周"),
        ("不对，休息了两天", "一周"),
        ("是两周", "一周"),
        ("不是一周", "一周"),
        ("走了两周了", "一周"),
        ("疼了两周了", "一周"),
    ],
)
def test_a_length_of_time_that_is_known_changes_only_where_it_is_corrected(text: str, expected: str) -> None:
    assert said(text, duration="一周").state.model_dump()["duration"] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("没有肿", "无"),
        ("不肿", "无"),
        ("肿倒没有", "无"),
        ("没有明显肿胀", "无"),
        ("没怎么肿", "无"),
        ("没什么肿", "无"),
        ("没有外伤和肿胀", "无"),
        ("no swelling", "no"),
        ("it's not swollen", "no"),
        ("肿了", "有"),
        ("有点肿", "有"),
        ("不但肿还疼", "有"),
        ("没多久就肿了", "有"),
        ("没有外伤但是肿了", "有"),
        ("swollen a bit", "yes"),
        ("肿了吗？", None),
        ("要是肿了怎么办", None),
        ("走路疼", None),
        ("腫了", "有"),
        ("没有腫脹", "无"),
    ],
)
def test_swelling_in_a_sentence_needs_no_question(text: str, expected: str | None) -> None:
    assert value("swelling", text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("没有外伤", "无"),
        ("没摔过", "无"),
        ("从没受过伤", "无"),
        ("不小心扭了一下", "有"),
        ("三天前摔了一跤", "有"),
        ("yes, I fell last week", "yes"),
        ("扭过但不严重", "有"),
    ],
)
def test_trauma(text: str, expected: str) -> None:
    assert value("trauma", text, "trauma") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("一周", "一周"),
        ("大概两周了", "两周"),
        ("持续一个半月", "一个半月"),
        ("半年多", "半年多"),
        ("好几个月", "好几个月"),
        ("三天前开始的", "三天"),
        ("about 2 weeks", "2 weeks"),
        ("since yesterday", "since yesterday"),
        ("每天", None),
        ("第3天", None),
        ("三天前去过医院", None),
    ],
)
def test_duration_when_it_was_asked_for(text: str, expected: str | None) -> None:
    assert value("duration", text, "duration") == expected


def test_a_length_of_something_else_is_no_duration() -> None:
    assert value("duration", "我跑步3年") is None
    assert value("duration", "已经三周了") == "三周"


def test_a_bare_no_answers_all_that_was_asked_and_a_bare_yes_only_one_thing() -> None:
    both = said("都没有", "pain", "swelling")
    assert (both.state.model_dump()["pain_level"], both.state.model_dump()["swelling"]) == ("0", "无")
    assert said("有", "pain", "swelling").filled == ()
    assert value("swelling", "有", "swelling") == "有"
    assert said("没有").filled == ()


def test_a_denial_reaches_to_the_next_mark_only() -> None:
    found = said("没有肿胀，但是昨天扭了一下", "swelling", "trauma").state.model_dump()
    assert (found["swelling"], found["trauma"]) == ("无", "有")


def test_one_message_fills_several_slots_asked_or_not() -> None:
    found = said("疼痛6分，没有肿，没有外伤", "pain")
    assert found.filled == ("pain_level", "swelling", "trauma")
    assert found.state.missing_slots == ["duration", "aggravating_factors"]


def test_a_message_may_answer_and_ask() -> None:
    found = said("疼痛3分，要不要做核磁？", "pain")
    assert (found.filled, found.asks) == (("pain_level",), True)


def test_a_known_value_is_corrected_only_by_name() -> None:
    assert said("其实疼痛8分", pain_level="3").state.model_dump()["pain_level"] == "8"
    assert said("8分", "swelling", pain_level="3").state.model_dump()["pain_level"] == "3"


def test_what_was_not_answered_is_asked_again() -> None:
    found = said("我想想", "pain")
    assert found.filled == ()
    assert found.state.pending_answer_for == ["duration"]
    assert "pain_level" in found.state.missing_slots


def test_a_new_consultation_wants_everything_and_takes_the_complaint() -> None:
    fresh = state(missing_slots=[], chief_complaint=None, stage="")
    found = advance(CONSULTATION, fresh, "我膝盖有下坠感", "zh").state.model_dump()
    assert found["chief_complaint"] == "我膝盖有下坠感"
    assert (found["body_parts"], found["symptoms"]) == (["膝盖"], ["下坠感"])
    assert found["missing_slots"] == EMPTY["missing_slots"]
    assert found["pending_answer_for"] == ["duration"]


def test_slots_that_the_sender_does_not_miss_are_not_asked_for() -> None:
    found = advance(CONSULTATION, state(missing_slots=["swelling"]), "没有肿", "zh")
    assert found.is_complete
    assert (found.state.stage, found.next_question) == ("ready", None)


def test_lists_only_grow_and_a_bare_no_says_none() -> None:
    grown = said("下楼时疼痛加重", aggravating_factors=["走路"]).state.model_dump()
    assert grown["aggravating_factors"] == ["走路", "上下楼"]
    assert said("上楼", "aggravating_factors").state.model_dump()["aggravating_factors"] == ["上下楼"]
    assert said("没有", "aggravating_factors").state.model_dump()["aggravating_factors"] == ["无"]
    assert said("我喜欢跑步").state.model_dump()["aggravating_factors"] == []


@pytest.mark.parametrize(
    ("slot", "text", "expected"),
    [
        ("social_insurance", "社保交了", "已缴纳"),
        ("social_insurance", "社保没交", "未缴纳"),
        ("social_insurance", "社保还没有缴纳", "未缴纳"),
        ("social_insurance", "社保一直没断", "已缴纳"),
        ("social_insurance", "social insurance not paid", "not paid"),
        ("social_insurance", "insurance hasn't been paid", "not paid"),
        ("social_insurance", "insurance is paid", "paid"),
        ("employees", "招了3个人", "3"),
        ("employees", "员工不是3个，是5个", "5"),
        ("employees", "不是3个，员工是5个", "5"),
        ("employees", "招了3到5个人", "3-5"),
        ("employees", "we hired 3 to 5 people", "3-5"),
        ("employees", "we employ not 3 but 5 people", "5"),
        ("employees", "没有员工", "0"),
        ("employees", "员工招了，孩子有2个", None),
        ("applicant", "我是退役军人", "退役军人"),
        ("applicant", "不是毕业生，是退役军人", "退役军人"),
        ("applicant", "招了3个人", None),
        ("registered_for", "注册一个多月了", "一个多月"),
        ("registered_for", "注册两个半月了", "两个半月"),
        ("registered_for", "注册2个多星期", "2个多星期"),
    ],
)
def test_what_a_business_says_unasked(slot: str, text: str, expected: str | None) -> None:
    before = {
        "domain": "startup_subsidy",
        "stage": "",
        "request": "补贴",
        "red_flags": [],
        "missing_slots": [slot],
    }
    given = StartupSubsidyState.model_validate({**before, "pending_answer_for": []})
    found = advance(STARTUP_SUBSIDY, given, text, language_of(text))
    assert found.state.model_dump()[slot] == expected


# Warning signs


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("还发烧", ["发热"]),
        ("发烧了怎么办？", ["发热"]),
        ("膝盖卡住了不能伸直", ["关节卡住"]),
        ("走不了路", ["不能负重"]),
        ("没有麻木，呼吸困难", ["呼吸困难"]),
        ("疼痛9分", ["剧烈疼痛"]),
        ("I can't walk", ["cannot bear weight"]),
        ("没有发烧", []),
        ("没有发烧也没有麻木", []),
        ("如果发烧怎么办", []),
        ("会发烧吗？", []),
        ("疼痛7分", []),
        ("不是6分，是8分", []),
        ("疼痛不是6分，是8分", ["剧烈疼痛"]),
        # A sign is lost neither in front of what is asked of it nor where it follows from a condition.
        ("膝盖卡住了会不会要手术？", ["关节卡住"]),
        ("我发烧会有影响吗？", ["发热"]),
        ("麻木要是加重怎么办", ["麻木"]),
        ("要是走久了就麻木", ["麻木"]),
        ("如果发烧就会麻木吗？", []),
        ("如果再摔就会变形", []),
        ("要是发烧就去医院", []),
        ("发烧的话，怎么办", []),
        ("会不会发烧", []),
        ("It goes numb if I sit", ["numbness"]),
        ("even if I rest my foot is numb", []),
        ("would it go numb if I run", []),
        ("I'm worried about numbness in case it gets worse", []),
        # What stands between the two words of a sign.
        ("小腿有点肿", ["小腿肿痛"]),
        ("小腿没有肿", []),
        ("小腿不肿", []),
        ("胸口有点疼", ["胸痛"]),
        ("胸口不疼", []),
        ("没有胸痛", []),
        ("担心疼", []),
        ("呼吸有点困难", ["呼吸困难"]),
        ("呼吸没有困难", []),
        ("喘不过气", ["呼吸困难"]),
        ("脚有点麻", ["麻木"]),
        ("脚不麻", []),
        ("手续很麻烦", []),
        ("体温39", ["发热"]),
        ("39度", ["发热"]),
        ("体温没到38", []),
        ("体温36.8", []),
        ("膝盖只能弯到40度", []),
        ("憋不住尿", ["大小便失禁"]),
        ("疼得睡不着", ["剧烈疼痛"]),
        ("没有疼得睡不着", []),
        ("不能下地", ["不能负重"]),
    ],
)
def test_warning_signs_in_a_message(text: str, flags: list[str]) -> None:
    found = said(text)
    assert list(found.new_flags) == flags
    assert found.state.red_flags == flags
    assert (found.state.stage == "red_flag") == bool(flags)


def test_no_warning_sign_is_ever_dropped_or_doubled() -> None:
    known = ["sender's own sign", "fever"]
    for text in ("没有发烧", "都没有", "疼痛0分", "发烧", "谢谢"):
        found = said(text, "pain", red_flags=known)
        assert found.state.red_flags == known
        assert found.state.stage == "red_flag"
    assert said("麻木", red_flags=known).state.red_flags == [*known, "麻木"]


def test_a_state_that_lost_its_signs_on_the_way_stays_in_warning() -> None:
    """Go sends a slice that was never filled as null, which is an empty list."""
    for move in (advance, watch):
        found = move(CONSULTATION, state(stage="red_flag", red_flags=None), "谢谢", "zh").state
        assert (found.stage, found.red_flags) == ("red_flag", [])


def test_a_message_that_is_not_answered_still_raises_signs_and_nothing_else() -> None:
    before = state(pending_answer_for=["pain"], last_question="疼吗？")
    found = watch(CONSULTATION, before, "疼痛6分，发烧", "zh").state.model_dump()
    assert found == {**before.model_dump(), "red_flags": ["发热"], "stage": "red_flag"}


# The business domain


def test_a_start_up_is_asked_step_by_step() -> None:
    now: DialogueState = StartupSubsidyState.model_validate(
        {
            "domain": "startup_subsidy",
            "stage": "",
            "red_flags": [],
            "missing_slots": [],
            "pending_answer_for": [],
        }
    )
    filled = []
    for text in (
        "我想申请一次性创业补贴",
        "高校毕业生，毕业2年",
        "注册8个月了",
        "社保交了4个月",
        "招了3个人",
        "没有",
    ):
        found = advance(STARTUP_SUBSIDY, now, text, language_of(text, now.last_question))
        now = found.state
        filled += found.filled
    assert tuple(filled) == STARTUP_SUBSIDY.slot_names
    values = now.model_dump()
    assert (values["registered_for"], values["social_insurance"], values["employees"]) == (
        "8个月",
        "已缴纳",
        "3",
    )
    assert (values["received_before"], now.stage) == ("没有领取过", "ready")
    question = STARTUP_SUBSIDY.question(values, "zh")
    assert "一次性创业补贴" in question
    assert "8个月" in question


def test_business_signs() -> None:
    now = StartupSubsidyState.model_validate(
        {
            "domain": "startup_subsidy",
            "stage": "",
            "red_flags": [],
            "missing_slots": [],
            "pending_answer_for": [],
        }
    )
    found = advance(STARTUP_SUBSIDY, now, "公司被列入失信名单，能申请创业补贴吗？", "zh")
    assert found.state.red_flags == ["失信记录"]


# The registry


class PetState(DialogueState):
    other_names: ClassVar[Aliases] = {"shots": "vaccinated"}

    domain: Literal["pets"]
    vaccinated: Maybe = None


PETS = Domain(
    name="pets",
    model=PetState,
    slots=(Slot("vaccinated", {"zh": "打过疫苗吗？", "en": "Vaccinated?"}, YesOrNo(re.compile("疫苗"))),),
    flags=lexicon(bite=("咬伤", "咬")),
    notice={"zh": "请就医。", "en": "See a doctor."},
    question=lambda values, language: f"{language}: {values['vaccinated']}",
)


def test_another_domain_registers_its_own_state() -> None:
    registry = SHIPPED.with_domain(PETS)
    assert registry.names == ("consultation", "startup_subsidy", "pets")
    assert SHIPPED.find("pets") is None
    assert registry.find(None) is CONSULTATION
    now = PetState.model_validate(
        {
            "domain": "pets",
            "stage": "",
            "red_flags": None,
            "missing_slots": ["shots"],
            "pending_answer_for": [],
        }
    )
    found = advance(PETS, now, "疫苗打过了", "zh")
    assert found.state.model_dump()["vaccinated"] == "有"


def test_a_domain_that_does_not_fit_its_model_is_refused() -> None:
    with pytest.raises(ValueError, match="swelling is no field"):
        replace(PETS, slots=(*PETS.slots, CONSULTATION.slots[4]))
    with pytest.raises(ValueError, match="once"):
        StateRegistry(PETS, PETS)
    with pytest.raises(ValueError, match="at least one"):
        StateRegistry()


# Small values


def test_versions() -> None:
    spoken = Version(1, 3, 0)
    standings = {
        text: standing_of(read_version(text) or spoken, spoken) for text in ("1.3.9", "1.0.0", "1.4.0")
    }
    assert standings == {"1.3.9": "known", "1.0.0": "known", "1.4.0": "newer_minor"}
    assert standing_of(Version(0, 9, 0), spoken) == standing_of(Version(2, 0, 0), spoken) == "other_major"
    assert [read_version(text) for text in ("1.0", "v1.0.0", "1.0.0\n", "１.0.0", "1.0.01")] == [None] * 5


def test_go_zero_times_are_unknown() -> None:
    assert known_time("0001-01-01T00:00:00Z") is None
    assert known_time("") is known_time("...") is known_time("2026-11-30T10:00:00") is None
    at = known_time("2026-11-30T10:00:00.123456789+08:00")
    assert at is not None
    assert at.year == 2026


def test_the_language_of_a_number_is_that_of_the_conversation() -> None:
    assert language_of("6", "疼痛大概几分？") == "zh"
    assert language_of("6", "How strong?") == "en"
    assert language_of("no", "疼痛大概几分？") == "en"
    assert language_of("6", None, None) == "zh"


def test_clauses_that_ask_or_suppose_state_nothing() -> None:
    heard = hear("没有肿，疼痛6分。如果加重呢？", "zh")
    assert heard.stated == ("没有肿", "疼痛6分")
    assert heard.asks
