"""The OpenAPI document: nothing that is served is missing in it, and what it shows by example is true."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from door import Door, events_of, open_door
from fastapi.routing import APIRoute
from starlette.routing import Mount

from api.document import EVENTS, OF_NO_OPERATION, events_table, operations_in
from api.events import NAMES
from api.operations import OPERATIONS, TAGS
from api.problems import MEDIA_TYPE, PROBLEMS
from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.store import open_store
from graph.compose import open_assistant
from graph.settings import load_settings

SECRET = "a secret of at least 32 characters"
LOCAL, SIGNED_IN = "local", "signed in"
PROBLEM_MEMBERS = {"type", "title", "status", "detail", "instance", "code", "request_id", "retryable"}
NAMES_OF_OPERATIONS = {
    "chat", "stop_chat", "follow_request", "list_requests", "get_window", "list_checkpoints", "fork_thread",
    "delete_thread", "ask", "ask_stream", "answer_contract", "answer_contract_stream",
    "create_conversation", "list_conversations", "get_conversation", "delete_conversation",
    "rename_conversation", "archive_conversation", "restore_conversation", "export_conversation",
    "list_messages", "send_message", "rate_message", "get_liveness", "get_readiness", "get_metrics",
    "get_version",
}  # fmt: skip


@pytest.fixture(scope="module")
def doors(
    sample_home: Path, redis_server: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Door]]:
    """The real server with each kind of identity."""
    folder = tmp_path_factory.mktemp("doors")
    opened: dict[str, Door] = {}
    env = {"REDIS_URL": redis_server}
    kinds = {LOCAL: env, SIGNED_IN: env | {"JWT_SECRET": SECRET}}
    homes = {kind: str(shutil.copytree(sample_home, folder / kind.replace(" ", "-"))) for kind in kinds}
    with (
        open_assistant(load_settings(kinds[LOCAL] | {"BUSINESS_ASSISTANT_HOME": homes[LOCAL]})) as one,
        open_assistant(
            load_settings(kinds[SIGNED_IN] | {"BUSINESS_ASSISTANT_HOME": homes[SIGNED_IN]})
        ) as two,
        open_store(StoreConfig(home=folder / "rows")) as store,
        open_door(one, store=store) as local,
        open_door(two, store=store) as signed_in,
    ):
        opened.update({LOCAL: local, SIGNED_IN: signed_in})
        yield opened


@pytest.fixture(scope="module")
def documents(doors: dict[str, Door]) -> dict[str, Any]:
    return {kind: door.http.get("/openapi.json").json() for kind, door in doors.items()}


@pytest.fixture(params=[LOCAL, SIGNED_IN])
def document(documents: dict[str, Any], request: pytest.FixtureRequest) -> Any:
    return documents[request.param]


def resolved(document: Any, value: Any) -> Any:
    """The value with its reference followed, if it is one."""
    while isinstance(value, dict) and "$ref" in value:
        found = document
        for part in value["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        value = found
    return value


def validator(document: Any, schema: Any) -> jsonschema.Draft202012Validator:
    """For a schema of the document, with the document's own components to refer to."""
    return jsonschema.Draft202012Validator({**schema, "components": document["components"]})


def contents(document: Any) -> Iterator[tuple[str, Any]]:
    """Every body of every operation, asked or answered, with a name to be told by."""
    for (method, path), entry in operations_in(document):
        asked = {"request": entry["requestBody"]} if "requestBody" in entry else {}
        for place, part in (asked | entry["responses"]).items():
            for kind, content in part.get("content", {}).items():
                yield f"{method} {path} {place} {kind}", content


def routes_of(app: Any) -> set[tuple[str, str]]:
    """Every route that is served, however it was added, but for those that only refuse or show the page."""
    found, waiting = set(), list(app.routes)
    while waiting:
        route = waiting.pop()
        waiting.extend(getattr(route, "routes", []) if not isinstance(route, Mount) else [])
        if isinstance(route, APIRoute) and route.include_in_schema:
            path = route.path.replace(":path}", "}")
            found.update((method.lower(), path) for method in route.methods)
    return found


def test_the_table_names_every_operation_and_no_other(document: Any) -> None:
    assert {key for key, _ in operations_in(document)} == set(OPERATIONS)


def test_no_route_is_served_that_is_not_told(doors: dict[str, Door]) -> None:
    app = doors[LOCAL].app
    hidden = {
        route.path: sorted(route.methods or ())
        for route in app.routes
        if isinstance(route, APIRoute) and not route.include_in_schema
    }
    # The page, and refusals of methods that a thread's name with slashes would take.
    assert set(hidden) <= {"/"} | {
        f"/api/threads/{{thread_id:path}}/{part}" for part in ("requests", "window", "checkpoints", "fork")
    }
    assert routes_of(app) <= set(OPERATIONS)


def test_every_operation_says_what_it_is(document: Any) -> None:
    for key, entry in operations_in(document):
        told = OPERATIONS[key]
        assert entry["operationId"] == told.name
        assert entry["summary"] == told.summary
        assert len(entry["description"]) > 5, key
        assert entry["tags"] == [told.tag]
        for parameter in entry.get("parameters", ()):
            assert resolved(document, parameter)["description"], (key, parameter)
    assert {tag["name"] for tag in document["tags"]} == set(TAGS)


def test_the_names_of_operations_stay(document: Any) -> None:
    """Clients are generated from them: change this list only by adding to it."""
    assert {entry["operationId"] for _, entry in operations_in(document)} == NAMES_OF_OPERATIONS


def test_every_body_has_an_example_and_every_example_keeps_its_schema(document: Any) -> None:
    for name, content in contents(document):
        schema = resolved(document, content["schema"])
        examples = content.get("examples")
        assert examples, name
        for each in examples.values():
            value = resolved(document, each)["value"]
            faults = [fault.message for fault in validator(document, schema).iter_errors(value)]
            assert not faults, (name, faults)


def test_examples_in_schemas_and_parameters_keep_them_too(document: Any) -> None:
    for name, schema in document["components"]["schemas"].items():
        for field, shown in schema.get("properties", {}).items():
            for example in shown.get("examples", ()):
                assert validator(document, shown).is_valid(example), (name, field)
    for key, entry in operations_in(document):
        for parameter in (resolved(document, each) for each in entry.get("parameters", ())):
            assert validator(document, parameter["schema"]).is_valid(parameter["example"]), (key, parameter)


def test_every_refusal_is_a_problem_with_an_example_of_its_own(document: Any) -> None:
    for key, entry in operations_in(document):
        for status, answer in entry["responses"].items():
            if status < "400":
                continue
            assert MEDIA_TYPE in answer["content"], (key, status)
            content = answer["content"][MEDIA_TYPE]
            assert content["schema"] == {"$ref": "#/components/schemas/Problem"}
            for code, example in content["examples"].items():
                value = resolved(document, example)["value"]
                assert (value["code"], value["status"]) == (code, int(status))
                assert value.keys() >= PROBLEM_MEMBERS


def test_the_problems_of_the_document_are_those_of_the_table(documents: dict[str, Any]) -> None:
    told = {
        code
        for document in documents.values()
        for _, entry in operations_in(document)
        for answer in entry["responses"].values()
        for code in answer.get("content", {}).get(MEDIA_TYPE, {}).get("examples", {})
    }
    assert told | set(OF_NO_OPERATION) == set(PROBLEMS)
    assert not told & set(OF_NO_OPERATION)
    for document in documents.values():
        assert set(document["components"]["examples"]) == set(PROBLEMS)
        schema = document["components"]["schemas"]["Problem"]
        assert set(schema["properties"]["code"]["enum"]) == set(PROBLEMS)


def test_every_operation_can_meet_what_any_request_can(document: Any) -> None:
    for key, entry in operations_in(document):
        assert {"408", "413", "415", "500", "503"} <= entry["responses"].keys(), key
        assert ("400" in entry["responses"]) == ("requestBody" in entry), key


def test_what_sign_in_can_answer_is_told_where_there_is_sign_in(documents: dict[str, Any]) -> None:
    for kind, document in documents.items():
        assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
        for key, entry in operations_in(document):
            has_caller = "security" in entry
            signed_in = has_caller and kind == SIGNED_IN
            assert ("401" in entry["responses"]) == signed_in, key
            assert ("403" in entry["responses"]) == has_caller, key
            if has_caller:
                assert entry["security"] == ([{"bearer": []}] if signed_in else [{}]), key


def test_headers_are_told_where_they_are_sent(documents: dict[str, Any]) -> None:
    for document in documents.values():
        for key, entry in operations_in(document):
            for status, answer in entry["responses"].items():
                names = set(answer["headers"])
                for name in names:
                    assert resolved(document, answer["headers"][name])["description"]
                assert "X-Request-ID" in names
                assert ({"Retry-After", "RateLimit", "RateLimit-Policy"} <= names) == (status == "429"), key
                assert ("Retry-After" in names) >= (status in ("429", "503")), key
                assert ("WWW-Authenticate" in names) >= (status == "401"), key
    paths = documents[LOCAL]["paths"]
    sent = {each.get("name") for each in paths["/api/chat/{request_id}/events"]["get"]["parameters"]}
    assert "last-event-id" in {str(name).lower() for name in sent}
    for path in ("/api/chat", "/conversations/{conversation_id}/messages"):
        sent = {each.get("name") for each in paths[path]["post"]["parameters"]}
        assert "idempotency-key" in {str(name).lower() for name in sent}


def test_the_table_of_events_is_that_of_the_stream(document: Any) -> None:
    assert set(EVENTS) == set(NAMES)
    schema = document["components"]["schemas"]["EventStream"]
    for name in NAMES:
        assert f"| `{name}` |" in schema["description"]
    streams = [name for name, content in contents(document) if "text/event-stream" in name]
    assert len(streams) == 5, streams
    for _, entry in operations_in(document):
        answer = entry["responses"].get("200", {})
        if "text/event-stream" in answer.get("content", {}):
            assert events_table() in answer["description"]


@pytest.mark.parametrize("message", ["创业补贴有多少？", "云帆2023年营业收入是多少？", "/retry"])
def test_the_events_of_a_stream_are_what_the_document_says(
    doors: dict[str, Door], documents: dict[str, Any], message: str
) -> None:
    schemas = documents[LOCAL]["components"]["schemas"]
    for name, data in doors[LOCAL].ask(message, f"events-{message}"):
        schema = schemas[f"Event{name.capitalize()}"]
        faults = [fault.message for fault in validator(documents[LOCAL], schema).iter_errors(data)]
        assert not faults, (name, faults)


def test_the_examples_of_streams_are_streams(document: Any) -> None:
    for name, content in contents(document):
        if "text/event-stream" in name:
            for each in content["examples"].values():
                numbered = each["value"].replace("\r", "")
                first = int(numbered.split("\n", 1)[0].removeprefix("id: "))
                renumbered = numbered
                for place, number in enumerate(range(first, first + numbered.count("id: ")), start=1):
                    renumbered = renumbered.replace(f"id: {number}\n", f"id: {place}\n", 1)
                events = events_of(renumbered)
                assert events[-1][0] in ("done", "error"), name
                for event, data in events:
                    schema = document["components"]["schemas"][f"Event{event.capitalize()}"]
                    assert validator(document, schema).is_valid(data), (name, event)


def test_links_lead_to_operations_and_their_parameters(document: Any) -> None:
    named = {entry["operationId"]: entry for _, entry in operations_in(document)}
    links = [
        link
        for entry in named.values()
        for answer in entry["responses"].values()
        for link in answer.get("links", {}).values()
    ]
    assert len(links) >= 10
    for link in links:
        names = {each.get("name") for each in named[link["operationId"]]["parameters"]}
        assert set(link["parameters"]) <= names


def test_the_document_is_valid_openapi(document: Any) -> None:
    assert document["openapi"].startswith("3.1")
    text = json.dumps(document, ensure_ascii=False)
    assert "HTTPValidationError" not in text
    references = {part.split('"')[0] for part in text.split('"$ref": "')[1:]}
    for reference in references:
        assert resolved(document, {"$ref": reference}) is not None
    for name, schema in document["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert name
