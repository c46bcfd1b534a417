"""Must a text be refused before anything is looked up? Reads the raw text alone and gives a reason code.

"prompt_injection": words that try to change or reveal the assistant's instructions, or to talk it past
permissions. "personal_data": a request for another person's private data. "topic:<name>": a configured topic.
Spelling tricks (full width, invisible characters, letters set apart, look-alike letters) are folded first.
"""

import re
from collections.abc import Sequence

from nodes.reading.folding import fold, has_chinese, squeeze
from nodes.reading.injections import tries_to_take_over
from nodes.reading.personal_data import asks_for_personal_data

PROMPT_INJECTION = "prompt_injection"
PERSONAL_DATA = "personal_data"


def screen(text: str, *, topics: Sequence[str] = ()) -> str | None:
    """The reason to refuse the text, or None.

    A topic is a phrase, or "name=phrase|phrase" where several phrases mean it.
    """
    forms = _forms(text)
    if any(tries_to_take_over(form) for form in forms):
        return PROMPT_INJECTION
    if any(asks_for_personal_data(form) for form in forms):
        return PERSONAL_DATA
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


def _is_about(forms: Sequence[str], topic: str) -> bool:
    name, _, phrases = topic.partition("=")
    wanted = [squeeze(phrase) for phrase in (phrases or name).split("|")]
    return any(_has_phrase(form, phrase) for form in forms for phrase in wanted if phrase)


def _has_phrase(text: str, phrase: str) -> bool:
    """Latin phrases count as whole words only."""
    if has_chinese(phrase):
        return phrase in text
    return re.search(rf"(?<![^\W_]){re.escape(phrase)}(?![^\W_])", text) is not None
