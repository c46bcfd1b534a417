"""Does the answer speak the question's language? Our own questions, whole turns over the sample knowledge.

The language of an answer is that of most of its words, a Chinese character counting as a word. Left out are
quotations of the question between quotation marks, and numbered options, which are names. Then the
narrative questions once more with a model that replies in the other language: none of that may leave.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graph.answer_question import answer_question
from nodes.answer.providers import ExtractiveProvider, ScriptedProvider
from nodes.contracts import Answer, Language, Provider
from nodes.retrieve.documents import KnowledgeStore
from nodes.retrieve.exits import open_retriever
from scripts.eval.knowledge import RECEIVED_AT, sample_store
from scripts.eval.own_sets import read_rows
from scripts.eval.report import Cell, Options, Report, Table, share

Row = Mapping[str, Any]
Answered = Callable[[Row], Answer]

OTHER_LANGUAGE: Mapping[str, str] = {
    "zh": "The office decides about every application after all of the documents have been handed in.",
    "en": "办事窗口收到全部材料以后，会对每一份申请作出决定，并把结果通知申请人。",
}


def evaluate(_options: Options) -> Report:
    with sample_store() as store:
        return evaluate_rows(
            read_rows("languages"), answers_of(store, lambda _: ExtractiveProvider()), contrary(store)
        )


def contrary(store: KnowledgeStore) -> Answered:
    return answers_of(store, lambda row: ScriptedProvider([OTHER_LANGUAGE[row["language"]]]))


def answers_of(store: KnowledgeStore, provider_for: Callable[[Row], Provider]) -> Answered:
    retriever = open_retriever(store)

    def answered(row: Row) -> Answer:
        return answer_question(
            row["text"], store, provider_for(row), retriever=retriever, received_at=RECEIVED_AT
        )

    return answered


def evaluate_rows(rows: Sequence[Row], answered: Answered, with_contrary: Answered) -> Report:
    said = [(row, answered(row)) for row in rows]
    lines: list[list[Cell]] = []
    for language, name in dict.fromkeys((row["language"], row["class"]) for row in rows):
        held = [each for each in said if (each[0]["language"], each[0]["class"]) == (language, name)]
        lines.append([language, name, share(sum(is_right(*each) for each in held), len(held))])
    narrative = [row for row, answer in said if answer["kind"] == "narrative" and answer["citations"]]
    let_out = [row for row in narrative if OTHER_LANGUAGE[row["language"]] in with_contrary(row)["text"]]
    misses = [
        {"id": row["id"], "text": row["text"], "wanted": row["language"], "answer": answer["text"]}
        for row, answer in said
        if not is_right(row, answer)
    ]
    misses += [{"id": row["id"], "text": row["text"], "let out": "the other language"} for row in let_out]
    right = sum(is_right(*each) for each in said)
    return Report(
        "language",
        [
            Table(
                "Answers in the question's language",
                ("questions", "right", "replies of a model in the other language that left"),
                [[len(rows), share(right, len(rows)), share(len(let_out), len(narrative))]],
            ),
            Table("By class", ("language", "class", "right"), lines),
        ],
        misses,
    )


def is_right(row: Row, answer: Answer) -> bool:
    return bool(language_of(answer["text"]) == row["language"])


_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|\[C\d+\]|^\d+\. .*$", re.MULTILINE)


def language_of(text: str) -> Language:
    words = _QUOTED.sub(" ", text)
    chinese = len(re.findall(r"[\u3400-\u9fff]", words))
    return "zh" if chinese >= len(re.findall(r"[A-Za-z]+", words)) else "en"
