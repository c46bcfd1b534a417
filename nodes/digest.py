"""The decision digest: one hash over everything that was decided for a question, history excluded.

Equal text (for a picked suggestion: the confirmed question), caller, knowledge, settings, `received_at`
and pending clarification with its options give an equal digest, whatever the conversation was before.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from nodes.contracts import Evidence, FactLookup, Intent, Option, Passage


def decision_digest(
    intent: Intent | None,
    evidence: Evidence | None = None,
    facts: Sequence[FactLookup] | None = None,
    *,
    asked: tuple[str, Sequence[Option]] | None = None,
) -> str:
    """sha256 hex over the canonical JSON of the decisions.

    `asked` is the slot and the options of a clarification; None once nothing is pending.
    """
    decisions = {
        "safety": intent["safety"] if intent else None,
        "intent": intent,
        "retrieval": _retrieval(evidence),
        "evidence": [_passage_id(passage) for passage in evidence["passages"]] if evidence else [],
        "facts": [_fact_key(lookup) for lookup in facts or ()],
        "asked": asked,
    }
    return hashlib.sha256(_canonical(decisions)).hexdigest()


def _retrieval(evidence: Evidence | None) -> dict[str, Any] | None:
    if evidence is None:
        return None
    return {key: evidence[key] for key in ("query", "filters", "knowledge_version")}


def _passage_id(passage: Passage) -> list[Any]:
    return [passage["document_id"], passage["version"], passage["start"], passage["end"]]


def _fact_key(lookup: FactLookup) -> list[Any]:
    hit = lookup["hit"]
    source = [hit["document_id"], hit["version"]] if hit else None
    return [lookup["company"], lookup["period"], lookup["metric"], source]


def _canonical(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
