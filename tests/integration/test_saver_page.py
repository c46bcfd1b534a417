"""The page on the saver: its example prints what the page shows, its tables are those of the code."""

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from checkpoint import ContextConfig
from scripts.saver_page import EXAMPLE, PAGE, ROOT, written


def test_the_example_prints_what_the_page_shows(redis_url: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", str(EXAMPLE)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "REDIS_URL": redis_url},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    shown = re.search(r"\$ python docs/examples/plain_agent\.py\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert shown
    assert done.stdout == shown[1]


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == written(), "run: python -m scripts.saver_page"


def test_the_defaults_in_the_page_are_those_of_the_code() -> None:
    rows = dict(re.findall(r"^\| `(\w+_\w+)` \| ([\d.]+) \|", PAGE.read_text(), re.MULTILINE))
    defaults = {field.name: field.default for field in fields(ContextConfig)}
    assert rows
    assert {name: float(value) for name, value in rows.items()} == {name: defaults[name] for name in rows}
