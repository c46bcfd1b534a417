"""What a run of the saver benchmark found, and its tables. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from scripts.bench.ratios import Ratio, Round, paired, table

EARLY = 10


@dataclass
class Found:
    """Rounds of each figure, exact counts of each contestant, who could not run and why, and the machine."""

    rounds: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    counts: dict[str, dict[str, float]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)


def pool(runs: Sequence[Found]) -> Found:
    """One finding of several: all rounds together; the counts, which no load changes, of the last."""
    last = runs[-1]
    rounds: dict[str, list[dict[str, float]]] = {}
    for each in runs:
        for figure, taken in each.rounds.items():
            rounds.setdefault(figure, []).extend(taken)
    load = [value for each in runs for value in each.about["load"]]
    return Found(rounds, last.counts, last.missing, {**last.about, "load": load, "runs": len(runs)})


# Title, rounds, what they are compared with, target of ours.
FIGURES: tuple[tuple[str, str, str, float | None], ...] = (
    ("turn 10, five nodes, growing list", "growing early", "floor", 0.85),
    ("turn {late}, five nodes, growing list", "growing late", "floor", None),
    ("turn 10, our graph", "own early", "floor", None),
    ("turn {late}, our graph", "own late", "floor", None),
    ("get_tuple(latest) at turn {late}", "get_tuple", "floor", 0.6),
    ("put_writes", "put_writes", "floor", 0.8),
    ("client CPU of turn 10, against memory", "growing cpu", "memory", 1.3),
    ("8 threads, against memory", "crowd", "memory", 1.3),
)
GROWTHS: tuple[tuple[str, str, float | None], ...] = (
    ("turn {late} against turn 10, our graph", "own", 1.1),
    ("turn {late} against turn 10, growing list", "growing", None),
)
COUNTS = (
    ("waits at turn 10", "waits", 1),
    ("server commands at turn 10", "commands", 1),
    ("KB sent at turn 10", "sent", 1000),
    ("KB received at turn 10", "received", 1000),
    ("KB stored, turns 11 to 20", "early", 1000),
    ("KB stored at turn {late}", "late", 1000),
)
GRAPHS = {"growing": "growing list", "own": "our graph"}


def report(found: Found) -> str:
    names = list(found.counts)
    ratios = ratio_rows(found, names)
    medians = [
        [title, target, *(ratio and f"{ratio.median:.2f}" for ratio in row)] for title, target, row in ratios
    ]
    spreads = [[title, *row] for title, _, row in ratios]
    pieces = [
        heading(found),
        table(["median of ratios", "target", *names], medians),
        table(["counted, a turn", *names], count_rows(found, names)),
        "With quartiles:",
        table(["ratio", *names], spreads),
        *(f"Not run: {name}: {reason}." for name, reason in found.missing.items()),
    ]
    return "\n\n".join(pieces).replace("{late}", str(found.about["late"]))


def ratio_rows(found: Found, names: Sequence[str]) -> list[tuple[str, float | None, list[Ratio | None]]]:
    rows = []
    for title, figure, base, target in FIGURES:
        rounds = found.rounds.get(figure, [])
        rows.append((title, target, [paired(rounds, name, base) for name in names]))
    for title, graph, target in GROWTHS:
        rows.append((title, target, [paired(growth(found, graph, name), "late", "early") for name in names]))
    return rows


def growth(found: Found, graph: str, name: str) -> list[Round]:
    """A contestant's long thread beside its short one, round by round."""
    both = zip(found.rounds.get(f"{graph} early", []), found.rounds.get(f"{graph} late", []), strict=False)
    return [{"early": a[name], "late": b[name]} for a, b in both if name in a and name in b]


def count_rows(found: Found, names: Sequence[str]) -> list[list[str | None]]:
    return [
        [f"{title}, {spelled}", *(show(found.counts[name].get(f"{graph} {key}"), unit) for name in names)]
        for graph, spelled in GRAPHS.items()
        for title, key, unit in COUNTS
    ]


def show(value: float | None, unit: int) -> str | None:
    if value is None:
        return None
    return f"{value:.0f}" if unit == 1 else f"{value / unit:.1f}"


def heading(found: Found) -> str:
    about = found.about
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    rounds = ", ".join(f"{figure} {len(taken)}" for figure, taken in found.rounds.items())
    return (
        f"{about.get('runs', 1)} run(s); {about['machine']}, {about['cores']} cores, "
        f"load {min(about['load']):.1f} to {max(about['load']):.1f}; Python {about['python']}; {versions}.\n"
        f"Rounds: {rounds}."
    )
