"""Does the guard keep true answers and stop tampered ones? The labelled set of the tests, in counts.

An answer is let out when each of its sentences passes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nodes.answer.grounding import Grounding, split_sentences
from scripts.eval.own_sets import read_rows
from scripts.eval.report import Cell, Options, Report, Table, share

Row = Mapping[str, Any]
Passes = Callable[[Row], bool]


def evaluate(_options: Options) -> Report:
    evidence = {row["evidence"]: row["passages"] for row in read_rows("grounding/evidence.jsonl")}

    def passes(row: Row) -> bool:
        guard = Grounding(evidence[row["evidence"]], row["question"])
        return all(guard.check(sentence).ok for sentence in split_sentences(row["answer"]))

    return evaluate_rows(read_rows("grounding/true.jsonl"), read_rows("grounding/tampered.jsonl"), passes)


def evaluate_rows(true: Sequence[Row], tampered: Sequence[Row], passes: Passes) -> Report:
    refused = [row for row in true if not passes(row)]
    missed = [row for row in tampered if passes(row)]
    by_hand = [row for row in tampered if row["id"].startswith("hand-")]
    altered = [row for row in tampered if row not in by_hand]
    rows: list[list[Cell]] = [["true answers", len(true), "refused", share(len(refused), len(true))]]
    for name, held in (("by hand", by_hand), ("altered by rule", altered)):
        let_out = sum(row in missed for row in held)
        rows.append([f"tampered, {name}", len(held), "missed", share(let_out, len(held))])
    misses = [{"id": row["id"], "answer": row["answer"]} for row in (*refused, *missed)]
    return Report("grounding", [Table("Guard", ("answers", "rows", "fault", "share"), rows)], misses)
