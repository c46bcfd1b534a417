"""Every operation of the HTTP door as its document tells it: name, purpose, and how it can refuse.

The only such table. A test holds it against the routes: none is missing here, and none is here that is not
served. `codes` are the problems of this operation alone; document.py adds what all of a kind have.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Operation:
    """`name` is the operationId: clients are generated from it, so it never changes."""

    name: str
    tag: str
    summary: str
    description: str
    codes: tuple[str, ...] = ()
    links: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # operation -> its parameters


TAGS: Mapping[str, str] = {
    "chat": "Asking with a stream of events, stopping, following again.",
    "conversations": "The durable record: what was asked and answered, for its owner alone.",
    "threads": "The steps of a conversation as they are stored: records, window, checkpoints, forks.",
    "stateless": "One question or one turn; nothing of it is stored.",
    "operation": "Whether the service lives and what it does. No caller is needed.",
}

_DATABASE = (*("database_unavailable", "database_read_only", "database_full", "database_of_another_release"),)
_WORKER = ("pool_full", "caller_limit")
_OF_FORK = {
    name: {"thread_id": "$response.body#/thread_id"}
    for name in ("list_requests", "list_checkpoints", "get_window", "delete_thread")
}
_OF_MESSAGE = {
    "rate_message": {
        "conversation_id": "$response.body#/conversationId",
        "message_id": "$response.body#/assistantMessageId",
    }
}
_TURN = ("thread_busy", "invalid_text", "message_id_reused", "shutting_down", "store_unavailable")
_FAILED = ("processing_failed", "unfinished_turn", "lease_lost", "run_vanished")
_OF_CONVERSATION = {
    name: {"conversation_id": "$response.body#/id"}
    for name in (
        *("get_conversation", "list_messages", "send_message", "rename_conversation"),
        *("archive_conversation", "restore_conversation", "export_conversation", "delete_conversation"),
    )
}

OPERATIONS: Mapping[tuple[str, str], Operation] = {
    ("post", "/api/chat"): Operation(
        "chat",
        "chat",
        "Ask, reply or command; answers as a stream of events",
        "Begins the caller's conversation of this name, or goes on with it. `message` is a question, a reply "
        "to what was asked back, or a command such as `/retry` or `/discard`. The run belongs to nobody's "
        "connection: after a lost one, follow it again by its `request_id`. The same `client_message_id` (or "
        "`Idempotency-Key` header) with the same message gives the same result and makes no second turn.",
        ("invalid_body", *_TURN, *_WORKER, *_DATABASE),
    ),
    ("post", "/api/chat/stop"): Operation(
        "stop_chat",
        "chat",
        "Stop the running request of a thread",
        "Ends it at its next step or sentence, in whatever process it runs. Question and partial text are "
        "kept, marked as stopped; the next question simply works. `stopping` is false when nothing ran.",
        ("not_found", "invalid_body", "store_unavailable", *_DATABASE),
    ),
    ("get", "/api/chat/{request_id}/events"): Operation(
        "follow_request",
        "chat",
        "Follow a request again after a lost connection",
        "Goes on after `Last-Event-ID`. Where some events are no longer kept, a `reset` with the reason "
        "`gap` says so and the stored outcome follows. 204 when the last event has arrived already.",
        ("not_found", "invalid_body", "store_unavailable", *_DATABASE),
    ),
    ("get", "/api/threads/{thread_id}/requests"): Operation(
        "list_requests",
        "threads",
        "The requests of a thread, oldest first",
        "What was asked and how it ended: the records that Redis keeps, for as long as it keeps them.",
        ("not_found", "invalid_body", "store_unavailable"),
    ),
    ("get", "/api/threads/{thread_id}/window"): Operation(
        "get_window",
        "threads",
        "What a model would see of a thread",
        "The turns in the window as messages, and how many were left out or cut, and why. History may shape "
        "the words of an answer; it decides nothing.",
        ("not_found", "invalid_body", "store_unavailable"),
    ),
    ("get", "/api/threads/{thread_id}/checkpoints"): Operation(
        "list_checkpoints",
        "threads",
        "The stored steps of a thread, newest first",
        "One item a checkpoint: where the conversation stood, not the state itself. `next_before` of a page "
        "is `before` of the next.",
        ("not_found", "invalid_body", "store_unavailable"),
    ),
    ("post", "/api/threads/{thread_id}/fork"): Operation(
        "fork_thread",
        "threads",
        "Copy a branch into a new conversation",
        "Everything up to `checkpoint_id`, or the latest step, becomes a conversation of its own; the old "
        "one stays as it is. All or nothing.",
        ("not_found", "invalid_body", "name_taken", "shutting_down", "store_unavailable", *_DATABASE),
        _OF_FORK,
    ),
    ("delete", "/api/threads/{thread_id}"): Operation(
        "delete_thread",
        "threads",
        "Erase a thread",
        "Ends its running request and removes its steps, records and context; a conversation of that name is "
        "deleted with it.",
        ("not_found", "invalid_body", "store_unavailable", *_DATABASE),
    ),
    ("post", "/v1/ask"): Operation(
        "ask",
        "stateless",
        "Answer one question without a conversation",
        "`history` are earlier turns as [role, text] pairs. They may shape the words of a narrative answer "
        "and nothing else. Nothing is stored.",
        ("invalid_body", "invalid_text", "processing_failed", *_WORKER),
    ),
    ("post", "/v1/ask/stream"): Operation(
        "ask_stream",
        "stateless",
        "Answer one question without a conversation, as a stream of events",
        "`done` carries the body of `POST /v1/ask`. Nothing is stored, so it cannot be followed again.",
        ("invalid_body", "invalid_text", *_WORKER),
    ),
    ("post", "/v1/context/turns"): Operation(
        "answer_contract",
        "stateless",
        "Answer one turn of a conversation that the caller owns",
        "A Context Contract in, the answer and the new consultation state out. Nothing is stored. A contract "
        "that breaks a rule is refused with the path of each field and the rule. Supplied knowledge that is "
        "not ours needs the `contract` scope.",
        ("invalid_contract", "unsupported_context_version", "processing_failed", *_WORKER),
    ),
    ("post", "/v1/context/turns/stream"): Operation(
        "answer_contract_stream",
        "stateless",
        "Answer one turn of a conversation that the caller owns, as a stream of events",
        "The events of `POST /api/chat`; `created` names session and turn, `done` carries the body of "
        "`POST /v1/context/turns`.",
        ("invalid_contract", "unsupported_context_version", *_WORKER),
    ),
    ("post", "/conversations"): Operation(
        "create_conversation",
        "conversations",
        "Begin a conversation",
        "Without a title it gets one from its first question. `externalId` is its name for `POST /api/chat`.",
        ("invalid_body", "name_taken", *_DATABASE),
        _OF_CONVERSATION,
    ),
    ("get", "/conversations"): Operation(
        "list_conversations",
        "conversations",
        "The caller's conversations, newest first",
        "In pages: `nextCursor` of one is `cursor` of the next, and null on the last. Order is that of their "
        "beginning, so nothing is lost or shown twice while turns are written.",
        ("invalid_body", "invalid_cursor", *_DATABASE),
    ),
    ("get", "/conversations/{conversation_id}"): Operation(
        "get_conversation",
        "conversations",
        "One conversation, with its open turn",
        "`open_turn` is what a reload must not lose: a running request, what was asked back with its "
        "options, or a turn that broke off, with the commands that go on. Null when the last turn is done.",
        ("not_found", "store_unavailable", *_DATABASE),
    ),
    ("delete", "/conversations/{conversation_id}"): Operation(
        "delete_conversation",
        "conversations",
        "Delete a conversation",
        "Hidden at once on every route; its running request ends and its context is erased. The rows go with "
        "the purge, after the retention time. Repeated, the same receipt.",
        ("not_found", "store_unavailable", *_DATABASE),
    ),
    ("patch", "/conversations/{conversation_id}/title"): Operation(
        "rename_conversation",
        "conversations",
        "Name a conversation",
        "1 to 255 characters on one line.",
        ("not_found", "invalid_body", *_DATABASE),
    ),
    ("post", "/conversations/{conversation_id}/archive"): Operation(
        "archive_conversation",
        "conversations",
        "Put a conversation aside",
        "Still readable, listed apart. A new question brings it back.",
        ("not_found", *_DATABASE),
    ),
    ("post", "/conversations/{conversation_id}/restore"): Operation(
        "restore_conversation",
        "conversations",
        "Take a conversation back from the archive",
        "It is listed with the others again. One that was not put aside stays as it is.",
        ("not_found", *_DATABASE),
    ),
    ("get", "/conversations/{conversation_id}/export"): Operation(
        "export_conversation",
        "conversations",
        "All of a conversation, as JSON or Markdown",
        "Everything that its owner may see now; sources that are no longer available are named so.",
        ("not_found", "invalid_body", "store_unavailable", *_DATABASE),
    ),
    ("get", "/conversations/{conversation_id}/messages"): Operation(
        "list_messages",
        "conversations",
        "The messages of a conversation",
        "In pages by `sequenceNo`. Sources are authorised again for this caller; an answer that cites one "
        "which is no longer available is withheld (`isWithdrawn`).",
        ("not_found", "invalid_body", "invalid_cursor", "store_unavailable", *_DATABASE),
    ),
    ("post", "/conversations/{conversation_id}/messages"): Operation(
        "send_message",
        "conversations",
        "Ask, reply or command",
        "The pipeline of `POST /api/chat`, answered at once or, with `stream`, as its events. The same "
        "`clientMessageId` (or `Idempotency-Key` header) with the same question gives the same result.",
        ("not_found", "invalid_body", *_TURN, *_FAILED, *_WORKER, *_DATABASE),
        _OF_MESSAGE,
    ),
    ("put", "/conversations/{conversation_id}/messages/{message_id}/feedback"): Operation(
        "rate_message",
        "conversations",
        "Say whether an answer helped",
        "On answers only. A `rating` of null takes it back.",
        ("not_found", "invalid_body", *_DATABASE),
    ),
    ("get", "/health/live"): Operation(
        "get_liveness",
        "operation",
        "The process lives",
        "Touches no other service.",
    ),
    ("get", "/health/ready"): Operation(
        "get_readiness",
        "operation",
        "Whether the service can answer",
        "Which part is up or down, without secrets. 503 with the same body when one is down.",
    ),
    ("get", "/metrics"): Operation(
        "get_metrics",
        "operation",
        "Counts and times for Prometheus",
        "No user text is in a label.",
    ),
    ("get", "/version"): Operation(
        "get_version",
        "operation",
        "Name and version of the service",
        "As installed.",
    ),
}
