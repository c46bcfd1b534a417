"""Periods in a text, and the numbers that are none. Asked on 30 November 2025."""

import pytest
from reading_sample import RECEIVED_AT

from nodes.reading.periods import find_periods, period_before, year_before

ZH = [
    ("FY2023", ["2023"]),
    ("2023年", ["2023"]),
    ("2023财年", ["2023"]),
    ("2023财政年度", ["2023"]),
    ("2023年度报告", ["2023"]),
    ("2023年末总资产", ["2023"]),
    ("截至2023年底的员工人数", ["2023"]),
    ("２０２３年营收", ["2023"]),
    ("2023 年 营收", ["2023"]),
    ("二〇二三年营收", ["2023"]),
    ("二零二三年营收", ["2023"]),
    ("二○二三年第三季度", ["2023Q3"]),
    ("2023年第三季度", ["2023Q3"]),
    ("2023年三季度", ["2023Q3"]),
    ("2023三季度", ["2023Q3"]),
    ("2023年第3季度", ["2023Q3"]),
    ("2023年Q3", ["2023Q3"]),
    ("2023Q3", ["2023Q3"]),
    ("２０２３Ｑ３", ["2023Q3"]),
    ("2023年三季报", ["2023Q3"]),
    ("第三季度2023年", ["2023Q3"]),
    ("2023年上半年", ["2023H1"]),
    ("2023年下半年", ["2023H2"]),
    ("2023上半年", ["2023H1"]),
    ("2023H1", ["2023H1"]),
    ("2023年半年报", ["2023H1"]),
    ("2023年中报", ["2023H1"]),
    ("上半年营收", ["2025H1"]),
    ("下半年营收", ["2025H2"]),
    ("三季度营收", ["2025Q3"]),
    ("去年营收", ["2024"]),
    ("去年上半年营收", ["2024H1"]),
    ("去年第四季度", ["2024Q4"]),
    ("今年营收", ["2025"]),
    ("本年度营收", ["2025"]),
    ("前年营收", ["2023"]),
    ("大前年营收", ["2022"]),
    ("上年营收", ["2024"]),
    ("上一年营收", ["2024"]),
    ("明年的政策", ["2026"]),
    ("上季度营收", ["2025Q3"]),
    ("上个季度营收", ["2025Q3"]),
    ("本季度营收", ["2025Q4"]),
    ("近三年净利润", ["2022", "2023", "2024"]),
    ("最近两年净利润", ["2023", "2024"]),
    ("过去5年净利润", ["2020", "2021", "2022", "2023", "2024"]),
    ("近一年净利润", ["2024"]),
    ("2021-2023年", ["2021", "2022", "2023"]),
    ("2021年-2023年", ["2021", "2022", "2023"]),
    ("2021年到2023年", ["2021", "2022", "2023"]),
    ("2021至2023年", ["2021", "2022", "2023"]),
    ("2021～2023年营收", ["2021", "2022", "2023"]),
    ("2023年至2021年", ["2021", "2022", "2023"]),
    ("从2021年到去年", ["2021", "2022", "2023", "2024"]),
    ("2022年至今", ["2022", "2023", "2024", "2025"]),
    ("2023年以来的营收", ["2023", "2024", "2025"]),
    ("2022年和2023年", ["2022", "2023"]),
    ("2022和2023年营收", ["2022", "2023"]),
    ("2022、2023年营收", ["2022", "2023"]),
    ("2021年、2022年、2023年", ["2021", "2022", "2023"]),
    ("2023年一季度和三季度", ["2023Q1", "2023Q3"]),
    ("2022年和2023年第三季度", ["2022Q3", "2023Q3"]),
    ("2023年前三季度", ["2023Q1", "2023Q2", "2023Q3"]),
    ("2023年1-3季度", ["2023Q1", "2023Q2", "2023Q3"]),
    ("2023年Q1到Q3", ["2023Q1", "2023Q2", "2023Q3"]),
    ("2022Q4至2023Q2", ["2022Q4", "2023Q1", "2023Q2"]),
    ("2023年比2022年增长", ["2023", "2022"]),
    ("2023年比上年增长", ["2023", "2022"]),
    ("2023年上半年比去年同期增长", ["2023H1", "2022H1"]),
    ("2023年，净利润在三季度是多少", ["2023", "2023Q3"]),
    ("2023年，三季度的净利润", ["2023Q3"]),
    ("2023营收", ["2023"]),
    ("23年营收", ["2023"]),
    ("23年三季度营收", ["2023Q3"]),
    ("22年和23年营收", ["2022", "2023"]),
    ("营收2023", ["2023"]),
    ("2023", ["2023"]),
    ("2023？", ["2023"]),
    ("2021-2023", ["2021", "2022", "2023"]),
    ("1999年", ["1999"]),
]

EN = [
    ("in 2023", ["2023"]),
    ("revenue in 2023?", ["2023"]),
    ("2023 revenue", ["2023"]),
    ("2023's net profit", ["2023"]),
    ("2023 annual report", ["2023"]),
    ("revenue 2023", ["2023"]),
    ("revenue (2023)", ["2023"]),
    ("revenue for 2023", ["2023"]),
    ("fiscal year 2023", ["2023"]),
    ("fiscal 2023", ["2023"]),
    ("FY 2023", ["2023"]),
    ("FY23", ["2023"]),
    ("FY'23", ["2023"]),
    ("the year 2023", ["2023"]),
    ("Q3 2023", ["2023Q3"]),
    ("Q3 of 2023", ["2023Q3"]),
    ("2023 Q3", ["2023Q3"]),
    ("Q3 FY2023", ["2023Q3"]),
    ("3Q23", ["2023Q3"]),
    ("23Q3", ["2023Q3"]),
    ("third quarter of 2023", ["2023Q3"]),
    ("the fourth quarter of fiscal year 2023", ["2023Q4"]),
    ("last quarter of 2023", ["2023Q4"]),
    ("first half of 2023", ["2023H1"]),
    ("second half of last year", ["2024H2"]),
    ("H1 2023", ["2023H1"]),
    ("1H23", ["2023H1"]),
    ("last year", ["2024"]),
    ("last year's revenue", ["2024"]),
    ("this year", ["2025"]),
    ("next fiscal year", ["2026"]),
    ("the year before last", ["2023"]),
    ("last quarter", ["2025Q3"]),
    ("this quarter", ["2025Q4"]),
    ("the past three years", ["2022", "2023", "2024"]),
    ("over the last 2 fiscal years", ["2023", "2024"]),
    ("from 2021 to 2023", ["2021", "2022", "2023"]),
    ("2021-2023 revenue", ["2021", "2022", "2023"]),
    ("since 2023", ["2023", "2024", "2025"]),
    ("between 2021 and 2023", ["2021", "2023"]),
    ("2022 and 2023 revenue", ["2022", "2023"]),
    ("revenue in 2022 vs 2023", ["2022", "2023"]),
    ("in 2023 compared with 2022", ["2023", "2022"]),
    ("Q3 of 2022 and 2023", ["2022Q3", "2023Q3"]),
    ("Q1 and Q3 2023", ["2023Q1", "2023Q3"]),
    ("Q3 2022, Q4 2023", ["2022Q3", "2023Q4"]),
    ("first three quarters of 2023", ["2023Q1", "2023Q2", "2023Q3"]),
    ("in 2023 versus the previous year", ["2023", "2022"]),
    ("H1 2023 against the same period last year", ["2023H1", "2022H1"]),
    ("what about 2022?", ["2022"]),
]

NONE = [
    "1320",
    "1320万元",
    "营收1320万元",
    "1320年",
    "¥2023",
    "$2023",
    "2023元",
    "2023万元",
    "2023名员工",
    "2023家企业",
    "2023号文",
    "国办发〔2023〕12号",
    "2023年第12号公告",
    "2023年3月",
    "2023年三月",
    "2023年12月31日",
    "二〇二三年三月",
    "2023年1-3月营收",
    "去年3月",
    "2023-03-31",
    "2023/3/31",
    "2023.3.31",
    "2023-03",
    "2023年以前成立的企业",
    "2023年之后",
    "2023年前9个月",
    "成立20年",
    "运营23年营收稳定",
    "工作满10年",
    "每年营收",
    "连续三年盈利",
    "未来三年规划",
    "附近三年级小学",
    "近20年营收",
    "一年四季",
    "以上年限",
    "基本年薪",
    "2,023",
    "2023.5",
    "12023",
    "A2023",
    "2023X",
    "型号2023",
    "邮编202312",
    "电话2021-20235678",
    "2023 employees",
    "2023 new employees",
    "a total of 2023 people",
    "2023 yuan",
    "in 2023 companies",
    "a fee of 2023",
    "no. 2023",
    "room 2023",
    "in May 2023",
    "on 3 May 2023",
    "March 31, 2023",
    "before 2023",
    "FY2023/24",
    "2023-24",
    "the first nine months of 2023",
    "H1B visa",
    "margin 2x",
    "a quarter of the staff",
    "half of the budget",
    "last years of school",
    "",
    "？",
]


@pytest.mark.parametrize(("text", "periods"), ZH + EN)
def test_periods_are_read(text, periods):
    assert find_periods(text, received_at=RECEIVED_AT) == periods


@pytest.mark.parametrize("text", NONE)
def test_numbers_dates_and_spans_that_are_no_periods(text):
    assert find_periods(text, received_at=RECEIVED_AT) == []


def test_relative_periods_count_in_the_offset_of_the_time_of_asking():
    assert find_periods("去年", received_at="2025-01-01T00:30:00+08:00") == ["2024"]
    assert find_periods("去年", received_at="2024-12-31T16:30:00+00:00") == ["2023"]
    assert find_periods("上季度", received_at="2025-01-15T00:00:00+08:00") == ["2024Q4"]


def test_a_long_range_names_its_ends_and_many_mentions_are_bounded():
    assert find_periods("1950年到2023年", received_at=RECEIVED_AT) == ["1950", "2023"]
    many = "、".join(f"{year}年" for year in range(1900, 2000))
    assert len(find_periods(many, received_at=RECEIVED_AT)) == 50


def test_the_period_before():
    assert [period_before(p) for p in ("2023", "2023Q3", "2023Q1", "2023H2", "2023H1")] == [
        "2022",
        "2023Q2",
        "2022Q4",
        "2023H1",
        "2022H2",
    ]
    assert [year_before(p) for p in ("2023", "2023Q3", "2023H1")] == ["2022", "2022Q3", "2022H1"]


@pytest.mark.parametrize(
    ("text", "periods"),
    [
        ("Q1'23 net income", ["2023Q1"]),  # not the first quarter of the year of asking
        ("revenue in Q3 ’22", ["2022Q3"]),
        ("H2'24 revenue", ["2024H2"]),
        ("headcount 2022-2023", ["2022", "2023"]),
        ("Revenue 2021 to 2023?", ["2021", "2022", "2023"]),
        ("2021、2022、2024三年的毛利率", ["2021", "2022", "2024"]),
        ("Net profit of Yunfan Energy, 2024", ["2024"]),
        ("营收！云帆科技！2024！", ["2024"]),
        ("quick one: yunfan food -- 2024 -- revenue??", ["2024"]),
    ],
)
def test_a_year_that_stands_apart_beside_a_figure_is_one(text, periods):
    assert find_periods(text, received_at=RECEIVED_AT) == periods


@pytest.mark.parametrize(
    "text",
    [
        "Portal errors 2022, 2024",  # asks for no figure
        "Net profit form: codes 2022, 2024 are refused",  # a list of numbers
        "收入申报，错误码2022，怎么办",
        "Q1'234 revenue",
        "2024三年级",
    ],
)
def test_a_number_that_stands_apart_otherwise_is_none(text):
    assert "2024" not in find_periods(text, received_at=RECEIVED_AT)
    assert "2022" not in find_periods(text, received_at=RECEIVED_AT)
