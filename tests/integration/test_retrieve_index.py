"""The embedded search over a real knowledge file: what is found, what is not, and in which order."""

import threading
from pathlib import Path
from typing import Any

import pytest

from nodes.contracts import Caller
from nodes.retrieve.access import DocumentAccess
from nodes.retrieve.documents import Document, KnowledgeStore, Record, SourceSet
from nodes.retrieve.exits import open_retriever
from nodes.retrieve.index import Coverage, LexicalRetriever

DAY = "2026-06-01"
TEXTS = {
    "leave": "年假规定\n\n职工工作满一年的，每年享受年假五天；满十年的，每年十天。年假可以分两次使用。",
    "travel": "差旅费报销标准\n\n出差人员住宿费在中心城区每晚不超过600元，其他地区450元。发票在30日内提交。",
    "upload": "附件上传规范\n\n单个附件不超过20MB。超过时返回错误码 ERR_FILE_TOO_LARGE，草稿保留30天。",
    "parking": "停车管理\n\n车位先到先得，访客车辆需要提前一天登记车牌。",
    "loan": "创业担保贷款\n\n个人贷款额度最高30万元，小微企业最高400万元。贴息比例为百分之六十。",
    "permit": "Work permits\n\nThe employer uploads the labour contract. Processing takes ten days.",
    "security": "机房门禁\n\n进入机房需要双人授权，记录保存三年。",
}


def stored(document_id: str, text: str, version: str = "1", title: str = "", **fields: Any) -> Document:
    return Document(Record(document_id, version, title or text.partition("\n")[0], "source", **fields), text)


@pytest.fixture
def store(tmp_path: Path) -> KnowledgeStore:
    store = KnowledgeStore(tmp_path / "knowledge.db")
    store.replace(SourceSet("set", "", [stored(name, text) for name, text in TEXTS.items()]))
    return store


def found(store: KnowledgeStore, question: str, caller: Caller | None = None, day: str = DAY) -> list[str]:
    evidence = open_retriever(store).retrieve(question, caller=caller or Caller(), on_date=day)
    return [passage["document_id"] for passage in evidence["passages"]]


@pytest.mark.parametrize(
    ("question", "document_id"),
    [
        ("年假有几天？", "leave"),
        ("一年能休多少天年假", "leave"),
        ("年假幾天", "leave"),
        ("出差住宿费标准是多少", "travel"),
        ("附件最大多大", "upload"),
        ("ＥＲＲ＿ＦＩＬＥ＿ＴＯＯ＿ＬＡＲＧＥ 是什么错误", "upload"),
        ("文件上限", "upload"),
        ("个人贷款的上限是多少", "loan"),
        ("访客停车要登记什么", "parking"),
        ("Which documents does the employer upload for a work permit?", "permit"),
        (
            "你好，我下周要去外地开会三天，公司说可以报销，想问一下中心城区的住宿费每晚标准是多少，发票什么时候交",
            "travel",
        ),
    ],
)
def test_the_right_document_comes_first(store: KnowledgeStore, question: str, document_id: str) -> None:
    assert found(store, question)[:1] == [document_id]


@pytest.mark.parametrize(
    "question",
    [
        "食堂周五供应什么菜？",
        "结婚登记需要带什么",
        "世界杯冠军是谁",
        "How do I renew my driving licence?",
        "Who won the match last night?",
        "请问这个是什么？",
        "？？",
        "\u200b",
        "x" * 4000,
        "我妈妈今年六十二岁了，之前在老家交过保险，现在想办理退休，不知道需要去哪个窗口排队取号",
    ],
)
def test_an_unrelated_question_finds_nothing(store: KnowledgeStore, question: str) -> None:
    assert found(store, question) == []


def test_an_empty_store_finds_nothing(tmp_path: Path) -> None:
    assert found(KnowledgeStore(tmp_path / "empty.db"), "年假有几天？") == []


def test_a_store_of_one_document_finds_it(tmp_path: Path) -> None:
    store = KnowledgeStore(tmp_path / "one.db")
    store.replace(SourceSet("set", "", [stored("leave", TEXTS["leave"])]))
    assert found(store, "年假有几天？") == ["leave"]
    assert found(store, "世界杯冠军是谁") == []


@pytest.mark.parametrize(
    ("day", "version"),
    [
        ("2024-05-31", None),
        ("2024-06-01", "1"),
        ("2025-12-31", "1"),
        ("2026-01-01", "2"),
        ("2030-01-01", None),
    ],
)
def test_only_the_version_that_holds_on_the_day_is_found(
    tmp_path: Path, day: str, version: str | None
) -> None:
    store = KnowledgeStore(tmp_path / "versions.db")
    versions = [
        stored(
            "wage", "最低工资标准\n\n每月2100元。", "1", valid_from="2024-06-01", valid_until="2025-12-31"
        ),
        stored(
            "wage", "最低工资标准\n\n每月2300元。", "2", valid_from="2026-01-01", valid_until="2029-12-31"
        ),
    ]
    store.replace(SourceSet("set", "", versions))
    evidence = open_retriever(store).retrieve("最低工资是多少", caller=Caller(), on_date=day)
    assert [passage["version"] for passage in evidence["passages"]] == ([version] if version else [])


def test_of_two_valid_versions_the_newer_one_counts(tmp_path: Path) -> None:
    store = KnowledgeStore(tmp_path / "overlap.db")
    versions = [
        stored("wage", "最低工资标准\n\n每月2100元。", "v9"),
        stored("wage", "最低工资标准\n\n每月2300元。", "v10"),
    ]
    store.replace(SourceSet("set", "", versions))
    evidence = open_retriever(store).retrieve("最低工资是多少", caller=Caller(), on_date=DAY)
    assert [passage["version"] for passage in evidence["passages"]] == ["v10"]


def test_hidden_documents_take_no_places(tmp_path: Path) -> None:
    store = KnowledgeStore(tmp_path / "crowd.db")
    hr = DocumentAccess("RESTRICTED", frozenset({"hr"}))
    crowd = [stored(f"hidden-{number:03}", "薪酬调整方案", access=hr) for number in range(80)]
    store.replace(
        SourceSet("set", "", [*crowd, stored("open", "薪酬调整方案的公开说明，篇幅比较长，写给所有人看")])
    )
    assert found(store, "薪酬调整方案") == ["open"]
    assert found(store, "薪酬调整方案", Caller(groups=frozenset({"hr"})))[0] == "hidden-000"


def test_knowledge_bases_are_apart(tmp_path: Path) -> None:
    store = KnowledgeStore(tmp_path / "bases.db")
    bases = [stored(base, TEXTS["leave"], access=DocumentAccess(knowledge_base=base)) for base in ("a", "b")]
    store.replace(SourceSet("set", "", bases))
    assert found(store, "年假有几天？", Caller(knowledge_base="b")) == ["b"]
    assert found(store, "年假有几天？", Caller(knowledge_base="c")) == []


def test_equal_scores_come_in_order_of_document_id(tmp_path: Path) -> None:
    store = KnowledgeStore(tmp_path / "ties.db")
    store.replace(
        SourceSet("set", "", [stored(name, TEXTS["leave"], title="同题") for name in ("c", "a", "d", "b")])
    )
    assert found(store, "年假有几天？") == ["a", "b", "c", "d"]


def test_an_index_follows_every_change_of_the_store(store: KnowledgeStore) -> None:
    retriever = LexicalRetriever(store)
    first = retriever.current_index()
    assert retriever.current_index() is first
    store.replace(SourceSet("more", "", [stored("canteen", "食堂菜单\n\n食堂周五供应饺子。")]))
    assert retriever.current_index() is not first
    answers = retriever.invoke("食堂周五供应什么菜？", caller=Caller(), on_date=DAY)
    assert [answer.metadata["document_id"] for answer in answers] == ["canteen"]
    store.remove("more")
    assert retriever.invoke("食堂周五供应什么菜？", caller=Caller(), on_date=DAY) == []


def test_threads_that_need_a_new_index_wait_for_one(store: KnowledgeStore) -> None:
    retriever = LexicalRetriever(store)
    ready, got = threading.Barrier(8), []

    def ask() -> None:
        ready.wait()
        got.append(retriever.current_index())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(index) for index in got}) == 1


def test_invoked_plainly_it_proposes_public_documents_only(tmp_path: Path) -> None:
    store = KnowledgeStore(tmp_path / "plain.db")
    levels = [
        DocumentAccess("PUBLIC"),
        DocumentAccess("INTERNAL"),
        DocumentAccess("RESTRICTED", frozenset({"hr"})),
    ]
    store.replace(SourceSet("set", "", [stored(one.access, TEXTS["leave"], access=one) for one in levels]))
    assert [one.metadata["document_id"] for one in LexicalRetriever(store).invoke("年假有几天？")] == [
        "PUBLIC"
    ]


@pytest.mark.parametrize(
    ("held", "asked", "enough"),
    [
        (2.0, 3.0, True),
        (1.5, 3.0, False),
        (0.0, 3.0, False),
        (9.9, 30.0, False),
        (10.0, 30.0, True),
        (10.0, 41.0, False),
    ],
)
def test_what_counts_as_found(held: float, asked: float, enough: bool) -> None:
    assert Coverage(held, asked, rarest=4.0).is_enough is enough


# Across languages


@pytest.mark.parametrize(
    ("question", "document_id"),
    [
        ("How much may an individual borrow in a startup loan?", "loan"),
        ("What is the interest subsidy for a loan?", "loan"),
        ("What is the size limit of an attachment?", "upload"),
        ("工作许可要多久？", "permit"),
    ],
)
def test_a_question_finds_what_is_written_in_the_other_language(
    store: KnowledgeStore, question: str, document_id: str
) -> None:
    assert found(store, question)[:1] == [document_id]


def test_what_is_asked_in_its_own_language_comes_first_where_both_say_it(store: KnowledgeStore) -> None:
    texts = {"en": "Startup loans\n\nA startup loan is up to 300,000 yuan.", **TEXTS}
    store.replace(SourceSet("set", "", [stored(name, text) for name, text in texts.items()]))
    assert found(store, "What is the limit of a startup loan?")[:1] == ["en"]
    assert found(store, "创业贷款最高多少？")[:1] == ["loan"]


def test_a_document_about_it_goes_before_one_of_the_own_language_that_mentions_it(
    store: KnowledgeStore,
) -> None:
    texts = {
        "fair": "Trade fairs\n\nA company files its claim when the fair closes.",
        "closing": "企业注销登记指南\n\n企业应当提交注销登记申请书。",
    }
    store.replace(SourceSet("set", "", [stored(name, text) for name, text in texts.items()]))
    assert found(store, "How do I close my company?") == ["closing"]


def test_what_the_caller_may_not_see_is_not_found_in_the_other_language_either(store: KnowledgeStore) -> None:
    access = DocumentAccess("RESTRICTED", frozenset({"board"}), "acme")
    secret = stored("secret", "最低工资计划\n\n最低工资调整为9999元。", access=access)
    store.replace(SourceSet("set", "", [secret, stored("leave", TEXTS["leave"])]))
    member = Caller(tenant="acme", user="a", groups=frozenset({"board"}))
    assert found(store, "What is the minimum wage?", member) == ["secret"]
    assert found(store, "What is the minimum wage?", Caller(tenant="acme", user="b")) == []


@pytest.mark.parametrize(
    "question", ["How do I get a driving licence?", "退休年龄是多少", "What is the bus fare?"]
)
def test_what_no_document_tells_is_not_found_by_other_words(store: KnowledgeStore, question: str) -> None:
    assert found(store, question) == []


def test_a_word_of_all_documents_is_not_looked_for_by_its_other_name(store: KnowledgeStore) -> None:
    texts = {f"d{number}": f"办法{number}\n\n住房按第{number}号表登记。" for number in range(8)}
    store.replace(SourceSet("set", "", [stored(name, text) for name, text in texts.items()]))
    assert found(store, "What about housing?") == []


def test_a_word_that_nobody_knows_counts_more_against_a_document_of_the_other_language(
    store: KnowledgeStore,
) -> None:
    texts = {f"d{number}": f"第{number}号补贴办法\n\n给予补贴{number}元。" for number in range(5)}
    texts["move"] = "搬迁补贴办法\n\n企业搬迁的，给予补贴。"
    store.replace(SourceSet("set", "", [stored(name, text) for name, text in texts.items()]))
    assert found(store, "What is the subsidy for moving?")[:1] == ["move"]
    assert found(store, "What is the subsidy for moving to Mars?") == []
