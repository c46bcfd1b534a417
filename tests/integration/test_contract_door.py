"""The routes on a real server: problems that name path and rule, streams with one end, nothing kept."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from contract_sender import COMPLETE, KNEE, SUBSIDY, contract
from door import Door, endings, events_of, open_door, until
from openapi_doors import SECRET, real_door, token

from api.contract.consultation import CONSULTATION
from api.contract.domains import SHIPPED
from api.contract.export import answer_schema, contract_schema
from api.contract.subsidy import STARTUP_SUBSIDY
from graph.compose import Assistant, open_assistant
from graph.settings import Settings

TURNS, STREAM = "/v1/context/turns", "/v1/context/turns/stream"
ASKS = "膝盖下坠感可能是什么原因？"


@contextmanager
def contract_door(assistant: Assistant) -> Iterator[Door]:
    with open_door(assistant) as door:
        yield door


@pytest.fixture
def door(assistant: Assistant) -> Iterator[Door]:
    with contract_door(assistant) as door:
        yield door
        until(lambda: door.desk.pool.busy() == 0)


def test_an_answer_and_a_stream_say_the_same(door: Door) -> None:
    sent = contract(ASKS, COMPLETE, knowledge=[KNEE])
    response = door.http.post(TURNS, json=sent)
    assert response.status_code == 200
    answer = response.json()
    jsonschema.validate(answer, answer_schema(CONSULTATION))
    assert answer["meta"]["request_id"] == response.headers["x-request-id"]
    streamed = door.http.post(STREAM, json=sent)
    events = events_of(streamed.text)
    assert endings(events) == ["done"]
    assert events[0] == (
        "created",
        {"request_id": streamed.headers["x-request-id"], "session_id": "conv_1", "turn_id": "turn_9"},
    )
    assert [data["node"] for name, data in events if name == "stage"] == [
        "gate",
        "intent",
        "retrieve",
        "answer",
    ]
    done = events[-1][1]
    assert "".join(data["text"] for name, data in events if name == "token") == done["answer"]
    assert next(data for name, data in events if name == "citations")["citations"] == done["sources"]
    volatile = {"request_id": ""}
    assert {**done, "meta": {**done["meta"], **volatile}} == {
        **answer,
        "meta": {**answer["meta"], **volatile},
    }


def test_the_business_domain_by_the_same_routes(door: Door) -> None:
    answer = door.http.post(TURNS, json=contract("我想申请一次性创业补贴", SUBSIDY)).json()
    jsonschema.validate(answer, answer_schema(STARTUP_SUBSIDY))
    assert answer["consultation_state"]["domain"] == "startup_subsidy"
    assert answer["consultation_state"]["request"] == "我想申请一次性创业补贴"


def test_faults_name_path_and_rule_and_quote_nothing(door: Door) -> None:
    sent = contract("机密文本", COMPLETE, history=(("user", "x"),))
    sent["meta"]["token_budget"] = "机密文本"
    sent["context"]["recent_messages"][0]["role"] = None
    del sent["context"]["consultation_state"]
    for route in (TURNS, STREAM):
        response = door.http.post(route, json=sent)
        assert response.status_code == 422
        assert response.headers["content-type"] == "application/problem+json"
        body = response.json()
        assert (body["code"], body["retryable"], body["instance"]) == ("invalid_contract", False, route)
        assert {(fault["path"], fault["rule"]) for fault in body["errors"]} == {
            ("meta.token_budget", "integer"),
            ("context.recent_messages.0.role", "string"),
            ("context.consultation_state", "required"),
        }
        assert all(fault["detail"] for fault in body["errors"])
        assert "机密文本" not in response.text


def test_another_major_version_names_the_supported_range(door: Door) -> None:
    sent = contract(ASKS, COMPLETE)
    sent["meta"]["context_version"] = "2.1.0"
    body = door.http.post(TURNS, json=sent).json()
    assert (body["status"], body["code"]) == (422, "unsupported_context_version")
    assert ">=1.0.0 <2.0.0" in body["detail"]
    assert body["errors"][0]["path"] == "meta.context_version"


def test_a_newer_minor_version_is_answered_and_what_was_ignored_is_told(door: Door) -> None:
    sent = contract("我膝盖有下坠感")
    sent["meta"] |= {"context_version": "1.9.0", "trace": 1}
    answer = door.http.post(TURNS, json=sent).json()
    assert answer["meta"]["ignored_fields"] == ["meta.trace"]
    assert answer["meta"]["context_version"] == "1.0.0"


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b'{"a": NaN}'])
def test_what_is_no_json_is_malformed(door: Door, body: bytes) -> None:
    response = door.http.post(TURNS, content=body, headers={"Content-Type": "application/json"})
    assert (response.status_code, response.json()["code"]) == (400, "malformed_json")


def test_a_budget_that_is_too_small_is_refused_before_a_stream_begins(door: Door) -> None:
    response = door.http.post(STREAM, json=contract(ASKS, COMPLETE, budget=5))
    assert response.status_code == 422
    assert response.json()["errors"][0]["rule"] == "token_budget_too_small"


def test_a_full_pool_refuses_and_every_slot_comes_back(door: Door) -> None:
    pool = door.desk.pool
    slots = [pool.reserve() for _ in range(pool.size)]
    busy = door.http.post(TURNS, json=contract(ASKS, COMPLETE))
    assert (busy.status_code, busy.headers["retry-after"]) == (429, "1")
    assert busy.headers["ratelimit"] == '"workers";r=0;t=1'
    for slot in slots:
        slot.release()
    for sent in (contract(ASKS, COMPLETE), contract(ASKS, COMPLETE, budget=5), {}):
        door.http.post(TURNS, json=sent)
        door.http.post(STREAM, json=sent)
    until(lambda: pool.busy() == 0)


def test_a_turn_frees_its_worker_before_it_is_answered(settings: Settings) -> None:
    alone = settings.model_copy(update={"max_workers": 1})
    with open_assistant(alone) as assistant, contract_door(assistant) as door:
        sent = contract("我膝盖有下坠感")
        assert {door.http.post(route, json=sent).status_code for route in (TURNS, STREAM) * 10} == {200}


def test_a_model_that_fails_ends_in_one_retryable_problem(settings: Settings, tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"text": "x", "error": "overloaded"}), encoding="utf-8")
    with (
        open_assistant(settings.model_copy(update={"model": f"scripted:{script}"})) as assistant,
        contract_door(assistant) as door,
    ):
        sent = contract(ASKS, COMPLETE, knowledge=[KNEE])
        body = door.http.post(TURNS, json=sent).json()
        assert (body["status"], body["code"], body["retryable"]) == (500, "processing_failed", True)
        events = events_of(door.http.post(STREAM, json=sent).text)
        assert endings(events) == ["error"]
        assert events[-1][1]["code"] == "processing_failed"
        until(lambda: door.desk.pool.busy() == 0)


def sources_for(door: Door, **claims: Any) -> tuple[list[str], list[str]]:
    """What is cited for a signed-in caller, and why anything was left out."""
    headers = {"Authorization": f"Bearer {token(**claims)}"}
    sent = contract(ASKS, COMPLETE, knowledge=[KNEE])
    answer = door.http.post(TURNS, json=sent, headers=headers).json()
    left_out = [omission["reason"] for omission in answer["meta"]["omitted"]]
    return [source["source"] for source in answer["sources"]], left_out


def test_ones_own_word_as_evidence_needs_the_scope_in_the_token(
    sample_home: Path, redis_url: str, tmp_path: Path
) -> None:
    """A group of that name is a matter of documents: it opens nothing here."""
    with real_door(sample_home, tmp_path, redis_url, JWT_SECRET=SECRET) as door:
        assert sources_for(door) == ([], ["not_permitted"])
        assert sources_for(door, groups=["contract"]) == ([], ["not_permitted"])
        assert sources_for(door, scope="read contracts") == ([], ["not_permitted"])
        assert sources_for(door, scope="read contract") == ([KNEE["source"]], [])
        assert sources_for(door, scp=["contract"]) == ([KNEE["source"]], [])


def test_the_local_caller_may_supply_evidence(door: Door) -> None:
    answer = door.http.post(TURNS, json=contract(ASKS, COMPLETE, knowledge=[KNEE])).json()
    assert [source["source"] for source in answer["sources"]] == [KNEE["source"]]


def test_nothing_is_stored(door: Door, redis_client: Any) -> None:
    door.http.post(TURNS, json=contract(ASKS, COMPLETE, knowledge=[KNEE]))
    door.http.post(STREAM, json=contract("创业补贴有多少？", COMPLETE))
    assert redis_client.dbsize() == 0
    assert door.records("conv_1") == []


def test_the_openapi_document_describes_what_is_accepted(door: Door) -> None:
    document = door.http.get("/openapi.json").json()
    for route in (TURNS, STREAM):
        operation = document["paths"][route]["post"]
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        assert "$ref" not in json.dumps(schema)
        validator = jsonschema.Draft202012Validator(schema)
        assert validator.is_valid(contract(ASKS, COMPLETE, knowledge=[KNEE]))
        assert validator.is_valid(contract(ASKS, SUBSIDY))
        assert not validator.is_valid({})
        assert {"400", "422", "429", "500"} <= operation["responses"].keys()


def test_the_schemas_agree_with_the_models_on_the_vectors() -> None:
    folder = Path(__file__).parents[1] / "contract" / "vectors"
    for path in folder.glob("valid_*.json"):
        vector = json.loads(path.read_text(encoding="utf-8"))
        domain = SHIPPED.find(vector["expect"]["domain"])
        assert domain is not None
        jsonschema.validate(vector["expect"]["canonical"], contract_schema(domain))
