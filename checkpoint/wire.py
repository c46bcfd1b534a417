"""Sending a call to the server, once more when that is safe, and turning its faults into ours.

Every script here may be repeated: a checkpoint replaces itself, first-wins and last-wins writes come out the
same, a record is a whole value. So a call whose reply was lost is sent again once; after that the caller
learns of it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from redis import exceptions as faults

from checkpoint import scripts
from checkpoint.codec import UnreadableError
from checkpoint.errors import CannotRestoreError, CheckpointError, CheckpointUnavailable, WrongTypeError
from checkpoint.layout import escape_glob
from checkpoint.line import Command, Line, has_plain_pool
from checkpoint.plan import Call, Plan

Result = TypeVar("Result")

# What a fault is, also when it arrives from inside a script as a plain error with these words in its text;
# and what to do about it.
REMEDIES: tuple[tuple[type[Exception], tuple[str, ...], str], ...] = (
    (faults.AuthenticationError, ("WRONGPASS", "NOAUTH"), "Check user and password in REDIS_URL"),
    (
        faults.NoPermissionError,
        ("NOPERM", "ACL failure", "can't run this command"),
        "Give the user in REDIS_URL the commands that docs/redis.md lists (EXPIRE among them)",
    ),
    (
        faults.OutOfMemoryError,
        ("OOM ",),
        "The server is out of memory: raise maxmemory or lower REDIS_CONTEXT_TTL_SECONDS",
    ),
    (
        faults.ReadOnlyError,
        ("READONLY",),
        "REDIS_URL names a replica: name the primary, or use redis+sentinel://",
    ),
    (faults.BusyLoadingError, ("LOADING",), "The server is loading its data: try again shortly"),
    (faults.MaxConnectionsError, (), "Every connection is in use: raise max_connections or lower the load"),
    (faults.ClusterDownError, ("CLUSTERDOWN",), "The cluster is down: check its nodes"),
    (faults.RedisClusterException, (), "Check that the nodes in REDIS_URL run and form a cluster"),
    (
        faults.TimeoutError,
        ("Timeout ",),
        "The server did not answer in time: check its load and the network, repeat",
    ),
    (faults.ConnectionError, (), "Check that the server runs and that REDIS_URL names it, then repeat"),
)

# What a script says when the bytes in a hash are not ours.
DAMAGE = ("bad argument", "attempt to ", "Missing bytes in input", "Bad data format", "do not descend")

# Everything the client raises; a cluster's own errors stand apart in its hierarchy.
FAULTS = (faults.RedisError, faults.RedisClusterException)

# A lost connection, a demoted primary: another try gets another connection.
WORTH_ANOTHER_TRY = (faults.ConnectionError, faults.TimeoutError, faults.ReadOnlyError)
HOPELESS = (faults.AuthenticationError, faults.MaxConnectionsError)


def is_worth_another_try(fault: Exception) -> bool:
    return isinstance(fault, WORTH_ANOTHER_TRY) and not isinstance(fault, HOPELESS)


def translate(fault: Exception, doing: str, key: str) -> CheckpointError:
    """Our error for one of the client's, with its remedy. Values never stand in the server's messages."""
    text = str(fault)
    if "WRONGTYPE" in text:
        return WrongTypeError(key)
    for kind, words, remedy in REMEDIES:
        if isinstance(fault, kind) or any(word in text for word in words):
            return CheckpointUnavailable(doing, describe(fault), remedy)
    return CheckpointUnavailable(doing, describe(fault), "Read the server's log")


def describe(fault: Exception) -> str:
    return f"{type(fault).__name__}: {str(fault)[:200]}"


def evalsha(call: Call) -> tuple[Any, ...]:
    return ("EVALSHA", call.script.digest, len(call.keys), *call.keys, *call.args)


def evaluate(call: Call) -> tuple[Any, ...]:
    return ("EVAL", call.script.text, len(call.keys), *call.keys, *call.args)


def transaction(call: Call) -> list[tuple[Any, ...]]:
    """Guard, the staged fields, the script, settle. All in one MULTI, so all in one round trip.

    The guard has checked the lease, and an expiry between two commands must not split them: the script
    itself gets no token. EVAL carries the text, for NOSCRIPT inside a transaction would come too late.
    """
    inner = call._replace(keys=call.keys[:2], args=(b"", *call.args[1:]))
    count = len(call.keys)
    return [
        ("EVAL", scripts.GUARD.text, count, *call.keys, call.args[0]),
        (call.stage_command, call.keys[0], *call.staged),
        evaluate(inner),
        ("EVAL", scripts.SETTLE.text, count, *call.keys),
    ]


def read_transaction(replies: Sequence[Any]) -> Any:
    """The guard's refusal, else the script's reply. The first fault inside the transaction is raised."""
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return replies[0] if replies[0][0] != b"ok" else replies[2]


SCAN_COUNT = 1000
# Yields a script's call, or commands that belong together (more than one: a transaction); is sent the reply.
Exchange = Generator[Call | list[Command], Any, Result]


def converse(plan: Plan[Result]) -> Exchange[Result]:
    """The whole conversation of a plan, as plain commands."""
    try:
        call = next(plan)
        while True:
            call = plan.send((yield from exchange(call)))
    except StopIteration as done:
        return cast(Result, done.value)
    except UnreadableError as fault:
        raise CannotRestoreError(str(fault), call.place) from fault


def exchange(call: Call) -> Exchange[Any]:
    try:
        try:
            return (yield from attempt(call))
        except FAULTS as fault:
            if not is_worth_another_try(fault):
                raise
        return (yield from attempt(call))
    except FAULTS as fault:
        if is_damage(fault):
            raise CannotRestoreError(
                f"what is stored there is damaged (found by {call.doing})", call.place
            ) from fault
        raise translate(fault, call.doing, call.keys[0]) from fault


def is_damage(fault: Exception) -> bool:
    """Whether a script met bytes in the hash that are not ours."""
    text = str(fault)
    return "user_script" in text and any(word in text for word in DAMAGE)


def attempt(call: Call) -> Exchange[Any]:
    if call.staged:
        return read_transaction((yield transaction(call)))
    try:
        return (yield call)
    except faults.NoScriptError:
        return (yield [evaluate(call)])


def ask(doing: str, command: Command) -> Exchange[Any]:
    """One plain command that may be repeated."""
    try:
        try:
            return (yield [command])
        except FAULTS as fault:
            if not is_worth_another_try(fault):
                raise
        return (yield [command])
    except FAULTS as fault:
        raise translate(fault, doing, str(command[1])) from fault


class Wire:
    """A sync client's side of the conversation. Safe for many threads; after a fork its pool opens anew.

    `revive` is called when a connection failed, before the second try. `own` says that nobody else's code
    uses the client, so that connections may be kept out of its pool.
    """

    def __init__(self, client: Any, revive: Callable[[], None] | None = None, *, own: bool = False) -> None:
        self.client = client
        self.revive = revive
        self.line = Line(client) if own and has_plain_pool(client) else None

    def run(self, talk: Exchange[Result]) -> Result:
        try:
            commands = next(talk)
            while True:
                try:
                    reply = self.execute(commands)
                except FAULTS as fault:
                    self.after(fault)
                    commands = talk.throw(fault)
                else:
                    commands = talk.send(reply)
        except StopIteration as done:
            return cast(Result, done.value)

    def execute(self, commands: Call | list[Command]) -> Any:
        if isinstance(commands, Call):
            if self.line is not None:
                return self.line.call(commands.script.digest, commands.keys, commands.args, commands.fixed)
            return self.client.execute_command(*evalsha(commands))
        if self.line is not None:
            return self.line.ask(commands)
        if len(commands) == 1:
            return self.client.execute_command(*commands[0])
        pipe = self.client.pipeline(transaction=True)
        for command in commands:
            pipe.execute_command(*command)
        return pipe.execute(raise_on_error=False)

    def after(self, fault: Exception) -> None:
        if self.revive is not None and isinstance(fault, faults.ConnectionError):
            self.revive()

    def scan(self, prefix: str) -> Iterator[str]:
        """Every thread's key once, by SCAN over all nodes."""
        seen: set[bytes] = set()
        for key in self._scan(escape_glob(prefix) + "*"):
            if key not in seen:
                seen.add(key)
                yield key.decode()

    def _scan(self, pattern: str) -> Iterator[bytes]:
        if is_cluster(self.client):
            with translated("scan", pattern):
                yield from self.client.scan_iter(match=pattern, count=SCAN_COUNT, _type="hash")
            return
        cursor = 0
        while True:
            cursor, keys = self.run(ask("scan", scan_command(cursor, pattern)))
            yield from keys
            if cursor == 0:
                return

    def scan_fields(self, key: str, pattern: str) -> Iterator[tuple[bytes, bytes]]:
        cursor = 0
        while True:
            cursor, fields = self.run(ask("scan", scan_fields_command(key, cursor, pattern)))
            yield from fields.items()
            if cursor == 0:
                return


class AsyncWire:
    """An async client's side, for one event loop. A cancelled command takes its connection with it."""

    def __init__(self, client: Any, revive: Callable[[], None] | None = None) -> None:
        self.client = client
        self.revive = revive

    async def run(self, talk: Exchange[Result]) -> Result:
        try:
            commands = next(talk)
            while True:
                try:
                    reply = await self.execute(commands)
                except FAULTS as fault:
                    await self.after(fault)
                    commands = talk.throw(fault)
                else:
                    commands = talk.send(reply)
        except StopIteration as done:
            return cast(Result, done.value)

    async def execute(self, commands: Call | list[Command]) -> Any:
        if isinstance(commands, Call):
            return await self.client.execute_command(*evalsha(commands))
        if len(commands) == 1:
            return await self.client.execute_command(*commands[0])
        pipe = self.client.pipeline(transaction=True)
        for command in commands:
            pipe.execute_command(*command)
        return await pipe.execute(raise_on_error=False)

    async def after(self, fault: Exception) -> None:
        if self.revive is not None and isinstance(fault, faults.ConnectionError):
            await asyncio.to_thread(self.revive)

    async def scan(self, prefix: str) -> AsyncIterator[str]:
        seen: set[bytes] = set()
        async for key in self._scan(escape_glob(prefix) + "*"):
            if key not in seen:
                seen.add(key)
                yield key.decode()

    async def _scan(self, pattern: str) -> AsyncIterator[bytes]:
        if is_cluster(self.client):
            with translated("scan", pattern):
                async for key in self.client.scan_iter(match=pattern, count=SCAN_COUNT, _type="hash"):
                    yield key
            return
        cursor = 0
        while True:
            cursor, keys = await self.run(ask("scan", scan_command(cursor, pattern)))
            for key in keys:
                yield key
            if cursor == 0:
                return

    async def scan_fields(self, key: str, pattern: str) -> AsyncIterator[tuple[bytes, bytes]]:
        cursor = 0
        while True:
            cursor, fields = await self.run(ask("scan", scan_fields_command(key, cursor, pattern)))
            for pair in fields.items():
                yield pair
            if cursor == 0:
                return


def scan_command(cursor: int, pattern: str) -> Command:
    return ("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_COUNT, "TYPE", "hash")


def scan_fields_command(key: str, cursor: int, pattern: str) -> Command:
    return ("HSCAN", key, cursor, "MATCH", pattern, "COUNT", SCAN_COUNT)


def is_cluster(client: Any) -> bool:
    """A cluster has no one cursor: its client walks all nodes itself."""
    return hasattr(client, "get_primaries")


@contextmanager
def translated(doing: str, key: str) -> Iterator[None]:
    try:
        yield
    except FAULTS as fault:
        raise translate(fault, doing, key) from fault
