"""Writes the example conversation, as the command line really prints it, into README.md and README.zh.md.

python -m scripts.transcript
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "docs" / "examples"
# Page -> parts of its conversation; each part is one process, so the next one starts after a restart.
Part = tuple[str, str | None]  # (file of requests, file of scripted model replies)
PAGES: dict[str, tuple[Part, ...]] = {
    "README.md": (("conversation.en.txt", None),),
    "README.zh.md": (
        ("conversation.zh.1.txt", "model.zh.1.jsonl"),
        ("conversation.zh.2.txt", "model.zh.2.jsonl"),
    ),
}
BLOCK = re.compile(r"(<!-- transcript -->\n```text\n)(.*?)(```\n<!-- end of transcript -->)", re.DOTALL)


def main() -> None:
    for page, parts in PAGES.items():
        with tempfile.TemporaryDirectory(prefix="ba-") as home:
            said = transcript(parts, {"BUSINESS_ASSISTANT_HOME": home})
        file = ROOT / page
        text = file.read_text(encoding="utf-8")
        file.write_text(
            BLOCK.sub(lambda match, said=said: match[1] + said + match[3], text), encoding="utf-8"
        )


def published(page: Path) -> str:
    block = BLOCK.search(page.read_text(encoding="utf-8"))
    assert block, f"{page.name} has no transcript block"
    return block[2]


def transcript(parts: tuple[Part, ...], env: dict[str, str]) -> str:
    """Every request behind "> " and what was printed for it."""
    return "\n(restart)\n\n".join(_part(requests, model, env) for requests, model in parts)


def _part(requests: str, model: str | None, env: dict[str, str]) -> str:
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "api",
            "chat",
            "--thread",
            f"example-{requests.split('.')[1]}",
            "--echo",
        ],
        input=(EXAMPLES / requests).read_text(encoding="utf-8"),
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "MODEL": f"scripted:{EXAMPLES / model}" if model else "extractive",
            **env,
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


if __name__ == "__main__":
    main()
