"""The embedded server: one per folder, alive through the death of either side, gone when nobody needs it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis
from langgraph.checkpoint.conformance.test_utils import (
    generate_checkpoint,
    generate_config,
    generate_metadata,
)

import checkpoint
from checkpoint import (
    AsyncRedisContextSaver,
    ContextConfig,
    EmbeddedServerError,
    RedisContextSaver,
    load_context_config,
)
from checkpoint.connect import connect, connect_async
from checkpoint.embedded import LONGEST_SOCKET_PATH, answers, open_embedded, socket_path
from checkpoint.studio import open_saver

ROOT = Path(checkpoint.__file__).parents[1]
WAIT_SECONDS = 60.0  # how long anything may take before a test gives up; nothing is asserted about speed


_numbers = count()


@pytest.fixture
def home(short_folder: Path, end_server: Callable[[str], None]) -> Iterator[Path]:
    folder = short_folder / f"h{next(_numbers)}"
    yield folder
    if folder.exists() and answers(socket_path(folder)):
        end_server(f"unix://{socket_path(folder)}")


def process_of(home: Path) -> int:
    with redis.Redis(unix_socket_path=str(socket_path(home))) as client:
        return int(client.info("server")["process_id"])


def kill_server(home: Path) -> None:
    """SIGKILL, once the server has written what it confirmed: a busy disk lets it put that off for 2 s."""
    with redis.Redis(unix_socket_path=str(socket_path(home))) as client:
        while (state := client.info("persistence"))["aof_buffer_length"] or state["aof_pending_bio_fsync"]:
            time.sleep(0.01)
        pid = int(client.info("server")["process_id"])
    os.kill(pid, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    """Whether the process still runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.02)


def wait_for_end(home: Path) -> None:
    until(lambda: not answers(socket_path(home)))


def require_no_server(home: Path, pid: int) -> None:
    """Nobody is answered any more; of its process there may for a moment be something left to clear away."""
    assert not answers(socket_path(home))
    until(lambda: not is_alive(pid))


def guardian_of(home: Path) -> psutil.Process:
    (found,) = (each for each in psutil.process_iter(["cmdline"]) if is_guardian(each, home))
    return found


def is_guardian(process: psutil.Process, home: Path) -> bool:
    words = process.info["cmdline"] or []
    return str(home) in words and any(word.endswith("guardian.py") for word in words)


def held_by_a_child(home: Path) -> "subprocess.Popen[str]":
    child = run_child(home, HOLD)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def put(saver: RedisContextSaver, thread: str = "t") -> None:
    saver.put(
        generate_config(thread),
        generate_checkpoint(checkpoint_id="1", channel_values={"a": 1}, channel_versions={"a": 1}),
        generate_metadata(),
        {"a": 1},
    )


def run_child(home: Path, program: str) -> "subprocess.Popen[str]":
    environment = {"PATH": os.environ["PATH"], "BUSINESS_ASSISTANT_HOME": str(home), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", program], env=environment, cwd=home.parent, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


HOLD = """
import sys
from checkpoint import RedisContextSaver, load_context_config
from langgraph.checkpoint.base import empty_checkpoint
saver = RedisContextSaver(load_context_config())
saver.put({"configurable": {"thread_id": "child", "checkpoint_ns": ""}}, empty_checkpoint(), {}, {})
print("ready", flush=True)
sys.stdin.readline()
saver.close()
"""


def test_as_the_reader_is_shown(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    monkeypatch.setenv("BUSINESS_ASSISTANT_HOME", str(home))
    saver = RedisContextSaver(load_context_config())
    pid = process_of(home)
    assert saver.list_requests("example-window") == []
    saver.close()
    saver.close()
    require_no_server(home, pid)


def test_data_are_there_after_a_restart(home: Path) -> None:
    config = ContextConfig(home=home)
    for number in range(3):
        with RedisContextSaver(config) as saver:
            put(saver, f"t{number}")
            assert len(list(saver.list(None))) == number + 1


def test_the_folder_is_private(home: Path) -> None:
    with RedisContextSaver(ContextConfig(home=home)):
        assert home.stat().st_mode & 0o077 == 0
        assert socket_path(home).stat().st_mode & 0o077 == 0


def test_several_handles_share_one_server(home: Path) -> None:
    first, second = open_embedded(home), open_embedded(home)
    assert (first.started_here, second.started_here) == (True, False)
    assert first.url == second.url
    first.close()  # it started the server, but is not alone
    assert answers(socket_path(home))
    third = open_embedded(home)
    assert third.started_here is False
    second.close()  # it did not start it
    assert answers(socket_path(home))
    third.close()
    wait_for_end(home)


def test_racing_starters_get_one_server(home: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        handles = list(pool.map(lambda _: open_embedded(home), range(8)))
    assert sum(handle.started_here for handle in handles) == 1
    for handle in sorted(handles, key=lambda handle: handle.started_here):
        handle.close()
    assert not answers(socket_path(home))


def test_racing_processes_get_one_server(home: Path) -> None:
    home.mkdir(mode=0o700)
    children = [run_child(home, HOLD) for _ in range(4)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    with RedisContextSaver(ContextConfig(home=home)) as saver:
        assert len(list(saver.list(None))) == 4
    for child in children:
        child.communicate("\n")
        assert child.returncode == 0


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guardian that is started here waits for nobody."""
    monkeypatch.setattr("checkpoint.embedded.ALONE_SECONDS", 0.05)


@pytest.mark.usefixtures("soon")
def test_the_server_outlives_a_killed_process_while_another_uses_it(home: Path) -> None:
    home.mkdir(mode=0o700)
    child = held_by_a_child(home)
    pid = process_of(home)
    assert os.getsid(pid) != os.getsid(child.pid)  # no terminal signal reaches it
    with RedisContextSaver(ContextConfig(home=home)) as saver:
        child.kill()
        child.communicate()
        time.sleep(0.3)  # many times what a guardian that errs would wait
        assert is_alive(pid)
        assert process_of(home) == pid
        assert len(list(saver.list(None))) == 1
    wait_for_end(home)


def test_the_next_user_finds_it_running_when_it_comes_soon(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkpoint.embedded.ALONE_SECONDS", WAIT_SECONDS)
    with RedisContextSaver(ContextConfig(home=home)):
        child = held_by_a_child(home)
        pid = process_of(home)
    child.kill()
    child.communicate()
    with RedisContextSaver(ContextConfig(home=home)) as saver:
        assert process_of(home) == pid
        assert len(list(saver.list(None))) == 1
    guardian_of(home).kill()


@pytest.mark.usefixtures("soon")
def test_it_ends_when_all_who_used_it_were_killed(home: Path) -> None:
    with RedisContextSaver(ContextConfig(home=home)):  # it posts the guardian, which waits for nobody
        children = [held_by_a_child(home) for _ in range(2)]
        pid = process_of(home)
    assert is_alive(pid)
    for child in children:
        assert is_alive(pid)
        child.kill()
        child.communicate()
    wait_for_end(home)
    require_no_server(home, pid)
    with RedisContextSaver(ContextConfig(home=home)) as saver:
        assert len(list(saver.list(None))) == 2


def test_a_process_that_is_killed_alone_leaves_no_server(home: Path) -> None:
    home.mkdir(mode=0o700)
    child = held_by_a_child(home)
    pid, guardian = process_of(home), guardian_of(home)
    assert os.getsid(guardian.pid) != os.getsid(child.pid)
    child.kill()
    child.communicate()
    wait_for_end(home)
    require_no_server(home, pid)
    guardian.wait(WAIT_SECONDS)


@pytest.mark.usefixtures("soon")
def test_one_guardian_and_another_when_it_is_killed(home: Path) -> None:
    first, second = open_embedded(home), open_embedded(home)
    guardian = guardian_of(home)
    guardian.kill()
    guardian.wait(WAIT_SECONDS)
    third = open_embedded(home)
    assert guardian_of(home).pid != guardian.pid
    for handle in (first, second, third):
        handle.started_here = False
        handle.close()
    wait_for_end(home)


@pytest.mark.usefixtures("soon")
def test_a_server_that_starts_at_once_again_is_guarded_too(home: Path) -> None:
    for _ in range(5):
        handle = open_embedded(home)
        handle.started_here = False
        handle.close()
        time.sleep(0.06)  # about when the guardian ends the server
    wait_for_end(home)


@pytest.mark.usefixtures("soon")
def test_a_client_that_only_joined_keeps_it(home: Path) -> None:
    handle = open_embedded(home)
    with redis.Redis(unix_socket_path=str(socket_path(home))) as client:
        client.set("k", "v")
        handle.started_here = False
        handle.close()
        time.sleep(0.3)
        assert client.get("k") == b"v"
    wait_for_end(home)


def test_a_guardian_that_cannot_start_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkpoint.guardian.__file__", str(home / "missing.py"))
    with pytest.raises(EmbeddedServerError, match="guardian"):
        open_embedded(home)
    monkeypatch.undo()
    open_embedded(home).close()


async def test_a_killed_server_comes_back_with_everything(home: Path) -> None:
    with RedisContextSaver(ContextConfig(home=home)) as saver:
        for number in range(50):
            put(saver, f"t{number}")
        kill_server(home)
        assert len(list(saver.list(None))) == 50
    async with AsyncRedisContextSaver(ContextConfig(home=home)) as both:
        assert await both.aget_tuple(generate_config("t1")) is not None
        kill_server(home)
        assert await both.aget_tuple(generate_config("t1")) is not None
        assert both.get_tuple(generate_config("t2")) is not None


def test_a_kill_at_every_command_loses_nothing_confirmed(home: Path, is_long: bool) -> None:
    """The server is killed in the middle of a stream of writes; what was confirmed is there."""
    for _ in range(10 if is_long else 2):
        confirmed = []
        with RedisContextSaver(ContextConfig(home=home)) as saver:
            for number in range(30):
                if number % 7 == 3:
                    kill_server(home)
                put(saver, f"k{number}")
                confirmed.append(f"k{number}")
            assert all(saver.get_tuple(generate_config(thread)) is not None for thread in confirmed)


def test_a_forked_child_ends_nothing(home: Path) -> None:
    handle = open_embedded(home)
    if (child := os.fork()) == 0:
        handle.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert answers(socket_path(home))
    handle.close()
    assert not answers(socket_path(home))


def test_a_long_path_gets_a_short_private_folder(short_folder: Path) -> None:
    home = short_folder / ("x" * 60) / ("y" * 60)
    path = socket_path(home)
    assert len(os.fsencode(path)) <= LONGEST_SOCKET_PATH
    assert path.parent.stat().st_mode & 0o077 == 0
    assert path == socket_path(home) != socket_path(home / "z")
    with RedisContextSaver(ContextConfig(home=home)) as saver:
        put(saver)
        assert (home / "appendonlydir").is_dir()
    path.parent.chmod(0o755)
    with pytest.raises(EmbeddedServerError, match="open to others"):
        socket_path(home)
    for folder in (path.parent, socket_path_of_z(home)):
        folder.chmod(0o700)
        folder.rmdir()


def socket_path_of_z(home: Path) -> Path:
    return socket_path(home / "z").parent


def test_too_long_for_any_folder(short_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(short_folder / ("t" * 90)))
    with pytest.raises(EmbeddedServerError, match="shorter path"):
        socket_path(short_folder / ("x" * 120))


def test_a_folder_that_cannot_be_used(short_folder: Path) -> None:
    blocked = short_folder / "file"
    blocked.write_text("no folder")
    with pytest.raises(EmbeddedServerError, match="BUSINESS_ASSISTANT_HOME"):
        open_embedded(blocked)


def test_a_server_that_cannot_start_says_why(home: Path) -> None:
    home.mkdir()
    (home / "appendonlydir").write_text("in the way")
    with pytest.raises(EmbeddedServerError, match="did not start"):
        open_embedded(home)


def test_what_does_not_answer_is_not_doubled(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = open_embedded(home)
    pid = process_of(home)
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr("checkpoint.guardian.ANSWER_SECONDS", 0.2)
    try:
        with pytest.raises(EmbeddedServerError, match="does not answer"):
            open_embedded(home)
    finally:
        os.kill(pid, signal.SIGCONT)
    handle.close()


def test_closing_a_plain_client_ends_the_server(home: Path) -> None:
    client: Any = connect(ContextConfig(home=home))
    assert client.ping()
    client.close()
    assert not answers(socket_path(home))


async def test_a_plain_async_client_joins(home: Path) -> None:
    with RedisContextSaver(ContextConfig(home=home)):
        client: Any = await connect_async(ContextConfig(home=home))
        assert await client.ping()
        await client.aclose()


async def test_the_studio_opens_and_closes_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    monkeypatch.setenv("BUSINESS_ASSISTANT_HOME", str(home))
    async with open_saver() as saver:
        await saver.aput(generate_config("t"), generate_checkpoint(), generate_metadata(), {})
        pid = process_of(home)
    require_no_server(home, pid)
