"""What crosses the wire: the contract of one turn and its answer. Strict, frozen, the one source of truth.

The JSON Schema, the Go structs and the checks on both sides are made from these fields. A list that is null
is empty; a nullable text that is "" is null, since that is what a Go zero value sends.
"""

from datetime import datetime
from math import isfinite
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from api.contract.aliases import Aliases
from nodes.gate import BadTextError, check_text

MAX_INT = 2**63 - 1
MAX_NAME = 512

_Item = TypeVar("_Item")
_UNKNOWN_SLOT = PydanticCustomError("unknown_slot", "is no slot of this state")


def _sound(text: str) -> str:
    """UTF-8 cannot carry half a character, and many stores no NUL."""
    if "\0" in text:
        raise PydanticCustomError("text_has_nul", "must not contain NUL")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise PydanticCustomError("text_has_surrogate", "must not contain a lone surrogate")
    return text


def _question(text: str) -> str:
    try:
        return check_text(text)
    except BadTextError as error:
        raise PydanticCustomError(error.code, "{remedy}", {"remedy": str(error)}) from None


def _visible(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("not_blank", "must not be blank")
    return text


def _empty_if_null(value: Any) -> Any:
    return [] if value is None else value


def _null_if_blank(value: Any) -> Any:
    return None if isinstance(value, str) and not value.strip() else value


_NOT_FLAT = PydanticCustomError("profile_value", "must be a scalar or a list of scalars, and finite")


def _fault_in_extra(name: str, value: Any) -> PydanticCustomError | None:
    """A profile is open, but flat: a scalar or a list of scalars under each name."""
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, str | int | float | None):
            return _NOT_FLAT
        if isinstance(item, float) and not isfinite(item):
            return _NOT_FLAT
        try:
            _sound(name + (item if isinstance(item, str) else ""))
        except PydanticCustomError as error:
            return error
    return None


Text = Annotated[str, AfterValidator(_sound)]
Name = Annotated[Text, Field(min_length=1, max_length=MAX_NAME)]
Question = Annotated[str, AfterValidator(_question)]
Visible = Annotated[Text, AfterValidator(_visible)]
NULL_IF_BLANK = BeforeValidator(_null_if_blank)
Maybe = Annotated[Text | None, NULL_IF_BLANK]
Many = Annotated[list[_Item], BeforeValidator(_empty_if_null)]
Count = Annotated[int, Field(ge=0, le=MAX_INT)]


class Wire(BaseModel):
    """Other types than declared and unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, str_strip_whitespace=False)


class RecentMessage(Wire):
    """One message of the conversation, for the words of an answer only."""

    role: Text = Field(description="user or assistant; any other role counts as the user.")
    content: Text
    turn_id: Text
    timestamp: Text = Field(description="RFC 3339. A Go zero time, and what is no time, is unknown.")

    @property
    def at(self) -> datetime | None:
        return known_time(self.timestamp)


class DialogueState(Wire):
    """What every domain's state has. A domain adds its own fields and names its slots."""

    other_names: ClassVar[Aliases] = {}

    domain: Annotated[str | None, NULL_IF_BLANK] = Field(
        None, description="Which state model this is; consultation where it is left out."
    )
    stage: Text = Field(description="collecting_details, ready or red_flag as this service sets it.")
    red_flags: Many[Text] = Field(description="Warning signs. None is ever dropped.")
    missing_slots: Many[Text] = Field(description="Slots that still have no value.")
    last_question: Maybe = Field(None, description="The question that was asked last.")
    pending_answer_for: Many[Text] = Field(description="The slots that it asked for.")

    @model_validator(mode="before")
    @classmethod
    def _own_names(cls, value: Any) -> Any:
        """The slots' own names for their aliases, as keys and in lists of slots."""
        if not isinstance(value, dict):
            return value
        renamed: dict[Any, Any] = {}
        for key, item in value.items():
            name = cls.other_names.get(key, key)
            if name in renamed:
                raise PydanticCustomError(
                    "alias_conflict", "{name} is given twice, by its name and by an alias", {"name": name}
                )
            renamed[name] = cls._slots(item) if name in ("missing_slots", "pending_answer_for") else item
        return renamed

    @field_validator("missing_slots", "pending_answer_for")
    @classmethod
    def _known_slots(cls, names: list[str]) -> list[str]:
        """A slot that is no field of this state has no place for its answer."""
        common = set(DialogueState.model_fields)
        unknown = [at for at, name in enumerate(names) if name in common or name not in cls.model_fields]
        if unknown:
            raise ValidationError.from_exception_data(
                cls.__name__, [InitErrorDetails(type=_UNKNOWN_SLOT, loc=(at,), input=None) for at in unknown]
            )
        return list(dict.fromkeys(names))

    @classmethod
    def _slots(cls, names: Any) -> Any:
        if not isinstance(names, list):
            return names
        return [cls.other_names.get(name, name) if isinstance(name, str) else name for name in names]


class UserProfile(Wire):
    """Who asks, for the words of an answer only. Other flat fields than these are welcome."""

    model_config = ConfigDict(extra="allow")

    age: int | None = Field(None, ge=0, le=200)
    gender: Maybe = None
    exercise_habit: Maybe = None
    known_limitations: Many[Text] = Field(default_factory=list)

    @model_validator(mode="after")
    def _is_flat(self) -> "UserProfile":
        judged = [(name, _fault_in_extra(name, value)) for name, value in (self.model_extra or {}).items()]
        faults = [InitErrorDetails(type=fault, loc=(name,), input=None) for name, fault in judged if fault]
        if faults:
            raise ValidationError.from_exception_data("UserProfile", faults)
        return self


class RetrievedKnowledge(Wire):
    """Evidence that the backend supplies. It is cited by its source."""

    title: Text = Field(max_length=MAX_NAME)
    content: Visible
    source: Annotated[Name, AfterValidator(_visible)]
    relevance_score: float = Field(allow_inf_nan=False)


class ContextContractMeta(Wire):
    """Which contract this is, and what it holds."""

    context_version: Text = Field(description="Semantic version of the contract.")
    token_budget: int = Field(
        ge=1, le=MAX_INT, description="Tokens for one prompt, with the room for its answer reserved in it."
    )
    included_message_count: Count = Field(description="How many recent_messages were sent.")
    summary_version: Count = Field(description="0 exactly when there is no summary.")


State = TypeVar("State", bound=DialogueState)


class ContextBundle(Wire, Generic[State]):
    """What the turn may know besides the message."""

    recent_messages: Many[RecentMessage] = Field(description="Oldest first.")
    conversation_summary: Maybe = None
    consultation_state: State
    user_profile: UserProfile | None = None
    retrieved_knowledge: list[RetrievedKnowledge] | None = Field(
        None,
        description="Left out: this service searches its own knowledge. Null and [] say that nothing was "
        "found, and nothing is searched.",
    )

    @model_validator(mode="before")
    @classmethod
    def _null_knowledge_is_none_found(cls, value: Any) -> Any:
        """A null list is empty, so only a key that is not there is absent."""
        if isinstance(value, dict) and value.get("retrieved_knowledge", ...) is None:
            return {**value, "retrieved_knowledge": []}
        return value


class ContextContract(Wire, Generic[State]):
    """All that one turn may know."""

    session_id: Name
    turn_id: Name
    user_message: Question = Field(description="The question: 1 to 4,000 characters.")
    context: ContextBundle[State]
    meta: ContextContractMeta


class AnswerSource(Wire):
    """One cited passage, bound to document, version and hash."""

    label: str
    title: str
    source: str
    document_id: str
    version: str = Field(description="Of supplied knowledge: the SHA-256 of its content.")
    passage_hash: str
    passage: str


class WindowSeen(Wire):
    """What a model saw of recent_messages."""

    turns: Count
    omitted_turns: Count
    cut_bytes: Count
    bytes: Count
    reasons: list[str]


class Omission(Wire):
    """Something that was sent and not used."""

    part: str = Field(description="retrieved_knowledge, recent_messages, conversation_summary, ...")
    reason: str = Field(description="not_permitted, duplicate, over_token_budget, over_byte_limit, ...")
    count: Count
    sources: list[str] = Field(description="The sources of omitted knowledge.")


class TokensUsed(Wire):
    """The budget and what the prompt took of it."""

    budget: Count
    prompt: Count = Field(description="By the stated estimate; 0 where no prompt was made.")


class ModelUsage(Wire):
    """What the model says it used."""

    model: str
    prompt_tokens: Count
    completion_tokens: Count


class ContextAnswerMeta(Wire):
    """How the answer came about."""

    context_version: str = Field(description="The version that is spoken here.")
    request_id: str
    status: str = Field(description="completed, or needs_input while something is asked back.")
    kind: str = Field(description="narrative, fact, comparison, not_found, refused, ... or question.")
    language: str
    degraded: bool
    question: str | None = Field(description="What was answered; null where only a question was asked back.")
    retrieval: str = Field(description="supplied, own or none.")
    filled_slots: list[str]
    new_red_flags: list[str]
    decision_digest: str
    window: WindowSeen
    tokens: TokensUsed
    omitted: list[Omission]
    ignored_fields: list[str] = Field(description="Fields of a newer minor version that are not known here.")
    usage: ModelUsage | None


class ContextAnswer(Wire, Generic[State]):
    """The answer to one contract."""

    session_id: str
    turn_id: str
    answer: str
    sources: list[AnswerSource]
    consultation_state: State
    meta: ContextAnswerMeta


def known_time(text: str) -> datetime | None:
    """The time that an RFC 3339 text names; None for Go's zero time and for what is no time with a zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None and found.year > 1 else None
