"""The guard, rule by rule: tolerant of form, strict of value and unit; and where sentences end."""

from fractions import Fraction

import pytest

from nodes.answer.figures import Amount, Date, Time, figures
from nodes.answer.grounding import Grounding, SentenceBuffer, check_sentence, split_sentences
from nodes.answer.numerals import english_value, han_value

POLICY = (
    "《云湖市科技企业补贴管理办法》（云湖规〔2024〕7号）自2024年3月15日起施行，有效期三年。"
    "年营业收入1,320万元以上的企业可以申请，补贴比例为百分之二十，最高不超过50万元。"
    "申请材料应当在5个工作日内提交，评审专家不少于三分之二，"
    "咨询电话0571-88001234，错误码E1024。"
)
TABLE = (
    "| 指标（万元） | 2022年 | 2023年 |\n|---|---|---|\n"
    "| 营业收入 | 1,100 | 1,320 |\n| 毛利率(%) | 30 | 31.5 |\n"
)
EVIDENCE = [POLICY, TABLE]


def passes(sentence: str, question: str = "补贴怎么申请？", evidence: list[str] | None = None) -> bool:
    texts = EVIDENCE if evidence is None else evidence
    return check_sentence(
        sentence, evidence_texts=texts, question=question, citations_available=len(texts)
    ).ok


@pytest.mark.parametrize(
    "sentence",
    [
        "年营业收入1320万元以上可以申请[C1]。",
        "年营业收入 1,320 万元以上可以申请[C1]。",
        "年营业收入１３２０万元以上可以申请[C1]。",
        "年营业收入一千三百二十万元以上可以申请[C1]。",
        "年营业收入0.132亿元以上可以申请[C1]。",
        "年營業收入1,320萬元以上可以申請[C1]。",
        "Revenue must be 13.2 million yuan or more [C1].",
        "Revenue must be RMB 13.2 million or more [C1].",
        "Revenue must be RMB 13.2m or more [C1].",
        "年营业收入**1320**万元[C1]。",
        "年营业收入1320万[C1]。",
        "补贴比例为20%，最高50万元[C1]。",
        "补贴比例为20 percent [C1].",
        "补贴两成，即五分之一[C1]。",
        "最高500000元[C1]。",
        "自2024-03-15起施行[C1]。",
        "自2024年3月起施行[C1]。",
        "It took effect on March 15, 2024 and is valid for three years [C1].",
        "It took effect on 15 March 2024 [C1].",
        "自二〇二四年三月十五日起施行[C1]。",
        "有效期36个月[C1]。",
        "五个工作日内提交[C1]。",
        "within five business days [C1].",
        "专家不少于2/3[C1]。",
        "at least two-thirds of the experts [C1].",
        "电话0571-88001234，错误码e1024[C1]。",
        "依据云湖规[2024]第7号[C1]。",
        "根据《云湖市科技企业补贴管理办法》[C1]。",
        "2023年营业收入1320万元[C2]。",
        "Revenue in 2023 was 13.2 million yuan [C2].",
        "毛利率31.5%[C2]。",
        "满足以下两个条件即可[C1]。",
        "1. 提交申请材料[C1]；",
        "（1）提交申请；（2）等待评审[C1]。",
        "第一，提交材料；第二，等待评审[C1]。",
        "这十分重要，须统一办理[C1]。",
    ],
)
def test_the_same_thing_in_another_form_passes(sentence: str) -> None:
    assert passes(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "年营业收入1230万元以上可以申请[C1]。",
        "年营业收入1320元以上可以申请[C1]。",
        "年营业收入1320万美元以上可以申请[C1]。",
        "Revenue must be 132 million yuan or more [C1].",
        "补贴比例为20[C1]。",
        "补贴比例为20个百分点[C1]。",
        "补贴比例为20‰[C1]。",
        "补贴20元[C1]。",
        "补贴三成[C1]。",
        "最高50元[C1]。",
        "自2024年3月16日起施行[C1]。",
        "自2023年3月15日起施行[C1]。",
        "有效期三个月[C1]。",
        "有效期5年[C1]。",
        "5天内提交[C1]。",
        "十五个工作日内提交[C1]。",
        "专家不少于四分之三[C1]。",
        "电话0571-88001243[C1]。",
        "错误码E1042[C1]。",
        "依据云湖规〔2024〕17号[C1]。",
        "依据云湖规〔2023〕7号[C1]。",
        "依据云河规〔2024〕7号[C1]。",
        "依据《云湖市科技企业奖励管理办法》[C1]。",
        "依据科技企业奖励管理办法[C1]。",
        "依据第三条[C1]。",
        "上午9:00受理[C1]。",
        "有几十万元[C1]。",
        "收入为九九九万元[C1]。",
    ],
)
def test_another_value_unit_or_name_is_refused(sentence: str) -> None:
    assert not passes(sentence)


def test_a_sentence_is_checked_against_the_passages_it_cites() -> None:
    assert passes("2022年营业收入1100万元[C2]。")
    assert not passes("2022年营业收入1100万元[C1]。")
    assert passes("2022年营业收入1100万元[C1][C2]。")
    assert passes("2022年营业收入1100万元。")


@pytest.mark.parametrize(
    "label", ["[C3]", "[C0]", "[C1][C9]", "[C1, C7]", "[C1-C4]", "【C1】", "(C1)", "[1]", "[C1x]"]
)
def test_a_label_that_names_no_passage_or_is_malformed_is_refused(label: str) -> None:
    verdict = check_sentence(
        f"补贴比例为20%{label}。", evidence_texts=EVIDENCE, question="", citations_available=2
    )
    assert "citation" in {item.what for item in verdict.unsupported}


@pytest.mark.parametrize("label", ["[C1]", "[C1][C2]", "[C1, C2]", "[C1-C2]", "［Ｃ1］", "[ C1 ]"])
def test_labels_in_use_pass(label: str) -> None:
    assert passes(f"补贴比例为20%{label}。")


def test_available_labels_may_be_named() -> None:
    def verdict(labels: list[str]) -> bool:
        return check_sentence(
            "20%[C2]。", evidence_texts=["20%", "20%"], question="", citations_available=labels
        ).ok

    assert verdict(["C1", "C2"])
    assert not verdict(["C1"])


def test_marks_of_the_window_and_escaped_labels_are_refused() -> None:
    assert not passes("⟦更早的 3 轮已省略⟧")
    assert not passes("⟦此处截断⟧")
    assert not passes("好⟧")
    assert not passes("见[\\C1]。")


def test_the_question_may_be_echoed_but_not_asserted() -> None:
    question = "营业收入是999万元吗？"
    assert passes("资料中没有提到999万元。", question)
    assert passes("您问的999万元，资料中没有。", question)
    assert passes("999万元低于1320万元的要求[C1]。", question)
    assert not passes("是的，营业收入为999万元。", question)
    assert not passes("是的，营业收入为999万元[C1]。", question)
    assert not passes("资料中没有提到999万元。", "补贴怎么申请？")


def test_a_year_and_a_name_of_the_question_may_be_echoed() -> None:
    assert passes("资料没有2099年的数据。", "2099年营收？")
    assert not passes("资料没有2099年的数据。", "营收？")
    assert passes("没有找到云湖规〔2030〕9号。", "云湖规〔2030〕9号说了什么？")


def test_without_evidence_no_figure_passes() -> None:
    assert passes("资料中没有找到。", evidence=[])
    assert not passes("营业收入为1320万元。", evidence=[])


def test_a_fall_may_be_said_with_or_without_its_sign() -> None:
    assert passes("利润下降5%[C1]。", evidence=["利润同比-5%。"])
    assert passes("利润同比-5%[C1]。", evidence=["利润同比下降5%。"])
    assert not passes("利润增长5%[C1]。", evidence=["利润同比-5%。"])


def test_ranges_share_their_unit() -> None:
    assert passes("补贴10万元至20万元[C1]。", evidence=["补贴10-20万元。"])
    assert not passes("补贴10元至20万元[C1]。", evidence=["补贴10-20万元。"])
    assert passes("2024年3月31日截止[C1]。", evidence=["2024年1月1日至3月31日。"])
    assert passes("下午5点截止[C1]。", evidence=["下午1:30至5:00。"])


def test_a_tally_is_refused_only_where_the_evidence_counts_otherwise() -> None:
    assert passes("一家企业只能申请一次[C1]。", evidence=["企业可以申请。"])
    assert passes("需要满足三个条件[C1]。", evidence=["条件如下。"])
    assert not passes("需要满足三个条件[C1]。", evidence=["需要满足两个条件。"])
    assert not passes("有效期一年[C1]。", evidence=["有效期三年。"])
    assert not passes("At least four suppliers must quote [C1].", evidence=["三家以上报价。"])


def test_tables_lend_their_units() -> None:
    with_line = "单位：万元\n营业收入 1,320\n净利润 200"
    with_column = "| 指标 | 单位 | 2023年 |\n| 营业收入 | 万元 | 1,320 |\n| 员工 | 人 | 40 |"
    for table in (with_line, with_column):
        assert passes("营业收入1320万元[C1]。", evidence=[table])
        assert not passes("营业收入1320亿元[C1]。", evidence=[table])
    assert passes("员工40人[C1]。", evidence=[with_column])
    assert not passes("员工40万元[C1]。", evidence=[with_column])


def test_an_english_title_must_stand_in_english_evidence() -> None:
    evidence = ["The Measures for Regional Headquarters apply to every company that files in this city."]
    assert passes("The Measures for Regional Headquarters apply [C1].", evidence=evidence)
    assert not passes("The Measures for Foreign Investors apply [C1].", evidence=evidence)


def test_hidden_characters_do_not_hide_a_figure() -> None:
    assert not passes("补贴比例为3\u200b0%[C1]。")
    assert not passes("最高九\u200b十万元[C1]。")


@pytest.mark.parametrize(
    "sentence",
    [
        "1" * 6000,
        "1," * 3000,
        "一" * 6000,
        "十百千万" * 1500,
        f"[C{'1' * 6000}]",
        f"第{'9' * 5000}条",
        f"{'9' * 5000}%",
    ],
)
def test_runs_without_end_are_refused(sentence: str) -> None:
    assert not passes(f"补贴为{sentence}元。")


def test_white_space_without_end_costs_nothing() -> None:
    assert passes("补贴比例为" + " " * 50_000 + "20%[C1]。")
    assert passes("\n" * 50_000 + "20%[C1]。")


def test_one_guard_serves_many_sentences() -> None:
    guard = Grounding(EVIDENCE, "补贴？")
    assert [guard.check(text).ok for text in ("20%[C1]。", "21%[C1]。", "20%[C1]。")] == [True, False, True]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("二十", 20),
        ("一千零五十", 1050),
        ("三点五", 3.5),
        ("两万五千", 25000),
        ("贰拾", 20),
        ("半", 0.5),
        ("十五", 15),
        ("九九九", 999),
    ],
)
def test_chinese_numerals(text: str, value: float) -> None:
    assert han_value(text) == value


@pytest.mark.parametrize("text", ["万", "点五", "十百", "", "一" * 25, "十" * 25, "甲"])
def test_what_is_no_chinese_numeral(text: str) -> None:
    assert han_value(text) is None


def test_english_numerals() -> None:
    assert english_value("three hundred and five") == 305
    assert english_value("twenty-five") == 25
    assert english_value("five five") is None


def test_dates_in_all_forms_are_one_date() -> None:
    forms = [
        "2023年3月5日",
        "2023-03-05",
        "2023/3/5",
        "2023.3.5",
        "March 5, 2023",
        "5 March 2023",
        "二〇二三年三月五日",
    ]
    assert {found for form in forms for found in figures(form)} == {Date(2023, 3, 5)}


def test_money_in_all_forms_is_one_amount() -> None:
    forms = [
        "1.5亿元",
        "15000万元",
        "150,000,000元",
        "一亿五千万元",
        "RMB 150 million",
        "¥150m",
        "1亿5000万元",
    ]
    found = {amount for form in forms for amount in figures(form)}
    assert found == {Amount(Fraction(150_000_000), "CNY")}


# Sentences


def test_chinese_and_english_sentences() -> None:
    text = "补贴为3.5万元。[C1] 见No. 7文件！Is it 3.5 million? Yes, see No. 7 of the U.S. rules [C2]. End"
    assert split_sentences(text) == [
        "补贴为3.5万元。[C1] ",
        "见No. 7文件！",
        "Is it 3.5 million? ",
        "Yes, see No. 7 of the U.S. rules [C2]. ",
        "End",
    ]


def test_quotes_and_citations_belong_to_the_sentence_before() -> None:
    assert split_sentences("他说“可以。”[C1][C2]\n\n下一句") == ["他说“可以。”[C1][C2]\n\n", "下一句"]


def test_list_numbers_end_no_sentence() -> None:
    assert split_sentences("1. 提交；\n2. 审核。") == ["1. 提交；\n", "2. 审核。"]


def test_a_line_break_does_not_part_a_number_from_its_unit() -> None:
    assert split_sentences("补贴20\n万元。好") == ["补贴20\n万元。", "好"]


def test_a_very_long_sentence_is_let_go_at_a_lesser_mark() -> None:
    text = "甲" * 700 + "，" + "乙" * 10
    assert split_sentences(text) == ["甲" * 700 + "，", "乙" * 10]


def test_the_stream_waits_for_what_may_still_belong_to_a_sentence() -> None:
    buffer = SentenceBuffer()
    assert buffer.feed("补贴20%。") == []
    assert buffer.feed("[C") == []
    assert buffer.feed("1]") == []
    assert buffer.feed("最") == ["补贴20%。[C1]"]
    assert buffer.flush() == ["最"]
    assert buffer.flush() == []


# Found missing by mutation


def test_months_that_share_a_year_are_two_dates() -> None:
    assert figures("2023年10月至12月") == [Date(2023, 10), Date(2023, 12)]
    assert figures("2023年3-5月") == [Date(2023, 3), Date(2023, 5)]


def test_what_follows_a_magnitude_is_tens_or_a_number_of_its_own() -> None:
    assert [(one.value, one.unit) for one in figures("1万2000元") if isinstance(one, Amount)] == [
        (12000, "CNY")
    ]
    assert [(one.value, one.unit) for one in figures("3万5元") if isinstance(one, Amount)] == [(35000, "CNY")]


def test_no_hour_is_later_than_midnight() -> None:
    assert not any(isinstance(one, Time) for one in figures("25:30"))


@pytest.mark.parametrize("text", ["三点", "三点十", "点五"])
def test_decimals_are_digits(text: str) -> None:
    assert han_value(text) is None


def test_a_year_is_no_sum_and_a_day_no_article() -> None:
    assert not passes("补贴为1999元。", evidence=["本市于1999年设立该补贴。"])
    assert not passes("依据第7条办理。", evidence=["3月7日起受理。"])
    assert passes("补贴于1999年设立。", evidence=["本市于1999年设立该补贴。"])


def test_a_label_beyond_the_passages_is_judged_by_all_of_them() -> None:
    def check(sentence: str) -> bool:
        return check_sentence(
            sentence, evidence_texts=["20%"], question="", citations_available=["C1", "C2"]
        ).ok

    assert check("20%[C2]。")
    assert not check("30%[C2]。")


def test_a_code_may_stand_within_a_longer_one_but_whole() -> None:
    evidence = ["见https://a.example/E1024/help。"]
    assert passes("错误码E1024[C1]。", evidence=evidence)
    assert not passes("错误码E102[C1]。", evidence=evidence)
    assert not passes("错误码1024-5[C1]。", evidence=evidence)


@pytest.mark.parametrize(
    ("said", "known", "is_supported"),
    [
        # A year with and without its word.
        ("2023年", "| 2023 | 5 |", True),
        ("2023年", "共2023元", False),
        ("2023年", "共0.2023万", False),
        ("2023年", "2023.5", False),
        ("2023", "2023年", True),
        ("2022", "2023年", False),
        ("1900", "1900年", True),
        ("2199", "2199年", True),
        ("2023元", "2023年", False),
        ("0.2万", "2000年", False),
        # A coarser date by a finer one, never the reverse.
        ("2023年", "2023年第三季度", True),
        ("第三季度", "2023年第三季度", True),
        ("2023年第三季度", "第三季度", False),
        ("2023年第三季度", "2023年", False),
        ("2023年第二季度", "2023年第三季度", False),
        ("2023年上半年", "2023年下半年", False),
        ("2023年上半年", "2023年", False),
        ("3月", "3月15日", True),
        ("3月15日", "3月", False),
        ("4月15日", "3月15日", False),
        ("3月16日", "3月15日", False),
        # Units that say the same, and units left out.
        ("3 times", "每年3次", True),
        ("3 times", "3倍", True),
        ("3次", "3倍", False),
        ("3", "3家", True),
        ("3", "3万元", False),
        ("50000", "5万元", True),
        ("18", "18周岁", True),
        ("30", "30天", True),
        ("5", "5个工作日", True),
        ("36", "36个月", True),
        ("20", "20%", False),
        ("30", "30分钟", False),
        ("40人", "40", True),
        ("18岁", "18", True),
        ("5万元", "5万", True),
        ("5元", "5", False),
        ("5万吨", "5万", False),
        ("40%", "40", False),
        ("40天", "40", False),
        ("15个", "15家", True),
        ("15家", "15个", True),
        ("15家", "15人", False),
        ("15个", "15元", False),
        # Ordinals.
        ("第5条", "第5条", True),
        ("第5条", "第6条", False),
        ("第5条", "第5款", False),
        ("Section 5", "第5条", True),
        ("第5条", "Section 5", True),
        ("the 15th", "3月15日", True),
        ("the 16th", "3月15日", False),
        ("第15条", "3月15日", False),
        ("第5天", "5天", True),
        ("第5年", "5天", True),
        ("第5条", "5条", True),
        ("第5条", "5个", True),
        ("第6条", "5条", False),
        ("第5条", "5元", False),
        ("第5条", "5", True),
        ("第5条", "E5", False),
    ],
)
def test_what_supports_what(said: str, known: str, is_supported: bool) -> None:
    assert passes(f"标准为{said}[C1]。", evidence=[f"标准为{known}。"]) is is_supported


@pytest.mark.parametrize(
    "word",
    [
        "下降", "减少", "降低", "下滑", "亏损", "负增长", "跌", "缩减", "减亏", "回落",
        "fell", "falls", "dropped", "declined", "decreased", "down", "loss", "lower", "negative", "shrank",
    ],
)  # fmt: skip
def test_words_that_stand_for_a_sign(word: str) -> None:
    assert passes(f"利润 {word} 5%[C1]。", evidence=["利润 -5%。"])
    assert passes("利润 -5%[C1]。", evidence=[f"利润 {word} 5%。"])


@pytest.mark.parametrize(
    ("said", "known"),
    [
        *(("一年", word) for word in ("每年", "全年", "年度", "per year", "A year", "each year", "annual")),
        *(("一个月", word) for word in ("每月", "当月", "月租", "per month", "a month", "monthly")),
        *(("一天", word) for word in ("每天", "每日", "当日", "per day", "a day", "daily")),
        *(("一日", word) for word in ("每天", "每日", "当日", "each day", "a day", "daily")),
    ],
)
def test_one_period_may_say_no_more_than_each(said: str, known: str) -> None:
    length = "三年" if "年" in said else "三个月" if "月" in said else "三天"
    assert passes(f"按{said}计[C1]。", evidence=[f"{known} reviewed，为期{length}。"])
    assert not passes(f"按{said}计[C1]。", evidence=[f"为期{length}。"])


def test_a_tally_counts_the_same_noun_or_none() -> None:
    assert passes("需要三个条件[C1]。", evidence=["需要两个窗口。"])
    assert not passes("需要三个[C1]。", evidence=["需要两个窗口。"])
    assert not passes("需要三个条件[C1]。", evidence=["需要两个。"])
    assert not passes("需要三项条件[C1]。", evidence=["需要两项条件。"])
    assert not passes("需要三人[C1]。", evidence=["条件如下。"])


@pytest.mark.parametrize(
    "word",
    [
        "您", "你", "所述", "所问", "提到", "提问", "问", "如果", "若", "假如", "倘若", "未", "没", "无",
        "不", "并非", "超过", "低于", "高于", "少于", "多于", "大于", "小于", "达到", "以上", "以下",
        "以内", "属于",
        "you", "your", "ask", "asked", "question", "if", "whether", "not", "no", "cannot", "can't", "unable",
        "without", "exceed", "exceeds", "exceeding", "above", "below", "under", "over", "more", "less",
        "fewer", "within", "at least", "at most", "Without",
    ],
)  # fmt: skip
def test_words_beside_which_an_echo_asserts_nothing(word: str) -> None:
    assert passes(f"营收999万元 {word}。", "营收是999万元吗？")
    assert not passes("营收 999万元。", "营收是999万元吗？")


@pytest.mark.parametrize(
    ("number", "may_be_a_year"),
    [("500", False), ("1899", False), ("1900", True), ("2199", True), ("2200", False)],
)
def test_only_a_year_is_echoed_as_it_is(number: str, may_be_a_year: bool) -> None:
    assert passes(f"营收为{number}。", f"营收是{number}吗？") is may_be_a_year


def test_what_an_echo_may_stand_beside() -> None:
    question = "营收是999万元，要求1320万元吗？"
    assert not passes("营收999万元，共一家[C1]。", question)
    assert not passes("营收999万元，时间2024年[C1]。", question)
    assert passes("2099年的情况。", "2099年营收？")
    assert passes("营收999万元，要求1320万元[C1]。", question="营收是999万元吗？")
    assert not passes("2099年营收999万元。", "2099年营收999万元？")
