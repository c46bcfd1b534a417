"""Who can see history: asked of the compiled graph, not of the source."""

from collections.abc import Iterator
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from graph.build import Services, TurnGraph, build_graph, steps_of
from graph.state import TurnInput, TurnState
from graph.steps import RequestContext, Step, UndeclaredWriteError, add_step
from graph.studio import LOCAL_CALLER
from nodes.contracts import Caller
from nodes.intent import IntentReads, IntentWrites

SEES_HISTORY = {"answer", "suggest"}


@pytest.fixture
def graph(services: Services) -> TurnGraph:
    return build_graph(services, InMemorySaver(), lambda _: Caller())


def readers_of_history(graph: Any) -> set[str]:
    """Every node and every route of the compiled graph whose view contains `history`."""
    nodes = {
        name for name, node in graph.nodes.items() if name != START and "history" in _channels(node.channels)
    }
    routes = {
        f"{name}>{branch}"
        for name, branches in graph.builder.branches.items()
        for branch, spec in branches.items()
        if "history" in (spec.input_schema or TurnState).__annotations__
    }
    return nodes | routes


def _channels(channels: Any) -> set[str]:
    return {channels} if isinstance(channels, str) else set(channels)


def test_only_answer_and_suggest_read_history(graph: TurnGraph) -> None:
    assert readers_of_history(graph) == SEES_HISTORY


def test_every_route_has_a_view_of_its_own(graph: TurnGraph) -> None:
    specs = [spec for branches in graph.builder.branches.values() for spec in branches.values()]
    assert len(specs) == 4
    assert all(spec.input_schema not in (None, TurnState) for spec in specs)


def test_no_caller_can_send_history() -> None:
    assert set(TurnInput.__annotations__) == {"request", "messages"}


def test_no_task_can_be_sent_a_whole_state(graph: TurnGraph) -> None:
    from pathlib import Path

    root = Path(__file__).parents[2]
    sources = [*(root / "graph").rglob("*.py"), *(root / "nodes").rglob("*.py")]
    assert [file.name for file in sources if "Send(" in file.read_text()] == []
    assert [file.name for file in sources if "add_node(" in file.read_text()] == ["steps.py"]


def test_no_node_takes_the_config(services: Services) -> None:
    from inspect import signature

    for step in steps_of(services):
        assert "config" not in signature(step.run).parameters


# Each planted leak below is one that LangGraph itself lets through without a word.


def planted(node: Any, **how: Any) -> Any:
    builder = StateGraph(TurnState, RequestContext, input_schema=TurnInput)
    builder.add_node("leak", node, **how)
    builder.add_edge(START, "leak")
    builder.add_edge("leak", END)
    return builder.compile()


def leaky(state: TurnState) -> dict[str, Any]:
    return {"turn_count": len(state)}


def test_a_node_without_a_schema_is_found() -> None:
    assert readers_of_history(planted(lambda state: leaky(state))) == {"leak"}


def test_a_node_that_declares_history_is_found() -> None:
    class Reads(TypedDict):
        history: object

    assert readers_of_history(planted(leaky, input_schema=Reads)) == {"leak"}


def test_a_route_over_the_full_state_is_found() -> None:
    class Reads(TypedDict):
        turn_count: int

    def route(state: TurnState) -> str:
        return END

    builder = StateGraph(TurnState, RequestContext, input_schema=TurnInput)
    builder.add_node("blind", leaky, input_schema=Reads)
    builder.add_edge(START, "blind")
    builder.add_conditional_edges("blind", route, [END])
    assert readers_of_history(builder.compile()) == {"blind>route"}


# The guard around every step.


def one_step(run: Any, reads: type = IntentReads, writes: type = IntentWrites, **more: Any) -> Any:
    builder = StateGraph(TurnState, RequestContext, input_schema=TurnInput)
    add_step(builder, Step("one", run, reads, writes, **more), lambda context: context.caller)
    builder.add_edge(START, "one")
    builder.add_edge("one", END)
    return builder.compile(checkpointer=InMemorySaver())


STATE = {"history": {"turns": ["secret"]}, "turn": {"turn_id": "t"}}


def run_on_state(graph: Any) -> Any:
    config = {"configurable": {"thread_id": "t"}}
    graph.update_state(config, STATE, as_node="one")
    return graph.invoke(
        {"request": {"text": "x"}}, config, context=RequestContext(Caller(user="me")), durability="sync"
    )


def test_a_step_sees_its_view_and_nothing_else() -> None:
    seen: list[Any] = []
    run_on_state(one_step(lambda state: seen.append(state) or {"intent": {}}))
    assert seen == [{"turn": {"turn_id": "t"}}]


def test_an_undeclared_write_is_an_error_that_names_step_and_channel() -> None:
    with pytest.raises(UndeclaredWriteError, match="'one' wrote history"):
        run_on_state(one_step(lambda state: {"history": {}}))


def test_a_value_changed_in_place_changes_nothing_stored() -> None:
    def meddle(state: Any) -> dict[str, Any]:
        state["turn"]["turn_id"] = "changed"
        return {"intent": {}}

    assert run_on_state(one_step(meddle))["turn"] == {"turn_id": "t"}


def test_a_step_gets_only_the_services_it_declares() -> None:
    given: list[dict[str, Any]] = []
    run = lambda state, **services: given.append(services) or {"intent": {}}  # noqa: E731
    run_on_state(one_step(run, needs=frozenset({"caller"})))
    run_on_state(one_step(run))
    assert given == [{"caller": Caller(user="me")}, {}]


@pytest.fixture
def studio_graph(services: Services) -> Iterator[TurnGraph]:
    from graph.compose import fixed_caller

    return build_graph(services, InMemorySaver(), fixed_caller(LOCAL_CALLER), context_schema=None)


def test_a_forged_context_changes_nothing_in_the_studio(studio_graph: TurnGraph, services: Services) -> None:
    forged = {"caller": {"user": "root", "groups": ["finance-bureau", "audit"]}, "groups": ["audit"]}
    config = {"configurable": {"thread_id": "s"}}
    state = studio_graph.invoke({"request": {"text": "你好"}}, config, context=forged)
    assert state["turn"]["audience"] == services.audience(LOCAL_CALLER)
    kept = [item.metadata for item in studio_graph.checkpointer.list(config)]
    assert "root" not in str(kept)
    assert "finance-bureau" not in str(kept)
