"""The embedded search: BM25 over words and character pairs, and the cut below which nothing counts as found.

It only proposes candidates. What a caller may be shown is decided in `exits`.
"""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log
from typing import Any

import numpy as np
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import PrivateAttr

from nodes.contracts import Caller
from nodes.reading.bilingual import called
from nodes.retrieve.access import may_see
from nodes.retrieve.documents import KnowledgeStore, Snapshot, current_keys
from nodes.retrieve.wording import Wording, is_chinese, parts_of, same_as

CANDIDATES = 50
# A document counts as found when its passages hold more than this share of what is asked, or, as a long
# question tells much beside its point, a smaller share that weighs as much as this many of the rarest words.
ENOUGH_SHARE = 0.5
ENOUGH_ACROSS = 0.6  # of what is asked in the words of the other language, of which each may mean more
LONG_SHARE = 0.25
LONG_WORDS = 2.5
# Beside a much better passage a weak one is noise: the least share of the best score.
SCORE_SHARE = 0.4
# A word that stands in at most this many chunks is searched for by its equivalents too.
RARE = 2
# What the words of the other language find goes before what was found as it was asked, where it is so much
# nearer to the question.
NEARER = 0.4
TELLING = 0.3  # the least that its words weigh together, in weights of the rarest
NEAREST = 2.0  # one chunk holds all of it, and so does its document's title

Text = tuple[frozenset[str], str]  # its terms, and the whole, folded


@dataclass(frozen=True)
class Coverage:
    """How much of what a question asks about is held, in weights; `rarest` is the largest weight.

    `enough` is the share that must be passed.
    """

    held: float
    asked: float
    rarest: float
    enough: float = ENOUGH_SHARE

    @property
    def share(self) -> float:
        return self.held / self.asked

    @property
    def is_enough(self) -> bool:
        return self.share > self.enough or (
            self.share >= LONG_SHARE and self.held >= LONG_WORDS * self.rarest
        )


@dataclass(frozen=True)
class Sought:
    """A word of a question as it is looked for in chunks: what it weighs, and what may stand for it.

    `parts` are the weights of its neighbouring characters, or of a phrase's words, which count where the
    whole does not stand. `is_known`: it is looked for by a name in the other language that stands somewhere.
    """

    word: str
    weight: float
    same: Sequence[str]
    parts: Mapping[str, float]
    is_known: bool = False


@dataclass(frozen=True)
class Hit:
    """A chunk that answers to a question: its position in the snapshot, and its BM25 score."""

    position: int
    score: float


@dataclass(frozen=True)
class Found:
    """What answers to a question, best first, and how near it comes to what is asked; 0 for nothing.

    `closeness` is at most NEAREST: what the best chunk holds of it, and what the title of the first one does.
    """

    hits: Sequence[Hit]
    closeness: float


class LexicalIndex:
    """One knowledge version, ready to be searched. Immutable, so threads share it without locks."""

    def __init__(self, snapshot: Snapshot, wording: Wording) -> None:
        import bm25s

        self.snapshot = snapshot
        self._wording = wording
        self._bodies = [
            wording.fold(f"{snapshot.records[record].title}\n{text}") for record, _, text in snapshot.chunks
        ]
        shared: dict[str, str] = {}  # one object for each term, not one for each place where it stands
        terms = [[shared.setdefault(one, one) for one in wording.terms(body)] for body in self._bodies]
        self._terms = [frozenset(one) for one in terms]
        self._holding = Counter(term for one in self._terms for term in one)
        self._bm25 = bm25s.BM25(method="lucene")
        if terms:
            self._bm25.index(terms, show_progress=False)
        self._eligible = lru_cache(maxsize=64)(self._find_eligible)

    def search(self, query: str, *, caller: Caller, on_date: str | None, limit: int) -> list[Hit]:
        """Best chunks first, equal scores in order of document id, version and place.

        The first one's document goes before the others as far as it was found: an answer often stands beside
        the words that were asked.
        Only chunks that this caller may see and that hold on this day compete, so hidden documents use up no
        places. Empty when nothing is close enough to the question to count as found. It is searched for in
        the words of the other language, too, and that goes first where it comes nearer to what is asked.
        """
        folded = self._wording.fold(query)
        asked = self._wording.asked(folded)
        if not asked or not self._terms:
            return []
        viewer = Caller(caller.tenant, caller.user and "-", caller.groups, caller.knowledge_base)
        eligible = self._eligible(viewer, on_date)
        sought = [self._sought(word) for word in asked]
        found = self._found(sought, self._score(folded, asked) * eligible, limit)
        as_called = [self._called(word) for word in asked]
        if found.closeness + NEARER < NEAREST and self._tell_enough(as_called):
            across = self._found(as_called, self._score_called(as_called) * eligible, limit)
            found = across if across.closeness > found.closeness + NEARER else found
        return self._first_document_first(found.hits)[:limit]

    def _first_document_first(self, hits: Sequence[Hit]) -> list[Hit]:
        documents = [self.snapshot.chunks[hit.position][0] for hit in hits]
        order = sorted(range(len(hits)), key=lambda at: documents[at] != documents[0])
        return [hits[at] for at in order]

    def _found(self, sought: Sequence[Sought], scores: Any, limit: int) -> Found:
        """The best hits, of documents whose hits together hold enough of what is asked."""
        rounded = np.round(scores, 4)
        order = np.lexsort((np.arange(len(rounded)), -rounded))[: max(limit, CANDIDATES)]
        least = SCORE_SHARE * float(rounded[order[0]])
        hits = [Hit(int(at), float(rounded[at])) for at in order if 0 < rounded[at] >= least]
        shares = {hit.position: _shares(sought, self._text_at(hit.position)) for hit in hits}
        of_document: dict[int, list[Sequence[float]]] = {}
        for position, held in shares.items():
            of_document.setdefault(self.snapshot.chunks[position][0], []).append(held)
        found = {record for record, held in of_document.items() if self.coverage(sought, held).is_enough}
        kept = [hit for hit in hits if self.snapshot.chunks[hit.position][0] in found]
        if not kept:
            return Found([], 0.0)
        best = max(self.coverage(sought, [shares[hit.position]]).share for hit in kept)
        return Found(kept, best + self._share_in_title(sought, kept[0]))

    def _text_at(self, position: int) -> Text:
        return self._terms[position], self._bodies[position]

    def _share_in_title(self, sought: Sequence[Sought], hit: Hit) -> float:
        title = self._wording.fold(self.snapshot.records[self.snapshot.chunks[hit.position][0]].title)
        held = _shares(sought, (frozenset(self._wording.terms(title)), title))
        return self.coverage(sought, [held]).share

    def _sought(self, word: str) -> Sought:
        parts = {part: self._weight(part) for part in parts_of(word)}
        weight = sum(parts.values()) if " " in word else self._weight(word)
        return Sought(word, weight, [word, *same_as(word)], parts)

    def _called(self, word: str) -> Sought:
        """The word by what it is called in the other language; as it is where it has no such name."""
        own = self._sought(word)
        others = called(word)
        known = [self._weight(other) for other in others if self._holding[other]]
        weight = min([own.weight, *known])
        return replace(own, weight=weight, same=others, is_known=bool(known)) if others else own

    def _tell_enough(self, called: Sequence[Sought]) -> bool:
        """Whether a word has a name that stands somewhere, and all say more than a word of all documents."""
        told = sum(word.weight for word in called)
        return any(word.is_known for word in called) and told >= TELLING * self._weight("")

    def coverage(self, sought: Sequence[Sought], shares: Sequence[Sequence[float]]) -> Coverage:
        """What texts together hold of what a question asks about, by what each holds of each word.

        Each content word weighs as much as it is rare in the whole index; one that stands nowhere weighs as
        one that stands once.
        """
        best = [max(of_word) for of_word in zip(*shares, strict=True)]
        held = sum(word.weight * share for word, share in zip(sought, best, strict=True))
        enough = ENOUGH_ACROSS if any(word.is_known for word in sought) else ENOUGH_SHARE
        return Coverage(held, sum(word.weight for word in sought), self._weight(""), enough)

    def _score(self, folded: str, asked: Sequence[str]) -> Any:
        """BM25 of the question in every chunk; a rare word counts by its best equivalent too."""
        scores = self._bm25_of(self._wording.terms(folded))
        for word in asked:
            others = same_as(word) if self._holding[word] <= RARE else ()
            if others:
                scores += self._best_of(others)
        return scores

    def _score_called(self, sought: Sequence[Sought]) -> Any:
        """BM25 of each word by the best that may stand for it."""
        return np.sum([self._best_of(word.same) for word in sought], axis=0)

    def _best_of(self, words: Sequence[str]) -> Any:
        return np.max([self._bm25_of(self._wording.terms(word)) for word in words], axis=0)

    def _bm25_of(self, terms: Sequence[str]) -> Any:
        known = [term for term in terms if term in self._holding]
        scores = self._bm25.get_scores(known) if known else np.zeros(len(self._terms))
        return scores.astype(np.float64)

    def _weight(self, term: str) -> float:
        holding = max(self._holding[term], 1)
        return log(1 + (len(self._terms) - holding + 0.5) / (holding + 0.5))

    def _find_eligible(self, caller: Caller, on_date: str | None) -> Any:
        records = self.snapshot.records
        current = {record.key for record in records} if on_date is None else current_keys(records, on_date)
        seen = [record.key in current and may_see(caller, record.access) for record in records]
        return np.array([seen[record] for record, _, _ in self.snapshot.chunks], dtype=np.float64)


def _shares(sought: Sequence[Sought], text: Text) -> Sequence[float]:
    """How much of each word a text holds."""
    return [_share_held(word, text) for word in sought]


def _share_held(word: Sought, text: Text) -> float:
    """All, where it, or another word for the same, stands there.

    A longer Chinese word that does not counts by its character pairs, by their rarity.
    """
    if any(_holds(text, other) for other in word.same):
        return 1.0
    held = sum(weight for part, weight in word.parts.items() if part in text[0])
    return held / sum(word.parts.values()) if word.parts else 0.0


def _holds(text: Text, word: str) -> bool:
    terms, body = text
    if " " in word:
        return all(part in terms for part in parts_of(word))
    return word in terms or (is_chinese(word) and word in body)


class LexicalRetriever(BaseRetriever):
    """A LangChain retriever over the knowledge file. Follows every change of it; nothing is configured.

    Invoked with `caller` and `on_date`, it narrows its candidates to them. Invoked plainly, as from an
    ensemble, it proposes only public documents, of any date.
    """

    store: Any
    limit: int = CANDIDATES
    _wording: Wording = PrivateAttr(default_factory=Wording)
    _index: LexicalIndex | None = PrivateAttr(default=None)
    _building: Any = PrivateAttr(default_factory=threading.Lock)

    def __init__(self, store: KnowledgeStore, **fields: Any) -> None:
        super().__init__(**{"store": store, **fields})

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - LangChain passes it by name
        caller: Caller | None = None,
        on_date: str | None = None,
    ) -> list[Document]:
        index = self.current_index()
        hits = self.hits(index, query, caller or Caller("", ""), on_date)
        return [_as_langchain(index.snapshot, hit) for hit in hits]

    def hits(self, index: LexicalIndex, query: str, caller: Caller, on_date: str | None) -> Sequence[Hit]:
        return index.search(query, caller=caller, on_date=on_date, limit=self.limit)

    def current_index(self) -> LexicalIndex:
        """The index of the knowledge as stored now; built by one thread while others wait for it."""
        version = self.store.knowledge_version()
        index = self._index
        if index is not None and index.snapshot.knowledge_version == version:
            return index
        with self._building:
            index = self._index
            if index is None or index.snapshot.knowledge_version != version:
                index = LexicalIndex(self.store.snapshot(), self._wording)
                self._index = index
            return index


def _as_langchain(snapshot: Snapshot, hit: Hit) -> Document:
    """The chunk with its place in its document, which the exits look up again."""
    place, chunk, text = snapshot.chunks[hit.position]
    record = snapshot.records[place]
    metadata = {
        "document_id": record.document_id,
        "version": record.version,
        "start": chunk.start,
        "end": chunk.end,
        "score": hit.score,
    }
    return Document(page_content=text, metadata=metadata)
