"""The command line as a person meets it: exit codes, errors, restarts, replay, one's own documents."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from api.cli import _converse

ROOT = Path(__file__).parents[2]
Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]


@pytest.fixture
def run(home: Path) -> Iterator[Run]:
    """`business-assistant` with an embedded server in a folder of the test's own."""

    def call(*arguments: str, text: str | bytes | None = None, **env: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "api", *arguments],
            input=text.encode() if isinstance(text, str) else text,
            env={**os.environ, "PYTHONPATH": str(ROOT), "BUSINESS_ASSISTANT_HOME": str(home), **env},
            capture_output=True,
            check=False,
            timeout=300,
        )
        return Done(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    return_folder = home
    yield call
    for pid in server_pids(return_folder):
        os.kill(pid, signal.SIGKILL)


def server_pids(home: Path) -> list[int]:
    """The embedded servers that work in this folder."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            if (process / "cwd").resolve() == home.resolve() and b"valkey" in (
                process / "cmdline"
            ).read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("word", ["exit", " Quit ", "/quit", "/EXIT", "退出", ":q"])
def test_words_of_leaving_end_a_conversation_at_the_terminal(
    word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = io.StringIO(f"{word}\nnext\n")
    monkeypatch.setattr(sys, "stdin", typed)
    _converse(None, "leaving")  # whoever asked it would fail
    assert typed.read() == "next\n"
    assert "/quit" in capsys.readouterr().out


def refused(done: Done, code: int, *words: str) -> None:
    """One line on standard error, nothing on standard output, no traceback."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ask", ""], ("empty",)),
        (["ask", "  　 "], ("empty",)),
        (["ask", "字" * 4001], ("4001", "4,000")),
        (["ask"], ("question",)),
        (["frobnicate"], ("frobnicate",)),
        (["ingest", "/nonexistent"], ("/nonexistent",)),
        (["replay", "nobody"], ("nobody",)),
        (["serve", "--host", "0.0.0.0"], ("JWT_SECRET",)),  # noqa: S104 - it must be refused
        (["serve", "--port", "99999"], ("port",)),
    ],
)
def test_the_callers_mistake_is_one_line_and_code_2(
    run: Run, arguments: list[str], words: tuple[str, ...]
) -> None:
    refused(run(*arguments), 2, *words)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("REDIS_URL", "carrier-pigeon://x"),
        ("MODEL", "nonsense"),
        ("MODEL", "scripted:/nonexistent"),
        ("HISTORY_MAX_TURNS", "-1"),
        ("HISTORY_MAX_BYTES", "many"),
        ("FOLLOW_UP", "maybe"),
        ("REDIS_CONTEXT_TTL_SECONDS", "0"),
        ("BUSINESS_ASSISTANT_HOME", "/proc/nowhere"),
        ("RETRIEVER", "no.such:module"),
        ("EMBEDDINGS", "no.such:module"),
        ("CONTEXT_AES_KEY", "short"),
    ],
)
def test_a_wrong_setting_is_named_with_code_2(run: Run, setting: str, value: str) -> None:
    refused(run("ask", "你好", **{setting: value}), 2, setting)


def test_a_missing_redis_is_code_3_and_names_the_setting(run: Run) -> None:
    refused(run("ask", "你好", REDIS_URL="redis://127.0.0.1:1"), 3, "REDIS_URL")


def test_a_lone_surrogate_in_an_argument_is_refused(run: Run) -> None:
    refused(run("ask", os.fsdecode(b"a\xed\xa0\x80b")), 2, "surrogate")


def test_a_bad_line_is_said_and_the_others_are_answered(run: Run) -> None:
    done = run(
        "chat", "--json", text=b"\xe4\xbd\xa0\xe5\xa5\xbd\nnul\x00\n\xff\xfe\n\xe8\xb0\xa2\xe8\xb0\xa2\n"
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["status"] for line in lines] == ["completed", "refused", "refused", "completed"]
    assert done.returncode == 2
    assert "NUL" in done.stderr
    assert "surrogate" in done.stderr


def test_a_failed_request_is_code_1_and_can_be_retried(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "model.jsonl"
    script.write_text('{"error": "503"}\n')
    failed = run("ask", "-t", "t", "一次性创业补贴有多少？", MODEL=f"scripted:{script}")
    assert failed.returncode == 1
    assert "/retry" in failed.stdout
    again = run("ask", "-t", "t", "/retry", "--json")
    assert again.returncode == 0
    assert json.loads(again.stdout)["input_kind"] == "retry"


FIELDS = {
    "thread_id", "status", "input_kind", "error_code", "degraded", "turn_id", "original_question",
    "standalone_question", "answer", "clarification", "notice", "window", "decision_digest", "usage",
    "partial_text",
    "history_shaped",
}  # fmt: skip


def test_json_has_every_field_always(run: Run) -> None:
    questions = ["云帆2023年净利润", "取消", "/retry", "云帆科技2023年净利润"]
    done = run("chat", "--json", text="\n".join(questions))
    for line in done.stdout.splitlines():
        result = json.loads(line)
        assert set(result) == FIELDS
        assert set(result["window"]) == {"turns", "omitted_turns", "cut_bytes", "bytes", "reasons"}
        assert result["status"] in ("completed", "needs_input")
    assert result["answer"]["citations"][0].keys() >= {"document_id", "version", "title", "passage"}


def test_the_window_of_an_unknown_conversation_is_said_to_be_empty(run: Run) -> None:
    seen = run("window", "unheard-of")
    assert seen.stdout.startswith("(0 turns")
    assert "check the id" in seen.stderr


def test_a_conversation_survives_kill_9_of_process_and_server(run: Run, home: Path) -> None:
    asked = run("ask", "-t", "k", "云帆2023年净利润", "--json")
    assert json.loads(asked.stdout)["status"] == "needs_input"
    holder = subprocess.Popen(
        [sys.executable, "-P", "-m", "api", "chat", "-t", "k", "--json"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "BUSINESS_ASSISTANT_HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    holder.stdin.write("下一页\n".encode())
    holder.stdin.flush()
    assert json.loads(holder.stdout.readline())["clarification"]["page"] == 2

    beside = run("ask", "-t", "other", "你好")  # two at once share one server
    assert beside.returncode == 0
    assert len(server_pids(home)) == 1

    holder.kill()
    holder.communicate(timeout=300)
    for pid in server_pids(home):
        os.kill(pid, signal.SIGKILL)
    answered = run("ask", "-t", "k", "云帆建设", "--json")
    assert answered.returncode == 0, answered.stderr
    assert json.loads(answered.stdout)["answer"]["kind"] == "fact", answered.stderr
    assert json.loads(answered.stdout)["original_question"] == "云帆2023年净利润"


def test_the_server_ends_with_the_last_who_used_it(run: Run, home: Path) -> None:
    assert run("ask", "你好").returncode == 0
    deadline = time.monotonic() + 120
    while server_pids(home):  # it answers nobody any more, but may be about to go
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_own_documents_take_the_place_of_the_sample(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "parking.md").write_text("# 停车规定\n\n访客停车每小时收费5元，每天最高40元。\n")
    (folder / "companies.csv").write_text("company_id,name,aliases,english_names\nacme,埃克姆公司,,Acme\n")
    (folder / "metrics.csv").write_text(
        "metric_id,name,english_name,synonyms\nrevenue,营业收入,revenue,营收\n"
    )
    (folder / "facts.csv").write_text(
        "company,period,metric,value,unit\nacme,2023,revenue,12.50,万元\nacme,2024,revenue,twelve,万元\n"
    )
    loaded = run("ingest", str(folder))
    assert loaded.returncode == 0
    assert "facts.csv:3" in loaded.stderr
    assert "1 problems" in loaded.stdout

    assert "5元" in run("ask", "访客停车怎么收费？").stdout
    assert "12.50万元" in run("ask", "埃克姆公司2023年营收是多少").stdout
    assert "没有找到" in run("ask", "一次性创业补贴有多少？").stdout


def test_replay_says_equal_different_and_not_comparable(run: Run, tmp_path: Path) -> None:
    run("chat", "-t", "r", text="云帆科技2023年净利润\n一次性创业补贴有多少？\n云帆2022年营收\n")
    equal = run("replay", "r", "--json")
    assert equal.returncode == 0
    assert [item["verdict"] for item in json.loads(equal.stdout)["requests"]] == ["equal"] * 3

    different = run("replay", "r", HISTORY_MAX_TURNS="1", BLOCKED_TOPICS="补贴")
    assert different.returncode == 1
    assert "decision_digest: was" in different.stdout

    (tmp_path / "one.md").write_text("# 新文件\n\n内容。")
    run("ingest", str(tmp_path), "--keep-sample")
    changed = run("replay", "r", "--json")
    assert changed.returncode == 0
    assert {item["verdict"] for item in json.loads(changed.stdout)["requests"]} >= {"not_comparable"}


def test_doctor_finds_all_well_and_says_what_is_wrong(run: Run) -> None:
    well = run("doctor", "--json")
    assert well.returncode == 0
    assert {check["part"]: check["is_well"] for check in json.loads(well.stdout)} == {
        "redis": True,
        "knowledge": True,
        "model": True,
        "database": True,
    }
    ill = run("doctor", REDIS_URL="redis://:geheim@127.0.0.1:1")
    assert ill.returncode == 3
    assert "FAIL  redis" in ill.stdout
    assert "geheim" not in ill.stdout + ill.stderr


def test_command_line_requests_write_no_record(run: Run, redis_url: str) -> None:
    run("ask", "-t", "n", "你好", REDIS_URL=redis_url)
    with redis.Redis.from_url(redis_url) as client:
        keys: Any = client.keys("business-assistant:context:v1:*")
        assert len(keys) == 1
        assert not [field for field in client.hkeys(keys[0]) if field.startswith(b"[")]


def test_a_busy_thread_is_code_4_and_is_left_alone(run: Run, redis_url: str) -> None:
    from api.leases import hold

    with redis.Redis.from_url(redis_url) as client:
        with hold(client, "busy"):
            refused(run("ask", "-t", "busy", "你好", REDIS_URL=redis_url), 4)
            assert client.keys("business-assistant:context:v1:*") == []
        assert run("ask", "-t", "busy", "你好", REDIS_URL=redis_url).returncode == 0


def test_records_are_archived_counted_and_pruned(run: Run, tmp_path: Path) -> None:
    archived = run("archive", "--json")
    assert (archived.returncode, json.loads(archived.stdout)["read"]) == (0, 0)
    assert json.loads(run("stats", "--since", "2026-1-5", "--json").stdout) == {"items": []}
    refused(run("stats", "--until", "2026-02-30"), 2)
    run("chat", "-t", "long", text="云帆科技2023年净利润\n" * 4)
    pruned = json.loads(run("prune", "--keep-turns", "1", "--json").stdout)
    assert pruned["threads"]["checkpoints"] > 0
    assert run("ask", "-t", "long", "那营收呢").returncode == 0
    written = run("export-contract", str(tmp_path / "contract")).stdout
    assert "contract.go" in written
