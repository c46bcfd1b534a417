"""The guard against the labelled set: tampered answers that it misses, true ones that it refuses.

`true.jsonl` and the rows `hand-…` of `tampered.jsonl` are written by hand, the rows `altered-…` are
systematic alterations of true answers. At most 2 tampered may be missed and 3 true ones refused; all are
listed here.
"""

import json
from pathlib import Path

import pytest

from nodes.answer.grounding import Grounding, split_sentences

DATA = Path(__file__).parents[1] / "data" / "grounding"

MISSED: set[str] = {
    "hand-032",  # a figure of the evidence said of something else: not checked within one passage
    "altered-080",  # the unit that a rate is counted by (每兆瓦时 for 每千瓦时) carries no number
}
REFUSED: set[str] = set()


def _rows(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def passages() -> dict[str, list[str]]:
    lines = (DATA / "evidence.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["evidence"]: row["passages"] for row in map(json.loads, lines)}


def _passes(row: dict[str, str], passages: dict[str, list[str]]) -> bool:
    guard = Grounding(passages[row["evidence"]], row["question"])
    return all(guard.check(sentence).ok for sentence in split_sentences(row["answer"]))


def test_the_set_is_large_enough_and_its_ids_are_its_own() -> None:
    true, tampered = _rows("true.jsonl"), _rows("tampered.jsonl")
    assert len(true) >= 150
    assert len(tampered) >= 150
    ids = [row["id"] for row in (*true, *tampered)]
    assert len(ids) == len(set(ids))
    assert len({row["answer"] for row in tampered} & {row["answer"] for row in true}) == 0


def test_tampered_answers_are_caught_but_for_those_listed(passages: dict[str, list[str]]) -> None:
    missed = {row["id"] for row in _rows("tampered.jsonl") if _passes(row, passages)}
    assert missed == MISSED
    assert len(missed) <= 2


def test_true_answers_pass_but_for_those_listed(passages: dict[str, list[str]]) -> None:
    refused = {row["id"] for row in _rows("true.jsonl") if not _passes(row, passages)}
    assert refused == REFUSED
    assert len(refused) <= 3
