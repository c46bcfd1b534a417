"""The graph for a LangGraph studio: no checkpointer of its own, one fixed local caller.

What a client sends as `context` is ignored: it could claim any permission.
"""

from graph.build import TurnGraph, build_graph
from graph.compose import fixed_caller, make_services, open_store, prepare_knowledge, shanghai_now
from graph.settings import Settings, load_settings
from nodes.contracts import Caller

LOCAL_CALLER = Caller()


async def make_graph() -> TurnGraph:
    """Opened off the event loop: loading the knowledge blocks."""
    import asyncio

    return await asyncio.to_thread(_graph_of, await asyncio.to_thread(load_settings))


def _graph_of(settings: Settings) -> TurnGraph:
    prepare_knowledge(settings)
    # The server keeps the graph until it ends; the store holds no connection between two requests.
    store = open_store(settings).__enter__()
    services = make_services(settings, store, clock=shanghai_now)
    return build_graph(services, None, fixed_caller(LOCAL_CALLER))
