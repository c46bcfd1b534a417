"""The clients that the documentation shows, run as they are shown against a real server."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from door import Door, open_door

from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.store import open_store

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "docs" / "examples" / "client.mjs"
NARRATIVE = "一次性创业补贴有多少钱？"
TOLD = "一次性创业补贴的标准为每户8000元"
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


@pytest.fixture
def door(assistant: Any, new_database: Callable[..., StoreConfig]) -> Iterator[Door]:
    with open_store(new_database("sqlite")) as store, open_door(assistant, store=store) as door:
        yield door
        door.wait_idle()


def client(
    address: str, message: str, thread_id: str = "demo", **env: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["node", str(CLIENT), address, thread_id, message],
        env={"PATH": str(Path(str(shutil.which("node"))).parent), **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@needs_node
def test_the_client_shows_answers_sources_and_questions_back(door: Door) -> None:
    done = client(door.address, NARRATIVE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(TOLD)
    assert "\n[C1] 一次性创业补贴实施细则\n(completed)\n" in done.stdout
    asked = client(door.address, "云帆2023年净利润")
    assert "1. 云帆科技股份有限公司" in asked.stdout
    assert asked.stdout.endswith("(needs_input)\n")


@needs_node
@pytest.mark.parametrize("after", [1, 3, 6])
def test_the_client_follows_a_broken_stream_and_shows_each_word_once(door: Door, after: int) -> None:
    whole = client(door.address, NARRATIVE, "whole")
    done = client(door.address, NARRATIVE, f"t{after}", BREAK_AFTER=str(after))
    assert (done.returncode, done.stdout) == (0, whole.stdout)
    assert len(door.records(f"t{after}")) == 1


@needs_node
def test_the_client_says_why_it_was_refused(door: Door) -> None:
    done = client(door.address, "x" * 4001)
    assert done.returncode == 1
    assert "(invalid_body, request " in done.stderr


PIECES = """
import { eventsOf } from %s;
const bytes = new TextEncoder().encode(%s);
const start = (to) => { for (const byte of bytes) to.enqueue(Uint8Array.of(byte)); to.close(); };
const body = new ReadableStream({ start });
const found = [];
for await (const event of eventsOf(new Response(body))) found.push(event);
console.log(JSON.stringify(found));
"""


@needs_node
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_client_reads_a_stream_that_is_split_anywhere(end: str) -> None:
    lines = [": heartbeat", "", "id: 1", "event: token", 'data: {"text":"字🇨🇳\\n: x"}', "", "id:2",
             "event:done", 'data: {"a":', "data: 1}", "", "id: 3", "data"]  # fmt: skip
    program = PIECES % (json.dumps(CLIENT.as_uri()), json.dumps(end.join(lines)))
    done = subprocess.run(
        ["node", "--input-type=module", "-e", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        {"id": 1, "name": "token", "data": {"text": "字🇨🇳\n: x"}},
        {"id": 2, "name": "done", "data": {"a": 1}},
    ]


SHOWN = re.compile(r"<!-- curl -->\n```console\n(.*?)```\n<!-- end of curl -->", re.DOTALL)


def commands_in(page: str) -> list[tuple[list[str], str]]:
    """(the words of a command, what is shown of its output) for each `$` of the page's curl blocks."""
    found = []
    for block in SHOWN.findall((ROOT / page).read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = re.sub(r"\\\n\s*", "", part).partition("\n")
            found.append((shlex.split(command), output))
    return found


def without_ids(text: str) -> str:
    """Without what is another each time."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "ID", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+\+08:00", "TIME", text)
    return re.sub(r'"duration_ms":\d+', '"duration_ms":N', text)


def pieces_of(shown: str) -> list[str]:
    """`…` stands for anything."""
    return [piece.strip() for piece in without_ids(shown).split("…") if piece.strip()]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
def test_the_curl_commands_print_what_the_page_shows(door: Door, page: str) -> None:
    commands = commands_in(page)
    assert len(commands) >= 3
    request_id = ""
    for words, shown in commands:
        said = run_curl(words, door.address, request_id)
        request_id = request_id or re.findall(r'"request_id":"([^"]+)"', said)[0]
        at = 0
        for piece in pieces_of(shown):
            place = without_ids(said).find(piece, at)
            assert place >= 0, f"{page} shows {piece!r}; the server said {said}"
            at = place + len(piece)


def run_curl(words: list[str], address: str, request_id: str) -> str:
    here = address.removeprefix("http://")
    words = [word.replace("localhost:8000", here).replace("REQUEST_ID", request_id) for word in words]
    assert words[0] == "curl"
    command = [*words, "--noproxy", "*", "-sS"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


@needs_node
def test_the_client_says_how_it_is_called() -> None:
    done = subprocess.run(["node", str(CLIENT)], capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (1, "usage: node client.mjs ADDRESS THREAD QUESTION\n")
