"""What the soak and the open loop work out: departures, arrivals, and the slope of the memory."""

import os
import random
import subprocess
import sys

import pytest

from scripts.bench.doors import Memory
from scripts.bench.load import arrivals
from scripts.bench.soak import (
    MOST_EVENTS,
    TUNABLES,
    TURNS,
    Slope,
    growth,
    plan,
    slope_of,
    t_value,
    without_thread_caches,
)


def test_a_seed_gives_the_same_turns_and_departures_again() -> None:
    assert list(plan(400, 0.05, seed=3)) == list(plan(400, 0.05, seed=3))
    assert list(plan(400, 0.05, seed=3)) != list(plan(400, 0.05, seed=4))


def test_about_so_many_leave_at_every_point_and_who_leaves_asks_no_more() -> None:
    turns = list(plan(20_000, 0.05, seed=1))
    leavers = [each for each in turns if each.leaves is not None]
    assert 900 < len(leavers) < 1100
    assert {each.leaves for each in leavers} == set(range(-1, MOST_EVENTS + 1))
    last = {each.thread: each for each in turns}
    assert all(last[each.thread] is each for each in leavers)
    assert max(sum(each.thread == name for each in turns[:500]) for name in ("soak-0", "soak-1")) <= TURNS


def test_arrivals_keep_their_rate_and_end_in_time() -> None:
    times = list(arrivals(50.0, 100.0, seed=1))
    assert 4700 < len(times) < 5300
    assert times == sorted(times)
    assert times[-1] < 100.0


def test_a_line_has_its_slope_exactly() -> None:
    assert slope_of([(float(x), 5.0 + 3.0 * x) for x in range(10)]) == Slope(pytest.approx(3.0), 0.0)


def test_noise_without_growth_has_no_slope_and_growth_within_noise_is_seen() -> None:
    chance = random.Random(5)
    noise = [(200.0 * x, chance.gauss(0, 20_000)) for x in range(90)]
    flat = slope_of(noise)
    assert flat is not None
    assert abs(flat.value) < flat.within
    growing = slope_of([(x, y + 20 * x) for x, y in noise])
    assert growing is not None
    assert growing.value - growing.within > 0


def test_samples_that_follow_one_another_count_for_fewer() -> None:
    chance, walk = random.Random(2), [0.0]
    for _ in range(89):
        walk.append(0.9 * walk[-1] + chance.gauss(0, 1))
    shuffled = random.Random(1).sample(walk, len(walk))
    alike = slope_of([(float(x), y) for x, y in enumerate(walk)])
    unlike = slope_of([(float(x), y) for x, y in enumerate(shuffled)])
    assert alike is not None
    assert unlike is not None
    assert alike.within > 2 * unlike.within


def test_too_few_samples_have_no_slope() -> None:
    assert slope_of([(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]) is None


@pytest.mark.parametrize(
    ("freedom", "value"), [(3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042), (1e9, 1.960)]
)
def test_students_t_is_that_of_the_tables(freedom: float, value: float) -> None:
    assert t_value(freedom) == pytest.approx(value, rel=0.01)


def test_what_fills_up_is_told_from_what_grows() -> None:
    """A cache that is full after 3,000 turns has a slope after 2,000 and none in the last half."""
    filling = [(turns, Memory(turns, 7, min(turns, 3000), None, None)) for turns in range(200, 20_001, 200)]
    rows = {cells[1]: cells[-3:-1] for cells in map(cells_of, growth(filling, 2000).splitlines())}
    assert rows["resident"] == ["+1.00 ± 0.00", "+1.00 ± 0.00"]
    assert rows["blocks"] == ["+0.00 ± 0.00", "+0.00 ± 0.00"]
    assert rows["in_use"][0] not in ("+0.00 ± 0.00", "–")
    assert rows["in_use"][1] == "+0.00 ± 0.00"
    assert "sqlite" not in rows


def cells_of(row: str) -> list[str]:
    return [cell.strip() for cell in row.split("|")]


# Takes seven blocks of each of 31 sizes and gives them back: 167 kB, all of which one thread may keep.
GIVE_BACK = """
import ctypes
from scripts.bench.doors import _in_use
c = ctypes.CDLL(None)
c.malloc.restype, c.malloc.argtypes, c.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
before = _in_use()
for block in [c.malloc(size) for size in range(520, 1016, 16) for _ in range(7)]:
    c.free(block)
print(-1 if before is None else _in_use() - before)
"""


def kept_of_what_was_given_back(tunables: str) -> int:
    env = {**os.environ, TUNABLES: tunables}
    said = subprocess.run([sys.executable, "-c", GIVE_BACK], env=env, capture_output=True, check=True)
    return int(said.stdout)


def test_without_thread_caches_what_was_given_back_does_not_count() -> None:
    kept = kept_of_what_was_given_back("")
    if kept < 0:
        pytest.skip("another C library tells nothing")
    assert kept > 50_000
    assert kept_of_what_was_given_back(without_thread_caches("")) < 20_000


def test_tunables_that_were_set_stay() -> None:
    assert without_thread_caches("") == "glibc.malloc.tcache_count=0"
    assert without_thread_caches("glibc.malloc.perturb=1") == (
        "glibc.malloc.perturb=1:glibc.malloc.tcache_count=0"
    )
