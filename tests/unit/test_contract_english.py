"""What an English message gives each slot of a consultation, and which warning signs it raises."""

from typing import Any

import pytest

from api.contract.consultation import CONSULTATION, ConsultationState
from api.contract.states import Advanced, advance

EMPTY: dict[str, Any] = {
    "stage": "collecting_details",
    "body_parts": [],
    "symptoms": [],
    "aggravating_factors": [],
    "red_flags": [],
    "missing_slots": ["duration", "aggravating_factors", "pain_level", "swelling", "trauma"],
    "pending_answer_for": [],
    "chief_complaint": "a sinking feeling in my knee",
}


def said(text: str, *pending: str, **changes: Any) -> Advanced:
    state = ConsultationState.model_validate({**EMPTY, "pending_answer_for": list(pending), **changes})
    return advance(CONSULTATION, state, text, "en")


def value(slot: str, text: str, *pending: str, **changes: Any) -> Any:
    return said(text, *pending, **changes).state.model_dump()[slot]


PAIN_ASKED = {
    "6": "6",
    "6/10": "6",
    "about a 6": "6",
    "a 6": "6",
    "six": "6",
    "6 out of 10": "6",
    "six out of ten": "6",
    "maybe 4 or 5": "4-5",
    "4-5": "4-5",
    "between 4 and 5": "4-5",
    "around 7 out of 10": "7",
    "I'd say 7": "7",
    "I would say a 3": "3",
    "it's a 3": "3",
    "pain is 6": "6",
    "the pain is about 6": "6",
    "pain level 6": "6",
    "my pain is a 6 out of 10": "6",
    "no pain": "0",
    "none": "0",
    "no": "0",
    "not at all": "0",
    "it doesn't hurt": "0",
    "it does not hurt": "0",
    "doesn't hurt at all": "0",
    "not painful": "0",
    "mild": "mild",
    "moderate": "moderate",
    "severe": "severe",
    "quite bad": "severe",
    "very painful": "severe",
    "it hurts a lot": "severe",
    "it hurts a little": "mild",
    "a little": "mild",
    "a bit": "mild",
    "not too bad": "mild",
    "not very painful": "mild",
    "not much": "mild",
    "it hurts": None,
    "yes": None,
    "I don't know": "unknown",
    "not sure": "unknown",
    "no idea": "unknown",
    "hard to say": "unknown",
    "11 out of 10": None,
    "for 6 days": None,
    "it started 6 weeks ago": None,
    "is 6 bad?": None,
    "what if it's 8?": None,
    "zero": "0",
    "0": "0",
    "ten": "10",
    "10/10": "10",
    "unbearable": "severe",
    "no pain at all": "0",
    "pain free": "0",
    "I have no pain": "0",
    "I'm not in pain": "0",
    "less than 3": None,
    "7.5": "7.5",
    "it's tolerable": "mild",
}
PAIN = {
    "pain 6/10": "6",
    "the pain is 6 out of 10": "6",
    "6": None,
    "no pain": "0",
    "it's painful": None,
    "severe pain": "severe",
    "I have mild pain": "mild",
    "it hurts a lot": "severe",
    "my knee hurts when walking": None,
    "6 out of 10 pain": "6",
}
SWELLING_ASKED = {
    "no": "no",
    "yes": "yes",
    "yes, a bit": "yes",
    "yes it is": "yes",
    "yes there is": "yes",
    "no, there isn't": "no",
    "no there is not": "no",
    "no swelling": "no",
    "there is no swelling": "no",
    "it isn't swollen": "no",
    "it is not swollen": "no",
    "not swollen": "no",
    "it's not swollen at all": "no",
    "I haven't noticed any swelling": "no",
    "I have not noticed any swelling": "no",
    "no, not swollen": "no",
    "a little swollen": "yes",
    "slightly": "yes",
    "slightly swollen": "yes",
    "it swells up after walking": "yes",
    "yes, it's puffy": "yes",
    "it was swollen but not anymore": "no",
    "the swelling is gone": "no",
    "the swelling went down": "no",
    "swelling: none": "no",
    "swelling - no": "no",
    "without swelling": "no",
    "not sure": "unknown",
    "is it swollen?": None,
    "if it swells, what then?": None,
    "there's some swelling": "yes",
    "I think so": "yes",
    "I don't think so": "no",
    "nope": "no",
    "nothing": "no",
    "not that I can see": "no",
    "not that I know of": "no",
    "definitely": "yes",
    "yeah": "yes",
    "hasn't swollen": "no",
    "no visible swelling": "no",
    "minimal swelling": "yes",
    "swollen, yes": "yes",
    "no swelling or injury": "no",
}
TRAUMA_ASKED = {
    "no": "no",
    "yes": "yes",
    "I fell last week": "yes",
    "I didn't fall": "no",
    "I did not fall": "no",
    "no fall or injury": "no",
    "no injury": "no",
    "no injuries": "no",
    "I twisted it": "yes",
    "I twisted my knee playing football": "yes",
    "never injured it": "no",
    "I've never hurt it": "no",
    "yes, a sprain two years ago": "yes",
    "I had an accident": "yes",
    "I was hit by a car": "yes",
    "I slipped on ice": "yes",
    "I tripped": "yes",
    "I banged it on a table": "yes",
    "nothing happened": "no",
    "not that I remember": "no",
    "I don't remember": "unknown",
    "none that I know of": "no",
    "I haven't fallen": "no",
    "I have fallen": "yes",
    "did I injure it?": None,
    "neither": "no",
    "I hurt it skiing": "yes",
    "no trauma": "no",
    "without any injury": "no",
    "not injured": "no",
    "I bumped it": "yes",
    "a fall": "yes",
    "since a fall": "yes",
}
DURATION_ASKED = {
    "2 weeks": "2 weeks",
    "two weeks": "two weeks",
    "about two weeks": "two weeks",
    "for 3 days": "3 days",
    "for about a month": "a month",
    "a couple of days": "a couple of days",
    "a couple days": "a couple days",
    "a few weeks": "a few weeks",
    "several months": "several months",
    "since yesterday": "since yesterday",
    "since Monday": "since monday",
    "since last week": "since last week",
    "since last summer": "since last summer",
    "since May": "since may",
    "since 2021": "since 2021",
    "over a year": "over a year",
    "more than a year": "more than a year",
    "half a year": "half a year",
    "half an hour": "half an hour",
    "a week and a half": "a week and a half",
    "one and a half weeks": "one and a half weeks",
    "2-3 weeks": "2-3 weeks",
    "two or three weeks": "two or three weeks",
    "2 to 3 days": "2 to 3 days",
    "ten days": "ten days",
    "twelve days": "twelve days",
    "it started three days ago": "three days",
    "3 days ago": "3 days",
    "a week ago": "a week",
    "since this morning": "since this morning",
    "I went to the doctor 3 days ago": None,
    "every day": None,
    "twice a week": None,
    "I don't know": "unknown",
    "not sure": "unknown",
    "a long time": "a long time",
    "years": "years",
    "for years": "years",
    "for months": "months",
    "it's been 2 weeks": "2 weeks",
    "how many weeks?": None,
    "ages": "ages",
    "1 week": "1 week",
    "an hour": "an hour",
    "overnight": None,
    "started yesterday": "yesterday",
    "yesterday": "yesterday",
    "last week": "last week",
    "2 yrs": "2 yrs",
    "6 mo": None,
    "10 minutes": "10 minutes",
    "a fortnight": "a fortnight",
}
FACTORS_ASKED = {
    "walking": ["walking"],
    "going up stairs": ["stairs"],
    "when I climb stairs": ["stairs"],
    "walking and squatting": ["walking", "squatting"],
    "nothing": ["none"],
    "no": ["none"],
    "nothing in particular": ["none"],
    "running": ["running"],
    "when I run": ["running"],
    "standing for long": ["standing"],
    "sitting": ["sitting"],
    "when I sit too long": ["sitting"],
    "when I stand": ["standing"],
    "sports": ["exercise"],
    "working out": ["exercise"],
    "kneeling": ["kneeling"],
    "bending": ["bending"],
    "lifting": ["lifting"],
    "going downstairs": ["stairs"],
    "not sure": ["unknown"],
    "not walking, but stairs": ["stairs"],
    "walking doesn't make it worse": [],
    "jogging": ["running"],
    "crouching": ["squatting"],
}
FACTORS = {
    "it gets worse when I walk": ["walking"],
    "it hurts when I climb stairs": ["stairs"],
    "walking makes it worse": ["walking"],
    "squatting hurts": ["squatting"],
    "worse on stairs": ["stairs"],
    "I like running": [],
    "it doesn't hurt when I walk": [],
    "walking is fine": [],
    "stairs are painful": ["stairs"],
}
SIGNS = {
    "I have a fever": ["fever"],
    "I feel feverish": ["fever"],
    "no fever": [],
    "I don't have a fever": [],
    "I can't put weight on it": ["cannot bear weight"],
    "I cannot bear weight": ["cannot bear weight"],
    "I'm unable to walk": ["cannot bear weight"],
    "can't walk": ["cannot bear weight"],
    "I can not walk": ["cannot bear weight"],
    "couldn't walk": ["cannot bear weight"],
    "can't stand on it": ["cannot bear weight"],
    "I can walk": [],
    "my knee is locked": ["locked joint"],
    "my knee locks up": ["locked joint"],
    "I can't straighten my knee": ["locked joint"],
    "cannot bend it": ["locked joint"],
    "unable to bend it": ["locked joint"],
    "it looks deformed": ["deformity"],
    "numb toes": ["numbness"],
    "my foot is numb": ["numbness"],
    "numbness and tingling": ["numbness"],
    "no numbness": [],
    "pins and needles": ["numbness"],
    "my calf is swollen": ["calf swelling"],
    "swelling in my calf": ["calf swelling"],
    "chest pain": ["chest pain"],
    "my chest hurts": ["chest pain"],
    "short of breath": ["breathlessness"],
    "trouble breathing": ["breathlessness"],
    "difficulty breathing": ["breathlessness"],
    "I can't breathe": ["breathlessness"],
    "I lost control of my bladder": ["incontinence"],
    "incontinence": ["incontinence"],
    "severe pain": ["severe pain"],
    "the pain is unbearable": ["severe pain"],
    "worst pain of my life": ["severe pain"],
    "excruciating": ["severe pain"],
    "pain 9/10": ["severe pain"],
    "pain 8 out of 10": ["severe pain"],
    "pain 7/10": [],
    "what if I get a fever?": [],
    "I had a fever yesterday": ["fever"],
    "is fever a warning sign?": ["fever"],
    "could I get a fever?": [],
    "no chest pain but short of breath": ["breathlessness"],
    "neither fever nor numbness": [],
    "I can't walk without pain": ["cannot bear weight"],
    "high temperature": ["fever"],
    "temperature of 39": ["fever"],
    "the pain is severe": ["severe pain"],
    "not severe pain": [],
}


@pytest.mark.parametrize("text", PAIN_ASKED)
def test_pain_when_it_was_asked_for(text: str) -> None:
    assert value("pain_level", text, "pain_level") == PAIN_ASKED[text]


@pytest.mark.parametrize("text", PAIN)
def test_pain_that_nobody_asked_for(text: str) -> None:
    assert value("pain_level", text) == PAIN[text]


@pytest.mark.parametrize("text", SWELLING_ASKED)
def test_swelling_when_it_was_asked_for(text: str) -> None:
    assert value("swelling", text, "swelling") == SWELLING_ASKED[text]


@pytest.mark.parametrize("text", TRAUMA_ASKED)
def test_an_injury_when_it_was_asked_for(text: str) -> None:
    assert value("trauma", text, "trauma") == TRAUMA_ASKED[text]


@pytest.mark.parametrize("text", DURATION_ASKED)
def test_how_long_when_it_was_asked_for(text: str) -> None:
    assert value("duration", text, "duration") == DURATION_ASKED[text]


@pytest.mark.parametrize("text", FACTORS_ASKED)
def test_what_makes_it_worse_when_it_was_asked_for(text: str) -> None:
    assert value("aggravating_factors", text, "aggravating_factors") == FACTORS_ASKED[text]


@pytest.mark.parametrize("text", FACTORS)
def test_what_makes_it_worse_that_nobody_asked_for(text: str) -> None:
    assert value("aggravating_factors", text) == FACTORS[text]


@pytest.mark.parametrize("text", SIGNS)
def test_warning_signs(text: str) -> None:
    found = said(text, "swelling")
    assert found.state.red_flags == list(found.new_flags) == SIGNS[text]


def test_a_whole_consultation_in_english() -> None:
    state = {**EMPTY, "chief_complaint": None, "missing_slots": []}
    told = [
        "My left knee feels unstable",
        "about two weeks",
        "going up stairs",
        "I'd say a 6",
        "no, there isn't",
    ]
    for text in told:
        found = advance(CONSULTATION, ConsultationState.model_validate(state), text, "en")
        state = found.state.model_dump()
    assert found.next_question == "Was there an injury, such as a fall or a twist?"
    found = advance(CONSULTATION, ConsultationState.model_validate(state), "not that I remember", "en")
    assert found.is_complete
    filled = found.state.model_dump()
    expected = {
        "chief_complaint": told[0], "duration": "about two weeks", "aggravating_factors": ["stairs"],
        "pain_level": "6", "swelling": "no", "trauma": "no", "body_parts": ["knee"],
        "symptoms": ["instability"], "red_flags": [], "stage": "ready",
    }  # fmt: skip
    assert {name: filled[name] for name in expected} == expected | {"duration": "two weeks"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("走路没事，上楼加重", ["上下楼"]), ("走路不疼", []), ("弯腰和跪着", ["跪姿", "弯腰"])],
)
def test_a_move_that_is_fine_is_no_factor_in_chinese_either(text: str, expected: list[str]) -> None:
    state = ConsultationState.model_validate({**EMPTY, "pending_answer_for": ["aggravating_factors"]})
    found = advance(CONSULTATION, state, text, "zh").state.model_dump()
    assert found["aggravating_factors"] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("之前肿过，现在消了", "无"), ("肿消了", "无"), ("肿胀已经退了", "无"), ("肿退了", "无")],
)
def test_swelling_that_is_gone_in_chinese(text: str, expected: str) -> None:
    state = ConsultationState.model_validate({**EMPTY, "pending_answer_for": ["swelling"]})
    assert advance(CONSULTATION, state, text, "zh").state.model_dump()["swelling"] == expected
