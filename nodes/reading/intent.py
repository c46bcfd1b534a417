"""What a text asks: kind, slots, parts and what is missing; by rule, from text and directory alone."""

from collections.abc import Sequence
from dataclasses import replace

from nodes.contracts import Intent, Kind, Language, Metric, Slot, SubQuestion
from nodes.reading.companies import CompanyIndex
from nodes.reading.kinds import (
    Reader,
    Said,
    compared_periods,
    growth_asked,
    is_out_of_scope,
    is_question,
    kind_of,
)
from nodes.reading.language import detect_language
from nodes.reading.questions import questions
from nodes.reading.replies import is_small_talk
from nodes.reading.safety import screen


def read_intent(
    text: str,
    *,
    companies: CompanyIndex,
    metrics: Sequence[Metric],
    received_at: str,
    topics: Sequence[str] = (),
) -> Intent:
    """The text's intent. The screen comes first, so a refused text is read no further.

    Where several questions are asked, the slots are those of all of them and `kind` is the first one's.
    """
    reason = screen(text, topics=topics)
    if reason is not None:
        return _without_slots("refused", text, reason)
    if is_small_talk(text):
        return _without_slots("small_talk", text)
    reader = Reader(companies, metrics, received_at)
    whole = reader.read(text)
    if is_out_of_scope(whole):
        return _without_slots("out_of_scope", text, language=_language_of(whole))
    asked = questions(reader, text)
    return _intent_of_one(whole) if len(asked) == 1 else _intent_of_several(whole, asked)


def answers_itself(intent: Intent) -> bool:
    """Whether the text is a complete question of its own, not a bare name, a phrase or half a question."""
    is_asked = intent["kind"] in ("fact", "comparison", "narrative") and intent.get("asks", True)
    return is_asked and not intent["needs"]


def _without_slots(
    kind: Kind, text: str, safety: str | None = None, language: Language | None = None
) -> Intent:
    return {
        "kind": kind,
        "language": language or detect_language(text),
        "companies": [],
        "periods": [],
        "metrics": [],
        "ambiguous": [],
        "sub_questions": [],
        "needs": [],
        "safety": safety,
        "asks": False,
    }


def _intent_of_one(said: Said) -> Intent:
    kind = kind_of(said)
    about = {**_about_companies(said), **_about_growth(said, kind)} if kind != "narrative" else {}
    return {
        **_without_slots(kind, said.text, language=_language_of(said)),
        **about,  # type: ignore[typeddict-item]
        "companies": list(said.companies),
        "periods": list(compared_periods(said) if kind == "comparison" else said.periods),
        "metrics": list(said.metrics),
        "ambiguous": [list(ids) for ids in _candidates(said, kind)],
        "needs": _needs(said),
        "asks": kind != "narrative" or is_question(said),
    }


def _language_of(said: Said) -> Language:
    return detect_language(said.text, plain=said.plain)


def _about_companies(said: Said) -> dict[str, object]:
    unknown: dict[str, object] = {"unknown": [said.unknown]} if said.unknown else {}
    return {**unknown, "everyone": True} if said.everyone else unknown


def _about_growth(said: Said, kind: Kind) -> dict[str, object]:
    """Of one company in a named period the two periods already say it."""
    growth = growth_asked(said) if kind == "comparison" and (said.everyone or not said.periods) else None
    return {"grows": growth} if growth else {}


def _candidates(said: Said, kind: Kind) -> Sequence[Sequence[str]]:
    return (said.like,) if said.like and kind != "narrative" else said.ambiguous


def _intent_of_several(whole: Said, asked: Sequence[Said]) -> Intent:
    """Of several questions, the one about an unknown company is answered so, and not asked back."""
    asked = [replace(said, like=()) for said in asked]
    missing = {slot for said in asked for slot in _needs(said)}
    unknown = list(dict.fromkeys(said.unknown for said in asked if said.unknown))
    return {
        **_intent_of_one(replace(whole, unknown=None, like=(), everyone=False)),
        **({"unknown": unknown} if unknown else {}),  # type: ignore[typeddict-item]
        "kind": "comparison" if kind_of(whole) == "comparison" else kind_of(asked[0]),
        "needs": [slot for slot in _ORDER if slot in missing],
        "sub_questions": [_sub_question(said) for said in asked],
        "asks": True,
    }


def _sub_question(said: Said) -> SubQuestion:
    kind = kind_of(said)
    return {
        "text": said.text,
        "kind": kind,
        "companies": list(said.companies),
        "periods": list(compared_periods(said) if kind == "comparison" else said.periods),
        "metrics": list(said.metrics),
    }


_ORDER: tuple[Slot, ...] = ("reference", "company", "period", "metric")


def _needs(said: Said) -> list[Slot]:
    """Open slots in the order in which they are asked. What leans on the unsaid waits for that alone."""
    if said.leans:
        return ["reference"]
    wants_figures = kind_of(said) != "narrative"
    if wants_figures and said.unknown and not said.like and not said.names:
        return []  # there is nothing to look up, whatever the period and the figure
    is_open: dict[Slot, bool] = {
        "company": bool(said.ambiguous) or (wants_figures and not said.companies),
        "period": wants_figures and not said.periods,
        "metric": wants_figures and not said.metrics,
    }
    return [slot for slot, open_ in is_open.items() if open_]
