"""The step table: what each step reads, writes and needs, and the only caller of `add_node`.

LangGraph hands a node the full state when it has no explicit input schema, when it is a lambda or a partial,
or when one of its type hints cannot be resolved; and it lets a node write any channel. `add_step` closes all
of these: the schema is always explicit, the view is copied, and an undeclared write is an error.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from langgraph.graph import StateGraph
from langgraph.runtime import Runtime

from graph.traces import step_span
from nodes.contracts import Caller, ToldSummary

Need = Literal["caller", "summary", "emit", "reset", "stopped"]


@dataclass(frozen=True)
class RequestContext:
    """What a door passes with a run, beside the input. It is never stored.

    `summary` is of turns before the window: context for wording, whose sources the caller may see.
    """

    caller: Caller
    summary: ToldSummary | None = None


CallerOf = Callable[[RequestContext | None], Caller]


@dataclass(frozen=True)
class Step:
    """One decision: a function from what it may read to what it may write."""

    name: str
    run: Callable[..., Mapping[str, Any]]
    reads: type  # a TypedDict: the view, and LangGraph's input schema
    writes: type  # a TypedDict: the channels it may write
    needs: frozenset[Need] = frozenset()


class UndeclaredWriteError(Exception):
    """A step wrote a channel that its row in the table does not declare."""

    def __init__(self, step: str, channels: set[str]) -> None:
        super().__init__(
            f"Step {step!r} wrote {', '.join(sorted(channels))}: declare the channel or do not write it."
        )
        self.step = step
        self.channels = channels


def add_step(builder: StateGraph[Any, Any, Any, Any], step: Step, caller_of: CallerOf) -> None:
    builder.add_node(step.name, as_node(step, caller_of), input_schema=step.reads)


def as_node(step: Step, caller_of: CallerOf) -> Callable[..., dict[str, Any]]:
    """The function that LangGraph runs: narrow view in, declared writes out."""
    readable = frozenset(step.reads.__annotations__)
    writable = frozenset(step.writes.__annotations__)

    def node(state: dict[str, Any], runtime: Runtime[RequestContext]) -> dict[str, Any]:
        # A copy: a value changed in place would be a write that nobody declared.
        view = {key: copy.deepcopy(value) for key, value in state.items() if key in readable}
        with step_span(step.name):
            written = dict(step.run(view, **given(step.needs, runtime, caller_of)))
        undeclared = written.keys() - writable
        if undeclared:
            raise UndeclaredWriteError(step.name, undeclared)
        return written

    return node


def given(needs: frozenset[Need], runtime: Runtime[RequestContext], caller_of: CallerOf) -> dict[str, Any]:
    """The per-request services, by keyword, and only those that the step declares."""
    write = runtime.stream_writer
    services: dict[Need, Callable[[], Any]] = {
        "caller": lambda: caller_of(runtime.context),
        "summary": lambda: summary_of(runtime.context),
        "emit": lambda: lambda text: write({"token": text}),
        "reset": lambda: lambda: write({"reset": True}),
        "stopped": lambda: lambda: runtime.drain_reason,
    }
    return {need: services[need]() for need in needs}


def summary_of(context: object) -> ToldSummary | None:
    """The summary that a door of ours passed. What a client sends as context gives none.

    LangGraph makes a RequestContext of any mapping with its fields, so the type of the whole says nothing;
    but no client can send a Caller.
    """
    if isinstance(context, RequestContext) and isinstance(context.caller, Caller):
        return context.summary
    return None
