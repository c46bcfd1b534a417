"""Which words count, and which stand for the same."""

import pytest

from nodes.retrieve.wording import Wording, pairs, parts_of, same_as

wording = Wording()


@pytest.mark.parametrize("other", ["營業收入", "營業收入 ", "营业收入"])
def test_spellings_fold_together(other: str) -> None:
    assert wording.fold(other).strip() == "营业收入"


def test_width_and_case_fold_together() -> None:
    assert wording.fold("ＥＲＲ_File") == "err_file"


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("年假有几天？", ["年假"]),
        ("要不要审批", ["审批"]),
        ("What are the fees for companies?", ["fee", "company"]),
        ("What is the minimum wage now?", ["minimum wage"]),
        ("Who pays for R&D?", ["pay", "r & d"]),
        ("怎么注册公司？", ["注册", "公司"]),
        ("请问这个是什么？", []),
        ("?!", []),
    ],
)
def test_only_words_about_the_subject_are_asked(question: str, asked: list[str]) -> None:
    assert wording.asked(wording.fold(question)) == asked


def test_equivalents_go_both_ways_and_never_include_the_word() -> None:
    assert "补助" in same_as("补贴")
    assert "补贴" in same_as("补助")
    assert "补贴" not in same_as("补贴")
    assert list(same_as("量子")) == []
    assert same_as("年假") == ["年休假"]


def test_pairs_are_for_chinese_words() -> None:
    assert pairs("广告牌") == ["广告", "告牌"]
    assert pairs("abc") == []


def test_what_may_be_held_of_a_word_that_is_not_held_whole() -> None:
    assert parts_of("最低工资") == ["最低", "低工", "工资"]
    assert parts_of("r & d") == ["r", "d"]
    assert parts_of("article of association") == ["article", "association"]
    assert parts_of("wage") == []
