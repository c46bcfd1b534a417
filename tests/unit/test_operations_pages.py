"""The operations pages: tables made from the code, and nothing named that does not exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from api.cli import app
from api.metrics import METRICS
from api.problems import PROBLEMS
from api.tokens import sign_in_of
from graph.settings import load_settings, settings_table
from scripts.operations_page import PAGES, published, tables

ROOT = Path(__file__).parents[2]
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
# Names of other programs' own.
FOREIGN = {"PROMETHEUS_MULTIPROC_DIR", "RSS", "POST", "DELETE", "HTTP", "SIGHUP", "SIGTERM", "SIGINT"}


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pages
@pytest.mark.parametrize("name", ["metrics", "spans"])
def test_the_tables_are_those_of_the_code(page: Path, name: str) -> None:
    assert published(page, name) == tables(page)[name], "run: python -m scripts.operations_page"


@pages
def test_every_setting_named_exists(page: Path) -> None:
    known = set(re.findall(r"^\| `(\w+)` \|", settings_table(), re.MULTILINE))
    named = set(re.findall(r"`([A-Z][A-Z_]{3,})(?:=[^`]*)?`", text_of(page)))
    own = {name for name in named if not name.startswith("OTEL_")} - FOREIGN
    assert own <= known
    assert len(own & known) > 15


@pages
def test_every_command_named_exists(page: Path) -> None:
    commands = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    named = set(re.findall(r"business-assistant ([a-z][a-z-]+)", text_of(page)))
    assert named <= commands
    assert {"serve", "doctor", "prune", "archive"} <= named


@pages
def test_every_metric_in_an_alert_exists(page: Path) -> None:
    full = {
        f"business_assistant_{name}" + ("_total" if row[0] == "counter" else "")
        for name, row in METRICS.items()
    }
    named = set(re.findall(r"business_assistant_\w+", text_of(page)))
    assert {name.removesuffix("_bucket") for name in named} <= full


@pages
def test_every_problem_code_named_exists(page: Path) -> None:
    named = re.findall(r"(?:409|429|503) `(\w+)`", text_of(page))
    assert len(named) >= 4
    assert set(named) <= set(PROBLEMS)


@pages
def test_every_event_in_the_log_table_is_logged(page: Path) -> None:
    source = "".join(file.read_text() for file in (ROOT / "api").rglob("*.py"))
    rows = re.findall(
        r"^\| (`\w+`(?:(?:, |、)`\w+`)*) \| [^|]*\|$",
        text_of(page).split("## Metrics")[0].split("## 指标")[0],
        re.MULTILINE,
    )
    events = {name for row in rows for name in re.findall(r"`([a-z]+_[a-z_]+)`", row)}
    assert len(events) > 12
    assert {event for event in events if f'"{event}"' not in source} == set()


@pages
def test_every_file_linked_exists(page: Path) -> None:
    linked = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text_of(page))
    assert linked
    assert [name for name in linked if not (page.parent / name).exists()] == []


@pages
async def test_the_token_to_try_with_is_believed(page: Path) -> None:
    secret = "s" * 32
    program = re.search(r"\.venv/bin/python -c '(.+)'", text_of(page))
    assert program
    made = subprocess.run(
        [sys.executable, "-c", program[1]],
        env={"JWT_SECRET": secret},
        capture_output=True,
        text=True,
        check=True,
    )
    sign_in = sign_in_of(load_settings({"JWT_SECRET": secret}))
    assert sign_in
    caller = await sign_in.caller_of(made.stdout.strip())
    assert (caller.tenant, caller.user, caller.groups) == ("acme", "alice", {"hr"})
