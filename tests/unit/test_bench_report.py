"""The benchmark's arithmetic: paired ratios, fair orders, pooled runs, tables that say what is missing."""

from collections import Counter
from itertools import pairwise

import pytest

from scripts.bench.ratios import Ratio, order, paired, table
from scripts.bench.report import Found, growth, pool, report
from scripts.bench.servers import CannotRunError, package_folder


def test_ratios_are_paired_by_round() -> None:
    """A slow machine doubles a round's times, not its ratio."""
    rounds = [{"ours": 1.0, "floor": 2.0}, {"ours": 20.0, "floor": 40.0}, {"ours": 3.0, "floor": 4.0}]
    found = paired(rounds, "ours", "floor")
    assert found == Ratio(0.5, 0.5, 0.625)
    assert str(found) == "0.50 (0.50–0.62)"


def test_rounds_that_lack_one_of_the_two_do_not_count() -> None:
    rounds = [{"ours": 1.0}, {"floor": 1.0}, {"ours": 3.0, "floor": 2.0}, {"ours": 1.0, "floor": 0.0}]
    assert paired(rounds, "ours", "floor") == Ratio(1.5, 1.5, 1.5)
    assert paired(rounds, "ours", "memory") is None
    assert paired([], "ours", "floor") is None


def test_every_contestant_begins_equally_often_and_meets_its_neighbours_both_ways() -> None:
    names = ["a", "b", "c"]
    orders = [order(names, number) for number in range(6)]
    assert all(sorted(each) == names for each in orders)
    assert Counter(each[0] for each in orders) == {"a": 2, "b": 2, "c": 2}
    pairs = Counter((left, right) for each in orders for left, right in pairwise(each))
    assert all(
        pairs[left, right] == pairs[right, left] > 0 for left, right in [("a", "b"), ("b", "c"), ("c", "a")]
    )
    assert order([], 3) == []


def test_a_table_shows_what_was_not_measured_as_a_dash() -> None:
    assert table(["figure", "ours"], [["a", 1], ["b", None]]) == (
        "| figure | ours |\n| --- | --- |\n| a | 1 |\n| b | – |"
    )


ABOUT = {
    "late": 60,
    "cores": 2,
    "machine": "Linux",
    "python": "3.11",
    "versions": {"redis": "8"},
    "load": [1.0],
}


def found(**rounds: list[dict[str, float]]) -> Found:
    named = {name.replace("_", " ", 1): taken for name, taken in rounds.items()}
    return Found(named, {"ours": {"own waits": 12.0, "own sent": 1500.0}, "floor": {}}, {}, dict(ABOUT))


def test_a_long_thread_is_compared_with_the_short_one_of_its_round() -> None:
    both = found(own_early=[{"ours": 1.0}, {"ours": 10.0}], own_late=[{"ours": 2.0}, {"ours": 20.0}])
    assert growth(both, "own", "ours") == [{"early": 1.0, "late": 2.0}, {"early": 10.0, "late": 20.0}]
    assert growth(both, "own", "floor") == []


def test_runs_are_pooled_round_by_round() -> None:
    runs = [found(own_early=[{"ours": 1.0, "floor": 1.0}]), found(own_early=[{"ours": 3.0, "floor": 1.0}])]
    runs[0].about["load"] = [0.5, 7.0]
    pooled = pool(runs)
    assert len(pooled.rounds["own early"]) == 2
    assert pooled.about["runs"] == 2
    assert "load 0.5 to 7.0" in report(pooled)


def test_the_report_names_targets_counts_and_who_could_not_run() -> None:
    shown = found(growing_early=[{"ours": 1.0, "floor": 2.0}])
    shown.missing["peer"] = "no server"
    lines = report(shown).splitlines()
    assert "| turn 10, five nodes, growing list | 0.85 | 0.50 | 1.00 |" in lines
    assert "| turn 60 against turn 10, our graph | 1.1 | – | – |" in lines
    assert "| waits at turn 10, our graph | 12 | – |" in lines
    assert "| KB sent at turn 10, our graph | 1.5 | – |" in lines
    assert lines[-1] == "Not run: peer: no server."


def test_a_missing_package_is_a_reason_and_no_crash() -> None:
    with pytest.raises(CannotRunError, match="no_such_package is not installed"):
        package_folder("no_such_package")
