"""Which passages mean what is asked where its words do not stand, and where they go beside those with them.

A vector model's scores lie in a narrow band that differs from question to question, are higher in the
question's own language, and higher for some passages whatever is asked. So no score counts as it is: each is
taken above the passage's usual one (`usual_questions`), and compared with the others of its language that
this caller may see. It only proposes candidates; what a caller may be shown is decided in `exits`.
"""

import math
import re
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import structlog
from pydantic import PrivateAttr

from nodes.contracts import Caller, Language
from nodes.reading.language import detect_language
from nodes.retrieve.access import may_see
from nodes.retrieve.documents import KnowledgeError, KnowledgeStore, Snapshot, current_keys
from nodes.retrieve.embedders import Embedder
from nodes.retrieve.index import Hit, LexicalIndex, LexicalRetriever
from nodes.retrieve.vectors import embed_all, read_vectors

log = structlog.get_logger(__name__)

# A document stands out when one of its chunks is nearer than this (`DenseIndex.nearness`).
NEAR = 3.5
BESIDE_WORDS = 2
# Of fewer chunks no deviation says anything.
FEWEST = 8
FLAT = 1e-6  # equal scores but for the rounding of their mean
ENOUGH_OF_A_LANGUAGE = 10  # characters or words
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_WORD = re.compile(r"[A-Za-z]+")


class DenseIndex:
    """The vectors of one knowledge version, in the snapshot's order. Immutable but for what it remembers.

    `usual` has the vectors of the usual questions by language.
    """

    def __init__(self, snapshot: Snapshot, vectors: Any, usual: dict[Language, Any]) -> None:
        self.snapshot = snapshot
        self._vectors = vectors
        self._documents = np.array([record for record, _, _ in snapshot.chunks], dtype=np.int64)
        texts = [text for _, _, text in snapshot.chunks]
        self._is_in = {
            language: np.array([is_in(text, language) for text in texts], dtype=bool) for language in usual
        }
        scores = {language: _scores(vectors, questions.T) for language, questions in usual.items()}
        self._usual = {
            language: (found.mean(axis=1), np.maximum(found.std(axis=1), 1e-3))
            for language, found in scores.items()
        }
        self._eligible = lru_cache(maxsize=64)(self._find_eligible)

    def search(self, vector: Any, language: Language, *, caller: Caller, on_date: str | None) -> list[Hit]:
        """All chunks of the documents that stand out, nearest first, with their nearness as score.

        Only what this caller may see and holds on this day counts. Equal ones are in order of document id,
        version and place.
        """
        return self.standing_out(self.nearness(vector, language, eligible=self.eligible(caller, on_date)))

    def standing_out(self, near: Any) -> list[Hit]:
        found = np.isin(self._documents, self._documents[near > NEAR]) & (near > -np.inf)
        order = np.lexsort((np.arange(len(near)), -near))
        return [Hit(int(at), float(near[at])) for at in order if found[at]]

    def nearness(self, vector: Any, language: Language, *, eligible: Any) -> Any:
        """How near each chunk is to a question, in deviations; -inf for what is not eligible or has no peers.

        The sum of two: how far its score is above its usual one, by how its scores spread; and how far that
        is above the mean of its eligible peers, which are in the question's language or are not, by how they
        spread, less what the best of so many peers reaches that have nothing to do with it (sqrt(2 ln N)).
        """
        usual, spread = self._usual[language]
        above = _scores(self._vectors, vector) - usual
        near = np.full(len(above), -np.inf)
        own = self._is_in[language]
        for peers in (eligible & own, eligible & ~own):
            count = int(peers.sum())
            if count >= FEWEST and (deviation := above[peers].std()) > FLAT:
                standing = (above[peers] - above[peers].mean()) / deviation - math.sqrt(2 * math.log(count))
                near[peers] = np.round(standing + above[peers] / spread[peers], 4)
        return near

    def eligible(self, caller: Caller, on_date: str | None) -> Any:
        """Whether this caller may see each chunk, and it holds on this day."""
        viewer = Caller(caller.tenant, caller.user and "-", caller.groups, caller.knowledge_base)
        return self._eligible(viewer, on_date)

    def _find_eligible(self, caller: Caller, on_date: str | None) -> Any:
        records = self.snapshot.records
        current = {record.key for record in records} if on_date is None else current_keys(records, on_date)
        seen = np.array([record.key in current and may_see(caller, record.access) for record in records])
        return seen[self._documents] if len(records) else np.zeros(0, dtype=bool)


def is_in(text: str, language: Language) -> bool:
    """Whether a text is written in this language; one that mixes two is in both."""
    counts = {"zh": len(_HAN.findall(text)), "en": len(_WORD.findall(text))}
    return counts[language] >= min(ENOUGH_OF_A_LANGUAGE, max(counts.values()))


def join(words: Sequence[Hit], meant: Sequence[Hit], snapshot: Snapshot) -> list[Hit]:
    """What words found, in its order, and after its first document what only meaning found.

    So whatever words find stays first and as it is. Reciprocal rank fusion was no better on the whole
    (docs/evaluations.md). Where words found something, only the nearest BESIDE_WORDS chunks join them.
    """
    if not words:
        return list(meant)
    documents = [snapshot.chunks[hit.position][0] for hit in words]
    first = sum(document == documents[0] for document in documents)
    new = [hit for hit in meant if snapshot.chunks[hit.position][0] not in documents]
    return [*words[:first], *new[:BESIDE_WORDS], *words[first:]]


class FusedRetriever(LexicalRetriever):
    """The embedded search by words and by meaning. Follows every change of the knowledge.

    Where vectors are missing one thread makes them, and questions are answered by words alone until they are
    all there: nobody waits. Invoked as `LexicalRetriever`; the model is given the question alone.
    """

    embedder: Any
    _dense: DenseIndex | None = PrivateAttr(default=None)
    _embedding: threading.Thread | None = PrivateAttr(default=None)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    def __init__(self, store: KnowledgeStore, embedder: Embedder, **fields: Any) -> None:
        super().__init__(store, embedder=embedder, **fields)

    def hits(self, index: LexicalIndex, query: str, caller: Caller, on_date: str | None) -> Sequence[Hit]:
        found = super().hits(index, query, caller, on_date)
        dense = self.dense_index(index)
        if dense is None or not dense.eligible(caller, on_date).any():
            return found
        vector, language = self.embedder.question(query), detect_language(query)
        meant = dense.search(vector, language, caller=caller, on_date=on_date)
        return join(found, meant, index.snapshot)[: self.limit]

    def dense_index(self, index: LexicalIndex) -> DenseIndex | None:
        """The vectors of this index's passages; None while some are still being made."""
        dense = self._dense
        if dense is not None and dense.snapshot.knowledge_version == index.snapshot.knowledge_version:
            return dense
        with self._lock:
            if self._embedding is not None and self._embedding.is_alive():
                return None
            found = read_vectors(self.store, index.snapshot, self.embedder)
            if found is None:
                self._embedding = threading.Thread(target=self._embed, name="embedding", daemon=True)
                self._embedding.start()
                return None
            self._dense = dense = DenseIndex(index.snapshot, *found)
            return dense

    def _embed(self) -> None:
        """Where it fails the log says so, and the next question begins it again."""
        try:
            embed_all(self.store, self.embedder)
        except KnowledgeError as error:
            log.warning("embedding_failed", message=str(error))


def _scores(vectors: Any, other: Any) -> Any:
    return np.round((vectors @ other).astype(np.float64), 5)
