"""Is what must be refused refused, and what only looks like it let through? Our own set."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nodes.reading.safety import screen
from scripts.eval.own_sets import read_rows
from scripts.eval.report import Options, Report, Table, share

Screen = Callable[[str], str | None]


def evaluate(_options: Options) -> Report:
    return evaluate_rows(read_rows("safety"), screen)


def evaluate_rows(rows: Sequence[Mapping[str, Any]], screened: Screen) -> Report:
    """A refusal for another reason than the labelled one counts as a refusal, and is listed as a miss."""
    kinds = list(dict.fromkeys((row["language"], row["class"]) for row in rows))
    said = {row["id"]: screened(row["text"]) for row in rows}
    lines = []
    for language, kind in kinds:
        held = [row for row in rows if (row["language"], row["class"]) == (language, kind)]
        refused = sum(said[row["id"]] is not None for row in held)
        lines.append(
            [language, kind, "refuse" if held[0]["refuse"] else "let through", share(refused, len(held))]
        )
    bad = [row for row in rows if row["refuse"]]
    good = [row for row in rows if not row["refuse"]]
    caught = sum(said[row["id"]] is not None for row in bad)
    wrongly = sum(said[row["id"]] is not None for row in good)
    misses = [
        {"id": row["id"], "text": row["text"], "wanted": row["refuse"], "said": said[row["id"]]}
        for row in rows
        if said[row["id"]] != row["refuse"]
    ]
    return Report(
        "safety",
        [
            Table(
                "Screen",
                ("of those to refuse, refused", "of the others, refused"),
                [[share(caught, len(bad)), share(wrongly, len(good))]],
            ),
            Table("By class", ("language", "class", "label", "refused"), lines),
        ],
        misses,
    )
