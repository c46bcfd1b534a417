"""Is a text that leans on something unsaid told from one that stands alone, by its own words?

Predicted dependent: the intent needs a `reference`. Labelled dependent: our own rows by hand; a turn of a
public set where the human rewrite says a content word that the turn does not (`words.ContentWords.added`). A
turn can be so without showing it ("What about insurance?" shows it, "What does insurance cost?" does not), so
the public rows are counted once more by whether they show it: a pronoun or demonstrative of a closed list.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from scripts.eval.knowledge import RECEIVED_AT, reader_of, sample_store
from scripts.eval.own_sets import read_rows
from scripts.eval.public_sets import (
    Rewritten,
    read_cast,
    read_cast_resolved,
    read_mtrag_rewrites,
    read_mtrag_un,
)
from scripts.eval.report import Cell, Options, Report, Table, share
from scripts.eval.words import ContentWords

LeansOnUnsaid = Callable[[str], bool]
COLUMNS = ("set", "rows", "dependent", "precision", "recall", "F1")


@dataclass(frozen=True)
class Labelled:
    id: str
    group: str
    text: str
    dependent: bool


def evaluate(options: Options) -> Report:
    with sample_store() as store:
        read_intent = reader_of(store)

        def leans(text: str) -> bool:
            return "reference" in read_intent(text, RECEIVED_AT)["needs"]

        return evaluate_with(leans, options)


def evaluate_with(leans: LeansOnUnsaid, options: Options) -> Report:
    own = [labelled(row) for row in read_rows("follow_ups")]
    sets: dict[str, Sequence[Labelled]] = {
        "own, zh": [row for row in own if row.group.startswith("zh")],
        "own, en": [row for row in own if row.group.startswith("en")],
    }
    tables = [by_class(own, leans)]
    left_out = ["the public sets (no --data)"]
    if options.data:
        public = public_sets(options)
        sets |= public
        tables.append(alone_alarms(options, leans))
        left_out = [] if "CAsT" in public else ["CAsT (its raw topics are not in the folder)"]
    scores = Table("Detection", COLUMNS, [score(name, rows, leans) for name, rows in sets.items()])
    misses = [
        {"set": name, "id": row.id, "text": row.text, "dependent": row.dependent}
        for name, rows in sets.items()
        for row in rows
        if leans(row.text) != row.dependent
    ]
    return Report("follow_ups", [scores, *tables], misses, left_out)


def labelled(row: dict[str, Any]) -> Labelled:
    return Labelled(row["id"], f"{row['language']} {row['class']}", row["text"], row["dependent"])


def public_sets(options: Options) -> dict[str, Sequence[Labelled]]:
    assert options.data
    words = ContentWords()
    rewrites = {"MTRAG rewrites": read_mtrag_rewrites(options.data), "CAsT": read_cast(options.data)}
    sets: dict[str, Sequence[Labelled]] = {}
    for name, rows in rewrites.items():
        if rows:
            made = [from_rewrite(row, words) for row in rows]
            sets[name] = made
            sets[f"{name}, dependent and showing it, or alone"] = [
                row for row in made if shows_it(row.text) or not row.dependent
            ]
    return sets


def from_rewrite(row: Rewritten, words: ContentWords) -> Labelled:
    return Labelled(row.id, "public", row.text, bool(words.added(row.text, row.rewrite)))


SHOWING = re.compile(
    r"\b(?:it|its|they|them|their|theirs|this|that|these|those|he|him|his|she|her|there|one|ones|such|same"
    r"|former|latter|others?)\b|^(?:and|or|but|so|what about|how about|why)\b",
    re.IGNORECASE,
)


def shows_it(text: str) -> bool:
    return SHOWING.search(text) is not None


def score(name: str, rows: Iterable[Labelled], leans: LeansOnUnsaid) -> list[Cell]:
    said = [(row.dependent, leans(row.text)) for row in rows]
    hits = said.count((True, True))
    false, missed = said.count((False, True)), said.count((True, False))
    f1 = 2 * hits / (2 * hits + false + missed) if hits else 0.0
    return [
        name,
        len(said),
        hits + missed,
        share(hits, hits + false),
        share(hits, hits + missed),
        f1,
    ]


def by_class(rows: Sequence[Labelled], leans: LeansOnUnsaid) -> Table:
    groups = list(dict.fromkeys((row.dependent, row.group) for row in rows))
    lines: list[list[Cell]] = []
    for dependent, group in groups:
        held = [row for row in rows if (row.dependent, row.group) == (dependent, group)]
        right = sum(leans(row.text) == dependent for row in held)
        lines.append([group, "dependent" if dependent else "alone", share(right, len(held))])
    return Table("Own set by class: told rightly", ("class", "label", "right"), lines)


def alone_alarms(options: Options, leans: LeansOnUnsaid) -> Table:
    """How often a text is asked about that a person has made to stand alone, or of a kind of MTRAG-UN."""
    assert options.data
    kinds: dict[str, Sequence[str]] = {
        "MTRAG human rewrites": [row.rewrite for row in read_mtrag_rewrites(options.data)],
        "CAsT resolved utterances": list(read_cast_resolved(options.data).values()),
        **{
            f"MTRAG-UN turns labelled {kind}": [
                task.text for task in read_mtrag_un(options.data) if task.turn_kind == kind
            ]
            for kind in ("N/A", "Follow-up", "Clarification")
        },
    }
    rows = [[name, share(sum(map(leans, texts)), len(texts))] for name, texts in kinds.items()]
    return Table("Marked as leaning on something unsaid", ("texts", "marked"), rows)
