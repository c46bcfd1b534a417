"""Are company, period and metric read as a person reads them? Our own questions with traps.

A slot counts as right when its set is exactly the labelled one; order is not scored. Ambiguous names count
with the companies: the candidates must be the labelled ones, and nothing may be guessed. What a label leaves
open (null) is not scored.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nodes.contracts import Intent
from scripts.eval.knowledge import RECEIVED_AT, reader_of, sample_store
from scripts.eval.own_sets import read_rows
from scripts.eval.report import Cell, Options, Report, Table, share

Read = Callable[[str], Intent]
SLOTS = ("company", "period", "metric", "kind")
Row = Mapping[str, Any]


def evaluate(_options: Options) -> Report:
    with sample_store() as store:
        read_intent = reader_of(store)
        return evaluate_rows(read_rows("slots"), lambda text: read_intent(text, RECEIVED_AT))


def evaluate_rows(rows: Sequence[Row], read: Read) -> Report:
    judged = [(row, judge(row, read(row["text"]))) for row in rows]
    by_slot = [
        [
            slot,
            *(_share([said for row, said in judged if in_language(row, only)], slot) for only in LANGUAGES),
        ]
        for slot in SLOTS
    ]
    whole = ["all of them", *(_all_right(judged, only) for only in LANGUAGES)]
    classes = list(dict.fromkeys(row["class"] for row in rows))
    by_class: list[list[Cell]] = []
    for name in classes:
        held = [said for row, said in judged if row["class"] == name]
        by_class.append([name, len(held), *(_share(held, slot) for slot in SLOTS)])
    misses = [
        {"id": row["id"], "class": row["class"], "text": row["text"], **wrong(row, read(row["text"]))}
        for row, said in judged
        if False in said.values()
    ]
    return Report(
        "slots",
        [
            Table("Slots read rightly", ("slot", "all", "zh", "en"), [*by_slot, whole]),
            Table("By class", ("class", "rows", *SLOTS), by_class),
        ],
        misses,
    )


LANGUAGES = ("", "zh", "en")


def in_language(row: Row, only: str) -> bool:
    return not only or row["class"].endswith("-en") == (only == "en")


def judge(row: Row, said: Intent) -> dict[str, bool | None]:
    """Right, wrong, or None where the label leaves it open."""
    companies = None if row["companies"] is None else _company_is_right(row, said)
    return {
        "company": companies,
        "period": _same(row["periods"], said["periods"]),
        "metric": _same(row["metrics"], said["metrics"]),
        "kind": None if row["kind"] is None else row["kind"] == said["kind"],
    }


def _company_is_right(row: Row, said: Intent) -> bool:
    candidates = {frozenset(ids) for ids in said["ambiguous"]}
    return (
        set(row["companies"]) == set(said["companies"])
        and {frozenset(ids) for ids in row["ambiguous"]} == candidates
    )


def _same(wanted: Sequence[str] | None, said: Sequence[str]) -> bool | None:
    return None if wanted is None else set(wanted) == set(said)


def _share(judged: Sequence[Mapping[str, bool | None]], slot: str) -> str:
    scored = [said[slot] for said in judged if said[slot] is not None]
    return share(scored.count(True), len(scored))


def _all_right(judged: Sequence[tuple[Row, Mapping[str, bool | None]]], only: str) -> str:
    held = [said for row, said in judged if in_language(row, only)]
    return share(sum(False not in said.values() for said in held), len(held))


def wrong(row: Row, said: Intent) -> dict[str, str]:
    """What was read beside what was wanted, for the slots that are wrong."""
    wanted = {
        "company": (row["companies"], row["ambiguous"]),
        "period": row["periods"],
        "metric": row["metrics"],
        "kind": row["kind"],
    }
    read = {
        "company": (said["companies"], said["ambiguous"]),
        "period": said["periods"],
        "metric": said["metrics"],
        "kind": said["kind"],
    }
    return {
        slot: f"wanted {wanted[slot]}, read {read[slot]}"
        for slot, right in judge(row, said).items()
        if right is False
    }
