"""Questions in other words than the documents', in the other language, and about nothing that is there.

Over the sample: is a document that answers the question found, by words and, with `--embeddings`, by meaning
too? Rows of the split `tuned` were looked at while it was set how near a passage must be to count as found,
those of `kept` were not; all were written before anything was measured. With `--data` also the price: how
often something is found for a question whose own passages the caller may not see, CMRC and MTRAG-UN.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from nodes.contracts import Caller, Retriever
from nodes.retrieve.access import DocumentAccess
from nodes.retrieve.documents import Document, KnowledgeStore, Record, SourceSet
from nodes.retrieve.exits import open_retriever
from scripts.eval.knowledge import RECEIVED_AT, empty_store, retriever_of, sample_store
from scripts.eval.own_sets import read_rows
from scripts.eval.public_sets import pooled, read_cmrc, read_mtrag_un
from scripts.eval.report import Cell, Options, Report, Table, share

Row = Mapping[str, Any]
Ways = Mapping[str, Retriever]
NOTHING = "nothing"
MOST_HIDDEN = 400  # questions of a set, evenly drawn


def evaluate(options: Options) -> Report:
    with sample_store() as store:
        report = evaluate_rows(read_rows("meaning"), ways_of(store, options, "sample"))
    if options.data is None:
        return Report(report.name, report.tables, report.misses, ["hidden passages (no --data)"])
    return Report(report.name, [*report.tables, _hidden(options)], report.misses)


def ways_of(store: KnowledgeStore, options: Options, name: str) -> Ways:
    ways: dict[str, Retriever] = {"words": open_retriever(store)}
    if options.embeddings:
        ways["meaning too"] = retriever_of(store, options, name)
    return ways


def evaluate_rows(rows: Sequence[Row], ways: Ways) -> Report:
    found = {way: [(row, _found(one, row["text"])) for row in rows] for way, one in ways.items()}
    groups = sorted({(row["asks"], row["split"]) for row in rows if row["asks"] != NOTHING})
    columns = ("asked in", "split", "by", "rows", "its document found", "first", "only others", "nothing")
    lines = [
        [asks, split, way, *_counted([each for each in said if _is_of(each[0], asks, split)])]
        for asks, split in groups
        for way, said in found.items()
    ]
    nothing: list[list[Cell]] = []
    for way, said in found.items():
        for split in ("kept", "tuned"):
            held = [ids for row, ids in said if _is_of(row, NOTHING, split)]
            nothing.append([split, way, len(held), share(sum(map(bool, held)), len(held))])
    return Report(
        "meaning",
        [
            Table("Its document among what is found", columns, lines),
            Table("About nothing that is there", ("split", "by", "rows", "something found"), nothing),
        ],
        [
            {"id": row["id"], "by": way, "text": row["text"], "found": ", ".join(ids)}
            for way, said in found.items()
            for row, ids in said
            if set(ids).isdisjoint(row["documents"]) and (ids or row["documents"])
        ],
    )


def _is_of(row: Row, asks: str, split: str) -> bool:
    return bool(row["asks"] == asks and row["split"] == split)


def _counted(said: Sequence[tuple[Row, list[str]]]) -> list[Cell]:
    right = [bool(set(ids) & set(row["documents"])) for row, ids in said]
    first = [bool(ids) and ids[0] in row["documents"] for row, ids in said]
    empty = [not ids for _, ids in said]
    others = [not good and not none for good, none in zip(right, empty, strict=True)]
    return [len(said), *(share(sum(each), len(said)) for each in (right, first, others, empty))]


def _found(retriever: Retriever, text: str, caller: Caller = Caller()) -> list[str]:  # noqa: B008 - frozen
    found = retriever.retrieve(text, caller=caller, on_date=RECEIVED_AT[:10])
    return list(dict.fromkeys(passage["document_id"] for passage in found["passages"]))


# What is found where the answer is hidden


def _hidden(options: Options) -> Table:
    assert options.data
    passages, asked = read_cmrc(options.data, options.sample)
    tasks = read_mtrag_un(options.data)[: options.sample]
    sets = {
        "CMRC": (passages, [(each.text, {each.passage_id}) for each in asked]),
        "MTRAG-UN": (
            pooled(tasks),
            [(task.text, {key for key, text in task.passages if text}) for task in tasks if task.passages],
        ),
    }
    lines: list[list[Cell]] = []
    for name, (texts, questions) in sets.items():
        drawn = questions[:: max(1, len(questions) // MOST_HIDDEN)]
        lines += _something_found(name, texts, drawn, options)
    columns = ("set", "by", "questions", "something found", "with its passages")
    return Table("The question's own passages hidden from the caller", columns, lines)


def _something_found(
    name: str, texts: Mapping[str, str], questions: Sequence[tuple[str, set[str]]], options: Options
) -> list[list[Cell]]:
    """Each passage is for a group of its own, so that a caller can be one who sees all but a few."""
    documents = [
        Document(Record(key, "1", "", "set", DocumentAccess("RESTRICTED", frozenset([key]))), text)
        for key, text in texts.items()
    ]
    everything = frozenset(texts)
    lines: list[list[Cell]] = []
    with empty_store() as store:
        store.replace(SourceSet("set", "1", documents))
        for way, retriever in ways_of(store, options, name.lower()).items():
            hidden = [_found(retriever, text, Caller(groups=everything - own)) for text, own in questions]
            shown = [_found(retriever, text, Caller(groups=everything)) for text, _ in questions]
            counts = (sum(map(bool, each)) for each in (hidden, shown))
            lines.append([name, way, len(questions), *(share(count, len(questions)) for count in counts)])
    return lines
