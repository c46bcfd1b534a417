"""Gate: what is this request? Decided from the persisted state and the current text alone.

Reads `request` or `messages` (the newer input), the open turn and the pending clarification.
Writes the opened or closed turn, the reply for clarify, and the request's outcome so far.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict
from uuid import uuid4

from nodes.contracts import (
    Answer,
    Caller,
    ChatMessage,
    Clarification,
    Clock,
    Evidence,
    FactLookup,
    InputKind,
    Intent,
    Language,
    NewId,
    ReadIntent,
    Request,
    Suggestions,
    Turn,
)
from nodes.contracts import Outcome as RequestOutcome
from nodes.notices import Notice, closed, notice, said
from nodes.reading.intent import answers_itself
from nodes.reading.language import detect_language
from nodes.reading.replies import Command, command

MAX_TEXT_CHARACTERS = 4000


class GateReads(TypedDict, total=False):
    request: Request | None
    messages: list[ChatMessage]
    turn: Turn | None
    intent: Intent | None
    clarification: Clarification | None
    answer: Answer | None
    outcome: RequestOutcome | None
    turn_count: int


class GateWrites(TypedDict, total=False):
    messages: list[ChatMessage]
    turn: Turn | None
    intent: Intent | None
    clarification: Clarification | None
    suggestions: Suggestions | None
    evidence: Evidence | None
    facts: list[FactLookup] | None
    answer: Answer | None
    outcome: RequestOutcome
    turn_count: int


class BadTextError(ValueError):
    """A request's text cannot be accepted. `code` is stable; the message says what to do."""

    def __init__(self, code: str, remedy: str) -> None:
        super().__init__(remedy)
        self.code = code


def check_text(text: object) -> str:
    """The text unchanged, or BadTextError: not a string, blank, over 4,000 characters, NUL, surrogates."""
    if not isinstance(text, str):
        raise BadTextError("text_not_a_string", "The question must be a string of text.")
    if not text.strip():
        raise BadTextError("text_empty", "The question is empty: type a question.")
    if len(text) > MAX_TEXT_CHARACTERS:
        raise BadTextError(
            "text_too_long",
            f"The question has {len(text)} characters: shorten it to {MAX_TEXT_CHARACTERS:,} at most.",
        )
    if "\x00" in text:
        raise BadTextError("text_has_nul", "The question contains a NUL character: remove it.")
    if any(unicodedata.category(character) == "Cs" for character in text):
        raise BadTextError(
            "text_has_surrogate", "The question contains half a character (a lone surrogate): retype it."
        )
    return text


def check_time(text: object) -> str:
    """The time unchanged, or BadTextError: relative periods and validity dates count from it."""
    try:
        aware = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        aware = None
    if not isinstance(text, str) or aware is None or aware.tzinfo is None:
        raise BadTextError(
            "time_unreadable",
            "received_at is no time with an offset: send ISO 8601 as 2026-11-30T10:00:00+08:00.",
        )
    return text


@dataclass(frozen=True)
class Incoming:
    """The newer of a request and a chat message, complete and checked."""

    text: str
    received_at: str
    message_id: str


@dataclass(frozen=True)
class Ruling:
    """One row of the gate's table."""

    input_kind: InputKind
    act: Callable[["Scene"], GateWrites]


@dataclass(frozen=True)
class Scene:
    """All that a ruling may look at."""

    state: GateReads
    incoming: Incoming
    caller: Caller
    new_id: NewId
    clock: Clock
    audience: Callable[[Caller], str]

    @property
    def language(self) -> Language:
        """Of the text itself; a bare command speaks the open turn's language."""
        intent = self.state.get("intent")
        if command(self.incoming.text) and intent:
            return intent["language"]
        return detect_language(self.incoming.text)


def make_gate(
    *, read_intent: ReadIntent, audience: Callable[[Caller], str], clock: Clock, new_id: NewId
) -> Callable[..., GateWrites]:
    def gate(state: GateReads, *, caller: Caller) -> GateWrites:
        incoming = take_input(state, clock=clock, new_id=new_id)
        ruling = rule(state, incoming, read_intent)
        scene = Scene(state, incoming, caller, new_id, clock, audience)
        writes = ruling.act(scene)
        outcome: RequestOutcome = {**writes["outcome"], "input_kind": ruling.input_kind}
        asked: ChatMessage = {"type": "human", "content": incoming.text, "id": incoming.message_id}
        replied = said(outcome["notice"], new_id()) if outcome["status"] and outcome["notice"] else []
        return {**writes, "outcome": outcome, "messages": [asked, *replied]}

    return gate


def take_input(state: GateReads, *, clock: Clock, new_id: NewId) -> Incoming:
    """The request if there is one (its channel lives for one step, so is never stale), else the message."""
    request = state.get("request")
    if request:
        return Incoming(
            check_text(request.get("text")),
            check_time(request.get("received_at") or clock()),
            request.get("request_id") or new_id(),
        )
    messages = state.get("messages") or []
    outcome = state.get("outcome")
    taken = outcome["message_id"] if outcome else None
    if messages and messages[-1]["type"] == "human" and messages[-1]["id"] != taken:
        return Incoming(check_text(messages[-1]["content"]), clock(), messages[-1]["id"])
    raise BadTextError("no_input", 'There is no new input: send {"request": {"text": "…"}}.')


def rule(state: GateReads, incoming: Incoming, read_intent: ReadIntent) -> Ruling:
    """The row of the table that holds for this state and text."""
    said_command = command(incoming.text)
    if not is_open(state):
        return _RULINGS_WHEN_CLOSED[said_command]
    clarification = state.get("clarification")
    if clarification is None or clarification["reply"] is not None:
        return _RULINGS_WHEN_UNFINISHED.get(said_command, _REFUSE)
    if said_command is None and replaces_pending(state, clarification, incoming, read_intent):
        return _REPLACE
    return _REPLY


def is_open(state: GateReads) -> bool:
    """A turn is open from its first question until its answer is stored."""
    return state.get("turn") is not None and state.get("answer") is None


def replaces_pending(
    state: GateReads, pending: Clarification, incoming: Incoming, read_intent: ReadIntent
) -> bool:
    """Whether the text is a complete question of its own rather than a reply to what was asked."""
    if pending["slot"] == "reference":
        return False
    asked = read_intent(incoming.text, incoming.received_at)
    if not answers_itself(asked):
        return False
    if asked["sub_questions"]:  # more than the missing piece is said
        return True
    waiting = state.get("intent")
    return waiting is None or not _repeats(asked, waiting, {option["value"] for option in pending["options"]})


def _repeats(asked: Intent, waiting: Intent, offered: set[str]) -> bool:
    """The pending question said again with the missing piece in it."""
    named = {*asked["companies"], *asked["periods"], *asked["metrics"]}
    known = {*waiting["companies"], *waiting["periods"], *waiting["metrics"]}
    return named - known <= offered and bool(named & offered)


def _outcome(scene: Scene, turn_id: str | None) -> RequestOutcome:
    return {
        "status": None,
        "input_kind": "unknown",
        "error_code": None,
        "degraded": False,
        "notice": None,
        "turn_id": turn_id,
        "message_id": scene.incoming.message_id,
    }


def _open(scene: Scene) -> GateWrites:
    """A new turn. Everything that belonged to the last one is reset, so none of it can appear in this."""
    turn: Turn = {
        "turn_id": scene.new_id(),
        "original_question": scene.incoming.text,
        "standalone_question": scene.incoming.text,
        "standalone_reason": "independent",
        "opened_at": scene.clock(),
        "received_at": scene.incoming.received_at,
        "audience": scene.audience(scene.caller),
    }
    return {
        "turn": turn,
        "intent": None,
        "clarification": None,
        "suggestions": None,
        "evidence": None,
        "facts": None,
        "answer": None,
        "outcome": _outcome(scene, turn["turn_id"]),
        "turn_count": scene.state.get("turn_count", 0) + 1,
    }


def _replace(scene: Scene) -> GateWrites:
    writes = _open(scene)
    writes["outcome"] = {**writes["outcome"], "notice": notice("replaced", scene.language)}
    return writes


def _reply(scene: Scene) -> GateWrites:
    pending = scene.state["clarification"]
    turn = scene.state["turn"]
    assert pending is not None and turn is not None  # noqa: S101, PT018 - the ruling looked
    return {
        "clarification": {**pending, "reply": scene.incoming.text},
        "outcome": _outcome(scene, turn["turn_id"]),
    }


def _retry(scene: Scene) -> GateWrites:
    """The open turn goes on at its first missing step, with the permissions of this very request."""
    turn = scene.state["turn"]
    assert turn is not None  # noqa: S101 - the ruling looked
    return {
        "turn": {**turn, "audience": scene.audience(scene.caller)},
        "outcome": _outcome(scene, turn["turn_id"]),
    }


def _discard(scene: Scene) -> GateWrites:
    turn = scene.state["turn"]
    assert turn is not None  # noqa: S101 - the ruling looked
    text = notice("discarded", scene.language)
    return {
        "answer": closed("discarded", text, scene.state.get("intent")),
        "clarification": None,
        "outcome": {**_outcome(scene, turn["turn_id"]), "status": "completed", "notice": text},
    }


def _refuse(scene: Scene) -> GateWrites:
    turn = scene.state["turn"]
    assert turn is not None  # noqa: S101 - the ruling looked
    return {
        "outcome": {
            **_outcome(scene, turn["turn_id"]),
            "status": "failed",
            "error_code": "unfinished_turn",
            "notice": notice("unfinished_turn", scene.language),
        }
    }


def _say(name: Notice) -> Callable[[Scene], GateWrites]:
    def act(scene: Scene) -> GateWrites:
        text = notice(name, scene.language)
        return {"outcome": {**_outcome(scene, None), "status": "completed", "notice": text}}

    return act


_NOTHING_PENDING = Ruling("clarification_reply", _say("nothing_pending"))
_RULINGS_WHEN_CLOSED: dict[Command | None, Ruling] = {
    None: Ruling("new_question", _open),
    "retry": Ruling("retry", _say("nothing_to_retry")),
    "discard": Ruling("unfinished_turn_input", _say("nothing_to_discard")),
    "next": _NOTHING_PENDING,
    "previous": _NOTHING_PENDING,
    "cancel": _NOTHING_PENDING,
}
_RULINGS_WHEN_UNFINISHED: dict[Command | None, Ruling] = {
    "retry": Ruling("retry", _retry),
    "discard": Ruling("unfinished_turn_input", _discard),
}
_REFUSE = Ruling("unfinished_turn_input", _refuse)
_REPLACE = Ruling("new_question", _replace)
_REPLY = Ruling("clarification_reply", _reply)


def pair_of_messages(current: list[Any] | None, new: Any) -> list[ChatMessage]:
    """Reducer of `messages`: the last user message, then its answer; never a growing list."""
    incoming = [_plain(message) for message in (new if isinstance(new, list) else [new])]
    asked = [index for index, message in enumerate(incoming) if message["type"] == "human"]
    if asked:
        return incoming[asked[-1] :][:2]
    kept = [message for message in current or [] if message["type"] == "human"][-1:]
    return [*kept, *incoming[-1:]] if incoming else list(current or [])


def _plain(message: Any) -> ChatMessage:
    """A chat message as plain JSON, from a dict with role or type, or from a LangChain message."""
    is_dict = isinstance(message, dict)
    kind = (message.get("role") or message.get("type")) if is_dict else message.type
    content = message.get("content") if is_dict else message.content
    identity = message.get("id") if is_dict else message.id
    return {
        "type": "human" if kind in ("user", "human") else "ai",
        "content": content if isinstance(content, str) else _joined(content),
        "id": identity
        or str(uuid4()),  # as LangGraph's own reducer does: an id tells a new message from an old
    }


def _joined(blocks: Any) -> str:
    """The text of a message given as content blocks."""
    texts = [block.get("text", "") if isinstance(block, dict) else str(block) for block in blocks or ()]
    return "".join(texts)
