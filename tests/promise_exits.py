"""The two permission exits, each alone against a retriever that leaks everything to anyone."""

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from promise import AUDITOR, NOW, PLAIN, require

from nodes.contracts import Caller, Passage
from nodes.retrieve.documents import KnowledgeStore
from nodes.retrieve.exits import PermittedRetriever, link, rerank


class LeakyRetriever(BaseRetriever):
    """What is stored, whoever asks: all restricted passages, then some others."""

    store: Any

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        snapshot = self.store.snapshot()
        found = [
            (
                snapshot.records[at].access.access != "RESTRICTED",
                Document(
                    page_content=text,
                    metadata={
                        "document_id": snapshot.records[at].document_id,
                        "version": snapshot.records[at].version,
                        "start": chunk.start,
                        "end": chunk.end,
                    },
                ),
            )
            for at, chunk, text in snapshot.chunks
        ]
        return [document for _, document in sorted(found, key=lambda one: one[0])][:60]


def trusting_link(candidates: Sequence[Document], *_: Any) -> list[Passage]:
    """What `link` would be if it believed the retriever."""
    return [
        Passage(
            document_id=one.metadata["document_id"],
            version=one.metadata["version"],
            title="",
            source="",
            text=one.page_content,
            start=one.metadata["start"],
            end=one.metadata["end"],
            passage_hash="",
            score=1.0,
            valid_from=None,
            valid_until=None,
        )
        for one in candidates
    ]


def trusting_rerank(passages: Sequence[Passage], *_: Any) -> list[Passage]:
    """What `rerank` would be if it believed `link`."""
    return list(passages)


def leaky(store: KnowledgeStore) -> LeakyRetriever:
    return LeakyRetriever(store=store)


def restricted_in(store: KnowledgeStore, caller: Caller, **exits: Any) -> list[str]:
    """Ids of RESTRICTED documents that a leaky retriever gets past these exits."""
    found = PermittedRetriever(store, leaky(store), **exits).retrieve("预案", caller=caller, on_date=NOW[:10])
    hidden = {record.document_id for record in store.records() if record.access.access == "RESTRICTED"}
    return sorted({passage["document_id"] for passage in found["passages"]} & hidden)


def check_exits(store: KnowledgeStore) -> None:
    open_ways = {"link": trusting_link, "rerank": trusting_rerank}
    require(restricted_in(store, PLAIN, **open_ways), "the exits are tried", "the retriever leaks nothing")
    require(
        restricted_in(store, AUDITOR, link=link, rerank=rerank),
        "the exits are tried",
        "the granted see nothing",
    )
    for exit_alone in (
        {"link": link, "rerank": rerank},
        {"link": link, "rerank": trusting_rerank},
        {"link": trusting_link, "rerank": rerank},
    ):
        leaked = restricted_in(store, PLAIN, **exit_alone)
        require(not leaked, "one exit is enough", leaked)
