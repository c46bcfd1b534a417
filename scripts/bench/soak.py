"""Many turns of which some clients vanish: is anything left open, and does memory grow?

    python -m scripts.bench soak [--turns 20000] [--vanishing 0.05] [--on-disconnect continue] [--exact]

The service runs in a process of its own. Between blocks of turns, when nothing is running, its memory is
measured: resident bytes, after a collection and after the allocator gave back what it need not keep; the
blocks that Python has allocated; the bytes that the C allocator has given out; and SQLite's share of these.
The slope is a least-squares line over the samples after the warm-up, and over those of the last half, which
tells what fills up slowly from what grows for ever; with the 95 % interval widened for how much each sample
resembles the one before. At the end everything that a request opens must be zero.

glibc lets each thread keep up to seven freed blocks of each of 64 sizes for itself and counts them as given
out. `--exact` forbids it, so that the C allocator's figure is that of what is in use, to the byte.
"""

import argparse
import asyncio
import itertools
import json
import math
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scripts.bench.doors import Door, Memory
from scripts.bench.load import Connections, ask
from scripts.bench.machine import about
from scripts.bench.service import MIXED, PACKAGES, doors, note

LANES = 8
TURNS = 5  # of a conversation
TUNABLES, NO_THREAD_CACHES = "GLIBC_TUNABLES", "glibc.malloc.tcache_count=0"
MOST_EVENTS = 8  # a client may vanish after any of so many; an answer has about nine
FACTS = (MIXED[0], MIXED[2], "北渚茶业2024年净利润是多少？", "云帆科技的营收是多少？", "再说一遍")


@dataclass(frozen=True)
class Plan:
    """Which turns a lane takes. `leaves` None: to the end; -1: in the middle of the request itself."""

    thread: str
    text: str
    leaves: int | None


@dataclass
class Found:
    """`memory`: turns so far, and the process then. `left`: what was still open in the end."""

    turns: int = 0
    vanished: int = 0
    whole: int = 0
    failed: int = 0
    seconds: float = 0.0
    memory: list[tuple[int, Memory]] = field(default_factory=list)
    left: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Slope:
    """So much more a turn; the 95 % interval is `value` ± `within`."""

    value: float
    within: float

    def __str__(self) -> str:
        return f"{self.value:+.2f} ± {self.within:.2f}"


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m scripts.bench soak")
    options.add_argument("--turns", type=int, default=20_000)
    options.add_argument("--warm-up", type=int, default=2_000)
    options.add_argument("--block", type=int, default=200, help="turns between two looks at the memory")
    options.add_argument("--vanishing", type=float, default=0.05)
    options.add_argument("--on-disconnect", choices=("continue", "stop"), default="continue")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--exact", action="store_true", help="without the allocator's caches of each thread")
    options.add_argument("--json", type=Path, help="save what was found here")
    chosen = options.parse_args()
    if chosen.exact:
        os.environ[TUNABLES] = without_thread_caches(os.environ.get(TUNABLES, ""))
    found = run(chosen.turns, chosen.block, chosen.vanishing, chosen.seed, ON_DISCONNECT=chosen.on_disconnect)
    if chosen.json:
        chosen.json.write_text(json.dumps(vars(found)))
    print(report(found, chosen.warm_up))
    sys.exit(1 if any(found.left.values()) else 0)


def without_thread_caches(tunables: str) -> str:
    """What glibc shall read when the service's process starts, beside what it was told already."""
    return ":".join(filter(None, [tunables, NO_THREAD_CACHES]))


def run(turns: int, block: int, vanishing: float, seed: int, **settings: str) -> Found:
    found, began = Found(), time.perf_counter()
    with doors(("ours",), **settings) as opened:
        door, plans = opened["ours"], plan(turns, vanishing, seed)
        while found.turns < turns:
            asyncio.run(one_block(door, plans, min(block, turns - found.turns), found))
            found.left = door.settle()
            found.memory.append((found.turns, door.ask("memory")))
            if found.turns % (10 * block) == 0:
                note(f"{found.turns} turns, {found.memory[-1][1].resident / 2**20:.1f} MiB")
    found.seconds = time.perf_counter() - began
    return found


def plan(turns: int, vanishing: float, seed: int) -> Iterator[Plan]:
    """The same turns and the same departures for the same seed. Who leaves begins a new conversation."""
    chance = random.Random(seed)  # noqa: S311 - a schedule, no secret
    conversation, asked = 0, 0
    for number in range(turns):
        leaves = chance.randint(-1, MOST_EVENTS) if chance.random() < vanishing else None
        yield Plan(f"soak-{conversation}", FACTS[number % len(FACTS)], leaves)
        asked += 1
        if leaves is not None or asked == TURNS:
            conversation, asked = conversation + 1, 0


async def one_block(door: Door, plans: Iterator[Plan], turns: int, found: Found) -> None:
    """So many turns over all lanes. Turns of one conversation follow one another in one lane."""
    connections = Connections(door.port)
    lanes: list[list[Plan]] = [[] for _ in range(LANES)]
    for each in (next(plans) for _ in range(turns)):
        lanes[number_of(each.thread) % LANES].append(each)
    await asyncio.gather(*(take_lane(connections, lane, found) for lane in lanes))
    connections.close()


def number_of(thread: str) -> int:
    return int(thread.rsplit("-", 1)[1])


async def take_lane(connections: Connections, lane: Sequence[Plan], found: Found) -> None:
    for each in lane:
        await take(connections, each, found)


async def take(connections: Connections, each: Plan, found: Found) -> None:
    found.turns += 1
    if each.leaves == -1:
        found.vanished += 1
        await send_half(connections.port)
        return
    told = await ask(connections, (each.thread, each.text), leave_after=each.leaves)
    if told.is_whole:
        found.whole += 1
    elif each.leaves is None:
        found.failed += 1
    else:
        found.vanished += 1


async def send_half(port: int) -> None:
    """A connection that ends in the middle of its body."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    head = b"POST /api/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    writer.write(head + b'Content-Length: 100\r\n\r\n{"thread_id": ')
    await writer.drain()
    writer.transport.abort()


def slope_of(samples: Sequence[tuple[float, float]]) -> Slope | None:
    """The least-squares slope; None for fewer than four samples."""
    count = len(samples)
    if count < 4:
        return None
    mean_x = sum(x for x, _ in samples) / count
    mean_y = sum(y for _, y in samples) / count
    spread = sum((x - mean_x) ** 2 for x, _ in samples)
    value = sum((x - mean_x) * (y - mean_y) for x, y in samples) / spread
    rest = [y - mean_y - value * (x - mean_x) for x, y in samples]
    squares = sum(each**2 for each in rest)
    if squares == 0:
        return Slope(value, 0.0)
    alike = max(0.0, sum(a * b for a, b in itertools.pairwise(rest)) / squares)
    independent = max(3.0, count * (1 - alike) / (1 + alike))
    error = math.sqrt(squares / (independent - 2) / spread)
    return Slope(value, t_value(independent - 2) * error)


def t_value(freedom: float) -> float:
    """Student's t for 95 % on both sides, by a series in 1/freedom; within 1 % from 3 on."""
    z = 1.959964
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, start=1))


def report(found: Found, warm_up: int) -> str:
    left = {name: value for name, value in found.left.items() if value}
    return "\n\n".join(
        [
            about(PACKAGES),
            f"{found.turns} turns in {found.seconds:.0f} s; {found.vanished} clients vanished, "
            f"{found.whole} were answered, {found.failed} failed.",
            f"Left open: {left or 'nothing'} (of {', '.join(found.left)}).",
            f"Memory after {warm_up} turns:",
            growth(found.memory, warm_up),
        ]
    )


def growth(samples: Sequence[tuple[int, Memory]], warm_up: int) -> str:
    """A row for each figure that this platform tells."""
    kept = [each for each in samples if each[0] > warm_up] or samples[-1:]
    half = samples[-1][0] / 2
    rows = ["| | first | last | most | slope a turn | in the last half |", "|---|---|---|---|---|---|"]
    for name in Memory._fields:
        line = [(turns, value) for turns, found in kept if (value := getattr(found, name)) is not None]
        if line:
            values = [value for _, value in line]
            slopes = slope_of(line), slope_of([each for each in line if each[0] > half])
            shown = " | ".join(str(slope or "–") for slope in slopes)
            rows.append(f"| {name} | {values[0]:,} | {values[-1]:,} | {max(values):,} | {shown} |")
    return "\n".join(rows)
