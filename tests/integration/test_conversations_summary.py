"""The rolling summary: what it covers, when it may be used, and when it is dropped."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import recording_provider
import redis
from door import open_door, until
from sqlalchemy import text

from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.rows import Conversation, Owner, Question, Reply
from checkpoint.conversations.sources import keys_of
from checkpoint.conversations.store import ConversationStore, open_store
from checkpoint.conversations.summary import FOLD_AT_LEAST, Summary, ToFold, fold, summary_for
from graph.compose import open_assistant
from graph.settings import load_settings
from nodes.contracts import ProviderError
from nodes.retrieve.sample import SAMPLE_SET

ME = Owner("local", "local")


def everyone(_keys: Any) -> bool:
    return True


def talk(store: ConversationStore, number: int, document: str = "d") -> Conversation:
    saved = store.save_question(
        ME, Question(f"r{number}", f"第{number}问"), name="c", knowledge_base="default"
    )
    source = {"label": "C1", "document_id": document, "version": "1", "passage": "原文"}
    store.save_reply(ME, saved.conversation.id, f"r{number}", Reply(f"第{number}答[C1]。", sources=[source]))
    return saved.conversation


class Model:
    """Condenses by naming what it was shown."""

    def __init__(self) -> None:
        self.seen: list[ToFold] = []

    def __call__(self, work: ToFold) -> str:
        self.seen.append(work)
        return "摘要：" + "、".join(turn.question.content for turn in work.turns)


def run(
    store: ConversationStore, held: Conversation, model: Model, may_see: Any = everyone
) -> Summary | None:
    return fold(store, held, window_turns=3, may_see=may_see, summarise=model, model="m")


def versions(store: ConversationStore) -> list[int]:
    with store.database.read("test") as connection:
        rows = connection.execute(text("SELECT version FROM summary_version ORDER BY version"))
        return [version for (version,) in rows]


def test_nothing_is_folded_until_enough_has_left_the_window(store: ConversationStore) -> None:
    model = Model()
    for number in range(3 + FOLD_AT_LEAST - 1):
        held = talk(store, number)
    assert run(store, held, model) is None
    assert model.seen == []
    assert summary_for(store, held, everyone) is None


def test_the_summary_rolls_and_says_what_it_covers(store: ConversationStore) -> None:
    model = Model()
    for number in range(3 + FOLD_AT_LEAST):
        held = talk(store, number)
    made = run(store, held, model)
    assert made is not None
    assert (made.version, made.message_sequence) == (1, 2 * FOLD_AT_LEAST)
    assert [turn.question.content for turn in model.seen[0].turns] == [
        f"第{number}问" for number in range(FOLD_AT_LEAST)
    ]
    kept = store.get(ME, held.id)
    assert (kept.summary, kept.summary_message_sequence) == (made.content, made.message_sequence)
    assert run(store, held, model) is None
    for number in range(10, 10 + FOLD_AT_LEAST):
        talk(store, number, document="e")
    again = run(store, held, model)
    assert again is not None
    assert again.version == 2
    assert model.seen[1].before == made.content
    assert model.seen[1].turns[0].question.content == f"第{FOLD_AT_LEAST}问"
    assert again.sources == [["d", "1"], ["e", "1"]]
    assert summary_for(store, held, everyone) == again


def test_only_so_many_versions_are_kept(new_database: Callable[..., StoreConfig]) -> None:
    with open_store(new_database("sqlite", summary_versions=2)) as store:
        for number in range(3 + 5 * FOLD_AT_LEAST):
            held = talk(store, number)
            run(store, held, Model())
        assert versions(store) == [4, 5]


def test_a_withdrawn_source_drops_the_summary_for_good(store: ConversationStore) -> None:
    for number in range(3 + FOLD_AT_LEAST):
        held = talk(store, number)
    run(store, held, Model())
    assert summary_for(store, held, lambda keys: ("d", "1") not in keys) is None
    kept = store.get(ME, held.id)
    assert (kept.summary, kept.summary_message_sequence, versions(store)) == (None, 0, [])
    assert summary_for(store, held, everyone) is None


def test_turns_with_a_withdrawn_source_are_not_shown_to_the_model(store: ConversationStore) -> None:
    model = Model()
    for number in range(3 + FOLD_AT_LEAST):
        held = talk(store, number, document="secret" if number == 1 else "d")
    made = run(store, held, model, lambda keys: all(key[0] != "secret" for key in keys))
    assert made is not None
    assert "第1问" not in [turn.question.content for turn in model.seen[0].turns]
    assert made.sources == [["d", "1"]]
    text_shown = "".join(content for _, content in model.seen[0].messages())
    assert "第1答" not in text_shown


def test_failed_and_interrupted_turns_are_not_folded(store: ConversationStore) -> None:
    model = Model()
    for number in range(3 + FOLD_AT_LEAST):
        held = talk(store, number)
    store.save_question(ME, Question("x", "失败的问"), name="c", knowledge_base="default")
    store.mark_failed(ME, held.id, "x")
    store.save_question(ME, Question("y", "中断的问"), name="c", knowledge_base="default")
    store.save_reply(ME, held.id, "y", Reply("一半", status="PARTIAL"))
    run(store, held, model)
    shown = [turn.question.content for turn in model.seen[0].turns]
    assert shown == [f"第{number}问" for number in range(FOLD_AT_LEAST)]


def test_a_model_that_fails_or_says_nothing_changes_nothing(store: ConversationStore) -> None:
    for number in range(3 + FOLD_AT_LEAST):
        held = talk(store, number)

    def failing(work: ToFold) -> str:
        raise ProviderError("x")

    with pytest.raises(ProviderError):
        fold(store, held, window_turns=3, may_see=everyone, summarise=failing)
    assert fold(store, held, window_turns=3, may_see=everyone, summarise=lambda _work: " \n") is None
    assert store.get(ME, held.id).summary is None


def test_of_two_that_fold_at_once_one_wins(store: ConversationStore) -> None:
    for number in range(3 + FOLD_AT_LEAST):
        held = talk(store, number)

    def slow(work: ToFold) -> str:
        assert run(store, held, Model()) is not None  # another process, in between
        return "spät"

    assert fold(store, held, window_turns=3, may_see=everyone, summarise=slow) is None
    assert versions(store) == [1]
    assert store.get(ME, held.id).summary != "spät"


def test_a_conversation_deleted_meanwhile_gets_no_summary(store: ConversationStore) -> None:
    for number in range(3 + FOLD_AT_LEAST):
        held = talk(store, number)

    def deleting(work: ToFold) -> str:
        store.delete(ME, held.id)
        return "spät"

    assert fold(store, held, window_turns=3, may_see=everyone, summarise=deleting) is None
    assert versions(store) == []


# --- through the door ---


def test_the_summary_reaches_the_prompt_below_the_window_and_nowhere_else(
    home: Path, redis_url: str, new_database: Callable[..., StoreConfig]
) -> None:
    recording_provider.PROMPTS.clear()
    settings = load_settings(
        {
            "BUSINESS_ASSISTANT_HOME": str(home),
            "REDIS_URL": redis_url,
            "MODEL": "recording_provider:make",
            "HISTORY_MAX_TURNS": "2",
        }
    )
    with (
        open_store(new_database("sqlite")) as store,
        open_assistant(settings) as assistant,
        open_door(assistant, store=store) as door,
    ):
        for _ in range(2 + FOLD_AT_LEAST):
            assert door.ask("创业补贴有多少？")[-1][1]["answer"]["kind"] == "narrative"
        held = store.find(ME, "t")
        assert held is not None
        until(lambda: store.get(ME, held.id).summary)
        recording_provider.PROMPTS.clear()
        assert door.ask("租房补贴有多少？")[-1][1]["status"] == "completed"
        answered = [prompt for prompt in recording_provider.PROMPTS if prompt.passages]
        assert recording_provider.SUMMARY in answered[-1].messages[0].content
        assert answered[-1].messages[-1].content == "租房补贴有多少？"
        last = list(store.walk_messages(ME, held.id))[-1]
        summary = summary_for(store, held, everyone)
        assert summary
        assert summary.sources
        assert {tuple(key) for key in summary.sources} < {tuple(key) for key in keys_of([last.sources])}
        listed = door.http.get(f"/conversations/{held.id}/messages").json()["items"][-1]["sources"]
        assert [source["label"] for source in listed] == ["C1"]
        shown = str(door.http.get(f"/conversations/{held.id}").json())
        assert "SUM42" not in shown + door.http.get(f"/conversations/{held.id}/messages").text
        with redis.Redis.from_url(redis_url) as client:
            for key in client.keys("*"):
                stored = client.hgetall(key) if client.type(key) == b"hash" else client.get(key)
                assert b"SUM42" not in str(stored).encode()
        assistant.store.remove(SAMPLE_SET)
        door.ask("创业补贴有多少？")
        assert store.get(ME, held.id).summary is None


def test_without_a_model_there_is_no_summary(
    assistant: Any, new_database: Callable[..., StoreConfig]
) -> None:
    with open_store(new_database("sqlite")) as store, open_door(assistant, store=store) as door:
        for _ in range(3):
            door.ask("创业补贴有多少？")
        assert door.desk._ledger.summary_of(store.find(ME, "t"), None) is None
        assert versions(store) == []
