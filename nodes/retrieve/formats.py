"""How a knowledge file is read: its encoding, the header of a document, the rows of a table.

What could be meant to restrict a document and is not understood is an error, never passed over.
"""

import csv
import difflib
import json
import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Annotated, Literal

import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from nodes.retrieve.access import Access
from nodes.retrieve.facts import Row, RowError

# Keys that some other tool uses to restrict a document; to pass over one would publish it.
_RESTRICTING = re.compile(
    r"access|acl|audience|classif|confiden|group|permission|private|restrict|role|secre|securi|tenant|visib"
    r"|权限|密级|可见|保密|范围",
    re.IGNORECASE,
)


def decode(content: bytes) -> str:
    """Text of a file in UTF-8 (with or without BOM), UTF-16 with BOM or GB18030, its line ends as line feeds.

    Raises RowError where it is none of these. Bytes of some other encoding often pass as GB18030 and read as
    rare characters, so that reading counts only when most of its characters are common ones.
    """
    for encoding in ("utf-16",) if content[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig", "gb18030"):
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if encoding == "gb18030" and not _reads_as_chinese(text):
            continue
        if "\x00" in text:
            raise RowError("holds NUL characters, so it is no text; convert it to text in UTF-8")
        return text.replace("\r\n", "\n").replace("\r", "\n")
    raise RowError("is neither UTF-8 nor GB18030; save it as UTF-8")


def _reads_as_chinese(text: str) -> bool:
    beyond_ascii = [character for character in text if character > "\x7f"]
    common = sum(1 for character in beyond_ascii if _is_common(character))
    return common >= 0.7 * len(beyond_ascii)


def _is_common(character: str) -> bool:
    try:
        return len(character.encode("gb2312")) > 1
    except UnicodeEncodeError:
        return False


def _parts(value: object) -> object:
    """Groups may be a list, or one text with commas or bars between them."""
    if isinstance(value, str):
        return [part.strip() for part in re.split(r"[,，|]", value) if part.strip()]
    return value


def _word(value: object) -> object:
    return str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else value


def _upper(value: object) -> object:
    return value.strip().upper() if isinstance(value, str) else value


def _day(value: object) -> str:
    text = str(value).strip()
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        raise ValueError("not a date")
    return date.fromisoformat(text).isoformat()


_Word = Annotated[
    str, BeforeValidator(_word), Field(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")
]
_Day = Annotated[str, BeforeValidator(_day)]


class Header(BaseModel):
    """What a document says about itself, whatever kind of file it stands in."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: _Word | None = None
    title: _Word | None = None
    version: _Word | None = None
    source: _Word | None = None
    access: Annotated[Access, BeforeValidator(_upper)] | None = None
    groups: Annotated[frozenset[_Word], BeforeValidator(_parts)] = frozenset()
    tenant: _Word | None = None
    knowledge_base: _Word | None = None
    valid_from: _Day | None = None
    valid_until: _Day | None = None
    language: Literal["zh", "en"] | None = None


_REMEDIES = {
    "access": "write PUBLIC, INTERNAL or RESTRICTED",
    "groups": "write a list of group names",
    "valid_from": "write a date like 2024-01-31",
    "valid_until": "write a date like 2024-01-31",
    "language": "write zh or en",
}


class FieldError(RowError):
    """A RowError that knows which field it is about."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


def read_header(values: Mapping[str, object]) -> Header:
    """Header of a document; empty values count as absent. Raises FieldError for the first that is wrong."""
    given = {str(key).strip().lower(): value for key, value in values.items() if value not in ("", None, [])}
    for key in given:
        _check_key(key)
    try:
        header = Header.model_validate(given)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        remedy = _REMEDIES.get(name, "write one line of at most 500 characters")
        raise FieldError(name, f"{name} {given[name]!r:.80} is not usable; {remedy}") from None
    _check_access(header)
    if header.valid_from and header.valid_until and header.valid_until < header.valid_from:
        raise FieldError("valid_until", "valid_until is before valid_from; put the dates in order")
    return header


def _check_key(key: str) -> None:
    if key in Header.model_fields or key == "text":
        return
    near = difflib.get_close_matches(key, Header.model_fields, n=1, cutoff=0.75)
    if near:
        raise FieldError(key, f"{key!r} is not known; write {near[0]!r}, or name it otherwise")
    if _RESTRICTING.search(key):
        raise FieldError(
            key, f"{key!r} is not known and may be meant to restrict; write access, groups or tenant"
        )


def _check_access(header: Header) -> None:
    if header.access == "RESTRICTED" and not header.groups:
        raise FieldError("access", "RESTRICTED without groups can be seen by nobody; add groups")
    if header.groups and header.access != "RESTRICTED":
        raise FieldError("groups", "groups have no effect here; write access: RESTRICTED, or remove them")
    if header.tenant and header.access is None:
        raise FieldError("tenant", "a tenant needs an access; write access: INTERNAL or RESTRICTED")


def split_front_matter(text: str) -> tuple[dict[str, object], str]:
    """The YAML between a first line `---` and the next one, and the text after it.

    All scalars stay text, so that version 1.10 is not 1.1. Raises FieldError named "line N" for a broken one.
    """
    opened = re.match(r"---[ \t]*\n", text)
    if not opened:
        return {}, text
    closed = re.search(r"^---[ \t]*$\n?", text[opened.end() :], re.MULTILINE)
    block = text[opened.end() :][: closed.start()] if closed else text[opened.end() :].partition("\n\n")[0]
    if not re.search(r"^[\s-]*\w[\w-]*\s*:", block, re.MULTILINE):
        return {}, text  # a ruled line, not front matter
    if not closed:
        raise FieldError("line 1", "the front matter is not closed; end it with a line ---")
    try:
        values = yaml.load(block, Loader=yaml.BaseLoader)  # noqa: S506 - builds nothing but text, lists and maps
    except yaml.MarkedYAMLError as error:
        line = (error.problem_mark.line if error.problem_mark else 0) + 2
        raise FieldError(
            f"line {line}", f"the front matter is not YAML ({error.problem}); correct it"
        ) from None
    if not isinstance(values, dict):
        raise FieldError("line 2", "the front matter is not a list of `key: value` lines; correct it")
    return values, text[opened.end() + closed.end() :].lstrip("\n")


def read_table(text: str) -> Iterator[tuple[int, Row | RowError]]:
    """Rows of a CSV text with their line: column -> trimmed cell, or what is wrong with the row.

    A quote that is never closed costs its own line, not the rest of the file.
    """
    lines = [line + "\n" for line in text.split("\n")]
    header: list[str] | None = None
    at = 0
    while at < len(lines):
        cells, used = _next_record(lines, at)
        line, at = at + 1, at + used
        if cells is None:
            yield line, RowError("the quotes do not match; close the quote, and double quotes inside a cell")
        elif any(cells) and header is None:
            header = [cell.lower() for cell in cells]
        elif any(cells) and header is not None:
            yield line, _as_row(header, cells)


def _next_record(lines: list[str], at: int) -> tuple[list[str] | None, int]:
    reader = csv.reader((lines[number] for number in range(at, len(lines))), strict=True)
    try:
        return [cell.strip() for cell in next(reader)], reader.line_num
    except csv.Error:
        return None, 1


def _as_row(header: list[str], cells: list[str]) -> Row | RowError:
    if len(cells) != len(header):
        return RowError(
            f"has {len(cells)} cells where the header has {len(header)}; quote cells that hold commas"
        )
    return dict(zip(header, cells, strict=True))


def read_json_lines(text: str) -> Iterator[tuple[int, Mapping[str, object] | RowError]]:
    """Objects of a JSONL text with their line, or what is wrong with the line. Numbers stay text: exact."""
    for line, row in enumerate(text.split("\n"), start=1):
        if not row.strip():
            continue
        try:
            value = json.loads(row, parse_float=str, parse_int=str)
        except (ValueError, RecursionError):
            yield line, RowError("is not JSON; write one object a line")
            continue
        is_object = isinstance(value, dict) and "\\u0000" not in row
        yield line, value if is_object else RowError("is not a JSON object of plain text; write one a line")
