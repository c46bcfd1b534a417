"""Which company grew fastest: in one turn, and after the period was asked for."""

from collections.abc import Iterator

import pytest

from graph.answer_question import answer_question
from graph.compose import Assistant
from graph.run import last_result, stream_turn
from nodes.answer.providers import ExtractiveProvider
from nodes.contracts import Caller
from nodes.retrieve.documents import KnowledgeStore
from nodes.retrieve.sample import ensure_sample

DAY = "2026-05-20T10:00:00.000+08:00"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeStore]:
    with KnowledgeStore(tmp_path_factory.mktemp("home") / "knowledge.db") as opened:
        ensure_sample(opened)
        yield opened


def test_the_fastest_is_told_with_both_figures_and_its_source(store: KnowledgeStore) -> None:
    told = answer_question("2024年哪家公司净利润增长最快？", store, ExtractiveProvider(), received_at=DAY)
    assert told["kind"] == "comparison"
    assert told["text"].splitlines()[1] == "1. 青石文旅股份有限公司：40.8%（3,330.80万元 → 4,688.75万元）[C1]"
    assert "3330.80" in told["citations"][0]["passage"]
    assert "4688.75" in told["citations"][0]["passage"]


@pytest.mark.parametrize(
    ("texts", "last"),
    [
        (("哪家公司营收增长最快？", "2023年"), "1. 星汀软件股份有限公司：23.7%"),
        (("fastest growth over all companies", "2", "1"), "1. Xingting Software: 23.7%"),
        (("云帆科技的营收增长了多少？", "2023"), "2023年比2022年增加45,615.48万元，增长16.4%"),
    ],
)
def test_growth_is_counted_from_the_period_before_the_one_that_was_asked_for(
    assistant: Assistant, texts: tuple[str, ...], last: str
) -> None:
    for text in texts:
        request = {"request_id": assistant.new_id(), "text": text}
        told = last_result(stream_turn(assistant, request, thread_id=texts[0], caller=Caller()))
    assert told.status == "completed"
    assert last in told.text
