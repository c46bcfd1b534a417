"""From candidates to passages, through two exits that each remove what the caller may not see.

`link` ties candidates to stored documents, `rerank` puts them in their final order. Each reads the stored
permissions itself and believes nothing that a retriever, or the other exit, says: either alone is enough.
"""

import hashlib
import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langsmith import tracing_context

from nodes.contracts import Caller, Evidence, Filters, Passage
from nodes.retrieve.access import may_see
from nodes.retrieve.documents import KnowledgeError, KnowledgeStore, Record, current_keys
from nodes.retrieve.factories import made_by
from nodes.retrieve.index import LexicalRetriever

PASSAGES = 6
PASSAGES_PER_DOCUMENT = 3
Link = Callable[[Sequence[Document], KnowledgeStore, Caller, Filters], list[Passage]]
Rerank = Callable[[Sequence[Passage], KnowledgeStore, Caller, Filters], list[Passage]]
Found = tuple[Filters, list[Passage]]


def link(
    candidates: Sequence[Document], store: KnowledgeStore, caller: Caller, filters: Filters
) -> list[Passage]:
    """Exit 1: candidates as passages of stored documents, in the retriever's order.

    A candidate only names a place: (document_id, version, start, end), or its text where it has no offsets.
    Text, title and source come from the store. Dropped: what is not stored, not current on the day, outside
    the document, or not for this caller.
    """
    named = {str(candidate.metadata.get("document_id", "")) for candidate in candidates}
    records = store.records(named)
    current = current_keys(records, filters["on_date"])
    visible = {
        record.key: record for record in records if record.key in current and may_see(caller, record.access)
    }
    texts = store.texts_of(visible)
    passages = []
    for rank, candidate in enumerate(candidates):
        key = (str(candidate.metadata.get("document_id", "")), str(candidate.metadata.get("version", "")))
        if key in texts and (place := _place_of(candidate, texts[key])) is not None:
            passages.append(_passage(visible[key], texts[key], place, _score_of(candidate, rank)))
    return passages


def rerank(
    passages: Sequence[Passage], store: KnowledgeStore, caller: Caller, filters: Filters
) -> list[Passage]:
    """Exit 2: at most PASSAGES, at most PASSAGES_PER_DOCUMENT of one document, each place once, best first.

    Permissions, dates and the text itself are compared with the store once more: a passage that is not word
    for word what this caller may read there now is dropped.
    """
    now = {record.key: record for record in store.records({passage["document_id"] for passage in passages})}
    current = current_keys(now.values(), filters["on_date"])
    texts = store.texts_of([key for key in current if may_see(caller, now[key].access)])
    kept: list[Passage] = []
    taken: Counter[str] = Counter()
    places: set[tuple[str, int, int]] = set()
    for passage in passages:
        document_id, span = passage["document_id"], slice(passage["start"], passage["end"])
        stored = texts.get((document_id, passage["version"]), "")[span]
        place = (document_id, passage["start"], passage["end"])
        if not stored or stored != passage["text"]:
            continue
        if place in places or taken[document_id] >= PASSAGES_PER_DOCUMENT:
            continue
        places.add(place)
        taken[document_id] += 1
        kept.append(passage)
    return kept[:PASSAGES]


class PermittedRetriever:
    """contracts.Retriever: any LangChain retriever's candidates, past both exits.

    The query goes to the retriever byte for byte. A retriever whose `_get_relevant_documents` names `caller`
    or `on_date` is given them, to narrow its search; others get the query alone.
    """

    def __init__(
        self, store: KnowledgeStore, candidates: BaseRetriever, *, link: Link = link, rerank: Rerank = rerank
    ) -> None:
        self._store = store
        self._candidates = candidates
        self._link = link
        self._rerank = rerank
        self._narrowing = inspect.signature(candidates._get_relevant_documents).parameters.keys()

    def knowledge_version(self) -> str:
        return self._store.knowledge_version()

    def retrieve(self, query: str, *, caller: Caller, on_date: str) -> Evidence:
        """Passages for a question; none is a finding too. All of one knowledge version."""
        filters = Filters(knowledge_base=caller.knowledge_base, on_date=on_date)

        def search() -> Found:
            return filters, self._past_both_exits(self._propose(query, caller, on_date), caller, filters)

        return self._of_one_version(query, search)

    def retrieve_ended(self, query: str, *, caller: Caller, on_date: str) -> Evidence:
        """As `retrieve`, from the best found document that has ended and has no successor.

        `filters` tell the last day on which it held, as of which both exits decide; the day that was asked
        for where there is none.
        """
        today = Filters(knowledge_base=caller.knowledge_base, on_date=on_date)

        def search() -> Found:
            return self._ended(self._propose(query, caller, None), caller, today)

        return self._of_one_version(query, search)

    def _of_one_version(self, query: str, search: Callable[[], Found]) -> Evidence:
        """Where the knowledge changes meanwhile the search is done again, at most three times in all."""
        for _ in range(3):
            version = self._store.knowledge_version()
            filters, passages = search()
            if self._store.knowledge_version() == version:
                break
        return Evidence(query=query, filters=filters, passages=passages, knowledge_version=version)

    def _past_both_exits(
        self, candidates: Sequence[Document], caller: Caller, filters: Filters
    ) -> list[Passage]:
        linked = self._link(candidates, self._store, caller, filters)
        return self._rerank(linked, self._store, caller, filters)

    def _ended(self, of_any_date: Sequence[Document], caller: Caller, today: Filters) -> Found:
        last = _last_in_force(of_any_date, self._store, caller, today["on_date"])
        if last is None or last.valid_until is None:
            return today, []
        on_last_day = Filters(knowledge_base=today["knowledge_base"], on_date=last.valid_until)
        of_it = [one for one in of_any_date if one.metadata.get("document_id") == last.document_id]
        passages = self._past_both_exits(of_it, caller, on_last_day)
        return (on_last_day, passages) if passages else (today, [])

    def _propose(self, query: str, caller: Caller, on_date: str | None) -> list[Document]:
        narrowed: dict[str, Any] = {"caller": caller, "on_date": on_date}
        known = {name: value for name, value in narrowed.items() if name in self._narrowing}
        # Candidates have not been through an exit yet: no callback and no trace may carry them away.
        with tracing_context(enabled=False):
            return self._candidates.invoke(query, {"callbacks": []}, **known)


def _last_in_force(
    candidates: Sequence[Document], store: KnowledgeStore, caller: Caller, on_date: str
) -> Record | None:
    """The last version of the first candidate's document, of those that this caller sees and that have ended.

    A document of which a version holds on the day, or is still to come, has not ended.
    """
    named = list(dict.fromkeys(str(one.metadata.get("document_id", "")) for one in candidates))
    records = [record for record in store.records(named) if may_see(caller, record.access)]
    for document_id in named:
        versions = [record for record in records if record.document_id == document_id]
        if versions and all((record.valid_until or "9999-12-31") < on_date for record in versions):
            return max(versions, key=lambda record: (record.valid_until or "", record.age))
    return None


def load_retriever(
    spec: str | None, store: KnowledgeStore, *, embeddings: str | None = None
) -> BaseRetriever:
    """The retriever that the setting RETRIEVER names as module:factory; the embedded one where it is empty.

    The factory is called with the knowledge store if it takes an argument. The embedded one searches by
    meaning too where the setting EMBEDDINGS names a model. Raises KnowledgeError otherwise.
    """
    if not spec:
        return _embedded(store, embeddings)
    remedy = "Write RETRIEVER=module:factory, with a factory that returns a LangChain BaseRetriever."
    retriever = made_by("RETRIEVER", spec, remedy, lambda factory: _call(factory, store))
    if not isinstance(retriever, BaseRetriever):
        raise KnowledgeError(f"RETRIEVER={spec} gave a {type(retriever).__name__}. {remedy}")
    return retriever


def _embedded(store: KnowledgeStore, embeddings: str | None) -> BaseRetriever:
    if not embeddings:
        return LexicalRetriever(store)
    from nodes.retrieve.dense import FusedRetriever
    from nodes.retrieve.embedders import load_embedder

    return FusedRetriever(store, load_embedder(embeddings))


def open_retriever(
    store: KnowledgeStore, spec: str | None = None, *, embeddings: str | None = None
) -> PermittedRetriever:
    return PermittedRetriever(store, load_retriever(spec, store, embeddings=embeddings))


def _call(factory: Callable[..., object], store: KnowledgeStore) -> object:
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    takes_store = any(one.kind in positional for one in inspect.signature(factory).parameters.values())
    return factory(store) if takes_store else factory()


def _place_of(candidate: Document, text: str) -> tuple[int, int] | None:
    start, end = candidate.metadata.get("start"), candidate.metadata.get("end")
    if start is None and end is None:
        found = text.find(candidate.page_content) if candidate.page_content else -1
        return None if found < 0 else (found, found + len(candidate.page_content))
    if not (isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(text)):
        return None
    return start, end


def _score_of(candidate: Document, rank: int) -> float:
    """The retriever's own score, or one that falls with the rank where it gives none."""
    score = candidate.metadata.get("score")
    return float(score) if isinstance(score, int | float) else round(1 / (1 + rank), 4)


def _passage(record: Record, text: str, place: tuple[int, int], score: float) -> Passage:
    start, end = place
    return Passage(
        document_id=record.document_id,
        version=record.version,
        title=record.title,
        source=record.source,
        text=text[start:end],
        start=start,
        end=end,
        passage_hash=hashlib.sha256(text[start:end].encode()).hexdigest(),
        score=score,
        valid_from=record.valid_from,
        valid_until=record.valid_until,
    )
