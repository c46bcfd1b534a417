"""What a turn keeps of where its words come from: all of it, or the words are not used."""

from typing import Any

from promise import Retelling

from checkpoint.conversations.sources import show
from checkpoint.window import WindowLimits, restore
from nodes.answer.step import MAX_SOURCES, traceable
from nodes.contracts import ToldSummary


def window_of(*turns: range) -> Any:
    history = [
        {"question": f"问{at}", "answer": "答。", "sources": [[f"d{number}", "1"] for number in numbers]}
        for at, numbers in enumerate(turns)
    ]
    return restore(history, limits=WindowLimits(), may_see=lambda _: True, language="zh")


def passage(document: str) -> Any:
    return {"document_id": document, "version": "1"}


def test_what_fits_is_left_alone() -> None:
    window, summary = window_of(range(40), range(40, 80)), ToldSummary("摘要", (("s", "1"),))
    assert traceable(window, summary, [passage("p")]) == (window, summary)


def test_a_source_shared_counts_once() -> None:
    window = window_of(range(MAX_SOURCES - 1), range(MAX_SOURCES - 1))
    assert traceable(window, None, [passage("p"), passage("d1")])[0].turns == 2


def test_the_summary_goes_before_a_turn_does() -> None:
    window = window_of(range(MAX_SOURCES - 1))
    kept, summary = traceable(window, ToldSummary("摘要", (("s", "1"),)), [passage("p")])
    assert (kept, summary) == (window, None)


def test_the_oldest_turn_goes_first_and_is_marked() -> None:
    kept, _ = traceable(window_of(range(100, 180), range(MAX_SOURCES - 1)), None, [passage("p")])
    assert [turn["question"] for turn in kept.past_turns] == ["问1"]
    assert (kept.omitted_turns, kept.reasons) == (1, ("over_source_limit",))
    assert "更早的 1 轮已省略" in kept.messages[0][1]


def test_no_turn_is_shown_when_its_sources_alone_are_too_many() -> None:
    kept, _ = traceable(window_of(range(MAX_SOURCES)), None, [passage("p")])
    assert kept.turns == 0


def test_an_uncited_source_is_authorised_and_not_listed() -> None:
    sources = [{"label": "C1", **passage("a"), "title": "A"}, passage("b")]
    seen = show("答。", sources, lambda _: True, "zh")
    assert (seen.content, [source["label"] for source in seen.sources]) == ("答。", ["C1"])
    gone = show("答。", sources, lambda keys: ("b", "1") not in keys, "zh")
    assert gone.is_withdrawn
    assert "答" not in gone.content.replace("回答", "")
    assert [source["available"] for source in gone.sources] == [True]


def test_retelling_is_what_the_checks_need() -> None:
    """It says the end of its instructions, which is where a summary stands."""
    from nodes.contracts import Message, Prompt

    told = Prompt("问", "zh", (), [Message("system", "规则\n摘要。")])
    assert [piece.text for piece in Retelling().stream(told)] == ["摘要[C1]。"]
