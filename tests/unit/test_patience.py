"""A reply is read as it comes, and given up when its turn is, whatever the model does."""

import threading
from collections.abc import Iterator
from contextvars import ContextVar

import pytest

from nodes.contracts import Generated
from nodes.patience import Awaited

WAIT_SECONDS = 60.0
whose: ContextVar[str] = ContextVar("whose")


def said(*texts: str) -> Iterator[Generated]:
    return (Generated(text) for text in texts)


def never() -> bool:
    return False


def test_the_pieces_come_in_order() -> None:
    assert [piece.text for piece in Awaited(lambda: said("a", "b", "c"), never)] == ["a", "b", "c"]
    assert list(Awaited(lambda: said(), never)) == []


def failing(*, at_once: bool) -> Iterator[Generated]:
    if at_once:
        raise ValueError("no model")
    return broken()


def broken() -> Iterator[Generated]:
    yield Generated("a")
    raise ValueError("no model")


@pytest.mark.parametrize("at_once", [True, False])
def test_what_the_model_raises_is_raised_here(at_once: bool) -> None:
    heard = []
    with pytest.raises(ValueError, match="no model"):
        heard.extend(piece.text for piece in Awaited(lambda: failing(at_once=at_once), never))


def test_the_model_is_asked_in_this_context() -> None:
    whose.set("mine")
    assert [piece.text for piece in Awaited(lambda: said(whose.get()), never)] == ["mine"]


def test_a_model_that_hangs_is_left_once_stopped_and_closed_when_it_speaks() -> None:
    stop, speaks, closed = threading.Event(), threading.Event(), threading.Event()

    def hanging() -> Iterator[Generated]:
        try:
            yield Generated("a")
            speaks.wait(WAIT_SECONDS)
            yield Generated("too late")
            yield Generated("never asked for")
        finally:
            closed.set()

    reply = Awaited(hanging, stop.is_set)
    pieces = iter(reply)
    assert next(pieces).text == "a"
    threading.Timer(0.1, stop.set).start()
    assert list(pieces) == []
    reply.close()
    assert not closed.is_set()
    speaks.set()
    assert closed.wait(WAIT_SECONDS)


def test_a_reply_that_is_closed_between_two_pieces_ends_at_once() -> None:
    closed: list[bool] = []

    def endless() -> Iterator[Generated]:
        try:
            while True:
                yield Generated("a")
        finally:
            closed.append(True)

    reply = Awaited(endless, never)
    assert next(iter(reply)).text == "a"
    reply.close()
    assert closed == [True]


def test_nobody_is_asked_where_it_was_stopped_before() -> None:
    asked: list[str] = []

    def ask() -> Iterator[Generated]:
        asked.append("a")
        return said("a")

    reply = Awaited(ask, lambda: True)
    assert list(reply) == []
    reply.close()
    assert asked == []
