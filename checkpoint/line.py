"""Commands on connections of our own: packed, sent and read without the client's layers between.

Those layers (retries, which wire.py does; measuring; looking for unread data before each use; a parser that
reads line by line; two waits for each read and each send, because Python itself keeps the time) cost more
than a small call. What is used of redis-py below its public API is the socket of a connection and
the table of its errors; tests/integration/test_checkpoint_line.py fails when either changes.
"""

import os
import socket
import struct
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, cast

import redis
from redis import exceptions as faults

Command = tuple[Any, ...]
READ_BYTES = 64 * 1024
OK = b"*1\r\n$2\r\nok\r\n"
# Where the kernel keeps the time of a wait as two longs, it is kept there.
KEEPS_TIME = sys.platform in ("linux", "darwin")


def has_plain_pool(client: Any) -> bool:
    """Whether connections are alike: not a cluster's, not led by Sentinels, nothing cached or pushed."""
    pool = getattr(client, "connection_pool", None)
    return (
        type(pool) is redis.ConnectionPool
        and client.connection is None
        and pool.cache is None
        and pool.connection_kwargs.get("protocol") == 2
    )


# What stands before a word of so many bytes: looked up in a third of the time of formatting it.
HEADS = [b"\r\n$%d\r\n" % size for size in range(2048)]
MOST_LEADS = 1024


def pack(words: Sequence[Any], lead: bytes = b"", led: int = 0) -> bytes:
    """A command as the server reads it. `lead`: its first words, so many, as pack_lead makes them."""
    return b"".join((b"*%d" % (led + len(words)), lead, *interleave(words), b"\r\n"))


def pack_lead(words: Sequence[Any]) -> bytes:
    return b"".join(interleave(words))


def interleave(words: Sequence[Any]) -> list[bytes]:
    plain = [word if type(word) is bytes else str(word).encode() for word in words]
    pieces = plain + plain
    try:
        pieces[::2] = [HEADS[len(word)] for word in plain]
    except IndexError:
        pieces[::2] = [b"\r\n$%d\r\n" % len(word) for word in plain]
    pieces[1::2] = plain
    return pieces


class Line:
    """A client's idle connections. One whose reply was not read to its end is never used again."""

    def __init__(self, client: Any) -> None:
        self._pool = client.connection_pool
        self._callbacks = client.response_callbacks
        self._idle: list[Ear] = []
        self._owner = os.getpid()
        self._leads: OrderedDict[Hashable, bytes] = OrderedDict()

    def call(self, script: bytes, keys: tuple[str, ...], args: tuple[Any, ...], fixed: int) -> Any:
        """The reply of a script. The first `fixed` arguments are the same at every call with these keys."""
        known = (script, keys, args[:fixed])
        lead = self._leads.get(known)
        if lead is None:
            lead = self._leads[known] = pack_lead(("EVALSHA", script, len(keys), *keys, *args[:fixed]))
            if len(self._leads) > MOST_LEADS:  # the oldest goes, not all: the process's memory stays level
                self._leads.popitem(last=False)
        return self._say(pack(args[fixed:], lead, 3 + len(keys) + fixed), read_reply)

    def ask(self, commands: list[Command]) -> Any:
        """The reply to one command; or to several the replies of the transaction that they make."""
        if len(commands) == 1:
            reply = self._say(pack(commands[0]), read_reply)
            callback = self._callbacks.get(commands[0][0])
            return reply if callback is None else callback(reply)
        words = b"".join(map(pack, [("MULTI",), *commands, ("EXEC",)]))
        return self._say(words, partial(read_transaction, count=len(commands)))

    def _say(self, words: bytes, listen: Callable[["Ear"], Any]) -> Any:
        ear = self._take()
        try:
            ear.say(words)
            reply = listen(ear)
        except faults.ResponseError as fault:
            # A replica answers READONLY after a failover: its address may lead to the primary by now.
            self._put_back(ear, is_well=not isinstance(fault, faults.ReadOnlyError))
            raise
        except BaseException:
            # When one is dead, a restarted server has left the idle ones dead too.
            self._put_back(ear, is_well=False)
            self.let_go()
            raise
        self._put_back(ear, is_well=True)
        return reply

    def let_go(self) -> None:
        """Close the idle connections; the pool may open them again."""
        idle, self._idle = self._idle, []
        for ear in idle:
            self._put_back(ear, is_well=False)

    def _take(self) -> "Ear":
        if self._owner != os.getpid():
            # What a fork inherited is its parent's to use and to close.
            self._owner, self._idle = os.getpid(), []
        try:
            return self._idle.pop()
        except IndexError:
            connection = self._pool.get_connection()
        try:
            return Ear(connection)
        except BaseException:
            self._pool.release(connection)
            raise

    def _put_back(self, ear: "Ear", *, is_well: bool) -> None:
        if is_well and ear.is_quiet:
            self._idle.append(ear)
        else:
            ear.connection.disconnect()
            self._pool.release(ear.connection)


def read_reply(ear: "Ear") -> Any:
    reply = ear.hear()
    if isinstance(reply, Exception):
        raise reply
    return reply


def read_transaction(ear: "Ear", count: int) -> Any:
    refusals = [said for said in (ear.hear() for _ in range(count + 1)) if isinstance(said, Exception)]
    reply = ear.hear()
    if isinstance(reply, faults.ExecAbortError) and refusals:
        raise refusals[0]
    if isinstance(reply, Exception):
        raise reply
    return reply


class Ear:
    """One connection: what is said to the server, and what it replies (RESP2), errors as values."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self._socket = connection._sock
        self._heard = b""
        self._at = 0
        if KEEPS_TIME and type(self._socket) is socket.socket and connection.socket_timeout:
            let_kernel_wait(self._socket, connection.socket_timeout)

    @property
    def is_quiet(self) -> bool:
        """Nothing is left that was heard and not understood."""
        return self._at == len(self._heard)

    def say(self, words: bytes) -> None:
        self._heard, self._at = b"", 0
        try:
            self._socket.sendall(words)
        except (TimeoutError, BlockingIOError) as fault:
            raise faults.TimeoutError("Timeout writing to socket") from fault
        except (OSError, AttributeError) as fault:
            raise faults.ConnectionError(f"{type(fault).__name__} while writing to socket") from fault

    def hear(self) -> Any:
        """One reply."""
        if not self._heard:
            self._heard = self._more()
            # What nearly all writes are told.
            if self._heard == OK:
                self._at = len(OK)
                return [b"ok"]
        line = self._line()
        kind = line[:1]
        if kind == b"$":
            size = int(line[1:])
            return None if size < 0 else self._take(size)
        if kind == b"*":
            count = int(line[1:])
            return None if count < 0 else [self.hear() for _ in range(count)]
        if kind == b":":
            return int(line[1:])
        if kind == b"+":
            return line[1:]
        if kind == b"-":
            return read_error(line[1:])
        raise faults.InvalidResponse("Protocol Error: the server's reply is not RESP2")

    def _line(self) -> bytes:
        while (end := self._heard.find(b"\r\n", self._at)) < 0:
            self._heard, self._at = self._heard[self._at :] + self._more(), 0
        line, self._at = self._heard[self._at : end], end + 2
        return line

    def _take(self, size: int) -> bytes:
        missing = self._at + size + 2 - len(self._heard)
        if missing > 0:
            pieces = [self._heard[self._at :]]
            while missing > 0:
                pieces.append(self._more(missing))
                missing -= len(pieces[-1])
            self._heard, self._at = b"".join(pieces), 0
        data = self._heard[self._at : self._at + size]
        self._at += size + 2
        return data

    def _more(self, wanted: int = 0) -> bytes:
        try:
            data: bytes = self._socket.recv(max(wanted, READ_BYTES))
        except (TimeoutError, BlockingIOError) as fault:
            raise faults.TimeoutError("Timeout reading from socket") from fault
        except (OSError, AttributeError) as fault:
            raise faults.ConnectionError(f"{type(fault).__name__} while reading from socket") from fault
        if not data:
            raise faults.ConnectionError("Connection closed by server")
        return data


def let_kernel_wait(sock: socket.socket, seconds: float) -> None:
    """The same limit as Python's own, in one system call for each read and send instead of two."""
    limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1_000_000))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
    sock.settimeout(None)


def read_error(text: bytes) -> Exception:
    """The error that redis-py makes of these words."""
    parser: Any = redis.connection.DefaultParser
    return cast(Exception, parser.parse_error(text.decode("utf-8", "replace")))
