"""What counts as near by meaning, and where it goes beside what words found. Vectors made by hand."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.contracts import Caller
from nodes.retrieve.access import DocumentAccess
from nodes.retrieve.dense import BESIDE_WORDS, FEWEST, NEAR, DenseIndex, is_in, join
from nodes.retrieve.documents import Chunk, Record, Snapshot
from nodes.retrieve.index import Hit

PLAIN = Caller("", "")
GRANTED = Caller("", "", frozenset({"audit"}))
QUESTION = np.array([1.0, 0.0], dtype=np.float32)
USUAL = np.array([[0.0, 0.1], [0.0, -0.1]], dtype=np.float32)  # of mean 0 and spread 0.1 for each chunk


def index_of(
    scores: list[float],
    *,
    texts: dict[int, str] | None = None,
    restricted: tuple[int, ...] = (),
    usual: Any = USUAL,
    until: dict[int, str] | None = None,
) -> DenseIndex:
    """One document of one chunk for each score against QUESTION."""
    records = [
        Record(
            f"d{at:03}",
            "1",
            "",
            "set",
            DocumentAccess("RESTRICTED", frozenset({"audit"})) if at in restricted else DocumentAccess(),
            valid_until=(until or {}).get(at),
        )
        for at in range(len(scores))
    ]
    chunks = [(at, Chunk(0, 5), (texts or {}).get(at, "一段中文")) for at in range(len(scores))]
    rows = np.array([(score, 1.0) for score in scores], dtype=np.float32).reshape(-1, 2)
    return DenseIndex(Snapshot("v", records, chunks), rows, {"zh": usual, "en": usual})


def found(index: DenseIndex, caller: Caller = PLAIN, day: str | None = None) -> list[int]:
    return [hit.position for hit in index.search(QUESTION, "zh", caller=caller, on_date=day)]


EVEN = [0.02 * (at % 3) for at in range(30)]


def test_what_stands_far_above_its_peers_is_found_and_nothing_else() -> None:
    assert found(index_of([*EVEN, 0.9])) == [30]
    assert found(index_of(EVEN)) == []


def test_a_score_above_all_others_is_not_found_unless_it_is_above_its_own_usual_one() -> None:
    """A passage that is as near to everything says nothing about this question."""
    near_to_all = np.array([[1.0, 0.1], [1.0, -0.1]], dtype=np.float32)
    assert found(index_of([*EVEN, 0.9], usual=near_to_all)) == []


def test_the_more_peers_the_further_the_best_must_stand_out() -> None:
    """The best of many reaches further above their mean although it has nothing to do with the question."""

    def nearness(count: int) -> float:
        index = index_of([*([0.0, 0.04] * (count // 2)), 0.2])
        near = index.nearness(QUESTION, "zh", eligible=np.ones(count + 1, dtype=bool))
        scores = np.array([*([0.0, 0.04] * (count // 2)), 0.2])
        return float(near[-1]) - 0.2 / 0.1 - float((0.2 - scores.mean()) / scores.std())

    assert nearness(20) == pytest.approx(-math.sqrt(2 * math.log(21)), abs=0.01)
    assert nearness(2000) == pytest.approx(-math.sqrt(2 * math.log(2001)), abs=0.01)


def test_nothing_is_found_among_fewer_than_can_be_compared() -> None:
    few = [0.0, 0.04] * (FEWEST // 2)
    assert found(index_of([*few[2:], 0.9])) == []
    assert found(index_of([*few, *few, 0.9])) == [2 * len(few)]


def test_equal_scores_are_no_finding_and_no_fault() -> None:
    assert found(index_of([0.5] * 40)) == []
    assert found(index_of([])) == []


def test_passages_are_compared_with_those_of_their_language() -> None:
    """The question's own language scores higher as a whole: among all, the English one is in the middle."""
    english = dict.fromkeys(range(30, 61), "some English words here")
    scores = [0.2 + 0.02 * (at % 3) for at in range(30)] + EVEN
    assert found(index_of([*scores, 0.22], texts=english)) == [60]
    assert found(index_of([*scores, 0.22])) == []


def test_who_may_not_see_a_document_is_told_nothing_of_it() -> None:
    index = index_of([*EVEN, 0.9, 0.4], restricted=(30,))
    assert found(index, GRANTED) == [30]
    assert found(index, PLAIN) == [31]  # beside the hidden one it would not stand out


def test_what_no_longer_holds_is_not_found_and_shapes_nothing() -> None:
    index = index_of([*EVEN, 0.9, 0.4], until={30: "2024-12-31"})
    assert found(index, day="2024-06-01") == [30]
    assert found(index, day="2026-06-01") == [31]


@given(
    st.lists(st.floats(-1, 1, width=16), min_size=9, max_size=40),
    st.lists(st.tuples(st.integers(0, 40), st.floats(-1, 1, width=16)), max_size=8),
)
def test_hidden_documents_change_neither_what_is_found_nor_its_scores(
    seen: list[float], hidden: list[tuple[int, float]]
) -> None:
    without = index_of(seen)
    scores, restricted = list(seen), []
    marks = list(range(len(seen)))
    for at, score in hidden:
        place = min(at, len(scores))
        scores.insert(place, score)
        marks.insert(place, -1)
    restricted = [at for at, mark in enumerate(marks) if mark < 0]
    beside = index_of(scores, restricted=tuple(restricted))

    def told(index: DenseIndex, names: list[int]) -> list[tuple[int, float]]:
        hits = index.search(QUESTION, "zh", caller=PLAIN, on_date="2026-06-01")
        return [(names[hit.position], hit.score) for hit in hits]

    assert told(beside, marks) == told(without, list(range(len(seen))))


@pytest.mark.parametrize(
    ("text", "chinese", "english"),
    [
        ("年假五天", True, False),
        ("Annual leave is five days.", False, True),
        (
            "双语专窗在工作日九点开放，周三延长。 The desk is open from nine to five on all working days.",
            True,
            True,
        ),
        ("云帆科技股份有限公司（Yunfan Technology）主营工业软件与智能装备", True, False),
        ("", True, True),
    ],
)
def test_a_text_is_in_the_languages_it_is_written_in(text: str, chinese: bool, english: bool) -> None:
    assert (is_in(text, "zh"), is_in(text, "en")) == (chinese, english)


def snapshot(*documents: str) -> Snapshot:
    """Each letter is a chunk of the document of that name."""
    names = sorted(set("".join(documents)))
    records = [Record(name, "1", "", "set") for name in names]
    return Snapshot("v", records, [(names.index(name), Chunk(0, 1), "x") for name in "".join(documents)])


def hits(*positions: int) -> list[Hit]:
    return [Hit(at, 1.0) for at in positions]


def positions(joined: list[Hit]) -> list[int]:
    return [hit.position for hit in joined]


def test_what_only_meaning_found_comes_after_the_first_document_of_words() -> None:
    chunks = snapshot("aabccd")
    assert positions(join(hits(0, 1, 2), hits(5, 3, 4), chunks)) == [0, 1, 5, 3, 2]
    assert BESIDE_WORDS == 2


def test_a_document_that_words_found_is_not_repeated() -> None:
    assert positions(join(hits(0, 2), hits(3, 1), snapshot("aabb"))) == [0, 2]


def test_where_words_found_nothing_meaning_gives_all_it_has() -> None:
    assert positions(join([], hits(3, 4, 2, 1), snapshot("aabcc"))) == [3, 4, 2, 1]
    assert join([], [], snapshot("a")) == []


def test_where_nothing_stands_out_the_words_are_as_they_were() -> None:
    words = hits(2, 0, 1)
    assert join(words, [], snapshot("abc")) == words
    assert NEAR > 0
