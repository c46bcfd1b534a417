"""The public sets as their publishers lay them out. They are no part of this repository."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CMRC_PASSAGES = 500
MTRAG_PARTS = ("clapnq", "cloud", "fiqa", "govt")


@dataclass(frozen=True)
class Rewritten:
    """One turn of a conversation beside what a person made of it. `before` are the user's earlier turns."""

    id: str
    text: str
    rewrite: str
    before: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """A turn with the passages that its annotator had. `turn_kind` is Follow-up, Clarification or N/A."""

    id: str
    text: str
    answerability: str
    turn_kind: str
    collection: str
    passages: tuple[tuple[str, str], ...]  # (id, text)


@dataclass(frozen=True)
class Asked:
    """A question about one passage."""

    id: str
    text: str
    passage_id: str
    answers: tuple[str, ...]


def read_mtrag_rewrites(data: Path) -> list[Rewritten]:
    return [row for part in MTRAG_PARTS for row in _read_part(data / "mtrag-rewrites", part)]


def _read_part(folder: Path, part: str) -> Iterator[Rewritten]:
    forms = ("lastturn", "rewrite", "questions")
    last, rewrite, whole = (_turns_of(folder / f"{part}_{form}.jsonl") for form in forms)
    for identity, turns in last.items():
        yield Rewritten(
            identity, turns[-1], " ".join(rewrite[identity]), tuple(whole[identity][: -len(turns)])
        )


def _turns_of(path: Path) -> dict[str, list[str]]:
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    marked = re.compile(r"(?:^|\n)\|user\|:\s*")
    return {row["_id"]: [turn.strip() for turn in marked.split(row["text"]) if turn.strip()] for row in rows}


def read_cast_resolved(data: Path) -> dict[str, str]:
    lines = (data / "cast" / "2019-topics-resolved.tsv").read_text(encoding="utf-8").splitlines()
    return {key: text.strip() for key, _, text in (line.partition("\t") for line in lines) if text.strip()}


def read_cast(data: Path) -> list[Rewritten]:
    """The turns whose raw form is there too: `evaluation_topics_v1.0.json`. Empty without that file."""
    path = data / "cast" / "evaluation_topics_v1.0.json"
    if not path.is_file():
        return []
    resolved = read_cast_resolved(data)
    found: list[Rewritten] = []
    for topic in json.loads(path.read_text(encoding="utf-8")):
        before: list[str] = []
        for turn in topic["turn"]:
            key, text = f"{topic['number']}_{turn['number']}", str(turn["raw_utterance"]).strip()
            if key in resolved:
                found.append(Rewritten(f"cast-{key}", text, resolved[key], tuple(before)))
            before.append(text)
    return found


def read_mtrag_un(data: Path) -> list[Task]:
    lines = (data / "mtrag-un" / "tasks.jsonl").read_text(encoding="utf-8").splitlines()
    return [_task(json.loads(line)) for line in lines]


def _task(row: dict[str, Any]) -> Task:
    return Task(
        id=row["task_id"],
        text=row["input"][-1]["text"],
        answerability=_one(row["answerability"]),
        turn_kind=_one(row["Multi-Turn"]),
        collection=row["Collection"],
        passages=tuple((str(passage["document_id"]), passage["text"].strip()) for passage in row["contexts"]),
    )


def _one(value: Any) -> str:
    return str(value[0] if isinstance(value, list) else value)


def pooled(tasks: list[Task]) -> dict[str, str]:
    """Every passage of the tasks once, by its id; blank ones are left out."""
    return {key: text for task in tasks for key, text in task.passages if text}


def read_cmrc(data: Path, most: int | None = None) -> tuple[dict[str, str], list[Asked]]:
    """The first 500 passages (or `most`) by id, and their questions, of the folder's one JSON file."""
    (path,) = (data / "cmrc2018").glob("*.json")
    passages: dict[str, str] = {}
    questions: list[Asked] = []
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            if len(passages) == (most or CMRC_PASSAGES):
                return passages, questions
            passages[paragraph["id"]] = paragraph["context"]
            questions += [
                Asked(
                    each["id"],
                    each["question"],
                    paragraph["id"],
                    tuple(answer["text"] for answer in each["answers"]),
                )
                for each in paragraph["qas"]
            ]
    return passages, questions
