"""A retriever that says on standard error that it was asked, and nothing ever again.

RETRIEVER=hanging_retriever:make
"""

import sys
import threading
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever


class HangingRetriever(BaseRetriever):
    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        print("asked", file=sys.stderr, flush=True)
        threading.Event().wait()
        return []


def make() -> HangingRetriever:
    return HangingRetriever()
