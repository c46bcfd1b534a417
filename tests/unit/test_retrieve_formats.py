"""Reading files: encodings, headers, front matter, tables."""

import json

import pytest

from nodes.retrieve.facts import RowError, read_company, read_decimal, read_fact
from nodes.retrieve.formats import (
    FieldError,
    decode,
    read_header,
    read_json_lines,
    read_table,
    split_front_matter,
)

CHINESE = "差旅费报销：一线城市每晚不超过600元。"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "gbk", "utf-16"])
def test_text_reads_the_same_in_every_supported_encoding(encoding: str) -> None:
    assert decode(CHINESE.encode(encoding)) == CHINESE


def test_line_ends_become_line_feeds() -> None:
    assert decode(b"a\r\nb\rc\n") == "a\nb\nc\n"


@pytest.mark.parametrize(
    "content",
    [
        "Caf\u00e9 d\u00e9j\u00e0 vu, tr\u00e8s \u00e9l\u00e9gant et f\u00eat\u00e9.".encode("latin-1"),
        "Überprüfung für Geschäftsführer".encode("latin-1"),
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff\xfe\xfd",
        bytes(range(256)),
    ],
)
def test_other_encodings_are_refused_not_garbled(content: bytes) -> None:
    with pytest.raises(RowError, match="UTF-8"):
        decode(content)


def test_nul_characters_are_refused() -> None:
    with pytest.raises(RowError, match="NUL"):
        decode(b"a\x00b")


def test_front_matter_keeps_scalars_as_written() -> None:
    values, text = split_front_matter(
        "---\nversion: 1.10\nvalid_from: 2024-01-01\ngroups: [hr, it]\n---\n\n# T\n"
    )
    assert values == {"version": "1.10", "valid_from": "2024-01-01", "groups": ["hr", "it"]}
    assert text == "# T\n"


@pytest.mark.parametrize(
    "text", ["plain", "---\n\nruled off\n\n---\nmore", "---", "--- not it\na: b\n---\n", ""]
)
def test_text_without_front_matter_is_left_whole(text: str) -> None:
    assert split_front_matter(text) == ({}, text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("---\naccess: RESTRICTED\n# never closed\n", "line 1"),
        ("---\nid: a\ntitle: [open\n---\n", "line"),
        ("---\n- access: PUBLIC\n---\n", "line 2"),
        ("---\nx: !!python/object/apply:os.getcwd []\n---\n", None),
    ],
)
def test_broken_front_matter_is_never_taken_for_text(text: str, name: str | None) -> None:
    if name is None:
        values, _ = split_front_matter(text)
        assert values == {"x": []}  # the tag builds nothing
        return
    with pytest.raises(FieldError) as raised:
        split_front_matter(text)
    assert raised.value.name.startswith(name)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"access": "SECRET"}, "access"),
        ({"access": "RESTRICTED"}, "access"),
        ({"acess": "RESTRICTED", "groups": ["hr"]}, "acess"),
        ({"group": "hr"}, "group"),
        ({"visibility": "private"}, "visibility"),
        ({"密级": "机密"}, "密级"),
        ({"groups": ["hr"]}, "groups"),
        ({"access": "INTERNAL", "groups": ["hr"]}, "groups"),
        ({"tenant": "acme"}, "tenant"),
        ({"valid_from": "next week"}, "valid_from"),
        ({"valid_from": "20240101"}, "valid_from"),
        ({"valid_until": "2024-02-30"}, "valid_until"),
        ({"valid_from": "2024-02-01", "valid_until": "2024-01-01"}, "valid_until"),
        ({"id": "a\nb"}, "id"),
        ({"id": ["a"]}, "id"),
        ({"language": "fr"}, "language"),
    ],
)
def test_a_header_that_is_not_understood_is_refused(values: dict[str, object], field: str) -> None:
    with pytest.raises(FieldError) as raised:
        read_header(values)
    assert raised.value.name == field


def test_a_header_reads_what_is_given_and_passes_over_harmless_keys() -> None:
    header = read_header(
        {
            "id": "a",
            "version": 2,
            "access": "restricted",
            "groups": "hr, it",
            "author": "Lin",
            "tags": ["x"],
            "title": "",
        }
    )
    assert (header.id, header.version, header.access, header.groups) == ("a", "2", "RESTRICTED", {"hr", "it"})
    assert header.title is None


def test_a_table_gives_rows_with_their_lines() -> None:
    text = '\nID , Title\n\na,"one\nand two"\nb,three\n'
    assert list(read_table(text)) == [
        (4, {"id": "a", "title": "one\nand two"}),
        (6, {"id": "b", "title": "three"}),
    ]


def test_a_broken_row_costs_itself_alone() -> None:
    text = 'id,title\na,one\nb,"never closed\nc,three\nd,four,five\ne,six\n'
    rows = list(read_table(text))
    assert [line for line, row in rows if isinstance(row, RowError)] == [3, 5]
    assert [row["id"] for _, row in rows if isinstance(row, dict)] == ["a", "c", "e"]


def test_json_lines_keep_numbers_exact() -> None:
    rows = dict(read_json_lines('{"value": 1320.50}\n\nnot json\n[1]\n{"big": 12345678901234567890.10}'))
    assert rows[1] == {"value": "1320.50"}
    assert rows[5] == {"big": "12345678901234567890.10"}
    assert isinstance(rows[3], RowError)
    assert isinstance(rows[4], RowError)
    nul = dict(read_json_lines(json.dumps({"text": "a\x00b"})))
    assert isinstance(nul[1], RowError)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("1320.50", "1320.50"),
        ("1,320.50", "1320.50"),
        ("-3", "-3"),
        ("+0.10", "0.10"),
        ("１２．５", "12.5"),
        ("−2", "-2"),
    ],
)
def test_decimals_are_kept_as_written(written: str, read: str) -> None:
    assert read_decimal(written) == read


@pytest.mark.parametrize(
    "written", ["", "12,34", "1e6", "nan", "Infinity", "12%", "12.", ".5", "1 320", "约12", "0x10"]
)
def test_what_is_not_one_plain_decimal_is_refused(written: str) -> None:
    with pytest.raises(RowError):
        read_decimal(written)


@pytest.mark.parametrize("period", ["FY2023", "23", "2023Q5", "2023H3", "2023-12", "2023年"])
def test_periods_are_canonical_only(period: str) -> None:
    row = {"company": "a", "period": period, "metric": "m", "value": "1"}
    with pytest.raises(RowError, match="2023Q3"):
        read_fact(row, stated_by="facts.csv", origin="facts.csv:2")


def test_a_company_splits_its_names() -> None:
    company = read_company(
        {"company_id": "a", "name": "甲", "aliases": "乙| 丙||乙", "english_names": "A Ltd"}
    )
    assert (company.aliases, company.english_names) == (("乙", "丙"), ("A Ltd",))
