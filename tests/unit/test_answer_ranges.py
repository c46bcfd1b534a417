"""Which of several rules that differ by an amount is the one for the amount that is asked about."""

from collections.abc import Mapping

import pytest

from nodes.answer.extraction import choose_quotes
from nodes.answer.figures import Amount, figures
from nodes.answer.ranges import range_holds
from nodes.contracts import Passage

RULES = (
    "# 采购审批规定\n\n第一条 单笔采购金额5000元以下的，由部门经理审批。\n"
    "第二条 单笔采购金额5000元以上5万元以下的，由部门总监审批。\n"
    "第三条 单笔采购金额5万元以上的，由总经理审批，并且必须招标。\n"
)


def held(asked: str, rule: str) -> bool | None:
    amount = figures(asked)[0]
    assert isinstance(amount, Amount)
    return range_holds(amount, rule)


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        ("8000元", "采购5000元以上5万元以下的"),
        ("8000元", "采购5000元（含）以上的"),
        ("12年", "满10年不满20年的，年休假10天"),
        ("20万元", "不超过30万元"),
        ("5 days", "Leave of more than 3 days needs a director"),
        ("5000元", "5000元以下的"),
    ],
)
def test_an_amount_within_the_range(asked: str, rule: str) -> None:
    assert held(asked, rule) is True


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        ("8000元", "采购5万元以上的"),
        ("8000元", "采购５０００元（不含）以下的"),
        ("12年", "满1年不满10年的，年休假5天"),
        ("40万元", "不超过30万元"),
        ("20万元", "超过30万元的"),
        ("5 days", "Leave of up to 3 days needs a manager"),
    ],
)
def test_an_amount_outside_of_it(asked: str, rule: str) -> None:
    assert held(asked, rule) is False


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        ("2天", "3天以内由主管审批，3天以上由总监审批"),  # two ranges: it speaks for every amount
        ("12年", "满1年不满10年的，年休假5天；满10年不满20年的，年休假10天"),
        ("5天", "婚假10天"),
        ("5天", "5000元以上的"),
    ],
)
def test_no_range_or_several_leave_it_open(asked: str, rule: str) -> None:
    assert held(asked, rule) is None


@pytest.mark.parametrize(
    ("amount", "who"), [("3000", "部门经理"), ("8000", "部门总监"), ("２０万", "总经理")]
)
def test_the_rule_for_the_amount_is_quoted_and_no_other(amount: str, who: str) -> None:
    quoted = "".join(quote.text for quote in choose_quotes(f"采购{amount}元谁审批？", [passage(RULES)], "zh"))
    others: Mapping[str, bool] = {one: one in quoted for one in ("部门经理", "部门总监", "总经理")}
    assert others == {one: one == who for one in others}


def test_where_no_rule_is_for_the_amount_the_limit_is_quoted() -> None:
    text = "# 创业贷款办法\n\n个人创业贷款的额度最高不超过30万元。\n贷款期限为3年。\n"
    quoted = choose_quotes("创业贷款的额度可以到50万元吗？", [passage(text)], "zh")
    assert [quote.text for quote in quoted] == ["个人创业贷款的额度最高不超过30万元。"]


def passage(text: str) -> Passage:
    return Passage(
        document_id="rules",
        version="1",
        title=text.splitlines()[0].removeprefix("# "),
        source="rules.md",
        text=text,
        start=0,
        end=len(text),
        passage_hash="0" * 64,
        score=1.0,
        valid_from=None,
        valid_until=None,
    )
