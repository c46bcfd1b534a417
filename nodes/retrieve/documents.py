"""What is known, and since when: documents by version, their chunks, the directory, the facts; in one file.

Everything lives in one SQLite file (WAL), so that a serving process and an ingesting one can use it at once.
"""

import hashlib
import json
import re
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodes.contracts import Company, Metric, NodeError
from nodes.retrieve.access import Access, DocumentAccess, Key

SCHEMA_VERSION = 1
BUSY_SECONDS = 30.0
MOST_IDLE = 4  # connections kept for the next readers; each has pages of the file in memory
# Part of every document's hash: a change of how text is cut re-indexes documents whose text stayed the same.
CHUNKING = "sentences-1000-bytes/1"
CHUNK_BYTES = 1000  # about 330 Chinese characters or 170 English words
# Tried in order; each keeps what it matched at the end of the piece before it.
SEPARATORS = [
    r"\n{2,}",
    r"\n",
    r"[。！？!?…]+[”’」』）)\"]*|\.(?=\s)",
    r"[；;]",
    r"[，,、：:]",
    r"\s",
    "",
]

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE source_sets (name TEXT PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (
    document_id TEXT NOT NULL, version TEXT NOT NULL, source_set TEXT NOT NULL,
    knowledge_base TEXT NOT NULL, title TEXT NOT NULL, source TEXT NOT NULL, text TEXT NOT NULL,
    access TEXT NOT NULL CHECK (access IN ('PUBLIC', 'INTERNAL', 'RESTRICTED')),
    groups TEXT NOT NULL, tenant TEXT, valid_from TEXT, valid_until TEXT, content_hash TEXT NOT NULL,
    PRIMARY KEY (document_id, version));
CREATE INDEX documents_by_set ON documents (source_set);
CREATE TABLE chunks (
    document_id TEXT NOT NULL, version TEXT NOT NULL, start_at INTEGER NOT NULL, end_at INTEGER NOT NULL,
    PRIMARY KEY (document_id, version, start_at),
    FOREIGN KEY (document_id, version) REFERENCES documents ON DELETE CASCADE) WITHOUT ROWID;
CREATE TABLE companies (
    source_set TEXT NOT NULL, position INTEGER NOT NULL, company_id TEXT NOT NULL, name TEXT NOT NULL,
    aliases TEXT NOT NULL, english_names TEXT NOT NULL, PRIMARY KEY (source_set, company_id));
CREATE TABLE metrics (
    source_set TEXT NOT NULL, position INTEGER NOT NULL, metric_id TEXT NOT NULL, name TEXT NOT NULL,
    english_name TEXT NOT NULL, synonyms TEXT NOT NULL, PRIMARY KEY (source_set, metric_id));
CREATE TABLE facts (
    source_set TEXT NOT NULL, position INTEGER NOT NULL, company TEXT NOT NULL, period TEXT NOT NULL,
    metric TEXT NOT NULL, value TEXT NOT NULL, unit TEXT NOT NULL, document_id TEXT NOT NULL,
    origin TEXT NOT NULL, PRIMARY KEY (source_set, position));
CREATE INDEX facts_by_key ON facts (company, metric, period);
"""
_RECORD = (
    "document_id, version, source_set, knowledge_base, title, source, access, groups, tenant,"
    " valid_from, valid_until"
)


class KnowledgeError(NodeError):
    """Knowledge could not be read or stored. One line that names what and the remedy."""


@dataclass(frozen=True)
class Chunk:
    """A stretch of a document: its text is `document.text[start:end]`, in characters."""

    start: int
    end: int


@dataclass(frozen=True)
class Record:
    """A document version without its text. Dates are ISO and inclusive; None: open on that side."""

    document_id: str
    version: str
    title: str
    source: str
    access: DocumentAccess = field(default_factory=DocumentAccess)
    valid_from: str | None = None
    valid_until: str | None = None
    source_set: str = ""

    @property
    def key(self) -> Key:
        return (self.document_id, self.version)

    @property
    def age(self) -> tuple[str, tuple[tuple[int, int, str], ...]]:
        """Sorts versions of one document from oldest to newest: first by validity, then by version number."""
        parts = re.findall(r"\d+|\D+", self.version)
        numbers = tuple((1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts)
        return (self.valid_from or "", numbers)


@dataclass(frozen=True)
class Document:
    """A document version as it is loaded. A reference document is cited but never searched."""

    record: Record
    text: str
    is_reference: bool = False

    @property
    def content_hash(self) -> str:
        """Equal exactly when nothing that is stored about the document differs, its source set apart."""
        record = self.record
        access = record.access
        return digest_of(
            {
                "chunking": CHUNKING,
                "is_reference": self.is_reference,
                "key": record.key,
                "title": record.title,
                "source": record.source,
                "text": self.text,
                "access": [access.access, sorted(access.groups), access.tenant, access.knowledge_base],
                "validity": [record.valid_from, record.valid_until],
            }
        )


@dataclass(frozen=True)
class Fact:
    """One exact value as a source states it. `origin` is where it was read: "facts.csv:12"."""

    company: str
    period: str
    metric: str
    value: str
    unit: str
    document_id: str
    origin: str


@dataclass(frozen=True)
class SourceSet:
    """All that one folder holds. Loading it again replaces it as a whole."""

    name: str
    digest: str
    documents: Sequence[Document] = ()
    companies: Sequence[Company] = ()
    metrics: Sequence[Metric] = ()
    facts: Sequence[Fact] = ()


@dataclass(frozen=True)
class Replaced:
    """What replacing a source set did, in document versions. One that took another's place is `changed`."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks: int = 0
    knowledge_version: str = ""


@dataclass(frozen=True)
class Snapshot:
    """All that can be searched, at one knowledge version. Chunks in order of document id, version, place."""

    knowledge_version: str
    records: Sequence[Record] = ()
    chunks: Sequence[tuple[int, Chunk, str]] = field(
        default=(), repr=False
    )  # (position in records, chunk, text)


def digest_of(value: object) -> str:
    canonical = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def split_text(text: str) -> list[Chunk]:
    """Cuts text at paragraphs, then sentences, then clauses, into chunks of at most CHUNK_BYTES UTF-8 bytes.

    Chunks do not overlap, are in order, never blank, and begin and end with a visible character.
    """
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter(
        separators=SEPARATORS,
        is_separator_regex=True,
        keep_separator="end",
        strip_whitespace=False,
        chunk_size=CHUNK_BYTES,
        chunk_overlap=0,
        length_function=lambda piece: len(piece.encode("utf-8", "surrogatepass")),
    )
    chunks, position = [], 0
    for piece in splitter.split_text(text):
        start = position + len(piece) - len(piece.lstrip())
        end = position + len(piece.rstrip())
        position += len(piece)
        if start < end:
            chunks.append(Chunk(start, end))
    return chunks


def current_keys(records: Iterable[Record], on_date: str) -> set[Key]:
    """The one version of each document that holds on this day: of the valid ones the newest."""
    newest: dict[tuple[str, str], Record] = {}
    for record in records:
        if (record.valid_from or "") <= on_date <= (record.valid_until or "9999-12-31"):
            name = (record.access.knowledge_base, record.document_id)
            if name not in newest or newest[name].age < record.age:
                newest[name] = record
    return {record.key for record in newest.values()}


class KnowledgeStore:
    """The knowledge file. Safe to share between threads; other processes may read and load meanwhile.

    Readers see the state before or after a load, never between. Raises KnowledgeError where the file cannot
    be opened or is another program's.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._closed = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # It holds restricted text; SQLite's side files follow its mode.
            path.touch(mode=0o600, exist_ok=True)
        except OSError as error:
            raise _unusable(path, error) from error
        with self._writing() as connection:
            _prepare(connection)

    def __enter__(self) -> "KnowledgeStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes what is idle now and, when it is given back, what is in use."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    @property
    def path(self) -> Path:
        return self._path

    def knowledge_version(self) -> str:
        """Changes exactly when stored content changes; equal wherever the content is equal."""
        with self._reading() as connection:
            return str(
                connection.execute("SELECT value FROM meta WHERE key = 'knowledge_version'").fetchone()[0]
            )

    def source_sets(self) -> dict[str, str]:
        """Name of each loaded source set -> digest of the files it was loaded from."""
        with self._reading() as connection:
            return {row["name"]: row["digest"] for row in connection.execute("SELECT * FROM source_sets")}

    def records(self, document_ids: Iterable[str] | None = None) -> list[Record]:
        """All stored versions, of these documents where ids are given, in order of id and version."""
        with self._reading() as connection:
            return _records(connection, document_ids)

    def access_of(self, keys: Sequence[Key]) -> Mapping[Key, DocumentAccess]:
        """access.AccessRecords: the access of these versions as stored now."""
        wanted = set(keys)
        found = self.records({document_id for document_id, _ in wanted})
        return {record.key: record.access for record in found if record.key in wanted}

    def text_of(self, document_id: str, version: str) -> str | None:
        return self.texts_of([(document_id, version)]).get((document_id, version))

    def texts_of(self, keys: Collection[Key]) -> dict[Key, str]:
        """The whole text of each of these versions that is stored."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT document_id, version, text FROM json_each(?) AS wanted JOIN documents"
                " ON document_id = json_extract(wanted.value, '$[0]')"
                " AND version = json_extract(wanted.value, '$[1]')",
                (json.dumps(list(keys)),),
            )
            return {(row["document_id"], row["version"]): row["text"] for row in rows}

    def chunks_of(self, document_id: str, version: str) -> list[Chunk]:
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT start_at, end_at FROM chunks WHERE document_id = ? AND version = ? ORDER BY start_at",
                (document_id, version),
            )
            return [Chunk(row["start_at"], row["end_at"]) for row in rows]

    def snapshot(self) -> Snapshot:
        """Everything an index needs, read at one moment."""
        with self._reading() as connection:
            connection.execute("BEGIN")
            try:
                version = connection.execute(
                    "SELECT value FROM meta WHERE key = 'knowledge_version'"
                ).fetchone()
                records = _records(connection, None)
                place = {record.key: at for at, record in enumerate(records)}
                texts = _all_texts(connection)
                rows = connection.execute(
                    "SELECT document_id, version, start_at, end_at FROM chunks JOIN documents"
                    " USING (document_id, version) ORDER BY document_id, version, start_at"
                )
                places = [
                    ((row["document_id"], row["version"]), row["start_at"], row["end_at"]) for row in rows
                ]
                chunks = [
                    (place[key], Chunk(start, end), texts[key][start:end]) for key, start, end in places
                ]
            finally:
                connection.execute("COMMIT")
            return Snapshot(str(version[0]), records, chunks)

    def companies(self, *, without: Collection[str] = ()) -> list[Company]:
        """In directory order: as listed; several lists are merged place by place, each company once.

        `without` leaves out what only these source sets list.
        """
        rows = self._rows("SELECT * FROM companies ORDER BY position, company_id, source_set")
        found: dict[str, Company] = {}
        for row in rows:
            if row["source_set"] in without:
                continue
            aliases, english = json.loads(row["aliases"]), json.loads(row["english_names"])
            company = Company(row["company_id"], row["name"], tuple(aliases), tuple(english))
            found.setdefault(company.company_id, company)
        return list(found.values())

    def metrics(self, *, without: Collection[str] = ()) -> list[Metric]:
        """In the order of `companies`."""
        found: dict[str, Metric] = {}
        for row in self._rows("SELECT * FROM metrics ORDER BY position, metric_id, source_set"):
            if row["source_set"] in without:
                continue
            synonyms = tuple(json.loads(row["synonyms"]))
            metric = Metric(row["metric_id"], row["name"], row["english_name"], synonyms)
            found.setdefault(metric.metric_id, metric)
        return list(found.values())

    def facts(self, *, company: str, metric: str, period: str | None = None) -> list[Fact]:
        """Every statement of this fact, or of this company's metric in any period; whoever may see it."""
        rows = self._rows(
            "SELECT company, period, metric, value, unit, document_id, origin FROM facts"
            " WHERE company = ? AND metric = ? AND (? IS NULL OR period = ?)"
            " ORDER BY period, source_set, position",
            (company, metric, period, period),
        )
        return [Fact(**dict(row)) for row in rows]

    def replace(self, new: SourceSet, *, in_place_of: Collection[str] = ()) -> Replaced:
        """Makes a source set exactly this, in one transaction; documents that did not change are not touched.

        The source sets `in_place_of` go at the same moment. The caller has checked that no other set owns one
        of the document ids (`records` tells).
        """
        with self._writing() as connection:
            for name in sorted(set(in_place_of) - {new.name}):
                _remove_set(connection, name)
            outcome = _replace_documents(connection, new)
            _replace_tables(connection, new)
            connection.execute("INSERT OR REPLACE INTO source_sets VALUES (?, ?)", (new.name, new.digest))
            version = _update_version(connection)
            chunks = connection.execute(
                "SELECT count(*) FROM chunks JOIN documents USING (document_id, version)"
                " WHERE source_set = ?",
                (new.name,),
            ).fetchone()[0]
        return Replaced(**outcome, chunks=chunks, knowledge_version=version)

    def remove(self, source_set: str) -> bool:
        """Takes a source set away with all it holds; False where there is none of this name."""
        with self._writing() as connection:
            was_there = _remove_set(connection, source_set)
            _update_version(connection)
        return was_there

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        with self._reading() as connection:
            return connection.execute(query, values).fetchall()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Lends a connection to one thread at a time; one for each of ever new threads would leak."""
        with self._lock:
            if self._closed:
                raise KnowledgeError(f"The knowledge file {self._path} was closed. Open it again.")
            connection = self._idle.pop() if self._idle else None
        try:
            connection = connection or _connect(self._path)
            yield connection
        except sqlite3.Error as error:
            raise _unusable(self._path, error) from error
        finally:
            self._give_back(connection)

    def _give_back(self, connection: sqlite3.Connection | None) -> None:
        if connection is None:
            return
        with self._lock:
            if not self._closed and len(self._idle) < MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")


def _unusable(path: Path, error: Exception) -> KnowledgeError:
    return KnowledgeError(
        f"The knowledge file {path} cannot be used ({error}). Check that its folder can be written and has "
        "space, or move the file away and ingest again."
    )


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found == SCHEMA_VERSION:
        return
    if found or connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise sqlite3.DatabaseError(f"its layout is {found}, this release reads {SCHEMA_VERSION}")
    for statement in _SCHEMA.split(";"):
        connection.execute(statement)
    _update_version(connection)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _records(connection: sqlite3.Connection, document_ids: Iterable[str] | None) -> list[Record]:
    query, values = f"SELECT {_RECORD} FROM documents", []  # noqa: S608 - a constant list of columns
    if document_ids is not None:
        query += " WHERE document_id IN (SELECT value FROM json_each(?))"
        values = [json.dumps(sorted(document_ids))]
    return [_record(row) for row in connection.execute(query + " ORDER BY document_id, version", values)]


def _all_texts(connection: sqlite3.Connection) -> dict[Key, str]:
    """Every text, read once. Cut in SQL, one would be read from its start again for each of its chunks."""
    rows = connection.execute("SELECT document_id, version, text FROM documents")
    return {(document_id, version): text for document_id, version, text in rows}


def _record(row: sqlite3.Row) -> Record:
    level: Access = row["access"]
    groups = frozenset(json.loads(row["groups"]))
    return Record(
        document_id=row["document_id"],
        version=row["version"],
        title=row["title"],
        source=row["source"],
        access=DocumentAccess(level, groups, row["tenant"], row["knowledge_base"]),
        valid_from=row["valid_from"],
        valid_until=row["valid_until"],
        source_set=row["source_set"],
    )


def _remove_set(connection: sqlite3.Connection, name: str) -> bool:
    for table in ("documents", "companies", "metrics", "facts"):
        connection.execute(f"DELETE FROM {table} WHERE source_set = ?", (name,))  # noqa: S608 - fixed names
    return connection.execute("DELETE FROM source_sets WHERE name = ?", (name,)).rowcount > 0


def _replace_documents(connection: sqlite3.Connection, new: SourceSet) -> dict[str, int]:
    rows = connection.execute(
        "SELECT document_id, version, content_hash FROM documents WHERE source_set = ?", (new.name,)
    )
    before = {(row["document_id"], row["version"]): row["content_hash"] for row in rows}
    after = {document.record.key: document for document in new.documents}
    unchanged = {key for key, document in after.items() if before.get(key) == document.content_hash}
    connection.executemany(
        "DELETE FROM documents WHERE document_id = ? AND version = ?", sorted(before.keys() - unchanged)
    )
    for key in sorted(after.keys() - unchanged):
        _insert_document(connection, new.name, after[key])
    return _count_changes(before.keys(), after.keys(), len(unchanged))


def _count_changes(before: Iterable[Key], after: Iterable[Key], unchanged: int) -> dict[str, int]:
    old, new = set(before), set(after)
    gone = [document_id for document_id, _ in old - new]
    replaced = 0
    for document_id, _ in new - old:
        if document_id in gone:
            gone.remove(document_id)
            replaced += 1
    return {
        "added": len(new - old) - replaced,
        "changed": len(new & old) - unchanged + replaced,
        "unchanged": unchanged,
        "removed": len(gone),
    }


def _insert_document(connection: sqlite3.Connection, source_set: str, document: Document) -> None:
    record, access = document.record, document.record.access
    groups = json.dumps(sorted(access.groups), ensure_ascii=False)
    row = (
        *record.key,
        source_set,
        access.knowledge_base,
        record.title,
        record.source,
        document.text,
        access.access,
        groups,
        access.tenant,
        record.valid_from,
        record.valid_until,
        document.content_hash,
    )
    connection.execute("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    chunks = [] if document.is_reference else split_text(document.text)
    connection.executemany(
        "INSERT INTO chunks VALUES (?, ?, ?, ?)", [(*record.key, chunk.start, chunk.end) for chunk in chunks]
    )


def _replace_tables(connection: sqlite3.Connection, new: SourceSet) -> None:
    for table in ("companies", "metrics", "facts"):
        connection.execute(f"DELETE FROM {table} WHERE source_set = ?", (new.name,))  # noqa: S608 - fixed names
    connection.executemany(
        "INSERT INTO companies VALUES (?, ?, ?, ?, ?, ?)",
        [
            (new.name, at, one.company_id, one.name, json.dumps(one.aliases), json.dumps(one.english_names))
            for at, one in enumerate(new.companies)
        ],
    )
    connection.executemany(
        "INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)",
        [
            (new.name, at, one.metric_id, one.name, one.english_name, json.dumps(one.synonyms))
            for at, one in enumerate(new.metrics)
        ],
    )
    connection.executemany(
        "INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                new.name,
                at,
                one.company,
                one.period,
                one.metric,
                one.value,
                one.unit,
                one.document_id,
                one.origin,
            )
            for at, one in enumerate(new.facts)
        ],
    )


# Neither the name of a source set nor where a fact was read is content: machines that hold the same agree.
_CONTENT = (
    "SELECT document_id, version, content_hash FROM documents ORDER BY document_id, version",
    "SELECT company_id, name, aliases, english_names FROM companies ORDER BY position, company_id, name",
    "SELECT metric_id, name, english_name, synonyms FROM metrics ORDER BY position, metric_id, name",
    "SELECT company, period, metric, value, unit, document_id FROM facts ORDER BY 1, 2, 3, 4, 5, 6",
)


def _update_version(connection: sqlite3.Connection) -> str:
    content = hashlib.sha256()
    for query in _CONTENT:
        content.update(digest_of([list(row) for row in connection.execute(query)]).encode())
    version = content.hexdigest()[:16]
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('knowledge_version', ?)", (version,))
    return version
