"""A document that has ended: what is said above what it used to say."""

import pytest

from nodes.answer.rendering import render_ended
from nodes.contracts import Language, Passage


def passage(document_id: str, until: str, start: int = 0) -> Passage:
    return Passage(
        document_id=document_id,
        version="1",
        title=f"关于{document_id}的办法",
        source="",
        text="每户补助三百元。",
        start=start,
        end=start + 8,
        passage_hash=f"{document_id}-{start}",
        score=1.0,
        valid_from=None,
        valid_until=until,
    )


@pytest.mark.parametrize(("language", "day"), [("zh", "2024年3月5日"), ("en", "2024-03-05")])
def test_it_is_said_that_a_document_ended_and_when(language: Language, day: str) -> None:
    told = render_ended([passage("灯会", "2024-03-05")], language)
    assert "《关于灯会的办法》" in told.text or '"关于灯会的办法"' in told.text
    assert day in told.text


def test_each_document_is_told_once_and_cited_by_its_first_passage() -> None:
    passages = [passage("甲", "2024-03-05"), passage("甲", "2024-03-05", 20), passage("乙", "2023-12-31")]
    told = render_ended(passages, "zh", first_label=3)
    assert [(one["label"], one["passage_hash"]) for one in told.citations] == [("C3", "甲-0"), ("C4", "乙-0")]
    assert [told.text.count(f"[{label}]") for label in ("C3", "C4", "C5")] == [1, 1, 0]
