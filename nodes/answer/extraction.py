"""Which sentences of the passages answer a question. Pure, deterministic, no model.

Only whole sentences are quoted. A sentence that leans on the one before it, or is limited by the one after
it, brings that one along; a line that opens a list brings the list. Headings, front matter and table
borders are context, never answers; a table row is read out with its column names.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import log

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
    def heading_terms(self) -> frozenset[str]:
        return _terms(self.heading)

    @cached_property
    def title_terms(self) -> frozenset[str]:
        return _terms(self.title)


def choose_quotes(question: str, passages: Sequence[Passage], language: Language) -> list[Quote]:
    """At most four sentences that answer `question`, best passage first; empty when none is about it.

    Sentences in the question's language are preferred; only where there are none, others are quoted.
    """
    units = [unit for at, passage in enumerate(passages, start=1) for unit in _units(passage, at)]
    same = [unit for unit in units if _language(unit.text) == language]
    others = [unit for unit in units if _language(unit.text) != language]
    scored = _scored(question, same) or _scored(question, others) or _by_rank(question, others)
    if not scored:
        return []
    chosen = _with_neighbours(_chosen(scored, _asks(question)), units)
    return [Quote("\n".join([unit.text, *unit.items]), unit.passage) for unit in chosen[:MAX_SENTENCES]]


# Scoring

# The share of the question's words that a sentence, its heading and its title must hold to be about it.
MIN_COVERED = 0.25
_HEADING_COUNTS, _TITLE_COUNTS = 0.8, 0.4


def _scored(question: str, units: Sequence[_Unit]) -> list[tuple[float, _Unit]]:
    """Units that are about the question, best first; ties go to the passage that retrieval ranked higher."""
    weights = _weights(_terms(question) - _ASKING, units)
    asks, total = _asks(question), sum(weights.values())
    scored: list[tuple[float, _Unit]] = []
    for unit in _of_closest_passages(_of_subject(weights, asks), units):
        covered = _covered(weights, unit) / total if total else 0.0
        if covered >= MIN_COVERED:
            score = covered + _fit(asks, unit) - _other_period(question, unit) - 0.02 * unit.passage
            scored.append((score, unit))
    return sorted(scored, key=lambda pair: (-pair[0], pair[1].passage, pair[1].at))


def _weights(wanted: frozenset[str], units: Sequence[_Unit]) -> dict[str, float]:
    """Longer words count more, and so do words that few of the sentences hold."""
    counts = Counter(term for unit in units for term in unit.terms)
    return {term: len(term) * log(2 + len(units) / (1 + counts[term])) for term in wanted}


def _of_subject(weights: dict[str, float], asks: frozenset[str]) -> dict[str, float]:
    """Without the words that only say what kind of thing is asked for."""
    patterns = [table[ask] for table in (_ASKS, _CUES) for ask in asks if ask in table]
    subject = {
        term: weight
        for term, weight in weights.items()
        if not any(pattern.search(term) for pattern in patterns)
    }
    return subject or weights


def _of_closest_passages(weights: Mapping[str, float], units: Sequence[_Unit]) -> list[_Unit]:
    """Units of the passages that, taken whole, hold nearly as much of the question as the closest one.

    A sentence that fits by its own words may still be about something else: its passage tells.
    """
    held: dict[int, set[str]] = {}
    for unit in units:
        words = unit.terms | unit.heading_terms | unit.title_terms
        held.setdefault(unit.passage, set()).update(weights.keys() & words)
    covered = {number: sum(weights[term] for term in terms) for number, terms in held.items()}
    enough = 0.8 * max(covered.values(), default=0.0)
    return [unit for unit in units if covered[unit.passage] >= enough]


def _covered(weights: Mapping[str, float], unit: _Unit) -> float:
    """Words of the sentence count fully, words of its heading and of the title less."""
    covered = 0.0
    for term, weight in weights.items():
        if term in unit.terms:
            covered += weight
        elif term in unit.heading_terms:
            covered += _HEADING_COUNTS * weight
        elif term in unit.title_terms:
            covered += _TITLE_COUNTS * weight
    return covered


def _fit(asks: frozenset[str], unit: _Unit) -> float:
    """How well the kind of thing asked for stands in the sentence or in its heading."""
    fit = sum(0.25 for ask in asks if _answers(ask, unit))
    fit += sum(0.35 for ask in asks if ask in _CUES and _CUES[ask].search(unit.heading))
    return fit + sum(0.1 for ask in asks if ask in _CUES and _CUES[ask].search(unit.text))


def _answers(ask: str, unit: _Unit) -> bool:
    match ask:
        case "when":
            return any(isinstance(figure, (Date, Time)) for figure in unit.figures)
        case "money" | "number" | "share" | "duration":
            amounts = [figure for figure in unit.figures if isinstance(figure, Amount)]
            return any(not _UNITS[ask] or amount.unit in _UNITS[ask] for amount in amounts)
        case _:
            return False


_UNITS: Mapping[str, frozenset[str]] = {
    "money": MONEY | {"%"},
    "number": frozenset(),
    "share": frozenset({"%", "pp"}),
    "duration": frozenset({"day", "workday", "month", "minute"}),
}


def _other_period(question: str, unit: _Unit) -> float:
    """A sentence about years that the question does not name is worse than one about no year."""
    asked = {figure.year for figure in figures(question) if isinstance(figure, Date) and figure.year}
    said = {figure.year for figure in unit.figures if isinstance(figure, Date) and figure.year}
    return 0.3 if asked and said and not asked & said else 0.0


def _patterns(rows: Mapping[str, str]) -> dict[str, re.Pattern[str]]:
    return {name: re.compile(pattern, re.IGNORECASE) for name, pattern in rows.items()}


# What a question asks for, by its words.
_ASKS = _patterns(
    {
        "money": "多少钱|多少元|金额|额度|上限|最高.{0,8}多少|补贴多少|补多少|标准是|什么标准"
        "|how much|amount|maximum|minimum|rate|cost|fee",
        "number": "多少|几[个家人名次项天年月]|how many|number of",
        "share": "比例|百分之|占比|率是|几成|percent|share|proportion|what rate",
        "when": "什么时候|何时|时间|哪天|哪年|日期|截止|生效|施行|到期|有效期"
        "|when|deadline|what date|expire|until|valid|open from",
        "duration": "多久|多长|几天|几个工作日|期限|时限|how long|within|how many (?:working )?days|duration",
        "how": "怎么|如何|怎样|流程|步骤|手续|在哪|哪里|how (?:do|can|to|does)|where|procedure|process|apply",
        "condition": "条件|资格|要求|谁可以|谁能|哪些人|哪些企业|对象|范围|能不能|可以.*吗|能.*吗|符合"
        "|condition|eligib|who can|qualif|require|allowed",
        "material": "材料|资料|证件|提交什么|需要什么|带什么|documents?|materials?|papers?",
        "contact": "电话|联系|地址|咨询|phone|contact|address|email",
    }
)
# What a sentence or its heading says when it is about that.
_CUES = _patterns(
    {
        "money": "标准|金额|额度|补贴|资助|rates?|amount|grant|fee",
        "share": "标准|比例|rates?",
        "when": "施行|生效|有效期|时间|期限|日期|application|validity|decision|deadline",
        "duration": "有效期|期限|时限|流程|validity|decision|term",
        "how": "流程|程序|办理|申请|申报|提交|登录|procedure|application|how to|apply|submit",
        "condition": "条件|对象|范围|资格|应当|符合|不得|须|condition|eligib|who|must|require|scope",
        "material": "材料|资料|提交|上传|documents?|materials?|form|submit|files?",
        "contact": "电话|联系|咨询|地址|热线|phone|contact|call",
    }
)
_YES_NO = re.compile(
    r"[吗么嘛]\s*[?？。]?$|能不能|是不是|是否|可不可以|算不算|^(?:can|could|may|is|are|do|does|must|should|will)\b",
    re.IGNORECASE,
)
# Words that shape a question and name nothing.
_ASKING = frozenset(
    re.findall(
        r"\S+",
        """
        多少 什么 怎么 如何 怎样 哪些 哪里 哪个 谁 几 吗 呢 的 了 是 在 有 和 与 及 或 我 我们 你 您 请问 请
        想 知道 可以 能 能否 需要 要 一下 时候 多久 多长 为什么 是否 应该 应当 关于 对 对于 这 那 这个 那个
        吧 啊 就 都 也 还 会 到 从 把 被 给 让 按 按照 一起 里 中 钱 算
        the a an is are was were be been do does did can could may might must shall should will would i we
        you it they he she my our your of in on at to for from by with about as and or if what which who
        whom when where why how much many long there this that these those me us please tell get take
        """,
    )
)


def _asks(question: str) -> frozenset[str]:
    asks = frozenset(name for name, pattern in _ASKS.items() if pattern.search(question))
    return asks - _UNITS.keys() if _YES_NO.search(question) else asks


def _terms(text: str) -> frozenset[str]:
    """Words and Chinese character pairs, folded; English words lose a plural s."""
    terms: set[str] = set()
    for word in map(str.strip, rjieba.cut(text.casefold())):
        if _HAN.search(word):
            terms.add(word)
            terms.update(word[at : at + 2] for at in range(len(word) - 1))
        elif re.search(r"[a-z0-9]", word):
            is_plural = len(word) > 3 and word.endswith("s") and not word.endswith("ss")
            terms.add(word[:-1] if is_plural else word)
    return frozenset(terms)


_HAN = re.compile(r"[\u3400-\u9fff]")


def _language(text: str) -> Language:
    return "zh" if len(_HAN.findall(text)) * 2 >= len(re.findall(r"[A-Za-z]+", text)) else "en"


def _by_rank(question: str, units: Sequence[_Unit]) -> list[tuple[float, _Unit]]:
    """For evidence in another language words say little: retrieval's order and what is asked for decide."""
    asks = _asks(question)
    scored = [(_fit(asks, unit) - 0.01 * unit.at, unit) for unit in units if unit.passage == 1]
    return sorted(scored, key=lambda pair: -pair[0])[:2]


# Choice


def _chosen(scored: Sequence[tuple[float, _Unit]], asks: frozenset[str]) -> list[_Unit]:
    """The best sentence and at most two nearly as good of its passage that add something.

    Where the best one holds the kind of figure that is asked for, the others must too.
    """
    best, first = scored[0]
    wanted = {ask for ask in asks if _answers(ask, first)}
    chosen = [first]
    for score, unit in scored[1:]:
        if len(chosen) == 3 or score < NEARLY * best:
            break
        is_fit = all(_answers(ask, unit) for ask in wanted)
        if unit.passage == first.passage and is_fit and not any(_repeats(unit, other) for other in chosen):
            chosen.append(unit)
    return chosen


# The share of the best score that a further sentence must reach.
NEARLY = 0.75


def _repeats(unit: _Unit, other: _Unit) -> bool:
    return len(unit.terms & other.terms) >= 0.7 * max(1, min(len(unit.terms), len(other.terms)))


# A sentence that begins so says nothing without the one before it.
_LEANS_BACK = re.compile(
    r"^(?:但|但是|不过|然而|其|该|此|上述|前款|前述|以上|它|他们|并且|同时|否则|因此|所以|对此|其中|超过部分"
    r"|除此之外|另外|此外)|^(?:however|but|it|this|these|those|they|such|otherwise|therefore|the former"
    r"|the latter|in that case|also)\b",
    re.IGNORECASE,
)
# A sentence that begins so limits the one before it.
_LIMITS = re.compile(
    r"^(?:但|但是|不过|然而|除外|前款|上述.{0,8}(?:不|除)|有下列情形.{0,6}除外|不包括|其中)"
    r"|^(?:however|but|except|unless|this does not|these do not|it does not|the .{0,20} does not apply"
    r"|otherwise)\b",
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
    for line in map(str.rstrip, lines):
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
    """A table row read out, each number with its column and its unit."""
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
