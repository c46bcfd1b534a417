"""What words are called in the other language, and which of them belong together."""

import re

import pytest

from nodes.reading.bilingual import _TERMS, called, singular, with_phrases

LINES = _TERMS.strip().splitlines()
# One character says what is meant by itself only where hardly any other word holds it.
TELLING = {"茶", "碳", "券", "仓"}


@pytest.mark.parametrize("line", LINES)
def test_each_line_has_english_on_its_left_and_chinese_on_its_right(line: str) -> None:
    english, chinese = line.split(" = ")
    assert re.fullmatch(r"[a-z ,]+", english)
    assert re.fullmatch(r"[\u4e00-\u9fff ]+", chinese)
    assert {word for word in chinese.split() if len(word) == 1} <= TELLING


@pytest.mark.parametrize(
    ("term", "other"),
    [
        ("minimum wage", "最低工资"),
        ("最低工资", "minimum wage"),
        ("R&D", "研发"),
        ("start-up", "创业"),
        ("Subsidies", "补贴"),
        ("master's degree", "硕士"),
        ("注销", "deregister"),
        ("moved", "搬迁"),
        ("renting", "租金"),
        ("applied", "申请"),
        ("stopping", "停止"),
        ("shutting down", "注销"),
    ],
)
def test_it_is_looked_up_both_ways_in_any_spelling(term: str, other: str) -> None:
    assert other in called(term)


@pytest.mark.parametrize("term", ["quantum", "量子", "", "?", "最", "ing", "adding", "aied"])
def test_what_is_not_in_the_table_is_called_nothing(term: str) -> None:
    assert list(called(term)) == []


@pytest.mark.parametrize(
    ("words", "joined"),
    [
        (["the", "", "minimum", "", "wage", "", "now"], ["the", "", "minimum wage", "", "now"]),
        (["r", "&", "d", "", "grant"], ["r & d", "", "grant"]),
        (["food", "", "business", "", "licence"], ["food business licence"]),
        (["handing", "", "in", "", "forms"], ["handing in", "", "forms"]),
        (["minimum", ",", "wage"], ["minimum", ",", "wage"]),
        (["注册", "", "公司", "?"], ["注册", "", "公司", "?"]),
        (["company", "?"], ["company", "?"]),
        ([], []),
    ],
)
def test_words_that_have_a_name_together_become_one(words: list[str], joined: list[str]) -> None:
    assert with_phrases(words) == joined


@pytest.mark.parametrize(
    ("word", "one"),
    [("subsidies", "subsidy"), ("fees", "fee"), ("business", "business"), ("tax", "tax"), ("公司s", "公司s")],
)
def test_english_words_lose_their_plural(word: str, one: str) -> None:
    assert singular(word) == one
