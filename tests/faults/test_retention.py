"""Deleting, purging, pruning and archiving: beside each other, beside live turns, cut off in the middle."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis
from faults.parts import (
    ANSWERED,
    FACT,
    NARRATIVE,
    OTHER_FACT,
    OTHER_NARRATIVE,
    VAGUE,
    Home,
    Model,
    context,
    conversation,
    forms,
    rows,
)
from faults.test_owners import ALICE, BOB, SECRET, as_caller
from faults.test_two_stores import NOT_SAVED, FailsOnce
from integration.door import Door, endings, events_of
from sqlalchemy import text

from api.identity import thread_of
from api.retention import archive, prune, thread_of_owner
from checkpoint import RedisContextSaver
from checkpoint.conversations.rows import Owner
from checkpoint.conversations.store import ConversationStore, open_store
from checkpoint.layout import context_key
from graph.settings import Settings, load_settings
from nodes.contracts import Caller

PREFIX = "business-assistant:context:v1:"
ME = Owner("local", "local")
AT_ONCE = {"RETAIN_DELETED_DAYS": "0"}
SECRET_WORD = "标记QZX31"


@pytest.fixture
def quick(place: Home) -> Home:
    """A deployment that purges what was deleted at once."""
    return Home(place.folder, place.redis_url, AT_ONCE)


@contextmanager
def opened(place: Home) -> Iterator[tuple[RedisContextSaver, ConversationStore]]:
    settings = load_settings(place.env)
    with RedisContextSaver(settings.context) as saver, open_store(settings.conversations) as store:
        yield saver, store


def settings_of(place: Home) -> Settings:
    return load_settings(place.env)


def archived(place: Home) -> list[dict[str, Any]]:
    with opened(place) as (_, store), store.database.read("test") as connection:
        found = connection.execute(text("SELECT * FROM request_archive ORDER BY received_at"))
        return [dict(row) for row in found.mappings()]


def count(place: Home, table: str) -> int:
    with opened(place) as (_, store), store.database.read("test") as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())  # noqa: S608


def delete(door: Door, name: str = "t", **how: Any) -> dict[str, Any]:
    response = door.http.delete(f"/conversations/{conversation(door, name, **how)}", **how)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


# --- whose ---


def test_the_purge_finds_the_thread_of_each_owner_and_no_other(
    place: Home, model: Model, redis_client: redis.Redis
) -> None:
    """Two owners, one name. One deletes, and it is cut off before Redis: the purge erases hers alone."""
    signed = Home(place.folder, place.redis_url, {"JWT_SECRET": SECRET, **AT_ONCE})
    with signed.door(model) as door:
        for caller in (ALICE, BOB):
            for message in (NARRATIVE, VAGUE):
                body = {"thread_id": "plan", "message": message, "client_message_id": message}
                told = door.http.post("/api/chat", json=body, headers=as_caller(caller))
                assert endings(events_of(told.text)) == ["done"]
        keys = {
            caller: context_key(PREFIX, thread_of(Caller(tenant=caller[0], user=caller[1]), "plan"))
            for caller in (ALICE, BOB)
        }
        assert set(redis_client.keys(f"{PREFIX}*")) == {key.encode() for key in keys.values()}
        his = redis_client.hgetall(keys[BOB])
        archive(settings_of(signed))
        with opened(signed) as (_, store):
            held = store.find(Owner(*ALICE), "plan")
            assert held is not None
            store.delete(held.owner, held.id)
        receipt = prune(settings_of(signed)).purge
        (purged,) = receipt.conversations
        assert (purged.conversation_id, purged.thread_erased) == (str(held.id), True)
        assert (purged.messages, purged.requests) == (4, 2)
        assert not [key for key in redis_client.keys("*") if keys[ALICE].encode() in key]
        assert redis_client.hgetall(keys[BOB]) == his
        assert {row["thread_id"] for row in archived(signed)} == {thread_of_owner(Owner(*BOB), "plan")}
        # His pending question is still his.
        told = door.http.post("/api/chat", json={"thread_id": "plan", "message": "2"}, headers=as_caller(BOB))
        assert events_of(told.text)[-1][1]["answer"]["kind"] == "fact"


def test_pruning_keeps_what_signed_in_owners_need(place: Home, model: Model) -> None:
    signed = Home(place.folder, place.redis_url, {"JWT_SECRET": SECRET})
    with signed.door(model) as door:

        def ask(message: str, caller: tuple[str, str]) -> Any:
            body = {"thread_id": "plan", "message": message}
            return events_of(door.http.post("/api/chat", json=body, headers=as_caller(caller)).text)[-1][1]

        for caller in (ALICE, BOB):
            for message in (NARRATIVE, OTHER_FACT, VAGUE):
                ask(message, caller)
        receipt = prune(settings_of(signed), keep_turns=1, messages=True)
        assert receipt.threads.threads == 2
        assert receipt.threads.checkpoints > 0
        assert receipt.messages == 8
        for caller in (ALICE, BOB):
            assert ask("2", caller)["answer"]["kind"] == "fact"
            identity = conversation(door, "plan", headers=as_caller(caller))
            shown = door.http.get(f"/conversations/{identity}/messages", headers=as_caller(caller)).json()
            assert [row["role"] for row in shown["items"]] == ["USER", "ASSISTANT"] * 2
            window = door.http.get("/api/threads/plan/window", headers=as_caller(caller)).json()
            assert window["turns"] == 3


# --- deleting that was cut off ---


@pytest.mark.parametrize("is_done", [False, True], ids=["before the row is hidden", "after it"])
def test_a_name_whose_deletion_was_cut_off_starts_from_nothing(
    place: Home, model: Model, redis_client: redis.Redis, is_done: bool
) -> None:
    """Nobody deletes again, and the name is used for something new: nothing of the old one shows through."""

    def failing(kept: Any) -> Any:
        return FailsOnce(kept, "delete", lambda *_a, **_m: True, NOT_SAVED, is_done=is_done)

    with place.door(model, store=failing) as door:
        assert endings(door.ask(NARRATIVE, client_message_id="m1")) == ["done"]
        response = door.http.delete(f"/conversations/{conversation(door)}")
        assert response.status_code == 503
        for path in ("window", "requests", "checkpoints"):
            assert NARRATIVE not in door.http.get(f"/api/threads/t/{path}").text, path
        assert redis_client.keys("*") == []
        model.prompts.clear()
        done = door.ask(OTHER_NARRATIVE, client_message_id="m2")[-1][1]
        assert done["status"] == "completed"
        assert NARRATIVE not in model.shown()
        assert [record["question"] for record in door.records()] == [OTHER_NARRATIVE]
        assert [message["content"] for message in context(door)][:1] == [OTHER_NARRATIVE]
        assert forms(door) == ANSWERED * (1 if is_done else 2)


def test_nothing_begins_in_a_thread_that_is_being_deleted(
    place: Home, model: Model, redis_client: redis.Redis
) -> None:
    """A question sent between the erasing and the hiding is refused, or goes with the rest."""
    with place.door(model) as door:
        assert endings(door.ask(NARRATIVE)) == ["done"]
        erase, told = door.desk.erase, []

        def then_asked(thread_id: str) -> bool:
            existed = bool(erase(thread_id))
            if not told:
                told.append(door.post(OTHER_NARRATIVE).status_code)
            return existed

        store = door.desk._ledger.store
        hide = store.delete

        def asked_meanwhile(*args: Any) -> Any:
            told.append(door.post(FACT).status_code)
            return hide(*args)

        door.desk.erase, store.delete = then_asked, asked_meanwhile
        receipt = delete(door)
        assert told == [200, 409]
        assert receipt["hiddenMessages"] == 4
        door.wait_idle()
        # What slipped in between went with the second erasing, and nothing came after the hiding.
        assert rows(door) == []
        assert redis_client.keys("*") == []
