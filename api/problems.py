"""Every way a request can be refused, in one table, and its RFC 9457 body.

Nothing of the request's text, no key, stack trace or raw exception is ever part of a body: `detail` is
the table's own sentence or one written in this package.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field
from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:business-assistant:problem:"


@dataclass(frozen=True)
class Kind:
    """One kind of problem: its HTTP status, its title, and what to do about it."""

    status: int
    title: str
    detail: str
    retryable: bool = False
    retry_after: int | None = None  # seconds, where waiting helps and nothing better is known


PROBLEMS: dict[str, Kind] = {
    "bad_request": Kind(400, "Bad request", "The request could not be understood."),
    "malformed_json": Kind(400, "Malformed JSON", "The body is not one JSON object in UTF-8."),
    "unauthorized": Kind(401, "Unauthorized", "Send a valid token as Authorization: Bearer …"),
    "insufficient_scope": Kind(403, "Insufficient scope", "The token lacks a scope; see WWW-Authenticate."),
    "forbidden": Kind(403, "Forbidden", "Without sign-in only callers on this machine are served."),
    "not_found": Kind(404, "Not found", "There is nothing here under this name."),
    "method_not_allowed": Kind(405, "Method not allowed", "See the Allow header."),
    "body_timeout": Kind(408, "Request timeout", "The body did not arrive in time; send it again.", True),
    "head_timeout": Kind(408, "Request timeout", "The request did not arrive in time; send it again.", True),
    "head_too_large": Kind(431, "Head too large", "The head of a request may have at most 32,768 bytes."),
    "thread_busy": Kind(
        409, "Thread busy", "This thread is answering another request; wait for it or stop it.", True, 1
    ),
    "body_too_large": Kind(413, "Body too large", "The body may have at most 65,536 bytes."),
    "unsupported_media_type": Kind(
        415, "Unsupported media type", "Send the body as Content-Type: application/json."
    ),
    "invalid_body": Kind(422, "Invalid body", "See errors for the fields and what is wrong with them."),
    "invalid_text": Kind(
        422, "Invalid text", "The text must have 1 to 4,000 characters, without NUL and lone surrogates."
    ),
    "invalid_contract": Kind(
        422, "Invalid contract", "See errors for the path of each field and the rule it breaks."
    ),
    "unsupported_context_version": Kind(
        422, "Unsupported context version", "Send a contract of a version that is spoken here."
    ),
    "message_id_reused": Kind(
        422, "Message id reused", "This client_message_id was sent with another message before; use a new id."
    ),
    "invalid_cursor": Kind(422, "Invalid cursor", "This cursor is not of this listing; start without one."),
    "name_taken": Kind(409, "Name taken", "There is a conversation of this name; use it or another name."),
    "pool_full": Kind(429, "Too many requests", "All workers are busy; try again shortly.", True, 1),
    "caller_limit": Kind(
        429, "Too many requests", "This caller has as many requests running as allowed; try again.", True, 1
    ),
    "processing_failed": Kind(
        500, "Processing failed", "The request could not be processed; send /retry to try again.", True
    ),
    "unfinished_turn": Kind(
        409, "Unfinished turn", "The turn before is unfinished; send /retry or /discard first."
    ),
    "lease_lost": Kind(
        500, "Thread was taken over", "The thread was deleted or taken over while this ran.", True
    ),
    "run_vanished": Kind(
        500, "Run vanished", "The process that ran this request is gone; send it again.", True
    ),
    "internal_error": Kind(500, "Internal error", "An unexpected fault; the log has it by request_id.", True),
    "store_unavailable": Kind(
        503, "Store unavailable", "The conversation store does not answer; try again shortly.", True, 2
    ),
    "database_unavailable": Kind(
        503, "Database unavailable", "The conversation database does not answer; try again shortly.", True, 2
    ),
    "database_read_only": Kind(
        503,
        "Database read-only",
        "The conversation database cannot be written now; try again later.",
        True,
        30,
    ),
    "database_full": Kind(
        503, "Database full", "The conversation database has no room left; try again later.", True, 30
    ),
    "database_of_another_release": Kind(
        503,
        "Database of another release",
        "The conversation database belongs to another release; its operator has to bring both together.",
        True,
        30,
    ),
    "sign_in_unavailable": Kind(
        503,
        "Sign-in unavailable",
        "The keys that verify tokens cannot be fetched; try again shortly.",
        True,
        10,
    ),
    "shutting_down": Kind(503, "Shutting down", "This server is shutting down; try again shortly.", True, 5),
    "too_many_connections": Kind(
        503, "Too many connections", "This server has as many connections as allowed; try again.", True, 5
    ),
}

# The names of the limits in RateLimit fields.
LIMITS = {"pool_full": "workers", "caller_limit": "caller"}

# The framework's own 400 is a body that it could not parse.
_CODE_OF_STATUS = {400: "malformed_json", 403: "forbidden", 404: "not_found", 405: "method_not_allowed"}


class Problem(BaseModel):
    """RFC 9457 problem, as every error body has it."""

    type: str = Field(examples=[f"{TYPE_PREFIX}thread_busy"])
    title: str
    status: int
    detail: str
    instance: str
    code: str
    request_id: str
    retryable: bool
    errors: list[dict[str, str]] | None = Field(None, description="Fields and what is wrong with them.")


@dataclass
class Refusal(Exception):  # noqa: N818 - an answer of ours, not a fault
    """A request ends here with the problem of this code. Carries no user text."""

    code: str
    detail: str | None = None
    retry_after: int | None = None
    errors: Sequence[Mapping[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.detail or PROBLEMS[self.code].detail


def refusal_of_status(status: int, headers: Mapping[str, str] | None = None) -> Refusal:
    """For errors of the framework, of which nothing but the status is kept."""
    return Refusal(_CODE_OF_STATUS.get(status, "bad_request"), headers=headers or {})


def too_many(code: str, limit: int) -> Refusal:
    """A 429 that says which limit is reached, in the RateLimit fields of the IETF's HTTPAPI group.

    Both limits are of what runs at the same time, so there is no window, and a place is free as soon as a
    request ends: the time given is when to look again.
    """
    name = LIMITS[code]
    wait = PROBLEMS[code].retry_after
    return Refusal(
        code,
        headers={
            "RateLimit-Policy": f'"{name}";q={limit};qu="concurrent-requests"',
            "RateLimit": f'"{name}";r=0;t={wait}',
        },
    )


def problem_body(refusal: Refusal, *, request_id: str, instance: str) -> dict[str, Any]:
    kind = PROBLEMS[refusal.code]
    body: dict[str, Any] = {
        "type": TYPE_PREFIX + refusal.code,
        "title": kind.title,
        "status": kind.status,
        "detail": str(refusal),
        "instance": instance,
        "code": refusal.code,
        "request_id": request_id,
        "retryable": kind.retryable,
    }
    if refusal.errors:
        body["errors"] = [dict(error) for error in refusal.errors]
    return body


def problem_response(refusal: Refusal, *, request_id: str, instance: str) -> Response:
    body = problem_body(refusal, request_id=request_id, instance=instance)
    content = json.dumps(body).encode()
    return Response(content, PROBLEMS[refusal.code].status, headers_of(refusal), media_type=MEDIA_TYPE)


def headers_of(refusal: Refusal) -> dict[str, str]:
    """The refusal's own headers, and when to come back where that is known."""
    table = PROBLEMS[refusal.code].retry_after
    wait = table if refusal.retry_after is None else refusal.retry_after
    return {**refusal.headers, **({} if wait is None else {"Retry-After": str(wait)})}


def responses(*codes: str) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI entries of these problems, with an example each, for a route."""
    entries: dict[int | str, dict[str, Any]] = {}
    for code in codes:
        kind = PROBLEMS[code]
        example = problem_body(Refusal(code), request_id="0f2c6c1e", instance="/api/chat")
        entry = entries.setdefault(
            kind.status,
            {
                "description": kind.title,
                "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": {}}},
            },
        )
        entry["content"][MEDIA_TYPE]["examples"][code] = {"value": example}
    return entries
