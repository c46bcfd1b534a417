"""Do the sentences that are quoted without a model answer the question? Whole turns, over invented texts.

A row is answered when the quotations hold all the words that its answer needs (`holds`), to the point when
they hold none of those beside it (`never`). Rows of the split `tuned` were looked at while the choice of
sentences was improved, those of `kept` were not; both, with the documents, were written before anything was
measured. With `--data` also CMRC: the sentences quoted of a question's own paragraph hold an answer, and how
much of the paragraph they are.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graph.answer_question import answer_question
from nodes.answer.extraction import choose_quotes
from nodes.answer.providers import ExtractiveProvider
from nodes.contracts import Answer, Passage, Retriever
from nodes.retrieve.documents import KnowledgeStore
from scripts.eval.knowledge import RECEIVED_AT, retriever_of, titled_store
from scripts.eval.own_sets import FOLDER, read_rows
from scripts.eval.public_sets import read_cmrc
from scripts.eval.report import Cell, Options, Report, Table, share

Row = Mapping[str, Any]
Answered = Callable[[Row], Answer]
DOCUMENTS = FOLDER / "eval" / "quotations"
UNANSWERABLE = "unanswerable"
COLUMNS = ("questions", "rows", "answered", "to the point", "not found", "asked back", "from its document")


def evaluate(options: Options) -> Report:
    with titled_store(documents()) as store:
        retriever = retriever_of(store, options, "quotations")
        report = evaluate_rows(read_rows("quotations"), quoted(store, retriever))
    if options.data is None:
        return Report(report.name, report.tables, report.misses, ["CMRC (no --data)"])
    return Report(report.name, [*report.tables, from_paragraphs(options.data)], report.misses)


def documents() -> dict[str, tuple[str, str]]:
    """Title and text by name. The title is the first heading; a text that lacks one is called by its name."""
    return {path.stem: _titled(path) for path in sorted(DOCUMENTS.glob("*.md"))}


def _titled(path: Path) -> tuple[str, str]:
    text = path.read_text(encoding="utf-8")
    return text.splitlines()[0].removeprefix("# "), text


def quoted(store: KnowledgeStore, retriever: Retriever) -> Answered:
    return lambda row: answer_question(
        row["text"], store, ExtractiveProvider(), retriever=retriever, received_at=RECEIVED_AT
    )


def evaluate_rows(rows: Sequence[Row], answered: Answered) -> Report:
    said = [(row, answered(row)) for row in rows]
    asked = [each for each in said if each[0]["split"] != UNANSWERABLE]
    groups: dict[str, list[tuple[Row, Answer]]] = {}
    for row, answer in asked:
        for name in (row["split"], f"{row['split']}, {row['document'][-2:]}"):
            groups.setdefault(name, []).append((row, answer))
    kinds: dict[str, list[tuple[Row, Answer]]] = {}
    for row, answer in asked:
        kinds.setdefault(row["asks"], []).append((row, answer))
    nothing = [each for each in said if each[0]["split"] == UNANSWERABLE]
    return Report(
        "quotations",
        [
            Table("Quoted answers", COLUMNS, [_scored(*group) for group in sorted(groups.items())]),
            Table("By what is asked", COLUMNS, [_scored(*group) for group in sorted(kinds.items())]),
            Table(
                "Questions that no document answers",
                ("rows", "answered all the same"),
                [[len(nothing), share(sum(is_quoted(answer) for _, answer in nothing), len(nothing))]],
            ),
        ],
        [_miss(row, answer) for row, answer in said if not is_right(row, answer)],
    )


def _scored(name: str, said: Sequence[tuple[Row, Answer]]) -> list[Cell]:
    tests: Sequence[Callable[[Row, Answer], bool]] = (
        is_answered,
        is_right,
        lambda _, answer: answer["kind"] == "not_found",
        lambda _, answer: answer["kind"] == "clarification",
        lambda row, answer: any(each["document_id"] == row["document"] for each in answer["citations"]),
    )
    return [name, len(said), *(share(sum(test(*each) for each in said), len(said)) for test in tests)]


def is_quoted(answer: Answer) -> bool:
    return answer["kind"] == "narrative"


def is_answered(row: Row, answer: Answer) -> bool:
    return is_quoted(answer) and all(words in answer["text"] for words in row["holds"])


def is_right(row: Row, answer: Answer) -> bool:
    if row["split"] == UNANSWERABLE:
        return not is_quoted(answer)
    return is_answered(row, answer) and not any(words in answer["text"] for words in row["never"])


def _miss(row: Row, answer: Answer) -> dict[str, object]:
    return {"id": row["id"], "split": row["split"], "text": row["text"], "answer": answer["text"]}


# CMRC


def from_paragraphs(data: Path) -> Table:
    passages, questions = read_cmrc(data)
    held = length = 0
    for asked in questions:
        text = passages[asked.passage_id]
        said = "".join(quote.text for quote in choose_quotes(asked.text, [_passage(text)], "zh"))
        held += any(answer in said for answer in asked.answers)
        length += len(said) * 1000 // max(1, len(text))
    return Table(
        "CMRC, from the question's own paragraph",
        ("questions", "quotations hold an answer", "share of the paragraph quoted"),
        [[len(questions), share(held, len(questions)), length / max(1, len(questions)) / 1000]],
    )


def _passage(text: str) -> Passage:
    return {
        "document_id": "d",
        "version": "1",
        "title": "",
        "source": "set",
        "text": text,
        "start": 0,
        "end": len(text),
        "passage_hash": "",
        "score": 1.0,
        "valid_from": None,
        "valid_until": None,
    }
