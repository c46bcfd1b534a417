"""The Go side, compiled and run: against the golden vectors, and against a running service.

Where Go is not installed the tests are skipped, except in CI, where that is a failure.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from door import Door, open_door

from graph.compose import Assistant

MODULE = Path(__file__).parents[1] / "contract" / "go"
pytestmark = pytest.mark.xdist_group("go")


@pytest.fixture(scope="session")
def go(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = shutil.which("go")
    if found is None and os.environ.get("CI") == "true":
        pytest.fail("Go is needed in CI: apt-get install -y --no-install-recommends golang-go")
    if found is None:
        pytest.skip("Go is not installed (Debian: golang-go)")
    return found


def run(go: str, *arguments: str, folder: Path = MODULE) -> "subprocess.CompletedProcess[str]":
    """Offline, with nothing but the standard library."""
    settings = {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    environment = {**os.environ, **settings}
    return subprocess.run(
        [go, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )


def test_the_vectors_hold_in_go(go: str) -> None:
    found = run(go, "test", "-count=1", "./...")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "ok  \tbusinessassistant/contract" in found.stdout


def test_the_go_test_fails_where_a_vector_does_not_hold(go: str, tmp_path: Path) -> None:
    shutil.copytree(MODULE, tmp_path / "go")
    shutil.copytree(MODULE.parent / "vectors", tmp_path / "vectors")
    vector = tmp_path / "vectors" / "invalid_count_mismatch.json"
    wrong = json.loads(vector.read_text(encoding="utf-8"))
    wrong["expect"]["faults"][0]["rule"] = "unknown_field"
    vector.write_text(json.dumps(wrong), encoding="utf-8")
    found = run(go, "test", "-count=1", "./contract", folder=tmp_path / "go")
    assert found.returncode != 0
    assert "invalid_count_mismatch.json" in found.stdout


def test_the_go_files_are_formatted_and_vetted(go: str) -> None:
    gofmt = Path(go).resolve().with_name("gofmt")
    found = subprocess.run([gofmt, "-l", "."], cwd=MODULE, capture_output=True, text=True, check=True)
    assert found.stdout == ""
    assert run(go, "vet", "./...").returncode == 0


@pytest.fixture
def door(assistant: Assistant) -> Iterator[Door]:
    with open_door(assistant) as door:
        yield door


@pytest.mark.parametrize("domain", ["consultation", "startup_subsidy"])
def test_the_go_client_plays_a_whole_consultation(go: str, door: Door, domain: str) -> None:
    played = run(go, "run", "./cmd/consultation", "-url", door.address, "-domain", domain)
    assert played.returncode == 0, played.stderr
    answers: list[dict[str, Any]] = [json.loads(line) for line in played.stdout.splitlines()]
    last = answers[-1]
    assert (last["consultation_state"]["stage"], last["consultation_state"]["missing_slots"]) == ("ready", [])
    assert last["meta"]["kind"] == "narrative"
    assert last["sources"]
    sources = {source["source"] for answer in answers for source in answer["sources"]}
    assert ("kb_001" in sources) == (domain == "consultation")


def test_the_go_client_shows_a_problem(go: str, door: Door) -> None:
    played = run(go, "run", "./cmd/consultation", "-url", door.address + "/nowhere")
    assert played.returncode == 1
    assert "not_found (404)" in played.stderr
