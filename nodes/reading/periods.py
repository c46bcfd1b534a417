"""Which periods does a text name? Canonical "2023", "2023H1", "2023Q3"; a number alone is never a period.

Fact periods are years, halves and quarters. A month or a day ("2023年3月", "2023-03-31") is none, nor is the
year inside it; nor is a boundary ("2023年以前", "before 2023") or a document's number ("2023年第12号").
Relative words count from `received_at`, in that time's own offset. "近三年" is the last three complete years.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Literal

from nodes.reading.folding import squeeze

MAX_YEARS = 20  # a longer range names its two ends only
MAX_MENTIONS = 50  # further mentions are not read: no question asks for so many
MAX_RECENT = 10  # "近二十年" is no list of facts that anyone wants

Kind = Literal["year", "part", "fixed", "none", "prior", "same"]


@dataclass(frozen=True)
class Token:
    """One mention. A part without `year` takes it from another mention; a year that gave it is `used`."""

    kind: Kind
    start: int
    end: int
    year: int | None = None
    parts: tuple[str, ...] = ()
    periods: tuple[str, ...] = ()
    certain: bool = True  # False: needs its context to be more than a number
    used: bool = False


def find_periods(text: str, *, received_at: str) -> list[str]:
    """Periods in order of mention, each once; ranges and lists are written out."""
    squeezed = squeeze(text)
    today = datetime.fromisoformat(received_at)
    tokens = _without_mere_numbers(squeezed, list(islice(_tokens(squeezed, today), MAX_MENTIONS)))
    tokens = _with_years_for_parts(squeezed, tokens, today)
    return list(dict.fromkeys(_resolved(_with_ranges(squeezed, tokens), today)))


def year_before(period: str) -> str:
    """The same period one year earlier."""
    return f"{int(period[:4]) - 1}{period[4:]}"


def period_before(period: str) -> str:
    """The period of the same length that ends where this one begins."""
    kind, number = period[4:5], int(period[5:] or 1)
    if number > 1:
        return f"{period[:4]}{kind}{number - 1}"
    return year_before(period)[:4] + {"Q": "Q4", "H": "H2"}.get(kind, "")


# --- what a mention looks like -------------------------------------------------------------------------------

_Y = r"(?:19|20)\d\d"
_YZ = r"[一二][〇零○0一二三四五六七八九]{3}"
_YEAR = rf"(?P<y>{_Y}|{_YZ})"
_NO_DIGIT = r"(?<!\d)(?<!\d[.,])"
_NO_WORD = r"(?<![a-z0-9])"
_RELATIVE = r"(?:去年|今年|明年|前年|本年)"
_MONTH_ZH = r"(?:1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])"
_MONTH_EN = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY_EN = r"\d{1,2}(?:st|nd|rd|th)?"
_FIGURE_ZH = (
    r"(?:营收|营业|收入|净利|利润|毛利|研发|总资产|净资产|资产|负债|现金流|经营|纳税|缴税|税|业绩|财报|年报|财务"
    r"|员工总?人?数|扣非|归母|全年|年度|销售|销量)"
)
_FIGURE_EN = (
    r"(?:revenues?|sales(?! (?:staff|people|persons?|teams?))|turnover|income|profits?|earnings|net|gross|operating"
    r"|annual|results?|financials?|figures|margins?|r&d|research|cash|assets?|tax(?:es)?|headcount|performance"
    r"|full[- ]year|total(?! of))\b"
)
_NUMBER_EN = r"(?P<n>\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten)"
_LAST = r"(?:last|previous|prior|preceding)"
_SPAN_EN = r"(?:fiscal |financial |calendar |full )?"

_DIGIT = {**{c: i for i, c in enumerate("〇一二三四五六七八九")}, "零": 0, "○": 0}
_NUMBER = {
    **{c: i for i, c in enumerate("一二三四五六七八九十", 1)},
    **{w: i for i, w in enumerate("one two three four five six seven eight nine ten".split(), 1)},
    **{w: i for i, w in enumerate("first second third fourth".split(), 1)},
    **{"两": 2, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4, "last": 4, "final": 4},
}

Match = re.Match[str]
Make = Callable[[Match, datetime], Token | None]


def _number(word: str) -> int:
    return int(word) if word.isdecimal() else _NUMBER[word]


def _year(written: str) -> int:
    year = int("".join(str(_DIGIT.get(c, c)) for c in written))
    return year + 2000 if year < 100 else year


def _group(m: Match, name: str) -> str:
    """The group of this name, or of this name and a number, that took part in the match."""
    return next(value for key, value in m.groupdict().items() if key.rstrip("0123456789") == name and value)


def _nothing(m: Match, _: datetime) -> Token:
    return Token("none", m.start(), m.end())


def _certain_year(m: Match, _: datetime) -> Token:
    return Token("year", m.start(), m.end(), _year(_group(m, "y")))


def _possible_year(m: Match, _: datetime) -> Token:
    return Token("year", m.start(), m.end(), _year(_group(m, "y")), certain=False)


def _years_from_now(offset: int) -> Make:
    return lambda m, today: Token("year", m.start(), m.end(), today.year + offset)


def _recent_years(m: Match, today: datetime) -> Token | None:
    count = _number(_group(m, "n"))
    if not 1 <= count <= MAX_RECENT:
        return None
    return Token("fixed", m.start(), m.end(), periods=_year_range(today.year - count, today.year - 1))


def _years_until_now(m: Match, today: datetime) -> Token:
    return Token("fixed", m.start(), m.end(), periods=_year_range(_year(_group(m, "y")), today.year))


def _quarter_from_now(offset: int) -> Make:
    def make(m: Match, today: datetime) -> Token:
        year, quarter = divmod(today.year * 4 + (today.month - 1) // 3 + offset, 4)
        return Token("fixed", m.start(), m.end(), periods=(f"{year}Q{quarter + 1}",))

    return make


def _part(kind: str) -> Make:
    return lambda m, _: Token("part", m.start(), m.end(), parts=(f"{kind}{_number(_group(m, 'n'))}",))


def _half(number: int) -> Make:
    return lambda m, _: Token("part", m.start(), m.end(), parts=(f"H{number}",))


def _part_of_year(kind: str) -> Make:
    return lambda m, _: Token("part", m.start(), m.end(), _year(_group(m, "y")), (f"{kind}{_group(m, 'n')}",))


def _bare_half(m: Match, _: datetime) -> Token:
    return Token("part", m.start(), m.end(), parts=(f"H{_group(m, 'n')}",), certain=False)


def _first_quarters(m: Match, _: datetime) -> Token:
    return Token("part", m.start(), m.end(), parts=_quarters(1, _number(_group(m, "n"))))


def _some_quarters(m: Match, _: datetime) -> Token:
    return Token(
        "part", m.start(), m.end(), parts=_quarters(_number(_group(m, "n")), _number(_group(m, "last")))
    )


def _quarters(first: int, last: int) -> tuple[str, ...]:
    return tuple(f"Q{number}" for number in range(first, last + 1))


def _prior_year(m: Match, _: datetime) -> Token:
    return Token("prior", m.start(), m.end())


def _same_period(m: Match, _: datetime) -> Token:
    return Token("same", m.start(), m.end())


# At one place the first rule that matches wins, so what is no period stands before what looks like it.
_RULES: tuple[tuple[str, Make], ...] = (
    (rf"{_NO_DIGIT}[〔\[(【]?{_Y}年?[〕\])】]?第?\d+号", _nothing),
    (
        rf"(?:{_NO_DIGIT}(?:{_Y}|{_YZ})年|{_RELATIVE}){_MONTH_ZH}(?:月?份?[-~至到]{_MONTH_ZH})?月"
        r"(?:份|[\d一二三四五六七八九十]{1,3}[日号])?",
        _nothing,
    ),
    (rf"{_NO_DIGIT}{_Y}[-/.]\d{{1,2}}[-/.]\d{{1,2}}(?!\d)", _nothing),
    (rf"{_NO_DIGIT}(?:fy ?)?{_Y}[-/]\d{{1,2}}(?!\d)", _nothing),
    (rf"(?:\b{_DAY_EN} (?:of )?)?\b{_MONTH_EN}(?: {_DAY_EN})?,? ?{_Y}\b", _nothing),
    (
        r"前(?:\d{1,2}|[一二两三四五六七八九十]+)个月|\b(?:first|last) \w+ months(?: of (?:19|20)\d\d)?",
        _nothing,
    ),
    (rf"\b(?:before|after|prior to|later than|earlier than) (?:the end of )?{_Y}\b", _nothing),
    (rf"{_NO_DIGIT}{_YEAR}年?(?:至今|到现在|以来)|\bsince (?P<y2>{_Y})\b(?! ?-)", _years_until_now),
    (
        rf"{_NO_DIGIT}(?:{_Y}|{_YZ})年(?:之[前后]|以[前后]|[前后](?![一二三四1-4]个?季度|半年)|起(?!止))",
        _nothing,
    ),
    (
        rf"{_NO_WORD}(?:fy|(?:fiscal|financial|calendar) (?:year )?|year )[ '’]?(?P<y>{_Y})(?:年度?|财年)?",
        _certain_year,
    ),
    (rf"{_NO_WORD}fy ?['’]?(?P<y>\d\d)(?!\d)", _certain_year),
    (
        rf"{_NO_DIGIT}(?<![¥$€£]){_YEAR}(?:财年|财政年度|会计年度|年(?:年度|度|年末|末|年底|底|全年)?)",
        _certain_year,
    ),
    (rf"{_NO_DIGIT}(?P<y>[12]\d)(?:财年|年度?)", _possible_year),
    (
        rf"{_NO_WORD}(?P<n>[1-4])q ?['’]?(?P<y>{_Y}|\d\d)(?!\w)|{_NO_WORD}(?P<y2>\d\d)q(?P<n2>[1-4])(?!\w)",
        _part_of_year("Q"),
    ),
    (rf"{_NO_WORD}(?P<n>[12])h ?['’]?(?P<y>{_Y}|\d\d)(?!\w)", _part_of_year("H")),
    (rf"{_NO_DIGIT}(?<![a-z¥$€£#])(?P<y>{_Y})(?!\d)(?![a-z](?<![qh]))", _possible_year),
    (
        rf"(?:去年|上一?年度?|前一年|上年)?同期|\b(?:the )?same (?:period|quarter|half)(?: of| in)?(?: the)? {_LAST} year"
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
        r"第(?P<n>[一二三四1-4])个?季度?|(?:(?<![第头续近每两个\d.])|(?<=(?:19|20)\d\d))(?P<n2>[一二三四1-4])季[度报]"
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


def _tokens(text: str, today: datetime) -> Iterator[Token]:
    at = 0
    while found := _ANY_RULE.search(text, at):
        matches = ((rule.match(text, found.start()), make) for rule, make in _COMPILED)
        match, make = next((match, make) for match, make in matches if match)
        token = make(match, today)
        if token:
            yield token
        at = match.end()


# --- a number that could be a year: its context decides ------------------------------------------------------

_NEAR = 40  # characters before a number that say what it is
_COUNTED = re.compile(
    r"\s?(?:(?:new|full-time|part-time|registered|small|large|active|different|more|other) )?"
    r"(?:employees?|people|persons?|staff|workers?|units?|shares?|companies|firms?|yuan|rmb|cny|usd|dollars?|euros?"
    r"|items?|customers?|users?|stores?|shops?|patents?|tons?|tonnes?|vehicles?|cars?|million|billion|thousand|percent"
    r"|times|days?|weeks?|months?|years?|hours?|minutes?|km|kg|square|documents?|files?|records?|applicants?"
    r"|applications?|jobs?|students?|households?|projects?|cases?|points?|pages?|orders?|places?)\b"
    r"|\s?of (?:the|its|their|our|all|these)\b|\s?[%‰元万亿人名家个件项号吨台辆户次天平米股张页倍点条位份套]"
)
_MONEY_BEFORE = re.compile(
    r"(?:[¥$€£#]|\b(?:rmb|cny|usd|no\.?)) ?$"
    r"|\b(?:total|sum|fine|fees?|amount|price|cost|number|loan|grant|limit|maximum|minimum|salary|wage|value|average) of $"
)
_IN_A_YEAR = re.compile(r"\b(?:in|during|until|till|by|for|from|between|year|of|throughout|ended|ending) ?$")
_FIGURE_AFTER = re.compile(
    rf"的?{_FIGURE_ZH}|(?:'s)? ?{_FIGURE_EN}|(?:的)?(?=[qh] ?\d|第?[一二三四1-4]个?季|[上下]半年)"
)
_FIGURE_BEFORE = re.compile(rf"(?:{_FIGURE_ZH}|\b{_FIGURE_EN}),? ?\(?$")
_END = re.compile(r"\)?\s*[?。.!]?\s*$")
_BRACKETS = re.compile(r"(?<=[^\W\d])\($")
_DURATION = re.compile(
    r"(?:[了满近约超过达第每共用需要有整长历续计存至限龄]|成立|经营|运营|任职|工作|大约|至少|最多|为期)$"
)
_LIST = re.compile(
    r"\s*(?:和|与|及|以及|、|,|跟|同|或|还是|/|&|对比|比|相比|vs\.?|and|or|than|compared (?:to|with)|versus)\s*"
)
_RANGE = re.compile(r"\s*(?:[-–—~]+|到|至|to|through|until)\s*")
_ONLY_SEPARATORS = re.compile(r"[\s,、。.?!和与及到至~–—-]*|(?:and|or|to|\s)*")


def _without_mere_numbers(text: str, tokens: list[Token]) -> list[Token]:
    """Tokens that are periods for sure; a doubtful one counts by its context or its certain neighbour."""
    if tokens and _ONLY_SEPARATORS.fullmatch(_rest(text, tokens)):
        return [replace(token, certain=True) for token in tokens]
    tokens = [replace(token, certain=token.certain or _reads_as_year(text, token)) for token in tokens]
    for order in (range(1, len(tokens)), range(len(tokens) - 2, -1, -1)):
        step = -1 if order.step > 0 else 1
        for i in order:
            if not tokens[i].certain and _vouches(text, tokens[i + step], tokens[i]):
                tokens[i] = replace(tokens[i], certain=True)
    return [token for token in tokens if token.certain]


def _rest(text: str, tokens: Sequence[Token]) -> str:
    ends = [0, *(token.end for token in tokens)]
    starts = [*(token.start for token in tokens), len(text)]
    return "".join(text[end:start] for end, start in zip(ends, starts, strict=True))


def _reads_as_year(text: str, token: Token) -> bool:
    if token.kind != "year" or not _may_be_year(text, token):
        return False
    before, after = text[max(0, token.start - _NEAR) : token.start], text[token.end :]
    if text[token.start : token.end].endswith(("年", "度")):
        return bool(_FIGURE_AFTER.match(after))
    return bool(
        _IN_A_YEAR.search(before)
        or _FIGURE_AFTER.match(after)
        or (_FIGURE_BEFORE.search(before) and _END.match(after))
        or (_BRACKETS.search(before) and after.startswith(")"))
    )


def _may_be_year(text: str, token: Token) -> bool:
    before, after = text[max(0, token.start - _NEAR) : token.start], text[token.end :]
    if text[token.start : token.end].endswith(("年", "度")):
        return not _DURATION.search(before)
    return not _COUNTED.match(after) and not _MONEY_BEFORE.search(before)


def _vouches(text: str, known: Token, doubtful: Token) -> bool:
    """Whether a certain mention beside a doubtful one makes it a period too."""
    if not known.certain or known.kind == "none" or not _may_be_year(text, doubtful):
        return False
    first, second = sorted((known, doubtful), key=lambda token: token.start)
    gap = text[first.end : second.start]
    if "part" in (known.kind, doubtful.kind):
        return _SAME_MENTION.fullmatch(gap) is not None
    return bool(_LIST.fullmatch(gap) or _RANGE.fullmatch(gap))


# --- parts take their years ----------------------------------------------------------------------------------

_SAME_MENTION = re.compile(r"(?:[\s,的年'(-]|'s|\b(?:of|in|the|for|fiscal|financial|calendar|year)\b)*")
_OTHER_CLAUSE = re.compile(rf"[?;。!]|{_FIGURE_ZH}|\b{_FIGURE_EN}")


def _with_years_for_parts(text: str, tokens: list[Token], today: datetime) -> list[Token]:
    """Every part with a year: its own, that of the list it stands in, the nearest one, else today's."""
    tokens = [token for token in tokens if token.kind != "none"]
    _take_adjacent_years(text, tokens)
    _share_in_lists(text, tokens)
    for i, token in enumerate(tokens):
        if token.kind == "part" and token.year is None:
            giver = _nearest_year(tokens, i)
            year = today.year if giver is None else tokens[giver].year
            tokens[i] = replace(token, year=year)
            if giver is not None and not _OTHER_CLAUSE.search(_gap(text, tokens[giver], token)):
                tokens[giver] = replace(tokens[giver], used=True)
    return tokens


def _gap(text: str, a: Token, b: Token) -> str:
    return text[min(a.end, b.end) : max(a.start, b.start)]


def _take_adjacent_years(text: str, tokens: list[Token]) -> None:
    for i, token in enumerate(tokens):
        for other in (i - 1, i + 1):
            if tokens[i].year is not None or token.kind != "part" or not 0 <= other < len(tokens):
                continue
            giver = tokens[other]
            if giver.kind == "year" and not giver.used and _SAME_MENTION.fullmatch(_gap(text, giver, token)):
                tokens[i] = replace(token, year=giver.year)
                tokens[other] = replace(giver, used=True)


def _share_in_lists(text: str, tokens: list[Token]) -> None:
    """ "2023年一季度和三季度" shares the year; "Q3 of 2022 and 2023" shares the part."""
    for order in (range(1, len(tokens)), range(len(tokens) - 2, -1, -1)):
        step = -1 if order.step > 0 else 1
        for i in order:
            neighbour, token = tokens[i + step], tokens[i]
            if not (
                _LIST.fullmatch(_gap(text, neighbour, token))
                or _RANGE.fullmatch(_gap(text, neighbour, token))
            ):
                continue
            if token.kind == neighbour.kind == "part" and token.year is None:
                tokens[i] = replace(token, year=neighbour.year)
            elif token.kind == "year" and not token.used and neighbour.kind == "year" and neighbour.used:
                parts = _parts_with(tokens, i + step)
                tokens[i] = replace(token, kind="part", parts=parts) if parts else token


def _parts_with(tokens: Sequence[Token], giver: int) -> tuple[str, ...]:
    """The part that this used year belongs to."""
    beside = [tokens[i] for i in (giver - 1, giver + 1) if 0 <= i < len(tokens)]
    return next((t.parts for t in beside if t.kind == "part" and t.year == tokens[giver].year), ())


def _nearest_year(tokens: Sequence[Token], part: int) -> int | None:
    """The closest year before the part, else the first after it."""
    order = (*range(part - 1, -1, -1), *range(part + 1, len(tokens)))
    return next((i for i in order if tokens[i].kind == "year"), None)


# --- what they come to ---------------------------------------------------------------------------------------


def _with_ranges(text: str, tokens: Sequence[Token]) -> list[Token]:
    joined: list[Token] = []
    for token in (token for token in tokens if not token.used):
        span = (
            _range(joined[-1], token)
            if joined and _RANGE.fullmatch(_between(text, joined[-1], token))
            else ()
        )
        if span:
            joined[-1] = Token("fixed", joined[-1].start, token.end, periods=span)
        else:
            joined.append(token)
    return joined


def _between(text: str, first: Token, second: Token) -> str:
    """The words between two mentions, without a year that only belongs to one of them."""
    return re.sub(rf"{_Y}年?", "", text[first.end : second.start])


def _range(first: Token, second: Token) -> tuple[str, ...]:
    if first.year is None or second.year is None or first.kind != second.kind:
        return ()
    if first.kind == "year":
        return _year_range(*sorted((first.year, second.year)))
    (start, *_), (*_, end) = first.parts, second.parts
    if start[0] != end[0]:
        return ()
    size = {"Q": 4, "H": 2}[start[0]]
    low, high = sorted((first.year * size + int(start[1]) - 1, second.year * size + int(end[1]) - 1))
    steps = range(low, high + 1) if high - low < MAX_YEARS else (low, high)
    return tuple(f"{n // size}{start[0]}{n % size + 1}" for n in steps)


def _year_range(first: int, last: int) -> tuple[str, ...]:
    years = range(first, last + 1) if last - first < MAX_YEARS else (first, last)
    return tuple(str(year) for year in years)


def _resolved(tokens: Sequence[Token], today: datetime) -> Iterator[str]:
    last: str | None = None
    for token in tokens:
        for period in _periods(token, last, today):
            yield period
            last = period


def _periods(token: Token, last: str | None, today: datetime) -> tuple[str, ...]:
    if token.kind == "fixed":
        return token.periods
    if token.kind == "part":
        return tuple(f"{token.year}{part}" for part in token.parts)
    if token.kind == "year":
        return (str(token.year),)
    if last is not None:
        return (year_before(last),)
    return (str(today.year - 1),) if token.kind == "prior" else ()
