"""`langgraph dev` on the shipped langgraph.json, driven through langgraph_sdk, with no network and no key."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client
from ports import free_port

ROOT = Path(__file__).parents[2]
START_SECONDS = 300


class Studio:
    """One dev server."""

    def __init__(self, home: Path, redis_url: str, log: Path) -> None:
        self._env = {**os.environ, "BUSINESS_ASSISTANT_HOME": str(home), "REDIS_URL": redis_url}
        self._env |= {"LANGGRAPH_CLI_NO_ANALYTICS": "1", "PYTHONPATH": str(ROOT)}
        for name in ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY"):
            self._env.pop(name, None)
        self.log = log
        self.start()

    def start(self) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--host", "127.0.0.1", "--port", str(port)],
                cwd=ROOT,
                env=self._env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            try:
                if httpx.get(f"{self.url}/ok", timeout=20).is_success:
                    return
            except httpx.HTTPError:
                time.sleep(0.3)
        raise AssertionError(f"the dev server did not start: {self.log.read_text()[-3000:]}")

    def leave(self) -> None:
        """Ctrl-C. The dev server writes its runs now and then and at its end: killed, it repeats old ones."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(120)

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(120)

    @contextmanager
    def client(self) -> Iterator[Any]:
        client = get_sync_client(url=self.url)
        try:
            yield client
        finally:
            client.http.client.close()


@pytest.fixture
def studio(home: Path, redis_url: str, tmp_path: Path) -> Iterator[Studio]:
    running = Studio(home, redis_url, tmp_path / "dev.log")
    yield running
    running.kill()


def run(client: Any, thread: str, text: str, **more: Any) -> dict[str, Any]:
    state: dict[str, Any] = client.runs.wait(
        thread, "assistant", input={"request": {"text": text}}, durability="sync", **more
    )
    return state


@pytest.mark.xdist_group("studio")
def test_every_road_of_a_turn_through_the_sdk(studio: Studio) -> None:
    with studio.client() as client:
        thread = client.threads.create()["thread_id"]
        walk_every_road(client, thread)
    studio.leave()
    studio.start()
    with studio.client() as client:
        state = run(client, thread, "那净利润呢")
        assert state["suggestions"]["options"]
    log = studio.log.read_text()
    assert "BlockingError" not in log
    assert "Traceback" not in log


def walk_every_road(client: Any, thread: str) -> None:
    fact = run(
        client,
        thread,
        "云帆科技2023年营收是多少？",
        context={"groups": ["audit"], "caller": {"user": "root"}},
    )
    assert fact["answer"]["kind"] == "fact"
    assert [message["type"] for message in fact["messages"]] == ["human", "ai"]

    updates = [
        next(iter(part.data))
        for part in client.runs.stream(
            thread,
            "assistant",
            input={"request": {"text": "一次性创业补贴有多少钱？"}},
            stream_mode=["updates"],
        )
        if part.event == "updates"
    ]
    assert updates == ["gate", "intent", "retrieve", "answer"]

    asked = run(client, thread, "云帆2023年净利润是多少")
    assert asked["clarification"]["pages"] == 2
    assert run(client, thread, "下一页")["clarification"]["page"] == 2
    assert run(client, thread, "2")["answer"]["kind"] == "fact"
    assert run(client, thread, "/retry")["outcome"]["notice"]
    assert run(client, thread, "云帆2022年营收")["clarification"]
    assert run(client, thread, "取消")["answer"]["kind"] == "cancelled"
    assert run(client, thread, "云湖市火星移民补贴是多少")["answer"]["kind"] == "not_found"

    said = client.runs.wait(thread, "assistant", input={"messages": [{"role": "user", "content": "谢谢"}]})
    assert said["answer"]["kind"] == "small_talk"

    history = client.threads.get_history(thread, limit=100)
    assert len(history) > 30


@pytest.mark.xdist_group("studio")
def test_fork_copy_and_delete_through_the_sdk(studio: Studio) -> None:
    with studio.client() as client:
        fork_copy_and_delete(client)


def fork_copy_and_delete(client: Any) -> None:
    thread = client.threads.create()["thread_id"]
    run(client, thread, "云帆科技2023年营收是多少？")
    second = run(client, thread, "北渚茶业2024年净利润是多少？")
    history = client.threads.get_history(thread, limit=100)
    first_end = next(
        state
        for state in history
        if (state["values"].get("answer") or {}).get("text", "").startswith("云帆") and not state["next"]
    )

    forked = client.runs.wait(
        thread,
        "assistant",
        input={"request": {"text": "湖光电子2024年营业收入"}},
        checkpoint_id=first_end["checkpoint"]["checkpoint_id"],
    )
    questions = [turn["question"] for turn in forked["history"]["turns"]]
    assert questions == ["云帆科技2023年营收是多少？", "湖光电子2024年营业收入"]
    assert len(second["history"]["turns"]) == 2

    copied = client.threads.copy(thread)["thread_id"]
    assert client.threads.get_state(copied)["values"]["turn_count"] == forked["turn_count"]
    client.threads.delete(thread)
    assert client.threads.get_state(copied)["values"]["turn_count"] == forked["turn_count"]
