"""The golden vectors: the same files that the Go side is held to."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from api.contract.domains import SHIPPED
from api.contract.parsing import ContractError, MalformedError, UnsupportedVersionError, parse_contract

FOLDER = Path(__file__).parents[1] / "contract" / "vectors"
INSIDE = re.compile(r"[Ii]nput|instance|validat|[a-z][A-Z]|\[|\{")  # how the service is made
VECTORS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}


def sent(vector: dict[str, Any]) -> str:
    return str(vector["raw"]) if "raw" in vector else json.dumps(vector["contract"], ensure_ascii=False)


def chosen(*, valid: bool) -> list[str]:
    return [name for name, vector in VECTORS.items() if bool(vector["expect"]["faults"]) != valid]


def test_there_are_enough_of_each_kind() -> None:
    assert len(VECTORS) >= 40
    assert len(chosen(valid=True)) >= 15
    assert all(name.startswith("valid_") for name in chosen(valid=True))
    rules = {fault["rule"] for vector in VECTORS.values() for fault in vector["expect"]["faults"]}
    assert {"required", "unknown_field", "count_mismatch", "summary_version", "unsupported_version"} <= rules


@pytest.mark.parametrize("name", chosen(valid=True))
def test_a_valid_vector_means_what_it_says(name: str) -> None:
    expected = VECTORS[name]["expect"]
    parsed = parse_contract(sent(VECTORS[name]).encode(), SHIPPED)
    assert parsed.domain.name == expected["domain"]
    assert sorted(parsed.ignored) == expected["ignored"]
    canonical = parsed.contract.model_dump(mode="json", exclude_none=True)
    profile = canonical["context"].get("user_profile", {})
    if "known_limitations" not in expected["canonical"]["context"].get("user_profile", {}):
        profile.pop("known_limitations", None)
    assert canonical == expected["canonical"]


@pytest.mark.parametrize("name", chosen(valid=False))
def test_an_invalid_vector_breaks_exactly_these_rules(name: str) -> None:
    with pytest.raises(ContractError) as caught:
        parse_contract(sent(VECTORS[name]), SHIPPED)
    found = sorted((fault.path, fault.rule) for fault in caught.value.faults)
    assert found == sorted((fault["path"], fault["rule"]) for fault in VECTORS[name]["expect"]["faults"])
    for fault in caught.value.faults:
        assert fault.detail
        assert not INSIDE.search(fault.detail)


def test_the_bound_that_is_passed_is_named() -> None:
    told = {}
    for name in ("invalid_age", "invalid_beyond_64_bit", "invalid_zero_budget", "invalid_long_id"):
        with pytest.raises(ContractError) as caught:
            parse_contract(sent(VECTORS[name]), SHIPPED)
        told[name] = caught.value.faults[0].detail
    assert told == {
        "invalid_age": "must be at most 200",
        "invalid_beyond_64_bit": f"must be at most {2**63 - 1}",
        "invalid_zero_budget": "must be at least 1",
        "invalid_long_id": "must have at most 512 characters",
    }


def test_reasons_of_their_own_have_errors_of_their_own() -> None:
    with pytest.raises(UnsupportedVersionError) as other:
        parse_contract(sent(VECTORS["invalid_major_2"]), SHIPPED)
    assert ">=1.0.0 <2.0.0" in other.value.faults[0].detail
    with pytest.raises(MalformedError):
        parse_contract(b"\xff{}", SHIPPED)
    with pytest.raises(ContractError) as deep:
        parse_contract("[" * 100_000, SHIPPED)
    assert deep.value.faults[0].rule == "too_deep"


def test_a_path_is_bounded_and_can_be_sent() -> None:
    with pytest.raises(ContractError) as twice:
        parse_contract('{"\\ud800": 1, "\\ud800": 2}', SHIPPED)
    assert (twice.value.faults[0].path, twice.value.faults[0].rule) == ("?", "duplicate_key")
    with pytest.raises(ContractError) as long:
        parse_contract(json.dumps({**VECTORS["valid_full"]["contract"], "x" * 5000: 1, "a\0": 1}), SHIPPED)
    assert {fault.path for fault in long.value.faults} == {"x" * 200, "a?"}
