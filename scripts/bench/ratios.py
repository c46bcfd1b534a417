"""Ratios of interleaved rounds: load disturbs all contestants of a round alike. Pure."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Round = Mapping[str, float]  # contestant -> what one round took it


@dataclass(frozen=True)
class Ratio:
    """Median and quartiles of the rounds' ratios."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}–{self.high:.2f})"


def paired(rounds: Sequence[Round], name: str, base: str) -> Ratio | None:
    """How much more `name` took than `base`, round by round; None where either was not measured."""
    found = [each[name] / each[base] for each in rounds if name in each and each.get(base, 0) > 0]
    if not found:
        return None
    if len(found) == 1:
        return Ratio(found[0], found[0], found[0])
    low, median, high = statistics.quantiles(found, n=4, method="inclusive")
    return Ratio(median, low, high)


def order(names: Sequence[str], number: int) -> list[str]:
    """The contestants of a round: each begins as often as any other, and follows its neighbours both ways."""
    if not names:
        return []
    start = number // 2 % len(names)
    turned = [*names[start:], *names[:start]]
    return turned if number % 2 == 0 else turned[::-1]


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; None is a dash."""
    lines = [
        head,
        ["---"] * len(head),
        *([("–" if cell is None else str(cell)) for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
