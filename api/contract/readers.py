"""What value a message gives a slot: yes or no, a degree, a length of time, a count, a choice, words.

Pure and deterministic: the same text gives the same value. Unasked, a value counts only where the message
names what it is about; in reply to a question it may stand alone.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from api.contract.hearing import (
    NO,
    UNKNOWN,
    YES,
    Heard,
    Label,
    is_bare_no,
    is_bare_unknown,
    is_bare_yes,
    is_doubly_denied,
    polarity,
)
from api.contract.passing import standing
from nodes.contracts import Language
from nodes.reading.folding import has_chinese


@dataclass(frozen=True)
class Asked:
    """What was asked before: whether for this slot, and whether for this one alone."""

    is_pending: bool = False
    alone: bool = False
    has_value: bool = False


class Reader(Protocol):
    """A slot's value in a text, or None where the text gives none."""

    def __call__(self, heard: Heard, asked: Asked) -> str | None: ...


@dataclass(frozen=True)
class YesOrNo:
    """Yes or no about what `words` name. A bare no answers all that was asked, a bare yes only one thing.

    `passes`: it is a condition, asked for as it is now; one that was and may be gone is asked again. Without
    it, an event: what happened once has happened.
    """

    words: "re.Pattern[str]"
    yes: Label | None = None
    no: Label | None = None
    passes: bool = False

    def __call__(self, heard: Heard, asked: Asked) -> str | None:
        if self.passes and (now := standing(heard.stated, self.words)):
            return None if now == "unsure" else self._word(now == "there", heard.language)
        said = [verdict for clause in heard.stated if (verdict := polarity(clause, self.words)) is not None]
        if said:
            return self._word(said[-1], heard.language)
        return self._bare(heard, asked) if asked.is_pending else None

    def _bare(self, heard: Heard, asked: Asked) -> str | None:
        if is_bare_no(heard.whole):
            return self._word(False, heard.language)
        if is_bare_unknown(heard.whole):
            return UNKNOWN[heard.language]
        return self._word(True, heard.language) if asked.alone and is_bare_yes(heard.whole) else None

    def _word(self, is_so: bool, language: Language) -> str:
        return ((self.yes or YES) if is_so else (self.no or NO))[language]


# Numbers

_DIGITS = {character: value for value, character in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_NUMBER = r"(?:\d+(?:\.\d+)?|[零〇一二两三四五六七八九]?十[一二三四五六七八九]?|[零〇一二两三四五六七八九])"
_WORDS_EN = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
    "twenty",
)
_NUMBER_EN = rf"(?:\d+(?:\.\d+)?|\b(?:{'|'.join(_WORDS_EN)})\b)"


def number_of(word: str) -> float:
    """From digits, an English number word, or Chinese numerals up to ninety-nine."""
    if word[:1].isdecimal():
        return float(word)
    if word in _WORDS_EN:
        return float(_WORDS_EN.index(word))
    tens, ten, units = word.partition("十")
    if not ten:
        return float(_DIGITS[word])
    return float((_DIGITS[tens] if tens else 1) * 10 + (_DIGITS[units] if units else 0))


def _plain(number: float) -> str:
    return f"{number:g}"


# A degree from 0 to 10

_NOT_TIME = (
    r"(?!\s*(?:个|小时|钟|天|日|周|月|年|次|点|号|岁|级台阶|days?|weeks?|months?|years?|hours?|times?|min))"
)
_RANGE_JOIN = r"\s*(?:-|~|—|–|到|至|或|、|,|，|to|or|and)\s*"
# What may stand between the thing and its number, and what may introduce a number that stands alone.
_IS_EN = r"(?:\s*\b(?:is|was|level|score|at|about|around|roughly|maybe|now|today|a|an|like|of)\b){1,4}\s*"
_LEAD = (
    r"(?:(?:大概|大约|差不多|约|about|around|roughly|approximately|maybe|probably|perhaps|like|between|just|only|now"
    r"|i(?:['’]d| would)? (?:say|guess|think)|it(?:['’]s| is)|(?:rate|give) it|at|level|an?)\s*)*"
)


_CORRECTS = re.compile(r"不对|说错|记错|搞错|弄错|更正|纠正|\b(?:actually|correction|i meant)\b")


Degrees = Sequence[tuple["re.Pattern[str]", Label]]


@dataclass(frozen=True)
class Degree:
    """How strong what `words` name is, from 0 to 10 ("6", "6-7"), or light, medium, strong in words.

    A number counts where it is marked as a score, or stands right behind the words, or is all that was
    said in reply; with its mark also where a known one is corrected ("不对，是8分"). One above 10 is none,
    nor one that is denied ("不是6分，是8分"). What is affirmed without a degree gives none: it is asked for
    again. Clauses with `elsewhere` speak of another thing.
    """

    words: "re.Pattern[str]"
    levels: Degrees = ()
    elsewhere: "re.Pattern[str]" = re.compile(r"(?!)")

    def __call__(self, heard: Heard, asked: Asked) -> str | None:
        stated = [clause for clause in heard.stated if not self.elsewhere.search(clause)]
        if not stated:
            return None
        told = "，".join(stated)
        corrects = bool(_CORRECTS.search(heard.whole) or _DENIED_SCORE.search(told))
        may_stand_alone = asked.is_pending or (asked.has_value and corrects)
        return self._score(_as_scores(told), asked, may_stand_alone) or self._in_words(stated, heard, asked)

    def _score(self, text: str, asked: Asked, may_stand_alone: bool) -> str | None:
        named = rf"(?:{self.words.pattern})(?:[^\d零〇一二两三四五六七八九十,，]{{0,8}}?|{_IS_EN})"
        score = rf"(?P<a>{_NUMBER})(?:{_RANGE_JOIN}(?P<b>{_NUMBER}))?"
        in_words = rf"(?P<a>{_NUMBER_EN})(?:{_RANGE_JOIN}(?P<b>{_NUMBER_EN}))?"
        unit = r"\s*(?:分(?!钟|之)|/\s*10(?!\d)|out of (?:10|ten)|级(?!台阶))"
        forms = [
            rf"{named}{score}{unit}",
            rf"{named}{score}$",
            rf"{score}{unit}[^,，]{{0,4}}(?:{self.words.pattern})",
            rf"{named}{in_words}{unit}",
        ]
        if may_stand_alone:
            forms += [rf"{score}{unit}", rf"{in_words}{unit}"]
        if asked.is_pending:
            forms += [
                rf"^{_LEAD}{score}(?:左右|吧|的样子)?$",
                rf"^{_LEAD}{in_words}(?: or so| i think| i guess)?$",
            ]
        for form in forms:
            if (found := re.search(form + _NOT_TIME, text)) and (value := _score_of(found)):
                return value
        return None

    def _in_words(self, stated: Sequence[str], heard: Heard, asked: Asked) -> str | None:
        for clause in reversed(stated):
            if is_doubly_denied(clause, self.words):
                return None
            if self.words.search(clause):
                return self._level(clause, heard.language) or (
                    "0" if polarity(clause, self.words) is False else None
                )
        if not asked.is_pending:
            return None
        if is_bare_no(heard.whole):
            return "0"
        if is_bare_unknown(heard.whole):
            return UNKNOWN[heard.language]
        return self._level(heard.whole, heard.language) if asked.alone and _is_short(heard.whole) else None

    def _level(self, text: str, language: Language) -> str | None:
        return next((label[language] for pattern, label in self.levels if pattern.search(text)), None)


_SOME = rf"(?:{_NUMBER_EN}|{_NUMBER})"
_DENIED_SCORE = re.compile(
    rf"(?:并?不是|\bnot(?: an?)?)\s*{_SOME}(?:\s*[-~到至]\s*{_SOME})?"
    rf"\s*(?:分|/\s*10\b)?{_NOT_TIME}(?!\d)[,，]?\s*"
)
_TWO_NUMERALS = re.compile(
    r"(?<![十零〇一二两三四五六七八九])([一二三四五六七八])([二三四五六七八九])(?=\s*(?:分(?!钟|之)|级))"
)
_AND_A_HALF = re.compile(rf"({_NUMBER})\s*分半")


def _as_scores(text: str) -> str:
    """Without scores that are denied; "五六分" as "五到六分", "六分半" as "6.5分"."""
    text = _TWO_NUMERALS.sub(r"\1到\2", _DENIED_SCORE.sub("", text))
    return _AND_A_HALF.sub(lambda found: f"{_plain(number_of(found[1]) + 0.5)}分", text)


def _is_short(text: str) -> bool:
    """So short that it can only be the answer."""
    return len(text) <= 12 if has_chinese(text) else len(text.split()) <= 3


def _score_of(found: "re.Match[str]") -> str | None:
    numbers = [number_of(word) for word in (found["a"], found["b"]) if word]
    if any(number > 10 for number in numbers):
        return None
    return "-".join(_plain(number) for number in numbers)


# A length of time

_LENGTH_ZH = re.compile(
    r"(?P<q>半|一两|两三|三四|四五|五六|七八|好几|几|数|十几|多|"
    + _NUMBER
    + r")\s*(?P<m>多)?(?P<g>个)?(?P<h>半|多)?"
    r"(?P<u>小时|钟头|天|日(?!子)|周|星期|礼拜|月|年)(?P<r>半|多)?(?!前(?!就?开始)|后|级|龄|号|以上的)"
)
_COUNT_EN = rf"(?:{_NUMBER_EN}|a few|a couple(?: of)?|several|many|an?)"
_UNIT_EN = r"(?:minute|hour|day|night|week|fortnight|month|year|min|hr|wk|yr)s?\b"
_SOME_EN = (
    r"(?:(?:over|more than|almost|nearly|at least|less than)\s+)?"
    rf"(?:half an?|\b{_COUNT_EN}(?:\s*(?:-|–|to|or)\s*{_COUNT_EN})?)"
    rf"\s*(?:and a half\s+)?{_UNIT_EN}(?:\s+and a half)?"
)
_LENGTH_EN = re.compile(rf"{_SOME_EN}(?!\s+ago\b)")
_NOT_LENGTH_EN = re.compile(r"\b(?:once|twice|times|per|every|each|in|within|after)\s+$")
_AGO_EN = re.compile(
    r"(?:^(?:(?:about|around|maybe|roughly|it was)\s+)*"
    r"|\b(?:start|beg[au]n|came on|notic|appear)\w*\b.{0,20}?)"
    rf"(?P<length>{_SOME_EN})(?=\s+ago\b)"
)
_LONG_EN = re.compile(
    r"^(?:it['’]s been |for )?(?P<length>(?:many )?(?:days|weeks|months|years)|a (?:very )?long time|ages)$"
    r"|^(?:it )?(?:started |began )?(?P<point>yesterday|today|this (?:morning|week|month|year)"
    r"|last (?:night|week|weekend|month|year|spring|summer|autumn|fall|winter))$"
)
_DAYS_EN = (
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september"
    r"|october|november|december|spring|summer|autumn|fall|winter|christmas|easter"
)
_SINCE = re.compile(
    r"(?:从|自)?(?:昨天|前天|今天|今早|昨晚|上周|上个?月|去年|上星期|前几天|最近)(?:早上|晚上|下午|上午)?(?:就)?(?:开始|起)"
    r"|since (?:(?:about|around|early|late|last|this|the)\s+)*"
    rf"(?:yesterday|morning|noon|night|weekend|week|month|year|childhood|{_DAYS_EN}|(?:19|20)\d\d)\b"
)
_LASTS = re.compile(
    r"持续|已经|有了?$|了$|开始|病程|出现|注册|成立|经营|开业"
    r"|\b(?:for|since|lasted|about|registered|founded|it['’]s been|start\w*|began)\b"
)


_ANEW = re.compile(r"^(?:应该)?是|^it(?:['’]?s| was)\b")
_NOT_BEFORE = re.compile(r"(?:不是|\bnot)\s*(?:for )?$")


@dataclass(frozen=True)
class Length:
    """A length of time as said ("一周", "2 weeks"). Unasked it counts where the clause says that it lasts.

    One that is known gives way to another only where it is asked for, or corrected ("不是一周，是两周").
    Lengths with 每 or 第 before them, and points in time ("三天前"), are none.
    """

    near: "re.Pattern[str]" = _LASTS
    not_near: "re.Pattern[str]" = re.compile(r"(?!)")

    def __call__(self, heard: Heard, asked: Asked) -> str | None:
        is_open = not asked.has_value or bool(_CORRECTS.search(heard.whole))
        was_denied = False
        for clause in heard.stated:
            found = None if self.not_near.search(clause) else _length_in(clause)
            if found and _NOT_BEFORE.search(clause[: clause.index(found)]):
                was_denied = True
            elif found and (asked.is_pending or was_denied or (is_open and self._says(clause, asked))):
                return found
        if asked.is_pending and is_bare_unknown(heard.whole):
            return UNKNOWN[heard.language]
        return None

    def _says(self, clause: str, asked: Asked) -> bool:
        return bool(self.near.search(clause) or (asked.has_value and _ANEW.search(clause)))


def _length_in(clause: str) -> str | None:
    for found in _LENGTH_ZH.finditer(clause):
        if not re.search(r"(?:每|第|\d{4}|近)$", clause[: found.start()]):
            return found.group()
    since = _SINCE.search(clause)
    return since.group() if since else _length_in_english(clause)


def _length_in_english(clause: str) -> str | None:
    """A point in time is one only where it says when it began."""
    for found in _LENGTH_EN.finditer(clause):
        if not _NOT_LENGTH_EN.search(clause[: found.start()]):
            return found.group()
    other = _AGO_EN.search(clause) or _LONG_EN.search(clause)
    return next((text for text in other.groupdict().values() if text), None) if other else None


# A count, a choice, words of one's own


_COUNTED = re.compile(rf"({_SOME})(?:\s*(?:[-~到至]|to)\s*({_SOME}))?")
_DENIED_COUNT = re.compile(rf"(?:并?不是|\bnot)\s*{_SOME}")


@dataclass(frozen=True)
class Number:
    """How many of what `words` name ("3", "3-5"): a number beside them, or alone in reply. "0" where they are
    denied; a number that is denied gives way to the next ("不是3个，是5个").
    """

    words: "re.Pattern[str]"
    unit: str = r"个|人|名|位"

    def __call__(self, heard: Heard, asked: Asked) -> str | None:
        is_corrected = False
        for clause in heard.stated:
            is_named = bool(self.words.search(clause))
            if not (is_named or is_corrected):
                continue
            if found := _COUNTED.search(_DENIED_COUNT.sub("", clause)):
                return "-".join(_plain(number_of(word)) for word in found.groups() if word)
            if is_named and polarity(clause, self.words) is False:
                return "0"
            is_corrected = bool(_DENIED_COUNT.search(clause))
        return self._bare(heard) if asked.is_pending else None

    def _bare(self, heard: Heard) -> str | None:
        if is_bare_no(heard.whole):
            return "0"
        if is_bare_unknown(heard.whole):
            return UNKNOWN[heard.language]
        found = re.fullmatch(
            rf"(?:大概|大约|有|共|about )?({_NUMBER}|{_NUMBER_EN})\s*(?:{self.unit})*[。.了]?", heard.whole
        )
        return _plain(number_of(found[1])) if found else None


Choices = Degrees


@dataclass(frozen=True)
class Choice:
    """The first of some choices that the text affirms."""

    choices: Choices
    otherwise: Label | None = None

    def __call__(self, heard: Heard, asked: Asked) -> str | None:
        for pattern, label in self.choices:
            if any(polarity(clause, pattern) for clause in heard.stated):
                return label[heard.language]
        if asked.is_pending and self.otherwise and is_bare_no(heard.whole):
            return self.otherwise[heard.language]
        return None


@dataclass(frozen=True)
class OwnWords:
    """What the user writes about something that `topic` names, or in reply, at most `limit` characters."""

    topic: "re.Pattern[str]"
    limit: int = 200

    def __call__(self, heard: Heard, asked: Asked) -> str | None:
        if is_bare_no(heard.whole) or is_bare_yes(heard.whole) or is_bare_unknown(heard.whole):
            return None
        is_about = any(self.topic.search(clause) for clause in heard.stated)
        if (is_about and not asked.has_value) or (asked.is_pending and heard.stated):
            return heard.raw.strip()[: self.limit]
        return None
