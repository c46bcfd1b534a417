"""What a mention of a period looks like, alone: the words, numerals and abbreviations for it.

At one place the first rule that matches wins, so what is no period (a month, a day, a boundary, a document's
number) stands before what looks like it. A mention that could be a mere number is marked as not certain.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

MAX_YEARS = 20  # a longer range names its two ends only
MAX_RECENT = 10  # "近二十年" is no list of facts that anyone wants

Kind = Literal["year", "part", "fixed", "none", "prior", "same"]


@dataclass(frozen=True)
class Mention:
    """One mention. A part without `year` takes it from another mention; a year that gave it is `used`."""

    kind: Kind
    start: int
    end: int
    year: int | None = None
    parts: tuple[str, ...] = ()
    periods: tuple[str, ...] = ()
    certain: bool = True  # False: needs its context to be more than a number
    used: bool = False


FOUR_DIGITS = r"(?:19|20)\d\d"
_YZ = r"[一二][〇零○0一二三四五六七八九]{3}"
_YEAR = rf"(?P<y>{FOUR_DIGITS}|{_YZ})"
_NO_DIGIT = r"(?<!\d)(?<!\d[.,])"
_NO_WORD = r"(?<![a-z0-9])"
_RELATIVE = r"(?:去年|今年|明年|前年|本年)"
_MONTH_ZH = r"(?:1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])"
_MONTH_EN = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY_EN = r"\d{1,2}(?:st|nd|rd|th)?"
FIGURE_ZH = (
    r"(?:营收|营业|收入|净利|利润|毛利|研发|总资产|净资产|资产|负债|现金流|经营|纳税|缴税|税|业绩|财报|年报"
    r"|财务"
    r"|员工总?人?数|扣非|归母|全年|年度|销售|销量)"
)
FIGURE_EN = (
    r"(?:revenues?|sales(?! (?:staff|people|persons?|teams?))|turnover|income|profits?|earnings|net|gross"
    r"|operating"
    r"|annual|results?|financials?|figures|margins?|r&d|research|cash|assets?|tax(?:es)?|headcount"
    r"|performance"
    r"|full[- ]year|total(?! of))\b"
)
_NUMBER_EN = r"(?P<n>\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten)"
_LAST = r"(?:last|previous|prior|preceding)"
_SPAN_EN = r"(?:fiscal |financial |calendar |full )?"

_DIGIT = {**{c: i for i, c in enumerate("〇一二三四五六七八九")}, "零": 0, "○": 0}
_NUMBER = {
    **{c: i for i, c in enumerate("一二三四五六七八九十", 1)},
    **{
        w: i
        for i, w in enumerate(
            ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], 1
        )
    },
    **{w: i for i, w in enumerate(["first", "second", "third", "fourth"], 1)},
    "两": 2,
    "1st": 1,
    "2nd": 2,
    "3rd": 3,
    "4th": 4,
    "last": 4,
    "final": 4,
}

Match = re.Match[str]
Make = Callable[[Match, datetime], Mention | None]


def _number(word: str) -> int:
    return int(word) if word.isdecimal() else _NUMBER[word]


def _year(written: str) -> int:
    year = int("".join(str(_DIGIT.get(c, c)) for c in written))
    return year + 2000 if year < 100 else year


def _group(m: Match, name: str) -> str:
    """The group of this name, or of this name and a number, that took part in the match."""
    return next(value for key, value in m.groupdict().items() if key.rstrip("0123456789") == name and value)


def _nothing(m: Match, _: datetime) -> Mention:
    return Mention("none", m.start(), m.end())


def _certain_year(m: Match, _: datetime) -> Mention:
    return Mention("year", m.start(), m.end(), _year(_group(m, "y")))


def _possible_year(m: Match, _: datetime) -> Mention:
    return Mention("year", m.start(), m.end(), _year(_group(m, "y")), certain=False)


def _years_from_now(offset: int) -> Make:
    return lambda m, today: Mention("year", m.start(), m.end(), today.year + offset)


def _recent_years(m: Match, today: datetime) -> Mention | None:
    count = _number(_group(m, "n"))
    if not 1 <= count <= MAX_RECENT:
        return None
    return Mention("fixed", m.start(), m.end(), periods=year_range(today.year - count, today.year - 1))


def _years_until_now(m: Match, today: datetime) -> Mention:
    return Mention("fixed", m.start(), m.end(), periods=year_range(_year(_group(m, "y")), today.year))


def _quarter_from_now(offset: int) -> Make:
    def make(m: Match, today: datetime) -> Mention:
        year, quarter = divmod(today.year * 4 + (today.month - 1) // 3 + offset, 4)
        return Mention("fixed", m.start(), m.end(), periods=(f"{year}Q{quarter + 1}",))

    return make


def _part(kind: str) -> Make:
    return lambda m, _: Mention("part", m.start(), m.end(), parts=(f"{kind}{_number(_group(m, 'n'))}",))


def _half(number: int) -> Make:
    return lambda m, _: Mention("part", m.start(), m.end(), parts=(f"H{number}",))


def _part_of_year(kind: str) -> Make:
    return lambda m, _: Mention(
        "part", m.start(), m.end(), _year(_group(m, "y")), (f"{kind}{_group(m, 'n')}",)
    )


def _bare_half(m: Match, _: datetime) -> Mention:
    return Mention("part", m.start(), m.end(), parts=(f"H{_group(m, 'n')}",), certain=False)


def _first_quarters(m: Match, _: datetime) -> Mention:
    return Mention("part", m.start(), m.end(), parts=_quarters(1, _number(_group(m, "n"))))


def _some_quarters(m: Match, _: datetime) -> Mention:
    return Mention(
        "part", m.start(), m.end(), parts=_quarters(_number(_group(m, "n")), _number(_group(m, "last")))
    )


def _quarters(first: int, last: int) -> tuple[str, ...]:
    return tuple(f"Q{number}" for number in range(first, last + 1))


def _prior_year(m: Match, _: datetime) -> Mention:
    return Mention("prior", m.start(), m.end())


def _same_period(m: Match, _: datetime) -> Mention:
    return Mention("same", m.start(), m.end())


_RULES: tuple[tuple[str, Make], ...] = (
    (rf"{_NO_DIGIT}[〔\[(【]?{FOUR_DIGITS}年?[〕\])】]?第?\d+号", _nothing),
    (
        rf"(?:{_NO_DIGIT}(?:{FOUR_DIGITS}|{_YZ})年|{_RELATIVE}){_MONTH_ZH}(?:月?份?[-~至到]{_MONTH_ZH})?月"
        r"(?:份|[\d一二三四五六七八九十]{1,3}[日号])?",
        _nothing,
    ),
    (rf"{_NO_DIGIT}{FOUR_DIGITS}[-/.]\d{{1,2}}[-/.]\d{{1,2}}(?!\d)", _nothing),
    (rf"{_NO_DIGIT}(?:fy ?)?{FOUR_DIGITS}[-/]\d{{1,2}}(?!\d)", _nothing),
    (rf"(?:\b{_DAY_EN} (?:of )?)?\b{_MONTH_EN}(?: {_DAY_EN})?,? ?{FOUR_DIGITS}\b", _nothing),
    (
        r"前(?:\d{1,2}|[一二两三四五六七八九十]+)个月|\b(?:first|last) \w+ months(?: of (?:19|20)\d\d)?",
        _nothing,
    ),
    (rf"\b(?:before|after|prior to|later than|earlier than) (?:the end of )?{FOUR_DIGITS}\b", _nothing),
    (rf"{_NO_DIGIT}{_YEAR}年?(?:至今|到现在|以来)|\bsince (?P<y2>{FOUR_DIGITS})\b(?! ?-)", _years_until_now),
    (
        rf"{_NO_DIGIT}(?:{FOUR_DIGITS}|{_YZ})年(?:之[前后]|以[前后]|[前后](?![一二三四1-4]个?季度|半年)"
        rf"|起(?!止))",
        _nothing,
    ),
    (
        rf"{_NO_WORD}(?:fy|(?:fiscal|financial|calendar) (?:year )?|year )[ '’]?(?P<y>{FOUR_DIGITS})(?:年度?"
        rf"|财年)?",
        _certain_year,
    ),
    (rf"{_NO_WORD}fy ?['’]?(?P<y>\d\d)(?!\d)", _certain_year),
    (
        rf"{_NO_DIGIT}(?<![¥$€£]){_YEAR}(?:财年|财政年度|会计年度|年(?:年度|度|年末|末|年底|底|全年)?)",
        _certain_year,
    ),
    (rf"{_NO_DIGIT}(?P<y>[12]\d)(?:财年|年度?)", _possible_year),
    (
        rf"{_NO_WORD}(?P<n>[1-4])q ?['’]?(?P<y>{FOUR_DIGITS}|\d\d)(?!\w)"
        rf"|{_NO_WORD}(?P<y2>\d\d)q(?P<n2>[1-4])(?!\w)",
        _part_of_year("Q"),
    ),
    (rf"{_NO_WORD}q ?(?P<n>[1-4]) ?['’](?P<y>\d\d)(?!\w)", _part_of_year("Q")),
    (rf"{_NO_WORD}h ?(?P<n>[12]) ?['’](?P<y>\d\d)(?!\w)", _part_of_year("H")),
    (rf"{_NO_WORD}(?P<n>[12])h ?['’]?(?P<y>{FOUR_DIGITS}|\d\d)(?!\w)", _part_of_year("H")),
    (rf"{_NO_DIGIT}(?<![a-z¥$€£#])(?P<y>{FOUR_DIGITS})(?!\d)(?![a-z](?<![qh]))", _possible_year),
    (
        rf"(?:去年|上一?年度?|前一年|上年)?同期|\b(?:the )?same (?:period|quarter|half)(?: of"
        rf"| in)?(?: the)? {_LAST} year"
        r"|\ba year (?:ago|earlier)|\byear-ago(?: period| quarter)?",
        _same_period,
    ),
    (r"大前年", _years_from_now(-3)),
    (r"前年|\bthe year before last\b", _years_from_now(-2)),
    (rf"(?<!过)去年|\blast {_SPAN_EN}year\b(?! of (?!the))", _years_from_now(-1)),
    (rf"今年|(?<!基)本年度?(?!薪)|本财年|\b(?:this|the current) {_SPAN_EN}year\b", _years_from_now(0)),
    (rf"明年|下一年度?|\bnext {_SPAN_EN}year\b", _years_from_now(1)),
    (
        r"(?<!以)上年度?(?![纪龄限])|(?<!以)上一个?(?:财年|年度?)|前一年度?"
        rf"|\b(?:previous|prior|preceding) {_SPAN_EN}year\b|\bthe year before\b",
        _prior_year,
    ),
    (
        r"(?:最近|(?<!附)近|过去|过往)(?P<n>\d{1,2}|[一二两三四五六七八九十])"
        r"(?:个?完?整?的?(?:会计|财政|财务)?年度|个?财年|年)(?![前以])",
        _recent_years,
    ),
    (rf"\b(?:past|last|previous|recent|latest) {_NUMBER_EN} {_SPAN_EN}years\b", _recent_years),
    (r"上(?:一个?|个)?季度|\b(?:last|previous) quarter\b(?! of| in)", _quarter_from_now(-1)),
    (r"本季度|这个?季度|当季度|\b(?:this|the current) quarter\b", _quarter_from_now(0)),
    (r"前(?P<n>[一二两三四2-4])个?季度|\bfirst (?P<n2>two|three|2|3) quarters\b", _first_quarters),
    (r"第?(?P<n>[一二三1-3])季?度?[-~至到]第?(?P<last>[二三四2-4])季度", _some_quarters),
    (
        r"第(?P<n>[一二三四1-4])个?季度?|(?:(?<![第头续近每两个\d.])|(?<=(?:19"
        r"|20)\d\d))(?P<n2>[一二三四1-4])季[度报]"
        rf"|(?:{_NO_WORD}|(?<=(?:19|20)\d\d))q ?(?P<n3>[1-4])(?![a-eg-z0-9])"
        r"|\b(?P<n4>first|second|third|fourth|1st|2nd|3rd|4th|last|final)[ -]quarter\b",
        _part("Q"),
    ),
    (r"(?<!以)上半年度?|前半年|(?<=年)(?:半年度?报告?|中报)|\b(?:first|1st)[ -]half\b", _half(1)),
    (r"下半年度?|后半年|\b(?:second|2nd)[ -]half\b", _half(2)),
    (rf"(?:{_NO_WORD}|(?<=(?:19|20)\d\d)|(?<=年))h ?(?P<n>[12])(?![a-eg-z0-9])", _bare_half),
)
_ANY_RULE = re.compile("|".join(re.sub(r"\?P<\w+>", "?:", pattern) for pattern, _ in _RULES))
_COMPILED = tuple((re.compile(pattern), make) for pattern, make in _RULES)


def mentions_in(text: str, today: datetime) -> Iterator[Mention]:
    at = 0
    while found := _ANY_RULE.search(text, at):
        matches = ((rule.match(text, found.start()), make) for rule, make in _COMPILED)
        match, make = next((match, make) for match, make in matches if match)
        mention = make(match, today)
        if mention:
            yield mention
        at = match.end()


def year_range(first: int, last: int) -> tuple[str, ...]:
    years = range(first, last + 1) if last - first < MAX_YEARS else (first, last)
    return tuple(str(year) for year in years)
