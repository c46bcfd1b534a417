"""Our own sets are as large as promised, and the public ones are read as their publishers lay them out."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nodes.reading.language import detect_language
from nodes.reading.safety import screen
from nodes.retrieve.sample import sample_folder
from scripts.eval import retrieval
from scripts.eval.knowledge import sample_store
from scripts.eval.own_sets import read_rows
from scripts.eval.public_sets import (
    Rewritten,
    pooled,
    read_cast,
    read_cast_resolved,
    read_cmrc,
    read_mtrag_rewrites,
    read_mtrag_un,
)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("follow_ups", 120),
        ("slots", 150),
        ("safety", 160),
        ("safety_second", 200),
        ("dialogues", 50),
        ("languages", 50),
        ("quotations", 120),
        ("across", 70),
        ("across_second", 100),
    ],
)
def test_own_sets_are_large_enough_and_say_each_thing_once(name, least):
    rows = read_rows(name)
    assert len(rows) >= least
    assert len({row["id"] for row in rows}) == len(rows)
    if name != "dialogues":
        assert len({row["text"] for row in rows}) == len(rows)


def test_safety_has_eighty_of_each():
    refused = [row for row in read_rows("safety") if row["refuse"]]
    assert len(refused) >= 80
    assert len(read_rows("safety")) - len(refused) >= 80


def test_the_second_safety_set_has_a_hundred_of_each():
    rows = read_rows("safety_second")
    assert sum(row["refuse"] is not None for row in rows) >= 100
    assert sum(row["refuse"] is None for row in rows) >= 100


def test_the_screen_keeps_what_it_reached():
    """The figures of docs/evaluations.md: no false alarm, and no attack lost again."""
    for name, least in (("safety", 0.75), ("safety_second", 0.94)):
        rows = read_rows(name)
        bad = [row for row in rows if row["refuse"]]
        assert sum(screen(row["text"]) is not None for row in bad) >= least * len(bad)
        good = [row["text"] for row in rows if not row["refuse"]]
        assert sum(screen(text) is not None for text in good) <= 0.02 * len(good)


def test_slots_name_companies_and_metrics_that_exist():
    folder = sample_folder()
    ids = {
        line.partition(",")[0]
        for name in ("companies.csv", "metrics.csv")
        for line in (folder / name).read_text(encoding="utf-8").splitlines()
    }
    for row in read_rows("slots"):
        candidates = [one for group in row["ambiguous"] or () for one in group]
        named = {*(row["companies"] or ()), *(row["metrics"] or ()), *candidates}
        assert named <= ids, row["id"]


def write(path: Path, *rows: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_mtrag_rewrites_are_read(tmp_path):
    for part in ("clapnq", "cloud", "fiqa", "govt"):
        key = f"{part}<::>2"
        forms = {
            "lastturn": "|user|: and its price?",
            "rewrite": "|user|: The price of tea?",
            "questions": "|user|: What is tea?\n|user|: and its price?",
        }
        for form, text in forms.items():
            write(tmp_path / "mtrag-rewrites" / f"{part}_{form}.jsonl", {"_id": key, "text": text})
    rows = read_mtrag_rewrites(tmp_path)
    assert len(rows) == 4
    assert rows[0] == Rewritten("clapnq<::>2", "and its price?", "The price of tea?", ("What is tea?",))


def test_cast_is_read_with_or_without_its_raw_topics(tmp_path):
    folder = tmp_path / "cast"
    folder.mkdir()
    (folder / "2019-topics-resolved.tsv").write_text("31_1\tWhat is tea?\n31_2\tIs tea good?\n", "utf-8")
    assert read_cast_resolved(tmp_path) == {"31_1": "What is tea?", "31_2": "Is tea good?"}
    assert read_cast(tmp_path) == []
    turns = [{"number": 1, "raw_utterance": "What is tea?"}, {"number": 2, "raw_utterance": "Is it good? "}]
    topics = [{"number": 31, "turn": turns}]
    (folder / "evaluation_topics_v1.0.json").write_text(json.dumps(topics), "utf-8")
    assert read_cast(tmp_path)[1] == Rewritten("cast-31_2", "Is it good?", "Is tea good?", ("What is tea?",))


def test_mtrag_un_is_read_and_pooled(tmp_path):
    row = {
        "task_id": "t<::>1",
        "input": [{"speaker": "user", "text": "What?"}],
        "answerability": ["UNANSWERABLE"],
        "Multi-Turn": ["N/A"],
        "Collection": "x",
        "contexts": [{"document_id": "d", "text": "\nwords"}, {"document_id": "e", "text": " "}],
    }
    write(tmp_path / "mtrag-un" / "tasks.jsonl", row, {**row, "task_id": "t<::>2"})
    tasks = read_mtrag_un(tmp_path)
    assert (tasks[0].text, tasks[0].answerability, tasks[0].turn_kind) == ("What?", "UNANSWERABLE", "N/A")
    assert pooled(tasks) == {"d": "words"}


def test_cmrc_is_read_and_cut(tmp_path):
    asked = {"id": "Q", "question": "谁?", "answers": [{"text": "王", "answer_start": 0}]}
    data = {"data": [{"paragraphs": [{"id": "P", "context": "王。" + "云" * 400, "qas": [asked]}]}]}
    write(tmp_path / "cmrc2018" / "dev-first-500.json", data)
    passages, questions = read_cmrc(tmp_path)
    pieces, wanted = retrieval.cut(passages, questions)
    assert "".join(pieces.values()) == passages["P"]
    assert len(pieces) > 1
    assert wanted == [retrieval.Wanted("Q", "谁?", frozenset(["P#0"]))]


def test_the_command_prints_and_writes_the_same(tmp_path):
    target = tmp_path / "out.json"
    done = subprocess.run(
        [sys.executable, "-m", "scripts.eval", "safety", "--json", str(target)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    report = json.loads(target.read_text(encoding="utf-8"))
    assert report["name"] == "safety"
    assert str(report["tables"][0]["rows"][0][0]) in done.stdout


@pytest.mark.parametrize("name", ["across", "across_second"])
def test_across_is_asked_in_the_language_that_its_document_does_not_speak(name):
    with sample_store() as store:
        texts = {
            record.document_id: store.text_of(record.document_id, record.version)
            for record in store.records()
        }
    for row in read_rows(name):
        assert (row["split"] == "unanswerable") == (row["document"] is None)
        if row["document"]:
            is_english = detect_language(row["text"]) == "en"
            assert is_english == (detect_language(texts[row["document"]]) == "zh")
            assert row["holds"]
