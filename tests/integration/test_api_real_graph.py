"""The whole service: a real server, the real graph, saver and sample knowledge."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from door import Door, endings, open_door, read_rest, read_until, until

from graph.compose import open_assistant, prepare_knowledge
from graph.settings import Settings, load_settings

QUESTION = "创业补贴有多少？"  # answered from passages, so by the model
FACT = "云帆科技2023年营业收入是多少？"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    prepare_knowledge(load_settings({"BUSINESS_ASSISTANT_HOME": str(home)}))
    return home


@contextmanager
def serving(home: Path, redis_url: str, model: str = "") -> Iterator[Door]:
    settings: Settings = load_settings(
        {"BUSINESS_ASSISTANT_HOME": str(home), "REDIS_URL": redis_url, "MODEL": model}
    )
    with open_assistant(settings) as assistant, open_door(assistant) as door:
        yield door
        door.wait_idle()


def scripted(folder: Path, *replies: dict[str, Any]) -> str:
    path = folder / "script.jsonl"
    path.write_text("\n".join(json.dumps(reply) for reply in replies), encoding="utf-8")
    return f"scripted:{path}"


@pytest.fixture
def door(home: Path, redis_url: str) -> Iterator[Door]:
    with serving(home, redis_url) as door:
        yield door


def test_a_fact_with_its_source_and_its_record(door: Door) -> None:
    events = door.ask(FACT)
    names = [name for name, _ in events]
    assert names[0] == "created"
    assert "citations" in names
    assert endings(events) == ["done"]
    done = events[-1][1]
    assert (done["status"], done["answer"]["kind"]) == ("completed", "fact")
    shown = "".join(data["text"] for name, data in events if name == "token")
    assert shown == done["answer"]["text"]
    (record,) = door.records()
    assert (record["input_kind"], record["original_question"]) == ("new_question", FACT)
    assert (record["status"], record["degraded"]) == ("completed", False)


def test_a_clarification_with_pages_and_a_reply_in_records(door: Door) -> None:
    question = "云帆2023年营业收入是多少？"
    asked = door.ask(question)
    assert endings(asked) == ["done"]
    clarification = next(data for name, data in asked if name == "clarification")
    assert (clarification["slot"], clarification["page"], len(clarification["options"])) == ("company", 1, 5)
    assert asked[-1][1]["status"] == "needs_input"
    following = next(data for name, data in door.ask("下一页") if name == "clarification")
    assert (following["page"], following["options"][0]["number"]) == (2, 6)
    assert door.ask("1")[-1][1]["answer"]["kind"] == "fact"
    records = door.records()
    assert [record["question"] for record in records] == [question, "下一页", "1"]
    assert {record["original_question"] for record in records} == {question}
    assert [record["status"] for record in records] == ["needs_input", "needs_input", "completed"]
    assert [record["input_kind"] for record in records] == ["new_question"] + ["clarification_reply"] * 2


def test_a_failed_turn_is_refused_around_and_retried(home: Path, redis_url: str, tmp_path: Path) -> None:
    model = scripted(tmp_path, {"error": "429"}, {"text": "符合条件的给予补贴[C1]。"})
    with serving(home, redis_url, model) as door:
        failed = door.ask(QUESTION)
        assert endings(failed) == ["done"]
        assert (failed[-1][1]["status"], failed[-1][1]["error_code"]) == ("failed", "processing_failed")
        refused = door.ask(FACT)[-1][1]
        assert (refused["status"], refused["error_code"]) == ("failed", "unfinished_turn")
        assert "/retry" in refused["notice"]
        retried = door.ask("/retry")[-1][1]
        assert (retried["status"], retried["input_kind"]) == ("completed", "retry")
        assert retried["original_question"] == QUESTION
        assert door.ask(FACT)[-1][1]["status"] == "completed"
        assert [record["error_code"] for record in door.records()] == [
            "processing_failed",
            "unfinished_turn",
            None,
            None,
        ]


def test_a_stopped_answer_is_closed_marked_and_not_context(
    home: Path, redis_url: str, tmp_path: Path
) -> None:
    slow = {"text": "符合条件的给予补贴[C1]。" * 40, "wait": 0.05, "piece": 4}
    with serving(home, redis_url, scripted(tmp_path, slow)) as door:
        connection = door.send_raw(QUESTION)
        read_until(connection, '"node":"answer"')
        assert door.http.post("/api/chat/stop", json={"thread_id": "t"}).json()["stopping"] is True
        assert '"status":"stopped"' in read_rest(connection)
        (record,) = door.records()
        assert (record["status"], record["original_question"]) == ("stopped", QUESTION)
        assert door.ask(FACT)[-1][1]["status"] == "completed"
        window = door.http.get("/api/threads/t/window").json()
        assert window["turns"] == 1
        assert QUESTION not in str(window["messages"])


def test_a_restart_keeps_the_conversation(home: Path, redis_url: str) -> None:
    with serving(home, redis_url) as door:
        door.ask("云帆2023年营业收入是多少？")
    with serving(home, redis_url) as door:
        assert door.ask("2")[-1][1]["answer"]["kind"] == "fact"
        assert len(door.records()) == 2
        window = door.http.get("/api/threads/t/window", params={"language": "en"}).json()
        assert window["turns"] == 1
        assert window["messages"][0] == {"role": "user", "content": "云帆2023年营业收入是多少？"}


def test_a_request_that_died_is_answered_once_when_it_is_sent_again(door: Door, redis_client: Any) -> None:
    """Its process died after the graph's end and before anything was said: the state still has the answer."""
    first = door.ask(FACT, client_message_id="m1")
    (once,) = redis_client.keys("business-assistant:once:*")
    gone = [field for field in redis_client.hkeys(once) if field[:1] in b"eo"]
    redis_client.hdel(once, *gone)
    door.desk._runs._runs.clear()
    again = door.ask(FACT, client_message_id="m1")
    assert again[-1][1]["answer"] == first[-1][1]["answer"]
    assert again[-1][1]["turn_id"] == first[-1][1]["turn_id"]
    assert "token" not in [name for name, _ in again]
    assert len(door.records()) == 1
    assert door.http.get("/api/threads/t/window").json()["turns"] == 1


def test_a_request_that_died_half_way_goes_on_when_it_is_sent_again(
    home: Path, redis_url: str, tmp_path: Path, redis_client: Any
) -> None:
    model = scripted(tmp_path, {"error": "down"}, {"text": "符合条件的给予补贴[C1]。"})
    with serving(home, redis_url, model) as door:
        first = door.ask(QUESTION, client_message_id="m1")
        assert first[-1][1]["status"] == "failed"
        (once,) = redis_client.keys("business-assistant:once:*")
        redis_client.hdel(once, *[field for field in redis_client.hkeys(once) if field[:1] in b"eo"])
        door.desk._runs._runs.clear()
        again = door.ask(QUESTION, client_message_id="m1")
        assert again[-1][1]["status"] == "completed"
        assert again[-1][1]["request_id"] == first[-1][1]["request_id"]
        assert again[-1][1]["turn_id"] == first[-1][1]["turn_id"]
        assert [record["status"] for record in door.records()] == ["completed"]


def test_a_deleted_thread_starts_anew(door: Door, redis_client: Any) -> None:
    door.ask("云帆2023年营业收入是多少？")
    assert door.http.delete("/api/threads/t").status_code == 204
    assert redis_client.keys("*") == []
    assert door.ask("1")[-1][1]["status"] != "failed"
    assert len(door.records()) == 1


def test_threads_do_not_mix(door: Door) -> None:
    import threading

    answers: dict[int, Any] = {}
    companies = ["云帆科技", "云帆能源", "云帆物流", "云帆医药"]

    def ask(number: int) -> None:
        name = companies[number % len(companies)]
        answers[number] = door.ask(f"{name}2023年营业收入是多少？", f"thread-{number}")[-1][1]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(lambda: len(answers) == 12)
    for number, done in answers.items():
        assert done["thread_id"] == f"thread-{number}"
        assert companies[number % len(companies)] in done["answer"]["text"]
