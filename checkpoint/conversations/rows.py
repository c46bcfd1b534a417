"""What the store hands out: frozen values, and how a row becomes one."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, NamedTuple, TypeVar
from uuid import UUID

from sqlalchemy import RowMapping

Status = Literal["ACTIVE", "ARCHIVED", "DELETED"]
Role = Literal["USER", "ASSISTANT", "SYSTEM"]
MessageStatus = Literal["COMPLETE", "PARTIAL", "FAILED"]
Item = TypeVar("Item")


class Stamp(NamedTuple):
    """The id and the time of a row to be written."""

    id: UUID
    at: datetime


@dataclass(frozen=True)
class Owner:
    """Whose a conversation is. Both must match on every read and write."""

    tenant_id: str
    user_id: str


@dataclass(frozen=True)
class Conversation:
    id: UUID
    external_id: str
    tenant_id: str
    user_id: str
    knowledge_base_id: str
    title: str | None
    summary: str | None = field(repr=False)
    summary_message_sequence: int
    status: Status
    created_at: datetime
    updated_at: datetime

    @property
    def owner(self) -> Owner:
        return Owner(self.tenant_id, self.user_id)


@dataclass(frozen=True)
class StoredMessage:
    """One row. `sources` are as they were stored: show them through sources.show only."""

    id: UUID
    conversation_id: UUID
    sequence_no: int
    role: Role
    content: str = field(repr=False)
    standalone_question: str | None = field(repr=False)
    sources: list[dict[str, Any]] | None = field(repr=False)
    model: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    trace_id: str | None
    request_id: str | None
    client_message_id: str | None
    status: MessageStatus
    feedback: dict[str, Any] | None = field(repr=False)
    created_at: datetime


@dataclass(frozen=True)
class Page(Generic[Item]):
    """Some rows in order, and the cursor of the next page where there is one."""

    items: list[Item]
    next_cursor: str | None


@dataclass(frozen=True)
class Place:
    """Where a question belongs: the conversation of this id, which must exist, or else of this name."""

    name: str
    knowledge_base: str
    conversation_id: UUID | None = None


@dataclass(frozen=True)
class Question:
    """A request's text as it is saved before anything is done with it."""

    request_id: str
    content: str = field(repr=False)
    client_message_id: str | None = None
    trace_id: str | None = None


@dataclass(frozen=True)
class Reply:
    """What is saved of an answer. PARTIAL: it was interrupted, and `content` is what had been shown."""

    content: str = field(repr=False)
    status: Literal["COMPLETE", "PARTIAL"] = "COMPLETE"
    sources: list[dict[str, Any]] = field(default_factory=list, repr=False)
    standalone_question: str | None = field(default=None, repr=False)
    model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    # The question stands as it was saved a moment ago, so its row need not be written again.
    is_as_asked: bool = False


@dataclass(frozen=True)
class Saved:
    """What saving a question found or made. `answer` is there when the same message was answered before."""

    conversation: Conversation
    message: StoredMessage
    answer: StoredMessage | None


@dataclass(frozen=True)
class Receipt:
    """What deleting a conversation hid, and when the purge will remove it."""

    receipt_id: UUID
    conversation_id: UUID
    external_id: str
    deleted_at: datetime
    purge_after: datetime
    messages: int


def conversation_of(row: RowMapping) -> Conversation:
    return Conversation(**row)


def message_of(row: RowMapping) -> StoredMessage:
    return StoredMessage(**row)
