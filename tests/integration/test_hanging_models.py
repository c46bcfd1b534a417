"""A model that never answers is given up when its turn is; nothing that hangs keeps a process from ending."""

import http.client
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import NARRATIVE, WAIT_SECONDS, Service, environment, read_event, send, servers_in, serving

MODEL = {"MODEL": "hanging_model:make"}
RETRIEVER = {"RETRIEVER": "hanging_retriever:make"}
FACT = "云帆科技2023年的营业收入是多少？"


def asked(service: Service, node: str, message: str = NARRATIVE) -> http.client.HTTPResponse:
    """The stream of a question whose turn has got as far as this step."""
    reply = send(service.connect(), "POST", "/api/chat", {"thread_id": "t", "message": message})
    while read_event(reply)[2].get("node") != node:
        pass
    return reply


def done(reply: http.client.HTTPResponse) -> dict[str, Any]:
    while True:
        _, name, data = read_event(reply)
        assert name != "error", data
        if name == "done":
            return data


def test_a_stop_reaches_a_model_that_says_nothing(home: Path) -> None:
    with serving(home, **MODEL) as service:
        reply = asked(service, "answer")
        service.call("POST", "/api/chat/stop", {"thread_id": "t"})
        ended = done(reply)
        assert ended["status"] == "stopped"
        assert ended["answer"]["partial"]
        again = send(service.connect(), "POST", "/api/chat", {"thread_id": "t", "message": FACT})
        assert "323,706.91" in done(again)["text"]


def test_a_stop_reaches_a_model_that_words_suggestions(home: Path) -> None:
    """It is asked back by rule then, as without a model."""
    with serving(home, **MODEL) as service:
        first = send(service.connect(), "POST", "/api/chat", {"thread_id": "t", "message": FACT})
        assert "323,706.91" in done(first)["text"]
        reply = asked(service, "suggest", "那净利润呢？")
        service.call("POST", "/api/chat/stop", {"thread_id": "t"})
        assert done(reply)["status"] in ("needs_input", "stopped")
        again = send(service.connect(), "POST", "/api/chat", {"thread_id": "t", "message": FACT})
        assert "323,706.91" in done(again)["text"]


@pytest.mark.parametrize(
    "given", [{"RUN_TIMEOUT_SECONDS": "4"}, {"DRAIN_SECONDS": "0.2"}], ids=["time-out", "shutdown"]
)
def test_a_turn_ended_from_outside_can_be_retried(home: Path, given: dict[str, str]) -> None:
    with serving(home, **MODEL, **given) as service:
        reply = asked(service, "answer")
        if "DRAIN_SECONDS" in given:
            assert service.end() == 0
        assert done(reply)["answer"] is None
        service.end()  # a server that is killed may forget the last second, and with it that the turn ended
    with serving(home) as service:
        again = send(service.connect(), "POST", "/api/chat", {"thread_id": "t", "message": "/retry"})
        assert "8000元" in done(again)["text"]


@pytest.mark.parametrize("arguments", [(), ("--workers", "2")], ids=["alone", "two workers"])
def test_a_service_ends_whatever_hangs(home: Path, arguments: tuple[str, ...]) -> None:
    with serving(home, *arguments, **RETRIEVER, DRAIN_SECONDS="0.2") as service:
        reply = asked(service, "retrieve")
        assert service.end() == 0
        assert b'"code":"shutting_down"' in reply.read()


def test_the_second_ctrl_c_leaves(home: Path) -> None:
    asking = subprocess.Popen(
        [sys.executable, "-P", "-m", "api", "ask", NARRATIVE],
        env={**os.environ, **environment(home), **RETRIEVER},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert asking.stderr
        assert asking.stderr.readline() == "asked\n"
        for _ in range(int(WAIT_SECONDS)):  # two that come together are one
            asking.send_signal(signal.SIGINT)
            try:
                assert asking.wait(1) == 130
                break
            except subprocess.TimeoutExpired:
                continue
        else:
            pytest.fail("it never ended")
    finally:
        asking.kill()
        asking.communicate()
        for server in servers_in(home):
            server.kill()


def test_a_folder_of_ones_own_may_hold_the_model(tmp_path: Path) -> None:
    """`scripts/run` puts the project before what PYTHONPATH names, and in place of nothing."""
    root = Path(__file__).parents[2]
    for name in ("scripts/run", "scripts/environment.sh", "requirements/test.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(root / name, tmp_path / name)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$PYTHONPATH"\n')
    python.chmod(0o755)
    pins = (tmp_path / "requirements/test.txt").read_bytes()
    stamp = subprocess.run(["cksum"], input=pins, capture_output=True, check=True)
    (tmp_path / ".venv" / ".installed-test").write_bytes(stamp.stdout)
    for given, wanted in (("/models", f"{tmp_path}:/models"), ("", str(tmp_path))):
        done = subprocess.run(
            [tmp_path / "scripts" / "run", "doctor"],
            env={**os.environ, "PYTHONPATH": given},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == wanted
