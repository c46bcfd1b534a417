"""Writes the tables of metrics and spans into both operations pages: `python -m scripts.operations_page`."""

import re
from collections.abc import Mapping
from pathlib import Path

from api.metrics import metrics_table
from graph.traces import spans_table

DOCS = Path(__file__).parents[1] / "docs"
PAGES = (DOCS / "operations.md", DOCS / "operations.zh.md")


def main() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for name, table in tables().items():
            text = block(name).sub(lambda match, table=table: f"{match[1]}{table}\n{match[3]}", text)
        page.write_text(text, encoding="utf-8")


def tables() -> Mapping[str, str]:
    return {"metrics": metrics_table(), "spans": spans_table()}


def published(page: Path, name: str) -> str:
    found = block(name).search(page.read_text(encoding="utf-8"))
    assert found, f"{page.name} has no block named {name}"
    return found[2].rstrip("\n")


def block(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name} -->\n)(.*?)(<!-- end of {name} -->)", re.DOTALL)


if __name__ == "__main__":
    main()
