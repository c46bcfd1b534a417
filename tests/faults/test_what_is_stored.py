"""What stays in the stores: nothing after deletion, nothing without an end, nothing that runs when read."""

import json
import sys
from dataclasses import dataclass

import ormsgpack
import pytest
import redis
from faults.parts import FACT, NARRATIVE, OTHER_NARRATIVE, VAGUE, Home, Model, rows, say, state_of
from integration.door import endings, read_rest, read_until
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from checkpoint import CannotRestoreError, ContextConfig, RedisContextSaver
from checkpoint.layout import context_key
from graph.run import config_for

PREFIX = "business-assistant:context:v1:"
LONGEST = 15 * 24 * 3600


# --- deletion


@pytest.mark.parametrize("route", ["/conversations/{id}", "/api/threads/t"])
def test_a_deletion_in_the_middle_of_an_answer_is_final(
    place: Home, model: Model, redis_client: redis.Redis, route: str
) -> None:
    model.holds = True
    with place.door(model) as door:
        connection = door.send_raw(NARRATIVE)
        read_until(connection, "event: token")
        (held,) = door.http.get("/conversations").json()["items"]
        path = route.format(id=held["id"])
        first = door.http.delete(path)
        assert first.status_code in (200, 204)
        model.holds = False
        model.go.set()
        assert '"code":"lease_lost"' in read_rest(connection)
        door.wait_idle()
        assert redis_client.keys("*") == []
        assert door.http.get("/conversations").json()["items"] == []
        assert door.http.get(f"/conversations/{held['id']}").status_code == 404
        again = door.http.delete(path)
        if route.startswith("/conversations"):
            assert again.json() == first.json()
        else:
            assert again.status_code == 404
        # The same name starts from nothing.
        model.prompts.clear()
        assert door.ask(OTHER_NARRATIVE)[-1][1]["status"] == "completed"
        assert NARRATIVE not in model.shown()
        assert len(rows(door)) == 2


ODD_NAMES = (
    "{x}",
    "x",
    "{{x}}",
    "a:b",
    "a",
    "*",
    "?",
    "[a-z]",
    "中文",
    "\\",
    "a" * 512,
    "a" * 511,
    "{",
    "}{",
)


def test_deleting_one_name_spares_every_other(place: Home, redis_client: redis.Redis) -> None:
    """Names that a pattern, a hash tag or a separator could take for one another."""
    with place.assistant() as assistant:
        for name in ODD_NAMES:
            assert say(assistant, FACT, name).status == "completed"
        left = list(ODD_NAMES)
        for name in ODD_NAMES:
            assistant.saver.delete_thread(name)
            left.remove(name)
            assert state_of(assistant, name) == {}
            assert all(state_of(assistant, other) for other in left)
        assert redis_client.keys("*") == []


def test_all_keys_of_a_thread_are_in_one_slot(place: Home, model: Model, redis_client: redis.Redis) -> None:
    from redis.crc import key_slot

    model.holds = True
    with place.door(model) as door:
        for name in ("{x}", "a:b", "中文", "*"):
            model.waiting.clear()
            connection = door.send_raw(NARRATIVE, name, client_message_id="m1")
            read_until(connection, "event: token")
            keys = [key for key in redis_client.keys("*") if context_key(PREFIX, name).encode() in key]
            assert len(keys) >= 3  # the hash, the lease and the claim
            assert len({key_slot(key) for key in keys}) == 1
            connection.close()
        model.holds = False
        model.go.set()


# --- lifetimes


def lives(client: redis.Redis) -> dict[bytes, int]:
    return {key: client.ttl(key) for key in client.keys("*")}


def test_no_road_leaves_a_key_without_an_end(place: Home, model: Model, redis_client: redis.Redis) -> None:
    model.faults = ["", "error"]
    with place.door(model) as door:

        def check(did: str) -> None:
            door.wait_idle()
            found = lives(redis_client)
            assert found, did
            assert all(0 < left <= LONGEST for left in found.values()), (did, found)
            redis_client.expire(context_key(PREFIX, "t"), 1000)

        # Fact, narrative, asked back, picked, asked back, cancelled, failed, refused, retried, small talk.
        texts = (FACT, NARRATIVE, VAGUE, "2", VAGUE, "取消", OTHER_NARRATIVE, FACT, "/retry", "你好")
        for number, text in enumerate(texts):
            assert endings(door.ask(text, client_message_id=f"m{number}")) == ["done"]
            assert redis_client.ttl(context_key(PREFIX, "t")) > LONGEST - 60, text
            check(text)
        door.http.get("/api/threads/t/requests")
        door.http.get("/api/threads/t/window")
        rows(door)
        assert redis_client.ttl(context_key(PREFIX, "t")) <= 1000  # reading renews nothing
        model.holds = True
        connection = door.send_raw(NARRATIVE)
        read_until(connection, "event: token")
        check_running = lives(redis_client)
        assert all(0 < left <= LONGEST for left in check_running.values()), check_running
        door.http.post("/api/chat/stop", json={"thread_id": "t"})
        model.holds = False
        model.go.set()
        read_rest(connection)
        check("stop")
        graph = door.app.state.assistant.graph
        graph.update_state(config_for("t"), {"turn_count": 3}, as_node="answer")
        check("edit")
        first = list(graph.get_state_history(config_for("t")))[-1].config
        graph.update_state(first, {"turn_count": 3}, as_node="answer")
        check("fork")
        graph.update_state(config_for("new"), {"turn_count": 3}, as_node="answer")
        check("edit of an empty thread")


# --- values that cannot be restored


@dataclass
class OfAnEarlierRelease:
    """A class that the package no longer has."""

    text: str


OfAnEarlierRelease.__module__ = "nodes.answer.gone"


def test_a_value_of_a_class_that_is_gone_is_an_error_with_a_name(
    place: Home, model: Model, redis_url: str
) -> None:
    with place.door(model) as door:
        door.ask(FACT)
        with RedisContextSaver(
            ContextConfig(url=redis_url), serde=JsonPlusSerializer(pickle_fallback=True)
        ) as old:
            config = config_for("t")
            found = old.get_tuple(config)
            assert found
            held = {**found.checkpoint, "id": "9" + found.checkpoint["id"][1:]}
            held["channel_values"] = {**held["channel_values"], "turn": OfAnEarlierRelease("补贴")}
            version = old.get_next_version(held["channel_versions"]["turn"])  # type: ignore[arg-type]
            held["channel_versions"] = {**held["channel_versions"], "turn": version}
            old.put(found.config, held, found.metadata, {"turn": version})  # type: ignore[arg-type]
        done = door.ask(NARRATIVE)[-1][1]
        assert (done["status"], done["error_code"]) == ("failed", "processing_failed")
        (_, record) = door.records()
        assert (record["status"], record["input_kind"]) == ("failed", "unknown")
        assert record["original_question"] is None
        assert "gone" not in json.dumps(done)
        assert model.prompts == []
        assert rows(door)[-1]["status"] == "FAILED"
        # The way out is the one that the problem names: another conversation, or deleting this one.
        assert door.ask(NARRATIVE, "another")[-1][1]["status"] == "completed"
        assert door.http.delete("/api/threads/t").status_code == 204
        assert door.ask(NARRATIVE)[-1][1]["status"] == "completed"


@pytest.mark.parametrize("module", ["antigravity", "os"])
@pytest.mark.parametrize("where", ["value", "writes", "record"])
def test_a_crafted_field_is_refused_by_every_way_of_reading(
    place: Home, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch, where: str, module: str
) -> None:
    monkeypatch.delenv("LANGGRAPH_STRICT_MSGPACK", raising=False)
    sys.modules.pop("antigravity", None)
    body = ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb([module, "system", "touch /tmp/x"])))
    crafted = b"\x01\x07msgpack" + body
    key = context_key(PREFIX, "t")
    with place.door() as door:
        door.ask(FACT)
    start = {"value": b"cv", "writes": b"ww", "record": b"cc"}[where]
    fields = [field for field in redis_client.hkeys(key) if field.startswith(start)]
    assert fields
    for field in fields:
        old = redis_client.hget(key, field)
        assert old is not None
        at = old.rfind(b"\x07msgpack") - 1 if where == "record" else 0
        redis_client.hset(key, field, (old[:at] if at > 0 else b"") + crafted)
    with place.door() as door:  # one that remembers nothing of the thread
        saver = door.app.state.assistant.saver
        if where != "writes":  # the newest checkpoint of a finished turn has none
            with pytest.raises(CannotRestoreError):
                saver.get_tuple(config_for("t"))
        with pytest.raises(CannotRestoreError):
            list(saver.list(config_for("t")))
        with pytest.raises(CannotRestoreError):
            list(saver.list(None))
        done = door.ask(NARRATIVE)[-1][1]
        assert done["status"] == ("completed" if where == "writes" else "failed")
        assert "antigravity" not in sys.modules
