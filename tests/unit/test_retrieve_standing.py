"""What was cited, held against the documents as they are now."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from nodes.retrieve.documents import Document, KnowledgeStore, Record, SourceSet
from nodes.retrieve.standing import StoredStanding

TEXT = "补贴标准为每户8000元。申请期限为一年。"


def document(version: str, text: str, **validity: str | None) -> Document:
    return Document(Record("subsidy", version, "办法", "局", **validity), text)  # type: ignore[arg-type]


def cited(version: str, start: int = 0, end: int = 13, text: str = TEXT) -> dict[str, Any]:
    passage_hash = hashlib.sha256(text[start:end].encode()).hexdigest()
    return {
        "document_id": "subsidy", "version": version, "start": start, "end": end, "passage_hash": passage_hash
    }  # fmt: skip


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ([document("1", TEXT)], "current"),
        ([document("1", TEXT, valid_until="2026-05-31")], "superseded"),
        ([document("1", TEXT), document("2", TEXT)], "superseded"),
        ([document("1", TEXT.replace("8000", "9000")), document("2", TEXT)], "changed"),
        ([document("1", TEXT + "附则。")], "current"),  # what was cited is as it was
        ([document("2", TEXT)], "changed"),  # that version is gone
    ],
)
def test_standing(tmp_path: Path, documents: list[Document], expected: str) -> None:
    with KnowledgeStore(tmp_path / "k.sqlite") as store:
        store.replace(SourceSet("s", "1", documents))
        standing = StoredStanding(store, lambda: "2026-06-01T09:00:00.000+08:00")
        assert standing([cited("1")]) == [expected]


def test_a_fact_has_no_place_in_the_text(tmp_path: Path) -> None:
    with KnowledgeStore(tmp_path / "k.sqlite") as store:
        store.replace(SourceSet("s", "1", [document("1", TEXT)]))
        standing = StoredStanding(store, lambda: "2026-06-01T09:00:00.000+08:00")
        fact = {**cited("1"), "start": 0, "end": 0, "passage_hash": "of the fact"}
        assert standing([fact, cited("1")]) == ["current", "current"]
