"""Metrics in a text: the longest name wins, a qualified figure is another figure."""

import pytest
from reading_sample import METRICS

from nodes.contracts import Metric
from nodes.reading.metrics import find_metrics

FOUND = [
    ("云帆科技2023年营业收入", ["revenue"]),
    ("营收和净利润", ["revenue", "net_profit"]),
    ("净利润和营收", ["net_profit", "revenue"]),
    ("營業收入與淨利潤", ["revenue", "net_profit"]),
    ("收入多少", ["revenue"]),
    ("年营业额", ["revenue"]),
    ("毛利率是多少", ["gross_margin"]),
    ("研发投入多少钱", ["rnd_expense"]),
    ("研 发 费 用", ["rnd_expense"]),
    ("员工人数", ["employees"]),
    ("总资产和经营现金流", ["total_assets", "operating_cash_flow"]),
    ("经营活动现金流", ["operating_cash_flow"]),
    ("纳税总额", ["tax_paid"]),
    ("What was the Revenue?", ["revenue"]),
    ("revenues and net income", ["revenue", "net_profit"]),
    ("profits", ["net_profit"]),
    ("Ｒ＆Ｄ　ｅｘｐｅｎｓｅ", ["rnd_expense"]),
    ("R&D spending", ["rnd_expense"]),
    ("the number of employees", ["employees"]),
    ("gross margin", ["gross_margin"]),
    ("operating cash flow in 2023", ["operating_cash_flow"]),
    ("营收、营业收入、收入", ["revenue"]),
]

NOT_FOUND = [
    "员工人数上限是多少",
    "营业收入的门槛",
    "a revenue threshold for small firms",
    "employees limit",
    "扣非净利润",
    "扣非后的净利润",
    "归母净利润",
    "归属于母公司股东的净利润",
    "净利润率",
    "净资产",
    "固定资产",
    "流动资产",
    "总资产周转率",
    "资产负债率",
    "营业外收入",
    "投资收入",
    "人均营收",
    "税前利润",
    "营收占比",
    "研发费用占营收比例",
    "研发费用加计扣除",
    "收入证明怎么开",
    "收入来源",
    "员工数据安全培训",
    "adjusted net profit",
    "gross profit",
    "operating profit",
    "net assets",
    "other income",
    "profitable companies",
    "nonprofit",
    "salesman",
    "revenue per employee",
    "R & B music",
    "",
]


@pytest.mark.parametrize(("text", "metrics"), FOUND)
def test_metrics_are_found_in_order(text, metrics):
    assert find_metrics(text, METRICS) == metrics


@pytest.mark.parametrize("text", NOT_FOUND)
def test_what_is_no_metric_of_the_list(text):
    assert find_metrics(text, METRICS) == []


def test_a_qualified_figure_counts_once_it_is_a_metric_itself():
    metrics = (
        *METRICS,
        Metric("core_profit", "扣非净利润", "core net profit"),
        Metric("net_assets", "净资产", "net assets"),
    )
    assert find_metrics("扣非净利润和净资产", metrics) == ["core_profit", "net_assets"]
    assert find_metrics("净利润", metrics) == ["net_profit"]


def test_no_metrics_find_nothing():
    assert find_metrics("营业收入", ()) == []
