"""A folder becomes knowledge: which files count, what they amount to, and what is said about the others.

Nothing is guessed about who may see a document: what could be meant to restrict it and is not understood
keeps the document out, with a named problem.
"""

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from nodes.contracts import Company, Metric
from nodes.retrieve.access import DocumentAccess, Key
from nodes.retrieve.documents import (
    CHUNKING,
    Document,
    Fact,
    KnowledgeError,
    KnowledgeStore,
    Record,
    SourceSet,
)
from nodes.retrieve.facts import Row, RowError, read_company, read_fact, read_metric, required, say_the_same
from nodes.retrieve.formats import (
    FieldError,
    Header,
    decode,
    read_header,
    read_json_lines,
    read_table,
    split_front_matter,
)

Progress = Callable[[int, int, str], None]  # files done, files in all, name of the file just read

SUFFIXES = frozenset({".md", ".txt", ".csv", ".jsonl"})
MAX_FILE_BYTES = 32 * 1024 * 1024
_FACTS_FILE = re.compile(r"facts.*\.(csv|jsonl)", re.IGNORECASE)


@dataclass(frozen=True)
class LoadReport:
    """What loading a folder did, in document versions. Problems read "file:line: what is wrong; remedy"."""

    source_set: str
    added: int
    changed: int
    unchanged: int
    removed: int
    chunks: int
    facts: int
    companies: int
    metrics: int
    knowledge_version: str
    problems: tuple[str, ...] = ()


def load_folder(
    path: Path,
    store: KnowledgeStore,
    *,
    progress: Progress | None = None,
    name: str | None = None,
    knowledge_base: str = "default",
    in_place_of: Collection[str] = (),
) -> LoadReport:
    """Makes the folder's source set exactly what the folder holds now; other sets are not touched.

    Only the source sets `in_place_of` are taken away at the same moment (as the sample is, by a first folder
    of one's own).

    `name` is the source set's, by default the folder's full path. `knowledge_base` is for documents that name
    none. Stored in one transaction at the end. Raises KnowledgeError, with nothing changed, where the folder
    is missing, cannot be read or holds nothing usable.
    """
    name = name or str(path.resolve())
    content = _Content(knowledge_base)
    files = list_files(path)
    for done, file in enumerate(files, start=1):
        content.read_file(path, file)
        if progress is not None:
            progress(done, len(files), file.name)
    if unread := _unread_kinds(path):
        content.problems.append(unread)
    leaving = {name, *in_place_of}
    _check_ownership(content, store, leaving)
    facts = _check_facts(content, store, leaving)
    if not (content.documents or content.companies or content.metrics or facts):
        first = f" First problem: {content.problems[0]}." if content.problems else ""
        raise KnowledgeError(f"{path} holds nothing that can be used.{first} Nothing was changed.")
    new = SourceSet(
        name=name,
        digest=content.digest(),
        documents=list(content.documents.values()),
        companies=list(content.companies.values()),
        metrics=list(content.metrics.values()),
        facts=facts,
    )
    done_by_store = store.replace(new, in_place_of=in_place_of)
    return LoadReport(
        source_set=name,
        facts=len(facts),
        companies=len(new.companies),
        metrics=len(new.metrics),
        problems=tuple(content.problems),
        **vars(done_by_store),
    )


def list_files(folder: Path) -> list[Path]:
    """Files below the folder that can be knowledge, in order of their path. Hidden ones are passed over.

    Raises KnowledgeError where there is none, or where a folder cannot be read.
    """
    found = [file for file in _walk(folder) if file.suffix.lower() in SUFFIXES]
    if not found:
        raise KnowledgeError(
            f"{folder} holds no .md, .txt, .csv or .jsonl file. Put documents there, or name another."
        )
    return sorted(found, key=lambda file: file.relative_to(folder).as_posix())


def folder_digest(folder: Path) -> str:
    """Changes exactly when a file that can be knowledge, or how text is cut, changes."""
    return _digest((file.relative_to(folder).as_posix(), file.read_bytes()) for file in list_files(folder))


def _digest(files: Iterator[tuple[str, bytes]]) -> str:
    total = hashlib.sha256(CHUNKING.encode())
    for name, content in files:
        total.update(hashlib.sha256(name.encode()).digest() + hashlib.sha256(content).digest())
    return total.hexdigest()


def _walk(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        state = "is a file" if folder.exists() else "does not exist"
        raise KnowledgeError(f"{folder} {state}. Name a folder that holds documents.")
    for parent, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(parent) / name for name in files if not name.startswith("."))


def _refuse(error: OSError) -> None:
    raise KnowledgeError(
        f"{error.filename} cannot be read ({error.strerror}). Grant access to it and load again."
    )


def _unread_kinds(folder: Path) -> str | None:
    others = [
        file.suffix.lower() or "no suffix" for file in _walk(folder) if file.suffix.lower() not in SUFFIXES
    ]
    if not others:
        return None
    kinds = ", ".join(sorted(set(others))[:8])
    name, files = folder.resolve().name, f"{len(others)} file{'s' * (len(others) > 1)}"
    return f"{name}:0: {files} of other kinds not read ({kinds}); convert to .md or .txt"


@dataclass
class _Content:
    """Collects what the files of a folder say, and what is wrong with them."""

    knowledge_base: str
    documents: dict[Key, Document] = field(default_factory=dict)
    companies: dict[str, Company] = field(default_factory=dict)
    metrics: dict[str, Metric] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    has_own_version: dict[str, bool] = field(
        default_factory=dict
    )  # document id -> whether all its versions do
    bytes_read: dict[str, bytes] = field(default_factory=dict)

    def digest(self) -> str:
        return _digest(iter(self.bytes_read.items()))

    def read_file(self, folder: Path, file: Path) -> None:
        name = file.relative_to(folder).as_posix()
        try:
            text = decode(self._bytes_of(folder, file, name))
        except RowError as error:
            self.problems.append(f"{name}:1: {error}")
            return
        if file.name.lower() == "companies.csv":
            self._read_rows(name, text, self._add_company)
        elif file.name.lower() == "metrics.csv":
            self._read_rows(name, text, self._add_metric)
        elif _FACTS_FILE.fullmatch(file.name):
            self._read_facts(name, text)
        elif file.suffix.lower() in (".csv", ".jsonl"):
            self._read_rows(name, text, self._add_listed_document)
        else:
            self._read_document(name, text)

    def _bytes_of(self, folder: Path, file: Path, name: str) -> bytes:
        if not file.resolve().is_relative_to(folder.resolve()):
            raise RowError("is a link that leads out of the folder; put the file itself there")
        try:
            if file.stat().st_size > MAX_FILE_BYTES:
                raise RowError(f"is larger than {MAX_FILE_BYTES // 1024 // 1024} MiB; split it")
            content = file.read_bytes()
        except OSError as error:
            raise RowError(f"cannot be read ({error.strerror}); grant access to it") from error
        self.bytes_read[name] = content
        return content

    def _read_document(self, name: str, text: str) -> None:
        try:
            values, body = split_front_matter(text)
            self._add_document(read_header(values), body, name)
        except FieldError as error:
            self.problems.append(f"{name}:{_line_of(error.name, text)}: {error}")
        except RowError as error:
            self.problems.append(f"{name}:1: {error}")

    def _read_rows(self, name: str, text: str, add: Callable[[Mapping[str, object], str, int], None]) -> None:
        rows = read_json_lines(text) if name.lower().endswith(".jsonl") else read_table(text)
        for line, row in rows:
            try:
                if isinstance(row, RowError):
                    raise row
                add(row, name, line)
            except RowError as error:
                self.problems.append(f"{name}:{line}: {error}")

    def _add_company(self, row: Mapping[str, object], _name: str, _line: int) -> None:
        company = read_company(_as_cells(row))
        if self.companies.setdefault(company.company_id, company) != company:
            raise RowError(f"company {company.company_id!r} is listed before; give each its own id")

    def _add_metric(self, row: Mapping[str, object], _name: str, _line: int) -> None:
        metric = read_metric(_as_cells(row))
        if self.metrics.setdefault(metric.metric_id, metric) != metric:
            raise RowError(f"metric {metric.metric_id!r} is listed before; give each its own id")

    def _read_facts(self, name: str, text: str) -> None:
        """The file itself is the citable document of facts that name none; it is not searched."""
        before = len(self.facts)

        def add(row: Mapping[str, object], name: str, line: int) -> None:
            self.facts.append(read_fact(_as_cells(row), stated_by=name, origin=f"{name}:{line}"))

        self._read_rows(name, text, add)
        if any(fact.document_id == name for fact in self.facts[before:]):
            self._add_document(Header(id=name, title=name), text, name, is_reference=True)

    def _add_listed_document(self, row: Mapping[str, object], name: str, _line: int) -> None:
        text = row.get("text")
        if not isinstance(text, str) or not text.strip():
            raise RowError("column 'text' is missing or empty; documents need columns id, title and text")
        required(_as_cells(row), "id")
        self._add_document(
            read_header({key: value for key, value in row.items() if key != "text"}), text, name
        )

    def _add_document(self, header: Header, text: str, name: str, *, is_reference: bool = False) -> None:
        if not text.strip():
            raise RowError("holds no text; write some, or remove the file")
        document = self._document(header, text, name, is_reference=is_reference)
        key = document.record.key
        if key in self.documents:
            raise RowError(
                f"document {key[0]!r} version {key[1]!r} is there before; give each version its own"
            )
        own_version = header.version is not None
        if not (
            self.has_own_version.get(key[0], True) and (own_version or key[0] not in self.has_own_version)
        ):
            raise RowError(
                f"document {key[0]!r} is there before; give it another id, or both their own version"
            )
        self.has_own_version[key[0]] = own_version
        self.documents[key] = document

    def _document(self, header: Header, text: str, name: str, *, is_reference: bool) -> Document:
        heading = re.search(r"^#{1,6}[ \t]+(\S.*)$", text, re.MULTILINE)
        stem = name.rsplit(".", 1)[0]
        title = header.title or (heading.group(1).strip(" \t#")[:200] if heading else stem.rsplit("/", 1)[-1])
        base = header.knowledge_base or self.knowledge_base
        record = Record(
            document_id=header.id or stem,
            version=header.version or hashlib.sha256(text.encode()).hexdigest()[:12],
            title=title,
            source=header.source or name,
            access=DocumentAccess(header.access or "PUBLIC", header.groups, header.tenant, base),
            valid_from=header.valid_from,
            valid_until=header.valid_until,
        )
        return Document(record, text, is_reference)


def _line_of(name: str, text: str) -> int:
    """Line of a front matter field, 1-based; 1 where it cannot be told."""
    if name.startswith("line "):
        return int(name.removeprefix("line "))
    for number, line in enumerate(text.split("\n"), start=1):
        if line.split(":")[0].strip().lower() == name:
            return number
    return 1


def _as_cells(row: Mapping[str, object]) -> Row:
    return {
        key.lower(): "|".join(map(str, value)) if isinstance(value, list) else str(value).strip()
        for key, value in row.items()
        if value is not None
    }


def _check_ownership(content: _Content, store: KnowledgeStore, leaving: Collection[str]) -> None:
    """Leaves out documents and names that another source set owns: replacing them would change that set."""
    for record in store.records({document_id for document_id, _ in content.documents}):
        if record.source_set in leaving:
            continue
        for key in [key for key in content.documents if key[0] == record.document_id]:
            file = content.documents.pop(key).record.source
            content.problems.append(
                f"{file}:1: document {record.document_id!r} belongs to source set {record.source_set!r};"
                " give it another id, or load it under that set's name"
            )


def _check_facts(content: _Content, store: KnowledgeStore, leaving: Collection[str]) -> list[Fact]:
    """Facts whose company, metric and document are known. Contradictions are named, and left to `look_up`."""
    companies = _Named("company")
    for company in (*store.companies(without=leaving), *content.companies.values()):
        names = (company.name, *company.aliases, *company.english_names)
        companies.add(company.company_id, names)
    metrics = _Named("metric")
    for metric in (*store.metrics(without=leaving), *content.metrics.values()):
        metrics.add(metric.metric_id, (metric.name, metric.english_name, *metric.synonyms))
    elsewhere = store.records({fact.document_id for fact in content.facts})
    documents = {record.document_id for record in elsewhere if record.source_set not in leaving}
    documents |= {document_id for document_id, _ in content.documents}
    known: list[Fact] = []
    for fact in content.facts:
        try:
            named = replace(fact, company=companies.id_of(fact.company), metric=metrics.id_of(fact.metric))
        except RowError as error:
            content.problems.append(f"{fact.origin}: {error}")
            continue
        if fact.document_id in documents:
            known.append(named)
        else:
            content.problems.append(
                f"{fact.origin}: document {fact.document_id!r} is unknown; correct its id, or leave it empty"
            )
    content.problems.extend(_contradictions(known))
    return known


class _Named:
    """Companies or metrics as a row of facts may call them: by id, or by a name that no other one has."""

    def __init__(self, kind: Literal["company", "metric"]) -> None:
        self._kind = kind
        self._ids: set[str] = set()
        self._by_name: dict[str, set[str]] = {}

    def add(self, identity: str, names: Iterable[str]) -> None:
        self._ids.add(identity)
        for name in names:
            self._by_name.setdefault(name.casefold(), set()).add(identity)

    def id_of(self, written: str) -> str:
        """Raises RowError for what is no id, and the name of none or of several."""
        named = {written} if written in self._ids else self._by_name.get(written.casefold(), set())
        if len(named) == 1:
            return next(iter(named))
        if named:
            raise RowError(
                f"{self._kind} {written!r} is the name of several; write one id: {', '.join(sorted(named))}"
            )
        file = "companies.csv" if self._kind == "company" else "metrics.csv"
        raise RowError(f"{self._kind} {written!r} is unknown; add it to {file}")


def _contradictions(facts: list[Fact]) -> Iterator[str]:
    first: dict[tuple[str, str, str], Fact] = {}
    for fact in facts:
        before = first.setdefault((fact.company, fact.period, fact.metric), fact)
        if not say_the_same([before, fact]):
            yield (
                f"{fact.origin}: {fact.company} {fact.period} {fact.metric} is {fact.value} {fact.unit} here"
                f" and {before.value} {before.unit} at {before.origin}; keep one, or it counts as not found"
            )
