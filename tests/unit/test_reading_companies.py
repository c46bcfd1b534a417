"""Companies in a text: the longest name wins, a shared name is never guessed."""

import pytest
from reading_sample import INDEX

from nodes.contracts import Company
from nodes.reading.companies import CompanyIndex, find_companies, fold, mask

YUNFAN = ("yf-tech", "yf-energy", "yf-logistics", "yf-pharma", "yf-food", "yf-build", "yf-media")

RESOLVED = [
    ("云帆科技2023年营收是多少", ["yf-tech"]),
    ("云帆科技股份有限公司2023年营收", ["yf-tech"]),
    ("雲帆科技2023年營業收入", ["yf-tech"]),
    ("云 帆 科 技的营收", ["yf-tech"]),
    ("云帆\u200b科技的营收", ["yf-tech"]),
    ("云帆能源和云帆物流的净利润", ["yf-energy", "yf-logistics"]),
    ("云帆物流和云帆能源的净利润", ["yf-logistics", "yf-energy"]),
    ("云帆科技、云帆科技、云帆科技", ["yf-tech"]),
    ("云湖置业的总部", ["yh-property"]),
    ("云湖的总部", ["yh-property"]),
    ("云湖市的创业补贴怎么申请", []),
    ("云湖区政府在哪", []),
    ("云湖市值是多少", ["yh-property"]),
    ("星河食品和星河软件哪个大", ["xh-food", "xh-soft"]),
    ("星河食品集团有限公司", ["xh-food"]),
    ("星河食品集团的营收", ["xh-food"]),
    ("蓝天资产管理有限公司的营收", ["lt-asset"]),
    ("蓝天资产管理的营收", ["lt-asset"]),
    ("ＹＵＮＦＡＮ　ＥＮＥＲＧＹ的营收", ["yf-energy"]),
    ("What is yunfan energy's revenue?", ["yf-energy"]),
    ("YUNFAN ENERGY CO., LTD. revenue", ["yf-energy"]),
    ("Yunfan  Energy\nrevenue", ["yf-energy"]),
    ("Yunhu Properties revenue", ["yh-property"]),
    ("Yunhuang Group revenue", []),
    ("Blue Sky Asset Management revenue", ["lt-asset"]),
    ("blue skies ahead", []),
    ("preyunhu revenue", []),
    ("3Yunhu revenue", []),
    ("腾云科技2023年营收", []),
    ("", []),
    ("云", []),
]


@pytest.mark.parametrize(("text", "ids"), RESOLVED)
def test_names_resolve_in_order_of_mention(text, ids):
    found = INDEX.find(text)
    assert list(found.resolved) == ids
    assert found.ambiguous == ()


AMBIGUOUS = [
    ("云帆2023年营收", "云帆", YUNFAN),
    ("雲帆的营收", "云帆", YUNFAN),
    ("What was Yunfan's revenue?", "yunfan", YUNFAN),
    ("星河的净利润", "星河", ("xh-food", "xh-soft")),
]


@pytest.mark.parametrize(("text", "mention", "ids"), AMBIGUOUS)
def test_a_shared_name_yields_its_candidates_in_directory_order(text, mention, ids):
    found = INDEX.find(text)
    assert found.resolved == ()
    assert found.ambiguous == ((mention, ids),)


def test_a_full_name_is_never_also_its_short_name():
    assert INDEX.find("云帆科技股份有限公司和云帆能源").ambiguous == ()


def test_a_short_name_beside_a_full_one_stays_ambiguous():
    found = INDEX.find("云帆科技和云帆哪个高")
    assert found.resolved == ("yf-tech",)
    assert found.ambiguous == (("云帆", YUNFAN),)


def test_a_shared_name_is_reported_once():
    assert len(INDEX.find("云帆和云帆").ambiguous) == 1


def test_the_longer_of_two_overlapping_names_wins_wherever_it_starts():
    index = CompanyIndex([Company("short", "东湖国际"), Company("long", "湖国际贸易公司")])
    assert index.find("东湖国际贸易公司的营收").resolved == ("long",)


def test_names_of_one_character_are_not_names():
    assert CompanyIndex([Company("x", "云", ("X",))]).find("云 X 云X").resolved == ()


def test_find_companies_takes_a_directory_as_well_as_an_index():
    class Directory:
        def companies(self):
            return [Company("only", "独一公司")]

        def company(self, company_id):
            return None

        def metrics(self):
            return []

    assert find_companies("独一公司的营收", Directory()).resolved == ("only",)
    assert find_companies("云帆科技", INDEX).resolved == ("yf-tech",)


def test_mask_blots_out_names_and_keeps_places():
    found = INDEX.find("第三季度文化传播有限公司的营收")
    hidden = mask("第三季度文化传播有限公司的营收", found.spans)
    assert found.resolved == ("q3",)
    assert len(hidden) == len("第三季度文化传播有限公司的营收")
    assert hidden.endswith("的营收")
    assert "季度" not in hidden


def test_fold_covers_width_case_script_and_invisible_characters():
    assert fold("ＦＹ２０２３　雲帆\u200b科技ＬＴＤ") == "fy2023 云帆科技ltd"


def test_a_directory_of_thousands_is_searched_by_its_names_alone():
    names = [
        Company(f"c{i}", f"测试{i:05d}号实业有限公司", (f"测实{i}",), (f"Test Works {i}",))
        for i in range(5000)
    ]
    index = CompanyIndex(names)
    assert index.find("测试04999号实业和测实17，还有Test Works 3").resolved == ("c4999", "c17", "c3")
