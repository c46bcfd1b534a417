"""Which checkpoints may go by age and by count."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from langgraph.checkpoint.base.id import uuid6

from checkpoint.erase import Stored
from checkpoint.errors import BadRequestError
from checkpoint.pruning import GREGORIAN, Rule, choose, choose_older_than, moment_of

START = datetime(2026, 1, 1, tzinfo=UTC)


def id_at(days: float, number: int = 0) -> str:
    """A version 6 UUID of that moment."""
    steps = int((START + timedelta(days=days) - GREGORIAN).total_seconds() * 10_000_000) + number
    return str(UUID(int=(steps >> 12) << 80 | 6 << 76 | (steps & 0xFFF) << 64 | 2 << 62))


def chain(*days: float, parent: str = "", per_turn: int = 3) -> list[Stored]:
    """A branch with one turn a day given."""
    made = []
    for day in days:
        for number in range(per_turn):
            source = "input" if number == 0 else "loop"
            item = Stored("", id_at(day, number), parent, "", source, "", (), frozenset())
            parent = item.id
            made.append(item)
    return made


def days_left(stored: list[Stored], before: datetime) -> list[int]:
    gone = choose_older_than(stored, before)
    left = [item for item in stored if ("", item.id) not in gone]
    return sorted({(moment_of(item.id) - START).days for item in left})


def test_an_id_tells_its_moment() -> None:
    assert moment_of(id_at(3)) == START + timedelta(days=3)
    assert abs(moment_of(str(uuid6())) - datetime.now(UTC)) < timedelta(minutes=1)
    for strange in ("", "x", "00000000-0000-4000-8000-000000000000"):
        assert moment_of(strange).year == 9999


def test_whole_turns_before_the_limit_go() -> None:
    stored = chain(0, 1, 2, 3)
    assert days_left(stored, START + timedelta(days=2)) == [2, 3]
    assert len(choose_older_than(stored, START + timedelta(days=2))) == 6


def test_the_newest_turn_stays_however_old() -> None:
    assert days_left(chain(0, 1), START + timedelta(days=900)) == [1]


def test_the_latest_stays_even_as_its_own_ancestor() -> None:
    (alone,) = chain(0, per_turn=1)
    ring = alone._replace(parent=alone.id)
    assert choose_older_than([ring], START + timedelta(days=900)) == set()


def test_each_branch_keeps_its_newest_turn() -> None:
    stored = chain(0, 1, 2)
    fork = chain(3, parent=stored[2].id)
    assert days_left([*stored, *fork], START + timedelta(days=900)) == [2, 3]


def test_a_turn_across_the_limit_stays_whole() -> None:
    stored = chain(0, 1)
    late = Stored("", id_at(5), stored[-1].id, "", "loop", "", (), frozenset())
    newer = chain(6, parent=late.id)
    assert days_left([*stored, late, *newer], START + timedelta(days=4)) == [1, 5, 6]


def test_steps_of_a_subgraph_go_with_their_turn() -> None:
    stored = chain(0, 1)
    inner = [
        Stored("sub", id_at(day, 9), "", "", "loop", anchor.id, (), frozenset())
        for day, anchor in ((0, stored[1]), (1, stored[4]))
    ]
    gone = choose_older_than([*stored, *inner], START + timedelta(days=1))
    assert ("sub", inner[0].id) in gone
    assert ("sub", inner[1].id) not in gone


def test_ancestors_that_a_kept_step_is_rebuilt_from_stay() -> None:
    stored = chain(0, 1)
    stored[3] = stored[3]._replace(unseeded=("history",))
    stored[0] = stored[0]._replace(seeds=frozenset({"history"}))
    assert choose_older_than(stored, START + timedelta(days=900)) == set()


def test_both_limits_add_up() -> None:
    stored = chain(0, 1, 2, 3)
    by_both = choose(stored, Rule(keep_turns=3, before=START + timedelta(days=2)))
    assert by_both == choose_older_than(stored, START + timedelta(days=2))
    assert choose(stored, Rule()) == set()


def test_keeping_nothing_is_refused() -> None:
    with pytest.raises(BadRequestError, match="at least 1"):
        Rule(keep_turns=0)
