"""The graph for a LangGraph studio: no checkpointer of its own, one fixed local caller.

What a client sends as `context` is ignored: it could claim any permission.
"""

import asyncio
from functools import cache

from graph.build import TurnGraph, build_graph
from graph.compose import fixed_caller, knowledge_file, make_services, prepare_knowledge, shanghai_now
from graph.settings import load_settings
from nodes.contracts import Caller
from nodes.retrieve.documents import KnowledgeStore

LOCAL_CALLER = Caller()


async def make_graph() -> TurnGraph:
    """The server calls this for every run: the graph is opened once, off the event loop."""
    return await asyncio.to_thread(open_graph)


@cache
def open_graph() -> TurnGraph:
    """On the environment's settings, for the life of the process."""
    settings = load_settings()
    prepare_knowledge(settings)
    services = make_services(settings, KnowledgeStore(knowledge_file(settings)), clock=shanghai_now)
    return build_graph(services, None, fixed_caller(LOCAL_CALLER), context_schema=None)
