"""Writes the table of settings into docs/settings.md: `python -m scripts.settings_page`."""

import re
from pathlib import Path

from graph.settings import settings_table

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"
BLOCK = re.compile(r"(<!-- settings -->\n)(.*)(<!-- end of settings -->)", re.DOTALL)


def main() -> None:
    PAGE.write_text(BLOCK.sub(lambda match: f"{match[1]}{settings_table()}\n{match[3]}", PAGE.read_text()))


def published() -> str:
    block = BLOCK.search(PAGE.read_text())
    assert block, "docs/settings.md has no settings block"
    return block[2].rstrip("\n")


if __name__ == "__main__":
    main()
