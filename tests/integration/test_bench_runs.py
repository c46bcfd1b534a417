"""The benchmarks run, in their smallest forms, on real servers, and their exact counts are exact."""

from contextlib import ExitStack

import pytest

from scripts.bench import crowds, growth, retrieval, service, silent, soak, store
from scripts.bench.contestants import open_all
from scripts.bench.report import report
from scripts.bench.saver import Size, count_turn, run
from scripts.bench.turns import growing_graph


@pytest.mark.long
def test_a_small_run_measures_every_figure_of_those_that_are_here() -> None:
    found = run(["ours", "plainredis"], ["growing", "own"], Size(late=12, turns=1, calls=2, crowds=1))
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
        # A first turn finds no place for its checkpoints prepared, and is no measure.
        assert found["3"]["commands"] == found["6"]["commands"] > 20
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


def test_after_turns_of_which_clients_vanish_nothing_is_left_open() -> None:
    found = soak.run(turns=250, block=125, vanishing=0.2, seed=7)
    assert found.turns == 250
    assert found.vanished > 25
    assert found.failed == 0
    assert found.whole + found.vanished == 250
    assert found.left == dict.fromkeys(found.left, 0)
    assert {"slots", "leases held", "leases stored", "tasks", "turns_running"} <= found.left.keys()
    assert [turns for turns, _ in found.memory] == [125, 250]
    assert all(each.in_use > each.sqlite > 0 < each.blocks for _, each in found.memory)
    assert all(each.in_use == each.sqlite + each.others for _, each in found.memory)
    assert "Left open: nothing" in soak.report(found, warm_up=0)


def test_a_small_run_of_the_service_measures_every_figure() -> None:
    found = service.run(service.Size(rounds=1, seconds=1.0, loops=1, streams=6))
    assert found.failed == 0
    assert found.streams["whole"] == 6
    assert found.streams["left open"] == 0
    assert all(rounds[0].keys() == {"graph", "bare", "ours"} for rounds in found.cpu.values())
    assert all(rounds[0].keys() == {"bare", "ours"} for rounds in found.latency.values())
    told = service.report(found)
    assert all(f"| processor, {kind} turns |" in told for kind in service.KINDS)


def test_a_crowd_is_answered_whole_by_both_doors() -> None:
    found = crowds.run([1, 3], seconds=0.5, rounds=1)
    for size, rounds in found.items():
        assert [each.keys() for each in rounds] == [{"bare", "ours"}]
        told = [one for taken in rounds[0].values() for one in taken.told]
        assert len(told) >= 2 * size
        assert all(one.is_whole for one in told)
    lines = crowds.report(found).splitlines()
    assert sum(line.startswith(("| 1 | ours |", "| 3 | bare |")) for line in lines) == 2
    assert all(line.endswith("| 0 |") for line in lines if "| ours |" in line or "| bare |" in line)


def test_a_small_run_of_the_store_measures_every_figure() -> None:
    size = store.Size(rounds=2, conversations=120, messages=120, records=40)
    found = store.run(size, on_postgres=False)
    assert found.turns.keys() == {
        f"{kind}{figure}"
        for kind in store.QUESTIONS
        for figure in (", seconds", ", processor", " at the door, seconds")
    }
    assert found.archive["new written"] >= 40  # the turns before have left records too
    assert found.archive["known written"] == 0
    assert "| conversations, second page |" in store.report(found, size)


def test_silent_connections_end_while_a_user_is_answered_and_nothing_is_left() -> None:
    found = silent.run(60, 80, idle=1.0, turns=1)
    assert (found.never_ended, sum(found.counted.values())) == (0, 60)
    assert found.left == {"turns running": 0, "connections": 0}
    assert found.moments["after"].files <= found.moments["before"].files + 5
    assert "| while open |" in silent.report(found)
