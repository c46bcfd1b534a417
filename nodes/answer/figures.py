"""Which figures a text states: amounts with unit, dates, times, ordinals and codes, in Chinese and English.

The same value gives the same figure whatever its form: 1,320 万元, 1320万元 and 13.2 million yuan are one
amount. Values are exact fractions. Text in, figures out; what is true is decided in `grounding`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from nodes.answer.numerals import (
    CURRENCY_PREFIXES,
    ENGLISH,
    HAN,
    LONGEST,
    MAGNITUDE_EN,
    MAGNITUDE_ZH,
    MONEY,
    SHORT_ENGLISH,
    UNIT,
    english_value,
    han_value,
    magnitude_value,
    normalised,
    unit_of,
)


@dataclass(frozen=True)
class _Stated:
    """Where in the normalised text a figure stands; two figures are equal wherever they stand."""

    text: str = field(default="", compare=False, kw_only=True)
    start: int = field(default=0, compare=False, kw_only=True)
    end: int = field(default=0, compare=False, kw_only=True)


@dataclass(frozen=True)
class Amount(_Stated):
    """A number with its canonical unit, "" when none is stated.

    `is_weak`: worded like an article or a tally (一家, 两个条件, one), so that it states little by itself;
    `noun` tells what is counted then.
    """

    value: Fraction
    unit: str = ""
    is_weak: bool = field(default=False, compare=False)
    has_magnitude: bool = field(default=False, compare=False)
    noun: str = field(default="", compare=False)


@dataclass(frozen=True)
class Date(_Stated):
    """A date or period as far as it is stated; a quarter or a half stands instead of month and day."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    quarter: int | None = None
    half: int | None = None


@dataclass(frozen=True)
class Time(_Stated):
    """A time of day, in minutes since midnight."""

    minutes: int


@dataclass(frozen=True)
class Ordinal(_Stated):
    """A place in a sequence: 第三条, Article 7, 7号, 15th. `unit` is "" where the language does not say."""

    value: Fraction
    unit: str = ""


@dataclass(frozen=True)
class Code(_Stated):
    """Digits that are a name (E1024, 0571-88886666, 2.3.1) or vague (几十万); compared letter by letter."""

    value: str


Figure = Amount | Date | Time | Ordinal | Code
Reader = Callable[[re.Match[str]], list[Figure]]

_S = r"[ \t]*"
# Stands where a figure was already read: no space, digit, letter or numeral, so that nothing joins across it.
_TAKEN = "\ue000"
_NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
_TO = rf"{_S}(?:-|–|—|~|至|到|to|and|through){_S}"
_YEAR = r"(?:19|20|21)\d{2}"
_HAN_DAY = "[一二三四五六七八九十廿卅]{1,3}"
_MONTHS: Mapping[str, int] = {
    "January": 1, "Jan": 1, "February": 2, "Feb": 2, "March": 3, "Mar": 3, "April": 4, "Apr": 4, "May": 5,
    "June": 6, "Jun": 6, "July": 7, "Jul": 7, "August": 8, "Aug": 8, "September": 9, "Sept": 9, "Sep": 9,
    "October": 10, "Oct": 10, "November": 11, "Nov": 11, "December": 12, "Dec": 12,
}  # fmt: skip
_MONTH = rf"(?P<name>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\.?"
_QUARTERS: Mapping[str, int] = {
    "一": 1, "二": 2, "三": 3, "四": 4, "first": 1, "second": 2, "third": 3, "fourth": 4,
    "上": 1, "下": 2, "1": 1, "2": 2, "3": 3, "4": 4,
}  # fmt: skip


def figures(text: str) -> list[Figure]:
    """All figures of `text` in order of place. List numbers at the start of a line or clause are none."""
    return _scan(text).read()


def figures_as_evidence(text: str) -> list[Figure]:
    """The figures of `text`, and dates without a year once more with the year said before in the sentence."""
    scan = _scan(text)
    found = scan.read()
    carried: list[Figure] = []
    year, end = None, 0
    for figure in found:
        if _SENTENCE_END.search(scan.source, end, figure.start):
            year = None
        end = figure.end
        if isinstance(figure, Date):
            year = figure.year or year
            carried += [replace(figure, year=year)] if figure.year is None and year else []
    return [*found, *carried]


_SENTENCE_END = re.compile(r"[。!?\n]")


def _scan(text: str) -> "_Scan":
    return _Scan(_without_list_numbers(_with_halves(_NO_NUMBER.sub(" ", normalised(text)))))


# Words with a numeral in them that count nothing.
_NO_NUMBER = re.compile(
    "(?<![一二三四五六七八九])十分(?![之钟])|[千万]万不|万一|[统唯]一|(?<!分)之一|同一|单一|百姓|一(?:般|律|旦|些|定|直|并|起|致|下|样|同|经|体|站式|网通)"
)


def _with_halves(text: str) -> str:
    """`text` with halves said beside a number as decimals: 两年半, two and a half, half a million."""
    for pattern in _HALVES_ZH:
        text = pattern.sub(_decimal_zh, text)
    return _AND_A_HALF.sub(_decimal_en, _HALF_OF.sub("0.5 ", text))


_COUNTED = rf"(?<![几数多余第\d.,])(?P<n>{HAN}{{1,{LONGEST}}}|\d{{1,3}})"
# 半 before these begins another word, or is half of what follows (两个半天).
_HALVES_ZH = (
    re.compile(rf"{_COUNTED}(?P<u>个)半(?![年天场数价成])"),
    re.compile(rf"{_COUNTED}(?P<u>个?小时|年|天|周|倍|岁)半(?![年天场数价径导岛途程成载])"),
)
_HALF_OF = re.compile(rf"\bhalf[ -]an?[ -](?={MAGNITUDE_EN}|{UNIT})", re.IGNORECASE)
_AND_A_HALF = re.compile(rf"\b(?P<n>\d{{1,3}}|{SHORT_ENGLISH})[ ]and[ ]a[ ]half(?=[ ])", re.IGNORECASE)


def _decimal_zh(match: re.Match[str]) -> str:
    half = ".5" if match["n"].isdigit() else "点五"
    return match["n"] + half + match["u"]


def _decimal_en(match: re.Match[str]) -> str:
    value = Fraction(match["n"]) if match["n"].isdigit() else english_value(match["n"])
    return match.group() if value is None else f"{value}.5"


def _without_list_numbers(text: str) -> str:
    text = re.sub(r"(?m)^([ \t>#]*(?:[-•][ \t]+)?)\(?\d{1,2}[.)、](?!\d)", r"\1 ", text)
    text = re.sub(rf"(?m)^([ \t]*)\(?{_HAN_DAY}[)、]", r"\1 ", text)
    return re.sub(
        r"(?:(?<=[;。,?!])|(?<=\D:))([ \t]*)(?:\(\d{1,2}\)|\d{1,2}[)、](?!\d))(?=[ \t]*[^\d\s])", r"\1 ", text
    )


class _Scan:
    """Reads one text by passes, the most particular form first; what was read is taken out of the text."""

    def __init__(self, text: str) -> None:
        self.source = text
        self.text = text
        self.found: list[Figure] = []

    def read(self) -> list[Figure]:
        for pattern, reader in _PASSES:
            self._take(pattern, reader)
        ordered = sorted(self.found, key=lambda figure: (figure.start, figure.end))
        return _inherited(ordered, self.source)

    def _take(self, pattern: re.Pattern[str], reader: Reader) -> None:
        taken: list[tuple[int, int]] = []
        for match in pattern.finditer(self.text):
            read = reader(match)
            for figure in read:
                at = (figure.start, figure.end) if figure.end else match.span()
                words = self.source[at[0] : at[1]].strip()
                self.found.append(replace(figure, text=words, start=at[0], end=at[1]))
            if read:
                taken.append(match.span())
        for start, end in taken:
            self.text = self.text[:start] + _TAKEN * (end - start) + self.text[end:]


# Dates


def _number(text: str | None) -> int | None:
    if not text:
        return None
    value = (
        Fraction(int(text)) if text.isdigit() else han_value(text.replace("廿", "二十").replace("卅", "三十"))
    )
    return int(value) if value is not None else None


def _date(match: re.Match[str]) -> list[Figure]:
    groups = match.groupdict()
    month = _MONTHS[groups["name"]] if groups.get("name") else _number(groups.get("m"))
    day = _number(groups.get("d"))
    if (month is not None and not 1 <= month <= 12) or (day is not None and not 1 <= day <= 31):
        return []
    return [Date(_year(groups.get("y")), month, day)]


def _year(text: str | None) -> int | None:
    if not text:
        return None
    if text.isdigit():
        return int(text) if len(text) == 4 else 2000 + int(text)
    value = han_value(text.replace("○", "〇"))
    return int(value) if value is not None else None


def _quarter(match: re.Match[str]) -> list[Figure]:
    return [Date(_year(match["y"]), quarter=_QUARTERS[match["q"].lower()])]


def _half(match: re.Match[str]) -> list[Figure]:
    return [Date(_year(match["y"]), half=_QUARTERS[match["q"].lower()])]


def _two_years(match: re.Match[str]) -> list[Figure]:
    return [
        Date(int(match["y"]), start=match.start("y"), end=match.end("y")),
        Date(int(match["z"]), start=match.start("z"), end=match.end()),
    ]


def _two_months(match: re.Match[str]) -> list[Figure]:
    months = [(_number(match[name]), match.start(name)) for name in ("m", "n")]
    if not all(month and 1 <= month <= 12 for month, _ in months):
        return []
    return [Date(_year(match["y"]), month, start=at, end=match.end()) for month, at in months]


# Times, ordinals, codes


def _clock(match: re.Match[str]) -> list[Figure]:
    hour = _number(match["h"])
    minutes = 30 if match["m"] == "半" else _number(match["m"]) or 0
    if hour is None or hour > 24 or minutes > 59:
        return []
    return [Time(_hour(hour, match["part"] or "", (match["ap"] or "")[:1].lower()) * 60 + minutes)]


def _hour(hour: int, part: str, half: str) -> int:
    """0 to 24. Twelve at night is where the day begins (12 am, 凌晨12点) or ends (晚上12点)."""
    if hour == 12:
        return {"a": 0, "凌晨": 0, "晚上": 24}.get(half or part, 12)
    is_late = half == "p" or part in ("下午", "晚上", "傍晚")
    return hour + 12 if is_late and hour < 12 else hour


def _ordinal(match: re.Match[str]) -> list[Figure]:
    number = match["n"]
    value = Fraction(number) if number.isdigit() else han_value(number)
    unit = match.groupdict().get("u") or ""
    is_tally = not unit and not number.isdigit()  # 第一, 第二 … order sentences, they state nothing
    return [] if value is None or is_tally else [Ordinal(value, _ORDINAL_UNITS.get(unit.lower(), unit))]


_ORDINAL_UNITS: Mapping[str, str] = {
    "article": "条", "articles": "条", "clause": "条", "chapter": "章", "step": "步", "phase": "期",
    "level": "级", "grade": "级", "tier": "档",
    "section": "", "sections": "", "paragraph": "", "item": "", "no.": "", "no": "", "number": "",
    "annex": "", "appendix": "", "part": "", "class": "", "room": "",
}  # fmt: skip


def _code(match: re.Match[str]) -> list[Figure]:
    return [Code(re.sub(r"[ \t]", "", match.group()).casefold())]


# Amounts


def _percent_in_words(match: re.Match[str]) -> list[Figure]:
    base = {"百": 1, "千": 10, "万": 100}[match["base"]]
    values = [_plain_value(match[name]) for name in ("n", "n2") if match[name]]
    return [Amount(value / base, "%") for value in values if value is not None]


def _half_share(_: re.Match[str]) -> list[Figure]:
    return [Amount(Fraction(50), "%")]


def _tenths(match: re.Match[str]) -> list[Figure]:
    values = [_plain_value(match[name]) for name in ("n", "n2") if match[name]]
    return [Amount(value * 10, "%") for value in values if value is not None]


def _plain_value(text: str) -> Fraction | None:
    return Fraction(text.replace(",", "")) if text[0].isdigit() else han_value(text)


def _fraction(match: re.Match[str]) -> list[Figure]:
    over, under = _plain_value(match["over"]), _plain_value(match["under"])
    return [Amount(100 * over / under, "%")] if over is not None and under else []


def _english_fraction(match: re.Match[str]) -> list[Figure]:
    over = {"a": Fraction(1), "an": Fraction(1), "one": Fraction(1)}.get(match["over"].lower())
    value = over or english_value(match["over"])
    return [Amount(100 * value / _PARTS[match["under"].lower()], "%")] if value else []


_PARTS: Mapping[str, int] = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "tenth": 10, "eighth": 8}


def _amount(match: re.Match[str]) -> list[Figure]:
    value, has_magnitude = _digits_value(match)
    unit, factor = _unit(match)
    sign = -1 if match["sign"] == "-" else 1
    return [Amount(sign * value * factor, unit, has_magnitude=has_magnitude, noun=_noun(match))]


def _digits_value(match: re.Match[str]) -> tuple[Fraction, bool]:
    """The number before its unit; `rest` are further groups: 1亿3200万, 1万2000, 3万5."""
    words = (match["mag"] or "").lower()
    is_million = words == "" and bool(match["cur"]) and bool(match["m"])
    scale = 10**6 if is_million else magnitude_value(words)
    value = Fraction(match["n"].replace(",", "")) * scale
    for number, magnitude in re.findall(rf"(\d+(?:\.\d+)?)({MAGNITUDE_ZH})?", match["rest"] or ""):
        is_short = not magnitude and len(number) == 1
        value += Fraction(number) * (scale // 10 if is_short else magnitude_value(magnitude))
    return value, scale > 1


def _unit(match: re.Match[str]) -> tuple[str, Fraction]:
    if match["unit"]:
        return unit_of(match["unit"])
    return CURRENCY_PREFIXES[match["cur"].lower()] if match["cur"] else "", Fraction(1)


def _noun(match: re.Match[str]) -> str:
    return re.sub(r"[^\w]", "", match.string[match.end() : match.end() + 2])


def _han_amount(match: re.Match[str]) -> list[Figure]:
    """A Chinese numeral with a unit. Characters before it that make it unreadable belong to another word."""
    words = match["n"][-LONGEST:]
    at = next((at for at in range(len(words)) if han_value(words[at:]) is not None), None)
    magnitude = match["mag"] or ""
    if at is None or (match["unit"] is None and not magnitude and not _is_large(words[at:])):
        return []
    value = (han_value(words[at:]) or Fraction(0)) * magnitude_value(magnitude)
    unit, factor = unit_of(match["unit"])
    is_weak = words[at:] == "一" or (unit in _TALLIES and value <= 10)
    start = match.end("n") - len(words) + at
    return [Amount(value * factor, unit, is_weak, noun=_noun(match), start=start, end=match.end())]


_TALLIES = frozenset({"each", "项", "点", "kind", "条", "步", "部"})


def _is_large(words: str) -> bool:
    return len(words) > 1 and words[-1] in "万亿" and words not in ("千万", "万万", "百万", "亿万")


def _english_amount(match: re.Match[str]) -> list[Figure]:
    value = english_value(match["n"])
    if value is None or (value <= 1 and match["unit"] is None):
        return []
    unit, factor = unit_of(match["unit"])
    is_tally = match["unit"] is None and bool(_TALLIED.match(match.string, match.end()))
    return [Amount(value * factor, unit, is_weak=value == 1 or is_tally, noun=_noun(match))]


# What an answer counts of its own accord.
_TALLIED = re.compile(
    r"[ ](?:main |key |basic |different |further |other )?(?:conditions|steps|points|ways|parts|things"
    r"|requirements|reasons|cases|options|rules|documents|cities|kinds|types|groups|rates|stages|criteria)\b",
    re.IGNORECASE,
)


# Patterns, in the order in which they are tried: what is read by one is gone for the next.

_CURRENCY = rf"(?:{'|'.join(sorted(map(re.escape, CURRENCY_PREFIXES), key=len, reverse=True))})"
_MORE = "[多余几]?"
_DASH = rf"{_S}(?:-|–|—|~|至|到){_S}"
_Y = rf"(?<!\d)(?P<y>{_YEAR})"
_Y_MAYBE = rf"(?:,?[ ](?:of[ ])?(?:FY)?(?P<y>{_YEAR})(?!\d))?"
_NOT_SAID = r"\b\B"  # matches nowhere: a group that another form of the same thing has
_NTH = "(?:st|nd|rd|th)"
_DAY_PART = "(?P<part>上午|下午|晚上|傍晚|中午|早上|凌晨)"
_HAN_HOUR = "[零一二两三四五六七八九十]{1,3}"
_MINUTE = rf"(?:(?P<m>\d{{1,2}}|半|{_HAN_DAY}(?=分))分?)"
_AM_PM = r"(?P<ap>[ap]\.?m\b\.?)"
_SHARE = rf"(?:{HAN}+|{_NUMBER})"

_DATES: tuple[tuple[str, Reader], ...] = (
    (rf"{_Y}{_S}[年./-]{_S}(?P<m>\d{{1,2}}){_S}[月./-]{_S}(?P<d>\d{{1,2}})(?!\d|{_S}月){_S}[日号]?", _date),
    (
        "(?P<y>[〇零○一二三四五六七八九]{4})年"
        rf"(?:(?P<m>{_HAN_DAY})月(?:(?P<d>{_HAN_DAY})[日号])?)?度?",
        _date,
    ),
    (rf"{_Y}{_S}年{_S}(?P<m>\d{{1,2}}){_S}月?{_DASH}(?P<n>\d{{1,2}}){_S}月份?(?!\d)", _two_months),
    (rf"{_Y}{_S}年{_S}(?P<m>\d{{1,2}}|{_HAN_DAY}){_S}月份?", _date),
    (rf"{_Y}{_S}(?:年度?)?{_S}第?(?P<q>[一二三四1234]){_S}季度?", _quarter),
    (rf"{_Y}{_S}(?:年度?)?{_S}-?Q(?P<q>[1-4])(?!\d)", _quarter),
    (rf"\bQ(?P<q>[1-4])(?!\d){_Y_MAYBE}", _quarter),
    (rf"\b(?P<q>first|second|third|fourth)[ -]quarter{_Y_MAYBE}", _quarter),
    (rf"(?:第|(?<![\d一二三四]))(?P<q>[一二三四1234])季度(?P<y>{_NOT_SAID})?", _quarter),
    (rf"{_Y}{_S}(?:年度?)?{_S}(?P<q>[上下])半年", _half),
    (rf"{_Y}{_S}年?{_S}-?H(?P<q>[12])(?!\d)", _half),
    (rf"\bH(?P<q>[12])(?!\d){_Y_MAYBE}", _half),
    (rf"\b(?P<q>first|second)[ -]half{_Y_MAYBE}", _half),
    (rf"(?P<q>[上下])半年(?P<y>{_NOT_SAID})?", _half),
    (rf"(?-i:\b{_MONTH})[ ](?P<d>\d{{1,2}}){_NTH}?(?!\d){_Y_MAYBE}", _date),
    (rf"\b(?P<d>\d{{1,2}}){_NTH}?[ ](?:of[ ])?(?-i:{_MONTH}){_Y_MAYBE}(?![a-z])", _date),
    (rf"(?-i:\b{_MONTH}),?[ ](?:of[ ])?(?P<y>{_YEAR})(?!\d)", _date),
    (rf"(?<!\d)(?P<m>\d{{1,2}}|{_HAN_DAY}){_S}月{_S}(?P<d>\d{{1,2}}|{_HAN_DAY}){_S}[日号]", _date),
    (
        rf"(?<!\d)(?P<y>{_NOT_SAID})?(?P<m>\d{{1,2}}){_S}月?{_DASH}(?P<n>\d{{1,2}}){_S}月份?(?!\d)",
        _two_months,
    ),
    (rf"(?<![\d个])(?P<m>\d{{1,2}}|{_HAN_DAY}){_S}月份?(?!\d)", _date),
    (rf"(?<![\d-])(?P<y>{_YEAR})-(?P<m>0[1-9]|1[0-2])(?![\d-])", _date),
    (rf"{_Y}{_S}年?{_DASH}(?P<z>{_YEAR})(?!\d){_S}(?:年度?)?", _two_years),
    (rf"\bFY{_S}(?P<y>{_YEAR}|\d{{2}})(?!\d)", _date),
    (rf"{_Y}{_S}(?:财年|会计年度|年度|年)", _date),
)
_TIMES: tuple[tuple[str, Reader], ...] = (
    (rf"{_DAY_PART}?{_S}(?<!\d)(?P<h>\d{{1,2}}):(?P<m>\d{{2}})(?!\d)(?::\d{{2}})?{_S}{_AM_PM}?", _clock),
    (rf"(?P<part>{_NOT_SAID})?(?<!\d)(?P<h>\d{{1,2}})(?P<m>{_NOT_SAID})?[ ]?{_AM_PM}", _clock),
    (
        rf"{_DAY_PART}{_S}(?P<h>\d{{1,2}}|{_HAN_HOUR}){_S}[点时]{_MINUTE}?整?(?P<ap>{_NOT_SAID})?",
        _clock,
    ),
    (
        rf"(?P<part>{_NOT_SAID})?(?<!\d)(?P<h>\d{{1,2}}){_S}(?:时|点(?=\d|半|整|钟)){_MINUTE}?整?"
        rf"(?P<ap>{_NOT_SAID})?",
        _clock,
    ),
    (
        rf"(?P<part>{_NOT_SAID})?(?<!{HAN})(?P<h>{_HAN_HOUR})点(?=半|整|钟|{_HAN_DAY}分){_MINUTE}?整?"
        rf"(?P<ap>{_NOT_SAID})?",
        _clock,
    ),
)
_SHARES: tuple[tuple[str, Reader], ...] = (
    (
        rf"(?P<base>[百千万])分之{_S}(?P<n>{_SHARE})(?:{_TO}(?:[百千万]分之)?(?P<n2>{_SHARE}))?",
        _percent_in_words,
    ),
    (rf"(?P<under>{_SHARE})分之(?P<over>{_SHARE})", _fraction),
    (r"(?<![\d/.])(?P<over>\d{1,2})[/⁄](?P<under>\d{1,3})(?![\d/])", _fraction),
    (
        rf"\b(?P<over>an?|{ENGLISH[2:-2]})[ -](?P<under>half|third|quarter|fifth|eighth|tenth)s?\b",
        _english_fraction,
    ),
    (r"一半|半数|\b(?:one[- ])?half (?:of|the)\b", _half_share),
    (
        rf"(?P<n>{HAN}|{_NUMBER}){_S}(?:{_TO}(?P<n2>{HAN}|{_NUMBER}){_S})?"
        "成(?![员立本果分交为功年长品都熟人])",
        _tenths,
    ),
)
_ORDINALS: tuple[tuple[str, Reader], ...] = (
    (
        rf"第{_S}(?P<n>\d+|{HAN}+){_S}(?P<u>部分|阶段|个|[条款项章节编批期届次名位号类级步天日年月周轮档])?",
        _ordinal,
    ),
    (
        r"\b(?P<u>Articles?|Sections?|Clause|Chapter|Paragraph|Item|Step|Phase|Part|Annex|Appendix|No\.?|Number"
        r"|Room|Class|Grade|Level|Tier)[ ]?(?P<n>\d+)\b(?![.,]\d)",
        _ordinal,
    ),
    (rf"(?<![\d.])(?P<n>\d+){_NTH}\b(?P<u>{_NOT_SAID})?", _ordinal),
    (rf"(?<![\d.])(?P<n>\d+){_S}(?P<u>号)(?!文)", _ordinal),
)
_CODES: tuple[tuple[str, Reader], ...] = (
    # Letters with digits in them; a number after a currency is none.
    (
        rf"(?<![A-Za-z0-9])(?!{_CURRENCY}[ ]?\d|(?<=\d )k?m[23]\b)[A-Za-z][A-Za-z_]*[-/_]?\d[A-Za-z0-9]*"
        r"(?:[-./_][A-Za-z0-9]+)*",
        _code,
    ),
    (r"(?<![\w.])v?\d+(?:\.\d+){2,}(?!\d)|(?<![\d:])\d+:\d+(?![\d:])", _code),
    (
        rf"[几数]{_S}?[十百千万亿]+(?:{UNIT})?|[十百千万亿]+几(?:{UNIT})?|[上近逾超过][万亿]+(?:{UNIT})?",
        _code,
    ),
)
_AMOUNT = (
    rf"(?:(?P<cur>(?<![A-Za-z]){_CURRENCY}){_S})?(?P<sign>(?<![A-Za-z\d%)\]年月日号元万亿{_TAKEN}])-)?"
    rf"(?<![\d.])(?P<n>{_NUMBER})(?!\d)(?:{_S}{_MORE}{_S}(?P<mag>{MAGNITUDE_ZH}|{MAGNITUDE_EN})"
    rf"(?P<rest>(?:\d+(?:\.\d+)?{MAGNITUDE_ZH})*\d*))?(?P<m>[Mm](?![A-Za-z0-9]))?"
    rf"(?:{_S}{_MORE}{_S}(?:-(?=[A-Za-z]))?(?P<unit>{UNIT}))?"
)
_AMOUNTS: tuple[tuple[str, Reader], ...] = (
    (_AMOUNT, _amount),
    (rf"(?P<n>{HAN}+){_MORE}(?P<mag>(?<=[多余])[万亿]+)?(?P<unit>{UNIT})?", _han_amount),
    (rf"(?P<n>{ENGLISH})(?:[ -](?P<unit>{UNIT}))?", _english_amount),
)
_ADDRESSES: tuple[tuple[str, Reader], ...] = (
    (r"\d(?:,?\d){40,}", _code),  # longer than any amount
    (r"https?://[^\s，。]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+", _code),
    (r"(?<![\d-])(?:\+?86-?)?(?:0\d{2,3}-\d{7,8}|[48]00-\d{3,4}-\d{3,4}|1[3-9]\d{9})(?!\d)", _code),
)
_PASSES: tuple[tuple[re.Pattern[str], Reader], ...] = tuple(
    # ASCII: Chinese characters are no word characters, so that an English word may follow them at once.
    (re.compile(pattern, re.IGNORECASE | re.ASCII), reader)
    for kind in (_ADDRESSES, _DATES, _TIMES, _SHARES, _ORDINALS, _CODES, _AMOUNTS)
    for pattern, reader in kind
)


# What a range or a list shares


def _inherited(ordered: list[Figure], source: str) -> list[Figure]:
    """Ranges share what is said once: 10-20万元, 2024年1月1日至3月31日, $10 to 20 million."""
    result = list(ordered)
    for at in range(len(result) - 2, -1, -1):
        gap = source[result[at].end : result[at + 1].start]
        first, second = result[at], result[at + 1]
        if isinstance(first, Amount) and isinstance(second, Amount) and re.fullmatch(_TO, gap, re.I):
            result[at] = _with_unit_of(first, second)
    for at in range(1, len(result)):
        gap = source[result[at - 1].end : result[at].start]
        if re.fullmatch(rf"{_TO}|{_S}[、,和及与]{_S}", gap, re.I):
            is_range = re.fullmatch(rf"{_DASH}|{_S}to{_S}", gap, re.I) is not None
            result[at] = _completed(result[at - 1], result[at], is_range=is_range)
    return result


def _with_unit_of(first: Amount, second: Amount) -> Amount:
    is_prefixed = first.unit in MONEY and first.text[-1:].isdigit()  # $10-20 million, not 10元至20万元
    if first.unit and (not is_prefixed or not second.has_magnitude):
        return first
    scale = Fraction(1)
    if second.has_magnitude and not first.has_magnitude:
        scale = Fraction(_scale(second.text))
    unit_scale = unit_of(_written_unit(second.text))[1] if second.unit else Fraction(1)
    return replace(
        first,
        value=first.value * scale * (1 if first.unit else unit_scale),
        unit=first.unit or second.unit,
        has_magnitude=first.has_magnitude or second.has_magnitude,
        noun=second.noun,
    )


def _scale(text: str) -> int:
    match = re.search(rf"({MAGNITUDE_ZH}|{MAGNITUDE_EN}|[Mm]\b)", text, re.I)
    return magnitude_value(match.group()) if match else 1


def _written_unit(text: str) -> str | None:
    match = re.search(rf"{UNIT}$", text, re.I)
    return match.group() if match else None


_NOON = 12 * 60


def _at(place: Figure, figure: Figure) -> Figure:
    return replace(figure, text=place.text, start=place.start, end=place.end)


def _completed(first: Figure, second: Figure, *, is_range: bool) -> Figure:
    """`second` with what `first` states and it leaves unsaid: year, month, half of the day, currency."""
    match first, second:
        case Date(), Date() if first.year and second.year is None:
            return replace(second, year=first.year)
        case Date(), Amount() if first.day and second.text.endswith("日") and 1 <= second.value <= 31:
            return _at(second, Date(first.year, first.month, int(second.value)))
        case Time(), Amount() if is_range and second.unit == "点" and second.value <= 24:
            return _completed(first, _at(second, Time(int(second.value * 60))), is_range=True)
        case Time(), Time() if is_range and second.minutes < first.minutes < second.minutes + _NOON:
            return replace(second, minutes=second.minutes + _NOON)
        case Amount(), Amount() if is_range and first.unit in MONEY and not second.unit:
            return replace(second, unit=first.unit)
    return second
