"""The benchmarks run, in their smallest forms, on real servers, and their exact counts are exact."""

from contextlib import ExitStack

import pytest

from scripts.bench import growth, retrieval
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


def test_growth_counts_the_same_commands_for_a_late_turn() -> None:
    with growth.opened() as assistant:
        taken = growth.measure_turns(assistant, [1, 3, 6], rounds=2)
    for found in taken:
        assert found["3"]["commands"] == found["6"]["commands"] > found["1"]["commands"]
    assert "| commands, of turn 3 |" in growth.report("turn", taken)


def test_what_a_thread_takes_is_measured() -> None:
    with growth.opened() as assistant:
        taken = growth.measure_threads(assistant, [1, 30], rounds=1)
    assert 1000 < taken[0]["30"]["memory a thread"] < 200_000
    assert taken[0]["1"]["commands"] == taken[0]["30"]["commands"]


def test_retrieval_is_measured_beside_bm25s() -> None:
    found = retrieval.measure(100, 3)
    assert [each.keys() for each in found.rounds] == [{"ours", "bm25s"}] * 3
    assert "| 100 |" in retrieval.report([found])
