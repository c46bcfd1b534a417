"""Short replies: commands, places in a list, names of options, small talk."""

import pytest

from nodes.contracts import Option
from nodes.reading.replies import command, is_small_talk, match_option, ordinal

COMMANDS = {
    "retry": ["/retry", "retry", "重试", "/重试", "重試", "/RETRY", "／ｒｅｔｒｙ", "  /retry\n"],
    "discard": ["/discard", "discard", "放弃", "/放弃", "放棄", "Discard"],
    "next": ["next", "/next", "下一页", "下一頁", "Next", "ＮＥＸＴ", " 下一页 "],
    "previous": ["previous", "/previous", "上一页", "上一頁", "prev", "/prev"],
    "cancel": ["cancel", "/cancel", "取消", "/取消", "CANCEL"],
}
NO_COMMANDS = [
    "取消吧",
    "取消订单怎么办",
    "请重试",
    "next quarter",
    "what is next",
    "下一页在哪",
    "//retry",
    "/ retry",
    "cancelled",
    "放弃申请",
    "",
    "/",
    "2",
    "你好",
]


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in COMMANDS.items() for text in texts]
)
def test_commands(name, text):
    assert command(text) == name


@pytest.mark.parametrize("text", NO_COMMANDS)
def test_what_only_contains_a_command_is_none(text):
    assert command(text) is None


ORDINALS = [
    ("2", 2),
    ("２", 2),
    (" 2 ", 2),
    ("2.", 2),
    ("2)", 2),
    ("(2)", 2),
    ("②", 2),
    ("2、", 2),
    ("02", 2),
    ("#2", 2),
    ("999", 999),
    ("二", 2),
    ("第二", 2),
    ("第二个", 2),
    ("第2个", 2),
    ("第２個", 2),
    ("第二家", 2),
    ("第二家公司", 2),
    ("第二项", 2),
    ("第二个吧", 2),
    ("选2", 2),
    ("选第二个", 2),
    ("请选2", 2),
    ("我选第二个", 2),
    ("我要第二个", 2),
    ("就第二个", 2),
    ("选项二", 2),
    ("2号", 2),
    ("十", 10),
    ("十二", 12),
    ("第十二个", 12),
    ("二十", 20),
    ("第二十三个", 23),
    ("一百零五", 105),
    ("one", 1),
    ("second", 2),
    ("Second", 2),
    ("the second", 2),
    ("the second one", 2),
    ("The second option, please", 2),
    ("2nd", 2),
    ("the 3rd one", 3),
    ("number 3", 3),
    ("No. 3", 3),
    ("option 2", 2),
    ("Option two", 2),
    ("I choose the third one", 3),
    ("twelfth", 12),
]
NO_ORDINALS = [
    "0",
    "-2",
    "+2",
    "2.5",
    "1,000",
    "1000",
    "2023",
    "2023年",
    "2年",
    "2个",
    "两个",
    "第二季度",
    "第二次申请",
    "二手房",
    "云帆2",
    "2023年营收",
    "第二个方案的费用是多少",
    "second quarter",
    "second hand",
    "one more thing",
    "2 and 3",
    "2万元",
    "百",
    "零",
    "二三",
    "十十",
    "",
    ".",
    "你好",
    "next",
]


@pytest.mark.parametrize(("text", "number"), ORDINALS)
def test_ordinals(text, number):
    assert ordinal(text) == number


@pytest.mark.parametrize("text", NO_ORDINALS)
def test_what_is_no_place_in_a_list(text):
    assert ordinal(text) is None


OPTIONS: list[Option] = [
    {"value": "yf-tech", "label": "云帆科技股份有限公司"},
    {"value": "yf-energy", "label": "云帆能源股份有限公司"},
    {"value": "yf-logistics", "label": "Yunfan Logistics (云帆物流)"},
    {"value": "xh", "label": "Xinghe Foods (星河食品)"},
]
MATCHES = [
    ("云帆科技股份有限公司", "yf-tech"),
    ("云帆科技", "yf-tech"),
    ("雲帆科技", "yf-tech"),
    ("云帆 科技", "yf-tech"),
    ("科技", "yf-tech"),
    ("能源", "yf-energy"),
    ("yf-energy", "yf-energy"),
    ("YF-Energy", "yf-energy"),
    ("我要云帆能源股份有限公司", "yf-energy"),
    ("是云帆科技股份有限公司吧", "yf-tech"),
    ("物流", "yf-logistics"),
    ("云帆物流", "yf-logistics"),
    ("Yunfan Logistics", "yf-logistics"),
    ("logistics", "yf-logistics"),
    ("ＬＯＧＩＳＴＩＣＳ", "yf-logistics"),
    ("I mean Yunfan Logistics please", "yf-logistics"),
    ("Xinghe", "xh"),
    ("foods", "xh"),
    ("“星河食品”", "xh"),
]
NO_MATCHES = [
    "云帆",
    "股份有限公司",
    "司",
    "gistics",
    "of",
    "你好",
    "云湖置业",
    "云帆能源股份有限公司2023年净利润是多少",
    "云帆科技2023年营收",
    "What was Xinghe Foods (星河食品) worth?",
    "99",
    "。",
    "",
]


@pytest.mark.parametrize(("text", "value"), MATCHES)
def test_options_by_name_or_part_of_it(text, value):
    found = match_option(text, OPTIONS)
    assert found is not None
    assert found["value"] == value


@pytest.mark.parametrize("text", NO_MATCHES)
def test_ambiguous_parts_and_whole_questions_match_no_option(text):
    assert match_option(text, OPTIONS) is None


def test_an_exact_label_wins_over_longer_ones_that_contain_it():
    options: list[Option] = [{"value": "a", "label": "云帆"}, {"value": "b", "label": "云帆科技"}]
    found = match_option("云帆", options)
    assert found is not None
    assert found["value"] == "a"


def test_equal_labels_match_nothing_and_no_options_match_nothing():
    options: list[Option] = [{"value": "a", "label": "同名"}, {"value": "b", "label": "同名"}]
    assert match_option("同名", options) is None
    assert match_option("同名", []) is None


SMALL_TALK = [
    "你好",
    "您好！",
    "你好呀",
    "嗨",
    "哈喽",
    "在吗",
    "早上好",
    "晚安",
    "谢谢",
    "謝謝",
    "非常感谢",
    "好的，谢谢",
    "好的谢谢您",
    "谢谢你的帮助",
    "辛苦了",
    "再见",
    "拜拜",
    "哈哈哈哈",
    "嗯嗯",
    "明白了",
    "知道了",
    "你是谁？",
    "你能做什么",
    "没问题",
    "👍",
    "……",
    "？",
    "hello",
    "Hi!",
    "Hey there",
    "hello, hello",
    "thanks",
    "Thank you very much!",
    "thx",
    "ok, thanks",
    "Good morning",
    "bye",
    "How are you?",
    "who are you",
    "What can you do?",
    "that's all",
    "nope",
]
NO_SMALL_TALK = [
    "你好，云帆科技2023年营收",
    "谢谢，那净利润呢",
    "早餐补贴",
    "好消息有哪些",
    "行业政策",
    "可以申请吗",
    "你们公司在哪",
    "在吗费用怎么报销",
    "晚安排班补贴",
    "再见面需要预约吗",
    "云帆科技",
    "2",
    "第二个",
    "取消",
    "营业收入",
    "hello world programme",
    "thanks, and the revenue?",
    "hi-tech subsidy",
    "good practice guide",
    "notice period",
    "history",
    "what is the weather",
    "thereof",
]


@pytest.mark.parametrize("text", SMALL_TALK)
def test_small_talk(text):
    assert is_small_talk(text)


@pytest.mark.parametrize("text", NO_SMALL_TALK)
def test_what_says_more_than_small_talk(text):
    assert not is_small_talk(text)


def test_long_laughter_does_not_take_for_ever():
    assert not is_small_talk("哈" * 55 + "x")
    assert not is_small_talk("好的好" * 19 + "吃")
