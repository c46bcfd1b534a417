"""The studio on the threads of the service: no turn lost, nothing planted loaded, no secret kept."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import ormsgpack
import pytest
import redis
from faults.parts import FACT, NARRATIVE, OTHER_FACT, OTHER_NARRATIVE, Home, Model, context, rows
from faults.test_secrets import MARK, kept
from integration.door import Door, endings, read_rest, read_until
from integration.test_studio import Studio, run
from langgraph_sdk import get_sync_client

from api.identity import thread_of
from checkpoint.layout import context_key
from graph.run import config_for
from nodes.contracts import Caller

pytestmark = pytest.mark.xdist_group("studio")

PREFIX = "business-assistant:context:v1:"
PLANT = "planted_by_a_test"


class Planted(Studio):
    """A dev server that could import a module whose import, or whose call, leaves a trace."""

    folder: Path

    def start(self) -> None:
        self._env["PYTHONPATH"] += os.pathsep + str(self.folder)
        self._env.pop("LANGGRAPH_STRICT_MSGPACK", None)
        super().start()


@pytest.fixture
def studio(home: Path, redis_url: str, tmp_path: Path) -> Iterator[Planted]:
    Planted.folder = tmp_path / "modules"
    Planted.folder.mkdir()
    trace = f"open({str(tmp_path / 'trace')!r}, 'a').write(__name__)"
    (Planted.folder / f"{PLANT}.py").write_text(f"{trace}\ndef system(*_words):\n    {trace}\n")
    running = Planted(home, redis_url, tmp_path / "dev.log")
    yield running
    running.kill()


def test_the_studio_beside_the_service(
    studio: Planted, place: Home, model: Model, redis_client: redis.Redis, tmp_path: Path
) -> None:
    """One server, as it takes long to start; each check has a thread of its own."""
    with studio.client() as client:
        check_one_thread_at_once(client, place, model)
        check_that_owners_are_out_of_reach(client, place)
    check_secrets(studio, redis_client, place)
    check_planted_fields(studio, redis_client)
    assert not (tmp_path / "trace").exists()


def check_one_thread_at_once(client: Any, place: Home, model: Model) -> None:
    """While the service answers, the studio is told so; taking the turn on makes a branch, and loses none."""
    thread = client.threads.create()["thread_id"]
    with place.door(model) as door:
        assert endings(door.ask(FACT, thread)) == ["done"]
        model.holds = True
        connection = door.send_raw(NARRATIVE, thread)
        read_until(connection, "event: token")
        beside = run(client, thread, OTHER_FACT)
        assert (beside["answer"], beside["outcome"]["error_code"]) == (None, "unfinished_turn")
        assert run(client, thread, "/retry")["answer"]["kind"] == "narrative"
        model.holds = False
        model.go.set()
        assert '"status":"completed"' in read_rest(connection)
        door.wait_idle()
        assert branches_of(door, thread) == {(FACT,), (FACT, NARRATIVE)}
        # What the service answered is what it goes on from, and is told to whoever reads.
        told = rows(door, thread)[-1]["content"]
        assert [row["content"] for row in rows(door, thread) if row["role"] == "USER"] == [FACT, NARRATIVE]
        assert door.ask(OTHER_NARRATIVE, thread)[-1][1]["status"] == "completed"
        shown = context(door, thread)
        assert [m["content"] for m in shown if m["role"] == "user"] == [FACT, NARRATIVE, OTHER_NARRATIVE]
        assert shown[3]["content"].split("[")[0].rstrip("\\") == told.split("[")[0]
        # And the studio's next turn takes it up from there.
        after = run(client, thread, OTHER_FACT)
        questions = [turn["question"] for turn in after["history"]["turns"]]
        assert questions == [FACT, NARRATIVE, OTHER_NARRATIVE, OTHER_FACT]


def branches_of(door: Door, thread: str) -> set[tuple[str, ...]]:
    """The questions that each step of the thread holds."""
    steps = door.app.state.assistant.saver.list(config_for(thread))
    held = [step.checkpoint["channel_values"].get("history") for step in steps]
    return {tuple(turn["question"] for turn in history["turns"]) for history in held if history}


def check_that_owners_are_out_of_reach(client: Any, place: Home) -> None:
    """A signed-in owner's thread has a name that is no name for a studio's thread."""
    hers = thread_of(Caller(tenant="acme", user="alice"), "plan")
    for ask in (lambda: client.threads.get_state(hers), lambda: run(client, hers, FACT)):
        with pytest.raises(httpx.HTTPStatusError) as refused:
            ask()
        assert refused.value.response.status_code in (400, 404, 422)


def check_secrets(studio: Planted, client: redis.Redis, place: Home) -> None:
    """What a client sends beside its words is in no step of the thread and in no store of ours."""
    headers = {"X-Secret": MARK, "X-Api-Key": MARK, "Authorization": f"Bearer {MARK}", "X-Token": MARK}
    sender = get_sync_client(url=studio.url, headers=headers)
    try:
        thread = sender.threads.create()["thread_id"]
        run(sender, thread, FACT, context={"groups": [MARK], "caller": MARK, "summary": MARK})
        run(sender, thread, OTHER_FACT, config={"configurable": {"token": MARK}}, metadata={"note": MARK})
        sender.threads.update_state(thread, {"turn_count": 7}, as_node="answer")
        history = sender.threads.get_history(thread, limit=100)
        assert len(history) > 10
        assert MARK not in repr(history)
    finally:
        sender.http.client.close()
    assert MARK.encode() not in kept(client, place.folder)
    assert MARK not in studio.log.read_text()


def check_planted_fields(studio: Planted, server: redis.Redis) -> None:
    """Fields that name a module to import, in place of each kind of field: an error, and no import."""
    with studio.client() as client:
        thread = client.threads.create()["thread_id"]
        run(client, thread, FACT)
    key = context_key(PREFIX, thread)
    body = ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb([PLANT, "system", "x"])))
    whole = server.hgetall(key)
    for start in (b"cv", b"ww", b"cc"):
        for field, old in whole.items():
            at = old.rfind(b"\x07msgpack") - 1 if start == b"cc" else 0
            if field.startswith(start) and at >= 0:
                server.hset(key, field, old[:at] + b"\x01\x07msgpack" + body)
        with studio.client() as client, pytest.raises(httpx.HTTPStatusError) as refused:
            client.threads.get_history(thread, limit=100)
        assert refused.value.response.status_code >= 500
        # The server may still remember the thread's end: then it reads nothing, and goes on as it was.
        with studio.client() as client:
            client.runs.wait(thread, "assistant", input={"request": {"text": FACT}}, raise_error=False)
        server.hset(key, mapping=whole)  # type: ignore[arg-type]
    with studio.client() as client:
        assert run(client, thread, OTHER_FACT)["answer"]["kind"] == "fact"
