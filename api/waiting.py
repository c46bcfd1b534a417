"""Answers in one piece: waited for only while somebody waits for them."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from api.edge import ClientGoneError, Receive

T = TypeVar("T")


async def while_read(answer: Awaitable[T], receive: Receive) -> T:
    """The answer. Raises ClientGoneError, and cancels the waiting, when the connection ends before it."""
    work, gone = asyncio.ensure_future(answer), asyncio.create_task(_end_of(receive))
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        raise ClientGoneError
    finally:
        gone.cancel()
        work.cancel()


async def _end_of(receive: Receive) -> None:
    """The body has been read, so that nothing but the end of the connection can come."""
    while (await receive())["type"] != "http.disconnect":
        pass
