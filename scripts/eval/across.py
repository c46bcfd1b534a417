"""Questions in one language about documents in the other: whole turns over the sample, without a model.

A row is answered when sentences of its document are quoted that hold the words of its answer (`holds`). Rows
of the split `tuned` were looked at while the words for one thing in both languages were put together, those
of `kept` were not; all were written before anything was measured. Those of `second` come from a writer who
had seen neither the words nor the first set. Nothing answers those of `unanswerable`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graph.answer_question import answer_question
from nodes.answer.providers import ExtractiveProvider
from nodes.contracts import Answer
from nodes.reading.language import detect_language
from nodes.retrieve.exits import open_retriever
from scripts.eval.knowledge import RECEIVED_AT, sample_store
from scripts.eval.own_sets import read_rows
from scripts.eval.quotations import UNANSWERABLE, is_answered, is_quoted
from scripts.eval.report import Cell, Options, Report, Table, share

Row = Mapping[str, Any]
Said = tuple[Row, Answer]
SETS = {"across": "first set", "across_second": "second set"}
COLUMNS = ("questions", "rows", "answered", "quoted from another document", "not found")


def evaluate(options: Options) -> Report:  # noqa: ARG001 - every evaluation is given them
    with sample_store() as store:
        retriever, provider = open_retriever(store), ExtractiveProvider()

        def answered(row: Row) -> Answer:
            return answer_question(row["text"], store, provider, retriever=retriever, received_at=RECEIVED_AT)

        rows = [{**row, "set": name} for source, name in SETS.items() for row in read_rows(source)]
        said = [(row, answered(row)) for row in rows]
    return report(said)


def report(said: Sequence[Said]) -> Report:
    asked = [each for each in said if each[0]["split"] != UNANSWERABLE]
    groups: dict[str, list[Said]] = {}
    for row, answer in asked:
        ways = "en to zh" if detect_language(row["text"]) == "en" else "zh to en"
        groups.setdefault(f"{row['split']}, {ways}", []).append((row, answer))
    return Report(
        "across",
        [
            Table("Across languages", COLUMNS, [_scored(*group) for group in sorted(groups.items())]),
            Table(
                "Questions that no document answers",
                ("questions", "rows", "answered all the same"),
                [_answered_all_the_same(name, said) for name in SETS.values()],
            ),
        ],
        [_miss(*each) for each in said if not _is_right(*each)],
    )


def _scored(name: str, said: Sequence[Said]) -> list[Cell]:
    tests: Sequence[Callable[[Row, Answer], bool]] = (
        _is_right,
        lambda row, answer: is_quoted(answer) and not _is_from_its_document(row, answer),
        lambda _, answer: answer["kind"] == "not_found",
    )
    return [name, len(said), *(share(sum(test(*each) for each in said), len(said)) for test in tests)]


def _answered_all_the_same(name: str, said: Sequence[Said]) -> list[Cell]:
    nothing = [answer for row, answer in said if row["split"] == UNANSWERABLE and row["set"] == name]
    return [name, len(nothing), share(sum(map(is_quoted, nothing)), len(nothing))]


def _is_from_its_document(row: Row, answer: Answer) -> bool:
    return any(each["document_id"] == row["document"] for each in answer["citations"])


def _is_right(row: Row, answer: Answer) -> bool:
    if row["split"] == UNANSWERABLE:
        return not is_quoted(answer)
    return is_answered(row, answer) and _is_from_its_document(row, answer)


def _miss(row: Row, answer: Answer) -> dict[str, object]:
    cited = ", ".join(each["document_id"] for each in answer["citations"])
    return {
        "id": row["id"],
        "split": row["split"],
        "text": row["text"],
        "answer": answer["text"],
        "of": cited,
    }
