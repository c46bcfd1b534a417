"""The thread and the durable record: what is shown is what the model is shown, whichever of them fails."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from faults.parts import ANSWERED, FACT, NARRATIVE, OTHER_NARRATIVE, Home, Model, agreed, context, forms, rows
from store_fixtures import ending

from checkpoint.conversations.errors import StoreUnavailable
from checkpoint.errors import CheckpointUnavailable


class FailsOnce:
    """The real thing, of which one call fails: before it has done what was asked, or after."""

    def __init__(
        self, inner: Any, method: str, when: Callable[..., bool], error: Exception, *, is_done: bool
    ) -> None:
        self._inner, self._method, self._when, self._error = inner, method, when, error
        self._is_done, self.failed = is_done, 0

    def __getattr__(self, name: str) -> Any:
        work = getattr(self._inner, name)
        if name != self._method:
            return work

        return ending(work, self._fail) if name == "saving_reply" else partial(self._fail, work)

    def _fail(self, work: Callable[..., Any], *args: Any, **more: Any) -> Any:
        if self.failed or not self._when(*args, **more):
            return work(*args, **more)
        self.failed += 1
        if self._is_done:
            work(*args, **more)
        raise self._error


AWAY = CheckpointUnavailable("put", "no answer", "Try again")
NOT_SAVED = StoreUnavailable("saving_reply", "no answer", "Try again")
Saves = {
    "the checkpoint": ("put", lambda _config, held, *_rest: bool(held["channel_values"].get("answer"))),
    "its writes": ("put_writes", lambda _config, writes, *_rest, **_more: "answer" in dict(writes)),
    "the record": ("put_request", lambda record, **_more: record["status"] != "running"),
}


def breaking(place: Home, model: Model, what: str, *, is_done: bool) -> Any:
    """A door at which one save of the first answer is reported lost: before it was done, or after."""
    if what == "the row":
        return place.door(
            model,
            store=lambda kept: FailsOnce(
                kept, "saving_reply", lambda *_a, **_m: True, NOT_SAVED, is_done=is_done
            ),
        )
    method, when = Saves[what]

    def plant(saver: Any) -> Any:
        # A graph takes nothing but a saver, so the fault is planted in the real one.
        failing = FailsOnce(copy.copy(saver), method, when, AWAY, is_done=is_done)
        setattr(saver, method, getattr(failing, method))
        return saver

    return place.door(model, saver=plant)


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("what", ["the row", "the record", "its writes", "the checkpoint"])
def test_what_is_shown_is_what_the_model_is_shown(
    place: Home, model: Model, what: str, is_done: bool
) -> None:
    with breaking(place, model, what, is_done=is_done) as door:
        told = door.ask(NARRATIVE)
        door.wait_idle()
        shown = rows(door)
        assert rows(door) == shown
        is_answered = (what, is_done) != ("the checkpoint", False)
        if is_answered:
            assert forms(door) == ANSWERED
            assert [message["role"] for message in context(door)] == ["user", "assistant"]
        else:
            assert told[-1][1]["status"] == "failed"
            assert forms(door) == [("USER", "FAILED")]
            assert context(door) == []
            refused = door.ask(FACT)[-1][1]
            assert refused["error_code"] == "unfinished_turn"
            retried = door.ask("/retry")[-1][1]
            assert (retried["status"], retried["original_question"]) == ("completed", NARRATIVE)
        model.prompts.clear()
        assert door.ask(OTHER_NARRATIVE)[-1][1]["status"] == "completed"
        (prompt,) = model.prompts
        assert [message.role for message in prompt.messages] == ["system", "user", "assistant", "user"]
        assert prompt.messages[1].content == NARRATIVE
        answers = [row for row in rows(door) if row["role"] == "ASSISTANT"]
        assert [row["status"] for row in answers] == ["COMPLETE", "COMPLETE"]
        assert answers[0]["content"].split("[")[0] == prompt.messages[2].content.split("[")[0].rstrip("\\")
        assert agreed(door) is is_answered  # a retry is shown as what was typed
