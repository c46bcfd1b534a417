"""Ranges that a rule is limited to: 5000元以上5万元以下, 满1年不满10年, more than 3 days. Pure."""

import re
import unicodedata
from fractions import Fraction

from nodes.answer.figures import Amount, figures

_LEAST_BEFORE = re.compile(
    r"(?:不低于|不少于|(?<!不)超过|高于|大于|(?<!不)满|\b(?:over|above|from|at least|more than)\s)$", re.I
)
_LEAST_AFTER = re.compile(r"\s*(?:\(含[^)]{0,3}\))?(?:以上|起|or more\b|and above\b)", re.I)
_MOST_BEFORE = re.compile(
    r"(?:不满|不足|不超过|低于|少于|小于|至|到|[-~～—–]|\b(?:under|below|up to|less than|to)\s)$", re.I
)
_MOST_AFTER = re.compile(r"\s*(?:\(不?含[^)]{0,3}\))?(?:以下|以内|or less\b|and below\b)", re.I)


def range_holds(asked: Amount, rule: str) -> bool | None:
    """Whether the one range of that unit which `rule` tells holds the amount. Bounds count as within.

    None where it tells none, or several: then it speaks for several amounts.
    """
    text, end = unicodedata.normalize("NFKC", rule), 0
    least: list[Fraction] = []
    most: list[Fraction] = []
    for figure in figures(text):
        start = text.find(figure.text, end)
        if not isinstance(figure, Amount) or figure.unit != asked.unit or start < 0:
            continue
        end = start + len(figure.text)
        if _MOST_AFTER.match(text, end) or _MOST_BEFORE.search(text[:start]):
            most.append(figure.value)
        elif _LEAST_AFTER.match(text, end) or _LEAST_BEFORE.search(text[:start]):
            least.append(figure.value)
    if max(len(least), len(most)) != 1 or (least and most and least[0] >= most[0]):
        return None
    return all(one <= asked.value for one in least) and all(asked.value <= one for one in most)
