"""Which sentences of the passages answer a question. Pure, deterministic, no model.

Only whole sentences are quoted. A sentence that leans on the one before it, or is limited by the one after it,
brings that one along; a line that opens a list brings the list. Headings, front matter and table borders are
context, never answers; a table row is read out with its column names.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import rjieba

from nodes.answer.figures import Amount, Date, Figure, Time, figures
from nodes.answer.numerals import MONEY
from nodes.answer.sentences import split_sentences
from nodes.contracts import Language, Passage

MAX_SENTENCES = 4
MAX_LIST_ITEMS = 12


@dataclass(frozen=True)
class Quote:
    """One sentence to quote, without its citation. `passage` counts from 1, as the labels do."""

    text: str
    passage: int


@dataclass
class _Unit:
    """A quotable sentence, list or table row at its place, with the heading it stands under."""

    text: str
    passage: int
    at: int
    heading: str = ""
    title: str = ""
    items: list[str] = field(default_factory=list)
    is_row: bool = False

    @cached_property
    def figures(self) -> list[Figure]:
        return figures(" ".join((self.text, *self.items)))

    @cached_property
    def terms(self) -> frozenset[str]:
        return _terms(" ".join((self.text, *self.items)))

    @cached_property
    def context(self) -> frozenset[str]:
        return _terms(f"{self.heading} {self.title}")


def choose_quotes(question: str, passages: Sequence[Passage], language: Language) -> list[Quote]:
    """At most four sentences that answer `question`, best passage first; empty when none is about it.

    Sentences in the question's language are preferred; only where there are none, others are quoted.
    """
    units = [unit for at, passage in enumerate(passages, start=1) for unit in _units(passage, at)]
    same = [unit for unit in units if _language(unit.text) == language]
    scored = _scored(question, same)
    if not scored and len(same) < len(units):
        scored = _scored(question, [unit for unit in units if unit not in same]) or _by_rank(
            question, units, language
        )
    if not scored:
        return []
    chosen = _chosen(scored)
    return [Quote(_quotable(unit), unit.passage) for unit in _with_neighbours(chosen, units)[:MAX_SENTENCES]]


# Scoring


def _scored(question: str, units: Sequence[_Unit]) -> list[tuple[float, _Unit]]:
    """Units that are about the question, best first; ties go to the passage that retrieval ranked higher."""
    wanted = _terms(question) - _ASKING
    asks = _asks(question)
    if not wanted:
        return []
    weights = {term: float(len(term)) for term in wanted}
    total = sum(weights.values())
    scored: list[tuple[float, _Unit]] = []
    for unit in units:
        own = sum(weights[term] for term in wanted & unit.terms)
        near = sum(weights[term] for term in (wanted & unit.context) - unit.terms)
        covered = (own + 0.6 * near) / total
        if covered >= MIN_COVERED and (own or asks):
            scored.append((covered + _fit(asks, unit) - _penalty(question, unit) - 0.02 * unit.passage, unit))
    return sorted(scored, key=lambda pair: (-pair[0], pair[1].passage, pair[1].at))


# The share of the question's words that a sentence, its heading and its title must hold to be about it.
MIN_COVERED = 0.25


def _fit(asks: frozenset[str], unit: _Unit) -> float:
    """How well the kind of thing asked for stands in the sentence or in its heading."""
    fit = sum(0.25 for ask in asks if ask in _NEEDS and _NEEDS[ask](unit))
    fit += sum(0.2 for ask in asks if ask in _CUES and _CUES[ask].search(unit.heading))
    return fit + sum(0.1 for ask in asks if ask in _CUES and _CUES[ask].search(unit.text))


def _penalty(question: str, unit: _Unit) -> float:
    """A year, quarter or other date that the question does not name makes another period's sentence worse."""
    asked = {figure.year for figure in figures(question) if isinstance(figure, Date) and figure.year}
    said = {figure.year for figure in unit.figures if isinstance(figure, Date) and figure.year}
    return 0.3 if asked and said and not asked & said else 0.0


def _has(kinds: tuple[type, ...], units: frozenset[str] | None = None):  # type: ignore[no-untyped-def]
    def holds(unit: _Unit) -> bool:
        return any(
            isinstance(figure, kinds)
            and (units is None or (isinstance(figure, Amount) and figure.unit in units))
            for figure in unit.figures
        )

    return holds


_DURATIONS = frozenset({"day", "workday", "month", "minute"})
_NEEDS = {
    "money": _has((Amount,), MONEY | {"%"}),
    "number": _has((Amount,)),
    "share": _has((Amount,), frozenset({"%", "pp"})),
    "when": _has((Date, Time)),
    "duration": _has((Amount,), _DURATIONS),
}
_ASKS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        (
            "money",
            r"多少钱|多少元|金额|额度|最高|最低|上限|补贴多少|补多少|标准|工资|how much|amount|maximum|minimum|rate|cost|fee",
        ),
        ("number", r"多少|几[个家人名次项天年月]|how many|number of"),
        ("share", r"比例|百分之|占比|率是|几成|percent|share|proportion|what rate"),
        (
            "when",
            r"什么时候|何时|时间|哪天|哪年|日期|截止|生效|施行|到期|when|deadline|what date|expire|until|valid|open from",
        ),
        (
            "duration",
            r"多久|多长|几天|几个工作日|期限|有效期|时限|how long|within|how many (?:working )?days|duration|period",
        ),
        (
            "how",
            r"怎么|如何|怎样|流程|步骤|手续|在哪|哪里|how (?:do|can|to|does)|where|procedure|process|apply",
        ),
        (
            "condition",
            r"条件|资格|要求|谁可以|谁能|哪些人|哪些企业|对象|范围|能不能|可以.*吗|能.*吗|符合|condition|eligib|who can|qualif|require|allowed",
        ),
        ("material", r"材料|资料|证件|提交什么|需要什么|带什么|document|material|paper|form"),
        ("contact", r"电话|联系|地址|咨询|phone|contact|address|email"),
    )
)
_CUES: dict[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in (
        ("money", r"标准|金额|额度|补贴|资助|rates?|amount|grant|fee"),
        ("share", r"标准|比例|rates?"),
        ("when", r"施行|生效|有效期|时间|期限|日期|application|validity|decision|deadline"),
        ("duration", r"有效期|期限|时限|流程|validity|decision|term"),
        ("how", r"流程|程序|办理|申请|申报|提交|登录|procedure|application|how to|apply|submit"),
        ("condition", r"条件|对象|范围|资格|应当|符合|不得|须|condition|eligib|who|must|require|scope"),
        ("material", r"材料|资料|提交|上传|documents?|materials?|form|submit|files?"),
        ("contact", r"电话|联系|咨询|地址|热线|phone|contact|call"),
    )
}
_ASKING = frozenset(
    "多少 什么 怎么 如何 怎样 哪些 哪里 哪个 谁 几 吗 呢 的 了 是 在 有 和 与 及 或 我 我们 你 您 请问 请 想 知道 可以 能 能否 需要 要 一下"
    " 时候 多久 多长 为什么 是否 应该 应当 关于 对 对于 这 那 这个 那个 吧 啊 就 都 也 还 会 到 从 把 被 给 让 按 按照"
    " the a an is are was were be been do does did can could may might must shall should will would i we you it they he she"
    " my our your of in on at to for from by with about as and or if what which who whom when where why how much many long"
    " there this that these those me us please tell get".split()  # noqa: SIM905 - words read better in lines
)


def _asks(question: str) -> frozenset[str]:
    return frozenset(name for name, pattern in _ASKS if pattern.search(question))


def _terms(text: str) -> frozenset[str]:
    """Words and Chinese character pairs, folded; English words lose a plural s."""
    words: set[str] = set()
    for word in rjieba.cut(text.casefold()):
        word = word.strip()
        if re.search(r"[\u3400-\u9fff]", word):
            words.add(word)
            words.update(word[at : at + 2] for at in range(len(word) - 1))
        elif re.search(r"[a-z0-9]", word):
            words.add(word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word)
    return frozenset(words)


def _language(text: str) -> Language:
    return (
        "zh" if len(re.findall(r"[\u3400-\u9fff]", text)) * 2 >= len(re.findall(r"[A-Za-z]+", text)) else "en"
    )


def _by_rank(question: str, units: Sequence[_Unit], language: Language) -> list[tuple[float, _Unit]]:
    """For evidence in another language, words say little: retrieval's order, and what kind of thing is asked for."""
    asks = _asks(question)
    others = [unit for unit in units if _language(unit.text) != language and unit.passage == 1]
    scored = [(_fit(asks, unit) - 0.01 * unit.at, unit) for unit in others]
    return sorted(scored, key=lambda pair: -pair[0])[:2]


# Choice


def _chosen(scored: Sequence[tuple[float, _Unit]]) -> list[_Unit]:
    """The best unit and those nearly as good that add words or figures of their own."""
    best, first = scored[0]
    chosen = [first]
    for score, unit in scored[1:]:
        if len(chosen) == 3 or score < 0.75 * best:
            break
        if unit.passage == first.passage and not any(_repeats(unit, other) for other in chosen):
            chosen.append(unit)
    return chosen


def _repeats(unit: _Unit, other: _Unit) -> bool:
    return len(unit.terms & other.terms) >= 0.7 * max(1, min(len(unit.terms), len(other.terms)))


# A sentence that begins so says nothing without the one before it.
_LEANS_BACK = re.compile(
    r"^(?:但|但是|不过|然而|其|该|此|上述|前款|前述|以上|它|他们|并且|同时|否则|因此|所以|对此|其中|超过部分|除此之外|另外|此外)"
    r"|^(?:however|but|it|this|these|those|they|such|otherwise|therefore|the former|the latter|in that case|also)\b",
    re.IGNORECASE,
)
# A sentence that begins so limits the one before it.
_LIMITS = re.compile(
    r"^(?:但|但是|不过|然而|除外|前款|上述.{0,8}(?:不|除)|有下列情形.{0,6}除外|不包括|其中)"
    r"|^(?:however|but|except|unless|this does not|these do not|it does not|the .{0,20} does not apply|otherwise)\b",
    re.IGNORECASE,
)


def _with_neighbours(chosen: Sequence[_Unit], units: Sequence[_Unit]) -> list[_Unit]:
    """The chosen units with what they need, in reading order, the best unit's passage first."""
    places = {(unit.passage, unit.at): unit for unit in units}
    kept: dict[tuple[int, int], _Unit] = {}
    for unit in chosen:
        group = [*_before(unit, places), unit, *_after(unit, places)]
        if len(kept.keys() | {(item.passage, item.at) for item in group}) <= MAX_SENTENCES:
            kept.update({(item.passage, item.at): item for item in group})
    first = chosen[0].passage
    return sorted(kept.values(), key=lambda unit: (unit.passage != first, unit.passage, unit.at))


def _before(unit: _Unit, places: dict[tuple[int, int], _Unit]) -> list[_Unit]:
    before = places.get((unit.passage, unit.at - 1))
    if before is None or unit.is_row or before.heading != unit.heading or not _LEANS_BACK.search(unit.text):
        return []
    return [*(_before(before, places)[-1:]), before]


def _after(unit: _Unit, places: dict[tuple[int, int], _Unit]) -> list[_Unit]:
    after = places.get((unit.passage, unit.at + 1))
    if after is None or unit.is_row or after.heading != unit.heading or not _LIMITS.search(after.text):
        return []
    return [after]


def _quotable(unit: _Unit) -> str:
    return "\n".join([unit.text, *unit.items])


# Passages into units

_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(?P<text>.+?)\s*#*$")
_PLAIN_HEADING = re.compile(
    r"^(?:第[一二三四五六七八九十百\d]+[章节编]\s*\S{0,20}|[一二三四五六七八九十]+、\S{1,20})$"
)
_ITEM = re.compile(
    r"^\s*(?:[-*+•]\s+|\(?\d{1,2}[.)、）]\s*|[（(][一二三四五六七八九十]{1,3}[）)]\s*|[①-⑳]\s*)"
)
_LABEL_LINE = re.compile(
    r"^(?:文号|发文字号|索引号|发布机构|发布日期|成文日期|来源|id|title|version|source|access)\s*[:：]",
    re.IGNORECASE,
)
_ENDS = '。！？!?.…；;”"）)'


def _units(passage: Passage, number: int) -> list[_Unit]:
    """The passage's sentences, lists and rows in order. A first line cut off mid-sentence is not quoted."""
    text = _FRONT_MATTER.sub("", passage["text"])
    builder = _Builder(passage["title"], number)
    for line in _joined_lines(text.splitlines()):
        builder.add(line)
    units = builder.units
    if passage["start"] > 0 and units and _is_torn(text):
        units = units[1:]
    for at, unit in enumerate(units):
        unit.at = at
    return units


def _is_torn(text: str) -> bool:
    """Whether a passage from the middle of a document begins inside a sentence."""
    first = text.lstrip()[:1]
    return bool(first) and (first in "，,、；;）)”" or first.islower())


def _joined_lines(lines: Sequence[str]) -> list[str]:
    """Wrapped English lines put together again; Chinese lines, lists, tables and headings stay lines."""
    joined: list[str] = []
    for line in lines:
        line = line.rstrip()
        wraps = (
            bool(joined) and joined[-1][-1:].isascii() and joined[-1][-1:].isalnum() and line[:1].islower()
        )
        if wraps and not _HEADING.match(joined[-1]):
            joined[-1] = f"{joined[-1]} {line}"
        else:
            joined.append(line)
    return joined


class _Builder:
    """Builds units line by line, keeping the heading, an open list and the table's column names."""

    def __init__(self, title: str, number: int) -> None:
        self.units: list[_Unit] = []
        self._title = title
        self._number = number
        self._heading = ""
        self._columns: list[str] = []
        self._is_open = False  # the last unit ends in a colon and may take list items

    def add(self, line: str) -> None:
        text = _plain(line)
        if line.lstrip().startswith("|"):
            self._add_row(line)
            return
        self._columns = []
        if not text:
            return
        heading = _HEADING.match(line)
        if heading or _PLAIN_HEADING.match(text):
            self._heading, self._is_open = _plain(heading["text"]) if heading else text, False
        elif _ITEM.match(line):
            self._add_item(text, _plain(_ITEM.sub("", line)))
        elif not _LABEL_LINE.match(text):
            self._add_sentences(text)

    def _add_sentences(self, text: str) -> None:
        for sentence in split_sentences(text):
            self._append(sentence.strip())
        self._is_open = text.endswith((":", "："))

    def _add_item(self, shown: str, text: str) -> None:
        if self._is_open and len(self.units[-1].items) < MAX_LIST_ITEMS:
            self.units[-1].items.append(f"- {text}")
        elif not self._is_open:
            self._add_sentences(text if text[-1:] in _ENDS else shown)

    def _add_row(self, line: str) -> None:
        cells = [_plain(cell) for cell in line.strip().strip("|").split("|")]
        self._is_open = False
        if all(re.fullmatch(r":?-{2,}:?", cell) for cell in cells if cell):
            return
        if not self._columns:
            self._columns = cells
            return
        self._append(_row(self._columns, cells), is_row=True)

    def _append(self, text: str, *, is_row: bool = False) -> None:
        if text:
            self.units.append(_Unit(text, self._number, 0, self._heading, self._title, is_row=is_row))


def _row(columns: Sequence[str], cells: Sequence[str]) -> str:
    """A table row read out: 营业收入（万元）：2022年 278,091；2023年 320,864。"""
    named = [(name, cell) for name, cell in zip(columns, cells, strict=False) if cell]
    unit = next((cell for name, cell in named[1:] if name.casefold() in ("单位", "unit", "units")), "")
    rest = [(name, cell) for name, cell in named[1:] if name.casefold() not in ("单位", "unit", "units")]
    is_english = _language(" ".join((*columns, *cells))) == "en"
    colon, gap, end = (": ", "; ", ".") if is_english else ("：", "；", "。")
    values = gap.join(f"{name} {_in_unit(cell, unit)}".strip() for name, cell in rest)
    return f"{cells[0]}{colon}{values}{end}" if values else f"{cells[0]}{end}"


def _in_unit(cell: str, unit: str) -> str:
    return f"{cell}{unit}" if unit and cell[-1:].isdigit() else cell


def _plain(text: str) -> str:
    """A line without Markdown: links keep their words, emphasis goes."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\*\*|__|`|^\s*>\s?", "", text).strip()
