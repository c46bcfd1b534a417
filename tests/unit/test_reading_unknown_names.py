"""Names of companies that the directory does not hold: what is taken for one, and what is not."""

import pytest
from reading_sample import INDEX, METRICS, RECEIVED_AT

from nodes.reading.kinds import Reader
from nodes.reading.unknown_names import close_names

NAMED = [
    ("华为2023年的营收是多少？", "华为"),
    ("请问腾讯控股有限公司去年的净利润", "腾讯控股有限公司"),
    ("帮我查一下比亚迪 2023 年营业收入", "比亚迪"),
    ("东方红科技的总资产", "东方红科技"),
    ("ＡＢＣ集团科技２０２３年营收", "ＡＢＣ集团科技"),
    ("What was Apple's revenue in 2023?", "Apple"),
    ("what was apple's 2023 revenue", "apple"),
    ("What was the revenue of General Motors in 2023?", "General Motors"),
    ("How much revenue did Tesla have in 2023?", "Tesla"),
    ("revenue of 东方能源 in 2023", "东方能源"),
]
BESIDE = [
    ("云帆科技和华为2023年的净利润分别是多少", "华为"),
    ("腾讯、云帆科技2023年营收", "腾讯"),
    ("Compare Yunfan Technology and Apple by revenue in 2023", "Apple"),
]
NOT_NAMED = [
    "云帆科技和云帆能源2023年营收",
    "云帆科技2022年和2023年的营收",
    "云帆科技的营收和净利润",
    "云帆科技和整个行业的营收",
    "Compare Yunfan Technology and the industry by revenue in 2023",
    "Yunfan Technology revenue and net profit in 2023",
    "2023年的营收是多少？",
    "营收是多少",
    "我们公司2023年营收是多少？",
    "贵公司去年的净利润",
    "这家公司的营收",
    "全市2023年营业收入是多少",
    "云湖市2023年营业收入是多少",
    "各行业2023年营收",
    "净利润同比增长最快的公司是哪家",
    "那2022年的营收呢",
    "云帆科技2023年的营收",
    "What was our revenue in 2023?",
    "What is the revenue of the company in 2023?",
    "What was last year's revenue?",
    "revenue in 2023",
    "What's the revenue in 2023?",
    "How much revenue did they have?",
    "创业补贴有多少？",
]


def unknown(text: str) -> str | None:
    return Reader(INDEX, METRICS, RECEIVED_AT).read(text).unknown


@pytest.mark.parametrize(("text", "name"), [*NAMED, *BESIDE])
def test_a_name_is_kept_as_it_is_written(text, name):
    assert unknown(text) == name


@pytest.mark.parametrize("text", NOT_NAMED)
def test_what_names_no_company(text):
    assert unknown(text) is None


def test_only_names_much_alike_are_offered_the_likest_first():
    names = [("云帆科技", "a"), ("云帆能源", "b"), ("云凡科学", "c"), ("星河食品", "d")]
    assert close_names("云凡科技", names) == ["a", "c"]
    assert close_names("华为", names) == []
    assert INDEX.like("Yunfen Technology") == ("yf-tech",)
