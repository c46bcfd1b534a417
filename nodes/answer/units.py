"""What can be quoted from passages: their sentences, lists and table rows, each with the heading over it.

Passages of one document that follow each other are read as one text, so that a heading, a list or a table may
go on over the cut. Headings, front matter, table borders and labels (a document's number, its publisher) are
context. So are block quotations that a line with a colon opens: they are somebody else's words.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from nodes.answer.figures import Figure, figures
from nodes.answer.sentences import split_sentences
from nodes.contracts import Language, Passage

MAX_LIST_ITEMS = 12


@dataclass(frozen=True)
class Item:
    """A list item and the number of the passage that holds it."""

    text: str
    passage: int


@dataclass
class Unit:
    """A sentence, list item or table row at its place `at` in `document`, under its heading.

    Passages count from 1, as their labels do, and documents from 0, in the order of the passages. `items` are
    of a list that this line opens. `opens`: it announces what comes next and says nothing alone. Units of one
    `in_list`, above 0, are items of a list that no line opens; those of one `paragraph` stand in one line.
    """

    text: str
    passage: int
    document: int
    at: int = 0
    heading: str = ""
    title: str = ""
    items: list[Item] = field(default_factory=list)
    is_item: bool = False
    is_row: bool = False
    in_list: int = 0
    paragraph: int = 0

    @property
    def opens(self) -> bool:
        return not self.items and _OPENS.search(self.text) is not None

    @cached_property
    def whole(self) -> str:
        return " ".join((self.text, *(item.text for item in self.items)))

    @property
    def name(self) -> str:
        """The first cell of a table row."""
        return re.split("[：:]", self.text, maxsplit=1)[0].strip() if self.is_row else ""

    @cached_property
    def figures(self) -> list[Figure]:
        return figures(self.whole)

    @cached_property
    def language(self) -> Language:
        return language_of(self.text)


_OPENS = re.compile(r"[:：]$|(?:如下|下列|以下几?[个种项类条方面]*)[。.]?$|\bas follows\.?$", re.IGNORECASE)


def units_of(passages: Sequence[Passage]) -> list[Unit]:
    """All units, document by document, in reading order."""
    numbers: dict[tuple[str, str], list[int]] = {}
    for number, passage in enumerate(passages, start=1):
        numbers.setdefault((passage["document_id"], passage["version"]), []).append(number)
    units: list[Unit] = []
    for document, of_document in enumerate(numbers.values()):
        builder = _Builder(document)
        for number in sorted(of_document, key=lambda one: (passages[one - 1]["start"], one)):
            builder.add_passage(passages[number - 1], number)
        units += builder.finished()
    return units


def language_of(text: str) -> Language:
    return "zh" if len(HAN.findall(text)) * 2 >= len(re.findall(r"[A-Za-z]+", text)) else "en"


HAN = re.compile(r"[\u3400-\u9fff]")

# White space between two passages that follow each other has at most this many characters.
_GAP = 4
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(?P<text>.+?)\s*#*$")
_PLAIN_HEADING = re.compile(
    r"^(?:第[一二三四五六七八九十百\d]+[章节编]\s*\S{0,20}|[一二三四五六七八九十]+、\S{1,20}|【[^】]{1,20}】)$"
)
# A question that a document asks itself is the heading of its answer.
_QUESTION = re.compile(r"^(?:问|Q|Question)\s*\d*\s*[:：.]\s*(?P<text>.+)$")
_REPLY = re.compile(r"^(?:答|A|Answer)\s*\d*\s*[:：]\s*(?=\S)")
_ITEM = re.compile(
    r"^\s*(?:[-*+•]\s+|\(?\d{1,2}[.)、）]\s*|[（(][一二三四五六七八九十]{1,3}[）)]\s*|[①-⑳]\s*)"
)
_LABEL_LINE = re.compile(
    r"^(?:文号|发文字号|索引号|发布机构|发布日期|成文日期|来源|id|title|version|source|access"
    r"|(?:document|reference) (?:number|no\.?))\s*[:：]",
    re.IGNORECASE,
)
_ENDS = '。！？!?.…；;”"）)'


class _Builder:
    """Reads one document's passages line by line, keeping the heading, an open list and column names."""

    def __init__(self, document: int) -> None:
        self._units: list[Unit] = []
        self._lists = self._paragraphs = 0
        self._document = document
        self._title, self._number, self._end = "", 0, -1
        self._start_anew(is_torn=False)

    def _start_anew(self, *, is_torn: bool) -> None:
        self._heading = ""
        self._is_listing = False
        self._columns: list[str] = []
        self._are_columns_sure = not is_torn  # else the first row may be any row of the table
        self._is_open = False  # the last unit opens what comes next and may take list items
        self._are_quotes_theirs = is_torn  # block quotations here are, or may be, somebody else's words

    def add_passage(self, passage: Passage, number: int) -> None:
        """Takes in a passage. What a cut inside a sentence leaves of it is not quoted."""
        goes_on = self._number > 0 and 0 <= passage["start"] - self._end <= _GAP
        if not goes_on:
            self._start_anew(is_torn=passage["start"] > 0)
        self._title, self._number, self._end = passage["title"], number, passage["end"]
        text = _FRONT_MATTER.sub("", passage["text"])
        before = len(self._units)
        for line in _joined_lines(text.splitlines()):
            self._add(line)
        if passage["start"] > 0 and len(self._units) > before and _is_torn(text):
            del self._units[before]

    def finished(self) -> list[Unit]:
        units = [unit for unit in self._units if not unit.text.endswith(("，", ",", "、"))]
        for at, unit in enumerate(units):
            unit.at = at
        return units

    def _add(self, line: str) -> None:
        text, is_quotation = _plain(line), line.lstrip().startswith(">")
        if line.lstrip().startswith("|"):
            self._add_row(line)
            return
        self._columns = []
        if not text or (is_quotation and self._are_quotes_theirs):
            return
        self._paragraphs += 1
        heading = _HEADING.match(line) or _QUESTION.match(text)
        if heading or _PLAIN_HEADING.match(text):
            self._start_anew(is_torn=False)
            named = _plain(heading["text"]) if heading else text
            self._heading = named if named != self._title else ""  # over all of it, it tells no part apart
        elif _ITEM.match(line):
            self._add_item(text, _plain(_ITEM.sub("", line)))
        elif not _LABEL_LINE.match(text):
            self._is_listing = False
            self._add_sentences(_REPLY.sub("", text))

    def _add_sentences(self, text: str) -> None:
        for sentence in split_sentences(text):
            self._append(sentence.strip())
        self._is_open = self._are_quotes_theirs = text.endswith((":", "："))

    def _add_item(self, shown: str, text: str) -> None:
        if self._is_open and self._units and len(self._units[-1].items) < MAX_LIST_ITEMS:
            self._units[-1].items.append(Item(text, self._number))
        elif not self._is_open:
            self._lists += not self._is_listing
            self._is_listing = True
            for sentence in _short_item(text if text[-1:] in _ENDS else shown):
                self._append(sentence, is_item=text[-1:] in _ENDS)

    def _add_row(self, line: str) -> None:
        cells = [_plain(cell) for cell in line.strip().strip("|").split("|")]
        self._is_open = False
        if all(re.fullmatch(r":?-{2,}:?", cell) for cell in cells if cell):
            self._are_columns_sure = True
        elif not self._columns:
            self._columns = cells
        elif self._are_columns_sure:
            self._append(_row(self._columns, cells), is_row=True)

    def _append(self, text: str, *, is_item: bool = False, is_row: bool = False) -> None:
        if text:
            unit = Unit(text, self._number, self._document, 0, self._heading, self._title)
            unit.is_item, unit.is_row, unit.paragraph = is_item, is_row, self._paragraphs
            unit.in_list = self._lists if self._is_listing and not is_row else 0
            self._units.append(unit)


def _short_item(text: str) -> Iterator[str]:
    """An item of one or two sentences stays whole; a longer one is a paragraph with a number."""
    sentences = [sentence.strip() for sentence in split_sentences(text)]
    yield from [text] if len(sentences) <= 2 else sentences


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


def _row(columns: Sequence[str], cells: Sequence[str]) -> str:
    """A table row read out, each number with its column and its unit."""
    named = [(name, cell) for name, cell in zip(columns, cells, strict=False) if cell]
    unit = next((cell for name, cell in named[1:] if name.casefold() in ("单位", "unit", "units")), "")
    rest = [(name, cell) for name, cell in named[1:] if name.casefold() not in ("单位", "unit", "units")]
    is_english = language_of(" ".join((*columns, *cells))) == "en"
    colon, gap, end = (": ", "; ", ".") if is_english else ("：", "；", "。")
    values = gap.join(f"{name} {_in_unit(cell, unit)}".strip() for name, cell in rest)
    return f"{cells[0]}{colon}{values}{end}" if values else f"{cells[0]}{end}"


def _in_unit(cell: str, unit: str) -> str:
    return f"{cell}{unit}" if unit and cell[-1:].isdigit() else cell


def _plain(text: str) -> str:
    """A line without Markdown: links keep their words, emphasis goes."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\*\*|__|`|^\s*>\s?", "", text).strip()
