"""The designs of multi-turn questions: each under its own name, over the real saver."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import recording_provider
from door import open_door
from promise import Reciting, Talk, World, decisions, history_of, without_history, write_portal

from checkpoint import RedisContextSaver
from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.store import open_store
from graph.compose import open_assistant
from graph.settings import load_settings
from nodes.retrieve.documents import KnowledgeStore
from nodes.retrieve.loading import load_folder

UPLOAD = "门户上传附件最大是多少？"
VAGUE = "那超过以后返回什么错误码？"


@pytest.fixture
def world(home: Path) -> "World":
    return World(KnowledgeStore(home / "knowledge.db"))


@pytest.fixture
def talk(world: World, saver: RedisContextSaver) -> Talk:
    return world.talk(Reciting(), saver=saver)


def test_an_independent_question_stays_equal_byte_for_byte(talk: Talk) -> None:
    talk.say(UPLOAD)
    text = "  云帆科技２０２３年营收是多少？ \n"
    result = talk.say(text)
    turn = talk.state()["turn"]
    assert (result.original_question, result.standalone_question) == (text, text)
    assert (turn["original_question"].encode(), turn["standalone_reason"]) == (text.encode(), "independent")
    talk.say("什么是一次性创业补贴？")
    assert [query for query, _, _ in talk.watch.retrieved][-1] == "什么是一次性创业补贴？"


def test_the_suggestion_for_a_reference_names_the_upload_limit(talk: Talk) -> None:
    talk.say(UPLOAD)
    talk.watch.clear()
    asked = talk.say(VAGUE)
    assert asked.status == "needs_input"
    assert asked.clarification
    first = asked.clarification["options"][0]["label"]
    assert "上传附件最大" in first
    assert "错误码" in first
    assert talk.watch.retrieved == []
    picked = talk.say("1")
    assert "ERR_FILE_TOO_LARGE" in picked.text
    assert (picked.original_question, picked.standalone_question) == (VAGUE, first)
    assert [query for query, _, _ in talk.watch.retrieved] == [first]
    assert talk.state()["turn"]["standalone_reason"] == "confirmed"


def test_a_confirmed_question_is_decided_as_in_a_fresh_thread(talk: Talk, world: World) -> None:
    talk.say(UPLOAD)
    talk.say(VAGUE)
    talk.watch.clear()
    picked = talk.say("1")
    fresh = world.talk(Reciting())
    typed = fresh.say(str(picked.standalone_question))
    assert fresh.watch.retrieved == talk.watch.retrieved
    assert without_history(fresh.watch.prompts[0]) == without_history(talk.watch.prompts[0])
    assert typed.decision_digest == picked.decision_digest


def test_a_topic_switch_is_not_polluted(talk: Talk, world: World) -> None:
    for text in (UPLOAD, VAGUE, "1", "上传附件支持什么格式？"):
        talk.say(text)
    talk.close()
    for text in ("研发费用补助怎么申请？", "云帆科技2023年营收是多少？", "云湖市火星移民补贴是多少？"):
        assert decisions(talk, [text]) == decisions(world.talk(Reciting()), [text])
        assert "portal" not in repr(talk.state()["evidence"])


def test_a_long_history_is_omitted_and_marked_with_question_and_evidence_intact(
    talk: Talk, world: World
) -> None:
    text = "研发费用补助怎么申请？"
    fresh = world.talk(Reciting())
    fresh.say(text)
    for _ in range(12):
        talk.say("创业担保贷款最高多少？")
        assert talk.state()["answer"]["kind"] == "narrative"
    talk.watch.clear()
    result = talk.say(text)
    (prompt,) = talk.watch.prompts
    assert without_history(prompt) == without_history(fresh.watch.prompts[0])
    shown = history_of(prompt)
    assert sum(len(message.content.encode()) for message in shown) <= 6000
    omitted = result.window["omitted_turns"]
    assert omitted == 12 - result.window["turns"] >= 4
    assert shown[0].content.startswith(f"⟦更早的 {omitted} 轮已省略⟧\n")
    assert shown[0].role == "user"


def test_a_revoked_source_is_absent_from_the_prompt(
    world: World, saver: RedisContextSaver, tmp_path: Path
) -> None:
    with KnowledgeStore(tmp_path / "own.db") as store:
        write_portal(tmp_path / "docs")
        load_folder(tmp_path / "docs", store)
        talk = world.over(store).talk(Reciting(), saver=saver)
        assert "20MB" in talk.say("上传附件的大小上限是多少？").text
        assert "20MB" in repr(talk.window())
        write_portal(tmp_path / "docs", "access: RESTRICTED\ngroups: [audit]\n")
        load_folder(tmp_path / "docs", store)
        talk.watch.clear()
        result = talk.say("数据库索引由谁维护？")
        assert len(talk.watch.prompts) == 1
        assert "上传" not in repr(talk.watch.prompts)
        assert "20MB" not in repr([talk.watch.prompts, talk.window(), result])
        assert result.window["reasons"] == ["source_not_visible"]


def test_a_double_submit_generates_once(
    home: Path, redis_url: str, new_database: Callable[..., StoreConfig]
) -> None:
    settings = load_settings(
        {
            "BUSINESS_ASSISTANT_HOME": str(home),
            "REDIS_URL": redis_url,
            "MODEL": "recording_provider:make",
        }
    )
    recording_provider.PROMPTS.clear()
    with (
        open_store(new_database("sqlite")) as store,
        open_assistant(settings) as assistant,
        open_door(assistant, store=store) as door,
        ThreadPoolExecutor(2) as two,
    ):
        place = f"/conversations/{door.http.post('/conversations', json={}).json()['id']}/messages"
        sent = {"clientMessageId": "m", "question": "创业补贴有多少？"}
        told = [answer.json() for answer in two.map(lambda _: door.http.post(place, json=sent), range(2))]
        assert len([prompt for prompt in recording_provider.PROMPTS if prompt.passages]) == 1
        assert told[0]["answer"] == told[1]["answer"] != ""
        assert [row["role"] for row in door.http.get(place).json()["items"]] == ["USER", "ASSISTANT"]
