"""Whether a generated sentence says only what this turn's evidence says. Pure and deterministic.

Checked are figures (amounts with unit, dates, times, ordinals, codes), names of regulations and citation labels.
Form does not matter (1,320 万元 = 1320万 = 13.2 million yuan), value and unit do (20% is not 20). A sentence that
cites passages must find its figures in those passages. What stands only in the user's own question may be echoed,
but not asserted. What is *not* checked: whether a true figure is tied to the right subject within one passage.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from nodes.answer.figures import Amount, Code, Date, Figure, Ordinal, Time, figures
from nodes.answer.numerals import COUNTS, MONEY, UNIT, magnitude_value, normalised, unit_of
from nodes.answer.sentences import SentenceBuffer, split_sentences

__all__ = ["Grounding", "SentenceBuffer", "Unsupported", "Verdict", "check_sentence", "split_sentences"]

What = Literal["citation", "figure", "regulation", "echo", "mark"]


@dataclass(frozen=True)
class Unsupported:
    """One thing a sentence says without support. `text` is model output: it belongs in no log."""

    what: What
    text: str


@dataclass(frozen=True)
class Verdict:
    """`ok` when nothing is unsupported."""

    unsupported: tuple[Unsupported, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.unsupported


def check_sentence(
    sentence: str, *, evidence_texts: Sequence[str], question: str, citations_available: int | Collection[str]
) -> Verdict:
    """The verdict on one sentence. `evidence_texts` are the passages in the order of their labels C1, C2, …

    `citations_available` is how many labels there are, or the labels themselves.
    """
    return Grounding(evidence_texts, question, citations_available).check(sentence)


class Grounding:
    """The evidence of one turn, read once, against which its sentences are checked."""

    def __init__(
        self,
        evidence_texts: Sequence[str],
        question: str,
        citations_available: int | Collection[str] | None = None,
    ) -> None:
        self._texts = [_Read(text, is_evidence=True) for text in evidence_texts]
        self._question = _Read(question)
        self._labels = _labels(len(evidence_texts) if citations_available is None else citations_available)

    def check(self, sentence: str) -> Verdict:
        """The verdict on one sentence; its citations count for all of it."""
        cited, bad, rest = _read_citations(sentence, self._labels)
        texts = [self._texts[at - 1] for at in cited if at <= len(self._texts)] or self._texts
        said = _Read(rest)
        unsupported = [Unsupported("citation", label) for label in bad]
        unsupported += [Unsupported("mark", mark) for mark in _FOREIGN_MARK.findall(sentence)]
        unsupported += [
            Unsupported("regulation", name.text) for name in said.names if not self._names(name, texts)
        ]
        unsupported += self._unsupported_figures(said, texts)
        return Verdict(tuple(unsupported))

    def _names(self, name: "_Name", texts: Iterable["_Read"]) -> bool:
        return any(name.stands_in(text) for text in (*texts, self._question))

    def _unsupported_figures(self, said: "_Read", texts: Sequence["_Read"]) -> list[Unsupported]:
        missing = [
            figure for figure in said.figures if not any(text.supports(figure, said) for text in texts)
        ]
        missing = [figure for figure in missing if not _is_mere_tally(figure, texts)]
        echoed = [figure for figure in missing if self._question.supports(figure, said)]
        unsupported = [Unsupported("figure", figure.text) for figure in missing if figure not in echoed]
        if _asserts(said, echoed, missing):
            unsupported += [Unsupported("echo", figure.text) for figure in echoed]
        return unsupported


# What a sentence may not contain: our window's and prompt's marks, and labels copied from an earlier answer.
_FOREIGN_MARK = re.compile(r"[⟦⟧]|\[\\+C\d+\]")
_CITATION = re.compile(r"\[\s*C\s*\d+(?:\s*[,;、-]\s*C?\s*\d+)*\s*\]", re.IGNORECASE)
_LOOKS_LIKE_CITATION = re.compile(
    r"[\[【(]\s*\\*C\s*\d[^\[\]【】()]*[\]】)]|[\[【]\s*\d{1,3}\s*[\]】]", re.IGNORECASE
)


def _labels(available: int | Collection[str]) -> frozenset[int]:
    if isinstance(available, int):
        return frozenset(range(1, available + 1))
    return frozenset(int(label.strip("[]Cc")) for label in available)


def _read_citations(sentence: str, labels: frozenset[int]) -> tuple[list[int], list[str], str]:
    """(cited numbers, labels that are not available or malformed, the sentence without any)."""
    text = sentence.replace("［", "[").replace("］", "]").replace("Ｃ", "C")
    cited: list[int] = []
    bad: list[str] = []
    for match in _CITATION.finditer(text):
        numbers = [int(number) for number in re.findall(r"\d+", match.group())]
        is_range = "-" in match.group() and len(numbers) == 2
        numbers = list(range(numbers[0], numbers[1] + 1))[:64] if is_range else numbers
        (cited.extend(numbers) if numbers and labels.issuperset(numbers) else bad.append(match.group()))
    rest = _CITATION.sub(" ", text)
    bad += [match.group() for match in _LOOKS_LIKE_CITATION.finditer(rest)]
    return cited, bad, _LOOKS_LIKE_CITATION.sub(" ", rest)


# Names of regulations


@dataclass(frozen=True)
class _Name:
    """A regulation as named: by title in 《》, by document number, or by the end of a title without brackets."""

    text: str
    kind: Literal["title", "number", "plain"]
    issuer: str = ""
    year: str = ""
    number: str = ""

    def stands_in(self, text: "_Read") -> bool:
        if self.kind == "number":
            return any(_same_document(self, other) for other in text.names if other.kind == "number")
        return _squeezed(self.text.strip("《》")) in text.squeezed


_TITLE = re.compile(r"《([^《》\n]{1,80})》")
_DOCUMENT_NUMBER = re.compile(
    r"(?P<issuer>[\u4e00-\u9fffA-Za-z]{0,12})\s*[〔\[【(（]\s*(?P<year>\d{4})\s*[〕\]】)）]\s*"
    r"(?:第|No\.?\s*)?\s*(?P<number>\d{1,5})\s*(?:号|(?![\d%]))",
    re.IGNORECASE,
)
_YEAR_NUMBER = re.compile(
    r"(?P<issuer>[\u4e00-\u9fff]{0,12}?)\s*(?P<year>(?:19|20)\d{2})\s*年\s*第\s*(?P<number>\d{1,5})\s*号"
)
_PLAIN_TITLE = re.compile(
    r"[\u4e00-\u9fff]{2}(?:管理办法|实施细则|实施办法|暂行办法|暂行规定|管理规定|管理条例|实施条例|实施方案)"
)
_ENGLISH_TITLE = re.compile(
    r"\b(?:[A-Z][A-Za-z-]+|of|on|for|and|the)(?:[ ](?:[A-Z][A-Za-z-]+|of|on|for|and|the|in)){0,10}?[ ]"
    r"(?:Measures|Regulations?|Rules|Act|Law|Provisions|Guidelines|Ordinance|Decree)\b"
)
# What may stand before the issuer of a document without being part of its name.
_LEAD = re.compile(
    r"^.*(?:根据|依据|依照|按照|参照|遵照|执行|印发|发布|文号|文件|详见|参见|规定|通知|号为|以及|即|为|见|由|按|依|及|和|与|或|在|对|的|了|是)"
)


def _names_in(text: str) -> tuple[list[_Name], str]:
    """The regulations that `text` names, and the text without the document numbers."""
    names: list[_Name] = []
    for pattern in (_DOCUMENT_NUMBER, _YEAR_NUMBER):
        for match in pattern.finditer(text):
            issuer = _LEAD.sub("", match["issuer"])
            names.append(_Name(match.group(), "number", issuer, match["year"], str(int(match["number"]))))
        text = pattern.sub(" ", text)
    names += [_Name(match.group(), "title") for match in _TITLE.finditer(text)]
    outside = _TITLE.sub(" ", text)
    names += [_Name(match.group(), "plain") for match in _PLAIN_TITLE.finditer(outside)]
    return names, text


def _same_document(said: _Name, known: _Name) -> bool:
    if (said.year, said.number) != (known.year, known.number):
        return False
    if not said.issuer or said.issuer.isascii() or said.issuer == known.issuer:
        return True
    # Words that are not in the list of leads may still stand before either name.
    return len(known.issuer) >= 2 and said.issuer.endswith(known.issuer)


def _squeezed(text: str) -> str:
    return re.sub(r"[\s《》“”\"'·]", "", normalised(text)).casefold()


# Figures


class _Read:
    """A text with what it names and states. As evidence, tables lend their declared units to bare numbers."""

    def __init__(self, text: str, *, is_evidence: bool = False) -> None:
        self.names, rest = _names_in(normalised_brackets(text))
        # A sentence's titles are checked as names; an evidence's titles may also support a year or a figure.
        stated = figures(rest if is_evidence else _TITLE.sub(" ", rest))
        self.figures = stated
        self.squeezed = _squeezed(text)
        self.known: list[Figure] = [*stated, *_in_declared_units(rest)] if is_evidence else stated
        self.says_less = bool(_LESS.search(text))
        self.lowered = text.casefold()

    def supports(self, figure: Figure, said: "_Read") -> bool:
        if isinstance(figure, Code):
            return any(figure == known for known in self.known) or _stands_alone(figure.value, self.squeezed)
        return any(_supports(known, figure, self.says_less or said.says_less) for known in self.known)


_LESS = re.compile(
    r"下降|减少|降低|下滑|亏损|负|跌|缩减|减亏|回落|\b(?:fell|fall|drop|decline|decrease|down|loss|lower|negative|shrank)",
    re.IGNORECASE,
)


def normalised_brackets(text: str) -> str:
    return text.replace("［", "[").replace("］", "]").replace("﹝", "〔").replace("﹞", "〕")


def _stands_alone(code: str, squeezed: str) -> bool:
    code = re.sub(r"\s", "", code)
    return re.search(rf"(?<![a-z0-9]){re.escape(code)}(?![a-z0-9])", squeezed) is not None


def _supports(known: Figure, said: Figure, has_sign_word: bool) -> bool:
    match said, known:
        case Amount(), Amount():
            return _supports_amount(known, said, has_sign_word)
        case Amount(), Date():
            return _is_bare_year(said) and known.year == said.value
        case Date(), Amount():
            return _is_bare_year(known) and said == Date(int(known.value))
        case Date(), Date():
            return _supports_date(known, said)
        case Ordinal(), _:
            return _supports_ordinal(known, said)
        case Time(), Time():
            return said == known
        case _:
            return False


def _supports_amount(known: Amount, said: Amount, has_sign_word: bool) -> bool:
    is_equal = said.value == known.value or (has_sign_word and said.value == -known.value)
    return is_equal and _same_unit(known, said)


def _same_unit(known: Amount, said: Amount) -> bool:
    if (
        said.unit == known.unit
        or {said.unit, known.unit} == {"time", "times"}
        or {said.unit, known.unit} == {"fold", "times"}
    ):
        return True
    if not said.unit:  # the unit is left out: harmless for counts and sums, never for shares
        return known.unit in COUNTS | MONEY | {"age", "day", "workday", "month"}
    if not known.unit:
        return said.unit in COUNTS | {"age"} or (said.unit in MONEY and known.has_magnitude)
    return "each" in (said.unit, known.unit) and {said.unit, known.unit} <= COUNTS


def _is_bare_year(amount: Amount) -> bool:
    return (
        not amount.unit
        and not amount.has_magnitude
        and amount.value.denominator == 1
        and 1900 <= amount.value <= 2199
    )


def _supports_date(known: Date, said: Date) -> bool:
    pairs = (
        (said.year, known.year),
        (said.month, known.month),
        (said.day, known.day),
        (said.quarter, known.quarter),
        (said.half, known.half),
    )
    return all(wanted is None or wanted == found for wanted, found in pairs)


def _supports_ordinal(known: Figure, said: Ordinal) -> bool:
    if isinstance(known, Ordinal):
        return said.value == known.value and (said.unit == known.unit or "" in (said.unit, known.unit))
    if isinstance(known, Date):
        return not said.unit and said.value == known.day
    is_counted = isinstance(known, Amount) and known.unit in ("", "day", "each", said.unit)
    return is_counted and isinstance(known, Amount) and said.value == known.value


def _is_mere_tally(figure: Figure, texts: Iterable[_Read]) -> bool:
    """一家公司, 以下两个条件: refused only where the evidence counts the same thing differently."""
    if not isinstance(figure, Amount) or not figure.is_weak:
        return False
    known = [known for text in texts for known in text.known if isinstance(known, Amount)]
    return not any(known.unit == figure.unit and _counts_same(known, figure) for known in known)


def _counts_same(known: Amount, said: Amount) -> bool:
    return said.unit not in COUNTS or not said.noun or not known.noun or known.noun == said.noun


# Echoes of the question

_NO_ASSERTION = re.compile(
    r"您|你|所述|所问|提到|提问|问|如果|若|假如|倘若|未|没有|没|无法|无|不|并非|超过|低于|高于|少于|多于|大于|小于|达到|以上|以下|以内"
    r"|属于|\b(?:your?|ask(?:ed)?|question|if|whether|not|no|cannot|can't|unable|without|exceeds?|exceeding|above|below|under|over"
    r"|more|less|fewer|within|at least|at most)\b",
    re.IGNORECASE,
)


def _asserts(said: _Read, echoed: Sequence[Figure], missing: Sequence[Figure]) -> bool:
    """Whether a sentence states as a fact what only the question says: an amount, with nothing known beside it."""
    amounts = [figure for figure in echoed if isinstance(figure, Amount) and not _is_bare_year(figure)]
    known_beside = [
        figure
        for figure in said.figures
        if isinstance(figure, Amount) and figure not in missing and not figure.is_weak
    ]
    return bool(amounts) and not known_beside and not _NO_ASSERTION.search(said.lowered)


# Tables

_UNIT_NAME = rf"(?:(?P<prefix>RMB|CNY|人民币|USD|US\$|¥|\$)\s*)?(?P<mag>[十百千]?[万亿]|thousand|million|billion)?\s*(?P<unit>{UNIT})?"
_DECLARED = re.compile(
    rf"单位\s*[::]\s*{_UNIT_NAME}|\bunits?\s*[::]\s*{_UNIT_NAME.replace('?P<', '?P<e')}", re.IGNORECASE
)
_HEADER_UNIT = re.compile(rf"[((]\s*(?:单位\s*[::]?\s*)?{_UNIT_NAME}\s*[))]", re.IGNORECASE)


_Unit = tuple[Fraction, str]


def _in_declared_units(text: str) -> list[Figure]:
    """The bare numbers of tables in the unit that a heading line (单位:万元), their row or column declares."""
    lent: list[Figure] = []
    declared: _Unit | None = None
    columns: list[_Unit | None] = []
    for line in normalised(text).splitlines():
        found = _DECLARED.search(line)
        declared = _declared_unit(found) if found else declared
        cells = line.strip().strip("|").split("|") if "|" in line else []
        units = [_column_unit(cell) for cell in cells]
        is_heading = bool(cells) and not columns and any(units)
        columns = units if is_heading else columns if cells else []
        if not is_heading:
            lent += _lent_in_row(cells or [line], units, columns, declared)
    return lent


def _lent_in_row(
    cells: Sequence[str], own: Sequence[_Unit | None], columns: Sequence[_Unit | None], declared: _Unit | None
) -> list[Figure]:
    """The row's own unit goes before the column's, that before the table's first column, that before 单位:."""
    row, table = (own[0] if own else None), (columns[0] if columns else None)
    lent: list[Figure] = []
    for at, cell in enumerate(cells):
        unit = row or (columns[at] if at < len(columns) else None) or table or declared
        lent += [_lent(figure, unit) for figure in figures(cell) if unit and _takes_unit(figure)]
    return lent


def _column_unit(cell: str) -> _Unit | None:
    match = _HEADER_UNIT.search(cell)
    return _declared_unit(match) if match else None


def _declared_unit(match: re.Match[str]) -> _Unit | None:
    groups = {name.removeprefix("e"): value for name, value in match.groupdict().items() if value}
    unit, factor = unit_of(groups.get("unit"))
    unit = unit or (unit_of("cny")[0] if groups.get("prefix") in ("RMB", "CNY", "人民币", "¥") else "")
    return (factor * magnitude_value(groups.get("mag", "")), unit) if unit or "mag" in groups else None


def _takes_unit(figure: Figure) -> bool:
    return isinstance(figure, Amount) and not figure.unit and not figure.has_magnitude


def _lent(figure: Figure, unit: _Unit | None) -> Figure:
    if unit is None or not isinstance(figure, Amount):
        return figure
    return Amount(figure.value * unit[0], unit[1], has_magnitude=True)
