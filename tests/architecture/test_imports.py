"""Import rules: they hold, and each of them bites when one line is planted that breaks it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("api", "graph", "nodes", "checkpoint")

PLANTED = {
    "Layers: api > graph > nodes > checkpoint": ("checkpoint/errors.py", "import nodes.contracts"),
    "Blind rooms cannot name history": ("nodes/intent.py", "from checkpoint.window import restore"),
    "Nodes know plain contracts, never the stores": ("nodes/retrieve/access.py", "import checkpoint.saver"),
    "Nodes import no framework and no server": ("nodes/answer/prompts.py", "import langgraph.graph"),
    "The web framework stays in api": ("graph/run.py", "import fastapi"),
    "Redis stays in checkpoint and api.leases": ("api/turns.py", "import redis"),
    "SQL stays in checkpoint.conversations and checkpoint.archive": ("api/turns.py", "import sqlalchemy"),
    "The saver stands without the conversations": ("checkpoint/window.py", "import checkpoint.archive"),
    "The five nodes never import each other": ("nodes/gate.py", "import nodes.intent"),
    "Only gate, intent and clarify read texts": ("nodes/retrieve/access.py", "import nodes.intent"),
}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", "from importlinter.cli import lint_imports_command as run; run()"]
    return subprocess.run(
        [*command, "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__", "*.md")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_rules_hold(copy: Path) -> None:
    done = lint(copy)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("rule", PLANTED)
def test_the_rule_bites(copy: Path, rule: str) -> None:
    file, line = PLANTED[rule]
    planted = copy / file
    planted.write_text(f"{planted.read_text()}\n{line}\n")

    done = lint(copy)

    assert done.returncode == 1
    assert f"{rule} BROKEN" in done.stdout


def test_importing_the_saver_loads_no_database_and_no_web_framework() -> None:
    code = (
        "import checkpoint, sys; print([m for m in ('sqlalchemy', 'fastapi', 'bm25s') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
