"""Which regulations a text names, and whether evidence names the same ones.

Form does not matter (云湖规〔2024〕7号, 云湖规[2024]第7号, Yunhu (2024) No. 7); every character of a title
does, and so do issuer, year and number.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from nodes.answer.numerals import normalised

Kind = Literal["title", "number", "plain", "english"]


@dataclass(frozen=True)
class Regulation:
    """A regulation as named; of a Chinese title without brackets only the end is known."""

    text: str
    kind: Kind
    issuer: str = ""
    year: str = ""
    number: str = ""


class Named:
    """What one text names, and the text itself in a form in which titles can be looked for."""

    def __init__(self, text: str) -> None:
        text = text.translate(_BRACKETS)
        self.numbers = [_numbered(match) for pattern in _NUMBERS for match in pattern.finditer(text)]
        self.rest = _without_numbers(text)
        self.titles = _titled(self.rest)
        self.squeezed = squeezed(text)
        self.is_latin = len(re.findall(r"[A-Za-z]{2,}", text)) > len(re.findall(r"[\u3400-\u9fff]", text))

    @property
    def all(self) -> list[Regulation]:
        return [*self.numbers, *self.titles]


def is_named(regulation: Regulation, texts: Iterable[Named]) -> bool:
    """Whether one of `texts` names the regulation. An English title can only be judged by an English text."""
    known = list(texts)
    if regulation.kind == "number":
        return any(_is_same(regulation, other) for text in known for other in text.numbers)
    if regulation.kind == "english" and not any(text.is_latin for text in known):
        return True
    title = squeezed(regulation.text)
    return any(title in text.squeezed for text in known)


def without_titles(text: str) -> str:
    return _TITLE.sub(" ", text)


def squeezed(text: str) -> str:
    """`text` in one form, without spaces, quotes and title brackets."""
    return re.sub(r"[\s《》“”\"'·]", "", normalised(text)).casefold()


_BRACKETS = str.maketrans("［］﹝﹞（）", "[]〔〕()")
_TITLE = re.compile(r"《([^《》\n]{1,80})》")
_NUMBERS = (
    re.compile(
        r"(?P<issuer>[\u4e00-\u9fffA-Za-z]{0,12})\s*[〔\[【(]\s*(?P<year>\d{4})\s*[〕\]】)]\s*"
        r"(?:(?:第|No\.?)\s*(?P<number>\d{1,5})\s*号?|(?P<plain>\d{1,5})\s*号)",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?P<issuer>[\u4e00-\u9fff]{0,12}?)\s*(?P<year>(?:19|20)\d{2})\s*年\s*第\s*(?P<number>\d{1,5})\s*号"
    ),
)
_PLAIN_TITLE = re.compile(
    r"[\u4e00-\u9fff]{2}(?:管理办法|实施细则|实施办法|暂行办法|暂行规定|管理规定|管理条例|实施条例|实施方案)"
)
_ENGLISH_NOUN = "(?:Measures|Regulations?|Rules|Act|Law|Provisions|Guidelines|Ordinance|Decree)"
_CAPITAL = "[A-Z][A-Za-z&-]+"
_ENGLISH_TITLE = re.compile(
    rf"\b(?!The\b){_CAPITAL}(?:[ ](?:{_CAPITAL}|of|on|for|and)){{0,6}}[ ]{_ENGLISH_NOUN}\b"
    rf"|\b{_ENGLISH_NOUN}[ ](?:for|on|of)[ ](?:the[ ])?{_CAPITAL}(?:[ ](?:(?:of|on|for|and)[ ])?{_CAPITAL})*"
)
# What may stand before the issuer of a document without being part of its name.
_LEAD = re.compile(
    "^.*(?:根据|依据|依照|按照|参照|遵照|执行|印发|发布|文号|文件|规定|通知|[即为见由按依及和与或在对的了是])"
)


def _numbered(match: re.Match[str]) -> Regulation:
    groups = match.groupdict()
    number = str(int(groups["number"] or groups.get("plain") or 0))
    return Regulation(match.group(), "number", _LEAD.sub("", groups["issuer"]), groups["year"], number)


def _without_numbers(text: str) -> str:
    for pattern in _NUMBERS:
        text = pattern.sub(" ", text)
    return text


def _titled(text: str) -> list[Regulation]:
    outside = _TITLE.sub(" ", text)
    return [
        *(Regulation(match[1], "title") for match in _TITLE.finditer(text)),
        *(Regulation(match.group(), "plain") for match in _PLAIN_TITLE.finditer(outside)),
        *(Regulation(match.group(), "english") for match in _ENGLISH_TITLE.finditer(outside)),
    ]


def _is_same(said: Regulation, known: Regulation) -> bool:
    if (said.year, said.number) != (known.year, known.number):
        return False
    if not said.issuer or said.issuer.isascii() or said.issuer == known.issuer:
        return True
    # Words that are not in the list of leads may still stand before the name.
    return len(known.issuer) >= 2 and said.issuer.endswith(known.issuer)
