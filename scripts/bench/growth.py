"""What a turn costs as its conversation grows: the same question as turn 5 and as turn 300, in turns.

    python -m scripts.bench growth [--late 300] [--rounds 40]

Two conversations are grown first, one to turn 4 and one to turn N-1. Then each round takes one turn of each,
in alternating order, from a fresh copy of its thread, so both are always measured at their turn. Printed are
the medians' ratio and what is counted exactly: Redis commands, and bytes in and out, a turn.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from graph.compose import Assistant, open_assistant, prepare_knowledge
from graph.run import last_result, stream_turn
from graph.settings import load_settings
from nodes.contracts import Caller

QUESTIONS = (
    "云帆科技2023年营收是多少？",
    "一次性创业补贴有多少钱？",
    "云帆科技和云帆能源2023年净利润对比",
    "北渚茶业2024年净利润是多少？",
)
MEASURED = "研发费用补助怎么申请？"


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m scripts.bench growth")
    options.add_argument("--early", type=int, default=5)
    options.add_argument("--late", type=int, default=300)
    options.add_argument("--rounds", type=int, default=40)
    chosen = options.parse_args()
    with opened() as assistant:
        print(report(measure(assistant, chosen.early, chosen.late, chosen.rounds), chosen.early, chosen.late))


@contextmanager
def opened() -> Iterator[Assistant]:
    with tempfile.TemporaryDirectory(prefix="ba-") as home:
        settings = load_settings({"BUSINESS_ASSISTANT_HOME": home})
        prepare_knowledge(settings)
        with open_assistant(settings) as assistant:
            yield assistant


def measure(assistant: Assistant, early: int, late: int, rounds: int) -> dict[str, list[dict[str, float]]]:
    for name, turns in (("early", early - 1), ("late", late - 1)):
        for number in range(turns):
            ask(assistant, name, QUESTIONS[number % len(QUESTIONS)])
    taken: dict[str, list[dict[str, float]]] = {"early": [], "late": []}
    for number in range(rounds):
        for name in ("early", "late") if number % 2 else ("late", "early"):
            thread = f"{name}-{number}"
            assistant.saver.copy_thread(name, thread)
            taken[name].append(one_turn(assistant, thread))
            assistant.saver.delete_thread(thread)
    return taken


def one_turn(assistant: Assistant, thread: str) -> dict[str, float]:
    before, started, cpu = server(assistant), time.perf_counter(), time.thread_time()
    ask(assistant, thread, MEASURED)
    seconds, worked = time.perf_counter() - started, time.thread_time() - cpu
    after = server(assistant)
    counted = {key: after[key] - before[key] for key in before}
    counted["commands"] -= 1  # the first INFO itself
    return {"seconds": seconds, "cpu": worked, **counted}


def server(assistant: Assistant) -> dict[str, float]:
    info: dict[str, Any] = assistant.saver.wire.client.info("stats")
    return {
        "commands": info["total_commands_processed"],
        "bytes in": info["total_net_input_bytes"],
        "bytes out": info["total_net_output_bytes"],
    }


def ask(assistant: Assistant, thread: str, text: str) -> None:
    request = {"request_id": assistant.new_id(), "text": text, "received_at": assistant.clock()}
    last_result(stream_turn(assistant, request, thread_id=thread, caller=Caller()))  # type: ignore[arg-type]


def report(taken: dict[str, list[dict[str, float]]], early: int, late: int) -> str:
    lines = [
        f"{'':<10} {f'turn {early}':>12} {f'turn {late}':>12} {'ratio':>8}   ({len(taken['early'])} rounds)"
    ]
    for key in taken["early"][0]:
        first, last = (statistics.median(turn[key] for turn in taken[name]) for name in ("early", "late"))
        ratio = statistics.median(
            b[key] / a[key] for a, b in zip(taken["early"], taken["late"], strict=True) if a[key]
        )
        shown = [
            f"{value:>12.4f}" if key in ("seconds", "cpu") else f"{value:>12.0f}" for value in (first, last)
        ]
        lines.append(f"{key:<10} {shown[0]} {shown[1]} {ratio:>8.2f}")
    return "\n".join(lines)
