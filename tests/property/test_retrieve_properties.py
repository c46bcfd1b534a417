"""Promises of the knowledge room over generated input."""

import dataclasses
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.contracts import Caller
from nodes.retrieve.access import DocumentAccess, audience, may_see
from nodes.retrieve.documents import (
    CHUNK_BYTES,
    Document,
    KnowledgeError,
    KnowledgeStore,
    Record,
    SourceSet,
    current_keys,
    split_text,
)
from nodes.retrieve.formats import read_table
from nodes.retrieve.loading import load_folder

NAMES = st.sampled_from(["a", "b", "c", ""])
GROUPS = st.frozensets(st.sampled_from(["hr", "it", "audit"]))
CALLERS = st.builds(
    Caller, tenant=NAMES, user=NAMES, groups=GROUPS, knowledge_base=st.sampled_from(["x", "y"])
)
ACCESSES = st.builds(
    DocumentAccess,
    access=st.sampled_from(["PUBLIC", "INTERNAL", "RESTRICTED"]),
    groups=GROUPS,
    tenant=st.sampled_from(["a", "b", None]),
    knowledge_base=st.sampled_from(["x", "y"]),
)
PIECES = st.sampled_from(
    ["甲", "😀", "word", " ", "\n", "\n\n", "。", "；", ". ", "，", "”", "## ", "e\u0301", "\u3000"]
)
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=40)), max_size=400).map("".join)


@given(TEXTS)
def test_chunks_are_the_text_between_their_offsets_and_lose_only_blanks(text: str) -> None:
    chunks = split_text(text)
    position = 0
    for chunk in chunks:
        piece = text[chunk.start : chunk.end]
        assert text[position : chunk.start].strip() == ""
        assert piece
        assert piece == piece.strip()
        assert len(piece.encode()) <= CHUNK_BYTES
        position = chunk.end
    assert text[position:].strip() == ""


@given(CALLERS, ACCESSES, GROUPS)
def test_more_groups_never_hide_and_restricted_is_seen_by_grant_alone(
    caller: Caller, document: DocumentAccess, more: frozenset[str]
) -> None:
    stronger = dataclasses.replace(caller, groups=caller.groups | more)
    assert may_see(stronger, document) >= may_see(caller, document)
    if may_see(caller, document):
        assert caller.knowledge_base == document.knowledge_base
        assert document.access != "RESTRICTED" or caller.groups & document.groups
        assert document.access == "PUBLIC" or document.tenant in (None, caller.tenant)


@given(CALLERS, CALLERS, st.lists(ACCESSES, max_size=8))
def test_callers_of_one_audience_see_the_same(
    one: Caller, other: Caller, documents: list[DocumentAccess]
) -> None:
    if audience(one) == audience(other):
        assert [may_see(one, document) for document in documents] == [
            may_see(other, document) for document in documents
        ]


DAYS = st.sampled_from(["2024-01-01", "2024-06-30", "2025-01-01", "2026-01-01"])
RECORDS = st.builds(
    Record,
    document_id=st.sampled_from(["a", "b"]),
    version=st.sampled_from(["1", "2", "10", "x"]),
    title=st.just("t"),
    source=st.just("s"),
    valid_from=st.one_of(st.none(), DAYS),
    valid_until=st.one_of(st.none(), DAYS),
)


@given(st.lists(RECORDS, max_size=8, unique_by=lambda record: record.key), DAYS, st.randoms())
def test_one_version_of_a_document_holds_whatever_the_order(
    records: list[Record], day: str, random: object
) -> None:
    current = current_keys(records, day)
    shuffled = list(records)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert current_keys(shuffled, day) == current
    assert len({document_id for document_id, _ in current}) == len(current)
    valid = {
        one.document_id for one in records if (one.valid_from or "") <= day <= (one.valid_until or "9999")
    }
    assert {document_id for document_id, _ in current} == valid


@settings(max_examples=25)
@given(
    st.dictionaries(
        st.sampled_from(
            ["a.md", "b.txt", "c.csv", "d.jsonl", "facts.csv", "companies.csv", "metrics.csv", "e/f.md"]
        ),
        st.one_of(st.binary(max_size=200), TEXTS.map(lambda text: ("---\n" + text).encode())),
        min_size=1,
    )
)
def test_no_content_of_files_breaks_a_load(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "folder"
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        with KnowledgeStore(Path(place) / "knowledge.db") as store:
            try:
                first = load_folder(folder, store)
            except KnowledgeError:
                return  # the one error that is promised
            again = load_folder(folder, store)
            assert (again.added, again.changed, again.removed) == (0, 0, 0)
            assert again.knowledge_version == first.knowledge_version
            assert all("\n" not in problem and ";" in problem for problem in first.problems)


@settings(max_examples=20)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("12"), TEXTS), unique_by=lambda one: one[:2])
)
def test_the_knowledge_version_follows_content_not_the_way_to_it(
    documents: list[tuple[str, str, str]],
) -> None:
    stored = [Document(Record(name, version, "t", "s"), text) for name, version, text in documents]
    with (
        tempfile.TemporaryDirectory() as place,
        KnowledgeStore(Path(place) / "1.db") as one,
        KnowledgeStore(Path(place) / "2.db") as two,
    ):
        at_once = one.replace(SourceSet("set", "", stored)).knowledge_version
        for number in range(len(stored) + 1):
            two.replace(SourceSet("other", "", stored[len(stored) - number :]))
        assert two.knowledge_version() == at_once
        if stored:
            assert two.replace(SourceSet("other", "", stored[1:])).knowledge_version != at_once


@given(st.lists(st.lists(st.text(alphabet='ab",\n ', max_size=6), min_size=2, max_size=2), max_size=8))
def test_well_formed_tables_read_back(rows: list[list[str]]) -> None:
    quoted = ["x,y", *(",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)]
    expected = [
        {"x": row[0].strip(), "y": row[1].strip()} for row in rows if any(cell.strip() for cell in row)
    ]
    assert [row for _, row in read_table("\n".join(quoted))] == expected
