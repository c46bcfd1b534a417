"""What an evaluation hands back: tables of counts, every miss, and what was left out and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Cell = str | int | float


@dataclass(frozen=True)
class Options:
    """`data` is the folder of the public sets; without it only our own sets are used.

    `embeddings` is as the setting EMBEDDINGS; `vectors` a folder where vectors are kept between two runs.
    `model_python` is the Python that has a local model, `sample` how many rows of each set are drawn
    (of the sets to search in: the first passages or tasks), and
    `minutes` how long each part may take: rows stand in a drawn order, and what is not reached is left out.
    """

    data: Path | None = None
    model: str | None = None
    model_python: Path | None = None
    sample: int | None = None
    minutes: float | None = None
    embeddings: str | None = None
    vectors: Path | None = None


@dataclass(frozen=True)
class Table:
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Report:
    name: str
    tables: Sequence[Table]
    misses: Sequence[Mapping[str, object]] = ()
    left_out: Sequence[str] = field(default=())


def share(part: int, whole: int) -> str:
    """A part of a whole as the reader can check it: the ratio, then both counts."""
    return f"{part / whole:.3f} ({part}/{whole})" if whole else "- (0/0)"


def as_text(report: Report, *, with_misses: bool = False) -> str:
    """Markdown, so that a table goes into the docs as it stands."""
    parts = [f"## {report.name}", *map(table_text, report.tables)]
    parts += [f"Left out: {reason}" for reason in report.left_out]
    if with_misses:
        parts.append("\n".join("- " + _line(miss) for miss in report.misses) or "No misses.")
    return "\n\n".join(parts)


def table_text(table: Table) -> str:
    lines = [
        table.title,
        "",
        _row(table.columns),
        _row(["---"] * len(table.columns)),
        *map(_row, table.rows),
    ]
    return "\n".join(lines)


def _row(cells: Sequence[Cell]) -> str:
    return "| " + " | ".join(f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in cells) + " |"


def _line(miss: Mapping[str, object]) -> str:
    return "; ".join(f"{name}: {value}" for name, value in miss.items())
