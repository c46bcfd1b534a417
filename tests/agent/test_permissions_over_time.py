"""Permissions are those of this request: nothing that was once allowed is shown because it once was."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis
from promise import (
    AUDITOR,
    NOW,
    PLAIN,
    RESTRICTED_QUESTIONS,
    SECRETS,
    Parrot,
    Reciting,
    Talk,
    World,
    check_grant_is_read_anew,
    check_restricted,
    check_revoked,
    everything_of,
    history_of,
    require_no_secret,
    restricted_documents,
    secrets_in,
    write_portal,
)

from checkpoint import RedisContextSaver
from nodes.contracts import Caller, Provider
from nodes.retrieve.documents import KnowledgeStore
from nodes.retrieve.loading import load_folder

MINIMUM_WAGE = "云湖市中心城区月最低工资标准是多少？"


@pytest.fixture(scope="module")
def store(sample_home: Path) -> Iterator[KnowledgeStore]:
    with KnowledgeStore(sample_home / "knowledge.db") as opened:
        yield opened


@pytest.fixture
def world(store: KnowledgeStore) -> World:
    return World(store)


def test_the_secrets_are_secrets() -> None:
    """Every RESTRICTED document has a canary and sentences of its own, and the checks look for them."""
    canaries = {secret for secret in SECRETS if "CANARY-" in secret}
    assert len(canaries) == len(restricted_documents()) == 8
    assert len(SECRETS) > 60
    for text in restricted_documents().values():
        assert len(secrets_in(text)) >= 5


def test_nothing_restricted_is_in_any_byte(
    world: World, saver: RedisContextSaver, redis_client: redis.Redis
) -> None:
    check_restricted(world, saver=saver)
    kept = b"".join(
        field + value for key in redis_client.keys("*") for field, value in redis_client.hgetall(key).items()
    )
    assert kept
    assert b"CANARY" not in kept
    assert [secret for secret in SECRETS if secret.encode() in kept] == []


def test_nothing_restricted_is_in_any_byte_of_a_parrot(world: World, saver: RedisContextSaver) -> None:
    talk = world.talk(Parrot(), saver=saver)
    results = [talk.say(text) for text in RESTRICTED_QUESTIONS[:4]]
    require_no_secret(everything_of(talk, results, PLAIN), "RESTRICTED stays with the granted")


def test_a_granted_caller_leaves_nothing_to_the_next(world: World, saver: RedisContextSaver) -> None:
    check_grant_is_read_anew(world, saver=saver)


def test_what_is_left_out_is_marked(world: World) -> None:
    talk = world.talk(Reciting())
    talk.say(RESTRICTED_QUESTIONS[0], caller=AUDITOR)
    talk.watch.clear()
    talk.say("租房补贴有多少？")
    (shown,) = history_of(talk.watch.prompts[0])
    assert shown.content == "⟦更早的 1 轮已省略⟧\n⟦其中 1 轮的来源现已不可查看⟧"
    assert talk.state()["answer"]["window"]["reasons"] == ["source_not_visible"]


def test_a_grant_that_comes_back_shows_the_turn_again(world: World) -> None:
    """What is hidden from one request is not lost to a later one that may see it."""
    talk = world.talk(Reciting())
    talk.say(RESTRICTED_QUESTIONS[0], caller=AUDITOR)
    talk.say("租房补贴有多少？")
    assert not secrets_in(repr(talk.window(PLAIN)))
    assert secrets_in(repr(talk.window(AUDITOR)))


def test_a_revoked_document_is_not_restated(world: World, tmp_path: Path) -> None:
    check_revoked(world, tmp_path)


CHANGES = {
    "other access": "access: RESTRICTED\ngroups: [audit]\n",
    "internal, and nobody signed in": "access: INTERNAL\n",
    "another tenant": "access: RESTRICTED\ngroups: [staff]\ntenant: other\n",
    "another knowledge base": "knowledge_base: other\n",
    "taken away": None,
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_way_of_losing_a_source(change: str, world: World, tmp_path: Path) -> None:
    caller = Caller("", "", frozenset()) if "nobody" in change else Caller("t", "u", frozenset({"staff"}))
    with KnowledgeStore(tmp_path / "knowledge.db") as store:
        write_portal(tmp_path / "docs")
        load_folder(tmp_path / "docs", store)
        talk = world.over(store).talk(Reciting())
        talk.say("上传附件的大小上限是多少？", caller=caller)
        assert "20MB" in repr(talk.window(caller))
        write_portal(tmp_path / "docs", CHANGES[change])
        load_folder(tmp_path / "docs", store)
        talk.watch.clear()
        asked = talk.say("那超过以后返回什么错误码？", caller=caller)
        suggested = talk.state()["suggestions"]
        talk.close()
        told = talk.say("数据库索引由谁维护？", caller=caller)
        seen = repr([asked.to_json(), suggested, told.to_json(), talk.watch.prompts, talk.window(caller)])
    assert talk.watch.prompts
    assert "20MB" not in seen
    assert "松鼠" not in seen
    assert "上传附件" not in seen
    assert told.window["reasons"] == ["source_not_visible"]


def test_a_fact_is_lost_with_its_document(tmp_path: Path, world: World) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "companies.csv").write_text("company_id,name,aliases,english_names\nx,云上茶业,,\n")
    (folder / "metrics.csv").write_text(
        "metric_id,name,english_name,synonyms\nrevenue,营业收入,revenue,营收\n"
    )
    (folder / "facts.csv").write_text(
        "company,period,metric,value,unit,document\nx,2023,revenue,4711.5,万元,report\n"
    )
    head = "---\nid: report\nversion: '1'\ntitle: 年报\n{}---\n年度报告全文另行公布。\n"
    (folder / "report.md").write_text(head.format(""))
    with KnowledgeStore(tmp_path / "knowledge.db") as store:
        load_folder(folder, store)
        talk = world.over(store).talk(Reciting())
        assert "4,711.5" in talk.say("云上茶业2023年营收是多少？").text
        (folder / "report.md").write_text(head.format("access: RESTRICTED\ngroups: [audit]\n"))
        load_folder(folder, store)
        again = talk.say("云上茶业2023年营收是多少？")
        seen = repr([again, talk.say("那2022年呢？"), talk.state()["suggestions"], talk.window()])
    assert again.answer is not None
    assert again.answer["kind"] == "not_found"
    assert "4,711" not in seen


@pytest.mark.parametrize("provider", [Reciting(), Parrot()], ids=["reciting", "parrot"])
def test_a_superseded_policy_is_not_quoted_as_current(provider: Provider, world: World) -> None:
    """One thread, asked again after the standard changed: the old answer is no evidence for the new one."""
    talk = world.talk(provider)
    talk.plant([[MINIMUM_WAGE, "中心城区月最低工资标准为2080元[C1]。"]])
    talk.say(MINIMUM_WAGE, at="2024-06-01T09:00:00.000+08:00")
    assert ("yunhu-minimum-wage", "2023") in found_in(talk)
    now = talk.say(MINIMUM_WAGE, at=NOW)
    assert ("yunhu-minimum-wage", "2025") in found_in(talk)
    assert ("yunhu-minimum-wage", "2023") not in found_in(talk)
    assert "2080元" in repr([history_of(prompt) for prompt in talk.watch.prompts])
    assert now.answer
    assert "2080元" not in now.text
    assert ("yunhu-minimum-wage", "2023") not in {
        (citation["document_id"], citation["version"]) for citation in now.answer["citations"]
    }


def found_in(talk: Talk) -> set[tuple[str, str]]:
    passages = talk.state()["evidence"]["passages"]
    return {(passage["document_id"], passage["version"]) for passage in passages}


def test_an_expired_policy_is_not_found_however_often_it_was_told(world: World) -> None:
    text = "屋顶光伏补贴有多少？"
    talk = world.talk(Reciting())
    talk.say(text, at="2024-06-01T09:00:00.000+08:00")
    told = "yunhu-rooftop-solar" in repr(talk.state()["evidence"])
    talk.say(text, at=NOW)
    assert told
    assert "yunhu-rooftop-solar" not in repr(talk.state()["evidence"])
    assert "yunhu-rooftop-solar" not in repr(talk.state()["answer"]["citations"])


def test_the_group_decides_and_not_the_name(world: World) -> None:
    for caller in (
        Caller(user="auditor"),
        Caller(groups=frozenset({"AUDIT", "audit "})),
        replace(AUDITOR, groups=frozenset()),
    ):
        talk = world.talk(Reciting())
        results = [talk.say(text, caller=caller) for text in RESTRICTED_QUESTIONS[4:6]]
        require_no_secret(everything_of(talk, results, caller), "RESTRICTED stays with the granted")
