"""The language of a question: what it is built with, not what it names."""

import pytest
from reading_sample import INDEX, METRICS, RECEIVED_AT

from nodes.reading.intent import read_intent
from nodes.reading.language import detect_language

ENGLISH = [
    "What was the revenue in 2023?",
    "What was 云帆科技's revenue in 2023?",
    "How did 云帆科技股份有限公司 do in 2023?",
    "revenue of 云帆科技 in 2023",
    "Compare 云帆科技 and 云帆能源 by net profit",
    "What is 一次性创业补贴?",
    "How do I apply for the 研发费用补助?",
    "What does 《云湖市创业补贴办法》 say about the deadline?",
    "What was the revenue of 东方能源有限公司?",
    "OK",
    "???",
]
CHINESE = [
    "云帆科技2023年营收是多少",
    "Yunfan Technology 2023年的revenue是多少？",
    "API key 的申请流程是什么?",
    "请介绍一下 access control 的规定",
    "Please 告诉我 2023 年的 revenue",
    "云帆科技",
    "云帆科技 ROE",
    "云帆科技 2023 revenue",
    "what 是什么意思",
    "The 云帆科技 of 2023 营收是多少",
    "“What is it” 怎么翻译",
]


@pytest.mark.parametrize("text", ENGLISH)
def test_a_question_built_with_english_is_english(text):
    assert language_of(text) == "en"


@pytest.mark.parametrize("text", CHINESE)
def test_chinese_comes_first(text):
    assert language_of(text) == "zh"


def language_of(text: str) -> str:
    found = read_intent(text, companies=INDEX, metrics=METRICS, received_at=RECEIVED_AT)
    return found["language"]


def test_names_that_are_known_count_for_nothing():
    assert detect_language("revenue of 云帆科技") == "zh"
    assert detect_language("revenue of 云帆科技", plain="revenue of \ufffc\ufffc\ufffc\ufffc") == "en"
