"""The one form in which texts and names are compared: width, case, script and invisible characters folded."""

import re
import unicodedata
from collections.abc import Mapping
from functools import cache

MASK = "\ufffc"  # stands for one character of a name already understood; no letter, no space, no digit

_HAN = r"〇㐀-䶿一-鿿豈-\ufaff\U00020000-\U0002ffff"
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
_SPACES = re.compile(r"\s+")
_SPACE_BY_HAN = re.compile(rf"(?<=[{_HAN}{MASK}]) | (?=[{_HAN}{MASK}])")
_HAN_OR_KANA = re.compile(rf"[{_HAN}\u3040-\u30ff]")


@cache
def _to_simplified() -> Mapping[int, str]:
    """Each traditional character's simplified one, after OpenCC; built on first use, not at import.

    Characters are folded one by one and never by phrase, so a name folds alike alone and inside a sentence.
    """
    from opencc import OpenCC

    characters = [chr(code) for first, last in _BLOCKS for code in range(first, last)]
    simplified = OpenCC("t2s").convert("\n".join(characters)).split("\n")
    table = {a: b for a, b in zip(characters, simplified, strict=True) if a != b}
    return {ord(a): table.get(b, b) for a, b in table.items()}


_BLOCKS = ((0x3400, 0x4DC0), (0x4E00, 0xA000), (0x20000, 0x323B0))


def fold(text: str) -> str:
    """NFKC, case and traditional characters folded, invisible ones removed. Idempotent; never raises."""
    while True:
        folded = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text).casefold())
        folded = unicodedata.normalize("NFKC", folded).translate(_to_simplified())
        if folded == text:
            return folded
        text = folded


def squeeze(text: str) -> str:
    """`fold`, with every run of blanks one space and none beside a Chinese character. Idempotent."""
    return _SPACE_BY_HAN.sub("", _SPACES.sub(" ", fold(text)).strip())


def words_as_written(text: str, squeezed: str, start: int, end: int) -> str:
    """What stands in `text` where `squeezed` has start:end; the squeezed words where that cannot be told."""
    places = [place for place, character in enumerate(text) for _ in squeeze(character)]
    if "".join(squeeze(character) for character in text) != squeezed.replace(" ", ""):
        return squeezed[start:end]
    first = len(squeezed[:start].replace(" ", ""))
    last = len(squeezed[:end].replace(" ", "")) - 1
    return text[places[first] : places[last] + 1] if last >= first else ""


def has_chinese(text: str) -> bool:
    return _HAN_OR_KANA.search(text) is not None


def is_edge(text: str, at: int) -> bool:
    """Whether no Latin word or number runs across this position."""
    return not (0 < at < len(text) and _is_latin(text[at - 1]) and _is_latin(text[at]))


def _is_latin(character: str) -> bool:
    return character.isalnum() and not has_chinese(character)
