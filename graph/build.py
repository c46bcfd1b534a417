"""The turn as a compiled graph: the step table, the routes, and nothing else."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from checkpoint.window import WindowLimits, restore
from graph.routes import FollowUp, after_gate, after_intent, make_after_clarify, make_after_suggest
from graph.state import TurnInput, TurnState
from graph.steps import CallerOf, RequestContext, Step, add_step
from graph.traces import TracedProvider
from nodes.answer.prompts import PromptBudget, plan_prompt
from nodes.answer.providers import token_count_of
from nodes.answer.step import Answerer, AnswerReads, AnswerWrites, PlanPrompt, RestoreWindow, Screen
from nodes.clarify.adopt import AdoptReads, AdoptWrites, adopt
from nodes.clarify.step import Clarifier, ClarifyReads, ClarifyWrites
from nodes.clarify.suggest import SuggestReads, SuggestWrites, make_suggest
from nodes.contracts import (
    Caller,
    Clock,
    CompanyDirectory,
    FactStore,
    NewId,
    Provider,
    ReadIntent,
    Retriever,
    SourceGuard,
    StandingOf,
)
from nodes.gate import GateReads, GateWrites, make_gate
from nodes.intent import IntentReads, IntentWrites, make_intent
from nodes.retrieve.step import RetrieveReads, RetrieveWrites, make_retrieve

TurnGraph = CompiledStateGraph[TurnState, RequestContext, TurnInput, TurnState]


@dataclass(frozen=True)
class Services:
    """What lives as long as the process, handed to the nodes that need it when the graph is built."""

    read_intent: ReadIntent
    directory: CompanyDirectory
    facts: FactStore
    retriever: Retriever
    provider: Provider
    may_see: SourceGuard
    audience: Callable[[Caller], str]
    screen: Screen
    clock: Clock
    new_id: NewId
    limits: WindowLimits = WindowLimits()  # noqa: RUF009 - frozen
    follow_up: FollowUp = "confirm"
    resolver: Provider | None = None  # words suggestions; None: by rule
    restore: RestoreWindow = restore  # what answers see of the `history` channel
    budget: PromptBudget = PromptBudget()  # noqa: RUF009 - frozen; counted by the provider's own tokenizer
    plan: PlanPrompt = plan_prompt  # what of it, and of the evidence, fits a prompt
    # No step reads it: for those who show what was cited earlier. Without documents to look at, all stands.
    standing: StandingOf = lambda cited: ["current" for _ in cited]


def steps_of(services: Services) -> list[Step]:
    """The table. A reader sees here, and only here, which step may see history: suggest and answer."""
    gate = make_gate(
        read_intent=services.read_intent,
        audience=services.audience,
        clock=services.clock,
        new_id=services.new_id,
    )
    clarify = Clarifier(services.directory, services.facts, services.read_intent, services.new_id)
    suggest = make_suggest(
        read_intent=services.read_intent,
        directory=services.directory,
        may_see=services.may_see,
        limits=services.limits,
        resolver=services.resolver,
    )
    answer = Answerer(
        directory=services.directory,
        provider=TracedProvider(services.provider),
        budget=replace(services.budget, count=token_count_of(services.provider)),
        screen=services.screen,
        may_see=services.may_see,
        limits=services.limits,
        clock=services.clock,
        new_id=services.new_id,
        restore=services.restore,
        plan=services.plan,
    )
    return [
        Step("gate", gate, GateReads, GateWrites, frozenset({"caller"})),
        Step("intent", make_intent(read_intent=services.read_intent), IntentReads, IntentWrites),
        Step("clarify", clarify, ClarifyReads, ClarifyWrites, frozenset({"caller"})),
        Step("suggest", suggest, SuggestReads, SuggestWrites, frozenset({"caller", "stopped"})),
        Step("adopt", adopt, AdoptReads, AdoptWrites),
        Step(
            "retrieve",
            make_retrieve(retriever=services.retriever, facts=services.facts),
            RetrieveReads,
            RetrieveWrites,
            frozenset({"caller"}),
        ),
        Step(
            "answer",
            answer,
            AnswerReads,
            AnswerWrites,
            frozenset({"caller", "summary", "emit", "reset", "stopped"}),
        ),
    ]


def build_graph(
    services: Services,
    saver: BaseCheckpointSaver[Any] | None,
    caller_of: CallerOf,
    *,
    context_schema: type[RequestContext] | None = RequestContext,
) -> TurnGraph:
    """Compile the turn. `caller_of` says whose permissions count: the door's, or a fixed local caller.

    `context_schema` None lets a run carry any context; it is for callers that ignore it.
    """
    builder: Any = StateGraph(TurnState, context_schema, input_schema=TurnInput)
    for step in steps_of(services):
        add_step(builder, step, caller_of)
    builder.add_edge(START, "gate")
    builder.add_conditional_edges("gate", after_gate, ["intent", "clarify", "retrieve", "answer", END])
    builder.add_conditional_edges("intent", after_intent, ["clarify", "retrieve", "answer"])
    builder.add_conditional_edges(
        "clarify",
        make_after_clarify(services.follow_up),
        ["intent", "clarify", "suggest", "retrieve", "answer", END],
    )
    builder.add_conditional_edges("suggest", make_after_suggest(services.follow_up), ["adopt", END])
    builder.add_edge("adopt", "intent")
    builder.add_edge("retrieve", "answer")
    builder.add_edge("answer", END)
    graph: TurnGraph = builder.compile(checkpointer=saver, name="business-assistant")
    return graph
