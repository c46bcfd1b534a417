"""The OpenAPI document: what of every operation its signature does not say.

FastAPI knows paths, parameters and bodies. From `operations` come names, purposes and problems; from
`document_examples.json` examples; from here what all operations of a kind share: the problems that any body
or any caller can meet, headers, and the events of a stream.
"""

import json
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from api.operations import OPERATIONS, TAGS, Operation
from api.problems import MEDIA_TYPE, PROBLEMS, Problem, Refusal, problem_body

EXAMPLES = Path(__file__).with_name("document_examples.json")
STREAM = "text/event-stream"

# What any request can meet, whatever it asks for.
EVERYWHERE = (
    *("head_timeout", "head_too_large", "body_timeout", "body_too_large", "unsupported_media_type"),
    *("internal_error", "too_many_connections"),
)
WITH_BODY = ("malformed_json",)
LOCAL = ("forbidden",)
SIGNED_IN = ("unauthorized", "insufficient_scope", "sign_in_unavailable")
# Of requests that are no operation: another method, or what the framework itself refuses.
OF_NO_OPERATION = ("method_not_allowed", "bad_request")

ABOUT = """Answers business and policy questions over many turns.

Every refusal is a problem (RFC 9457): `code` names its kind, and `retryable` says whether the same request
may succeed later. Bodies are one JSON object in UTF-8 of at most 65,536 bytes, not compressed, nested at
most 16 levels deep, with every key once and without NaN, Infinity or numbers of more than 4,300 digits.
Unknown fields are refused.

Every answer has `X-Request-ID`, the id of the request in events, records and logs. One that is sent, and a
W3C `traceparent`, are kept as attributes of the trace. Times are in the zone +08:00. Without sign-in only
callers on the service's own machine are answered.
"""

Json = MutableMapping[str, Any]

_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_CITATION = {
    "type": "object",
    "required": ["label", "document_id", "version", "title", "source", "passage", "passage_hash"],
    "properties": {
        "label": {"type": "string", "description": "As in the text: C1 for [C1]."},
        **dict.fromkeys(("document_id", "version", "title", "source"), _TEXT),
        "passage": {"type": "string", "description": "The cited words."},
        "passage_hash": {"type": "string", "description": "SHA-256 of the passage."},
    },
}
_OPTION = {
    "type": "object",
    "required": ["number", "value", "label"],
    "properties": {"number": {"type": "integer"}, "value": _TEXT, "label": _TEXT},
}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


# event -> (when it comes, the object in its `data`)
EVENTS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "created": (
        "First of all: which request this is. A contract's has `session_id` in place of `thread_id`.",
        {
            **_object(request_id=_TEXT, turn_id=_TEXT_OR_NULL),
            "properties": {
                **dict.fromkeys(("thread_id", "session_id", "turn_id"), _TEXT_OR_NULL),
                "request_id": _TEXT,
            },
        },
    ),
    "stage": ("A step began.", _object(node=_TEXT, input_kind=_TEXT_OR_NULL)),
    "token": ("Checked text of the answer, to be appended.", _object(text=_TEXT)),
    "reset": (
        "Drop the text so far: it was withdrawn, too long to be kept, or a gap lies before this event.",
        _object(reason={"type": "string", "enum": ["withdrawn", "too_long", "gap"]}),
    ),
    "citations": ("What the answer cites.", _object(citations={"type": "array", "items": _CITATION})),
    "clarification": (
        "What is asked back, a page of options at a time.",
        _object(
            slot=_TEXT,
            prompt=_TEXT,
            options={"type": "array", "items": _OPTION},
            page={"type": "integer"},
            pages={"type": "integer"},
        ),
    ),
    "done": (
        "Last, once: how the request ended, with the whole answer.",
        {"type": "object"},
    ),
    "error": ("Last, once, in place of `done`: a problem.", {"$ref": "#/components/schemas/Problem"}),
}

_HEADERS: Mapping[str, tuple[str, str]] = {
    "X-Request-ID": ("The id of this request in events, record and logs.", "0f2c6c1e-6f0b-4a52-9a57"),
    "Retry-After": ("Seconds after which to try again.", "1"),
    "RateLimit": ("What is left of the limit that is reached, and when to look again.", '"workers";r=0;t=1'),
    "RateLimit-Policy": ("The limit that is reached.", '"workers";q=8;qu="concurrent-requests"'),
    "WWW-Authenticate": ("What the token lacks.", 'Bearer realm="business-assistant"'),
    "Accept-Encoding": ("How a body may be encoded.", "identity"),
    "Content-Disposition": ("A name for the file.", 'attachment; filename="conversation.md"'),
    "Cache-Control": ("Nothing of it may be kept by caches.", "no-store"),
}
_PARAMETERS: Mapping[str, tuple[str, Any]] = {
    "conversation_id": ("The conversation's id.", "6a2f44b0-1f44-4f7c-8f1d-8c9ee0957a5e"),
    "message_id": ("The message's id.", "bfb27e42-3752-48b3-954a-867fad8307fe"),
    "request_id": ("The request's id, as `created` and X-Request-ID tell it.", "622d311d-017c-45c9-89c3"),
    "thread_id": ("The conversation's name, chosen by the caller. May hold slashes.", "start-up"),
    "checkpoint_id": ("A step, as the list of checkpoints names it.", "1f1ece2b-c169-6982-8016-a0abb545136d"),
    "before": ("Only steps before this one: `next_before` of the page before.", "1f1ece2b-c169-6982-8016"),
    "cursor": ("`nextCursor` of the page before. Of this listing alone.", "WyIyMzVlMDc1ODA4NGMiLDJd"),
    "limit": ("How many at most.", 50),
    "order": ("In which order.", "oldest_first"),
    "status": ("Which: in use, or put aside.", "ACTIVE"),
    "language": ("Of the marks in the window.", "zh"),
    "format": ("As data, or as a text to read.", "markdown"),
    "externalId": ("Only the one of this name, put aside or not.", "start-up"),
    "last-event-id": ("The `id` of the last event that arrived; 0 for all.", 3),
    "idempotency-key": ("The client's own id of this message, where the body names none.", "m-1"),
}
_SCHEMAS: Mapping[str, dict[str, Any]] = {
    "conversation_id": {"type": "string", "format": "uuid"},
    "message_id": {"type": "string", "format": "uuid"},
    "idempotency-key": {
        "type": "string",
        "pattern": r"""^(?:[!#-~][ -~]{0,199}|"(?:[ !#-\[\]-~]|\\["\\]){1,200}")$""",
    },
}


def describe(app: FastAPI) -> None:
    """Complete the document that the app publishes; it is made once, when it is first asked for."""
    make = app.openapi

    def openapi() -> dict[str, Any]:
        made = app.openapi_schema is not None
        document = make()
        if not made:
            complete(document, signed_in=app.state.sign_in is not None)
        return document

    app.openapi = openapi  # type: ignore[method-assign]


def complete(document: Json, *, signed_in: bool) -> None:
    """Fill in what the routes' signatures do not say. Operations that the table lacks stay as they are."""
    examples = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    document["info"]["description"] = ABOUT
    document["tags"] = [{"name": name, "description": text} for name, text in TAGS.items()]
    _add_components(document)
    for key, entry in operations_in(document):
        told = OPERATIONS.get(key)
        if told:
            _name(entry, told)
            _secure(entry, signed_in=signed_in)
            _explain_parameters(entry)
            _add_problems(entry, codes_of(told, entry, signed_in=signed_in))
            _add_examples(entry, examples.get(told.name, {}))
            _explain_streams(entry)
            _add_headers(entry)
            _link(entry, told)


def operations_in(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], Json]]:
    for path, item in document["paths"].items():
        for method, entry in item.items():
            yield (method, path), entry


def codes_of(told: Operation, entry: Mapping[str, Any], *, signed_in: bool) -> list[str]:
    """All problems that this operation can answer with, in the order of the table."""
    codes = {*EVERYWHERE, *told.codes}
    if "requestBody" in entry:
        codes.update(WITH_BODY)
    if "security" in entry:
        codes.update(SIGNED_IN if signed_in else LOCAL)
    return [code for code in PROBLEMS if code in codes]


def _name(entry: Json, told: Operation) -> None:
    entry.update(operationId=told.name, tags=[told.tag], summary=told.summary, description=told.description)


def _secure(entry: Json, *, signed_in: bool) -> None:
    """Without sign-in the callers of this machine send nothing."""
    if "security" in entry and not signed_in:
        entry["security"] = [{}]


def _explain_parameters(entry: Json) -> None:
    for each in entry.get("parameters", ()):
        name = each["name"].lower() if each["in"] == "header" else each["name"]
        text, example = _PARAMETERS[name]
        each.setdefault("description", text)
        each.setdefault("example", example)
        each["schema"] = _SCHEMAS.get(name, each["schema"])


def _add_problems(entry: Json, codes: list[str]) -> None:
    answers = entry["responses"]
    told = {status: answer for status, answer in answers.items() if _is_told(status, answer)}
    for code in codes:
        status = str(PROBLEMS[code].status)
        answer = told.setdefault(status, {"description": _titles(status, codes), "content": {}})
        content = answer["content"].setdefault(
            MEDIA_TYPE, {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": {}}
        )
        content["examples"][code] = {"$ref": f"#/components/examples/{code}"}
    entry["responses"] = {status: told[status] for status in sorted(told)}


def _is_told(status: str, answer: Mapping[str, Any]) -> bool:
    """Whether a route says of this status what no table of problems could."""
    return status < "400" or ("application/json" in answer.get("content", {}) and status != "422")


def _titles(status: str, codes: list[str]) -> str:
    titles = dict.fromkeys(PROBLEMS[code].title for code in codes if str(PROBLEMS[code].status) == status)
    return "; ".join(titles)


def _add_examples(entry: Json, examples: Mapping[str, Any]) -> None:
    if "request" in examples:
        entry["requestBody"]["content"]["application/json"]["examples"] = _named(examples["request"])
    for status, answer in entry["responses"].items():
        answers = examples.get("answers" if status < "300" else "answers_when_down", {})
        for kind, content in answer.get("content", {}).items():
            if kind in answers:
                content.pop("example", None)
                content["examples"] = _named(answers[kind])


def _named(examples: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace(" ", "_"): {"summary": name, "value": value} for name, value in examples.items()}


def _explain_streams(entry: Json) -> None:
    """A stream is one text to OpenAPI 3.1; `itemSchema` of 3.2 says what an event is, and so does a table."""
    for answer in entry["responses"].values():
        content = answer.get("content", {}).get(STREAM)
        if content:
            content["schema"] = {"$ref": "#/components/schemas/EventStream"}
            content["itemSchema"] = {"$ref": "#/components/schemas/Event"}
            answer["description"] = f"{answer['description']}\n\n{events_table()}"


def events_table() -> str:
    """The events of a stream, as Markdown."""
    rows = (f"| `{name}` | `{_schema_of(name)}` | {text} |" for name, (text, _) in EVENTS.items())
    return "\n".join(("| event | data | |", "|---|---|---|", *rows))


def _schema_of(event: str) -> str:
    return f"Event{event.capitalize()}"


def _add_headers(entry: Json) -> None:
    for status, answer in entry["responses"].items():
        codes = answer.get("content", {}).get(MEDIA_TYPE, {}).get("examples", {})
        names = ["X-Request-ID", *_headers_of(status, codes)]
        if status == "200" and "text/markdown" in answer.get("content", {}):
            names += ["Content-Disposition", "Cache-Control"]
        answer["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _headers_of(status: str, codes: Mapping[str, Any]) -> Iterator[str]:
    if any(PROBLEMS[code].retry_after for code in codes):
        yield "Retry-After"
    if status == "429":
        yield from ("RateLimit", "RateLimit-Policy")
    if {"unauthorized", "insufficient_scope"} & codes.keys():
        yield "WWW-Authenticate"
    if "unsupported_media_type" in codes:
        yield "Accept-Encoding"


def _link(entry: Json, told: Operation) -> None:
    if told.links:
        first = min(status for status in entry["responses"] if status < "300")
        entry["responses"][first]["links"] = {
            name: {"operationId": name, "parameters": dict(parameters)}
            for name, parameters in told.links.items()
        }


def _add_components(document: Json) -> None:
    components = document.setdefault("components", {})
    components.setdefault("schemas", {}).update(_schemas())
    components["headers"] = {
        name: {"description": text, "schema": {"type": "string"}, "example": example}
        for name, (text, example) in _HEADERS.items()
    }
    components["examples"] = {
        code: {
            "summary": kind.title,
            "value": problem_body(Refusal(code), request_id="0f2c6c1e-6f0b-4a52-9a57", instance="/api/chat"),
        }
        for code, kind in PROBLEMS.items()
    }


def _schemas() -> dict[str, Any]:
    problem = Problem.model_json_schema()
    problem["properties"]["code"]["enum"] = list(PROBLEMS)
    events = {_schema_of(name): {"description": text, **schema} for name, (text, schema) in EVENTS.items()}
    stream = {
        "type": "string",
        "contentMediaType": STREAM,
        "description": "Server-sent events: `id` counts from 1 within the request, `data` is one JSON object "
        "a line, lines that begin with a colon are heartbeats. Exactly one `done` or `error` ends it. To go "
        f"on after a lost connection, send the last `id` as Last-Event-ID.\n\n{events_table()}",
    }
    return {"Problem": problem, "EventStream": stream, "Event": _event(), **events}


def _event() -> dict[str, Any]:
    return {
        "oneOf": [
            {
                "type": "object",
                "required": ["id", "event", "data"],
                "properties": {
                    "id": {"type": "string", "pattern": "^[1-9][0-9]*$"},
                    "event": {"const": name},
                    "data": {
                        "type": "string",
                        "contentMediaType": "application/json",
                        "contentSchema": {"$ref": f"#/components/schemas/{_schema_of(name)}"},
                    },
                },
            }
            for name in EVENTS
        ]
    }
