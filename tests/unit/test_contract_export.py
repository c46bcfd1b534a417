"""One source of truth: what is exported is what the models say, and what is committed is what is exported."""

import json
from pathlib import Path

import jsonschema

from api.contract.domains import SHIPPED
from api.contract.export import (
    GO_FILE,
    aliases_table,
    answer_schema,
    contract_schema,
    export_contract,
    fields_table,
    go_source,
    inlined,
)

COMMITTED = Path(__file__).parents[1] / "contract" / "go" / "contract" / GO_FILE
REMEDY = f"export it again: python -c 'from api.contract.export import go_source; …' > {COMMITTED.name}"


def test_the_committed_go_file_is_current() -> None:
    assert COMMITTED.read_text(encoding="utf-8") == go_source(), REMEDY


def test_export_writes_every_file_again_and_again(tmp_path: Path) -> None:
    first = export_contract(tmp_path / "deep" / "folder")
    assert [path.name for path in first] == [
        "context-answer.consultation.schema.json",
        "context-answer.startup_subsidy.schema.json",
        "context-contract.consultation.schema.json",
        "context-contract.startup_subsidy.schema.json",
        "contract.go",
    ]
    before = [path.read_bytes() for path in first]
    assert [path.read_bytes() for path in export_contract(tmp_path / "deep" / "folder")] == before
    for path in first[:4]:
        jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text(encoding="utf-8")))


def test_field_names_are_those_of_the_agreement() -> None:
    (contract, state) = (contract_schema(SHIPPED.default), "ConsultationState")
    definitions = contract["$defs"]
    assert list(contract["properties"]) == ["session_id", "turn_id", "user_message", "context", "meta"]
    assert set(contract["required"]) == set(contract["properties"])
    assert set(definitions[state]["properties"]) - {"domain"} == {
        *("stage", "chief_complaint", "body_parts", "symptoms", "duration", "aggravating_factors"),
        *("pain_level", "swelling", "trauma", "red_flags", "missing_slots", "last_question"),
        "pending_answer_for",
    }
    meta = definitions["ContextContractMeta"]
    assert meta["required"] == [
        *("context_version", "token_budget", "included_message_count", "summary_version"),
    ]
    answer = answer_schema(SHIPPED.default)
    assert list(answer["properties"]) == [
        *("session_id", "turn_id", "answer", "sources", "consultation_state", "meta"),
    ]


def test_inlined_schemas_refer_to_nothing() -> None:
    for domain in SHIPPED:
        assert "$ref" not in json.dumps(inlined(contract_schema(domain)))


def test_go_keeps_names_types_and_rules() -> None:
    source = go_source()
    for line in (
        'SessionID string `json:"session_id" contract:"required,minlen=1,maxlen=512"`',
        'TokenBudget int64 `json:"token_budget" contract:"required,min=1,max=9223372036854775807"`',
        'RedFlags []string `json:"red_flags" contract:"required"`',
        'RetrievedKnowledge *[]RetrievedKnowledge `json:"retrieved_knowledge,omitempty" contract:"optional"`',
        'PainLevel *string `json:"pain_level,omitempty" contract:"optional,blank_is_null"`',
        "ContextContract = ContextContractOf[ConsultationState]",
        '"pain":               "pain_level",',
    ):
        assert line in source


def test_the_tables_of_the_documentation_are_current() -> None:
    page = (Path(__file__).parents[2] / "docs" / "contract.md").read_text(encoding="utf-8")
    assert fields_table() in page
    assert aliases_table() in page


def test_the_documentation_names_every_rule_of_the_vectors() -> None:
    page = (Path(__file__).parents[2] / "docs" / "contract.md").read_text(encoding="utf-8")
    vectors = (COMMITTED.parents[2] / "vectors").glob("*.json")
    faults = [fault for path in vectors for fault in json.loads(path.read_text("utf-8"))["expect"]["faults"]]
    assert {fault["rule"] for fault in faults if f"`{fault['rule']}`" not in page} == set()
