"""The two graphs whose turns are measured: five nodes with a list that grows, and our own."""

import operator
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypedDict

NODES = 5
Take = Callable[[str], None]  # takes one turn of a thread


class Growing(TypedDict, total=False):
    question: str
    answer: str
    notes: Annotated[list[str], operator.add]


def random_text(length: int) -> str:
    return secrets.token_urlsafe(length)[:length]


def growing_graph(saver: Any) -> Take:
    """Each of five nodes adds a note of 30 characters to a list that is never cut: 75 kB after 500 turns.

    The notes are random, for what repeats itself a saver could pack smaller than real texts.
    """
    from langgraph.graph import END, START, StateGraph

    builder: Any = StateGraph(Growing)
    names = [f"node{number}" for number in range(NODES)]
    for name in names:
        builder.add_node(name, lambda _state: {"answer": random_text(200), "notes": [random_text(30)]})
    for left, right in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(left, right)
    graph = builder.compile(checkpointer=saver)

    def take(thread: str) -> None:
        config = {"configurable": {"thread_id": thread}}
        graph.invoke({"question": random_text(60), "notes": []}, config, durability="sync")

    return take


QUESTION = "研发费用补助怎么申请？"


@contextmanager
def own_graph() -> Iterator[Callable[[Any], Take]]:
    """Gives for any saver a way to ask our own graph the same policy question in a thread."""
    from graph.build import build_graph
    from graph.compose import (
        Assistant,
        caller_of_context,
        make_services,
        open_store,
        prepare_knowledge,
        random_id,
        shanghai_now,
    )
    from graph.run import last_result, stream_turn
    from graph.settings import load_settings
    from nodes.contracts import Caller

    with tempfile.TemporaryDirectory(prefix="ba-bench-") as home:
        settings = load_settings({"BUSINESS_ASSISTANT_HOME": str(Path(home))})
        prepare_knowledge(settings)
        with open_store(settings) as store:
            services = make_services(settings, store, clock=shanghai_now)
            bare: Any = Assistant(None, None, services, store, settings, shanghai_now, random_id)  # type: ignore[arg-type]

            def over(saver: Any) -> Take:
                built = build_graph(services, saver, caller_of_context)
                assistant = replace(bare, graph=built, saver=saver)

                def take(thread: str) -> None:
                    request: Any = {
                        "request_id": random_id(),
                        "text": QUESTION,
                        "received_at": shanghai_now(),
                    }
                    result = last_result(stream_turn(assistant, request, thread_id=thread, caller=Caller()))
                    assert result.status == "completed", result

                return take

            yield over
