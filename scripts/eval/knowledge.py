"""A knowledge store of its own for one evaluation: the sample, or passages that a set brings."""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from graph.compose import IntentReader
from nodes.retrieve.documents import Document, KnowledgeStore, Record, SourceSet
from nodes.retrieve.embedders import Embedder, load_embedder
from nodes.retrieve.exits import PermittedRetriever, open_retriever
from nodes.retrieve.facts import Directory
from nodes.retrieve.sample import ensure_sample
from scripts.eval.report import Options

RECEIVED_AT = "2026-05-20T10:00:00.000+08:00"  # what relative periods and validity count from


@contextmanager
def sample_store() -> Iterator[KnowledgeStore]:
    with empty_store() as store:
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
    with empty_store() as store:
        store.replace(SourceSet("set", "1", documents))
        yield store


@contextmanager
def empty_store() -> Iterator[KnowledgeStore]:
    with (
        tempfile.TemporaryDirectory(prefix="ba-eval-") as folder,
        KnowledgeStore(Path(folder) / "knowledge.db") as store,
    ):
        yield store


class Remembering(Embedder):
    """Embeds a question once, however many ways it is searched for."""

    def question(self, text: str) -> Any:
        return _remembered(self.model, text)


@cache
def _remembered(model: Embeddings, text: str) -> Any:
    return Embedder("", model).question(text)


def retriever_of(store: KnowledgeStore, options: Options, name: str) -> PermittedRetriever:
    """The embedded search; by meaning too with `--embeddings`, once every passage has its vector.

    `name` is the set's, under which its vectors are kept in the folder of `--vectors`.
    """
    if options.embeddings is None:
        return open_retriever(store)
    from nodes.retrieve.dense import FusedRetriever
    from nodes.retrieve.vectors import cache_of, embed_all

    loaded = load_embedder(options.embeddings)
    embedder = Remembering(loaded.name, loaded.model)
    here = cache_of(store, embedder.name).path
    kept = options.vectors and options.vectors / f"{name}.db"
    if kept and kept.is_file():
        shutil.copyfile(kept, here)
    embed_all(store, embedder, _tell)
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(here, kept)
    return PermittedRetriever(store, FusedRetriever(store, embedder))


def _tell(done: int, total: int, _title: str) -> None:
    print(f"\rembedding {done}/{total}", end="" if done < total else "\n", file=sys.stderr)


def reader_of(store: KnowledgeStore) -> IntentReader:
    return IntentReader(store.knowledge_version, Directory(store))
