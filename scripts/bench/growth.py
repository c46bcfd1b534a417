"""What a turn costs as its conversation grows, and as the number of stored conversations grows.

    python -m scripts.bench growth [--at 1 10 100 500 2000] [--rounds 20] [--threads 1 100 10000]

One conversation is grown and set aside before each of the turns in `--at`. Then each round takes each of
these turns once, in a turning order, from a fresh copy of its thread, so that load on the machine disturbs
all alike. Printed are the medians' ratios to the second of them (the first has nothing to read), and what is
counted exactly: Redis commands, those inside scripts included, and bytes in and out.

For `--threads` a conversation of one turn is stored so many times under other names. Printed are the server's
memory a thread and the cost of a turn among them.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from checkpoint.layout import context_key
from graph.compose import Assistant, open_assistant, prepare_knowledge
from graph.run import last_result, stream_turn
from graph.settings import load_settings
from nodes.contracts import Caller
from scripts.bench.ratios import order, paired, table

QUESTIONS = (
    "云帆科技2023年营收是多少？",
    "一次性创业补贴有多少钱？",
    "云帆科技和云帆能源2023年净利润对比",
    "北渚茶业2024年净利润是多少？",
)
MEASURED = "研发费用补助怎么申请？"
BATCH = 200  # threads stored in one pipeline
Taken = list[dict[str, dict[str, float]]]  # rounds: what is compared -> figure -> value


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m scripts.bench growth")
    options.add_argument("--at", type=int, nargs="*", default=[1, 10, 100, 500, 2000])
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--threads", type=int, nargs="*", default=[1, 100, 10_000])
    chosen = options.parse_args()
    with opened() as assistant:
        if chosen.at:
            print(report("turn", measure_turns(assistant, sorted(chosen.at), chosen.rounds)))
        if chosen.threads:
            print(report("threads", measure_threads(assistant, sorted(chosen.threads), chosen.rounds)))


@contextmanager
def opened() -> Iterator[Assistant]:
    with tempfile.TemporaryDirectory(prefix="ba-") as home:
        settings = load_settings({"BUSINESS_ASSISTANT_HOME": home})
        prepare_knowledge(settings)
        with open_assistant(settings) as assistant:
            yield assistant


def measure_turns(assistant: Assistant, at: Sequence[int], rounds: int) -> Taken:
    grow(assistant, at)
    names = [str(turn) for turn in at]
    taken: Taken = []
    for number in range(rounds):
        taken.append({})
        for name in order(names, number):
            copy = f"at-{name}-{number}"
            if name != "1":
                assistant.saver.copy_thread(f"at-{name}", copy)
            taken[-1][name] = one_turn(assistant, copy)
            assistant.saver.delete_thread(copy)
    return taken


def grow(assistant: Assistant, at: Sequence[int]) -> None:
    for turn in range(1, max(at)):
        ask(assistant, "growing", QUESTIONS[turn % len(QUESTIONS)])
        if turn + 1 in at:
            assistant.saver.copy_thread("growing", f"at-{turn + 1}")


def measure_threads(assistant: Assistant, counts: Sequence[int], rounds: int) -> Taken:
    """Not interleaved, since a larger count holds the threads of the smaller ones: read times with care."""
    ask(assistant, "one", QUESTIONS[0])
    fields = assistant.saver.wire.client.hgetall(context_key(assistant.saver.config.key_prefix, "one"))
    empty, stored = memory(assistant), 0
    taken: Taken = [{} for _ in range(rounds)]
    for count in counts:
        store(assistant, fields, stored, count)
        stored = count
        a_thread = (memory(assistant) - empty) / count
        for number, found in enumerate(taken):
            found[str(count)] = {
                **one_turn(assistant, f"among-{count}-{number}"),
                "memory a thread": a_thread,
            }
            assistant.saver.delete_thread(f"among-{count}-{number}")
    return taken


def store(assistant: Assistant, fields: dict[Any, Any], first: int, last: int) -> None:
    client: Any = assistant.saver.wire.client
    for begin in range(first, last, BATCH):
        with client.pipeline(transaction=False) as batch:
            for number in range(begin, min(begin + BATCH, last)):
                key = context_key(assistant.saver.config.key_prefix, f"stored-{number}")
                batch.hset(key, mapping=fields).expire(key, 86_400)
            batch.execute()


def memory(assistant: Assistant) -> int:
    info: dict[str, Any] = assistant.saver.wire.client.info("memory")
    return int(info["used_memory_dataset"])


def one_turn(assistant: Assistant, thread: str) -> dict[str, float]:
    before, started, cpu = server(assistant), time.perf_counter(), time.process_time()
    ask(assistant, thread, MEASURED)
    seconds, worked = time.perf_counter() - started, time.process_time() - cpu
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


def report(compared: str, taken: Taken) -> str:
    names = list(taken[0])
    base = names[min(1, len(names) - 1)]
    rows: list[list[object]] = []
    for figure in taken[0][names[0]]:
        rounds = [{name: found[name][figure] for name in names} for found in taken]
        middle = {name: statistics.median(each[name] for each in rounds) for name in names}
        digits = 4 if figure in ("seconds", "cpu") else 0
        rows.append([figure, *(f"{middle[name]:.{digits}f}" for name in names)])
        rows.append([f"{figure}, of {compared} {base}", *(paired(rounds, name, base) for name in names)])
    return table([f"{len(taken)} rounds", *(f"{compared} {name}" for name in names)], rows) + "\n"
