"""The steps of a thread and its forks, around the real graph, saver and sample."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from door import Door, endings, open_door

from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.store import ConversationStore, open_store
from checkpoint.layout import context_key

QUESTIONS = (
    "云帆科技2023年的营业收入是多少？",
    "创业补贴有多少？",
    "云帆能源2023年的净利润是多少？",
    "北渚茶业2024年净利润是多少？",
    "研发费用补助怎么申请？",
)
VAGUE = "云帆2023年营业收入是多少？"


@pytest.fixture
def door(assistant: Any, store: ConversationStore) -> Iterator[Door]:
    """On each database."""
    with open_door(assistant, store=store) as opened:
        yield opened


@pytest.fixture
def plain_door(assistant: Any, new_database: Callable[..., StoreConfig]) -> Iterator[Door]:
    with open_store(new_database("sqlite")) as store, open_door(assistant, store=store) as opened:
        yield opened


def steps(door: Door, thread: str = "t", **query: Any) -> list[dict[str, Any]]:
    response = door.http.get(f"/api/threads/{thread}/checkpoints", params=query)
    assert response.status_code == 200, response.text
    items: list[dict[str, Any]] = response.json()["items"]
    return items


def ends(door: Door, thread: str = "t") -> list[dict[str, Any]]:
    """The last step of each request, oldest first."""
    return [step for step in reversed(steps(door, thread, limit=200)) if step["status"] and not step["next"]]


def fork(door: Door, thread: str = "t", **body: Any) -> Any:
    return door.http.post(f"/api/threads/{thread}/fork", json=body)


def forked(door: Door, thread: str = "t", **body: Any) -> dict[str, Any]:
    response = fork(door, thread, **body)
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    return made


def window(door: Door, thread: str) -> list[str]:
    messages = door.http.get(f"/api/threads/{thread}/window").json()["messages"]
    return [message["content"] for message in messages if message["role"] == "user"]


def texts(door: Door, conversation: str) -> list[str]:
    items = door.http.get(f"/conversations/{conversation}/messages").json()["items"]
    return [item["content"] for item in items if item["role"] == "USER"]


def test_steps_come_newest_first_with_where_the_conversation_stood(plain_door: Door) -> None:
    plain_door.ask(QUESTIONS[0])
    plain_door.ask(QUESTIONS[1])
    found = steps(plain_door)
    assert found == sorted(found, key=lambda step: step["checkpoint_id"], reverse=True)
    assert all(step["created_at"].endswith("+08:00") for step in found)
    last = found[0]
    assert (last["next"], last["status"], last["original_question"]) == ([], "completed", QUESTIONS[1])
    assert (last["answer_kind"], last["input_kind"]) == ("narrative", "new_question")
    assert last["decision_digest"]
    assert [step["turns_in_window"] for step in ends(plain_door)] == [1, 2]
    by_id = {step["checkpoint_id"] for step in found}
    assert [step["parent_checkpoint_id"] in by_id for step in found] == [True] * (len(found) - 1) + [False]


def test_steps_come_in_pages(plain_door: Door) -> None:
    plain_door.ask(QUESTIONS[0])
    whole, pages, before = steps(plain_door), [], None
    while True:
        query = {"limit": 2, **({"before": before} if before else {})}
        page = plain_door.http.get("/api/threads/t/checkpoints", params=query).json()
        pages += page["items"]
        before = page["next_before"]
        if before is None:
            break
    assert pages == whole


def test_a_fork_holds_its_branch_only_and_leaves_the_main_one_as_it_is(door: Door, redis_client: Any) -> None:
    for question in QUESTIONS:
        door.ask(question)
    main = redis_client.hgetall(context_key("business-assistant:context:v1:", "t"))
    second = ends(door)[1]["checkpoint_id"]
    made = forked(door, checkpoint_id=second, new_thread_id="copy")
    assert (made["thread_id"], made["checkpoint_id"], made["turns_in_window"]) == ("copy", second, 2)
    assert window(door, "copy") == list(QUESTIONS[:2])
    assert window(door, "t") == list(QUESTIONS)
    assert redis_client.hgetall(context_key("business-assistant:context:v1:", "t")) == main
    assert door.records("copy") == []
    assert len(door.records("t")) == 5
    assert texts(door, made["conversation_id"]) == list(QUESTIONS[:2])
    assert {step["original_question"] for step in steps(door, "copy", limit=200)} <= {None, *QUESTIONS[:2]}


def test_a_fork_goes_on_by_itself(plain_door: Door) -> None:
    for question in QUESTIONS[:3]:
        plain_door.ask(question)
    made = forked(plain_door, checkpoint_id=ends(plain_door)[0]["checkpoint_id"])
    assert endings(plain_door.ask(QUESTIONS[3], made["thread_id"])) == ["done"]
    assert window(plain_door, made["thread_id"]) == [QUESTIONS[0], QUESTIONS[3]]
    assert texts(plain_door, made["conversation_id"]) == [QUESTIONS[0], QUESTIONS[3]]
    assert window(plain_door, "t") == list(QUESTIONS[:3])
    assert [record["question"] for record in plain_door.records(made["thread_id"])] == [QUESTIONS[3]]


def test_a_fork_keeps_a_pending_question(plain_door: Door) -> None:
    plain_door.ask(VAGUE)
    plain_door.ask("1")
    asked = ends(plain_door)[0]
    assert asked["status"] == "needs_input"
    made = forked(plain_door, checkpoint_id=asked["checkpoint_id"])
    done = plain_door.ask("2", made["thread_id"])[-1][1]
    assert (done["status"], done["original_question"]) == ("completed", VAGUE)


def test_a_fork_in_the_middle_of_a_turn_is_an_unfinished_one(plain_door: Door) -> None:
    plain_door.ask(QUESTIONS[0])
    middle = next(step for step in steps(plain_door) if step["next"] == ["retrieve"])
    made = forked(plain_door, checkpoint_id=middle["checkpoint_id"])
    assert texts(plain_door, made["conversation_id"]) == [QUESTIONS[0]]
    refused = plain_door.ask(QUESTIONS[1], made["thread_id"])[-1][1]
    assert refused["error_code"] == "unfinished_turn"
    assert plain_door.ask("/retry", made["thread_id"])[-1][1]["status"] == "completed"
    assert window(plain_door, made["thread_id"]) == [QUESTIONS[0]]


def test_a_fork_of_a_fork(plain_door: Door) -> None:
    for question in QUESTIONS[:3]:
        plain_door.ask(question)
    one = forked(plain_door, checkpoint_id=ends(plain_door)[1]["checkpoint_id"])
    two = forked(
        plain_door, one["thread_id"], checkpoint_id=ends(plain_door, one["thread_id"])[0]["checkpoint_id"]
    )
    assert window(plain_door, two["thread_id"]) == [QUESTIONS[0]]


def test_a_name_that_is_taken_is_refused_and_left_alone(plain_door: Door) -> None:
    plain_door.ask(QUESTIONS[0])
    plain_door.ask(QUESTIONS[1], "other")
    plain_door.http.post("/conversations", json={"externalId": "empty"})
    for name in ("other", "t", "empty"):
        refused = fork(plain_door, new_thread_id=name)
        assert (refused.status_code, refused.json()["code"]) == (409, "name_taken"), name
    assert window(plain_door, "other") == [QUESTIONS[1]]
    assert plain_door.http.get("/api/threads/empty/window").status_code == 404  # nothing of the copy stayed


def test_what_does_not_exist_is_not_found(plain_door: Door, redis_client: Any) -> None:
    plain_door.ask(QUESTIONS[0])
    before = set(redis_client.keys("*"))
    assert fork(plain_door, "unknown").status_code == 404
    assert fork(plain_door, checkpoint_id="0" * 36).status_code == 404
    assert plain_door.http.get("/api/threads/unknown/checkpoints").status_code == 404
    assert set(redis_client.keys("*")) == before


def test_a_thread_without_rows_is_forked_by_itself(assistant: Any) -> None:
    with open_door(assistant) as door:
        door.ask(QUESTIONS[0])
        made = forked(door)
        assert made["conversation_id"] is None
        assert window(door, made["thread_id"]) == [QUESTIONS[0]]


def test_a_wrong_method_on_a_fork_erases_nothing(plain_door: Door) -> None:
    plain_door.ask(QUESTIONS[0], "a/fork")
    refused = plain_door.http.delete("/api/threads/a/fork")
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
    assert len(plain_door.records("a%2Ffork")) == 1


def test_a_fork_without_a_body_is_one_of_the_latest_step(plain_door: Door) -> None:
    plain_door.ask(QUESTIONS[0])
    plain_door.ask(QUESTIONS[1])
    made = plain_door.http.post("/api/threads/t/fork")
    assert made.status_code == 201
    assert window(plain_door, made.json()["thread_id"]) == window(plain_door, "t")
