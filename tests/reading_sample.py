"""A small invented directory and metric list for the tests of the reading room."""

from nodes.contracts import Company, Metric
from nodes.reading.companies import CompanyIndex

RECEIVED_AT = "2025-11-30T10:00:00+08:00"


def _yunfan(company_id: str, trade: str, english: str) -> Company:
    return Company(
        company_id,
        f"云帆{trade}股份有限公司",
        (f"云帆{trade}", "云帆"),
        (f"Yunfan {english} Co., Ltd.", f"Yunfan {english}", "Yunfan"),
    )


COMPANIES = (
    _yunfan("yf-tech", "科技", "Technology"),
    _yunfan("yf-energy", "能源", "Energy"),
    _yunfan("yf-logistics", "物流", "Logistics"),
    _yunfan("yf-pharma", "医药", "Pharma"),
    _yunfan("yf-food", "食品", "Foods"),
    _yunfan("yf-build", "建设", "Construction"),
    _yunfan("yf-media", "传媒", "Media"),
    Company("yh-property", "云湖置业有限公司", ("云湖置业", "云湖"), ("Yunhu Properties Limited", "Yunhu")),
    Company("xh-food", "星河食品集团有限公司", ("星河食品", "星河"), ("Xinghe Foods Inc.", "Xinghe")),
    Company("xh-soft", "星河软件有限公司", ("星河软件", "星河"), ("Xinghe Software", "Xinghe")),
    Company("lt-asset", "蓝天资产管理有限公司", ("蓝天资管",), ("Blue Sky Asset Management",)),
    Company("q3", "第三季度文化传播有限公司", (), ("Third Quarter Culture",)),
)
INDEX = CompanyIndex(COMPANIES)

METRICS = (
    Metric("revenue", "营业收入", "revenue", ("营收", "收入", "营业额", "sales", "turnover")),
    Metric("net_profit", "净利润", "net profit", ("净利", "纯利", "net income", "profit")),
    Metric("gross_margin", "毛利率", "gross margin", ("毛利润率", "gross profit margin")),
    Metric("rnd_expense", "研发费用", "R&D expense", ("研发投入", "研发支出", "R&D spending", "R&D")),
    Metric("employees", "员工人数", "number of employees", ("员工数", "职工人数", "headcount", "employees")),
    Metric("total_assets", "总资产", "total assets", ("资产总额", "资产")),
    Metric("operating_cash_flow", "经营现金流", "operating cash flow", ("经营活动现金流", "经营性现金流")),
    Metric("tax_paid", "纳税额", "tax paid", ("缴税额", "纳税总额", "taxes paid")),
)
