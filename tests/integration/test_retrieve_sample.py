"""The sample that ships: it loads without a problem, once, and short questions about it are found."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nodes.contracts import Caller
from nodes.retrieve.documents import KnowledgeStore
from nodes.retrieve.exits import PermittedRetriever, open_retriever
from nodes.retrieve.facts import Directory, SqliteFactStore
from nodes.retrieve.sample import SAMPLE_SET, ensure_sample, sample_folder

DAY = "2026-12-01"
NOBODY = Caller(tenant="", user="")
EVERY_GROUP = Caller(groups=frozenset({"audit", "finance-bureau", "market-bureau", "science-bureau"}))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeStore]:
    with KnowledgeStore(tmp_path_factory.mktemp("home") / "knowledge.db") as store:
        report = ensure_sample(store)
        assert report is not None
        assert report.problems == ()
        yield store


@pytest.fixture(scope="module")
def retriever(store: KnowledgeStore) -> PermittedRetriever:
    return open_retriever(store)


def test_the_sample_is_as_large_as_promised(store: KnowledgeStore) -> None:
    records, directory = store.records(), Directory(store)
    assert len(records) >= 40
    assert len(directory.companies()) >= 12
    assert len(directory.metrics()) >= 8
    assert any(record.access.access == "RESTRICTED" for record in records)
    aliases = [alias for company in directory.companies() for alias in company.aliases]
    assert len(aliases) > len(set(aliases)), "some companies share a short name"
    facts, caller = SqliteFactStore(store), Caller()
    years = facts.periods(company=directory.companies()[0].company_id, metric="revenue", caller=caller)
    assert {"2022", "2023", "2024"} <= set(years)


def test_it_is_loaded_once_and_again_only_when_it_changed(tmp_path: Path) -> None:
    with KnowledgeStore(tmp_path / "knowledge.db") as store:
        assert ensure_sample(store) is not None
        version = store.knowledge_version()
        assert ensure_sample(store) is None
        store.remove(SAMPLE_SET)
        assert ensure_sample(store) is not None
        assert store.knowledge_version() == version


def test_restricted_documents_reach_only_their_groups(
    store: KnowledgeStore, retriever: PermittedRetriever
) -> None:
    restricted = [record for record in store.records() if record.access.access == "RESTRICTED"]
    for record in restricted:
        allowed = retriever.retrieve(record.title, caller=EVERY_GROUP, on_date=DAY)
        assert record.document_id in [passage["document_id"] for passage in allowed["passages"]]
        for caller in (NOBODY, Caller(), Caller(groups=frozenset({"other"}))):
            seen = retriever.retrieve(record.title, caller=caller, on_date=DAY)
            assert "CANARY" not in str(seen)


@pytest.mark.parametrize(
    ("question", "document_id"),
    [
        ("创业担保贷款最多能贷多少钱？", "yunhu-startup-loan"),
        ("一次性创业补贴发多少钱", "yunhu-startup-subsidy"),
        ("现在最低工資標準是多少？", "yunhu-minimum-wage"),
        ("附件最大多大", "yunhu-portal-upload"),
        ("年轻人租房有什么补助", "yunhu-talent-housing"),
        ("扩岗补助每个岗位多少钱", "yunhu-hiring-expansion-subsidy"),
        ("孵化基地的租金能减免多少？", "yunhu-incubator-rent-reduction"),
        ("电梯多久检验一次", "yunhu-special-equipment"),
        ("高企奖励金额", "yunhu-hightech-award"),
        ("What is the maximum start-up loan for a small company?", "yunhu-en-startup-loan-guide"),
        (
            "我是刚毕业的大学生，去年开了一家小店，听朋友说可以领一次性创业补贴，请问我符合条件吗？",
            "yunhu-startup-subsidy",
        ),
    ],
)
def test_a_question_in_everyday_words_finds_its_document_first(
    retriever: PermittedRetriever, question: str, document_id: str
) -> None:
    evidence = retriever.retrieve(question, caller=NOBODY, on_date=DAY)
    assert evidence["passages"][0]["document_id"] == document_id


@pytest.mark.parametrize(
    "question",
    [
        "公司食堂周五供应什么菜？",
        "怎么申请美国签证",
        "离婚后孩子的抚养权归谁",
        "云湖市有几个地铁站",
        "打印机密码是什么",
        "What is the weather in Yunhu tomorrow?",
        "Who won the football match?",
        "邻居家装修每天晚上十一点还在施工，噪音太大影响休息，应该向哪个部门投诉比较有效？",
    ],
)
def test_a_question_that_nothing_answers_finds_nothing(retriever: PermittedRetriever, question: str) -> None:
    assert retriever.retrieve(question, caller=EVERY_GROUP, on_date=DAY)["passages"] == []


@pytest.mark.parametrize(("day", "version"), [("2022-01-01", "2021"), ("2024-01-01", "2023"), (DAY, "2025")])
def test_the_version_of_the_day_is_found(retriever: PermittedRetriever, day: str, version: str) -> None:
    evidence = retriever.retrieve("云湖市最低工资标准是多少", caller=NOBODY, on_date=day)
    assert evidence["passages"][0]["version"] == version
    assert {one["version"] for one in evidence["passages"] if one["document_id"] == "yunhu-minimum-wage"} == {
        version
    }


def test_facts_of_a_restricted_document_follow_it(store: KnowledgeStore) -> None:
    facts = SqliteFactStore(store)
    key = {"company": "yunfan-energy", "period": "2024", "metric": "tax_paid"}
    assert facts.look_up(**key, caller=Caller()) is None
    granted = Caller(groups=frozenset({"finance-bureau"}))
    assert facts.look_up(**key, caller=granted) is not None
    # What a miss says of other periods follows the document too.
    assert "2024" in facts.periods(company="yunfan-energy", metric="tax_paid", caller=granted)
    assert "2024" not in facts.periods(company="yunfan-energy", metric="tax_paid", caller=Caller())


def test_the_sample_lies_in_the_package() -> None:
    assert (sample_folder() / "companies.csv").is_file()
