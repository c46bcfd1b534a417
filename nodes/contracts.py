"""What crosses the walls between rooms: plain JSON values in channels, and protocols for services.

Everything stored in a channel is a TypedDict of plain JSON, so no Python type name is ever written to a
checkpoint. Services (`Retriever`, `FactStore`, …) are protocols, bound to nodes when the graph is built.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, Protocol, TypedDict

InputKind = Literal["new_question", "clarification_reply", "retry", "unfinished_turn_input", "unknown"]
Kind = Literal["fact", "comparison", "narrative", "small_talk", "out_of_scope", "refused"]
Language = Literal["zh", "en"]
Slot = Literal["reference", "company", "period", "metric"]
AnswerKind = Literal[
    "fact",
    "comparison",
    "narrative",
    "not_found",
    "small_talk",
    "out_of_scope",
    "refused",
    "cancelled",
    "discarded",
    "stopped",
    "clarification",  # asked back where there is no conversation to reply in; never stored
]


class Request(TypedDict, total=False):
    """One request as a door hands it over. Only `text` is required; the gate fills in the rest."""

    request_id: str
    text: str
    received_at: str  # ISO 8601 with offset


class Turn(TypedDict):
    """The question being worked on. It is open until `answer` is present."""

    turn_id: str
    original_question: str
    # Equal to original_question byte for byte unless the user confirmed a suggestion.
    standalone_question: str
    standalone_reason: Literal["independent", "confirmed", "typed", "auto"]
    opened_at: str
    received_at: str  # of the request that opened the turn; relative periods count from here
    audience: str  # hash of the caller's effective permissions


class SubQuestion(TypedDict):
    """One question of several asked at once, with its own slots."""

    text: str
    kind: Literal["fact", "comparison", "narrative"]
    companies: list[str]
    periods: list[str]
    metrics: list[str]


class Intent(TypedDict):
    """What the current text says; made from the text and the company directory alone."""

    kind: Kind
    language: Language
    companies: list[str]  # company ids, in order of mention
    periods: list[str]  # canonical: "2023", "2023H1", "2023Q3"
    metrics: list[str]  # metric ids
    # Mentions that more than one company answers to: candidate ids in directory order.
    ambiguous: list[list[str]]
    sub_questions: list[SubQuestion]  # empty when one question is asked
    needs: list[Slot]  # open slots, in the order in which they are asked
    safety: str | None  # the screen's reason when kind is "refused"
    # Whether the text asks or requests something; "创业补贴" only names it. Absent: it does.
    asks: NotRequired[bool]
    unknown: NotRequired[list[str]]  # companies named, as written, that the directory does not hold
    everyone: NotRequired[bool]  # `companies` are all there are: "which company had the highest revenue"
    # It asks how figures grew, of all companies or in a period still to be said: over a year, or a period.
    grows: NotRequired[Literal["year", "step"]]


class Option(TypedDict):
    value: str
    label: str


class Clarification(TypedDict):
    """A pending question to the user. `reply` is what the gate received and clarify has not used yet."""

    slot: Slot
    mention: str | None  # the words that are unclear
    options: list[Option]
    page: int  # 1-based
    pages: int
    asked: int  # times asked; at most two re-asks, then the turn is closed
    prompt: str
    reply: str | None
    decision_digest: str


class Passage(TypedDict):
    """One passage of a document version, as retrieval returns it."""

    document_id: str
    version: str
    title: str
    source: str
    text: str
    start: int  # offsets in the document's text, in characters
    end: int
    passage_hash: str  # sha256 hex of `text`
    score: float
    valid_from: str | None
    valid_until: str | None


class Filters(TypedDict):
    """What narrows a retrieval besides the query. Built from the caller and the clock, never from history."""

    knowledge_base: str
    on_date: str  # ISO date; passages valid on this day


class Evidence(TypedDict):
    """What retrieval found for the question; empty passages are a finding too."""

    query: str
    filters: Filters
    passages: list[Passage]
    knowledge_version: str


class FactHit(TypedDict):
    company: str
    period: str
    metric: str
    value: str  # exact decimal
    unit: str
    document_id: str
    version: str
    title: str
    source: str


class FactLookup(TypedDict):
    """One fact looked up. `hit` is None when the store has no such fact for this caller.

    `others`, of a miss: periods of which this caller may see the figure, newest first, at most 4.
    """

    company: str
    period: str
    metric: str
    hit: FactHit | None
    others: NotRequired[list[str]]


class Citation(TypedDict):
    """Bound to document, version and passage hash, never to a position."""

    label: str  # "C1"
    document_id: str
    version: str
    title: str
    source: str
    passage: str
    passage_hash: str
    start: int
    end: int


class Suggestions(TypedDict):
    """Explicit questions a vague one may have meant; worded with the help of the window."""

    options: list[Option]
    degraded: bool  # the candidate analysis failed and the question was asked openly


class ChatMessage(TypedDict):
    """One half of the current pair that a chat client sees."""

    type: Literal["human", "ai"]
    content: str
    id: str


class WindowReport(TypedDict):
    """What the model saw of the history, in numbers."""

    turns: int
    omitted_turns: int
    cut_bytes: int
    bytes: int
    reasons: list[str]


class Usage(TypedDict):
    model: str
    prompt_tokens: int
    completion_tokens: int


class Answer(TypedDict):
    """How a turn ended. Its presence is what makes the turn finished."""

    kind: AnswerKind
    text: str
    citations: list[Citation]
    decision_digest: str
    knowledge_version: str | None
    window: WindowReport
    usage: Usage | None
    # The model's raw replies of this turn, in order, so that replay needs no model.
    replies: list[str]
    partial: NotRequired[bool]
    # [document id, version] of what the words may also come from, beside the citations: passages, earlier
    # answers and a summary that the model was shown. Whoever may not see one of them may not see the answer.
    informed_by: NotRequired[list[list[str]]]


class Outcome(TypedDict):
    """How the last request ended, for the doors and the request log."""

    status: Literal["completed", "needs_input", "failed", "stopped"] | None  # None: still under way
    input_kind: InputKind
    error_code: Literal["processing_failed", "unfinished_turn"] | None
    degraded: bool
    notice: str | None  # text for the user beside, or in place of, an answer
    turn_id: str | None  # the turn this request worked on; None where no turn was open
    message_id: str | None  # the chat message this request came as, so that it is never taken twice


@dataclass(frozen=True)
class Caller:
    """Who asks, with the permissions of this very request. Never stored; `audience` is its hash."""

    tenant: str = "local"
    user: str = "local"
    groups: frozenset[str] = frozenset()
    knowledge_base: str = "default"
    scopes: frozenset[str] = frozenset()  # what may be done; which sources may be seen is a matter of groups


@dataclass(frozen=True)
class ToldSummary:
    """What is left of the turns before the window, for the words of an answer; and all of its sources."""

    text: str = field(repr=False)
    sources: tuple[tuple[str, str], ...] = ()  # (document id, version)
    version: int = 0  # of the conversation's summary, counted from 1; for the log


@dataclass(frozen=True)
class Company:
    company_id: str
    name: str
    aliases: tuple[str, ...] = ()
    english_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Metric:
    metric_id: str
    name: str
    english_name: str
    synonyms: tuple[str, ...] = ()


class CompanyDirectory(Protocol):
    """Companies and metrics by name. Order is the directory's own and stable."""

    def companies(self) -> Sequence[Company]: ...

    def company(self, company_id: str) -> Company | None: ...

    def metrics(self) -> Sequence[Metric]: ...


class FactStore(Protocol):
    """Company x period x metric -> exact value. A miss is None; there is no near match."""

    def look_up(self, *, company: str, period: str, metric: str, caller: Caller) -> FactHit | None: ...

    def periods(self, *, company: str, metric: str, caller: Caller) -> Sequence[str]: ...


class Retriever(Protocol):
    """Passages for a query, already past both permission exits."""

    def retrieve(self, query: str, *, caller: Caller, on_date: str) -> Evidence: ...

    def knowledge_version(self) -> str: ...


class SourceGuard(Protocol):
    """Whether a caller may see every one of these (document id, version) pairs right now."""

    def __call__(self, caller: Caller, sources: Sequence[tuple[str, str]]) -> bool: ...


# Of a cited passage, for a reader who may see it: as it was; another version is in force; the text differs.
Standing = Literal["current", "superseded", "changed"]
StandingOf = Callable[[Sequence[Mapping[str, Any]]], list[Standing]]


@dataclass(frozen=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Prompt:
    """All that a provider may use for one narrative answer.

    `messages` end with the current question; `passages` are numbered [C1]… in order. A reader sees the labels
    of an answer renumbered in the order of their use.
    """

    question: str
    language: Language
    passages: Sequence[Passage]
    messages: Sequence[Message]
    max_output_tokens: int = 1024


@dataclass(frozen=True)
class Generated:
    """One piece of a generated text. The last piece of a stream carries the usage, where known."""

    text: str
    usage: Usage | None = None


class Provider(Protocol):
    """Writes a narrative answer from a prompt. Raises ProviderError; never returns half an error as text."""

    name: str

    def stream(self, prompt: Prompt) -> Iterator[Generated]: ...


class NodeError(Exception):
    """Root of the errors a node raises on purpose. Carries no user text."""


class ProviderError(NodeError):
    """The model gave no usable answer. The turn stays retryable."""


ReadIntent = Callable[[str, str], Intent]  # (text, received_at) -> what the text says
Emit = Callable[[str], None]  # releases checked text to the reader
Reset = Callable[[], None]  # tells the reader to drop the text released so far
Stopped = Callable[[], str | None]  # the reason for stopping, once there is one
Clock = Callable[[], str]  # now, ISO 8601 with milliseconds and +08:00
NewId = Callable[[], str]
JsonObject = Mapping[str, Any]
