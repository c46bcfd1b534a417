"""The retrieve step: what it asks its services for, and what it writes."""

from dataclasses import dataclass, field
from typing import Any

from nodes.contracts import Caller, Evidence, FactHit, Intent, Passage, SubQuestion, Turn
from nodes.retrieve.step import make_retrieve

CALLER = Caller(groups=frozenset({"hr"}), knowledge_base="kb")


@dataclass
class Recording:
    """A retriever and a fact store that keep what they were asked."""

    queries: list[tuple[str, Caller, str]] = field(default_factory=list)
    keys: list[tuple[str, str, str]] = field(default_factory=list)
    known: tuple[str, ...] = ()  # periods of which there are figures
    asked_for_periods: list[tuple[str, str, Caller]] = field(default_factory=list)

    def retrieve(self, query: str, *, caller: Caller, on_date: str) -> Evidence:
        self.queries.append((query, caller, on_date))
        passages = [_passage("shared", 0), _passage(query, 1)]
        filters = {"knowledge_base": caller.knowledge_base, "on_date": on_date}
        return {"query": query, "filters": filters, "passages": passages, "knowledge_version": "v1"}  # type: ignore[typeddict-item]

    def knowledge_version(self) -> str:
        return "v1"

    def look_up(self, *, company: str, period: str, metric: str, caller: Caller) -> FactHit | None:
        self.keys.append((company, period, metric))
        return None

    def periods(self, *, company: str, metric: str, caller: Caller) -> list[str]:
        self.asked_for_periods.append((company, metric, caller))
        return list(self.known)


def _passage(document_id: str, start: int) -> Passage:
    values: Any = {"document_id": document_id, "version": "1", "start": start, "end": start + 1}
    return values


def turn(question: str = "年假有几天？\n ") -> Turn:
    return Turn(
        turn_id="t",
        original_question="原来的问题",
        standalone_question=question,
        standalone_reason="confirmed",
        opened_at="2026-05-31T23:59:59.999+08:00",
        received_at="2026-06-01T00:00:00.000+08:00",
        audience="",
    )


def intent(kind: str, subs: list[SubQuestion] | None = None, **slots: list[str]) -> Intent:
    values: Any = {
        "kind": kind,
        "language": "zh",
        "companies": [],
        "periods": [],
        "metrics": [],
        "ambiguous": [],
        "sub_questions": subs or [],
        "needs": [],
        "safety": None,
    }
    return {**values, **slots}


def sub(text: str, kind: Any, companies: str = "", periods: str = "", metrics: str = "") -> SubQuestion:
    return SubQuestion(
        text=text, kind=kind, companies=companies.split(), periods=periods.split(), metrics=metrics.split()
    )


def run(wanted: Intent, question: Turn | None = None, known: tuple[str, ...] = ()) -> tuple[Any, Recording]:
    services = Recording(known=known)
    step = make_retrieve(retriever=services, facts=services)
    return step({"turn": question or turn(), "intent": wanted}, caller=CALLER), services


def test_a_narrative_question_is_searched_for_as_it_stands() -> None:
    writes, services = run(intent("narrative", companies=["a"], periods=["2023"], metrics=["m"]))
    assert services.queries == [("年假有几天？\n ", CALLER, "2026-06-01")]
    assert services.keys == []
    assert writes["facts"] == []
    assert writes["evidence"]["query"] == "年假有几天？\n "
    assert len(writes["evidence"]["passages"]) == 2


def test_a_fact_question_looks_up_the_whole_product_in_order() -> None:
    writes, services = run(
        intent("comparison", companies=["b", "a"], periods=["2024", "2023"], metrics=["m", "l"])
    )
    expected = [(c, p, m) for c in ("b", "a") for p in ("2024", "2023") for m in ("m", "l")]
    assert services.keys == expected
    assert [(one["company"], one["period"], one["metric"]) for one in writes["facts"]] == expected
    assert all(one["hit"] is None for one in writes["facts"])
    assert services.queries == []
    assert writes["evidence"] == {
        "query": "年假有几天？\n ",
        "filters": {"knowledge_base": "kb", "on_date": "2026-06-01"},
        "passages": [],
        "knowledge_version": "v1",
    }


def test_a_miss_names_periods_of_the_same_length_first_and_newest_first() -> None:
    known = ("2019", "2020", "2021", "2022", "2023", "2023H1", "2023Q1")
    wanted = intent("fact", companies=["a"], periods=["2025"], metrics=["m"])
    writes, services = run(wanted, known=known)
    assert writes["facts"][0]["others"] == ["2023", "2022", "2021", "2020"]
    assert services.asked_for_periods == [("a", "m", CALLER)]
    writes, _ = run({**wanted, "periods": ["2025H2"]}, known=known)
    assert writes["facts"][0]["others"] == ["2023H1"]
    writes, _ = run({**wanted, "periods": ["2025H2"]}, known=("2022", "2023"))
    assert writes["facts"][0]["others"] == ["2023", "2022"]


def test_many_misses_do_not_ask_for_periods() -> None:
    wanted = intent("comparison", companies=["a", "b", "c", "d", "e"], periods=["2025"], metrics=["m"])
    writes, services = run(wanted, known=("2023",))
    assert services.asked_for_periods == []
    assert all("others" not in one for one in writes["facts"])


def test_sub_questions_each_ask_for_their_own() -> None:
    subs = [
        sub("甲的营收", "fact", "a", "2023", "m"),
        sub("怎么请假", "narrative"),
        sub("比较乙和丙", "comparison", "b c", "2024", "l"),
        sub("怎么报销", "narrative"),
    ]
    writes, services = run(
        intent("fact", subs, companies=["a", "b", "c"], periods=["2023", "2024"], metrics=["m", "l"])
    )
    assert services.keys == [("a", "2023", "m"), ("b", "2024", "l"), ("c", "2024", "l")]
    assert [query for query, _, _ in services.queries] == ["怎么请假", "怎么报销"]
    evidence = writes["evidence"]
    assert [passage["document_id"] for passage in evidence["passages"]] == ["shared", "怎么请假", "怎么报销"]
    assert evidence["query"] == "怎么请假\n怎么报销"


def test_small_talk_asks_nothing_and_is_still_finished() -> None:
    for kind in ("small_talk", "out_of_scope", "refused"):
        writes, services = run(intent(kind, companies=["a"], periods=["2023"], metrics=["m"]))
        assert (services.queries, services.keys, writes["facts"]) == ([], [], [])
        assert writes["evidence"]["passages"] == []


@dataclass
class Remembering(Recording):
    """Finds `in_force` of each question today, and of every question something that ended in March."""

    in_force: tuple[str, ...] = ()
    recalled: list[str] = field(default_factory=list)

    def retrieve(self, query: str, *, caller: Caller, on_date: str) -> Evidence:
        found = super().retrieve(query, caller=caller, on_date=on_date)
        return found if query in self.in_force else {**found, "passages": []}

    def retrieve_ended(self, query: str, *, caller: Caller, on_date: str) -> Evidence:
        self.recalled.append(query)
        found = super().retrieve(query, caller=caller, on_date=on_date)
        return {**found, "filters": {**found["filters"], "on_date": f"2026-03-{10 + len(self.recalled)}"}}


def recall(*in_force: str) -> tuple[Any, Remembering]:
    services = Remembering(in_force=in_force)
    step = make_retrieve(retriever=services, facts=services)
    asked = intent("narrative", [sub("停泊费减多少", "narrative"), sub("谁可以申请", "narrative")])
    return step({"turn": turn(), "intent": asked}, caller=CALLER), services


def test_what_has_ended_is_not_looked_at_beside_what_is_in_force() -> None:
    written, services = recall("谁可以申请")
    assert services.recalled == []
    assert written["evidence"]["filters"]["on_date"] == "2026-06-01"


def test_where_nothing_in_force_answers_what_has_ended_is_found_as_of_its_day() -> None:
    written, services = recall()
    assert services.recalled == ["停泊费减多少", "谁可以申请"]
    assert written["evidence"]["filters"]["on_date"] == "2026-03-12"
    assert len(written["evidence"]["passages"]) == 3
