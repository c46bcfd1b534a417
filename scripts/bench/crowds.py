"""Turns a second and waits over HTTP when so many conversations go on at once, beside a bare door.

    python -m scripts.bench crowds [--conversations 1 8 32] [--seconds 10] [--rounds 6]

A closed loop: each conversation asks its next question as soon as the last one is answered, for so many
seconds, so what is printed is what the doors do when they are never idle. Both doors take each crowd of a
round in turn; ratios are medians of the rounds, and quantiles are over the answers of all rounds.
"""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from scripts.bench.doors import Door
from scripts.bench.load import Told
from scripts.bench.machine import about
from scripts.bench.ratios import Ratio, order, paired, table
from scripts.bench.service import PACKAGES, doors, keep_asking, note, quantile

NAMES = ("bare", "ours")
QUANTILES = (0.5, 0.95, 0.99)


@dataclass(frozen=True)
class Taken:
    """What one door answered one crowd: seconds it took, and what each question was told."""

    seconds: float
    told: Sequence[Told]

    @property
    def a_second(self) -> float:
        return len(self.told) / self.seconds


Rounds = list[dict[str, Taken]]  # one for each round: door -> what it answered


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m scripts.bench crowds")
    options.add_argument("--conversations", type=int, nargs="+", default=[1, 8, 32])
    options.add_argument("--seconds", type=float, default=10.0, help="of each crowd at each door")
    options.add_argument("--rounds", type=int, default=6)
    chosen = options.parse_args()
    found = run(sorted(chosen.conversations), chosen.seconds, chosen.rounds)
    print(f"{about(PACKAGES)}\n\n{report(found)}")


def run(crowds: Sequence[int], seconds: float, rounds: int) -> dict[int, Rounds]:
    """By size of the crowd. The service gets a worker for each conversation; the bare door has 40 threads."""
    found: dict[int, Rounds] = {crowd: [] for crowd in crowds}
    with doors(NAMES, MAX_WORKERS=str(max(crowds))) as opened:
        for door in opened.values():
            ask_for(door, 2, 1.0, "warm-up")
        for number in range(rounds):
            note(f"round {number + 1} of {rounds}")
            for crowd in crowds:
                found[crowd].append(take_round(opened, crowd, seconds, number))
    return found


def take_round(opened: Mapping[str, Door], crowd: int, seconds: float, number: int) -> dict[str, Taken]:
    prefix = f"{crowd}-{number}"
    return {name: ask_for(opened[name], crowd, seconds, prefix) for name in order(list(opened), number)}


def ask_for(door: Door, crowd: int, seconds: float, prefix: str) -> Taken:
    return Taken(*keep_asking(door, crowd, seconds, prefix))


def report(found: Mapping[int, Rounds]) -> str:
    waits = [f"{part * 100:.0f} %" for part in QUANTILES]
    head = ["conversations at once", "door", "turns a second", *(f"ms, {wait}" for wait in waits), "failed"]
    ratios = ["conversations at once", "turns a second, ours / bare", "median wait, ours / bare"]
    return "\n\n".join(
        [
            table(head, [row for crowd, rounds in found.items() for row in _rows(crowd, rounds)]),
            table(ratios, [[crowd, *_ratios(rounds)] for crowd, rounds in found.items()]),
            f"Load {os.getloadavg()[0]:.1f}.",
        ]
    )


def _rows(crowd: int, rounds: Rounds) -> Iterator[list[object]]:
    for name in NAMES:
        taken = [each[name] for each in rounds]
        told = [one for each in taken for one in each.told]
        a_second = quantile([each.a_second for each in taken], 0.5)
        waits = [f"{quantile([one.ended for one in told], part) * 1000:.1f}" for part in QUANTILES]
        yield [crowd, name, f"{a_second:.1f}", *waits, sum(not one.is_whole for one in told)]


def _ratios(rounds: Rounds) -> list[Ratio | None]:
    speeds = [{name: taken.a_second for name, taken in each.items()} for each in rounds]
    waits = [
        {name: quantile([one.ended for one in taken.told], 0.5) for name, taken in each.items()}
        for each in rounds
    ]
    return [paired(each, "ours", "bare") for each in (speeds, waits)]
