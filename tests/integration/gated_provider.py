"""A provider for tests of whole processes: it says what it has to say, waits until the file named by GATE
exists, and says it again.

MODEL=gated_provider:make
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from nodes.answer.providers import ExtractiveProvider
from nodes.contracts import Generated, Prompt

WAIT_SECONDS = 120.0


class GatedProvider:
    name = "gated"

    def __init__(self, gate: Path) -> None:
        self._gate = gate
        self._model = ExtractiveProvider()

    def stream(self, prompt: Prompt) -> Iterator[Generated]:
        """Everything twice. The second begins at once, since a sentence leaves when the next one begins."""
        *pieces, last = self._model.stream(prompt)
        said = "".join(piece.text for piece in (*pieces, last))
        yield Generated(f"{said}\n{said[:1]}")
        deadline = time.monotonic() + WAIT_SECONDS
        while not self._gate.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
            yield Generated("")  # a model that thinks: between two pieces a stop can be heard
        yield Generated(said[1:], last.usage)


def make() -> GatedProvider:
    return GatedProvider(Path(os.environ["GATE"]))
