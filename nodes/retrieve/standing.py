"""Whether what an answer cited still stands in the documents as they are now. Decides no access."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from nodes.contracts import Clock, Standing
from nodes.retrieve.documents import KnowledgeStore, current_keys


class StoredStanding:
    """contracts.StandingOf over the store, as of the day that `clock` tells."""

    def __init__(self, store: KnowledgeStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def __call__(self, citations: Sequence[Mapping[str, Any]]) -> list[Standing]:
        records = self._store.records({str(cited.get("document_id")) for cited in citations})
        in_force = current_keys(records, self._clock()[:10])
        return [self._standing_of(cited, in_force) for cited in citations]

    def _standing_of(self, cited: Mapping[str, Any], in_force: set[tuple[str, str]]) -> Standing:
        key = (str(cited.get("document_id")), str(cited.get("version")))
        if not self._is_as_cited(key, cited):
            return "changed"
        return "current" if key in in_force else "superseded"

    def _is_as_cited(self, key: tuple[str, str], cited: Mapping[str, Any]) -> bool:
        """A fact is cited without a place in the text, so there is no text to compare."""
        start, end = int(cited.get("start") or 0), int(cited.get("end") or 0)
        if start >= end:
            return True
        text = self._store.text_of(*key)
        if text is None:
            return False
        return hashlib.sha256(text[start:end].encode()).hexdigest() == cited.get("passage_hash")
