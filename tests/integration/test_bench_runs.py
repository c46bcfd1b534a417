"""The saver benchmark runs, in its smallest form, on real servers, and its exact counts are exact."""

from contextlib import ExitStack

import pytest

from scripts.bench.contestants import open_all
from scripts.bench.report import report
from scripts.bench.saver import Size, count_turn, run
from scripts.bench.turns import growing_graph


@pytest.mark.long
def test_a_small_run_measures_every_figure_of_those_that_are_here() -> None:
    found = run(["ours", "plainredis"], Size(late=12, turns=1, calls=2, crowds=1))
    assert "ours" in found.counts
    assert found.counts.keys() | found.missing.keys() == {"ours", "plainredis"}
    for figure, rounds in found.rounds.items():
        assert rounds, figure
        assert all(each.keys() == found.counts.keys() for each in rounds), figure
    assert "| turn 12, our graph |" in report(found)


def test_waits_commands_and_bytes_are_counted() -> None:
    with ExitStack() as stack:
        (ours, floor), missing = open_all(["ours", "floor"], stack)
        assert missing == {}
        counts = {
            each.name: count_turn(each, "growing", growing_graph(each.saver), growing_graph)
            for each in (ours, floor)
        }
    assert counts["ours"]["growing waits"] == counts["floor"]["growing waits"] == 14
    assert counts["floor"]["growing commands"] == 7 * 2 + 6 * 2 + 1
    assert counts["ours"]["growing early"] > 0
    for name in ("sent", "received"):
        assert counts["ours"][f"growing {name}"] > 1000
