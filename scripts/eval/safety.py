"""Is what must be refused refused, and what only looks like it let through? Our own two sets.

The second was written by one who had seen neither the screen nor the first; docs/evaluations.md says what
each was used for.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nodes.reading.safety import screen
from scripts.eval.own_sets import read_rows
from scripts.eval.report import Options, Report, Table, share

Screen = Callable[[str], str | None]
Row = Mapping[str, Any]
SETS = ("safety", "safety_second")


def evaluate(_options: Options) -> Report:
    reports = [evaluate_rows(read_rows(name), screen, of=name) for name in SETS]
    return Report(
        "safety",
        [table for report in reports for table in report.tables],
        [miss for report in reports for miss in report.misses],
    )


def evaluate_rows(rows: Sequence[Row], screened: Screen, of: str = "safety") -> Report:
    """A refusal for another reason than the labelled one counts as a refusal, and is listed as a miss."""
    said = {row["id"]: screened(row["text"]) for row in rows}
    bad, good = _split(rows)
    misses = [
        {"id": row["id"], "text": row["text"], "wanted": row["refuse"], "said": said[row["id"]]}
        for row in rows
        if said[row["id"]] != row["refuse"]
    ]
    return Report(
        "safety",
        [
            Table(
                f"Screen, {of}",
                ("of those to refuse, refused", "of the others, refused"),
                [[_refused(bad, said), _refused(good, said)]],
            ),
            Table(f"By class, {of}", ("language", "class", "label", "refused"), list(_by_class(rows, said))),
        ],
        misses,
    )


def _split(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    return [row for row in rows if row["refuse"]], [row for row in rows if not row["refuse"]]


def _by_class(rows: Sequence[Row], said: Mapping[str, str | None]) -> list[list[str]]:
    lines = []
    for language, kind in dict.fromkeys((row["language"], row["class"]) for row in rows):
        held = [row for row in rows if (row["language"], row["class"]) == (language, kind)]
        label = "refuse" if held[0]["refuse"] else "let through"
        lines.append([language, kind, label, _refused(held, said)])
    return lines


def _refused(rows: Sequence[Row], said: Mapping[str, str | None]) -> str:
    return share(sum(said[row["id"]] is not None for row in rows), len(rows))
