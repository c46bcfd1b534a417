"""Retrieve: reads `turn` and `intent` (and the caller), writes `evidence` and `facts`.

The question is searched for as it stands; the facts are the product of what the intent names.
"""

from collections.abc import Callable
from itertools import product
from typing import Protocol, TypedDict, runtime_checkable

from nodes.contracts import (
    Caller,
    Evidence,
    FactLookup,
    FactStore,
    Filters,
    Intent,
    Passage,
    Retriever,
    SubQuestion,
    Turn,
)

MOST_EXPLAINED = 4  # lookups
MOST_OTHERS = 4  # periods

RetrieveRun = Callable[..., "RetrieveWrites"]


@runtime_checkable
class EndedRetriever(Protocol):
    """A retriever that can also tell what a document said that has ended, as `exits.PermittedRetriever`."""

    def retrieve_ended(self, query: str, *, caller: Caller, on_date: str) -> Evidence: ...


class RetrieveReads(TypedDict):
    turn: Turn
    intent: Intent


class RetrieveWrites(TypedDict):
    evidence: Evidence
    facts: list[FactLookup]


def make_retrieve(*, retriever: Retriever, facts: FactStore) -> RetrieveRun:
    """The step `run(state, *, caller)`, bound to its services. Evidence is always written, even if empty."""

    def run(state: RetrieveReads, *, caller: Caller) -> RetrieveWrites:
        turn, parts = state["turn"], _parts(state["turn"], state["intent"])
        queries = [part["text"] for part in parts if part["kind"] == "narrative"]
        asked = [key for part in parts if part["kind"] != "narrative" for key in _keys(part)]
        return {
            "evidence": _retrieve_all(retriever, queries, turn, caller),
            "facts": _look_up_all(facts, asked, caller),
        }

    return run


def _parts(turn: Turn, intent: Intent) -> list[SubQuestion]:
    """What is asked, in order: the sub-questions, or else the whole question. Small talk asks nothing."""
    if intent["kind"] not in ("fact", "comparison", "narrative"):
        return []
    if intent["sub_questions"]:
        return intent["sub_questions"]
    return [
        SubQuestion(
            text=turn["standalone_question"],
            kind=intent["kind"],
            companies=intent["companies"],
            periods=intent["periods"],
            metrics=intent["metrics"],
        )
    ]


def _keys(part: SubQuestion) -> list[tuple[str, str, str]]:
    """(company, period, metric) in order of mention, the company outermost."""
    return list(product(part["companies"], part["periods"], part["metrics"]))


def _look_up_all(facts: FactStore, asked: list[tuple[str, str, str]], caller: Caller) -> list[FactLookup]:
    """In the order asked. The few misses of a few lookups say which periods there are instead."""
    found = [_look_up(facts, *key, caller) for key in asked]
    if len(found) > MOST_EXPLAINED:
        return found
    return [one if one["hit"] else _with_others(facts, one, caller) for one in found]


def _with_others(facts: FactStore, missed: FactLookup, caller: Caller) -> FactLookup:
    """With periods of the same length (years for a year) before any other."""
    periods = facts.periods(company=missed["company"], metric=missed["metric"], caller=caller)
    alike = [period for period in periods if period[4:5] == missed["period"][4:5]]
    others = sorted(alike or periods, reverse=True)[:MOST_OTHERS]
    return {**missed, "others": others} if others else missed


def _look_up(facts: FactStore, company: str, period: str, metric: str, caller: Caller) -> FactLookup:
    hit = facts.look_up(company=company, period=period, metric=metric, caller=caller)
    return FactLookup(company=company, period=period, metric=metric, hit=hit)


def _retrieve_all(retriever: Retriever, queries: list[str], turn: Turn, caller: Caller) -> Evidence:
    """One retrieval for each query, merged in order; a place found twice stands where it was found first.

    `query` is what was searched for, one query a line; the question itself where nothing was. The day counts
    as written in `received_at`, in its own offset. What has ended is looked at only where nothing in force
    answers.
    """
    on_date = turn["received_at"][:10]
    found = [retriever.retrieve(query, caller=caller, on_date=on_date) for query in queries]
    if isinstance(retriever, EndedRetriever) and not any(evidence["passages"] for evidence in found):
        found = [retriever.retrieve_ended(query, caller=caller, on_date=on_date) for query in queries]
    if len(found) == 1:
        return found[0]
    merged: dict[tuple[str, str, int, int], Passage] = {}
    for passage in (passage for evidence in found for passage in evidence["passages"]):
        place = (passage["document_id"], passage["version"], passage["start"], passage["end"])
        merged.setdefault(place, passage)
    return Evidence(
        query="\n".join(queries) or turn["standalone_question"],
        filters=Filters(knowledge_base=caller.knowledge_base, on_date=_day_of(found, on_date)),
        passages=list(merged.values()),
        knowledge_version=found[-1]["knowledge_version"] if found else retriever.knowledge_version(),
    )


def _day_of(found: list[Evidence], on_date: str) -> str:
    """The latest day on which anything found held; today's where nothing was."""
    return max((one["filters"]["on_date"] for one in found if one["passages"]), default=on_date)
