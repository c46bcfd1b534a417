"""A knowledge store of its own for one evaluation: the sample, or passages that a set brings."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from graph.compose import IntentReader
from nodes.retrieve.documents import Document, KnowledgeStore, Record, SourceSet
from nodes.retrieve.facts import Directory
from nodes.retrieve.sample import ensure_sample

RECEIVED_AT = "2026-05-20T10:00:00.000+08:00"  # what relative periods and validity count from


@contextmanager
def sample_store() -> Iterator[KnowledgeStore]:
    with _empty_store() as store:
        ensure_sample(store)
        yield store


@contextmanager
def store_of(passages: Mapping[str, str]) -> Iterator[KnowledgeStore]:
    """Each passage is a public document without a title; long ones are cut as any document is."""
    with titled_store({key: ("", text) for key, text in passages.items()}) as store:
        yield store


@contextmanager
def titled_store(texts: Mapping[str, tuple[str, str]]) -> Iterator[KnowledgeStore]:
    """Each (title, text) is a public document."""
    documents = [Document(Record(key, "1", title, "set"), text) for key, (title, text) in texts.items()]
    with _empty_store() as store:
        store.replace(SourceSet("set", "1", documents))
        yield store


@contextmanager
def _empty_store() -> Iterator[KnowledgeStore]:
    with (
        tempfile.TemporaryDirectory(prefix="ba-eval-") as folder,
        KnowledgeStore(Path(folder) / "knowledge.db") as store,
    ):
        yield store


def reader_of(store: KnowledgeStore) -> IntentReader:
    return IntentReader(store.knowledge_version, Directory(store))
