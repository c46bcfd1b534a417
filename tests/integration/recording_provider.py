"""A provider for tests that keeps what it was asked. MODEL=recording_provider:make"""

from collections.abc import Iterator

from nodes.contracts import Generated, Prompt

PROMPTS: list[Prompt] = []
SUMMARY = "用户在问创业补贴，标记SUM42。"


class RecordingProvider:
    name = "recording"

    def stream(self, prompt: Prompt) -> Iterator[Generated]:
        PROMPTS.append(prompt)
        if not prompt.passages:
            yield Generated(SUMMARY)
            return
        first = prompt.passages[0]["text"].strip().split("。")[0]
        yield Generated(f"{first}[C1]。")


def make() -> RecordingProvider:
    return RecordingProvider()
