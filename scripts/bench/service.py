"""What the service costs beside a bare door around the same graph, and beside the graph called directly.

    python -m scripts.bench service [--rounds 20] [--seconds 20] [--streams 64] [--json FILE]

Each door is a process with a data folder and an embedded server of its own. All take each round in turn, in
an order that changes, and what is printed are medians of the rounds' ratios. Latency is measured by an open
loop: requests are sent by a schedule at half of the service's measured capacity, and counted from when they
were due. The bare door's first event is the graph's first step; ours is `created`, sent when the request is
claimed and its question and record are saved.
"""

import argparse
import asyncio
import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from scripts.bench.doors import Door, open_door
from scripts.bench.load import Connections, Question, Told, arrivals, open_loop, take_lanes
from scripts.bench.machine import about
from scripts.bench.ratios import Ratio, Round, order, paired, table

NAMES = ("graph", "bare", "ours")
LANES, TURNS = 4, 4
CONVERSATIONS = 256  # of an open loop: none is asked again while it answers
FACT = "云帆科技2023年营收是多少？"
MIXED = (FACT, "一次性创业补贴有多少钱？", "云帆科技和云帆能源2023年净利润对比", "研发费用补助怎么申请？")
KINDS: Mapping[str, Sequence[str]] = {"mixed": MIXED, "fact": (FACT,)}
MODEL_SECONDS = 1.0
PACKAGES = ("langgraph", "starlette", "fastapi", "uvicorn", "httptools", "uvloop", "redis", "sqlalchemy")


@dataclass(frozen=True)
class Size:
    rounds: int
    seconds: float
    loops: int
    streams: int


@dataclass
class Found:
    """Seconds of processor a turn; first-event latencies; and what the streams of a slow model were told."""

    cpu: dict[str, list[dict[str, float]]]
    capacity: float
    rate: float
    latency: dict[str, list[dict[str, float]]]
    streams: dict[str, float]
    failed: int
    about: str


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m scripts.bench service")
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--seconds", type=float, default=10.0, help="of each open loop")
    options.add_argument("--loops", type=int, default=6, help="open loops of each door")
    options.add_argument("--streams", type=int, default=64)
    options.add_argument("--json", type=Path, help="save the rounds here")
    chosen = options.parse_args()
    found = run(Size(chosen.rounds, chosen.seconds, chosen.loops, chosen.streams))
    if chosen.json:
        chosen.json.write_text(json.dumps(vars(found)))
    print(report(found))


def run(size: Size) -> Found:
    found = Found({kind: [] for kind in KINDS}, 0.0, 0.0, {}, {}, 0, about(PACKAGES))
    with doors() as opened:
        note("warming up")
        for kind in KINDS:
            cpu_round(opened, kind, "warm-up", found, 0)
        note("processor time")
        for kind in KINDS:
            for number in range(size.rounds):
                found.cpu[kind].append(cpu_round(opened, kind, f"{kind}-{number}", found, number))
        note("capacity")
        found.capacity = capacity_of(opened["ours"], size.seconds / 2, found)
        found.rate = found.capacity / 2
        note(f"latency at {found.rate:.1f} requests a second")
        for number in range(size.loops):
            measure_latency(opened, size, number, found)
    note(f"{size.streams} streams of a model that takes {MODEL_SECONDS:g} s")
    found.streams = measure_streams(size.streams)
    return found


@contextmanager
def doors(names: Sequence[str] = NAMES, **settings: str) -> Iterator[dict[str, Door]]:
    """Open doors by name, each in a folder of its own, all with the same settings."""
    with tempfile.TemporaryDirectory(prefix="ba-bench-") as home, ExitStack() as stack:
        yield {name: stack.enter_context(open_door(name, Path(home) / name, **settings)) for name in names}


# --- processor time ---


def cpu_round(
    opened: Mapping[str, Door], kind: str, prefix: str, found: Found, number: int
) -> dict[str, float]:
    """Seconds of processor a turn that each door's process used for the same turns of new conversations."""
    lanes = [
        [(f"{prefix}-{lane}", KINDS[kind][turn % len(KINDS[kind])]) for turn in range(TURNS)]
        for lane in range(LANES)
    ]
    taken = {}
    for name in order(list(opened), number):
        used = cpu_of(opened[name], lanes, found)
        taken[name] = used / (LANES * TURNS)
    return taken


def cpu_of(door: Door, lanes: list[list[Question]], found: Found) -> float:
    if door.port == 0:
        used: float = door.ask("take", lanes)["cpu"]
        return used
    before = door.cpu()
    told = asyncio.run(closed_loop(door.port, lanes))
    time.sleep(0.02)  # what a door does after its last word is part of the turn
    found.failed += failures(told)
    return door.cpu() - before


async def closed_loop(port: int, lanes: Sequence[Iterable[Question]]) -> list[Told]:
    connections = Connections(port)
    try:
        return await take_lanes(connections, lanes)
    finally:
        connections.close()


def failures(told: Sequence[Told]) -> int:
    return sum(not each.is_whole for each in told)


# --- latency ---


def capacity_of(door: Door, seconds: float, found: Found) -> float:
    """Requests a second that end while eight clients each ask again at once."""
    taken, told = keep_asking(door, 8, seconds, "capacity")
    found.failed += failures(told)
    return len(told) / taken


def keep_asking(door: Door, clients: int, seconds: float, prefix: str) -> tuple[float, list[Told]]:
    """Questions begun within so many seconds, answered to their ends. -> seconds taken, and all told."""
    began = time.perf_counter()

    def lane(place: int) -> Iterator[Question]:
        number = 0
        while time.perf_counter() - began < seconds:
            yield f"{prefix}-{place}-{number // TURNS}", MIXED[number % len(MIXED)]
            number += 1

    told = asyncio.run(closed_loop(door.port, [lane(place) for place in range(clients)]))
    return time.perf_counter() - began, told


def measure_latency(opened: Mapping[str, Door], size: Size, number: int, found: Found) -> None:
    """One open loop against each door that serves, with the same schedule."""
    schedule = [
        (at, (f"open-{place % CONVERSATIONS}", MIXED[place % len(MIXED)]))
        for place, at in enumerate(arrivals(found.rate, size.seconds, seed=number))
    ]
    taken: dict[str, dict[str, float]] = {}
    for name in order([name for name in opened if opened[name].port], number):
        told = asyncio.run(paced(opened[name].port, schedule))
        found.failed += failures(told)
        for figure, seconds in latencies(name, told).items():
            taken.setdefault(figure, {})[name] = seconds
    for figure, of_doors in taken.items():
        found.latency.setdefault(figure, []).append(of_doors)


async def paced(port: int, schedule: Sequence[tuple[float, Question]]) -> list[Told]:
    connections = Connections(port)
    try:
        return await open_loop(connections, schedule)
    finally:
        connections.close()


def latencies(name: str, told: Sequence[Told]) -> dict[str, float]:
    stage = "stage" if name == "ours" else "StageEvent"
    first = [each.first for each in told if each.moments]
    step = [at for each in told if (at := each.moment_of(stage)) is not None]
    return {
        "first event, median": statistics.median(first),
        "first event, 95 %": quantile(first, 0.95),
        "first step, median": statistics.median(step),
        "whole answer, median": statistics.median(each.ended for each in told),
    }


def quantile(values: Sequence[float], part: float) -> float:
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(part * len(ranked)))]


# --- many open streams ---


def measure_streams(streams: int) -> dict[str, float]:
    """So many questions at once to a model that takes a second for each answer."""
    with tempfile.TemporaryDirectory(prefix="ba-bench-") as home:
        model = scripted_model(Path(home) / "model.jsonl")
        with open_door("ours", Path(home) / "ours", MODEL=model, MAX_WORKERS=str(streams)) as door:
            asyncio.run(all_at_once(door.port, "warm-up", 2))
            told = asyncio.run(all_at_once(door.port, "streams", streams))
            left = door.settle()
    whole = [each for each in told if each.is_whole]
    return {
        "whole": len(whole),
        "failed": len(told) - len(whole),
        "slowest first event": max(each.first for each in told if each.moments),
        "median end": statistics.median(each.ended for each in told),
        "slowest end": max(each.ended for each in told),
        "longest silence": max(longest_silence(each) for each in told),
        "left open": sum(left.values()),
    }


def scripted_model(file: Path) -> str:
    """Twenty pieces of text that take a second in all."""
    text = "符合条件的给予一次性补贴[C1]。"
    piece = 1
    reply = {"text": text, "piece": piece, "wait": MODEL_SECONDS / len(text)}
    file.write_text(json.dumps(reply, ensure_ascii=False), encoding="utf-8")
    return f"scripted:{file}"


async def all_at_once(port: int, prefix: str, streams: int) -> list[Told]:
    return await closed_loop(port, [[(f"{prefix}-{place}", MIXED[3])] for place in range(streams)])


def longest_silence(told: Told) -> float:
    """The longest wait of a reader for the next event, the wait for the first one included."""
    moments = [0.0, *told.moments]
    return max((after - before for before, after in itertools.pairwise(moments)), default=0.0)


# --- the report ---


def report(found: Found) -> str:
    cpu = [
        [
            f"processor, {kind} turns",
            target,
            paired(rounds, "ours", "bare"),
            paired(rounds, "ours", "graph"),
            paired(rounds, "bare", "graph"),
            milliseconds(rounds),
        ]
        for (kind, rounds), target in zip(found.cpu.items(), (1.5, 1.5), strict=True)
    ]
    waits = [
        [
            figure,
            1.3 if figure.startswith("first event, median") else None,
            *(ratio_of(rounds)),
            milliseconds(rounds),
        ]
        for figure, rounds in found.latency.items()
    ]
    head = ["median of ratios", "target", "ours / bare", "ours / graph", "bare / graph", "median ms, " + BOTH]
    streams = ", ".join(f"{name} {value:.2f}".replace(".00", "") for name, value in found.streams.items())
    return "\n\n".join(
        [
            found.about,
            table(head, [*cpu, *waits]),
            f"Capacity {found.capacity:.1f} turns a second (8 clients); open loop at {found.rate:.1f} a "
            f"second; {found.failed} requests failed.",
            f"Streams: {streams} (seconds).",
        ]
    )


BOTH = "graph / bare / ours"


def ratio_of(rounds: Sequence[Round]) -> list[Ratio | None]:
    return [paired(rounds, "ours", "bare"), None, None]


def milliseconds(rounds: Sequence[Round]) -> str:
    medians = [
        f"{statistics.median(each[name] for each in rounds) * 1000:.1f}" if name in rounds[0] else "–"
        for name in NAMES
    ]
    return " / ".join(medians)


def note(text: str) -> None:
    print(
        f"[{time.strftime('%H:%M:%S')}] {text} (load {os.getloadavg()[0]:.1f})", file=sys.stderr, flush=True
    )
