"""Whether a generated sentence says only what this turn's evidence says. Pure and deterministic.

Checked are figures (amounts with unit, dates, times, ordinals, codes), names of regulations and citation
labels. Form does not matter (1,320 万元 = 1320万 = 13.2 million yuan), value and unit do (20% is not 20). A
sentence that cites passages must find its figures in those passages. What stands only in the user's own
question may be echoed, but not asserted. Not checked: whether a true figure is tied to the right subject in
its passage.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from nodes.answer.figures import Amount, Code, Date, Figure, Ordinal, figures, figures_as_evidence
from nodes.answer.labels import LABEL, narrow, numbers_in
from nodes.answer.numerals import COUNTS, MONEY, collapsed
from nodes.answer.regulations import Named, is_named, without_titles
from nodes.answer.sentences import SentenceBuffer, split_sentences
from nodes.answer.tables import in_declared_units

__all__ = [
    "Grounding",
    "SentenceBuffer",
    "Unsupported",
    "Verdict",
    "check_sentence",
    "split_sentences",
]

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
    """The verdict on one sentence. `evidence_texts` are the passages in the order of their labels.

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
        self._texts = [_Evidence(text) for text in evidence_texts]
        self._question = _Read(question)
        self._labels = _labels(len(evidence_texts) if citations_available is None else citations_available)

    def check(self, sentence: str) -> Verdict:
        """The verdict on one sentence; its citations count for all of it."""
        cited, bad, rest = _read_citations(collapsed(sentence), self._labels)
        texts = [self._texts[at - 1] for at in cited if at <= len(self._texts)] or self._texts
        said = _Read(without_titles(rest))
        known = [text.named for text in (*texts, self._question)]
        unnamed = [name for name in Named(rest).all if not is_named(name, known)]
        return Verdict(
            (
                *(Unsupported("citation", label) for label in bad),
                *(Unsupported("mark", mark) for mark in _OUR_MARK.findall(sentence)),
                *(Unsupported("regulation", name.text) for name in unnamed),
                *self._unsupported_figures(said, texts),
            )
        )

    def _unsupported_figures(self, said: "_Read", texts: Sequence["_Read"]) -> list[Unsupported]:
        missing = [
            figure
            for figure in said.figures
            if not any(text.supports(figure, said) for text in texts) and not _is_mere_tally(figure, texts)
        ]
        echoed = [figure for figure in missing if self._question.supports(figure, said)]
        unsupported = [Unsupported("figure", figure.text) for figure in missing if figure not in echoed]
        if _asserts(said, echoed, missing):
            unsupported += [Unsupported("echo", figure.text) for figure in echoed]
        return unsupported


# Citations and marks

# Marks of the window and the prompt, and labels as an earlier answer shows them.
_OUR_MARK = re.compile(r"[⟦⟧]|\[\\+C\d+\]")
_LOOKS_LIKE_ONE = re.compile(
    r"[\[【(]\s*\\*C\s*\d[^\[\]【】()]*[\]】)]|[\[【]\s*\d{1,3}\s*[\]】]", re.IGNORECASE
)


def _labels(available: int | Collection[str]) -> frozenset[int]:
    if isinstance(available, int):
        return frozenset(range(1, available + 1))
    return frozenset(int(label.strip("[]Cc")) for label in available)


def _read_citations(sentence: str, labels: frozenset[int]) -> tuple[list[int], list[str], str]:
    """(cited numbers, labels that are not available or malformed, the sentence without any)."""
    text = narrow(sentence)
    cited: list[int] = []
    bad: list[str] = []
    for match in LABEL.finditer(text):
        numbers = numbers_in(match.group())
        if labels.issuperset(numbers):
            cited += numbers
        else:
            bad.append(match.group())
    rest = LABEL.sub(" ", text)
    bad += [match.group() for match in _LOOKS_LIKE_ONE.finditer(rest)]
    return cited, bad, _LOOKS_LIKE_ONE.sub(" ", rest)


# Figures


class _Read:
    """A text with what it names and states."""

    read = staticmethod(figures)

    def __init__(self, text: str) -> None:
        text = collapsed(text)
        self.named = Named(text)
        self.figures = self.read(self.named.rest)
        self.says_less = bool(_LESS.search(text))
        self.text = text

    @property
    def known(self) -> Sequence[Figure]:
        return self.figures

    def supports(self, figure: Figure, said: "_Read") -> bool:
        if isinstance(figure, Code) and _stands_alone(figure.value, self.named.squeezed):
            return True
        return any(_supports(known, figure, self.says_less or said.says_less) for known in self.known)


class _Evidence(_Read):
    """A passage. Its titles may support a figure too, and its tables lend their units to bare numbers."""

    read = staticmethod(figures_as_evidence)

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._known = [*self.figures, *in_declared_units(self.named.rest)]

    @property
    def known(self) -> Sequence[Figure]:
        return self._known


_LESS = re.compile(
    r"下降|减少|降低|下滑|亏损|负|跌|缩减|减亏|回落"
    r"|\b(?:fell|fall|drop|decline|decrease|down|loss|lower|negative|shrank)",
    re.IGNORECASE,
)


def _stands_alone(code: str, text: str) -> bool:
    return re.search(rf"(?<![a-z0-9]){re.escape(code)}(?![a-z0-9])", text) is not None


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
    return said == known


def _supports_amount(known: Amount, said: Amount, has_sign_word: bool) -> bool:
    is_equal = said.value == known.value or (has_sign_word and said.value == -known.value)
    return is_equal and _is_same_unit(known, said)


def _is_same_unit(known: Amount, said: Amount) -> bool:
    units = {said.unit, known.unit}
    if len(units) == 1 or units in ({"time", "times"}, {"fold", "times"}):
        return True
    if not said.unit:  # left out: harmless for counts and sums, never for shares
        return known.unit in COUNTS | MONEY | {"age", "day", "workday", "month"}
    if not known.unit:
        return said.unit in COUNTS | {"age"} or (said.unit in MONEY and known.has_magnitude)
    return "each" in units and units <= COUNTS


def _is_bare_year(amount: Amount) -> bool:
    is_plain = not amount.unit and not amount.has_magnitude and amount.value.denominator == 1
    return is_plain and 1900 <= amount.value <= 2199


def _supports_date(known: Date, said: Date) -> bool:
    """A coarser date is supported by a finer one, never the reverse."""
    pairs = (
        (said.year, known.year),
        (said.month, known.month),
        (said.day, known.day),
        (said.quarter, known.quarter),
        (said.half, known.half),
    )
    return all(wanted is None or wanted == found for wanted, found in pairs)


def _supports_ordinal(known: Figure, said: Ordinal) -> bool:
    match known:
        case Ordinal():
            return said.value == known.value and (said.unit == known.unit or "" in (said.unit, known.unit))
        case Date():
            return not said.unit and said.value == known.day
        case Amount():
            return said.value == known.value and known.unit in ("", "day", "each", said.unit)
        case _:
            return False


def _is_mere_tally(figure: Figure, texts: Iterable[_Read]) -> bool:
    """一家公司, 以下两个条件: refused only where the evidence counts the same thing differently."""
    if not isinstance(figure, Amount) or not figure.is_weak:
        return False
    if any(_A_PERIOD[figure.text].search(text.text) for text in texts if figure.text in _A_PERIOD):
        return True
    known = [known for text in texts for known in text.known if isinstance(known, Amount)]
    return not any(known.unit == figure.unit and _counts_same(known, figure) for known in known)


# 一年 may say no more than 每年 does.
_EACH = r"\b(?:per|a|each)\s"
_A_PERIOD = {
    "一年": re.compile(rf"每年|全年|年度|{_EACH}year\b|\bannual", re.IGNORECASE),
    "一个月": re.compile(rf"每月|当月|月租|{_EACH}month\b|\bmonthly", re.IGNORECASE),
    "一天": re.compile(rf"每天|每日|当日|{_EACH}day\b|\bdaily", re.IGNORECASE),
    "一日": re.compile(rf"每天|每日|当日|{_EACH}day\b|\bdaily", re.IGNORECASE),
}


def _counts_same(known: Amount, said: Amount) -> bool:
    return said.unit not in COUNTS or not said.noun or not known.noun or known.noun == said.noun


# Echoes of the question

_ASSERTS_NOTHING = re.compile(
    r"您|你|所述|所问|提到|提问|问|如果|若|假如|倘若|未|没|无|不|并非|超过|低于|高于|少于|多于|大于|小于|达到"
    r"|以上|以下|以内|属于"
    r"|\b(?:your?|ask(?:ed)?|question|if|whether|not|no|cannot|can't|unable|without|exceeds?|exceeding|above"
    r"|below|under|over|more|less|fewer|within|at least|at most)\b",
    re.IGNORECASE,
)


def _asserts(said: _Read, echoed: Sequence[Figure], missing: Sequence[Figure]) -> bool:
    """Whether a sentence states as a fact an amount that only the question says."""
    amounts = [figure for figure in echoed if isinstance(figure, Amount) and not _is_bare_year(figure)]
    known_beside = [
        figure
        for figure in said.figures
        if isinstance(figure, Amount) and figure not in missing and not figure.is_weak
    ]
    return bool(amounts) and not known_beside and not _ASSERTS_NOTHING.search(said.text)
