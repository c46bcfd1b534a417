"""Errors of the durable record: one root below the room's own, each with what to do."""

from typing import TYPE_CHECKING

from checkpoint.errors import CheckpointError

if TYPE_CHECKING:
    from checkpoint.conversations.rows import Conversation


class ConversationStoreError(CheckpointError):
    """Root of what the conversation store raises on purpose. Carries ids, never a text of the user's."""


class ConversationNotFoundError(ConversationStoreError):
    """No such conversation for this owner: unknown, someone else's and deleted look the same."""

    def __init__(self, conversation_id: object) -> None:
        super().__init__(f"conversation {conversation_id} was not found: check the id, or create one")
        self.conversation_id = conversation_id


class MessageNotFoundError(ConversationStoreError):
    """No such message in this conversation, or none that can take what was asked."""

    def __init__(self, message_id: object) -> None:
        super().__init__(f"message {message_id} was not found in this conversation: check the id")
        self.message_id = message_id


class MessageIdReusedError(ConversationStoreError):
    """The client's own id stands for another text already."""

    def __init__(self, conversation_id: object) -> None:
        super().__init__(
            f"the client message id stands for another text in conversation {conversation_id}: use a new id"
        )
        self.conversation_id = conversation_id


class UnsettledError(ConversationStoreError):
    """An earlier question waits for its answer or its mark: repair the conversation, then try again."""

    def __init__(self, conversation: "Conversation") -> None:
        super().__init__(f"conversation {conversation.id} has an unanswered question: repair it first")
        self.conversation = conversation


class NameTakenError(ConversationStoreError):
    """The owner has a conversation of this name."""

    def __init__(self) -> None:
        super().__init__("a conversation of this name exists already: use it, or choose another name")


class BadCursorError(ConversationStoreError, ValueError):
    """A cursor that this listing did not give out."""

    def __init__(self) -> None:
        super().__init__("the cursor does not belong to this listing: start again without one")


class StoreUnavailable(ConversationStoreError):  # noqa: N818 - like the saver's CheckpointUnavailable
    """The database did not do it; nothing of the transaction was kept. Trying again is safe."""

    def __init__(self, doing: str, problem: str, remedy: str) -> None:
        super().__init__(f"{doing}: {problem}. {remedy}")
        self.doing = doing
        self.remedy = remedy


class StoreBusyError(StoreUnavailable):
    """Others held the database or all its connections for longer than the time-out."""


class StoreReadOnlyError(StoreUnavailable):
    """The database can be read but not written."""


class StoreFullError(StoreUnavailable):
    """No room is left for what should be written."""


class StoreDamagedError(StoreUnavailable):
    """The file is no database, or is damaged."""


class StoreRevisionError(StoreUnavailable):
    """The tables are those of another release than this one."""
