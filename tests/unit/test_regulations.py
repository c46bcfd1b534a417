"""Which regulations a text names, and which names are the same."""

import pytest

from nodes.answer.regulations import Named, is_named

NUMBER = "云湖规〔2024〕7号"


def is_known(said: str, evidence: str) -> bool:
    """Whether all that `said` names, one thing at least, stands in `evidence`."""
    named = Named(said).all
    assert named
    return all(is_named(one, [Named(evidence)]) for one in named)


@pytest.mark.parametrize(
    "said",
    [
        "云湖规[2024]7号",
        "云湖规［2024］7号",
        "云湖规【2024】7号",
        "云湖规（2024）第7号",
        "云湖规〔2024〕第 7 号",
        "云湖规﹝2024﹞07号",
        "云湖规 〔 2024 〕 7 号",
        "Yunhu (2024) No. 7",
        "Yunhu [2024] No 7",
        "〔2024〕7号",
        "云湖规2024年第7号",
        "2024 年第 7 号",
    ],
)
def test_the_form_of_a_number_does_not_matter(said: str) -> None:
    assert is_known(said, f"《办法》（{NUMBER}）")


@pytest.mark.parametrize(
    "said",
    ["云湖规〔2024〕8号", "云湖规〔2024〕17号", "云湖规〔2023〕7号", "云湖办〔2024〕7号", "湖规〔2024〕7号"],
)
def test_issuer_year_and_number_matter(said: str) -> None:
    assert not is_known(said, NUMBER)


@pytest.mark.parametrize(
    "lead",
    [
        "根据",
        "依据",
        "依照",
        "按照",
        "参照",
        "遵照",
        "执行",
        "印发",
        "发布",
        "文号",
        "文件",
        "详见",
        "参见",
        "规定",
        "通知",
        "号为",
        "以及",
        "即",
        "为",
        "见",
        "由",
        "按",
        "依",
        "及",
        "和",
        "与",
        "或",
        "在",
        "对",
        "的",
        "了",
        "是",
    ],
)
def test_what_stands_before_an_issuer_is_no_part_of_it(lead: str) -> None:
    (said,) = Named(f"{lead}云湖规〔2024〕7号").all
    assert said.issuer == "云湖规"


def test_other_words_may_stand_before_an_issuer_but_not_before_a_single_character() -> None:
    assert is_known("新云湖规〔2024〕7号", NUMBER)
    assert not is_known("云湖规〔2024〕7号", "规〔2024〕7号")
    assert not is_known("云湖规〔2024〕7号", "〔2024〕7号")


@pytest.mark.parametrize(
    "ending",
    [
        "管理办法",
        "实施细则",
        "实施办法",
        "暂行办法",
        "暂行规定",
        "管理规定",
        "管理条例",
        "实施条例",
        "实施方案",
    ],
)
def test_a_title_without_brackets_is_known_by_its_end(ending: str) -> None:
    assert is_known(f"依据补贴{ending}", f"《云湖市补贴{ending}》")
    assert not is_known(f"依据奖励{ending}", f"《云湖市补贴{ending}》")


@pytest.mark.parametrize(
    "title",
    [
        "Foreign Investment Measures",
        "Data Security Law",
        "Labour Contract Act",
        "Tendering Rules",
        "Audit Regulation",
        "Audit Regulations",
        "Safety Provisions",
        "Grant Guidelines",
        "Noise Ordinance",
        "Customs Decree",
        "Measures for Regional Headquarters",
        "Law on the Promotion of Trade",
        "Regulations of the City Council",
        "Protection of Minors and Families Act",
    ],
)
def test_an_english_title_is_looked_for_as_a_whole(title: str) -> None:
    assert is_known(f"See the {title}.", f"This city applies the {title} to all companies.")
    assert not is_known(f"See the {title}.", "This city applies its own requirements to all companies.")


def test_an_english_title_cannot_be_judged_by_a_chinese_text() -> None:
    assert is_known("See the Data Security Law.", "《数据安全法》")
    assert is_known("See the Data Security Law.", "Data 法")
    assert is_known("See the Data Security Law.", "A B C 法")
    assert not is_known("See the Data Security Law.", "Data law 法")


def test_every_character_of_a_title_matters_and_no_quotes_or_spaces() -> None:
    evidence = "《云湖市“专精特新”企业补贴办法》"
    assert is_known("《云湖市专精特新 企业补贴办法》", evidence)
    assert not is_known("《云湖市专精特新企业奖励办法》", evidence)
    assert not is_known("《云湖市专精特新企业补贴办法（试行）》", evidence)


def test_a_title_in_brackets_has_80_characters_at_most() -> None:
    assert [one.kind for one in Named(f"《{'甲' * 80}》").all] == ["title"]
    assert Named(f"《{'甲' * 81}》").all == []


def test_figures_of_a_number_are_no_figures_of_the_text() -> None:
    assert "2024" not in Named(f"依据{NUMBER}，补贴5万元").rest
    assert "5万元" in Named(f"依据{NUMBER}，补贴5万元").rest


@pytest.mark.parametrize(
    ("title", "part"),
    [
        ("Protection of Minors Act", "Minors Act"),
        ("Tax on Vehicles Act", "Vehicles Act"),
        ("Support for Startups Act", "Startups Act"),
        ("Health and Safety Act", "Safety Act"),
        ("Theatre Licensing Act", "Licensing Act"),
        ("City Support for Young Art Students Act", "Support for Young Art Students Act"),
        ("Measures for Prevention of Fraud", "Measures for Prevention"),
        ("Measures on Taxes on Vehicles", "Measures on Taxes"),
        ("Measures of Support for Startups", "Measures of Support"),
        ("Measures for the Health and Safety", "Measures for the Health"),
    ],
)
def test_part_of_an_english_title_is_another(title: str, part: str) -> None:
    assert is_known(f"See the {title}.", f"This city applies the {title} to all companies.")
    assert not is_known(f"See the {title}.", f"This city applies the {part} to all companies.")


def test_a_word_that_begins_like_a_kind_of_rule_names_none() -> None:
    assert Named("Ask Data Lawyers.").all == []


@pytest.mark.parametrize("mark", ["'", '"', "“", "”", "·", " "])
def test_quotes_within_a_title_do_not_matter(mark: str) -> None:
    assert is_known("《专精特新企业办法》", f"《专精{mark}特新企业办法》")


def test_how_long_the_parts_of_a_number_may_be() -> None:
    for text in (
        f"{'甲' * 13}〔2024〕第12345号",
        f"{'甲' * 13}〔2024〕12345号",
        f"{'甲' * 13}2024年第12345号",
    ):
        (said,) = Named(text).all
        assert (said.issuer, said.year, said.number) == ("甲" * 12, "2024", "12345")
    assert [one.number for one in Named("云湖规2024年第7号").all] == ["7"]
    assert [one.text for one in Named("《甲》").all] == ["甲"]
