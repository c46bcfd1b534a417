"""Conditions that pass: what was and is no more, its near misses, and what may never be dropped for it.

None: the reply leaves it open, and it is asked again.
"""

import pytest

from api.contract.consultation import CONSULTATION
from api.contract.states import Advanced, advance
from api.contract.subsidy import STARTUP_SUBSIDY, StartupSubsidyState
from nodes.contracts import Language
from nodes.reading.folding import has_chinese

KNEE = {
    "stage": "collecting_details", "chief_complaint": "膝盖不舒服", "body_parts": ["膝盖"], "symptoms": [],
    "duration": "一周", "aggravating_factors": ["走路"], "pain_level": None, "swelling": None, "trauma": None,
    "red_flags": [], "missing_slots": ["pain_level", "swelling", "trauma"], "last_question": None,
    "pending_answer_for": [],
}  # fmt: skip
THERE, GONE, OPEN = True, False, None

SWELLING: dict[str, bool | None] = {
    # it was, and is no more
    "之前肿过，现在消了": GONE,
    "之前肿过，现在没有了": GONE,
    "以前肿过，现在好了": GONE,
    "前两天肿，现在不肿了": GONE,
    "原来肿，后来消了": GONE,
    "肿过，已经消了": GONE,
    "肿，后来消下去了": GONE,
    "一开始肿，现在消肿了": GONE,
    "现在不肿了，之前肿过": GONE,
    "之前有肿胀但现在没有了": GONE,
    "肿了三天，消了": GONE,
    "昨天还肿，今天没了": GONE,
    "那时候肿，现在没事了": GONE,
    "肿是肿过，早就好了": GONE,
    "前天还有点肿，今天完全没有了": GONE,
    "It used to be swollen, not any more": GONE,
    "it was swollen before but it's fine now": GONE,
    "it was swollen, now it has gone down": GONE,
    "it was swollen last week, now it's back to normal": GONE,
    "it had been swollen, it no longer is": GONE,
    "swollen yesterday, not today": GONE,
    "was swollen, resolved": GONE,
    "there was swelling but there isn't any more": GONE,
    "it swelled up at first but that went away": GONE,
    "had swelling last week, none now": GONE,
    "used to swell, doesn't any more": GONE,
    "I used to have swelling but not now": GONE,
    "the swelling has completely resolved": GONE,
    # it never was, or plainly is not
    "没肿过": GONE,
    "已经不肿了": GONE,
    "现在没肿": GONE,
    "never been swollen": GONE,
    "not swollen any more": GONE,
    "我爸膝盖肿，我的不肿": GONE,
    # it is there: still, again, in part, now and then, on the other side, more than before
    "之前肿，现在还肿": THERE,
    "之前没肿，现在肿了": THERE,
    "之前不肿，现在肿了": THERE,
    "肿消了又肿了": THERE,
    "之前肿，消了以后又肿起来了": THERE,
    "以前肿现在也肿": THERE,
    "肿还没消": THERE,
    "还没消肿": THERE,
    "没有完全消肿": THERE,
    "肿，没好": THERE,
    "有时候肿，有时候不肿": THERE,
    "有时候肿，现在没事了": THERE,
    "早上不肿，晚上肿": THERE,
    "走路后会肿，休息就消了": THERE,
    "每次走路会肿，休息后消了": THERE,
    "一走路就肿，不走就消了": THERE,
    "左膝肿，右膝消了": THERE,
    "左边消了，右边还肿": THERE,
    "肿消了一半": THERE,
    "肿消了很多": THERE,
    "肿得厉害，疼好了": THERE,
    "肿得比之前厉害": THERE,
    "比以前肿得更厉害了": THERE,
    "the swelling has gone down a bit": THERE,
    "the swelling hasn't gone down": THERE,
    "swelling isn't gone": THERE,
    "the swelling won't go down": THERE,
    "it's still swollen": THERE,
    "it was not swollen before but it is now": THERE,
    "more swollen than before": THERE,
    "the swelling comes and goes": THERE,
    "swelling has mostly gone": THERE,
    "the swelling came back": THERE,
    # denied twice
    "不是不肿": THERE,
    "不是没有肿": THERE,
    "没有不肿": OPEN,
    "it is no longer not swollen": OPEN,
    # of earlier alone, not certain, somebody else's
    "之前肿过": OPEN,
    "it used to swell": OPEN,
    "之前没肿": OPEN,
    "之前肿，现在好多了": OPEN,
    "之前肿，敷了冰就退了": OPEN,
    "之前肿过，现在好像消了": OPEN,
    "应该消了": OPEN,
    "不知道消没消": OPEN,
    "I think the swelling is gone": OPEN,
    "maybe it's gone down": OPEN,
    "我妈之前肿过，现在消了": OPEN,
    "她之前肿过，现在没了": OPEN,
    "my mother's knee was swollen, gone now": OPEN,
    "he had swelling, it's gone": OPEN,
    "消了吗？": OPEN,
}


def said(text: str, *pending: str, **known: object) -> Advanced:
    state = CONSULTATION.model.model_validate({**KNEE, "pending_answer_for": list(pending), **known})
    language: Language = "zh" if has_chinese(text) else "en"
    return advance(CONSULTATION, state, text, language)


@pytest.mark.parametrize(("text", "expected"), SWELLING.items())
def test_whether_a_swelling_is_there_now(text: str, expected: bool | None) -> None:
    words = {None: (None, None), True: ("有", "yes"), False: ("无", "no")}[expected]
    found = said(text, "swelling").state.model_dump()
    assert found["swelling"] == words[0 if has_chinese(text) else 1]
    assert ("swelling" in found["missing_slots"]) is (expected is None)


def test_what_is_left_open_keeps_the_value_that_was_known() -> None:
    assert said("之前肿过", swelling="有").state.model_dump()["swelling"] == "有"
    assert said("之前肿过，现在消了", swelling="有").state.model_dump()["swelling"] == "无"


@pytest.mark.parametrize("text", ["之前摔过，现在好了", "I fell last week, it's fine now"])
def test_what_happened_once_has_happened(text: str) -> None:
    assert said(text, "trauma").state.model_dump()["trauma"] in ("有", "yes")


@pytest.mark.parametrize(
    ("text", "slot", "expected"),
    [
        ("之前交过社保，现在停了", "social_insurance", "未缴纳"),
        ("社保断了", "social_insurance", "未缴纳"),
        ("社保一直在交", "social_insurance", "已缴纳"),
        ("之前交过社保", "social_insurance", None),
        ("以前领取过，现在没有了", "received_before", "领取过"),
    ],
)
def test_a_business_says_what_is_over_too(text: str, slot: str, expected: str | None) -> None:
    given = {"domain": "startup_subsidy", "stage": "x", "request": "创业补贴", "missing_slots": [slot]}
    state = StartupSubsidyState.model_validate({**given, "red_flags": [], "pending_answer_for": [slot]})
    assert advance(STARTUP_SUBSIDY, state, text, "zh").state.model_dump()[slot] == expected


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ("之前发烧，现在退了", "发热"),
        ("发烧已经退了", "发热"),
        ("昨天发烧，今天好了", "发热"),
        ("不是没有发烧", "发热"),
        ("没有不发烧", "发热"),
        ("不能排除发烧", "发热"),
        ("小腿肿没消", "小腿肿痛"),
        ("之前小腿肿，现在消了", "小腿肿痛"),
        ("胸痛好了", "胸痛"),
        ("以前卡住过，现在没有了", "关节卡住"),
        ("the fever is gone", "fever"),
        ("the fever hasn't gone", "fever"),
        ("the numbness went away", "numbness"),
        ("chest pain before but not any more", "chest pain"),
        ("I can't say I don't have chest pain", "chest pain"),
        ("I can't rule out a fever", "fever"),
        ("没发烧", None),
        ("没有发烧，也没有麻木", None),
        ("no fever any more", None),
        ("never had a fever", None),
        ("I don't have any chest pain", None),
    ],
)
def test_no_warning_sign_is_dropped_for_being_over(text: str, flag: str | None) -> None:
    assert said(text, "swelling").state.red_flags == ([flag] if flag else [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("不是不疼", None),
        ("没有不疼", None),
        ("不疼了", "0"),
        ("之前疼，现在不疼了", "0"),
        ("之前疼过", None),
        ("the pain is gone", "0"),
        ("the pain hasn't gone", None),
    ],
)
def test_a_pain_that_is_denied_twice_or_not_gone_is_asked_again(text: str, expected: str | None) -> None:
    assert said(text, "pain_level").state.model_dump()["pain_level"] == expected
