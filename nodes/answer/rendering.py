"""How facts, comparisons and fixed texts read. No model is asked: the same lookups give the same bytes.

Values are exact decimals. Differences and growth are said only where units agree; a growth rate is rounded
half up to one decimal and says so.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal
from itertools import pairwise
from typing import Literal, TypeVar

from nodes.contracts import AnswerKind, Citation, Company, FactHit, FactLookup, Language, Metric, Passage
from nodes.naming import period_label

FixedText = Literal[
    "refused",
    "out_of_scope",
    "greeting",
    "thanks",
    "farewell",
    "about",
    "not_found",
    "figures_of",
    "nothing_checked",
    "no_facts_asked",
    "unknown_company",
    "ended",
    "interrupted",
    "source_gone",
]

TEXTS: Mapping[FixedText, Mapping[Language, str]] = {
    "refused": {
        "zh": "这个问题我不能回答。请换一个业务或政策方面的问题。",
        "en": "I cannot answer this. Please ask another question about business or policy.",
    },
    "out_of_scope": {
        "zh": "这超出了我能回答的范围。我可以查询公司的经营指标，也可以依据资料回答政策问题。",
        "en": "This is outside of what I can answer. I can look up company figures and answer policy "
        "questions from the documents.",
    },
    "greeting": {
        "zh": "您好！请问您想了解哪家公司的指标，或者哪项政策？",
        "en": "Hello! Which company's figures or which policy would you like to know about?",
    },
    "thanks": {"zh": "不客气。还有问题可以继续问我。", "en": "You are welcome. Feel free to ask more."},
    "farewell": {"zh": "再见！", "en": "Goodbye!"},
    "about": {
        "zh": "我是业务助手：可以查询公司的经营指标，比较不同公司或年份，并依据资料回答政策问题，"
        "每条答案都注明出处。",
        "en": "I am a business assistant: I look up company figures, compare companies or years, and answer "
        "policy questions from the documents, with the source of each answer.",
    },
    "not_found": {
        "zh": "没有找到与“{}”有关的资料。请换一种说法，或者补充公司、年份、政策名称。",
        "en": 'Nothing was found for "{}". Try other words, or add the company, the year or the name of the '
        "policy.",
    },
    "figures_of": {
        "zh": "关于{}，可以查询的指标：{}。",
        "en": "Figures kept of {}: {}.",
    },
    "nothing_checked": {
        "zh": "资料中没有可以直接回答这个问题的内容。",
        "en": "The documents hold nothing that answers this question directly.",
    },
    "unknown_company": {
        "zh": "没有找到名为“{}”的公司，因此查不到它的指标。",
        "en": 'There is no company called "{}" here, so its figures cannot be looked up.',
    },
    "ended": {
        "zh": "《{0}》的有效期到{1}为止，现在已经失效，没有找到接替它的现行规定[C{2}]。"
        "以下依据的是当时的文本。",
        "en": '"{0}" was in force until {1} and has ended; nothing in force was found in its place [C{2}]. '
        "What follows goes by its text at that time.",
    },
    "no_facts_asked": {"zh": "没有可以查询的指标。", "en": "There is no figure to look up."},
    "interrupted": {
        "zh": "（回答中断，以上内容不完整）",
        "en": "(The answer was interrupted and is not complete.)",
    },
    "source_gone": {"zh": "该来源已不可查看。", "en": "This source is no longer available."},
}


def fixed_text(name: FixedText, language: Language) -> str:
    return TEXTS[name][language]


def small_talk(text: str, language: Language) -> str:
    """The reply to a greeting, thanks, a farewell or a question about the assistant itself."""
    for name, pattern in _SMALL_TALK:
        if pattern.search(text):
            return TEXTS[name][language]
    return TEXTS["greeting"][language]


_SMALL_TALK: tuple[tuple[FixedText, re.Pattern[str]], ...] = (
    ("thanks", re.compile(r"谢|感谢|辛苦了|\bthank|\bthanks|\bthx", re.IGNORECASE)),
    ("farewell", re.compile(r"再见|拜拜|回头见|\bbye\b|\bgoodbye\b|see you", re.IGNORECASE)),
    (
        "about",
        re.compile(
            r"你是谁|你叫什么|你能做|你会做|能干什么|怎么用|who are you|what can you|what do you do|\bhelp\b",
            re.IGNORECASE,
        ),
    ),
)


@dataclass(frozen=True)
class Rendered:
    """An answer that no model wrote. `kind` is not_found when every lookup missed."""

    kind: AnswerKind
    text: str
    citations: list[Citation] = field(default_factory=list)


@dataclass(frozen=True)
class Names:
    """Company and metric names in the answer's language, by id; `own` are the directory's own names."""

    language: Language
    companies: Mapping[str, str]
    metrics: Mapping[str, str]
    own: Mapping[str, str]


def names_for(language: Language, companies: Iterable[Company], metrics: Iterable[Metric]) -> Names:
    """English answers use the English name where there is one."""
    firms, figures = list(companies), list(metrics)
    own = {
        **{firm.company_id: firm.name for firm in firms},
        **{item.metric_id: item.name for item in figures},
    }
    if language == "zh":
        named = {firm.company_id: firm.name for firm in firms}
        return Names(language, named, {item.metric_id: item.name for item in figures}, own)
    named = {firm.company_id: (firm.english_names or (firm.name,))[0] for firm in firms}
    return Names(language, named, {item.metric_id: item.english_name or item.name for item in figures}, own)


MOST_FIGURES_TOLD = 12


def not_found(question: str, names: Names, company_ids: Sequence[str] = ()) -> str:
    """The answer to a question without evidence: says what was looked for, at most 80 characters of it.

    Of companies it says which figures there are, for one may be asked for that is not kept.
    """
    asked = " ".join(question.split())
    told = TEXTS["not_found"][names.language].format(asked if len(asked) <= 80 else f"{asked[:79]}…")
    known = [names.companies[company_id] for company_id in company_ids if company_id in names.companies]
    if not known or not names.metrics:
        return told
    comma, space = ("、", "") if names.language == "zh" else (", ", " ")
    companies = comma.join(known)
    figures = comma.join(list(names.metrics.values())[:MOST_FIGURES_TOLD])
    return f"{told}{space}{TEXTS['figures_of'][names.language].format(companies, figures)}"


def render_facts(
    lookups: Sequence[FactLookup], *, kind: Literal["fact", "comparison"], names: Names
) -> Rendered:
    """The answer to fact lookups: a sentence each; for a comparison a line each and what they differ by.

    Misses are said with what was looked for. Facts that a document states carry its citation; labels count
    from C1 in the order of use. No lookup at all is a not_found.
    """
    if not lookups:
        return Rendered("not_found", TEXTS["no_facts_asked"][names.language])
    groups = _groups(lookups, kind)
    sources = _Sources([lookup for group in groups for lookup in group], names)
    lines = [line for group in groups for line in _group_lines(group, kind, names, sources)]
    found = any(lookup["hit"] for lookup in lookups)
    return Rendered(kind if found else "not_found", "\n".join(lines), sources.citations if found else [])


def unknown_companies(named: Sequence[str], language: Language) -> Rendered:
    """What is said of companies that the directory does not hold, at most 40 characters of each name."""
    lines = [TEXTS["unknown_company"][language].format(" ".join(name.split())[:40]) for name in named]
    return Rendered("not_found", "\n".join(lines))


def render_ended(passages: Sequence[Passage], language: Language, first_label: int = 1) -> Rendered:
    """What is said above passages that no longer hold: of each document that, and when, it ended.

    Each is cited, in order, with labels that count from `first_label`.
    """
    documents = {passage["document_id"]: passage for passage in reversed(passages)}
    shown = [passage for passage in passages if documents[passage["document_id"]] is passage]
    citations = [_citation(label, passage) for label, passage in enumerate(shown, start=first_label)]
    lines = [
        TEXTS["ended"][language].format(passage["title"], _day(passage["valid_until"] or "", language), label)
        for label, passage in enumerate(shown, start=first_label)
    ]
    return Rendered("not_found", "\n".join(lines), citations)


def _day(iso: str, language: Language) -> str:
    if language == "en":
        return iso
    year, month, day = iso.split("-")
    return f"{year}年{int(month)}月{int(day)}日"


def render_everyone(lookups: Sequence[FactLookup], *, names: Names) -> Rendered:
    """All companies in order of a figure, the highest first; a not_found where none has it.

    At most MOST_LISTED are listed, then the lowest; how many have no figure for this caller is said.
    """
    groups: dict[tuple[str, str], list[FactLookup]] = {}
    for lookup in lookups:
        groups.setdefault((lookup["metric"], lookup["period"]), []).append(lookup)
    ordered = [_from_the_highest(group) for group in groups.values()]
    listed = [_listed(hits) for hits in ordered]
    shown = [_as_lookup(hit) for hits in listed for hit in hits]
    sources = _Sources(shown, names)
    lines = [
        line
        for group, hits, some in zip(groups.values(), ordered, listed, strict=True)
        for line in _standings(group, hits, some, names, sources)
    ]
    return Rendered("comparison" if shown else "not_found", "\n".join(lines), sources.citations)


def render_growth(lookups: Sequence[FactLookup], *, names: Names) -> Rendered:
    """All companies in order of how much a figure grew from the earlier to the later period, most first.

    Per cent of the earlier value, exact for the order and rounded to one decimal as told; shares in points.
    Without a place are companies that lack one of the two values, or whose earlier one is not above zero.
    """
    by_metric: dict[str, list[FactLookup]] = {}
    for lookup in lookups:
        by_metric.setdefault(lookup["metric"], []).append(lookup)
    tables = [_grown(group) for group in by_metric.values()]
    shown = [
        _as_lookup(hit) for table in tables for one in _listed(table) for hit in (one.earlier, one.later)
    ]
    sources = _Sources(shown, names)
    lines = [
        line
        for group, table in zip(by_metric.values(), tables, strict=True)
        for line in _growth_lines(group, table, names, sources)
    ]
    return Rendered("comparison" if shown else "not_found", "\n".join(lines), sources.citations)


@dataclass(frozen=True)
class _Grown:
    """One company's figure in two periods; `rate` is in per cent, or for shares in points."""

    earlier: FactHit
    later: FactHit
    rate: Decimal


def _grown(group: Sequence[FactLookup]) -> list[_Grown]:
    earlier, later = sorted({lookup["period"] for lookup in group})
    hits = {(lookup["company"], lookup["period"]): lookup["hit"] for lookup in group}
    found = [
        _Grown(before, after, rate)
        for company in dict.fromkeys(lookup["company"] for lookup in group)
        if (before := hits[company, earlier]) and (after := hits[company, later])
        if (rate := _rate(before, after)) is not None
    ]
    return sorted(found, key=lambda one: one.rate, reverse=True)


def _rate(before: FactHit, after: FactHit) -> Decimal | None:
    old, new = Decimal(before["value"]), Decimal(after["value"])
    if before["unit"] != after["unit"]:
        return None
    if after["unit"] in ("%", "％"):
        return _EXACT.subtract(new, old)
    return _EXACT.divide(_EXACT.multiply(_EXACT.subtract(new, old), Decimal(100)), old) if old > 0 else None


def _growth_lines(
    group: Sequence[FactLookup], table: Sequence[_Grown], names: Names, sources: "_Sources"
) -> list[str]:
    language = names.language
    earlier, later = sorted({lookup["period"] for lookup in group})
    metric = names.metrics.get(group[0]["metric"], group[0]["metric"])
    about = {
        "earlier": period_label(earlier, language),
        "later": period_label(later, language),
        "metric": metric,
        "found": len(table),
        "missing": len({lookup["company"] for lookup in group}) - len(table),
    }
    if not table:
        return [_SAY["no_growth"][language].format(**about)]
    listed = _listed(table)
    places = [*range(1, len(listed)), len(table)]
    lines = [f"{at}. {_growth_line(one, names, sources)}" for at, one in zip(places, listed, strict=True)]
    if len(listed) < len(table):
        lines.insert(-1, _SAY["left_out"][language].format(len(table) - len(listed)))
    ending = [_SAY["ungrown"][language].format(**about)] if about["missing"] else []
    return [_SAY["by_growth"][language].format(**about), *lines, *ending]


def _growth_line(one: _Grown, names: Names, sources: "_Sources") -> str:
    later, language = one.later, names.language
    marks = list(dict.fromkeys(mark for hit in (one.earlier, later) if (mark := sources.mark(hit))))
    is_share = later["unit"] in ("%", "％")
    rate = one.rate if is_share else one.rate.quantize(Decimal("0.1"), ROUND_HALF_UP)
    return _SAY["grown"][language].format(
        company=names.companies.get(later["company"], later["company"]),
        rate=_difference(rate, "%", language) if is_share else f"{_plain(rate)}%",
        old=_value(one.earlier["value"], one.earlier["unit"], language),
        new=_value(later["value"], later["unit"], language),
        marks=("" if language == "zh" else " ") * bool(marks) + "".join(marks),
    )


def _as_lookup(hit: FactHit) -> FactLookup:
    return FactLookup(company=hit["company"], period=hit["period"], metric=hit["metric"], hit=hit)


MOST_LISTED = 10
Ranked = TypeVar("Ranked")


def _from_the_highest(group: Sequence[FactLookup]) -> list[FactHit]:
    """In the directory's order where units differ, and among equal values."""
    hits = [lookup["hit"] for lookup in group if lookup["hit"]]
    if len({hit["unit"] for hit in hits}) > 1:
        return hits
    return sorted(hits, key=lambda hit: Decimal(hit["value"]), reverse=True)


def _listed(hits: Sequence[Ranked]) -> list[Ranked]:
    return [*hits[:MOST_LISTED], *hits[-1:]] if len(hits) > MOST_LISTED else list(hits)


def _standings(
    group: Sequence[FactLookup],
    hits: Sequence[FactHit],
    listed: Sequence[FactHit],
    names: Names,
    sources: "_Sources",
) -> list[str]:
    language, any_one = names.language, group[0]
    subject = {
        "period": period_label(any_one["period"], language),
        "metric": names.metrics.get(any_one["metric"], any_one["metric"]),
        "found": len(hits),
        "missing": len(group) - len(hits),
    }
    if not hits:
        return [_SAY["nobody"][language].format(**subject)]
    differ = len({hit["unit"] for hit in hits}) > 1
    places = [*range(1, len(listed)), len(hits)]
    lines = [f"{place}. {_line(hit, names, sources)}" for place, hit in zip(places, listed, strict=True)]
    if len(listed) < len(hits):
        lines.insert(-1, _SAY["left_out"][language].format(len(hits) - len(listed)))
    return [
        _SAY["listed" if differ else "from_the_highest"][language].format(**subject),
        *lines,
        *([_SAY["units_differ"][language]] if differ else []),
        *([_SAY["without"][language].format(**subject)] if subject["missing"] else []),
    ]


def join_parts(parts: Sequence[tuple[str, str]], language: Language) -> str:
    """Answers to several questions asked at once, each under its own question; a single one stands alone."""
    if len(parts) == 1:
        return parts[0][1]
    colon = "：" if language == "zh" else ":"
    return "\n\n".join(
        f"{at}. {' '.join(question.split()).rstrip('?？。.；;，,')}{colon}\n{text}"
        for at, (question, text) in enumerate(parts, start=1)
    )


def cited(order: Sequence[int], passages: Sequence[Passage], first_label: int = 1) -> list[Citation]:
    """The citations of passages used, bound to document, version and passage hash.

    `order` is the passages' numbers in the order of their use, by which labels count from `first_label`.
    """
    return [
        _citation(label, passages[number - 1])
        for label, number in enumerate(order, start=first_label)
        if 1 <= number <= len(passages)
    ]


def _citation(label: int, passage: Passage) -> Citation:
    return {
        "label": f"C{label}",
        "document_id": passage["document_id"],
        "version": passage["version"],
        "title": passage["title"],
        "source": passage["source"],
        "passage": passage["text"],
        "passage_hash": passage["passage_hash"],
        "start": passage["start"],
        "end": passage["end"],
    }


# Facts


class _Sources:
    """One citation a document version that states facts of this answer; its passage lists those facts."""

    def __init__(self, lookups: Sequence[FactLookup], names: Names) -> None:
        stated: dict[tuple[str, str], list[FactHit]] = {}
        for lookup in lookups:
            if (hit := lookup["hit"]) and hit["document_id"]:
                stated.setdefault((hit["document_id"], hit["version"]), []).append(hit)
        self._labels = {key: f"C{at}" for at, key in enumerate(stated, start=1)}
        self.citations = [_fact_citation(self._labels[key], hits, names) for key, hits in stated.items()]

    def mark(self, hit: FactHit) -> str:
        label = self._labels.get((hit["document_id"], hit["version"]))
        return f"[{label}]" if label else ""


def _fact_citation(label: str, hits: Sequence[FactHit], names: Names) -> Citation:
    passage = "\n".join(dict.fromkeys(_fact_line(hit, names) for hit in hits))
    return {
        "label": label,
        "document_id": hits[0]["document_id"],
        "version": hits[0]["version"],
        "title": hits[0]["title"],
        "source": hits[0]["source"],
        "passage": passage,
        "passage_hash": hashlib.sha256(passage.encode()).hexdigest(),
        "start": 0,
        "end": 0,
    }


def _fact_line(hit: FactHit, names: Names) -> str:
    # In the directory's own names whatever the answer's language, so that a fact has one hash.
    company = names.own.get(hit["company"], hit["company"])
    metric = names.own.get(hit["metric"], hit["metric"])
    return f"{company} {hit['period']} {metric} {hit['value']} {hit['unit']}".strip()


def _groups(lookups: Sequence[FactLookup], kind: str) -> list[list[FactLookup]]:
    """A comparison is made metric by metric; plain facts keep their order."""
    if kind == "fact":
        return [list(lookups)]
    by_metric: dict[str, list[FactLookup]] = {}
    for lookup in lookups:
        by_metric.setdefault(lookup["metric"], []).append(lookup)
    return list(by_metric.values())


def _group_lines(group: Sequence[FactLookup], kind: str, names: Names, sources: _Sources) -> list[str]:
    hits = [lookup["hit"] for lookup in group if lookup["hit"]]
    misses = [_miss(lookup, names) for lookup in group if not lookup["hit"]]
    if kind == "fact" or len(hits) < 2:
        return [*(_sentence(hit, names, sources) for hit in hits), *misses]
    heading = names.metrics.get(group[0]["metric"], group[0]["metric"])
    lines = [f"- {_line(hit, names, sources)}" for hit in hits]
    return [
        f"{_capital(heading)}{'：' if names.language == 'zh' else ':'}",
        *lines,
        *misses,
        *_differences(hits, names),
    ]


def _sentence(hit: FactHit, names: Names, sources: _Sources) -> str:
    value, mark = _value(hit["value"], hit["unit"], names.language), sources.mark(hit)
    if names.language == "zh":
        return f"{_subject(hit, names)}为{value}{mark}。"
    return f"{_subject(hit, names)} was {value}{f' {mark}' if mark else ''}."


def _miss(lookup: FactLookup, names: Names) -> str:
    others = [period_label(period, names.language) for period in lookup.get("others", [])]
    if names.language == "zh":
        there_are = f"可以查询的期间：{'、'.join(others)}。" if others else ""
        return f"没有找到{_subject(lookup, names, link='的')}。{there_are}"
    there_are = f" There are figures for {', '.join(others)}." if others else ""
    return f"No figure was found for {_subject(lookup, names)}.{there_are}"


def _subject(fact: FactHit | FactLookup, names: Names, link: str = "") -> str:
    company = names.companies.get(fact["company"], fact["company"])
    metric = names.metrics.get(fact["metric"], fact["metric"])
    period = period_label(fact["period"], names.language)
    if names.language == "zh":
        return f"{company}{' ' if company[-1:].isascii() else ''}{period}{link}{metric}"
    return f"{company}'s {metric} in {period}"


def _line(hit: FactHit, names: Names, sources: _Sources) -> str:
    company = names.companies.get(hit["company"], hit["company"])
    mark = sources.mark(hit)
    value = _value(hit["value"], hit["unit"], names.language)
    if names.language == "zh":
        return f"{company} {period_label(hit['period'], 'zh')}：{value}{mark}"
    return f"{company}, {period_label(hit['period'], 'en')}: {value}{f' {mark}' if mark else ''}"


# Values

# Chinese units as an English answer says them: word and exact factor.
_ENGLISH_UNITS: Mapping[str, tuple[str, int]] = {
    "元": ("yuan", 1), "千元": ("yuan", 10**3), "万元": ("yuan", 10**4), "百万元": ("yuan", 10**6),
    "亿元": ("yuan", 10**8), "万美元": ("US dollars", 10**4), "亿美元": ("US dollars", 10**8),
    "美元": ("US dollars", 1), "人": ("people", 1), "名": ("people", 1), "万人": ("people", 10**4),
    "家": ("companies", 1), "件": ("pieces", 1), "项": ("items", 1), "个": ("", 1), "吨": ("tonnes", 1),
    "万吨": ("tonnes", 10**4), "次": ("times", 1), "天": ("days", 1), "倍": ("times", 1),
    "平方米": ("square metres", 1), "百分点": ("percentage points", 1), "个百分点": ("percentage points", 1),
}  # fmt: skip


def _value(value: str | Decimal, unit: str, language: Language) -> str:
    """An exact value with thousands separators and its unit; in English 1320 万元 is 13.2 million yuan."""
    number = Decimal(value)
    if unit in ("%", "％"):
        return f"{_plain(number)}%"
    if language == "zh":
        return f"{_plain(number)}{unit}" if not unit[:1].isascii() else f"{_plain(number)} {unit}".strip()
    word, factor = _ENGLISH_UNITS.get(unit, (unit, 1))
    scaled = _EXACT.multiply(number, Decimal(factor)) if factor > 1 else number
    for size, name in ((10**9, "billion"), (10**6, "million")):
        if factor > 1 and abs(scaled) >= size:
            return f"{_plain(_trimmed(_EXACT.divide(scaled, Decimal(size))))} {name} {word}".strip()
    return f"{_plain(scaled)} {word}".strip()


# More digits than any stored value has: sums and changes of unit lose nothing.
_EXACT = Context(prec=400)


def _plain(number: Decimal) -> str:
    return f"{number:,f}"


def _trimmed(number: Decimal) -> Decimal:
    """Without the zeros that a change of unit brings; never in exponent form."""
    whole = number.to_integral_value()
    return whole if number == whole else _EXACT.normalize(number)


# Comparisons


def _differences(hits: Sequence[FactHit], names: Names) -> list[str]:
    """What the compared values differ by; nothing where units differ, which is said instead."""
    if len({hit["unit"] for hit in hits}) > 1:
        return [_SAY["units_differ"][names.language]]
    if len({hit["company"] for hit in hits}) == 1:
        ordered = sorted(hits, key=lambda hit: hit["period"])
        return [_change(earlier, later, names) for earlier, later in pairwise(ordered)]
    if len({hit["period"] for hit in hits}) == 1:
        return [_ranking(hits, names)]
    return _by_company_and_period(hits, names)


def _by_company_and_period(hits: Sequence[FactHit], names: Names) -> list[str]:
    """Several companies over several periods: each company's change, then each period's ranking."""
    lines: list[str] = []
    for company in dict.fromkeys(hit["company"] for hit in hits):
        own = [hit for hit in hits if hit["company"] == company]
        lines += _differences(own, names) if len(own) > 1 else []
    for period in sorted({hit["period"] for hit in hits}):
        same = [hit for hit in hits if hit["period"] == period]
        lines += _differences(same, names) if len(same) > 1 else []
    return lines


_SAY: Mapping[str, Mapping[Language, str]] = {
    "nobody": {
        "zh": "没有找到任何公司{period}的{metric}。",
        "en": "No company's {metric} in {period} was found.",
    },
    "from_the_highest": {
        "zh": "{period}{metric}由高到低（有数据的 {found} 家公司）：",
        "en": "Companies by {metric} in {period}, from the highest ({found} with a figure):",
    },
    "listed": {"zh": "{period}{metric}（有数据的 {found} 家公司）：",
               "en": "Companies' {metric} in {period} ({found} with a figure):"},
    "left_out": {"zh": "（此处略去 {} 家）", "en": "({} left out here)"},
    "without": {"zh": "另有 {missing} 家公司没有可以查看的数据。",
                "en": "Of {missing} more companies there is no figure to be seen."},
    "by_growth": {
        "zh": "{later}比{earlier}的{metric}增长由高到低（有两期数据的 {found} 家公司，增长率保留一位小数）：",
        "en": "Companies by growth of {metric} from {earlier} to {later}, from the highest ({found} with "
        "both figures, rates rounded to one decimal):",
    },
    "grown": {"zh": "{company}：{rate}（{old} → {new}）{marks}",
              "en": "{company}: {rate} ({old} to {new}){marks}"},
    "no_growth": {
        "zh": "没有公司同时有{earlier}和{later}可以比较的{metric}。",
        "en": "No company has {metric} of both {earlier} and {later} that could be compared.",
    },
    "ungrown": {"zh": "另有 {missing} 家公司没有两期可以比较的数据。",
                "en": "Of {missing} more companies there are no two figures to compare."},
    "units_differ": {
        "zh": "各项单位不同，不作比较。",
        "en": "The units differ, so the values are not compared.",
    },
    "ranking": {
        "zh": "{period}{high}高于{low}，相差{difference}。",
        "en": "In {period}, {high} was higher than {low}, by {difference}.",
    },
    "extremes": {
        "zh": "{period}最高的是{high}，最低的是{low}，相差{difference}。",
        "en": "In {period}, {high} was the highest and {low} the lowest, a difference of {difference}.",
    },
    "equal": {"zh": "{period}各项数值相同。", "en": "In {period}, the values are equal."},
    "up": {"zh": "{company}{later}比{earlier}增加{difference}{growth}。",
           "en": "{company}: {later} was higher than {earlier} by {difference}{growth}."},
    "down": {"zh": "{company}{later}比{earlier}减少{difference}{growth}。",
             "en": "{company}: {later} was lower than {earlier} by {difference}{growth}."},
    "same": {"zh": "{company}{later}与{earlier}持平。", "en": "{company}: {later} and {earlier} were equal."},
    "grew": {"zh": "，增长{}%（保留一位小数）", "en": ", a growth of {}% (rounded to one decimal)"},
    "fell": {"zh": "，下降{}%（保留一位小数）", "en": ", a decline of {}% (rounded to one decimal)"},
}  # fmt: skip


def _change(earlier: FactHit, later: FactHit, names: Names) -> str:
    old, new = Decimal(earlier["value"]), Decimal(later["value"])
    name = "up" if new > old else "down" if new < old else "same"
    return _SAY[name][names.language].format(
        company=names.companies.get(later["company"], later["company"]),
        later=period_label(later["period"], names.language),
        earlier=period_label(earlier["period"], names.language),
        difference=_difference(_EXACT.subtract(max(old, new), min(old, new)), later["unit"], names.language),
        growth=_growth(old, new, later["unit"], names.language),
    )


def _growth(old: Decimal, new: Decimal, unit: str, language: Language) -> str:
    """A growth rate needs a positive base, and shares differ in points, not in per cent of themselves."""
    if old <= 0 or new < 0 or unit in ("%", "％"):
        return ""
    change = _EXACT.subtract(max(old, new), min(old, new))
    rate = _EXACT.divide(_EXACT.multiply(change, Decimal(100)), old).quantize(Decimal("0.1"), ROUND_HALF_UP)
    return _SAY["grew" if new > old else "fell"][language].format(_plain(rate))


def _difference(value: Decimal, unit: str, language: Language) -> str:
    if unit in ("%", "％"):
        return f"{_plain(value)}个百分点" if language == "zh" else f"{_plain(value)} percentage points"
    return _value(value, unit, language)


def _ranking(hits: Sequence[FactHit], names: Names) -> str:
    ordered = sorted(hits, key=lambda hit: Decimal(hit["value"]), reverse=True)
    high, low = ordered[0], ordered[-1]
    difference = _EXACT.subtract(Decimal(high["value"]), Decimal(low["value"]))
    name = "equal" if not difference else "ranking" if len(hits) == 2 else "extremes"
    return _SAY[name][names.language].format(
        period=period_label(high["period"], names.language),
        high=names.companies.get(high["company"], high["company"]),
        low=names.companies.get(low["company"], low["company"]),
        difference=_difference(difference, high["unit"], names.language),
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
