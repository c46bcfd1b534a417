"""How retrieval holds up as the knowledge grows, beside bm25s alone over the same words.

    python -m scripts.bench retrieval [--passages 1000 10000 100000] [--queries 100]

The passages are made up from a seeded list of words, so every run has the same ones. Each query is asked of
both, one after the other. `ours` is what an answer gets: scoring, the cut below which nothing counts as
found, permissions read anew from the store, dates, and both exits; `bm25s` scores the same tokens and takes
the best 50. Printed for each size: seconds to load and to build the index, its memory, queries a second of
both, and the ratio of their times. Whether the right passage is found is asked elsewhere:
`python -m scripts.eval retrieval`.
"""

import argparse
import random
import re
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nodes.contracts import Caller
from nodes.retrieve.exits import open_retriever
from nodes.retrieve.index import CANDIDATES, LexicalRetriever
from nodes.retrieve.wording import Wording
from scripts.bench.ratios import Ratio, paired, table
from scripts.eval.knowledge import RECEIVED_AT, store_of

SEED = 20260914
WORDS = re.findall(
    "..",
    "企业申请补贴标准部门材料审核期限登记人员费用合同项目设备税务住房社保就业创业培训"
    "贷款利率担保能源环保排放许可变更注销投标采购仓储运输医疗保险工伤仲裁专利商标软件",
)
QUERY_WORDS = 3
CALLER = Caller()


@dataclass(frozen=True)
class Found:
    """One size: seconds, megabytes, and for each query the seconds of both."""

    passages: int
    load: float
    index: float
    megabytes: float
    rounds: Sequence[dict[str, float]]

    @property
    def ratio(self) -> Ratio | None:
        return paired(self.rounds, "ours", "bm25s")

    def a_second(self, name: str) -> float:
        return 1 / statistics.median(each[name] for each in self.rounds)


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m scripts.bench retrieval")
    options.add_argument("--passages", type=int, nargs="+", default=[1000, 10_000, 100_000])
    options.add_argument("--queries", type=int, default=100)
    chosen = options.parse_args()
    print(report([measure(count, chosen.queries) for count in sorted(chosen.passages)]))


def passages_of(count: int) -> dict[str, str]:
    """Passages of about a hundred characters, each with a number of its own."""
    drawn = random.Random(SEED)  # noqa: S311 - made-up text
    return {
        f"p{at:06}": f"第{at}号办法。{'，'.join(clause(drawn) for _ in range(12))}" for at in range(count)
    }


def clause(drawn: random.Random) -> str:
    return "".join(drawn.choices(WORDS, k=4))


def queries_of(count: int) -> list[str]:
    drawn = random.Random(SEED + 1)  # noqa: S311 - made-up text
    return ["".join(drawn.sample(WORDS, k=QUERY_WORDS)) + "的标准是多少？" for _ in range(count)]


def measure(count: int, queries: int) -> Found:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    with store_of(passages_of(count)) as store:
        loaded = time.perf_counter()
        index = LexicalRetriever(store).current_index()
        indexed = time.perf_counter()
        megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1000
        retriever = open_retriever(store)
        ways: dict[str, Callable[[str], Any]] = {
            "ours": lambda query: retriever.retrieve(query, caller=CALLER, on_date=RECEIVED_AT[:10]),
            "bm25s": bare(index),
        }
        asked = queries_of(queries)
        for way in ways.values():
            way(asked[0])  # builds what is built once
        rounds = [one_round(ways, query, number) for number, query in enumerate(asked)]
    return Found(count, loaded - started, indexed - loaded, megabytes, rounds)


def bare(index: Any) -> Callable[[str], Any]:
    wording, bm25 = Wording(), index._bm25

    def search(query: str) -> Any:
        terms = wording.terms(wording.fold(query))
        return bm25.retrieve([terms], k=min(CANDIDATES, bm25.scores["num_docs"]), show_progress=False)

    return search


def one_round(ways: dict[str, Callable[[str], Any]], query: str, number: int) -> dict[str, float]:
    taken: dict[str, float] = {}
    for name in list(ways)[:: 1 if number % 2 else -1]:
        started = time.perf_counter()
        ways[name](query)
        taken[name] = time.perf_counter() - started
    return taken


def report(found: Sequence[Found]) -> str:
    measured = ["load, s", "index, s", "memory, MB", "ours, queries/s", "bm25s, queries/s", "time, ratio"]
    rows = [
        [
            f"{each.passages:,}",
            f"{each.load:.1f}",
            f"{each.index:.1f}",
            f"{each.megabytes:.0f}",
            f"{each.a_second('ours'):.0f}",
            f"{each.a_second('bm25s'):.0f}",
            each.ratio,
        ]
        for each in found
    ]
    return table(["passages", *measured], rows)
