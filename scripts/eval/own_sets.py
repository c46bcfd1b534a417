"""Our own hand-written sets, which live with the tests."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "tests" / "data"


def read_rows(name: str) -> list[dict[str, Any]]:
    """The rows of eval/NAME.jsonl, or of another file under the tests' data where a slash names it."""
    path = FOLDER / name if "/" in name else FOLDER / "eval" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
