"""A slow line to the server: a read that is given up leaves its reply to nobody else."""

import asyncio
import random
import re
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from faults.test_sending_at_once import together
from integration.door import WAIT_SECONDS
from langgraph.checkpoint.base import empty_checkpoint
from relay import INTRODUCTION

from api.leases import Claim, ClaimedError, LeaseKeeper
from checkpoint import AsyncRedisContextSaver, CheckpointUnavailable, ContextConfig, RedisContextSaver
from graph.run import config_for

GIVEN_UP = 300
TENANTS = ("acme", "globex")
PROJECT = Path(__file__).parents[2] / "pyproject.toml"


class SlowWire:
    """A TCP relay that hands every reply on in pieces, each after a random wait, some after a long one.

    `reused` counts commands on a connection that still owed the reply to the one before.
    """

    def __init__(self, target: str, *, long_wait: float) -> None:
        self.reused = self.connections = 0
        self._target = unquote(urlsplit(target).path)
        self._long_wait = long_wait
        self._chance = random.Random(11)
        self._done = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        self._done.set()
        with socket.create_connection(self._listener.getsockname()):
            pass
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            if self._done.is_set():
                client.close()
                return
            self.connections += 1
            self._threads.append(threading.Thread(target=self._relay, args=(client,)))
            self._threads[-1].start()

    def _relay(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self._target)
            client.settimeout(0.05)
            while not self._done.is_set():
                asked = self._read_request(client)
                if asked is None:
                    return
                if asked:
                    server.sendall(asked)
                    if not self._hand_on(read_reply(server, replies_to(asked)), client):
                        return

    @staticmethod
    def _read_request(client: socket.socket) -> bytes | None:
        """Whole requests; b"" where there is none yet, None where there will be none."""
        try:
            asked = client.recv(1 << 20)
            while asked and not is_whole(asked):
                asked += client.recv(1 << 20)
        except TimeoutError:
            return b""
        except OSError:
            return None
        return asked or None

    def _hand_on(self, reply: bytes, client: socket.socket) -> bool:
        """Piece by piece; False once the client has gone."""
        cuts = sorted(self._chance.sample(range(1, len(reply)), min(2, len(reply) - 1)))
        for begin, end in zip([0, *cuts], [*cuts, len(reply)], strict=True):
            is_long = self._chance.random() < 0.05
            self._done.wait(self._long_wait if is_long else self._chance.random() * 0.002)
            if begin and self._has_asked_again(client):
                self.reused += 1
            try:
                client.sendall(reply[begin:end])
            except OSError:
                return False
        return True

    @staticmethod
    def _has_asked_again(client: socket.socket) -> bool:
        """What a connection says to introduce itself comes without waiting, and is no such command."""
        try:
            asked = client.recv(64, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except OSError:
            return False
        return bool(asked) and INTRODUCTION.match(asked) is None


def is_whole(asked: bytes) -> bool:
    """Whether the bytes end with a command's last word; RESP arrays of bulk strings."""
    return commands_in(asked) is not None


def commands_in(asked: bytes) -> list[bytes] | None:
    """The first word of each command, or None where the last one is not there yet."""
    names, at = [], 0
    while at < len(asked):
        head = re.match(rb"\*(\d+)\r\n", asked[at:])
        if head is None:
            return None
        at += head.end()
        for number in range(int(head[1])):
            size = re.match(rb"\$(\d+)\r\n", asked[at:])
            if size is None or at + size.end() + int(size[1]) + 2 > len(asked):
                return None
            at += size.end()
            if number == 0:
                names.append(asked[at : at + int(size[1])])
            at += int(size[1]) + 2
    return names


def replies_to(asked: bytes) -> int:
    return len(commands_in(asked) or [])


def read_reply(server: socket.socket, count: int) -> bytes:
    """That many whole replies."""
    data = server.recv(1 << 20)
    while (end := end_of_replies(data, count)) is None:
        data += server.recv(1 << 20)
    assert end == len(data)
    return data


def end_of_replies(data: bytes, count: int) -> int | None:
    at, left = 0, count
    while left:
        line_end = data.find(b"\r\n", at)
        if line_end < 0:
            return None
        kind, rest = data[at : at + 1], data[at + 1 : line_end]
        at = line_end + 2
        left -= 1
        if kind in b"$=!" and int(rest) >= 0:
            at += int(rest) + 2
            if at > len(data):
                return None
        elif kind in b"*>~" and int(rest) > 0:
            left += int(rest)
        elif kind == b"%":
            left += 2 * int(rest)
    return at


@pytest.fixture
def wire(redis_url: str) -> Iterator[SlowWire]:
    relay = SlowWire(redis_url, long_wait=0.25)
    yield relay
    relay.close()


def fill(redis_url: str) -> None:
    """A thread of each tenant, all of whose values, writes, windows and records name it."""
    with RedisContextSaver(ContextConfig(url=redis_url)) as saver:
        for tenant in TENANTS:
            checkpoint: Any = {**empty_checkpoint(), "id": "1"}
            checkpoint["channel_values"] = {"history": {"whose": tenant}, "body": tenant * 3000}
            checkpoint["channel_versions"] = versions = {"history": "1", "body": "1"}
            config: Any = {"configurable": {"thread_id": tenant, "checkpoint_ns": ""}}
            stored = saver.put(config, checkpoint, {}, versions)  # type: ignore[arg-type]
            saver.put_writes(stored, [("whose", tenant)], "task")
            for number in range(3):
                saver.put_request(record_of(tenant, number))


def record_of(tenant: str, number: int) -> dict[str, Any]:
    moment = f"2026-09-14T17:00:0{number}.000+08:00"
    return {
        "schema_version": 1, "request_id": f"{tenant}-{number}", "thread_id": tenant, "question": tenant,
        "original_question": tenant, "input_kind": "new_question", "received_at": moment,
        "started_at": moment, "finished_at": moment, "duration_ms": 1, "status": "completed",
        "degraded": False, "error_code": None,
    }  # fmt: skip


def is_of(tenant: str, found: Any) -> bool:
    """Whether all that a read gave is this tenant's, and all of it is there."""
    other = TENANTS[1 - TENANTS.index(tenant)]
    return found is not None and tenant in repr(found) and other not in repr(found)


async def test_a_read_that_is_cancelled_leaves_its_reply_to_nobody(redis_url: str, wire: SlowWire) -> None:
    """Cancelled by its caller, or by a time-out around it, at any moment of the exchange."""
    fill(redis_url)
    chance = random.Random(7)
    wrong: list[Any] = []
    rounds = dict.fromkeys(TENANTS, 0)
    done = asyncio.Event()
    async with AsyncRedisContextSaver(ContextConfig(url=wire.url)) as saver:
        reads: list[Callable[[str], Awaitable[Any]]] = [
            lambda tenant: saver.aget_tuple(config_for(tenant)),
            lambda tenant: saver.arestore_window(tenant),
            lambda tenant: saver.alist_requests(tenant),
        ]

        async def read(tenant: str) -> None:
            found = await chance.choice(reads)(tenant)
            if not is_of(tenant, found):
                wrong.append((tenant, found))

        async def loop(tenant: str) -> None:
            while not done.is_set():
                await read(tenant)
                rounds[tenant] += 1

        async def give_up() -> int:
            wait = chance.random() * 0.012
            try:
                if chance.random() < 0.5:
                    async with asyncio.timeout(wait):
                        await read(chance.choice(TENANTS))
                else:
                    victim = asyncio.create_task(read(chance.choice(TENANTS)))
                    await asyncio.sleep(wait)
                    victim.cancel()
                    await victim
            except (TimeoutError, asyncio.CancelledError):
                return 1
            return 0

        tenants = [asyncio.create_task(loop(tenant)) for tenant in TENANTS]
        given_up = 0
        while given_up < GIVEN_UP or min(rounds.values()) <= 20:
            given_up += sum(await asyncio.gather(*[give_up() for _ in range(20)]))
        done.set()
        await asyncio.gather(*tenants)
    assert wrong == []
    assert wire.reused == 0
    assert wire.connections > 50  # those that were given up were dropped, and others opened


def test_a_read_that_times_out_leaves_its_reply_to_nobody(redis_url: str, wire: SlowWire) -> None:
    """The same for threads, whose reads end by the connection's own time-out."""
    fill(redis_url)
    config = ContextConfig(url=wire.url, timeout_seconds=0.1)
    told: list[str] = []
    begun = time.monotonic()

    def is_enough() -> bool:
        """Of those that came through and of those that were given up: on a busy machine one kind is rare."""
        took = time.monotonic() - begun
        return took > WAIT_SECONDS or (took > 4 and told.count("own") > 50 and told.count("given up") > 10)

    with RedisContextSaver(config) as saver:

        def loop(tenant: str) -> None:
            chance = random.Random(tenant)
            reads: list[Callable[[], Any]] = [
                lambda: saver.get_tuple(config_for(tenant)),
                lambda: saver.restore_window(tenant),
                lambda: saver.list_requests(tenant),
            ]
            while not is_enough():
                try:
                    told.append("own" if is_of(tenant, chance.choice(reads)()) else "wrong")
                except CheckpointUnavailable:
                    told.append("given up")

        together([partial(loop, tenant) for tenant in TENANTS * 4])
    assert "wrong" not in told
    assert told.count("own") > 50
    assert wire.reused == 0
    assert wire.connections > 10  # a read that timed out took its connection along


def test_a_lease_on_a_slow_line_is_never_told_anothers_answer(redis_url: str, wire: SlowWire) -> None:
    """Leases and claims share one client: a holder's claim is its own, whoever gave up before."""
    with RedisContextSaver(ContextConfig(url=wire.url, timeout_seconds=0.1)) as saver:
        keeper = LeaseKeeper(saver.wire.client)
        try:

            def hold(tenant: str) -> list[str]:
                told: list[str] = []
                until = time.monotonic() + WAIT_SECONDS
                for number in count():  # twelve, and on a busy machine more, until one comes through
                    if number >= 12 and (told or time.monotonic() > until):
                        break
                    claim = Claim(f"{tenant}-{number}", tenant)
                    try:
                        with keeper.hold(tenant, f"{tenant}-{number}", claim=claim) as lease:
                            told.append(lease.request_id)
                            lease.conclude(tenant.encode())
                        keeper.look_up(tenant, "again", claim)
                    except ClaimedError as known:
                        told.append(f"{known.request_id} {(known.outcome or b'').decode()}")
                    except CheckpointUnavailable:
                        pass
                    except Exception as error:
                        # A reply that was lost may leave the thread held until its lease lapses.
                        if type(error).__name__ != "ThreadBusyError":
                            raise
                return told

            for tenant, told in zip(TENANTS, together([partial(hold, t) for t in TENANTS]), strict=True):
                assert told
                assert all(is_of(tenant, word) for word in told), told
        finally:
            keeper.close()
    assert wire.reused == 0


def test_no_client_is_installed_that_hands_replies_on() -> None:
    """redis-py 4.5.3 still left a cancelled command's reply in the socket: issue 2665 of redis/redis-py."""
    (least,) = re.findall(r'"redis>=(\d+)', PROJECT.read_text(encoding="utf-8"))
    assert int(least) >= 5
    assert int(version("redis").split(".")[0]) >= int(least)
