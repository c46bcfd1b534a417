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


# Found missing by mutation


@pytest.mark.parametrize(
    "thing",
    ["个", "家", "项", "条", "种", "款", "号", "间", "位", "行", "选项", "公司", "问题", "家公司", "个选项"],
)
def test_a_place_may_be_said_with_the_thing(thing):
    assert ordinal(f"第三{thing}") == 3


@pytest.mark.parametrize(
    "lead",
    [
        "请",
        "我",
        "想",
        "要",
        "我想",
        "我要",
        "选",
        "选择",
        "看",
        "问",
        "问的",
        "是",
        "就是",
        "就",
        "选项",
        "序号",
        "编号",
        "号码",
        "请选择",
        "我要问的是",
        "我想看",
    ],
)
def test_a_place_may_be_led_in(lead):
    assert ordinal(f"{lead}第三个") == 3
    assert ordinal(f"{lead}三") == 3


@pytest.mark.parametrize(
    "text",
    [
        "i choose 3",
        "I pick the third",
        "I want number 3",
        "i mean option 3",
        "choose 3",
        "pick 3",
        "select 3",
        "it is 3",
        "it's the third",
        "the 3rd",
        "option 3",
        "number 3",
        "no. 3",
        "no 3",
        "choice 3",
        "item 3",
        "nr. 3",
        "nr 3",
        "#3",
        "option #3",
        "third option",
        "third choice",
        "third item",
        "third company",
        "3, please",
        "3 please",
        "3rd",
        "第三的",
        "第三吧",
        "3号",
        "3项",
        "三项",
        "03",
        "3.",
    ],
)
def test_every_way_to_say_three(text):
    assert ordinal(text) == 3


@pytest.mark.parametrize(
    ("word", "number"),
    [
        (word, number)
        for number, words in enumerate(
            [
                "one first 1st",
                "two second 2nd 二",
                "three third 3rd 三",
                "four fourth 4th 四",
                "five fifth 5th 五",
                "six sixth 6th 六",
                "seven seventh 7th 七",
                "eight eighth 8th 八",
                "nine ninth 9th 九",
                "ten tenth 10th 十",
                "eleven eleventh 11th 十一",
                "twelve twelfth 12th 十二",
            ],
            1,
        )
        for word in words.split()
    ],
)
def test_words_for_numbers(word, number):
    assert ordinal(f"第{word}个" if word > "一" else f"the {word} one") == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("一百二十", 120),
        ("一百零五", 105),
        ("一百〇五", 105),
        ("九百九十九", 999),
        ("二百", 200),
        ("三十", 30),
        ("十九", 19),
    ],
)
def test_chinese_numbers_of_three_digits(text, number):
    assert ordinal(f"第{text}个") == number


@pytest.mark.parametrize("text", ["一百五", "百五", "一零", "二百百", "十零", "零"])
def test_numerals_that_make_no_place(text):
    assert ordinal(f"第{text}个") is None


def test_equal_values_of_one_company_are_one_option():
    twice: list[Option] = [{"value": "a", "label": "云帆科技"}, {"value": "a", "label": "云帆科技公司"}]
    found = match_option("云帆科技", twice)
    assert found is not None
    assert found["value"] == "a"


@pytest.mark.parametrize(
    "words",
    [
        "请",
        "我",
        "就",
        "说",
        "想",
        "要",
        "问",
        "选择",
        "看",
        "查",
        "是",
        "的",
        "吧",
        "呢",
        "啊",
        "那个",
        "这家",
        "指",
        "公司",
        "一下",
        "谢谢",
        "我想问一下",
        "i mean ",
        "it is ",
        "it's ",
        "the ",
        "please ",
        "choose ",
        "pick ",
        "select ",
        "want ",
        "company ",
        "thanks ",
        "one of ",
        "for ",
        "about ",
        "asking ",
        "i'm asking about ",
        "meant ",
    ],
)
def test_filler_words_around_a_name(words):
    found = match_option(f"{words}星河食品", OPTIONS)
    assert found is not None
    assert found["value"] == "xh"
    assert match_option(f"{words}星河食品招聘", OPTIONS) is None


@pytest.mark.parametrize(
    "word", ["the", "of", "and", "or", "a", "an", "in", "on", "to", "for", "is", "it", "at", "by", "co", "no"]
)
def test_a_function_word_names_no_option(word):
    options: list[Option] = [{"value": "x", "label": f"Big {word} House"}]
    assert match_option(word, options) is None


def test_a_part_of_a_name_begins_a_word_and_has_two_characters():
    assert match_option("x", [{"value": "v", "label": "X Works"}]) is None
    assert match_option("wo", [{"value": "v", "label": "X Works"}]) is not None
    assert match_option("orks", [{"value": "v", "label": "X Works"}]) is None
    assert match_option("--", [{"value": "v", "label": "X -- Y"}]) is None


@pytest.mark.parametrize(
    "text",
    [
        "你好啊",
        "您好吗",
        "大家好",
        "你好哇",
        "哈啰",
        "哈罗",
        "喂",
        "在不在",
        "有人吗",
        "上午好",
        "中午好",
        "下午安",
        "晚上好",
        "早安",
        "早",
        "十分感谢",
        "太谢谢了",
        "真感谢",
        "真的谢谢",
        "多谢啦",
        "好谢",
        "谢谢您的帮助",
        "谢谢助手",
        "辛苦啦",
        "辛苦你了",
        "辛苦您了",
        "辛苦",
        "不客气",
        "不用谢",
        "没关系",
        "没事了",
        "没事",
        "拜",
        "回头见",
        "回见",
        "好嘞",
        "好哒",
        "好的呀",
        "好吧",
        "好啊",
        "好了",
        "好呢",
        "行",
        "行吧",
        "可以",
        "可以了",
        "嗯好的",
        "嗯",
        "哦",
        "噢噢",
        "啊",
        "呵呵",
        "嘿",
        "嘻嘻",
        "明白",
        "懂了",
        "收到",
        "了解",
        "了解了",
        "太好了",
        "太棒了",
        "厉害",
        "真棒",
        "不错",
        "赞",
        "对不起",
        "抱歉",
        "不好意思",
        "您是谁呀",
        "你是什么",
        "你是机器人吗",
        "你是ai吗",
        "你是人工智能",
        "你是真人吗",
        "你叫什么",
        "您叫什么名字",
        "你会什么",
        "你可以帮我做些什么",
        "你能干点什么",
        "你最近怎么样",
        "你今天还好吗",
        "介绍一下你自己",
        "自我介绍",
        "自我介绍一下",
        "小助手",
        "助手",
        "hey",
        "hiya",
        "hiii",
        "howdy",
        "greetings",
        "good afternoon",
        "good evening",
        "good night",
        "good day",
        "good job",
        "yo",
        "hi there",
        "hello everyone",
        "thank you",
        "thanks a lot",
        "thanks so much",
        "thanks again",
        "thanks for your help",
        "thanks for the help",
        "ty",
        "cheers",
        "much appreciated",
        "great",
        "nice to meet you",
        "nice",
        "cool",
        "perfect",
        "awesome",
        "wonderful",
        "excellent",
        "well done",
        "good",
        "fine",
        "sure",
        "all right",
        "alright",
        "ok",
        "okay",
        "got it",
        "i see",
        "understood",
        "bye bye",
        "byebye",
        "goodbye",
        "see you",
        "see you later",
        "later",
        "you're welcome",
        "no problem",
        "never mind",
        "nevermind",
        "sorry",
        "how are you doing today",
        "what's up",
        "sup",
        "what are you",
        "what's your name",
        "what is your name",
        "what can you do for me",
        "are you a bot",
        "are you real",
        "are you human",
        "are you an ai",
        "are you a robot",
        "have a nice day",
        "have a good day",
        "help",
        "lol",
        "haha",
        "hahaha",
        "wow",
        "assistant",
        "yes",
        "yeah",
        "yep",
        "no",
    ],
)
def test_more_small_talk(text):
    assert is_small_talk(text)
