"""How facts and comparisons read, in both languages; exact to the last digit."""

import hashlib
import re

import pytest

from nodes.answer.grounding import check_sentence
from nodes.answer.rendering import (
    TEXTS,
    Names,
    cited,
    fixed_text,
    join_parts,
    names_for,
    not_found,
    period_label,
    render_everyone,
    render_facts,
    render_growth,
    small_talk,
    unknown_companies,
)
from nodes.contracts import Company, FactLookup, Language, Metric, Passage

COMPANIES = [
    Company("yt", "云湖科技有限公司", (), ("Yunhu Tech",)),
    Company("np", "南屏实业"),
    Company("qh", "青禾食品"),
]
METRICS = [
    Metric("revenue", "营业收入", "revenue"),
    Metric("margin", "毛利率", "gross margin"),
    Metric("staff", "员工人数", ""),
]


def look(
    company: str,
    period: str,
    metric: str,
    value: str | None = None,
    unit: str = "万元",
    *,
    document: str = "report",
) -> FactLookup:
    if value is None:
        return {"company": company, "period": period, "metric": metric, "hit": None}
    hit = {
        "company": company, "period": period, "metric": metric, "value": value, "unit": unit,
        "document_id": document, "version": "1", "title": f"年报{document}", "source": "s",
    }  # fmt: skip
    return {"company": company, "period": period, "metric": metric, "hit": hit}  # type: ignore[typeddict-item]


def names(language: Language) -> Names:
    return names_for(language, COMPANIES, METRICS)


def fact(*lookups: FactLookup, language: Language = "zh") -> str:
    return render_facts(lookups, kind="fact", names=names(language)).text


def comparison(*lookups: FactLookup, language: Language = "zh") -> str:
    return render_facts(lookups, kind="comparison", names=names(language)).text


def test_a_fact_is_one_sentence_with_value_unit_and_citation() -> None:
    hit = look("yt", "2023", "revenue", "1320")
    assert fact(hit) == "云湖科技有限公司2023年营业收入为1,320万元[C1]。"
    assert fact(hit, language="en") == "Yunhu Tech's revenue in 2023 was 13.2 million yuan [C1]."


def test_a_fact_without_a_document_has_no_citation() -> None:
    made = render_facts([look("yt", "2023", "revenue", "1320", document="")], kind="fact", names=names("zh"))
    assert made.text == "云湖科技有限公司2023年营业收入为1,320万元。"
    assert made.citations == []


@pytest.mark.parametrize(
    ("value", "unit", "zh", "en"),
    [
        ("1320.50", "万元", "1,320.50万元", "13.205 million yuan"),
        ("0.3", "万元", "0.3万元", "3,000.0 yuan"),
        ("12345678901234567890123456789.67", "元", "12,345,678,901,234,567,890,123,456,789.67元",
         "12,345,678,901,234,567,890,123,456,789.67 yuan"),
        ("3.2", "亿元", "3.2亿元", "320 million yuan"),
        ("12", "亿元", "12亿元", "1.2 billion yuan"),
        ("-52.1", "万元", "-52.1万元", "-521,000.0 yuan"),
        ("31.50", "%", "31.50%", "31.50%"),
        ("436", "人", "436人", "436 people"),
        ("1E+3", "元", "1,000元", "1,000 yuan"),
        ("7", "MW", "7 MW", "7 MW"),
        ("7", "", "7", "7"),
        ("8", "艘", "8艘", "8 艘"),
    ],
)  # fmt: skip
def test_values_are_exact(value: str, unit: str, zh: str, en: str) -> None:
    hit = look("yt", "2023", "revenue", value, unit, document="")
    assert fact(hit) == f"云湖科技有限公司2023年营业收入为{zh}。"
    assert fact(hit, language="en") == f"Yunhu Tech's revenue in 2023 was {en}."


@pytest.mark.parametrize(
    ("period", "zh", "en"),
    [
        ("2023", "2023年", "2023"),
        ("2023H1", "2023年上半年", "the first half of 2023"),
        ("2023H2", "2023年下半年", "the second half of 2023"),
        ("2023Q3", "2023年第三季度", "Q3 2023"),
        ("lately", "lately", "lately"),
    ],
)
def test_periods_have_labels(period: str, zh: str, en: str) -> None:
    assert (period_label(period, "zh"), period_label(period, "en")) == (zh, en)


def test_a_miss_says_what_was_looked_for_and_cites_nothing() -> None:
    made = render_facts([look("np", "2023H1", "revenue")], kind="fact", names=names("zh"))
    assert (made.kind, made.text, made.citations) == (
        "not_found",
        "没有找到南屏实业2023年上半年的营业收入。",
        [],
    )
    english = fact(look("np", "2023Q2", "revenue"), language="en")
    assert english == "No figure was found for 南屏实业's revenue in Q2 2023."
    missed = {**look("np", "2025", "revenue"), "others": ["2023", "2022"]}
    assert fact(missed, language="zh") == "没有找到南屏实业2025年的营业收入。可以查询的期间：2023年、2022年。"
    assert fact(missed, language="en") == (
        "No figure was found for 南屏实业's revenue in 2025. There are figures for 2023, 2022."
    )


def test_several_facts_keep_their_order_and_misses_are_said() -> None:
    made = render_facts(
        [
            look("yt", "2023", "revenue", "1320"),
            look("np", "2023", "revenue"),
            look("yt", "2023", "margin", "31", "%"),
        ],
        kind="fact",
        names=names("zh"),
    )
    assert made.kind == "fact"
    assert made.text.splitlines() == [
        "云湖科技有限公司2023年营业收入为1,320万元[C1]。",
        "云湖科技有限公司2023年毛利率为31%[C1]。",
        "没有找到南屏实业2023年的营业收入。",
    ]


def test_no_lookup_is_not_found() -> None:
    assert render_facts([], kind="fact", names=names("zh")).kind == "not_found"


def test_facts_of_one_document_share_a_citation_bound_to_their_text() -> None:
    lookups = [
        look("yt", "2022", "revenue", "1100"),
        look("yt", "2023", "revenue", "1320"),
        look("np", "2023", "revenue", "9", document="other"),
    ]
    made = render_facts(lookups, kind="fact", names=names("zh"))
    assert re.findall(r"\[C\d\]", made.text) == ["[C1]", "[C1]", "[C2]"]
    first = made.citations[0]
    assert (
        first["passage"]
        == "云湖科技有限公司 2022 营业收入 1100 万元\n云湖科技有限公司 2023 营业收入 1320 万元"
    )
    assert first["passage_hash"] == hashlib.sha256(first["passage"].encode()).hexdigest()
    assert [citation["document_id"] for citation in made.citations] == ["report", "other"]
    english = render_facts(lookups, kind="fact", names=names("en"))
    assert english.citations == made.citations


def test_two_companies_are_compared_by_line_and_difference() -> None:
    lookups = [look("yt", "2023", "revenue", "1320"), look("np", "2023", "revenue", "980.5")]
    assert comparison(*lookups).splitlines() == [
        "营业收入：",
        "- 云湖科技有限公司 2023年：1,320万元[C1]",
        "- 南屏实业 2023年：980.5万元[C1]",
        "2023年云湖科技有限公司高于南屏实业，相差339.5万元。",
    ]
    assert comparison(*lookups, language="en").splitlines() == [
        "Revenue:",
        "- Yunhu Tech, 2023: 13.2 million yuan [C1]",
        "- 南屏实业, 2023: 9.805 million yuan [C1]",
        "In 2023, Yunhu Tech was higher than 南屏实业, by 3.395 million yuan.",
    ]


def test_growth_is_rounded_half_up_and_says_so() -> None:
    lookups = [look("yt", "2023", "revenue", "1320.5"), look("yt", "2022", "revenue", "1000")]
    assert comparison(*lookups).endswith(
        "云湖科技有限公司2023年比2022年增加320.5万元，增长32.1%（保留一位小数）。"
    )
    english = comparison(*lookups, language="en")
    assert english.endswith(
        "Yunhu Tech: 2023 was higher than 2022 by 3.205 million yuan, "
        "a growth of 32.1% (rounded to one decimal)."
    )
    falling = comparison(look("yt", "2022", "revenue", "1000"), look("yt", "2023", "revenue", "900"))
    assert falling.endswith("2023年比2022年减少100万元，下降10.0%（保留一位小数）。")
    assert comparison(look("yt", "2022", "revenue", "5"), look("yt", "2023", "revenue", "5.0")).endswith(
        "持平。"
    )


@pytest.mark.parametrize("old", ["0", "-5"])
def test_no_growth_rate_from_a_base_that_is_not_positive(old: str) -> None:
    text = comparison(look("yt", "2022", "revenue", old), look("yt", "2023", "revenue", "10"))
    assert "增加" in text
    assert "增长" not in text


def test_shares_differ_in_points() -> None:
    text = comparison(look("yt", "2022", "margin", "30.5", "%"), look("yt", "2023", "margin", "31", "%"))
    assert text.endswith("2023年比2022年增加0.5个百分点。")
    assert "增长" not in text


def test_units_that_differ_are_not_compared() -> None:
    text = comparison(look("yt", "2023", "revenue", "1320"), look("np", "2023", "revenue", "1.2", "亿元"))
    assert text.endswith("各项单位不同，不作比较。")
    assert "相差" not in text


def test_three_companies_name_the_highest_and_the_lowest() -> None:
    lookups = [
        look(company, "2023", "revenue", value) for company, value in (("yt", "5"), ("np", "9"), ("qh", "7"))
    ]
    assert comparison(*lookups).endswith("2023年最高的是南屏实业，最低的是云湖科技有限公司，相差4万元。")
    equal = [look(company, "2023", "revenue", "5") for company in ("yt", "np", "qh")]
    assert comparison(*equal).endswith("2023年各项数值相同。")


def test_companies_over_periods_are_compared_both_ways() -> None:
    lookups = [
        look(company, period, "revenue", value)
        for company, period, value in (
            ("yt", "2022", "1"),
            ("yt", "2023", "2"),
            ("np", "2022", "3"),
            ("np", "2023", "3"),
        )
    ]
    assert comparison(*lookups).splitlines()[5:] == [
        "云湖科技有限公司2023年比2022年增加1万元，增长100.0%（保留一位小数）。",
        "南屏实业2023年与2022年持平。",
        "2022年南屏实业高于云湖科技有限公司，相差2万元。",
        "2023年南屏实业高于云湖科技有限公司，相差1万元。",
    ]


def test_a_comparison_with_one_value_left_is_a_sentence_and_a_miss() -> None:
    text = comparison(look("yt", "2023", "revenue", "1320"), look("np", "2023", "revenue"))
    assert text.splitlines() == [
        "云湖科技有限公司2023年营业收入为1,320万元[C1]。",
        "没有找到南屏实业2023年的营业收入。",
    ]


def test_a_difference_of_huge_values_is_exact() -> None:
    text = comparison(
        look("yt", "2023", "revenue", "10000000000000000000000000000000000000.01", "元"),
        look("np", "2023", "revenue", "0.01", "元"),
    )
    assert "相差10,000,000,000,000,000,000,000,000,000,000,000,000.00元" in text


def test_rendered_facts_pass_the_guard_on_their_own_citations() -> None:
    for language in ("zh", "en"):
        made = render_facts(
            [look("yt", "2023", "revenue", "1320"), look("yt", "2023", "margin", "31.5", "%")],
            kind="fact",
            names=names(language),  # type: ignore[arg-type]
        )
        evidence = [citation["passage"] for citation in made.citations]
        verdict = check_sentence(made.text, evidence_texts=evidence, question="", citations_available=1)
        assert verdict.ok, verdict


def test_unknown_ids_stand_for_themselves() -> None:
    assert fact(look("zz", "2023", "profit", "1", "元", document="")) == "zz 2023年profit为1元。"
    assert fact(look("yt", "2023", "staff", "9", "人", document=""), language="en").startswith(
        "Yunhu Tech's 员工人数"
    )


# Fixed texts


def test_every_fixed_text_exists_in_both_languages() -> None:
    for name, texts in TEXTS.items():
        assert set(texts) == {"zh", "en"}
        assert all(text.strip() for text in texts.values()), name
        assert not re.search(r"[\u4e00-\u9fff]", texts["en"])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("你好", "greeting"),
        ("Hi there", "greeting"),
        ("谢谢你", "thanks"),
        ("Thanks!", "thanks"),
        ("再见", "farewell"),
        ("bye", "farewell"),
        ("你能做什么", "about"),
        ("who are you?", "about"),
    ],
)
def test_small_talk_is_answered_in_kind(text: str, name: str) -> None:
    assert small_talk(text, "zh") == fixed_text(name, "zh")  # type: ignore[arg-type]


def test_not_found_says_what_was_looked_for() -> None:
    assert "“随军家属补贴”" in not_found("随军家属补贴", names_for("zh", [], []))
    long = not_found("问" * 200, names_for("zh", [], []))
    assert "问" * 79 + "…" in long
    assert "问" * 80 not in long
    assert '"a b"' in not_found(" a\n b ", names_for("en", [], []))


def test_not_found_about_a_company_says_which_figures_there_are() -> None:
    told = not_found("云湖科技的股价", names("zh"), ["yt", "gone"])
    assert told.endswith("关于云湖科技有限公司，可以查询的指标：营业收入、毛利率、员工人数。")
    told = not_found("Yunhu Tech share price", names("en"), ["yt", "np"])
    assert told.endswith("Figures kept of Yunhu Tech, 南屏实业: revenue, gross margin, 员工人数.")
    assert "指标" not in not_found("股价", names("zh"))
    assert "指标" not in not_found("股价", names_for("zh", COMPANIES, []), ["yt"])
    many = names_for("zh", COMPANIES, [Metric(f"m{n}", f"指标{n:02}", "") for n in range(30)])
    assert "指标11。" in not_found("股价", many, ["yt"])


def test_parts_stand_under_their_questions() -> None:
    assert join_parts([("问？", "答。")], "zh") == "答。"
    assert (
        join_parts([("问一？", "答一。"), ("问二", "答二。")], "zh")
        == "1. 问一：\n答一。\n\n2. 问二：\n答二。"
    )


def _passage(at: int) -> Passage:
    return {
        "document_id": f"d{at}",
        "version": "2",
        "title": "t",
        "source": "s",
        "text": f"文{at}",
        "start": at,
        "end": at + 2,
        "passage_hash": f"h{at}",
        "score": 1.0,
        "valid_from": None,
        "valid_until": None,
    }


def test_citations_are_bound_to_their_passages() -> None:
    passages = [_passage(at) for at in (1, 2, 3)]
    made = cited([3, 1], passages, first_label=2)
    assert [(item["label"], item["document_id"], item["passage_hash"]) for item in made] == [
        ("C2", "d3", "h3"),
        ("C3", "d1", "h1"),
    ]
    assert cited([], passages) == []


def test_labels_of_facts_count_in_the_order_of_their_use() -> None:
    """A comparison is read metric by metric, whatever was looked up first."""
    lookups = [
        look("yt", "2023", "revenue", "1320", document="a"),
        look("yt", "2023", "profit", "1", document="b"),
        look("np", "2023", "revenue", "980", document="c"),
        look("np", "2023", "profit", "2", document="b"),
    ]
    made = render_facts(lookups, kind="comparison", names=names("zh"))
    assert re.findall(r"\[C\d\]", made.text) == ["[C1]", "[C2]", "[C3]", "[C3]"]
    assert [(one["label"], one["document_id"]) for one in made.citations] == [
        ("C1", "a"),
        ("C2", "c"),
        ("C3", "b"),
    ]


def test_all_companies_stand_from_the_highest_with_those_without_a_figure_counted() -> None:
    lookups = [
        look("np", "2023", "revenue", "980.5", document="b"),
        look("yt", "2023", "revenue", "1320", document="a"),
        look("qh", "2023", "revenue"),
    ]
    made = render_everyone(lookups, names=names("zh"))
    assert made.kind == "comparison"
    assert made.text.splitlines() == [
        "2023年营业收入由高到低（有数据的 2 家公司）：",
        "1. 云湖科技有限公司 2023年：1,320万元[C1]",
        "2. 南屏实业 2023年：980.5万元[C2]",
        "另有 1 家公司没有可以查看的数据。",
    ]
    assert [(one["label"], one["document_id"]) for one in made.citations] == [("C1", "a"), ("C2", "b")]
    english = render_everyone(lookups, names=names("en")).text
    assert "from the highest (2 with a figure)" in english
    assert "Of 1 more companies there is no figure" in english


def test_of_many_companies_the_first_ten_and_the_last_are_listed() -> None:
    lookups = [look(f"c{at}", "2023", "revenue", str(at)) for at in range(30)]
    lines = render_everyone(lookups, names=names("zh")).text.splitlines()
    assert lines[1].startswith("1. c29 ")
    assert lines[10].startswith("10. c20 ")
    assert lines[11] == "（此处略去 19 家）"
    assert lines[12].startswith("30. c0 ")


def test_all_companies_in_different_units_are_listed_and_not_ordered() -> None:
    lookups = [look("np", "2023", "revenue", "1"), look("yt", "2023", "revenue", "2", "亿元")]
    lines = render_everyone(lookups, names=names("zh")).text.splitlines()
    assert lines[0] == "2023年营业收入（有数据的 2 家公司）："
    assert lines[1].startswith("1. 南屏实业")
    assert lines[-1] == "各项单位不同，不作比较。"


def test_all_companies_without_a_figure_are_not_found() -> None:
    made = render_everyone([look("np", "2023", "revenue")], names=names("zh"))
    assert (made.kind, made.text, made.citations) == ("not_found", "没有找到任何公司2023年的营业收入。", [])


def test_a_company_that_nobody_knows_is_said_by_name_and_cut() -> None:
    made = unknown_companies(["华为", "长" * 99], "zh")
    assert made.kind == "not_found"
    assert made.text.splitlines()[0] == "没有找到名为“华为”的公司，因此查不到它的指标。"
    assert made.text.count("长") == 40


# Growth of all companies

GROWN = [
    look("yt", "2022", "revenue", "100", document="a"),
    look("yt", "2023", "revenue", "110", document="a"),
    look("np", "2022", "revenue", "300", document="b"),
    look("np", "2023", "revenue", "285", document="b"),
    look("qh", "2022", "revenue", "8", document="c"),
    look("qh", "2023", "revenue", "10", document="c"),
]


def growth(*lookups: FactLookup, language: Language = "zh") -> str:
    return render_growth(lookups, names=names(language)).text


def test_companies_are_listed_by_how_much_they_grew_not_by_how_large_they_are() -> None:
    assert growth(*GROWN) == (
        "2023年比2022年的营业收入增长由高到低（有两期数据的 3 家公司，增长率保留一位小数）：\n"
        "1. 青禾食品：25.0%（8万元 → 10万元）[C1]\n"
        "2. 云湖科技有限公司：10.0%（100万元 → 110万元）[C2]\n"
        "3. 南屏实业：-5.0%（300万元 → 285万元）[C3]"
    )
    assert "1. 青禾食品: 25.0% (80,000 yuan to 100,000 yuan) [C1]" in growth(*GROWN, language="en")
    assert [each["document_id"] for each in render_growth(GROWN, names=names("zh")).citations] == [
        "c",
        "a",
        "b",
    ]


@pytest.mark.parametrize(
    ("old", "new", "unit"),
    [(None, "9", "万元"), ("9", None, "万元"), ("0", "9", "万元"), ("-1", "9", "万元"), ("9", "9", "亿元")],
)
def test_growth_without_two_comparable_figures_has_no_place(
    old: str | None, new: str | None, unit: str
) -> None:
    told = growth(*GROWN[:4], look("qh", "2022", "revenue", old), look("qh", "2023", "revenue", new, unit))
    assert "青禾" not in told
    assert told.endswith("另有 1 家公司没有两期可以比较的数据。")


def test_shares_grow_in_points() -> None:
    lookups = [look("yt", "2022", "margin", "30.1", "%"), look("yt", "2023", "margin", "28.45", "%")]
    assert "1. 云湖科技有限公司：-1.65个百分点（30.1% → 28.45%）" in growth(*lookups)


def test_growth_of_nobody_is_not_found() -> None:
    made = render_growth(
        [look("yt", "2022", "revenue"), look("yt", "2023", "revenue", "1")], names=names("zh")
    )
    assert (made.kind, made.citations) == ("not_found", [])
    assert made.text == "没有公司同时有2022年和2023年可以比较的营业收入。"


def test_of_many_that_grew_the_first_ten_and_the_last_are_listed() -> None:
    lookups = [
        look(f"c{at:02}", period, "revenue", value, document="d")
        for at in range(14)
        for period, value in (("2022", "100"), ("2023", str(200 - at)))
    ]
    lines = growth(*lookups).splitlines()
    assert (lines[1][:6], lines[10][:6], lines[11], lines[12][:7]) == (
        "1. c00",
        "10. c0",
        "（此处略去 3 家）",
        "14. c13",
    )
    assert len(lines) == 13
