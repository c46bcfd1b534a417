"""What keeping conversations in SQL costs: a turn with and without it, long listings, and the archive.

    python -m scripts.bench store [--rounds 150] [--postgres] [--quick] [--json FILE]

A turn is measured at the desk, from the accepted question to the terminal event, on one assistant with its
embedded server: once with the conversations and once without, in turns, as ratios of each pair. And it is
measured at the door, as one who asks the service over HTTP waits for its last event: a process each.
Listings are compared with those of a short one. The archive is read from the embedded server into an empty
database.
"""

import argparse
import asyncio
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import structlog
from sqlalchemy import insert

from api.app import create_app
from api.edge import Origin
from api.logs import log_as_json
from api.turns import Ask, Desk
from checkpoint.archive import archive_requests
from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.models import conversation, message
from checkpoint.conversations.rows import Owner
from checkpoint.conversations.store import ConversationStore, open_store
from graph.compose import Assistant, open_assistant, prepare_knowledge, shanghai_now
from graph.settings import load_settings
from nodes.contracts import Caller
from scripts.bench.doors import UNKEPT, open_door
from scripts.bench.load import Connections, take_lanes
from scripts.bench.machine import about
from scripts.bench.ratios import order, paired, table
from scripts.bench.saver import still
from scripts.bench.servers import CannotRunError, postgres, postgres_url
from scripts.bench.service import note

PACKAGES = ("sqlalchemy", "psycopg", "redis", "langgraph")
QUESTIONS = {"fact": "云帆科技2023年营收是多少？", "narrative": "研发费用补助怎么申请？"}
TURNS = 5  # of a conversation
ME = Owner("local", "local")
LISTED = 50


@dataclass(frozen=True)
class Size:
    """`rounds` of a turn of each kind; rows of the long listings; records of the archive."""

    rounds: int
    conversations: int = 100_000
    messages: int = 10_000
    records: int = 20_000


@dataclass
class Found:
    turns: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    listings: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    archive: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    url: str = ""  # of PostgreSQL


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m scripts.bench store")
    options.add_argument("--rounds", type=int, default=150)
    options.add_argument("--postgres", action="store_true", help="measure a turn on PostgreSQL too")
    options.add_argument("--quick", action="store_true", help="a tenth of the rows")
    options.add_argument("--json", type=Path, help="save the rounds here")
    chosen = options.parse_args()
    size = Size(chosen.rounds, 10_000, 1_000, 2_000) if chosen.quick else Size(chosen.rounds)
    found = run(size, on_postgres=chosen.postgres)
    if chosen.json:
        chosen.json.write_text(json.dumps(vars(found)))
    print(report(found, size))


def run(size: Size, *, on_postgres: bool) -> Found:
    found = Found()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ba-bench-")))
        log = stack.enter_context((home / "log").open("w"))
        stack.callback(structlog.reset_defaults)  # before the file is closed
        log_as_json(shanghai_now, log)
        assistant = stack.enter_context(assistant_in(home))
        stores = {"sqlite": stack.enter_context(open_store(StoreConfig(home=home)))}
        if on_postgres:
            _add_postgres(stores, stack, home, found)
        note("a turn")
        for kind in QUESTIONS:
            measure_turns(found, assistant, stores, kind, size.rounds)
        note("a turn at the door")
        measure_doors(found, home, rounds=size.rounds)
        note("listings")
        measure_listings(found, stores["sqlite"], size)
        note("archive")
        found.archive = measure_archive(assistant, home / "archive", size.records)
    return found


def _add_postgres(stores: dict[str, ConversationStore], stack: ExitStack, home: Path, found: Found) -> None:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ba-pg-")))
    try:
        stack.enter_context(postgres(folder))
    except (CannotRunError, ImportError) as error:
        found.missing["postgresql"] = str(error)
        return
    found.url = postgres_url(folder)
    stores["postgresql"] = stack.enter_context(open_store(StoreConfig(url=found.url, home=home)))


@contextmanager
def assistant_in(home: Path) -> Iterator[Assistant]:
    settings = load_settings({"BUSINESS_ASSISTANT_HOME": str(home)})
    prepare_knowledge(settings)
    with open_assistant(settings) as assistant:
        yield assistant


# --- a turn ---


def measure_turns(
    found: Found, assistant: Assistant, stores: dict[str, ConversationStore], kind: str, rounds: int
) -> None:
    """Pairs of the same turn of conversations of their own, with each store and without any."""
    given: dict[str, ConversationStore | None] = {"none": None, **stores}
    question = QUESTIONS[kind]
    desks: dict[str, Desk] = {
        name: create_app(assistant, store=store).state.desk for name, store in given.items()
    }
    for desk in desks.values():
        for turn in range(TURNS):
            take_turn(desk, f"warm-{kind}-{turn}-{id(desk)}", question)
    still()
    for number in range(rounds):
        wall, cpu = {}, {}
        for name in order(list(desks), number):
            thread = f"{kind}-{name}-{number // TURNS}"
            wall[name], cpu[name] = take_turn(desks[name], thread, question)
        found.turns.setdefault(f"{kind}, seconds", []).append(wall)
        found.turns.setdefault(f"{kind}, processor", []).append(cpu)
    for desk in desks.values():
        desk.close(5.0)


def take_turn(desk: Desk, thread: str, question: str) -> tuple[float, float]:
    """Seconds, and seconds of this process's processors, until the last word and the worker's end."""
    origin = Origin(str(uuid4()), "2026-01-01T08:00:00.000+08:00", "/api/chat", None)
    asked = Ask(thread, question, Caller(), origin, name=thread)

    async def ask() -> None:
        run = await desk.take(asked)
        while not run.feed.ended:
            await asyncio.sleep(0.0005)

    began, worked = time.perf_counter(), time.process_time()
    asyncio.run(ask())
    taken = time.perf_counter() - began, time.process_time() - worked
    desk.pool.wait_idle(5)
    return taken


# --- a turn at the door ---


def measure_doors(found: Found, home: Path, rounds: int) -> None:
    """One turn after another over HTTP, of the service with each database and without conversations."""
    with ExitStack() as stack:
        kinds = {"none": (UNKEPT, {}), "sqlite": ("ours", {})}
        if found.url:
            kinds["postgresql"] = ("ours", {"DATABASE_URL": found.url})
        doors = {
            name: stack.enter_context(open_door(kind, home / f"door-{name}", **settings))
            for name, (kind, settings) in kinds.items()
        }
        for kind, question in QUESTIONS.items():
            for number in range(-TURNS, rounds):
                taken = {
                    name: asyncio.run(wait_for(doors[name].port, f"{kind}-{number // TURNS}", question))
                    for name in order(list(doors), number)
                }
                if number >= 0:
                    found.turns.setdefault(f"{kind} at the door, seconds", []).append(taken)


async def wait_for(port: int, thread: str, question: str) -> float:
    """Seconds from the request to the stream's last event."""
    connections = Connections(port)
    try:
        (told,) = await take_lanes(connections, [[(thread, question)]])
    finally:
        connections.close()
    if not told.is_whole:
        raise RuntimeError(f"a turn ended with {told.events[-1:] or told.status}")
    return told.ended


# --- listings ---


def measure_listings(found: Found, store: ConversationStore, size: Size) -> None:
    """A page of a long listing beside the same page of a short one: the first page, and the second."""
    short = 2 * LISTED + 2
    lists = {
        "many": listings_of(store, Owner("bench", "many"), size.conversations, size.messages),
        "few": listings_of(store, Owner("bench", "few"), short, short),
    }
    still()
    for number in range(60):
        for title in lists["few"]:
            taken = {}
            for name in order(list(lists), number):
                began = time.perf_counter()
                lists[name][title]()
                taken[name] = time.perf_counter() - began
            found.listings.setdefault(title, []).append(taken)


def listings_of(
    store: ConversationStore, owner: Owner, conversations: int, messages: int
) -> dict[str, Callable[[], object]]:
    """Fill an owner's conversations, the first of them with messages. -> how each page is read."""
    add_conversations(store, owner, conversations)
    held = store.find(owner, "c-0")
    assert held
    add_messages(store, held.id, messages)
    after = store.list_conversations(owner).next_cursor
    then = store.list_messages(owner, held.id).next_cursor
    return {
        "conversations, first page": lambda: store.list_conversations(owner),
        "conversations, second page": lambda: store.list_conversations(owner, cursor=after),
        "messages, first page": lambda: store.list_messages(owner, held.id),
        "messages, second page": lambda: store.list_messages(owner, held.id, cursor=then),
    }


def add_conversations(store: ConversationStore, owner: Owner, count: int) -> None:
    began = datetime(2026, 1, 1, tzinfo=UTC)

    def row(number: int) -> dict[str, Any]:
        at = began + timedelta(seconds=number)
        return {
            "id": uuid4(), "external_id": f"c-{number}", "tenant_id": owner.tenant_id,
            "user_id": owner.user_id, "knowledge_base_id": "default", "title": f"第{number}个对话",
            "created_at": at, "updated_at": at,
        }  # fmt: skip

    in_bulk(store, conversation, row, count)


def add_messages(store: ConversationStore, conversation_id: UUID, count: int) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)

    def row(number: int) -> dict[str, Any]:
        return {
            "id": uuid4(), "conversation_id": conversation_id, "sequence_no": number + 1,
            "role": "ASSISTANT" if number % 2 else "USER", "content": "一次性创业补贴为5000元。" * 10,
            "request_id": f"r-{number // 2}", "created_at": at,
        }  # fmt: skip

    in_bulk(store, message, row, count)


def in_bulk(
    store: ConversationStore, into: Any, row: Callable[[int], dict[str, Any]], count: int, batch: int = 5000
) -> None:
    for first in range(0, count, batch):
        with store.database.write("filling the benchmark") as connection:
            connection.execute(
                insert(into), [row(number) for number in range(first, min(count, first + batch))]
            )


# --- the archive ---


def measure_archive(assistant: Assistant, folder: Path, records: int) -> dict[str, float]:
    """Records a second into an empty SQLite database, and when all are there already."""
    for number in range(records):
        assistant.saver.put_request(record_of(number))
    with open_store(StoreConfig(home=folder)) as store:
        found = {}
        for name in ("new", "known"):
            began = time.perf_counter()
            done = archive_requests(assistant.saver, store.database, now=lambda: datetime.now(UTC))
            found[name] = done.read / (time.perf_counter() - began)
            found[f"{name} written"] = done.written
        return found


def record_of(number: int) -> dict[str, Any]:
    """Twenty of one thread, as many as the records of a conversation's ten turns with their replies."""
    at = f"2026-01-01T08:{number // 60 % 60:02}:{number % 60:02}.000+08:00"
    return {
        "schema_version": 1, "request_id": f"archived-{number}", "thread_id": f"archived-{number // 20}",
        "question": QUESTIONS["fact"], "original_question": QUESTIONS["fact"], "input_kind": "new_question",
        "received_at": at, "started_at": at, "finished_at": at, "duration_ms": 20, "status": "completed",
        "degraded": False, "error_code": None,
    }  # fmt: skip


# --- the report ---


def report(found: Found, size: Size) -> str:
    stores = [name for name in next(iter(found.turns.values()))[0] if name != "none"]
    turns = [
        [figure, 1.1, *(paired(rounds, name, "none") for name in stores), in_milliseconds(rounds)]
        for figure, rounds in found.turns.items()
    ]
    turns += [
        [f"{figure}, least", 1.1, *(least_ratio(rounds, name) for name in stores), None]
        for figure, rounds in found.turns.items()
    ]
    listings = [
        [figure, paired(rounds, "many", "few"), in_milliseconds(rounds)]
        for figure, rounds in found.listings.items()
    ]
    head = ["a turn with it / without", "target", *stores, "median ms"]
    beside = f"{size.conversations} conversations and {size.messages} messages / {2 * LISTED + 2}"
    return "\n\n".join(
        [
            f"{about(PACKAGES)[:-1]}, SQLite {sqlite3.sqlite_version}.",
            table(head, turns),
            table([f"{LISTED} of {beside}", "ratio", "median ms"], listings),
            "Archive: "
            + ", ".join(f"{name} {value:.0f}" for name, value in found.archive.items())
            + " (a second).",
            *(f"Not run: {name}: {reason}." for name, reason in found.missing.items()),
        ]
    )


def least_ratio(rounds: Sequence[dict[str, float]], name: str) -> str:
    """Of the least that each took in all rounds: what a busy machine adds is in neither."""
    return f"{min(each[name] for each in rounds) / min(each['none'] for each in rounds):.2f}"


def in_milliseconds(rounds: Sequence[dict[str, float]]) -> str:
    names = sorted(rounds[0])
    return ", ".join(
        f"{name} {statistics.median(each[name] for each in rounds) * 1000:.2f}" for name in names
    )
