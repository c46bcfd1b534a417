"""Writes the example and the table of remedies into docs/saver.md: `python -m scripts.saver_page`."""

import re
from pathlib import Path

from checkpoint.wire import REMEDIES

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "saver.md"
EXAMPLE = ROOT / "docs" / "examples" / "plain_agent.py"


def main() -> None:
    PAGE.write_text(written())


def written() -> str:
    """The page as it should be."""
    text = replace_block(PAGE.read_text(), "example", f"```python\n{EXAMPLE.read_text()}```")
    return replace_block(text, "remedies", remedies_table())


def replace_block(text: str, name: str, content: str) -> str:
    block = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    assert block.search(text), f"{PAGE.name} has no block {name!r}"
    return block.sub(lambda match: f"{match[1]}{content}\n{match[2]}", text)


def remedies_table() -> str:
    rows = [f"| {kind.__name__} | {remedy}. |" for kind, _, remedy in REMEDIES]
    return "\n".join(["| the server's fault | what to do |", "|---|---|", *rows])


if __name__ == "__main__":
    main()
