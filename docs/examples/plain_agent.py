"""A plain LangGraph agent that keeps its threads in Redis and waits for a person in the middle.

REDIS_URL names a server; without it one is started in BUSINESS_ASSISTANT_HOME. The model here is scripted,
so that the example needs no key: put any LangChain chat model in its place.
"""

from typing import Annotated, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.types import Command, interrupt

from checkpoint import RedisContextSaver, load_context_config


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


refund = {"name": "refund", "args": {"order": "A-17"}, "id": "call-1"}
script = [AIMessage("", tool_calls=[refund]), AIMessage("Order A-17 is refunded.")]
model = GenericFakeChatModel(messages=iter(script))


def think(state: State) -> dict[str, list[AnyMessage]]:
    return {"messages": [model.invoke(state["messages"])]}


def act(state: State) -> dict[str, list[AnyMessage]]:
    """Asks a person first. The thread may wait for days: what waits is in Redis, not in this process."""
    call = state["messages"][-1].tool_calls[0]
    answer = interrupt(f"May I {call['name']} order {call['args']['order']}?")
    return {"messages": [ToolMessage(f"{call['name']}: {answer}", tool_call_id=call["id"])]}


def wants_to_act(state: State) -> str:
    return "act" if state["messages"][-1].tool_calls else END


builder = StateGraph(State)
builder.add_node("think", think)
builder.add_node("act", act)
builder.add_edge(START, "think")
builder.add_conditional_edges("think", wants_to_act, ["act", END])
builder.add_edge("act", "think")

with RedisContextSaver(load_context_config()) as saver:
    agent = builder.compile(checkpointer=saver)
    thread = {"configurable": {"thread_id": "customer-7"}}
    asked = agent.invoke({"messages": [HumanMessage("Please refund my order A-17.")]}, thread)
    print("agent asks:", asked["__interrupt__"][0].value)
    done = agent.invoke(Command(resume="yes"), thread)
    print("agent says:", done["messages"][-1].content)
    print("kept:", len(list(saver.list(thread))), "checkpoints")
    saver.copy_thread("customer-7", "customer-7-copy")
    saver.prune(["customer-7-copy"])
    copy = {"configurable": {"thread_id": "customer-7-copy"}}
    print("copy, pruned:", len(list(saver.list(copy))), "checkpoint")
    saver.delete_thread("customer-7")
    print("deleted:", saver.get_tuple(thread))
