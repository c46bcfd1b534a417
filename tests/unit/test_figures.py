"""Which figures a text states, form by form. What is not listed beside a text is not read from it."""

from fractions import Fraction

import pytest

from nodes.answer.figures import Amount, Code, Date, Figure, Ordinal, Time, figures, figures_as_evidence
from nodes.answer.numerals import han_value


def amount(value: float | str, unit: str = "") -> Amount:
    return Amount(Fraction(value), unit)


def ordinal(value: int, unit: str = "") -> Ordinal:
    return Ordinal(Fraction(value), unit)


DATES: list[tuple[str, list[Figure]]] = [
    ("2023 年 3 月 5 号", [Date(2023, 3, 5)]),
    ("2023年2月32日", [Date(2023, 2), amount(32, "day")]),
    ("2023-13-05", [amount(2023), amount(13), amount(5)]),
    ("二〇二三年三月", [Date(2023, 3)]),
    ("二○二三年三月廿五日", [Date(2023, 3, 25)]),
    ("二零二三年度", [Date(2023)]),
    ("2023年10月-12月", [Date(2023, 10), Date(2023, 12)]),
    ("2023年10至13月", [Date(2023), amount(10), amount(13)]),
    ("2023年十月份", [Date(2023, 10)]),
    ("2023年第三季度", [Date(2023, quarter=3)]),
    ("2023年四季度", [Date(2023, quarter=4)]),
    ("2023年度Q3", [Date(2023, quarter=3)]),
    ("Q3 of FY2023", [Date(2023, quarter=3)]),
    ("Q2", [Date(quarter=2)]),
    ("Q35", [Code("q35")]),
    ("third-quarter 2023", [Date(2023, quarter=3)]),
    ("the fourth quarter", [Date(quarter=4)]),
    ("first quarter of 2023", [Date(2023, quarter=1)]),
    ("二季度", [Date(quarter=2)]),
    ("2023年上半年", [Date(2023, half=1)]),
    ("2023H2", [Date(2023, half=2)]),
    ("H1 2023", [Date(2023, half=1)]),
    ("second half of 2023", [Date(2023, half=2)]),
    ("下半年", [Date(half=2)]),
    ("March 5th, 2023", [Date(2023, 3, 5)]),
    ("Sept. 5, 2023", [Date(2023, 9, 5)]),
    ("5th of June 2023", [Date(2023, 6, 5)]),
    ("You may 5 times", [amount(5, "times")]),
    ("March of 2023", [Date(2023, 3)]),
    ("3月5号", [Date(month=3, day=5)]),
    ("三月五日", [Date(month=3, day=5)]),
    ("3至5月", [Date(month=3), Date(month=5)]),
    ("12月份", [Date(month=12)]),
    ("2023-12", [Date(2023, 12)]),
    ("2023-13", [amount(2023), amount(13)]),
    ("2023—2025年度", [Date(2023), Date(2025)]),
    ("2023年至2025年", [Date(2023), Date(2025)]),
    ("FY23", [Date(2023)]),
    ("FY233", [Code("fy233")]),
    ("2023财年", [Date(2023)]),
    ("1900年", [Date(1900)]),
    ("2199年", [Date(2199)]),
    ("2200年", [amount(2200 * 12, "month")]),
]
TIMES: list[tuple[str, list[Figure]]] = [
    ("上午9:00", [Time(540)]),
    ("下午5:30", [Time(1050)]),
    ("傍晚6点", [Time(1080)]),
    ("晚上8点半", [Time(1230)]),
    ("5:30 p.m.", [Time(1050)]),
    ("5 pm", [Time(1020)]),
    ("9 am", [Time(540)]),
    ("12 pm", [Time(720)]),
    ("12 am", [Time(0)]),
    ("12:30 am", [Time(30)]),
    ("中午12点", [Time(720)]),
    ("下午12:30", [Time(750)]),
    ("晚上12点", [Time(1440)]),
    ("凌晨12:30", [Time(30)]),
    ("凌晨1点", [Time(60)]),
    ("24:00", [Time(1440)]),
    ("25:00", [Code("25:00")]),
    ("9:59", [Time(599)]),
    ("9:60", [Code("9:60")]),
    ("23:59:59", [Time(1439)]),
    ("8时30分", [Time(510)]),
    ("8点整", [Time(480)]),
    ("8点钟", [Time(480)]),
    ("8点", [amount(8, "点")]),
    ("八点半", [Time(510)]),
    ("下午三点", [Time(900)]),
    ("晚上十点三十分", [Time(1350)]),
    ("三点五十分", [Time(230)]),
    ("两点钟", [Time(120)]),
    ("二十五点半", []),
    ("上午9点至11点", [Time(540), Time(660)]),
    ("上午9点至5点", [Time(540), Time(1020)]),
    ("13:00-2:00", [Time(780), Time(840)]),
    ("9:00至17:00", [Time(540), Time(1020)]),
]
SHARES: list[tuple[str, list[Figure]]] = [
    ("百分之20至百分之30", [amount(20, "%"), amount(30, "%")]),
    ("百分之五", [amount(5, "%")]),
    ("千分之五", [amount("1/2", "%")]),
    ("万分之三", [amount("3/100", "%")]),
    ("3分之2", [amount("200/3", "%")]),
    ("1/0", [amount(1), amount(0)]),
    ("1/2/3", [amount(1), amount(2), amount(3)]),
    ("3/4", [amount(75, "%")]),
    ("three quarters", [amount(75, "%")]),
    ("an eighth", [amount("25/2", "%")]),
    ("a tenth", [amount(10, "%")]),
    ("two-fifths", [amount(40, "%")]),
    ("half of the staff", [amount(50, "%")]),
    ("半数", [amount(50, "%")]),
    ("三到五成", [amount(30, "%"), amount(50, "%")]),
    ("三成员", []),
    ("5‰", [amount("1/2", "%")]),
    ("5至10%", [amount(5, "%"), amount(10, "%")]),
]
ORDINALS: list[tuple[str, list[Figure]]] = [
    ("第 12 条第2款", [ordinal(12, "条"), ordinal(2, "款")]),
    ("第三阶段", [ordinal(3, "阶段")]),
    ("第三，", []),
    ("第3，", [ordinal(3)]),
    ("Article 7", [ordinal(7, "条")]),
    ("Tier 1", [ordinal(1, "档")]),
    ("Level 2", [ordinal(2, "级")]),
    ("Step 4", [ordinal(4, "步")]),
    ("Section 2", [ordinal(2)]),
    ("No. 7", [ordinal(7)]),
    ("Article 7.5", [amount("7.5")]),
    ("the 21st", [ordinal(21)]),
    ("7号楼", [ordinal(7, "号")]),
    ("1.7号", [amount("1.7", "号")]),
]
CODES: list[tuple[str, list[Figure]]] = [
    ("ISO-9001", [Code("iso-9001")]),
    ("v2.3.1", [Code("v2.3.1")]),
    ("比例为3:1", [Code("3:1")]),
    ("几 千", [Code("几千")]),
    ("十几个", [Code("十几个")]),
    ("上亿元", [Code("上亿元")]),
    ("近万人", [Code("近万人")]),
    ("https://a.example/2023?x=5", [Code("https://a.example/2023?x=5")]),
    ("a@b12.example", [Code("a@b12.example")]),
    ("+86-0571-88886666", [Code("+86-0571-88886666")]),
    ("400-123-4567", [Code("400-123-4567")]),
    ("13812345678", [Code("13812345678")]),
    ("1" * 41, [Code("1" * 41)]),
    ("1" * 40, [amount("1" * 40)]),
]
AMOUNTS: list[tuple[str, list[Figure]]] = [
    ("1,3200", [amount(1), amount(3200)]),
    ("1320.50元", [amount("1320.5", "CNY")]),
    ("-5%", [amount(-5, "%")]),
    ("3%-5%", [amount(3, "%"), amount(5, "%")]),
    ("￥100", [amount(100, "CNY")]),
    ("US$3.5m", [amount(3_500_000, "USD")]),
    ("3m", [amount(3)]),
    ("USD 5k", [amount(5000, "USD")]),
    ("3万5千元", [amount(35_000, "CNY")]),
    ("3万5", [amount(35_000)]),
    ("10余家", [amount(10, "org")]),
    ("100多万元", [amount(1_000_000, "CNY")]),
    ("三百多万元", [amount(3_000_000, "CNY")]),
    ("十余亿", [amount(1_000_000_000)]),
    ("一百二十万", [amount(1_200_000)]),
    ("千万不要", []),
    ("二十", []),
    ("三点五万元", [amount(35_000, "CNY")]),
    ("一点二亿", [amount(120_000_000)]),
    ("壹万贰仟元整", [amount(12_000, "CNY")]),
    ("5千瓦时", [amount(5, "kWh")]),
    ("100 m²", [amount(100, "m2")]),
    ("M2增长8%", [Code("m2"), amount(8, "%")]),
    ("二十分钟", [amount(20, "minute")]),
    ("三十分", [amount(30, "分")]),
    ("十分重要", []),
    ("2 bn", [amount(2_000_000_000)]),
    ("twenty-five people", [amount(25, "person")]),
    ("five-year", [amount(60, "month")]),
    ("one", []),
    ("two", [amount(2)]),
    ("2 weeks", [amount(14, "day")]),
    ("2个季度", [amount(6, "month")]),
    ("2小时", [amount(120, "minute")]),
    ("$10-20 million", [amount(10_000_000, "USD"), amount(20_000_000, "USD")]),
    ("10 to 20 million yuan", [amount(10_000_000, "CNY"), amount(20_000_000, "CNY")]),
    ("5至10个工作日", [amount(5, "workday"), amount(10, "workday")]),
    ("¥10至20", [amount(10, "CNY"), amount(20, "CNY")]),
    ("10元、20", [amount(10, "CNY"), amount(20)]),
]
HALVES: list[tuple[str, list[Figure]]] = [
    ("两年半", [amount(30, "month")]),
    ("3年半以上", [amount(42, "month")]),
    ("一个半月", [amount("1.5", "month")]),
    ("三个半小时", [amount(210, "minute")]),
    ("2小时半", [amount(150, "minute")]),
    ("两倍半", [amount("2.5", "fold")]),
    ("两个半天", [amount(2, "each"), amount("0.5", "day")]),
    ("数十个半成品", [Code("数十个")]),
    ("2023年半年报", [Date(2023), amount(6, "month")]),
    ("2023年半导体行业", [Date(2023)]),
    ("half a million yuan", [amount(500_000, "CNY")]),
    ("half an hour", [amount(30, "minute")]),
    ("one and a half years", [amount(18, "month")]),
    ("22 and a half percent", [amount("22.5", "%")]),
    ("半天", [amount("0.5", "day")]),
]
ALL = [*DATES, *TIMES, *SHARES, *ORDINALS, *CODES, *AMOUNTS, *HALVES]


@pytest.mark.parametrize(("text", "stated"), ALL, ids=[text[:40] for text, _ in ALL])
def test_a_text_states_exactly_these_figures(text: str, stated: list[Figure]) -> None:
    assert figures(text) == stated


@pytest.mark.parametrize(
    "text",
    [
        "1. 内容", "- 2. 内容", "3、内容", "(4) 内容", "内容；（5）内容", "须知：6）内容", "一、内容",
        "（二）内容", "①内容", "万一", "三者之一", "统一", "唯一", "百姓", "一般", "一律", "同一", "一站式",
    ],
)  # fmt: skip
def test_list_numbers_and_idioms_state_nothing(text: str) -> None:
    assert figures(text) == []


def test_a_list_number_is_none_only_at_the_beginning() -> None:
    assert figures("共3. 内容") == [amount(3)]
    assert figures("1.5倍") == [amount("1.5", "fold")]


def test_a_date_of_evidence_has_the_year_said_before_in_its_sentence() -> None:
    assert figures_as_evidence("2024年启动，3月5日截止。") == [
        Date(2024),
        Date(month=3, day=5),
        Date(2024, 3, 5),
    ]
    assert Date(2024, 3, 5) not in figures_as_evidence("2024年启动。3月5日截止。")
    assert Date(2024, 3, 5) not in figures_as_evidence("2024年启动\n3月5日截止")


@pytest.mark.parametrize(
    ("text", "value"), [("三点五万", 35_000), ("三点五千万", 35_000_000), ("三点零五亿", 305_000_000)]
)
def test_decimals_may_have_a_magnitude(text: str, value: int) -> None:
    assert han_value(text) == value


@pytest.mark.parametrize("text", ["三点五十", "三点万", "点五万", "三点五万五"])
def test_what_follows_decimals_is_a_magnitude_or_nothing(text: str) -> None:
    assert han_value(text) is None
