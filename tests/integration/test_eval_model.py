"""The evaluation with a model, in short: a real server of the protocol, whose replies are scripted."""

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from graph.build import Services
from graph.compose import make_services, shanghai_now
from graph.settings import load_settings
from nodes.retrieve.documents import KnowledgeStore
from scripts.eval import local_model, model
from scripts.eval.knowledge import sample_store
from scripts.eval.public_sets import Rewritten
from scripts.eval.report import Options, Report

TRUE = "The R&D grant is 6 percent of last year's expense [C1]."
MADE_UP = "The R&D grant is 77 percent [C1]."
WORDED = '{"requires_history": true, "standalone_questions": ["创新券的申请条件是什么？"]}'
VAGUE = {"own, zh": [Rewritten("1", "它的申请条件是什么？", "创新券的申请条件是什么？", ("创新券怎么用？",))]}


class Script:
    """The replies of one server: suggestions are asked for in JSON, the rest are answers."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.limits: list[object] = []

    def reply(self, body: dict[str, object]) -> str:
        self.limits.append(body.get("max_tokens"))
        return WORDED if "JSON" in str(body["messages"]) else self.answer


@pytest.fixture
def script() -> Script:
    return Script(TRUE)


@pytest.fixture
def url(script: Script, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            delta = {"role": "assistant", "content": script.reply(body)}
            event = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "tiny"}
            choices = [{"index": 0, "delta": delta, "finish_reason": "stop"}]
            said = f"data: {json.dumps({**event, 'choices': choices})}\n\ndata: [DONE]\n\n".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}/v1"
        http.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def store() -> Iterator[KnowledgeStore]:
    with sample_store() as opened:
        yield opened


@pytest.fixture
def services(store: KnowledgeStore, url: str) -> Services:
    settings = load_settings({"MODEL": "openai:tiny", "OPENAI_BASE_URL": url, "MODEL_CONTEXT_TOKENS": "2000"})
    return make_services(settings, store, clock=shanghai_now)


def row(report: Report, title: str, first: str) -> list[object]:
    table = next(table for table in report.tables if table.title.startswith(title))
    return next(list(cells[1:]) for cells in table.rows if cells[0] == first)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "NARRATIVES", {"en": ("How much is the R&D grant?",), "zh": ()})
    monkeypatch.setattr(model, "FACTS", ("云帆科技2023年营业收入是多少？",))


def test_what_a_true_model_writes_leaves_as_it_is(
    services: Services, store: KnowledgeStore, script: Script
) -> None:
    report = model.evaluate_with(services, store, VAGUE, Options())
    assert row(report, "How answers", "en")[1] == "1.000 (1/1), 0.21 to 1.00"
    assert row(report, "Faults", "figures in no passage") == ["0.000 (0/1)"]
    assert row(report, "What the model wrote", "with a figure that no passage holds") == [
        "0.000 (0/1), 0.00 to 0.79"
    ]
    assert row(report, "The same question", "digest, search, evidence, verdict and facts alike") == [
        "1.000 (2/2)"
    ]
    assert row(report, "One of three", "own, zh")[:2] == [1, "1.000 (1/1)"]
    assert set(script.limits) == {500, 512}


def test_what_a_lying_model_writes_is_counted_and_does_not_leave(
    services: Services, store: KnowledgeStore, script: Script
) -> None:
    script.answer = MADE_UP
    report = model.evaluate_with(services, store, {}, Options())
    assert row(report, "How answers", "en")[3].startswith("1.000 (1/1)")  # replaced
    assert row(report, "What the model wrote", "with a figure that no passage holds")[0].startswith(
        "1.000 (2/2)"
    )
    assert row(report, "Faults", "figures in no passage") == ["0.000 (0/1)"]


def test_a_figure_that_did_leave_would_be_counted() -> None:
    seen = model.TurnSeen(
        "How much?", "en", "as generated", "It is 77 percent [C3].", (MADE_UP,), (), ("C1",)
    )
    assert model.strange_digits(seen) == {"77"}
    rows = {str(cells[0]): cells[1] for cells in model.checked([seen]).rows}
    assert rows["figures in no passage"] == "1.000 (1/1)"
    assert rows["labels without a citation"] == "1.000 (1/1)"


def test_a_retriever_that_is_given_the_history_is_told_apart(
    services: Services, store: KnowledgeStore
) -> None:
    asked = iter(["a", "b"])

    class Leaky:
        def knowledge_version(self) -> str:
            return services.retriever.knowledge_version()

        def retrieve(self, query: str, **more: object) -> object:
            return services.retriever.retrieve(f"{query} {next(asked)}", **more)  # type: ignore[arg-type]

    pair = model.pair_of(replace(services, retriever=Leaky()), "How much is the R&D grant?")  # type: ignore[arg-type]
    assert "digest" in pair.differs


def test_rows_are_drawn_alike_each_time_and_no_more_than_the_time_allows() -> None:
    assert model.draw(range(100), 5) == model.draw(range(100), 5)
    assert list(model.within([1, 2, 3], 0)) == [1]
    assert list(model.within([1, 2, 3], None)) == [1, 2, 3]


def test_an_environment_without_the_model_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(SystemExit, match=r"requirements/model\.txt"),
        local_model.served(Path(sys.executable), tmp_path / "log"),
    ):
        pass
