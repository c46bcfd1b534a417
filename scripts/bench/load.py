"""Clients of a door: plain HTTP/1.1 over asyncio, light enough to share a small machine with the server.

A client can leave at a chosen moment. The open loop sends by a schedule, whether or not earlier requests have
ended, and counts from the moment a request was due: a server that falls behind cannot hide it.
"""

import asyncio
import itertools
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

LEFT = "left"
Question = tuple[str, str]  # thread, text
Leaving = Literal["before the reply", "after an event", "never"]


@dataclass
class Told:
    """What one request was told, in seconds from when it was due."""

    status: int = 0
    events: list[str] = field(default_factory=list)
    moments: list[float] = field(default_factory=list)
    ended: float = 0.0

    @property
    def first(self) -> float:
        return self.moments[0]

    @property
    def is_whole(self) -> bool:
        return self.status == 200 and bool(self.events) and self.events[-1] == "done"

    def moment_of(self, name: str) -> float | None:
        return next((at for event, at in zip(self.events, self.moments, strict=True) if event == name), None)


class Connections:
    """Open connections to one port, used again as a browser does."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def take(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof():
                return reader, writer
            writer.close()
        return await asyncio.open_connection("127.0.0.1", self.port)

    def give_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._idle.append((reader, writer))

    def close(self) -> None:
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()


async def ask(
    connections: Connections, question: Question, *, due: float | None = None, leave_after: int | None = None
) -> Told:
    """Send one question and follow it to its end, or leave without a word after so many events.

    0 leaves as soon as the question is sent.
    """
    due = time.perf_counter() if due is None else due
    told = Told()
    reader, writer = await connections.take()
    try:
        writer.write(_request(question))
        if leave_after == 0:
            await writer.drain()
            writer.transport.abort()
            return told
        told.status = await _read_head(reader)
        async for name in _events(reader):
            told.events.append(name)
            told.moments.append(time.perf_counter() - due)
            if leave_after is not None and len(told.events) >= leave_after:
                writer.transport.abort()
                return told
        told.ended = time.perf_counter() - due
    except (ConnectionError, asyncio.IncompleteReadError, ValueError):
        writer.close()
        told.ended = time.perf_counter() - due
        return told
    connections.give_back(reader, writer)
    return told


def _request(question: Question) -> bytes:
    thread, text = question
    body = json.dumps({"thread_id": thread, "message": text}).encode()
    head = (
        "POST /api/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _read_head(reader: asyncio.StreamReader) -> int:
    head = await reader.readuntil(b"\r\n\r\n")
    if b"transfer-encoding: chunked" not in head.lower():
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        said = await reader.readexactly(length)
        raise ValueError(said.decode(errors="replace"))
    return int(head.split(b" ", 2)[1])


async def _events(reader: asyncio.StreamReader) -> AsyncIterator[str]:
    """Names of events, as each has wholly arrived, to the end of the response."""
    text = b""
    while size := int(await reader.readline(), 16):
        text += (await reader.readexactly(size + 2))[:-2]
        *whole, text = text.split(b"\n\n")
        for event in whole:
            name = event.partition(b"event: ")[2].split(b"\n", 1)[0]
            if name:
                yield name.decode()
    await reader.readline()


async def take_lanes(connections: Connections, lanes: Sequence[Iterable[Question]]) -> list[Told]:
    """Each lane asks one question after the other; all lanes at once."""

    async def take(lane: Iterable[Question]) -> list[Told]:
        return [await ask(connections, question) for question in lane]

    return list(itertools.chain.from_iterable(await asyncio.gather(*(take(lane) for lane in lanes))))


async def open_loop(connections: Connections, schedule: Iterable[tuple[float, Question]]) -> list[Told]:
    """Send each question at its time after the beginning. -> all that was told, in the schedule's order."""
    began = time.perf_counter()
    running = []
    for after, question in schedule:
        due = began + after
        with suppress(asyncio.TimeoutError):
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
        running.append(asyncio.create_task(ask(connections, question, due=due)))
    return list(await asyncio.gather(*running))


def arrivals(rate: float, seconds: float, seed: int) -> Iterator[float]:
    """Times of a Poisson stream of so many a second, the same for the same seed."""
    gaps = random.Random(seed)  # noqa: S311 - a schedule, no secret
    at = gaps.expovariate(rate)
    while at < seconds:
        yield at
        at += gaps.expovariate(rate)


def questions(prefix: str, texts: Sequence[str], turns: int = 4) -> Callable[[], Question]:
    """The next question: a new conversation after every few turns."""
    numbers = itertools.count()

    def following() -> Question:
        number = next(numbers)
        return f"{prefix}-{number // turns}", texts[number % len(texts)]

    return following
