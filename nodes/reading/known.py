"""What else was understood of a text when it is searched for words that lean on something unsaid."""

from collections.abc import Callable
from dataclasses import dataclass

Span = tuple[int, int]


@dataclass(frozen=True)
class Known:
    companies: bool
    periods: bool
    metrics: bool

    @property
    def anything(self) -> bool:
        return self.companies or self.periods or self.metrics

    @property
    def names_all(self) -> bool:
        return self.companies and self.periods and self.metrics

    @property
    def names_a_figure(self) -> bool:
        """A company's figure: only its period may be missing, and that can be asked by name."""
        return self.companies and self.metrics


Finder = Callable[[str, Known], Span | None]
