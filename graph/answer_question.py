"""One question, answered without a conversation: the same turn as everywhere else, with nothing stored.

Earlier turns may be handed over as flat (role, text) pairs. They reach the model as words between the system
prompt and the question, under the limits of the window, and nothing else: no step but the answer sees them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from langgraph.runtime import RunControl

from checkpoint.window import Window, WindowLimits, window_from_pairs
from graph.build import Services, TurnGraph, build_graph
from graph.compose import fixed_caller, random_id, services_over, shanghai_now
from graph.run import TurnEvent, clarification_shown, lines_of, stream_turn
from graph.steps import RequestContext
from nodes.contracts import Answer, Caller, Language, Message, Outcome, Provider, Request, Retriever
from nodes.gate import check_text
from nodes.notices import closed
from nodes.reading.language import detect_language
from nodes.retrieve.documents import KnowledgeStore
from nodes.retrieve.exits import open_retriever

History = Sequence[tuple[str, str]]
LOCAL_CALLER = Caller()


def answer_question(
    question: str,
    store: KnowledgeStore,
    provider: Provider,
    *,
    history: History | None = None,
    caller: Caller = LOCAL_CALLER,
    received_at: str | None = None,
    retriever: Retriever | None = None,
    limits: WindowLimits = WindowLimits(),  # noqa: B008 - frozen
    topics: tuple[str, ...] = (),
) -> Answer:
    """The answer to `question` from what `store` holds for `caller`; words of narratives by `provider`.

    `history` is earlier (role, text) pairs, oldest first: "assistant" is the assistant, every other role
    counts as the user. It never shapes what is understood, allowed, looked up, found or cited; None is the
    same as leaving it out. A question that lacks something is asked back (kind "clarification"). Relative
    periods count from `received_at` (ISO 8601 with offset; now where it is None). Many questions are faster
    with one `retriever` (`open_retriever(store)`), which keeps its index.

    Raises BadTextError for a question that is blank, too long or broken, TypeError for a history or a text
    of the wrong type, ValueError for an item that is no pair, ProviderError when the model gives no answer.
    """
    services = services_over(
        store,
        retriever=retriever or open_retriever(store),
        provider=provider,
        topics=topics,
        limits=limits,
        follow_up="off",
        clock=shanghai_now,
    )
    ask = Ask(services, caller, request_of(question, received_at), history)
    return ask.answer()


def history_messages(
    history: History | None,
    *,
    limits: WindowLimits = WindowLimits(),  # noqa: B008 - frozen
    language: Language = "zh",
) -> list[Message]:
    """What a model is shown of this history; [] for None. Marks for what is left out are in `language`."""
    return [Message(role, text) for role, text in _window(history, limits, language).messages]


def request_of(question: str, received_at: str | None) -> Request:
    """Raises BadTextError."""
    request: Request = {"request_id": random_id(), "text": check_text(question)}
    return {**request, "received_at": received_at} if received_at else request


@dataclass(frozen=True)
class Ask:
    """One question with whose it is. Raises TypeError or ValueError for a history of another shape.

    A history is checked whatever is asked, so that a wrong one never goes unnoticed until a model is used.
    """

    services: Services
    caller: Caller
    request: Request
    history: History | None = None

    def __post_init__(self) -> None:
        _window(self.history, self.services.limits, "zh")

    @property
    def graph(self) -> TurnGraph:
        """The turn without a saver. Its answers see these pairs; a vague question is asked back openly."""
        language = detect_language(self.request["text"])
        window = _window(self.history, self.services.limits, language)
        services = replace(self.services, follow_up="off", restore=lambda *_, **__: window)
        return build_graph(services, None, fixed_caller(self.caller))

    def answer(self) -> Answer:
        """Errors of the steps propagate."""
        state = self.graph.invoke({"request": self.request}, context=RequestContext(self.caller))
        return state.get("answer") or asked_back(state)

    def events(self, control: RunControl | None = None) -> Iterator[TurnEvent]:
        """The events of `stream_turn`. Draining `control` with any reason but a user's stop ends it early."""
        yield from stream_turn(
            self, self.request, thread_id=self.request["request_id"], caller=self.caller, control=control
        )


def asked_back(state: dict[str, Any]) -> Answer:
    """What is said where no answer was given: the clarifying question, or what a command would need."""
    outcome = cast(Outcome, state["outcome"])
    pending = state.get("clarification")
    if pending is None:
        return closed("out_of_scope", outcome["notice"] or "", None)
    intent = state["intent"]
    text = lines_of(clarification_shown(pending, None, intent["language"]))
    return {**closed("clarification", text, intent), "decision_digest": pending["decision_digest"]}


def _window(history: History | None, limits: WindowLimits, language: Language) -> Window:
    return window_from_pairs(history, limits=limits, language=language)
