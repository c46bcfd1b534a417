"""Which units a table lends to its bare numbers: from a unit line, a column, a row or a column of units."""

import re
from collections.abc import Sequence
from fractions import Fraction

from nodes.answer.figures import Amount, Figure, figures
from nodes.answer.numerals import UNIT, magnitude_value, normalised, unit_of

# What one number of a table counts: (factor, canonical unit).
Scale = tuple[Fraction, str]


def in_declared_units(text: str) -> list[Figure]:
    """The bare numbers of `text` once more, in the units that its tables or a unit line declare."""
    lent: list[Figure] = []
    declared: Scale | None = None
    columns: list[Scale | None] = []
    for line in normalised(text).splitlines():
        found = _UNIT_LINE.search(line)
        declared = _scale(found) if found else declared
        cells = line.strip().strip("|").split("|") if "|" in line else []
        scales = [_scale(_IN_BRACKETS.search(cell)) for cell in cells]
        is_heading = bool(cells) and not columns and any(scales)
        columns = scales if is_heading else columns if cells else []
        if not is_heading:
            lent += _in_row(cells or [line], _row_scale(cells), columns, declared)
    return lent


_UNIT_WORDS = (
    r"(?P<prefix>RMB|CNY|人民币|USD|US\$|¥|\$)?\s*(?P<mag>[十百千]?[万亿]|thousand|million|billion)?\s*"
    rf"(?P<unit>{UNIT})?"
)
_UNIT_LINE = re.compile(
    rf"(?:单位\s*(?:[:为是]|均为)|\bunits?\s*:|\bin units of)\s*{_UNIT_WORDS}", re.IGNORECASE
)
_IN_BRACKETS = re.compile(rf"\(\s*(?:单位\s*[::]?\s*|in\s+)?{_UNIT_WORDS}\s*\)", re.IGNORECASE)
_UNIT_CELL = re.compile(rf"\s*{_UNIT_WORDS}\s*", re.IGNORECASE)


def _row_scale(cells: Sequence[str]) -> Scale | None:
    """The row's own unit: in its first cell in brackets, or a cell that is nothing but a unit."""
    if not cells:
        return None
    of_unit_cell = next((scale for cell in cells[1:] if (scale := _scale(_UNIT_CELL.fullmatch(cell)))), None)
    return _scale(_IN_BRACKETS.search(cells[0])) or of_unit_cell


def _in_row(
    cells: Sequence[str], row: Scale | None, columns: Sequence[Scale | None], declared: Scale | None
) -> list[Figure]:
    """The row's unit goes first, then its column's, then the first column's, then the unit line's."""
    table = columns[0] if columns else None
    lent: list[Figure] = []
    for at, cell in enumerate(cells):
        scale = row or (columns[at] if at < len(columns) else None) or table or declared
        if scale:
            lent += [_lent(figure, scale) for figure in figures(cell) if _is_bare(figure)]
    return lent


def _scale(match: re.Match[str] | None) -> Scale | None:
    if match is None:
        return None
    unit, factor = unit_of(match["unit"])
    prefix = (match["prefix"] or "").upper()
    unit = unit or ({"USD": "USD", "US$": "USD", "$": "USD"}.get(prefix, "CNY") if prefix else "")
    return (factor * magnitude_value(match["mag"] or ""), unit) if unit or match["mag"] else None


def _is_bare(figure: Figure) -> bool:
    return isinstance(figure, Amount) and not figure.unit and not figure.has_magnitude


def _lent(figure: Figure, scale: Scale) -> Figure:
    value = figure.value if isinstance(figure, Amount) else Fraction(0)
    return Amount(value * scale[0], scale[1], has_magnitude=scale[0] > 1)
