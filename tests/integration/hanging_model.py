"""A LangChain model that says on standard error that it was asked, and nothing ever again.

MODEL=hanging_model:make
"""

import sys
import threading
from collections.abc import Iterator
from typing import Any

from langchain_core.language_models.fake_chat_models import FakeListChatModel


class HangingModel(FakeListChatModel):
    def _stream(self, *_: Any, **__: Any) -> Iterator[Any]:
        print("asked", file=sys.stderr, flush=True)
        threading.Event().wait()
        yield from ()


def make() -> HangingModel:
    return HangingModel(responses=[])
