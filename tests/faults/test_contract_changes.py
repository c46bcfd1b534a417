"""The contract's version changes while something is asked back: the reply is read by what is sent now."""

from typing import Any

import pytest
from integration.contract_sender import FRESH, KNEE, Sender, contract

from api.contract.parsing import ContractError
from graph.compose import Assistant


@pytest.fixture
def sender(assistant: Assistant) -> Sender:
    return Sender(assistant)


def asked_back(sender: Sender) -> dict[str, Any]:
    """The state of a consultation in which something waits for its reply, as version 1.0.0 gave it."""
    state: dict[str, Any] = FRESH
    for message in ("我膝盖有下坠感", "大概一周了", "走路的时候会加重"):
        state = sender.send(contract(message, state))["consultation_state"]
    assert state["pending_answer_for"]
    return state


def at(version: str, message: str, state: dict[str, Any], **more: Any) -> dict[str, Any]:
    sent = contract(message, state, **more)
    sent["meta"]["context_version"] = version
    return sent


def test_a_newer_minor_version_goes_on_with_what_is_pending(sender: Sender) -> None:
    """It may know slots that are not known here: they are passed over and told, and shape nothing."""
    state = asked_back(sender)
    by_this = sender.send(at("1.0.0", "疼痛6分，没有肿", state))
    newer = {**state, "gait": "跛行", "pending_answer_for": [*state["pending_answer_for"], "gait"]}
    by_newer = sender.send(at("1.7.0", "疼痛6分，没有肿", newer))
    assert by_newer["meta"]["ignored_fields"]
    assert all("consultation_state" in path for path in by_newer["meta"]["ignored_fields"])
    for name in ("answer", "consultation_state"):
        assert by_newer[name] == by_this[name]
    assert by_newer["meta"]["filled_slots"] == by_this["meta"]["filled_slots"] == ["pain_level", "swelling"]
    assert by_newer["meta"]["decision_digest"] == by_this["meta"]["decision_digest"]
    # Back at the older one, it goes on as if nothing had been.
    done = sender.send(at("1.0.0", "没有外伤", by_newer["consultation_state"], knowledge=[KNEE]))
    assert done["consultation_state"]["stage"] == "ready"


@pytest.mark.parametrize("version", ["2.0.0", "0.9.0"])
def test_another_major_version_is_refused_and_moves_nothing(sender: Sender, version: str) -> None:
    """What is pending under one major version is never filled by the rules of another."""
    state = asked_back(sender)
    with pytest.raises(ContractError) as refused:
        sender.send(at(version, "疼痛6分，没有肿", state))
    (fault,) = refused.value.faults
    assert (fault.path, fault.rule) == ("meta.context_version", "unsupported_version")
    after = sender.send(at("1.0.0", "疼痛6分，没有肿", state))
    assert after["meta"]["filled_slots"] == ["pain_level", "swelling"]


def test_a_pending_slot_that_is_not_known_is_named_under_the_version_that_should_know_it(
    sender: Sender,
) -> None:
    """Under this version or an older patch of it: no reply fills a slot by its place in a list."""
    state = asked_back(sender)
    renamed = {**state, "pending_answer_for": ["gait", *state["pending_answer_for"]]}
    with pytest.raises(ContractError) as refused:
        sender.send(at("1.0.9", "疼痛6分，没有肿", renamed))
    (fault,) = refused.value.faults
    assert (fault.path, fault.rule) == ("context.consultation_state.pending_answer_for.0", "unknown_slot")


def test_a_reply_is_checked_against_what_is_still_asked(sender: Sender) -> None:
    """The newer side has asked for something else meanwhile: a bare no answers that, and not the old list."""
    state = asked_back(sender)
    moved = {**state, "pending_answer_for": ["trauma"], "last_question": "最近有没有受过外伤？"}
    answer = sender.send(at("1.3.0", "没有", moved))
    assert answer["meta"]["filled_slots"] == ["trauma"]
    left = answer["consultation_state"]
    assert (left["pain_level"], left["swelling"], left["trauma"]) == (None, None, "无")
    assert set(left["missing_slots"]) == {"pain_level", "swelling"}
