"""A question about what was in force once: the reader is told that it ended, and when."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document as Candidate
from langchain_core.retrievers import BaseRetriever

from graph.answer_question import answer_question
from nodes.answer.providers import ExtractiveProvider
from nodes.contracts import Caller
from nodes.retrieve.access import DocumentAccess
from nodes.retrieve.documents import Document, KnowledgeStore, Record, SourceSet
from nodes.retrieve.exits import PermittedRetriever, link, open_retriever, rerank

TODAY = "2026-06-01"
HARBOUR = "渔船停泊费减免：小型渔船每月减免停泊费六百元。"
QUESTION = "渔船停泊费减免多少"
CREW = DocumentAccess("RESTRICTED", frozenset({"crew"}))


def document(document_id: str, text: str, version: str = "1", **fields: Any) -> Document:
    return Document(Record(document_id, version, text[:7], "港务局", **fields), text)


def stored(tmp_path: Path, *documents: Document) -> KnowledgeStore:
    store = KnowledgeStore(tmp_path / "knowledge.db")
    others = [document(f"other{at}", f"{name}管理规定：由港务局负责。") for at, name in enumerate("甲乙丙")]
    store.replace(SourceSet("set", "", [*documents, *others]))
    return store


def test_what_has_ended_is_found_as_of_its_last_day(tmp_path: Path) -> None:
    store = stored(tmp_path, document("berth", HARBOUR, valid_until="2025-04-30"))
    retriever = open_retriever(store)
    assert retriever.retrieve(QUESTION, caller=Caller(), on_date=TODAY)["passages"] == []
    ended = retriever.retrieve_ended(QUESTION, caller=Caller(), on_date=TODAY)
    assert ended["filters"]["on_date"] == "2025-04-30"
    assert [one["text"] for one in ended["passages"]] == [HARBOUR]


def test_of_several_versions_the_last_one_tells(tmp_path: Path) -> None:
    store = stored(
        tmp_path,
        document("berth", HARBOUR.replace("六", "五"), "1", valid_until="2023-12-31"),
        document("berth", HARBOUR, "2", valid_from="2024-01-01", valid_until="2025-04-30"),
    )
    ended = open_retriever(store).retrieve_ended(QUESTION, caller=Caller(), on_date=TODAY)
    assert [one["version"] for one in ended["passages"]] == ["2"]


@pytest.mark.parametrize(
    "successor",
    [
        {"valid_from": "2025-05-01"},
        {"valid_from": "2026-01-01", "valid_until": "2026-06-01"},
        {"valid_from": "2027-01-01"},
    ],
    ids=["in force", "on its last day", "still to come"],
)
def test_a_document_with_a_successor_has_not_ended(tmp_path: Path, successor: dict[str, str]) -> None:
    store = stored(
        tmp_path,
        document("berth", HARBOUR, "1", valid_until="2025-04-30"),
        document("berth", HARBOUR, "2", **successor),
    )
    ended = open_retriever(store).retrieve_ended(QUESTION, caller=Caller(), on_date=TODAY)
    assert (ended["passages"], ended["filters"]["on_date"]) == ([], TODAY)


def test_who_may_not_see_it_is_not_told_that_it_ended(tmp_path: Path) -> None:
    store = stored(tmp_path, document("berth", HARBOUR, valid_until="2025-04-30", access=CREW))
    retriever = open_retriever(store)
    hidden = retriever.retrieve_ended(QUESTION, caller=Caller(), on_date=TODAY)
    assert (hidden["passages"], hidden["filters"]["on_date"]) == ([], TODAY)
    granted = Caller(groups=frozenset({"crew"}))
    assert retriever.retrieve_ended(QUESTION, caller=granted, on_date=TODAY)["passages"]


class Leaky(BaseRetriever):
    """Names the restricted version to anyone."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Candidate]:
        assert query
        assert run_manager
        place = {"document_id": "berth", "start": 0, "end": len(HARBOUR)}
        return [
            Candidate(page_content=HARBOUR, metadata={**place, "version": version}) for version in ("2", "1")
        ]


def test_of_an_ended_document_a_hidden_version_stays_hidden(tmp_path: Path) -> None:
    store = stored(
        tmp_path,
        document("berth", HARBOUR, "1", valid_until="2025-04-30"),
        document("berth", HARBOUR, "2", valid_from="2025-05-01", valid_until="2025-12-31", access=CREW),
    )
    retriever = PermittedRetriever(store, Leaky(), link=link, rerank=rerank)
    ended = retriever.retrieve_ended(QUESTION, caller=Caller(), on_date=TODAY)
    assert [one["version"] for one in ended["passages"]] == ["1"]
    assert ended["filters"]["on_date"] == "2025-04-30"


def test_a_reader_is_told_that_it_ended_and_what_it_said(tmp_path: Path) -> None:
    store = stored(tmp_path, document("berth", HARBOUR, valid_until="2025-04-30"))
    answer = answer_question(
        QUESTION, store, ExtractiveProvider(), received_at="2026-06-01T09:00:00.000+08:00"
    )
    first, _, then = answer["text"].partition("\n\n")
    assert answer["kind"] == "narrative"
    assert ("2025年4月30日" in first, "失效" in first, "六百元" in then) == (True, True, True)
    assert {cited["document_id"] for cited in answer["citations"]} == {"berth"}


@pytest.mark.parametrize("question", ["渔船停泊费减免多少", "渔船的停泊费怎么减免", "现在停泊费还能减免吗"])
def test_it_is_told_of_to_who_asks_about_it(tmp_path: Path, question: str) -> None:
    store = stored(tmp_path, document("berth", HARBOUR, valid_until="2025-04-30"))
    answer = answer_question(question, store, ExtractiveProvider(), received_at=f"{TODAY}T09:00:00.000+08:00")
    assert "失效" in answer["text"]


def test_it_is_not_told_of_where_it_merely_touches_on_what_is_asked(tmp_path: Path) -> None:
    text = "渔船停泊费减免：小型渔船每月减免停泊费六百元。游艇俱乐部会员不在减免之列。"
    store = stored(tmp_path, document("berth", text, valid_until="2025-04-30"))
    question = "游艇俱乐部会员有什么优惠"
    assert open_retriever(store).retrieve_ended(question, caller=Caller(), on_date=TODAY)["passages"]
    answer = answer_question(question, store, ExtractiveProvider(), received_at=f"{TODAY}T09:00:00.000+08:00")
    assert (answer["kind"], answer["citations"]) == ("not_found", [])
    assert "失效" not in answer["text"]


def test_on_its_last_day_it_is_quoted_as_what_holds(tmp_path: Path) -> None:
    store = stored(tmp_path, document("berth", HARBOUR, valid_until="2025-04-30"))
    answer = answer_question(
        QUESTION, store, ExtractiveProvider(), received_at="2025-04-30T09:00:00.000+08:00"
    )
    assert answer["text"].startswith(HARBOUR[:6])
    assert "失效" not in answer["text"]
