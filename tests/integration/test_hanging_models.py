"""A model that never answers keeps neither a service nor a command line from ending."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import NARRATIVE, WAIT_SECONDS, environment, send, servers_in, serving

MODEL = {"MODEL": "hanging_model:make"}


@pytest.mark.parametrize("arguments", [(), ("--workers", "2")], ids=["alone", "two workers"])
def test_a_service_ends_whatever_a_model_does(home: Path, arguments: tuple[str, ...]) -> None:
    with serving(home, *arguments, **MODEL, DRAIN_SECONDS="0.2") as service:
        reply = send(service.connect(), "POST", "/api/chat", {"thread_id": "t", "message": NARRATIVE})
        while b'"node":"answer"' not in reply.readline():
            pass
        assert service.end() == 0
        assert b'"code":"shutting_down"' in reply.read()


def test_the_second_ctrl_c_leaves(home: Path) -> None:
    asking = subprocess.Popen(
        [sys.executable, "-P", "-m", "api", "ask", NARRATIVE],
        env={**os.environ, **environment(home), **MODEL},
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
