"""Request records read with nothing but a Redis client and JSON: by Node, and by redis-cli with jq."""

import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from checkpoint import ContextConfig, RedisContextSaver
from checkpoint.config import DEFAULT_PREFIX
from checkpoint.layout import context_key

READER = Path(__file__).with_name("read_requests.mjs")
THREAD = '窗口 "7" {a}'


def record(number: int, thread_id: str = THREAD) -> dict[str, Any]:
    second = f"2026-03-01T08:00:{number % 60:02}"
    return {
        "schema_version": 1,
        "request_id": f'r-{number:03} "引号" \\ 🇨🇳',
        "thread_id": thread_id,
        "question": f"第 {number} 个问题\n\t“净利润” <b> \x7f",
        "original_question": None if number % 2 else "最初的问题",
        "input_kind": "new_question",
        "received_at": f"{second}.000+08:00",
        "started_at": f"{second}.004+08:00",
        "finished_at": None,
        "duration_ms": None,
        "status": "running",
        "degraded": False,
        "error_code": None,
    }


@pytest.fixture
def kept(saver: RedisContextSaver) -> list[dict[str, Any]]:
    """Records of two threads beside checkpoints and writes; some were updated in place."""
    graph = one_node(saver)
    graph.invoke({"question": "q"}, {"configurable": {"thread_id": THREAD}})
    records = [record(number) for number in range(250)]
    for each in [*reversed(records), record(1, "another window")]:
        saver.put_request(each)
    done = {"status": "completed", "finished_at": "2026-03-01T08:01:00.000+08:00", "duration_ms": 1234}
    records = [each | done if place % 3 == 0 else each for place, each in enumerate(records)]
    for each in records[::3]:
        saver.put_request(each)
    expected: list[dict[str, Any]] = [dict(each) for each in saver.list_requests(THREAD)]
    assert expected == sorted(records, key=lambda each: (each["received_at"], each["request_id"]))
    return expected


def one_node(saver: RedisContextSaver) -> Any:
    from langgraph.graph import END, START, StateGraph

    graph: Any = StateGraph(dict)
    graph.add_node("node", lambda _: {"answer": "a"})
    graph.add_edge(START, "node")
    graph.add_edge("node", END)
    return graph.compile(checkpointer=saver)


def program(*names: str) -> str:
    for name in names:
        if found := shutil.which(name):
            return found
    pytest.skip(f"{' or '.join(names)} is not installed")


def run(*words: str, text: bytes | None = None) -> bytes:
    done = subprocess.run(words, input=text, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def path_of(redis_url: str) -> str:
    return unquote(urlsplit(redis_url).path)


@pytest.fixture
def tcp_address(redis_url: str) -> Iterator[str]:
    """The server behind a TCP port, for a client that knows no unix sockets."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=forward, args=(listener, path_of(redis_url)), daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def forward(listener: socket.socket, path: str) -> None:
    with suppress(OSError), listener.accept()[0] as client, socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        back = threading.Thread(target=pump, args=(server, client), daemon=True)
        back.start()
        pump(client, server)
        back.join()


def pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def test_node_reads_the_records_over_a_unix_socket(redis_url: str, kept: list[dict[str, Any]]) -> None:
    node = program("node")
    assert json.loads(run(node, str(READER), path_of(redis_url), DEFAULT_PREFIX, THREAD)) == kept


def test_node_reads_the_records_over_tcp(tcp_address: str, kept: list[dict[str, Any]]) -> None:
    node = program("node")
    assert json.loads(run(node, str(READER), tcp_address, DEFAULT_PREFIX, THREAD)) == kept


def test_node_reads_plain_records_of_an_encrypting_saver(redis_url: str) -> None:
    with RedisContextSaver(ContextConfig(url=redis_url, aes_key=b"k" * 32)) as saver:
        one_node(saver).invoke({"question": "q"}, {"configurable": {"thread_id": THREAD}})
        saver.put_request(record(1))
    found = json.loads(run(program("node"), str(READER), path_of(redis_url), DEFAULT_PREFIX, THREAD))
    assert found == [record(1)]


def test_a_thread_without_records_reads_as_an_empty_list(redis_url: str) -> None:
    node = program("node")
    assert json.loads(run(node, str(READER), path_of(redis_url), DEFAULT_PREFIX, "nobody")) == []


def test_redis_cli_and_jq_read_one_record(redis_url: str, kept: list[dict[str, Any]]) -> None:
    cli, jq = program("valkey-cli", "redis-cli"), program("jq")
    field = json.dumps(["request", "v1", kept[0]["request_id"]], ensure_ascii=False, separators=(",", ":"))
    key = context_key(DEFAULT_PREFIX, THREAD)
    value = run(cli, "-s", path_of(redis_url), "--raw", "HGET", key, field)
    assert json.loads(run(jq, "-c", ".", text=value)) == kept[0]
    assert run(jq, "-r", ".status", text=value).decode().strip() == kept[0]["status"]


def test_redis_cli_and_jq_read_them_all(redis_url: str, kept: list[dict[str, Any]]) -> None:
    """As the page on the saver shows it."""
    cli, jq = program("valkey-cli", "redis-cli"), program("jq")
    scan = ("HSCAN", context_key(DEFAULT_PREFIX, THREAD), "0", "MATCH", r'\["request","v1",*')
    reply = run(cli, "-s", path_of(redis_url), "--json", *scan, "COUNT", "100000")
    pick = ".[1] | [recurse(.[2:]; length > 0) | .[1] | fromjson] | sort_by(.received_at, .request_id)"
    assert json.loads(run(jq, "-c", pick, text=reply)) == kept


def test_redis_cli_and_jq_read_all_as_the_page_says(redis_url: str, kept: list[dict[str, Any]]) -> None:
    """The very command of docs/saver.md, for another thread and a server on a unix socket."""
    cli, _, shell = program("redis-cli", "valkey-cli"), program("jq"), program("bash")
    page = (Path(__file__).parents[2] / "docs" / "saver.md").read_text()
    _, _, rest = page.partition("$ key=")
    command = "key=" + rest.partition("```")[0].replace("$ redis-cli", f"{cli} -s {path_of(redis_url)}")
    assert "example-window" in command
    command = command.replace("example-window", "'" + THREAD + "'")
    assert json.loads(run(shell, "-c", command)) == kept
