"""Must a text be refused before anything is looked up? Reads the raw text alone and gives a reason code.

"prompt_injection": words that try to change or reveal the assistant's instructions, to talk it past
permissions, or to have it run code or hand out whole stores and secrets. "personal_data": a request for
another person's private data or conversations. "topic:<name>": a configured topic. Spelling tricks (full
width, invisible characters, letters set apart, look-alike letters, digits for letters, text turned round or
encoded) are undone first.
"""

import re
from collections.abc import Iterator, Sequence

from nodes.reading.disguises import decoded, readings
from nodes.reading.folding import fold, has_chinese, squeeze
from nodes.reading.injections import tries_to_take_over
from nodes.reading.overreach import asks_for_others_talk, reaches_too_far
from nodes.reading.personal_data import asks_for_personal_data

PROMPT_INJECTION = "prompt_injection"
PERSONAL_DATA = "personal_data"


def screen(text: str, *, topics: Sequence[str] = ()) -> str | None:
    """The reason to refuse the text, or None.

    A topic is a phrase, or "name=phrase|phrase" where several phrases mean it.
    """
    forms = _forms(text)
    hidden = tuple(dict.fromkeys(_squeezed_readings(text)))
    if any(tries_to_take_over(form) for form in (*forms, *hidden)):
        return PROMPT_INJECTION
    if any(asks_for_personal_data(form) or asks_for_others_talk(form) for form in forms):
        return PERSONAL_DATA
    if any(reaches_too_far(form) for form in (*forms, *hidden)):
        return PROMPT_INJECTION
    named = (topic.partition("=")[0].strip() for topic in topics if _is_about(forms, topic))
    return next((f"topic:{name}" for name in named), None)


_LOOK_ALIKE = str.maketrans("аеіјорсухѕԁһӏνοαρτκ", "aeijopcyxsdhlvoaptk")
_SET_APART_ZH = re.compile(r"(?<=[\u4e00-\u9fff])[\s*_.\-·•~^|/\\,、]+(?=[\u4e00-\u9fff])")
_SET_APART_EN = re.compile(r"(?<![^\W_])(?:[a-z0-9][ *_.\-·•|]){3,}[a-z0-9](?![^\W_])")
_BETWEEN_LETTERS = re.compile(r"[ *_.\-·•|]")


def _forms(text: str) -> tuple[str, ...]:
    """The text as it reads, and as it reads once characters that were set apart are put together."""
    folded = fold(text).translate(_LOOK_ALIKE)
    together = _SET_APART_EN.sub(lambda found: _BETWEEN_LETTERS.sub("", found[0]), folded)
    return tuple(dict.fromkeys((squeeze(folded), _SET_APART_ZH.sub("", squeeze(together)))))


def _squeezed_readings(text: str) -> Iterator[str]:
    """What the text says under a disguise, where it wears one."""
    folded = fold(text).translate(_LOOK_ALIKE)
    for reading in (*readings(folded), *map(fold, decoded(text))):
        if reading != folded:
            yield squeeze(reading)


def _is_about(forms: Sequence[str], topic: str) -> bool:
    name, _, phrases = topic.partition("=")
    wanted = [squeeze(phrase) for phrase in (phrases or name).split("|")]
    return any(_has_phrase(form, phrase) for form in forms for phrase in wanted if phrase)


def _has_phrase(text: str, phrase: str) -> bool:
    """Latin phrases count as whole words only."""
    if has_chinese(phrase):
        return phrase in text
    return re.search(rf"(?<![^\W_]){re.escape(phrase)}(?![^\W_])", text) is not None
