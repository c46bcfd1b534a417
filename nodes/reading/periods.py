"""Which periods a text names, canonically: "2023", "2023H1", "2023Q3". A number alone is never a period.

Fact periods are years, halves and quarters. A month or a day ("2023年3月", "2023-03-31") is none, nor is the
year inside it; nor is a boundary ("2023年以前", "before 2023") or a document's number ("2023年第12号").
Relative words count from `received_at`, in that time's own offset. "近三年" is the last three complete years.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from nodes.reading.folding import squeeze
from nodes.reading.period_mentions import (
    FIGURE_EN,
    FIGURE_ZH,
    FOUR_DIGITS,
    MAX_YEARS,
    Mention,
    mentions_in,
    year_range,
)

MAX_MENTIONS = 50  # further mentions are not read: no question asks for so many


def find_periods(text: str, *, received_at: str) -> list[str]:
    """Periods in order of mention, each once; ranges and lists are written out."""
    squeezed = squeeze(text)
    today = datetime.fromisoformat(received_at)
    mentions = list(islice(mentions_in(squeezed, today), MAX_MENTIONS))
    certain = _with_years_for_parts(squeezed, _without_mere_numbers(squeezed, mentions), today)
    return list(dict.fromkeys(_resolved(_with_ranges(squeezed, certain), today)))


def year_before(period: str) -> str:
    """The same period one year earlier."""
    return f"{int(period[:4]) - 1}{period[4:]}"


def period_before(period: str) -> str:
    """The period of the same length that ends where this one begins."""
    kind, number = period[4:5], int(period[5:] or 1)
    if number > 1:
        return f"{period[:4]}{kind}{number - 1}"
    return year_before(period)[:4] + {"Q": "Q4", "H": "H2"}.get(kind, "")


# --- a number that could be a year: its context decides ---

_NEAR = 40  # characters before a number that say what it is
_COUNTED = re.compile(
    r"\s?(?:(?:new|full-time|part-time|registered|small|large|active|different|more|other) )?"
    r"(?:employees?|people|persons?|staff|workers?|units?|shares?|companies|firms?|yuan|rmb|cny|usd|dollars?"
    r"|euros?"
    r"|items?|customers?|users?|stores?|shops?|patents?|tons?|tonnes?|vehicles?|cars?|million|billion"
    r"|thousand|percent"
    r"|times|days?|weeks?|months?|years?|hours?|minutes?|km|kg|square|documents?|files?|records?|applicants?"
    r"|applications?|jobs?|students?|households?|projects?|cases?|points?|pages?|orders?|places?)\b"
    r"|\s?of (?:the|its|their|our|all|these)\b|\s?[%‰元万亿人名家个件项号吨台辆户次天平米股张页倍点条位份套]"
)
_MONEY_BEFORE = re.compile(
    r"(?:[¥$€£#]|\b(?:rmb|cny|usd|no\.?)) ?$"
    r"|\b(?:total|sum|fine|fees?|amount|price|cost|number|loan|grant|limit|maximum|minimum|salary|wage|value"
    r"|average) of $"
)
_IN_A_YEAR = re.compile(
    r"\b(?:in|during|until|till|by|for|from|between|year|of|throughout|ended|ending|what about|how about"
    r"|h[12]|q[1-4]) ?$"
)
_FIGURE_AFTER = re.compile(
    rf"的?{FIGURE_ZH}|(?:'s)? ?{FIGURE_EN}|(?:的)?(?=[qh] ?\d|第?[一二三四1-4]个?季|[上下]半年)"
    r"|这?[两三四五六七八九]年(?!级)"
)
_FIGURE_BEFORE = re.compile(rf"(?:{FIGURE_ZH}|\b{FIGURE_EN}),? ?\(?$")
_BRACKETS = re.compile(r"(?<=[^\W\d])\($")
_DURATION = re.compile(
    r"(?:[了满近约超过达第每共用需要有整长历续计存至限龄]|成立|经营|运营|任职|工作|大约|至少|最多|为期)$"
)
_LIST = re.compile(
    r"\s*(?:和|与|及|以及|、|,|跟|同|或|还是|/|&|对比|比|相比|vs\.?|and|or|than|compared (?:to|with)"
    r"|versus)\s*"
)
_RANGE = re.compile(r"\s*(?:[-–—~]+|到|至|to|through|until)\s*")
_END = re.compile(rf"(?:(?:{_RANGE.pattern}|{_LIST.pattern}){FOUR_DIGITS})*\)?\s*[?。.!]?\s*$")
# A year that is a piece of its own, in a text that asks for a figure: "revenue of X, 2024".
_SET_OFF_BEFORE = re.compile(r"(?:^|(?<!\d)[,;:!?。]|--| [-–—])\s*$")
_SET_OFF_AFTER = re.compile(r"\s*(?:$|[,;:!?。]|--|[-–—] )")
_FIGURE = re.compile(rf"{FIGURE_ZH}|\b{FIGURE_EN}")
_ONLY_SEPARATORS = re.compile(r"[\s,、。.?!和与及到至~–—-]*|(?:and|or|to|\s)*")


def _without_mere_numbers(text: str, mentions: list[Mention]) -> list[Mention]:
    """Mentions that are periods for sure; a doubtful one counts by its context or its certain neighbour."""
    if mentions and _ONLY_SEPARATORS.fullmatch(_rest(text, mentions)):
        return [replace(mention, certain=True) for mention in mentions]
    mentions = [
        replace(mention, certain=mention.certain or _reads_as_year(text, mention)) for mention in mentions
    ]
    for order in (range(1, len(mentions)), range(len(mentions) - 2, -1, -1)):
        step = -1 if order.step > 0 else 1
        for i in order:
            if not mentions[i].certain and _vouches(text, mentions[i + step], mentions[i]):
                mentions[i] = replace(mentions[i], certain=True)
    return [mention for mention in mentions if mention.certain]


def _rest(text: str, mentions: Sequence[Mention]) -> str:
    ends = [0, *(mention.end for mention in mentions)]
    starts = [*(mention.start for mention in mentions), len(text)]
    return "".join(text[end:start] for end, start in zip(ends, starts, strict=True))


def _reads_as_year(text: str, mention: Mention) -> bool:
    if mention.kind != "year" or not _may_be_year(text, mention):
        return False
    before, after = text[max(0, mention.start - _NEAR) : mention.start], text[mention.end :]
    if text[mention.start : mention.end].endswith(("年", "度")):
        return bool(_FIGURE_AFTER.match(after))
    return bool(
        _IN_A_YEAR.search(before)
        or _FIGURE_AFTER.match(after)
        or (_FIGURE_BEFORE.search(before) and _END.match(after))
        or (_BRACKETS.search(before) and after.startswith(")"))
        or (_SET_OFF_BEFORE.search(before) and _SET_OFF_AFTER.match(after) and _FIGURE.search(text))
    )


def _may_be_year(text: str, mention: Mention) -> bool:
    before, after = text[max(0, mention.start - _NEAR) : mention.start], text[mention.end :]
    if text[mention.start : mention.end].endswith(("年", "度")):
        return not _DURATION.search(before)
    return not _COUNTED.match(after) and not _MONEY_BEFORE.search(before)


def _vouches(text: str, known: Mention, doubtful: Mention) -> bool:
    """Whether a certain mention beside a doubtful one makes it a period too."""
    if not known.certain or known.kind == "none" or not _may_be_year(text, doubtful):
        return False
    first, second = sorted((known, doubtful), key=lambda mention: mention.start)
    gap = text[first.end : second.start]
    if "part" in (known.kind, doubtful.kind):
        return _SAME_MENTION.fullmatch(gap) is not None
    return bool(_LIST.fullmatch(gap) or _RANGE.fullmatch(gap))


# --- parts take their years ---

_SAME_MENTION = re.compile(r"(?:[\s,的年'(-]|'s|\b(?:of|in|the|for|fiscal|financial|calendar|year)\b)*")
_OTHER_CLAUSE = re.compile(rf"[?;。!]|{FIGURE_ZH}|\b{FIGURE_EN}")


def _with_years_for_parts(text: str, mentions: list[Mention], today: datetime) -> list[Mention]:
    """Every part with a year: its own, that of the list it stands in, the nearest one, else today's."""
    mentions = [mention for mention in mentions if mention.kind != "none"]
    _take_adjacent_years(text, mentions)
    _share_in_lists(text, mentions)
    for i, mention in enumerate(mentions):
        if mention.kind == "part" and mention.year is None:
            giver = _nearest_year(mentions, i)
            year = today.year if giver is None else mentions[giver].year
            mentions[i] = replace(mention, year=year)
            if giver is not None and not _OTHER_CLAUSE.search(_gap(text, mentions[giver], mention)):
                mentions[giver] = replace(mentions[giver], used=True)
    return mentions


def _gap(text: str, a: Mention, b: Mention) -> str:
    return text[min(a.end, b.end) : max(a.start, b.start)]


def _take_adjacent_years(text: str, mentions: list[Mention]) -> None:
    for i, mention in enumerate(mentions):
        for other in (i - 1, i + 1):
            if mentions[i].year is not None or mention.kind != "part" or not 0 <= other < len(mentions):
                continue
            giver = mentions[other]
            if (
                giver.kind == "year"
                and not giver.used
                and _SAME_MENTION.fullmatch(_gap(text, giver, mention))
            ):
                mentions[i] = replace(mention, year=giver.year)
                mentions[other] = replace(giver, used=True)


def _share_in_lists(text: str, mentions: list[Mention]) -> None:
    """As "2023年一季度和三季度" shares the year, and "Q3 of 2022 and 2023" the part."""
    for order in (range(1, len(mentions)), range(len(mentions) - 2, -1, -1)):
        step = -1 if order.step > 0 else 1
        for i in order:
            neighbour, mention = mentions[i + step], mentions[i]
            if not (
                _LIST.fullmatch(_gap(text, neighbour, mention))
                or _RANGE.fullmatch(_gap(text, neighbour, mention))
            ):
                continue
            if mention.kind == neighbour.kind == "part" and mention.year is None:
                mentions[i] = replace(mention, year=neighbour.year)
            elif mention.kind == "year" and not mention.used and neighbour.kind == "year" and neighbour.used:
                parts = _parts_with(mentions, i + step)
                mentions[i] = replace(mention, kind="part", parts=parts) if parts else mention


def _parts_with(mentions: Sequence[Mention], giver: int) -> tuple[str, ...]:
    """The part that this used year belongs to."""
    beside = [mentions[i] for i in (giver - 1, giver + 1) if 0 <= i < len(mentions)]
    return next((t.parts for t in beside if t.kind == "part" and t.year == mentions[giver].year), ())


def _nearest_year(mentions: Sequence[Mention], part: int) -> int | None:
    """The closest year before the part, else the first after it."""
    order = (*range(part - 1, -1, -1), *range(part + 1, len(mentions)))
    return next((i for i in order if mentions[i].kind == "year"), None)


# --- what they come to ---


def _with_ranges(text: str, mentions: Sequence[Mention]) -> list[Mention]:
    joined: list[Mention] = []
    for mention in (mention for mention in mentions if not mention.used):
        span = (
            _range(joined[-1], mention)
            if joined and _RANGE.fullmatch(_between(text, joined[-1], mention))
            else ()
        )
        if span:
            joined[-1] = Mention("fixed", joined[-1].start, mention.end, periods=span)
        else:
            joined.append(mention)
    return joined


def _between(text: str, first: Mention, second: Mention) -> str:
    """The words between two mentions, without a year that only belongs to one of them."""
    return re.sub(rf"{FOUR_DIGITS}年?", "", text[first.end : second.start])


def _range(first: Mention, second: Mention) -> tuple[str, ...]:
    if first.year is None or second.year is None or first.kind != second.kind:
        return ()
    if first.kind == "year":
        return year_range(*sorted((first.year, second.year)))
    (start, *_), (*_, end) = first.parts, second.parts
    if start[0] != end[0]:
        return ()
    size = {"Q": 4, "H": 2}[start[0]]
    low, high = sorted((first.year * size + int(start[1]) - 1, second.year * size + int(end[1]) - 1))
    steps = range(low, high + 1) if high - low < MAX_YEARS else (low, high)
    return tuple(f"{n // size}{start[0]}{n % size + 1}" for n in steps)


def _resolved(mentions: Sequence[Mention], today: datetime) -> Iterator[str]:
    last: str | None = None
    for mention in mentions:
        for period in _periods(mention, last, today):
            yield period
            last = period


def _periods(mention: Mention, last: str | None, today: datetime) -> tuple[str, ...]:
    if mention.kind == "fixed":
        return mention.periods
    if mention.kind == "part":
        return tuple(f"{mention.year}{part}" for part in mention.parts)
    if mention.kind == "year":
        return (str(mention.year),)
    if last is not None:
        return (year_before(last),)
    return (str(today.year - 1),) if mention.kind == "prior" else ()
