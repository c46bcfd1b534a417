"""schemathesis over every operation of the running server, without and with sign-in.

It sends what the document allows and what it forbids, the values at each bound, and walks from one operation
to the next along the links; every answer is held against the document. The same requests every time.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from door import Door, events_of
from openapi_doors import SECRET, real_door, token

from api.operations import OPERATIONS

pytestmark = pytest.mark.xdist_group("openapi")
PROGRAM = Path(sys.executable).with_name("st")
HOOKS = Path(__file__).with_name("sent_once.py")
RULES = Path(__file__).parents[1] / "data" / "schemathesis.toml"
NAME = "a-thread"
# The operations whose every bound is tried each time. The others have no body, or, as contracts, so many
# fields that they are two thirds of all cases: the long run tries theirs, test_contract_properties as well.
COVERED = (
    *("chat", "stop_chat", "follow_request", "fork_thread", "ask", "create_conversation"),
    *("list_conversations", "rename_conversation", "send_message", "rate_message"),
)
OTHERS = sorted({told.name for told in OPERATIONS.values()} - set(COVERED))
QUICK = f"""
[[operations]]
include-operation-id = {json.dumps(OTHERS)}
phases.coverage.enabled = false
"""
LAST = ("delete_thread", "delete_conversation")  # what they are given would be gone for all others


@pytest.fixture
def door(sample_home: Path, redis_url: str, tmp_path: Path) -> Iterator[Door]:
    with real_door(sample_home, tmp_path, redis_url) as door:
        yield door


@pytest.fixture
def signed_in_door(sample_home: Path, redis_url: str, tmp_path: Path) -> Iterator[Door]:
    with real_door(sample_home, tmp_path, redis_url, JWT_SECRET=SECRET) as door:
        door.http.headers["Authorization"] = f"Bearer {token()}"
        yield door


def begun(door: Door) -> dict[str, str]:
    """A conversation with an answer in it, by the names of the parameters that lead to it."""
    asked = door.http.post("/api/chat", json={"thread_id": NAME, "message": "创业补贴有多少？"})
    done = events_of(asked.text)[-1][1]
    return {
        "path.thread_id": NAME,
        "path.request_id": done["request_id"],
        "path.conversation_id": done["conversation_id"],
        "path.message_id": done["assistant_message_id"],
    }


def rules_for(door: Door, folder: Path, more: str = "") -> Path:
    """The rules, and for each operation with ids in its path those of a conversation that exists."""
    ids, rules = begun(door), RULES.read_text(encoding="utf-8") + more
    for (_, path), told in OPERATIONS.items():
        known = {name: value for name, value in ids.items() if f"{{{name.removeprefix('path.')}}}" in path}
        if known and told.name not in LAST:
            rules += f'\n[[operations]]\ninclude-operation-id = "{told.name}"\n[operations.parameters]\n'
            rules += "".join(f'"{name}" = {json.dumps(value)}\n' for name, value in known.items())
    place = folder / "schemathesis.toml"
    place.write_text(rules, encoding="utf-8")
    return place


def findings(door: Door, rules: Path, phases: str, examples: int, least: int = len(OPERATIONS)) -> str:
    """What schemathesis has to say when it finds something; "" when it did not, in as many operations."""
    options = ["--phases", phases, "--max-examples", str(examples), "--checks", "all", "--no-color"]
    who = door.http.headers.get("Authorization")
    done = subprocess.run(
        [PROGRAM, "--config-file", rules, "run", f"{door.address}/openapi.json", *options]
        + (["--header", f"Authorization: {who}"] if who else []),
        cwd=rules.parent,
        env={**os.environ, "NO_PROXY": "127.0.0.1", "SCHEMATHESIS_HOOKS": str(HOOKS)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    told = done.stdout + done.stderr
    tested = re.search(r"Tested: (\d+)", told)
    has_run = tested is not None and int(tested[1]) >= least
    return "" if done.returncode == 0 and has_run else told


def test_every_answer_to_a_local_caller_is_in_the_document(door: Door, tmp_path: Path) -> None:
    told = findings(door, rules_for(door, tmp_path, QUICK), "examples,coverage,fuzzing", 2)
    assert told == "", told


def test_every_answer_to_a_signed_in_caller_is_in_the_document(signed_in_door: Door, tmp_path: Path) -> None:
    rules = rules_for(signed_in_door, tmp_path)
    told = findings(signed_in_door, rules, "examples,fuzzing", 3)
    assert told == "", told


def test_what_was_made_is_found_until_it_is_deleted(signed_in_door: Door) -> None:
    """Along the links, from making a conversation on."""
    told = findings(signed_in_door, RULES, "stateful", 6, least=5)
    assert told == "", told


@pytest.mark.long
def test_every_answer_in_long(door: Door, tmp_path: Path) -> None:
    told = findings(door, rules_for(door, tmp_path), "examples,coverage,fuzzing,stateful", 200)
    assert told == "", told
