"""A model that fails, says nothing or dies: no stand-in for an answer is ever stored or shown to it."""

import pytest
from faults.parts import ANSWERED, FACT, NARRATIVE, OTHER_FACT, OTHER_NARRATIVE, Home, Model, forms, rows
from integration.door import endings


@pytest.mark.parametrize("fault", ["error", "blank", "dies"])
@pytest.mark.parametrize("way_out", ["/retry", "/discard"])
def test_a_failed_answer_leaves_no_placeholder(place: Home, model: Model, fault: str, way_out: str) -> None:
    model.faults = [fault]
    with place.door(model) as door:
        failed = door.ask(NARRATIVE)
        assert endings(failed) == ["done"]
        assert (failed[-1][1]["status"], failed[-1][1]["error_code"]) == ("failed", "processing_failed")
        assert forms(door) == [("USER", "FAILED")]
        unrelated = door.ask(FACT)[-1][1]
        assert (unrelated["error_code"], unrelated["original_question"]) == ("unfinished_turn", NARRATIVE)
        assert not unrelated["answer"]
        assert door.ask(way_out)[-1][1]["status"] == "completed"
        model.prompts.clear()
        for text in (FACT, OTHER_NARRATIVE, OTHER_FACT):
            done = door.ask(text)[-1][1]
            assert (done["status"], done["original_question"]) == ("completed", text)
        assert all(message.content.strip() for prompt in model.prompts for message in prompt.messages)
        assert (NARRATIVE in model.shown()) is (way_out == "/retry")
        assert forms(door)[-6:] == ANSWERED * 3
        assert all(row["content"].strip() for row in rows(door))
