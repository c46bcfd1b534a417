"""Vectors of texts, kept on disk beside the knowledge: no text is ever embedded twice.

A file of its own, which can be deleted at any time: it only costs the time to embed again.
"""

import fcntl
import hashlib
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from nodes.contracts import Language
from nodes.retrieve.documents import BUSY_SECONDS, KnowledgeError, KnowledgeStore, Snapshot
from nodes.retrieve.embedders import Embedder
from nodes.retrieve.usual_questions import CHINESE, ENGLISH

Progress = Callable[[int, int, str], None]  # passages done, passages in all, title of the one just done
Found = TypeVar("Found")

USUAL: Mapping[Language, Sequence[str]] = {"zh": CHINESE, "en": ENGLISH}
BATCH = 8  # texts embedded before they are kept; who ends the program loses no more
_APPLICATION = 0x42417665  # in the file's head: made by this program
_LAYOUT = 1
_SCHEMA = (
    "CREATE TABLE vectors (model TEXT NOT NULL, text_hash TEXT NOT NULL, vector BLOB NOT NULL,"
    " checksum INTEGER NOT NULL, PRIMARY KEY (model, text_hash)) WITHOUT ROWID"
)


def texts_of(snapshot: Snapshot) -> list[str]:
    """What is embedded of each chunk: its document's title and its text."""
    return [f"{snapshot.records[record].title}\n{text}".strip() for record, _, text in snapshot.chunks]


class VectorCache:
    """The vectors of one model, by the hash of the text. Safe to share between threads and processes.

    A file that is damaged or not ours is begun anew. Raises KnowledgeError where none can be written.
    """

    def __init__(self, path: Path, model: str) -> None:
        self.path = path
        self._model = model

    def read(self, texts: Sequence[str]) -> dict[str, Any]:
        """Text -> vector, for the texts that are kept whole. All have the same length, the commonest kept."""
        hashes = {hash_of(text): text for text in texts}
        rows = self._use(lambda connection: _read(connection, self._model, hashes))
        lengths = [len(row) for row in rows.values()]
        usual = max(lengths, key=lengths.count, default=0) if len(set(lengths)) > 1 else None
        return {hashes[key]: row for key, row in rows.items() if usual is None or len(row) == usual}

    def add(self, vectors: Mapping[str, Any]) -> None:
        """Text -> vector."""
        rows = [(self._model, hash_of(text), *_as_bytes(vector)) for text, vector in vectors.items()]
        self._use(
            lambda connection: connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows
            )
        )

    def keep_only(self, texts: Sequence[str]) -> None:
        """Drops the vectors of all other texts, of whichever model."""
        kept = json.dumps(sorted({hash_of(text) for text in texts}))
        self._use(
            lambda connection: connection.execute(
                "DELETE FROM vectors WHERE text_hash NOT IN (SELECT value FROM json_each(?))", (kept,)
            )
        )

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Waits until no other process or thread holds this; the system gives it back however one dies."""
        with _lock_file(self.path).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _use(self, work: Callable[[sqlite3.Connection], Found]) -> Found:
        try:
            try:
                return self._once(work)
            except sqlite3.OperationalError:
                raise  # full, read-only or busy: the file itself is well
            except sqlite3.DatabaseError:
                self._begin_anew()
                return self._once(work)
        except (sqlite3.Error, OSError) as error:
            raise KnowledgeError(
                f"The vectors cannot be kept in {self.path} ({error}). Check that its folder can be written "
                "and has space, or delete the file."
            ) from error

    def _once(self, work: Callable[[sqlite3.Connection], Found]) -> Found:
        self.path.touch(mode=0o600, exist_ok=True)  # a vector tells something of a restricted text
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        with closing(connection):
            _prepare(connection)
            connection.execute("BEGIN IMMEDIATE")
            found = work(connection)
            connection.execute("COMMIT")
            return found

    def _begin_anew(self) -> None:
        for suffix in ("", "-wal", "-shm", "-journal"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)


def cache_of(store: KnowledgeStore, model: str) -> VectorCache:
    return VectorCache(store.path.with_name(f"{store.path.stem}.vectors.db"), model)


def embed_all(store: KnowledgeStore, embedder: Embedder, progress: Progress | None = None) -> int:
    """Embeds what the knowledge holds now and has no vector yet -> how many texts that were.

    One process or thread at a time: the others wait here and then find the work done. Vectors of texts that
    are gone are dropped. What is done when it is interrupted is kept.
    """
    cache = cache_of(store, embedder.name)
    with cache.alone():
        snapshot = store.snapshot()
        texts, asked = texts_of(snapshot), [_as_question(text) for text in _usual()]
        known = cache.read([*texts, *asked])
        cache.add({text: embedder.question(text[1:]) for text in asked if text not in known})
        titles = {
            text: snapshot.records[chunk[0]].title
            for text, chunk in zip(texts, snapshot.chunks, strict=True)
            if text not in known
        }
        _embed_missing(cache, embedder, titles, progress)
        cache.keep_only([*texts, *asked])
    return len(titles)


def _embed_missing(
    cache: VectorCache, embedder: Embedder, titles: Mapping[str, str], progress: Progress | None
) -> None:
    missing = list(titles)
    for start in range(0, len(missing), BATCH):
        batch = missing[start : start + BATCH]
        cache.add(dict(zip(batch, embedder.passages(batch), strict=True)))
        if progress is not None:
            progress(start + len(batch), len(missing), titles[batch[-1]])


def read_vectors(
    store: KnowledgeStore, snapshot: Snapshot, embedder: Embedder
) -> tuple[Any, dict[Language, Any]] | None:
    """A row for each chunk, and the rows of the usual questions by language; None while one is missing."""
    texts = texts_of(snapshot)
    asked = {language: [_as_question(text) for text in each] for language, each in USUAL.items()}
    known = cache_of(store, embedder.name).read([*texts, *asked["zh"], *asked["en"]])
    try:
        rows = np.array([known[text] for text in texts])
        return rows, {language: np.array([known[text] for text in each]) for language, each in asked.items()}
    except KeyError:
        return None


def count_missing(store: KnowledgeStore, embedder: Embedder) -> int:
    """How many of the texts of the knowledge have no vector yet. The model is asked for one, to try it."""
    embedder.question(CHINESE[0])
    texts = set(texts_of(store.snapshot()))
    return len(texts - cache_of(store, embedder.name).read(sorted(texts)).keys())


def _usual() -> list[str]:
    return [text for each in USUAL.values() for text in each]


def _as_question(text: str) -> str:
    """The key of a question's vector: that of no passage, which would have another for the same words."""
    return f"\0{text}"


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _lock_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _prepare(connection: sqlite3.Connection) -> None:
    """Raises DatabaseError for a file that is another program's, or of another release."""
    if _made_by(connection) == (_APPLICATION, _LAYOUT):
        return
    connection.execute("BEGIN IMMEDIATE")  # of several that find it empty, one makes it
    if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        connection.execute(_SCHEMA)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_LAYOUT}")
    elif _made_by(connection) != (_APPLICATION, _LAYOUT):
        raise sqlite3.DatabaseError("it is another program's, or another release's")
    connection.execute("COMMIT")


def _made_by(connection: sqlite3.Connection) -> tuple[int, int]:
    names = ("application_id", "user_version")
    application, layout = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
    return application, layout


def _read(connection: sqlite3.Connection, model: str, hashes: Mapping[str, str]) -> dict[str, Any]:
    rows = connection.execute("SELECT text_hash, vector, checksum FROM vectors WHERE model = ?", (model,))
    return {
        key: np.frombuffer(vector, dtype="<f4").astype(np.float32)
        for key, vector, checksum in rows
        if key in hashes and len(vector) % 4 == 0 and zlib.crc32(vector) == checksum
    }


def _as_bytes(vector: Any) -> tuple[bytes, int]:
    data = np.asarray(vector, dtype="<f4").tobytes()
    return data, zlib.crc32(data)
