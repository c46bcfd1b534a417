"""Is the right passage among the first? CMRC 2018 (Chinese) and the pooled passages of MTRAG-UN (English).

Each passage is one document of a store of its own. A passage that was cut stands at the place of its best
piece. `search` is the bare order of the embedded index, without the cut below which nothing counts as found;
`retrieve` is what an answer gets: past both exits, at most its few passages. With `--embeddings` three more:
`retrieve, meaning too` is what an answer gets then; `meaning alone` the order by nearness; `reciprocal rank`
the order that was not taken: what words or meaning found, by its ranks in both.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nodes.contracts import Caller, Retriever
from nodes.reading.language import detect_language
from nodes.retrieve.documents import KnowledgeStore, split_text
from nodes.retrieve.exits import PASSAGES, open_retriever
from nodes.retrieve.index import LexicalRetriever
from nodes.retrieve.wording import Wording
from scripts.eval.knowledge import RECEIVED_AT, retriever_of, store_of
from scripts.eval.public_sets import Asked, pooled, read_cmrc, read_mtrag_un
from scripts.eval.report import Cell, Options, Report, Table

Ranked = Callable[[str], Sequence[str]]  # question -> document ids, best first, each once
CALLER = Caller()
DEPTH = 10


@dataclass(frozen=True)
class Wanted:
    """A question and the documents that answer it."""

    id: str
    text: str
    documents: frozenset[str]


def evaluate(options: Options) -> Report:
    if options.data is None:
        return Report("retrieval", (), left_out=["everything (no --data)"])
    passages, asked = read_cmrc(options.data, options.sample)
    cmrc = [Wanted(each.id, each.text, frozenset([each.passage_id])) for each in asked]
    tasks = read_mtrag_un(options.data)[: options.sample]
    held = {
        kind: [
            Wanted(task.id, task.text, frozenset(key for key, text in task.passages if text))
            for task in tasks
            if task.passages and kind in ("all", task.turn_kind)
        ]
        for kind in ("all", "N/A", "Follow-up", "Clarification")
    }
    pieces, in_pieces = cut(passages, asked)
    rows = [
        *compared("CMRC, paragraph", passages, {"": cmrc}, options),
        *compared("CMRC, piece with the answer", pieces, {"": in_pieces}, options),
        *compared(
            "MTRAG-UN", pooled(tasks), {f", {kind}": questions for kind, questions in held.items()}, options
        ),
    ]
    return Report("retrieval", [Table("Passages found", COLUMNS, rows)])


COLUMNS = ("set", "way", "passages", "questions", "hit@1", "hit@5", "hit@10", "recall@10", "MRR@10")


def cut(passages: Mapping[str, str], asked: Sequence[Asked]) -> tuple[dict[str, str], list[Wanted]]:
    """Each piece as a passage of its own; wanted are those of the paragraph that hold an answer whole."""
    pieces = {
        f"{key}#{number}": text[piece.start : piece.end]
        for key, text in passages.items()
        for number, piece in enumerate(split_text(text))
    }
    questions = [
        Wanted(
            each.id,
            each.text,
            frozenset(
                key
                for key, text in pieces.items()
                if key.rpartition("#")[0] == each.passage_id and any(said in text for said in each.answers)
            ),
        )
        for each in asked
    ]
    return pieces, [question for question in questions if question.documents]


def compared(
    name: str,
    passages: Mapping[str, str],
    groups: Mapping[str, Sequence[Wanted]],
    options: Options = Options(),  # noqa: B008 - frozen
) -> list[list[Cell]]:
    with store_of(passages) as store:
        ways = {"search": bare_search(store), "retrieve": past_the_exits(open_retriever(store))}
        if options.embeddings:
            fused = retriever_of(store, options, name.partition(",")[0].lower())
            ways |= {
                "meaning alone": by_meaning(fused),
                "reciprocal rank": by_reciprocal_rank(fused),
                "retrieve, meaning too": past_the_exits(fused),
            }
        return [
            [name + group, way, len(passages), len(questions), *figures(questions, ranked)]
            for group, questions in groups.items()
            for way, ranked in ways.items()
        ]


def bare_search(store: KnowledgeStore) -> Ranked:
    """Every document with a score above 0, best first; equal scores in the order of the index."""
    index, wording = LexicalRetriever(store).current_index(), Wording()
    documents = [index.snapshot.records[record].document_id for record, _, _ in index.snapshot.chunks]

    def ranked(question: str) -> list[str]:
        folded = wording.fold(question)
        scores = np.round(index._score(folded, wording.asked(folded)), 4)
        order = np.lexsort((np.arange(len(scores)), -scores))
        return list(dict.fromkeys(documents[at] for at in order if scores[at] > 0))[:DEPTH]

    return ranked


def by_meaning(fused: Any) -> Ranked:
    def ranked(question: str) -> list[str]:
        near, index, _ = _nearness(fused, question)
        order = np.lexsort((np.arange(len(near)), -near))
        return _documents(index, [int(at) for at in order])

    return ranked


def by_reciprocal_rank(fused: Any) -> Ranked:
    """The ranks of what words found, and of that and what stands out by nearness; the usual offset of 60."""

    def ranked(question: str) -> list[str]:
        near, index, dense = _nearness(fused, question)
        words = [hit.position for hit in index.search(question, caller=CALLER, on_date=None, limit=50)]
        stands_out = {hit.position for hit in dense.standing_out(near)}
        order = [int(at) for at in np.lexsort((np.arange(len(near)), -near))]
        scores: dict[int, float] = {}
        for ranks in (words, [at for at in order if at in stands_out or at in words]):
            for rank, at in enumerate(ranks, start=1):
                scores[at] = scores.get(at, 0.0) + 1 / (60 + rank)
        return _documents(index, sorted(scores, key=lambda at: (-scores[at], at)))[:PASSAGES]

    return ranked


def _nearness(fused: Any, question: str) -> tuple[Any, Any, Any]:
    candidates = fused._candidates
    index = candidates.current_index()
    dense = candidates.dense_index(index)
    eligible = dense.eligible(CALLER, RECEIVED_AT[:10])
    vector = candidates.embedder.question(question)
    return dense.nearness(vector, detect_language(question), eligible=eligible), index, dense


def _documents(index: Any, positions: Sequence[int]) -> list[str]:
    snapshot = index.snapshot
    return list(dict.fromkeys(snapshot.records[snapshot.chunks[at][0]].document_id for at in positions))[
        :DEPTH
    ]


def past_the_exits(retriever: Retriever) -> Ranked:
    def ranked(question: str) -> list[str]:
        found = retriever.retrieve(question, caller=CALLER, on_date=RECEIVED_AT[:10])
        return list(dict.fromkeys(passage["document_id"] for passage in found["passages"]))

    return ranked


def figures(questions: Sequence[Wanted], ranked: Ranked) -> list[Cell]:
    """hit@k: any wanted document among the first k; recall@10: the mean share of them; MRR: of the first."""
    found = [(question.documents, ranked(question.text)[:10]) for question in questions]
    count = max(1, len(found))
    hits = [sum(bool(wanted & set(ids[:depth])) for wanted, ids in found) / count for depth in (1, 5, 10)]
    recall = sum(len(wanted & set(ids)) / len(wanted) for wanted, ids in found) / count
    places = [next((at for at, one in enumerate(ids, 1) if one in wanted), 0) for wanted, ids in found]
    return [*hits, recall, sum(1 / place for place in places if place) / count]
