"""Sends that meet: at the same time, or the same one again. The loser leaves nothing."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from faults.parts import ANSWERED, FACT, NARRATIVE, OTHER_NARRATIVE, Home, Model, agreed, context, forms, rows
from integration.door import endings, events_of, read_rest, read_until
from store_fixtures import ending

from checkpoint.conversations.errors import StoreUnavailable
from checkpoint.layout import context_key


def together(jobs: list[Callable[[], Any]]) -> list[Any]:
    """The results of jobs that begin in one moment; the first fault of any of them is raised."""
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], Any]) -> Any:
        start.wait()
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [running.result() for running in [pool.submit(run, job) for job in jobs]]


@pytest.mark.parametrize("loser", ["/api/chat", "/conversations/{id}/messages"])
def test_the_loser_of_two_sends_leaves_no_trace(
    place: Home, model: Model, redis_client: Any, loser: str
) -> None:
    model.holds = True
    with place.door(model) as door:
        winner = door.send_raw(NARRATIVE)
        read_until(winner, "event: token")
        identity = door.http.get("/conversations").json()["items"][0]["id"]
        key = context_key("business-assistant:context:v1:", "t")
        before = (redis_client.hkeys(key), sorted(redis_client.keys()), rows(door))
        body = {"thread_id": "t", "message": FACT} if loser == "/api/chat" else {"question": FACT}
        refused = door.http.post(loser.format(id=identity), json=body)
        assert (refused.status_code, refused.json()["code"]) == (409, "thread_busy")
        assert (redis_client.hkeys(key), sorted(redis_client.keys()), rows(door)) == before
        model.holds = False
        model.go.set()
        assert '"status":"completed"' in read_rest(winner)
        assert door.ask(OTHER_NARRATIVE)[-1][1]["status"] == "completed"
        assert [row["content"] for row in rows(door) if row["role"] == "USER"] == [NARRATIVE, OTHER_NARRATIVE]
        assert all(message.content.strip() for message in model.prompts[-1].messages)
        assert FACT not in model.shown()
        assert agreed(door)


def test_two_sends_in_one_moment_are_one_turn(place: Home, model: Model) -> None:
    with place.door(model) as door:
        for number in range(5):
            thread = f"t{number}"
            texts = [NARRATIVE, OTHER_NARRATIVE]
            told = together([partial(door.post, text, thread) for text in texts])
            # Where the first has ended before the second came, both are answered: in order, not at once.
            codes = sorted(response.status_code for response in told)
            assert codes in ([200, 409], [200, 200])
            won = [text for text, response in zip(texts, told, strict=True) if response.status_code == 200]
            assert {row["content"] for row in rows(door, thread) if row["role"] == "USER"} == set(won)
            assert forms(door, thread) == ANSWERED * len(won)
            assert endings(door.ask(FACT, thread)) == ["done"]
            assert agreed(door, thread)


def test_the_same_message_calls_the_model_once(place: Home, model: Model) -> None:
    with place.door(model) as door:
        send = lambda: door.post(NARRATIVE, client_message_id="m1")  # noqa: E731
        told = together([send] * 5)
        assert {response.status_code for response in told} == {200}
        told.append(send())
        answers = {events_of(response.text)[-1][1]["assistant_message_id"] for response in told}
        assert len(answers) == len(model.prompts) == len(door.records()) == 1
        assert forms(door) == ANSWERED
        reused = door.post(OTHER_NARRATIVE, client_message_id="m1")
        assert (reused.status_code, reused.json()["code"]) == (422, "message_id_reused")
        assert len(model.prompts) == 1
        assert door.ask(OTHER_NARRATIVE, "another", client_message_id="m1")[-1][1]["status"] == "completed"
        assert (forms(door), forms(door, "another")) == (ANSWERED, ANSWERED)


class Forgetful:
    """A database whose answer to one call is lost, after it has done what was asked."""

    def __init__(self, inner: Any, method: str) -> None:
        self._inner, self._method, self.lost = inner, method, 0

    def __getattr__(self, name: str) -> Any:
        work = getattr(self._inner, name)
        if name != self._method or self.lost:
            return work

        def lose(work: Callable[..., Any], *args: Any, **more: Any) -> Any:
            self.lost += 1
            work(*args, **more)
            raise StoreUnavailable(name, "the connection was lost", "Try again")

        return ending(work, lose) if name == "saving_reply" else partial(lose, work)


@pytest.mark.parametrize("method", ["save_question", "saving_reply"])
def test_a_commit_whose_reply_was_lost_is_one_turn_however_often_it_is_sent(
    place: Home, model: Model, method: str
) -> None:
    with place.door(model, store=lambda kept: Forgetful(kept, method)) as door:
        first = door.post(NARRATIVE, client_message_id="m1")
        assert '"database_unavailable"' in first.text
        door.wait_idle()
        told = [door.ask(NARRATIVE, client_message_id="m1")[-1][1] for _ in range(3)]
        assert {done["status"] for done in told} == {"completed"}
        assert len({done["assistant_message_id"] for done in told}) == 1
        assert forms(door) == ANSWERED
        assert len(model.prompts) == len(door.records()) == 1
        assert [message["content"] for message in context(door) if message["role"] == "user"] == [NARRATIVE]
