"""Citation labels: how they may be written, and how a reader sees them: C1, C2, … in the order of their use.

A model is given its sources by number. Which of them an answer uses, and in which order, is known only as it
is released; so each sentence is renumbered on its way out, after it was checked.
"""

import re
from collections.abc import Sequence

LABEL = re.compile(r"\[\s*C\s*\d{1,4}(?:\s*[,;、-]\s*C?\s*\d{1,4})*\s*\]", re.IGNORECASE)
_NARROW = str.maketrans("［］Ｃ", "[]C")


def narrow(text: str) -> str:
    """The text with full-width labels in the usual form, character for character."""
    return text.translate(_NARROW)


def numbers_in(label: str) -> list[int]:
    """C1, C3 are two; C1-C3 are three. A range too long to be meant names a label that does not exist."""
    numbers = [int(digits) for digits in re.findall(r"\d+", label)]
    if "-" in label and len(numbers) == 2:
        return list(range(numbers[0], numbers[1] + 1))[:65] or [0]
    return numbers


class Numbering:
    """One answer's labels. `order` is the sources' own numbers, in the order in which they are first used."""

    def __init__(self, first: int = 1) -> None:
        self._first = first
        self._order: list[int] = []

    @property
    def order(self) -> Sequence[int]:
        return tuple(self._order)

    def renumbered(self, text: str) -> str:
        """The text with every label as a reader sees it; of several numbers in one label, each its own."""
        parts, end = [], 0
        for found in LABEL.finditer(narrow(text)):
            parts += [text[end : found.start()], self._label(found.group())]
            end = found.end()
        return "".join([*parts, text[end:]])

    def _label(self, label: str) -> str:
        numbers = dict.fromkeys(numbers_in(label))
        self._order += [number for number in numbers if number not in self._order]
        return "".join(f"[C{self._first + self._order.index(number)}]" for number in numbers)
