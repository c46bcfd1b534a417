"""Which of the supplied knowledge may be evidence for this caller, under which name and version.

A source that we hold follows our access label, whoever supplies it; what stands word for word in its current
text passes both permission exits and is cited as ours. Anything else is the sender's own word: it needs the
caller's `contract` scope, and its version is the hash of its content.
"""

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langchain_core.documents import Document

from api.contract.models import RetrievedKnowledge
from api.contract.scope import SCOPE
from nodes.contracts import Caller, Evidence, Filters, Passage, Retriever
from nodes.reading.folding import squeeze
from nodes.retrieve.access import may_see
from nodes.retrieve.documents import KnowledgeStore, Record
from nodes.retrieve.exits import Link, Rerank, link, rerank

NOT_PERMITTED, NOT_CURRENT, DUPLICATE = "not_permitted", "not_current", "duplicate"


@dataclass(frozen=True)
class Admitted:
    """Passages in the order in which they are numbered, and (source, reason) of what was left out."""

    passages: tuple[Passage, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()


class HeldSources:
    """The documents that we hold, by the names under which a backend may cite them: document id or source.

    Names are compared folded. They are indexed once for each knowledge version; labels are read anew.
    """

    def __init__(self, store: KnowledgeStore) -> None:
        self.store = store
        self._names: tuple[str, Mapping[str, frozenset[str]]] | None = None
        self._building = threading.Lock()

    def records(self, source: str) -> list[Record]:
        """Every stored version of every document of this name; [] where we hold none."""
        document_ids = self._index().get(squeeze(source), frozenset())
        return self.store.records(document_ids) if document_ids else []

    def _index(self) -> Mapping[str, frozenset[str]]:
        version = self.store.knowledge_version()
        with self._building:
            if self._names is None or self._names[0] != version:
                self._names = (version, _names_of(self.store.records()))
            return self._names[1]


def _names_of(records: Sequence[Record]) -> dict[str, frozenset[str]]:
    names: dict[str, set[str]] = {}
    for record in records:
        for name in (record.document_id, record.source):
            names.setdefault(squeeze(name), set()).add(record.document_id)
    return {name: frozenset(ids) for name, ids in names.items() if name}


@dataclass(frozen=True)
class Admission:
    """The rules, with the exits they go through."""

    held: HeldSources
    link: Link = link
    rerank: Rerank = rerank

    def admit(self, supplied: Sequence[RetrievedKnowledge], *, caller: Caller, on_date: str) -> Admitted:
        """Best score first; equal scores as they came. Why something is not permitted is not told."""
        filters = Filters(knowledge_base=caller.knowledge_base, on_date=on_date)
        passages: dict[tuple[str, str, str], Passage] = {}
        left_out: list[tuple[str, str]] = []
        for item in sorted(supplied, key=lambda item: -item.relevance_score):
            passage = self._judge(item, caller, filters)
            if isinstance(passage, str):
                left_out.append((item.source, passage))
                continue
            key = (passage["document_id"], passage["version"], passage["passage_hash"])
            if key in passages:
                left_out.append((item.source, DUPLICATE))
            passages.setdefault(key, passage)
        return Admitted(tuple(passages.values()), tuple(left_out))

    def _judge(self, item: RetrievedKnowledge, caller: Caller, filters: Filters) -> Passage | str:
        """The passage, or why it is none."""
        records = self.held.records(item.source)
        ours = self._ours(item, records, caller, filters)
        if ours is not None:
            return ours
        # One name may stand for several documents and versions: the strictest label counts.
        if SCOPE not in caller.scopes or not all(may_see(caller, record.access) for record in records):
            return NOT_PERMITTED
        texts = (self.held.store.text_of(*record.key) or "" for record in records)
        return NOT_CURRENT if any(item.content in text for text in texts) else _theirs(item)

    def _ours(
        self, item: RetrievedKnowledge, records: Sequence[Record], caller: Caller, filters: Filters
    ) -> Passage | None:
        candidates = [
            Document(
                page_content=item.content,
                metadata={
                    "document_id": record.document_id,
                    "version": record.version,
                    "score": item.relevance_score,
                },
            )
            for record in records
        ]
        linked = self.link(candidates, self.held.store, caller, filters)
        return next(iter(self.rerank(linked[:1], self.held.store, caller, filters)), None)


def _theirs(item: RetrievedKnowledge) -> Passage:
    digest = hashlib.sha256(item.content.encode()).hexdigest()
    return Passage(
        document_id=item.source,
        version=digest,
        title=item.title,
        source=item.source,
        text=item.content,
        start=0,
        end=len(item.content),
        passage_hash=digest,
        score=item.relevance_score,
        valid_from=None,
        valid_until=None,
    )


@dataclass(frozen=True)
class SuppliedRetriever:
    """contracts.Retriever that finds what was supplied, whatever is asked. Nothing else is searched."""

    passages: tuple[Passage, ...]
    own: Retriever

    def knowledge_version(self) -> str:
        return self.own.knowledge_version()

    def retrieve(self, query: str, *, caller: Caller, on_date: str) -> Evidence:
        return Evidence(
            query=query,
            filters=Filters(knowledge_base=caller.knowledge_base, on_date=on_date),
            passages=list(self.passages),
            knowledge_version=self.knowledge_version(),
        )
