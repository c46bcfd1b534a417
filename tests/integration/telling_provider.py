"""A provider for tests that tells all it is shown: every line of its sources, or every message.

MODEL=telling_provider:make
"""

from collections.abc import Iterator

from nodes.contracts import Generated, Prompt

PROMPTS: list[Prompt] = []


class TellingProvider:
    name = "telling"

    def stream(self, prompt: Prompt) -> Iterator[Generated]:
        PROMPTS.append(prompt)
        for number, passage in enumerate(prompt.passages, start=1):
            for line in passage["text"].splitlines():
                if line.strip():
                    yield Generated(f"{line.strip().rstrip('。.')}[C{number}]。\n")
        if not prompt.passages:
            yield Generated("\n".join(message.content for message in prompt.messages))


def make() -> TellingProvider:
    return TellingProvider()
