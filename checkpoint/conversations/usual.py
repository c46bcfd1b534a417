"""The usual course of a save: a few statements, or one alone, given straight to the driver.

SQLAlchemy's connections and transactions, with their events, take longer than SQLite takes for the work, and
on PostgreSQL a statement that nobody keeps is planned anew each time. Pooling stays SQLAlchemy's.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sqlalchemy import Dialect, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoneFreeError

from checkpoint.conversations.prepared import LostError, Prepared, giving_back

if TYPE_CHECKING:
    from checkpoint.conversations.sent import Sent

Made = TypeVar("Made")
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Course(Generic[Made]):
    """One save in two forms, with the parameters of both, and what its row makes.

    `steps` give one row each, which are put together; the first begins with the conversation's id, which the
    others are given as `b_conversation_id`. `at_once` does the whole, and gives their first two rows as one.
    """

    given: Mapping[str, Any]
    steps: Sequence[Prepared]
    at_once: Prepared
    made: Callable[[Row], Made]


class Taking(Generic[Made]):
    """One save, in one transaction, under way or not: SQLite does it when `end` asks, a server may before.

    Only for what is safe to repeat: left without `end` it is saved, or it is not. Not for two threads.
    """

    def __init__(self, engine: Engine, course: Course[Made]) -> None:
        self._engine, self._course = engine, course
        self._sent: Sent | None = None

    def begin(self) -> None:
        """Send it, if a server takes it and most connections are free: it keeps one until `end`.

        Raises nothing: what could not be sent is sent by `end`, which says what is the matter.
        """
        if not self._is_local and _most_are_free(self._engine):
            with suppress(DBAPIError, LostError, NoneFreeError):
                self._sent = _send(self._engine, self._course)

    def end(self) -> Made | None:
        """What the save made. None where it gave no row, or where the connection was lost.

        Nothing is saved then, unless it was lost while committing. Raises DBAPIError without parameters,
        which may quote the user.
        """
        with suppress(LostError):
            row = _in_steps(self._engine, self._course) if self._is_local else self._received()
            return None if row is None else self._course.made(row)
        return None

    def leave(self) -> None:
        """See through what is on its way, whatever becomes of it: its connection then serves others."""
        if self._sent:
            with suppress(DBAPIError, LostError):
                self._received()

    @property
    def _is_local(self) -> bool:
        return self._engine.dialect.name == "sqlite"

    def _received(self) -> Row | None:
        sent, self._sent = self._sent or _send(self._engine, self._course), None
        return sent.row()


def _most_are_free(engine: Engine) -> bool:
    pool: Any = engine.pool
    return bool(2 * pool.checkedout() < pool.size())


def _send(engine: Engine, course: Course[Any]) -> "Sent":
    """By itself the statement is a transaction."""
    from checkpoint.conversations.sent import Sent  # its driver is there where it is used

    return Sent(engine, course.at_once, course.given)


def _in_steps(engine: Engine, course: Course[Any]) -> Row | None:
    """SQLite answers without a round trip, and takes no statement that changes two tables."""
    with giving_back(engine, engine.raw_connection()) as held:
        connection: Any = held.driver_connection
        connection.execute("BEGIN IMMEDIATE")
        given = dict(course.given)
        row: Row = ()
        for step in course.steps:
            found = _row_of(connection, engine.dialect, step, given)
            if found is None:
                connection.rollback()
                return None
            row += found
            given["b_conversation_id"] = row[0]
        connection.commit()
        return row


def _row_of(connection: Any, dialect: Dialect, prepared: Prepared, given: Mapping[str, Any]) -> Row | None:
    compiled = prepared.on(dialect)
    with closing(connection.cursor()) as cursor:
        cursor.execute(compiled.text, compiled.parameters(given))
        found = cursor.fetchall()
    return compiled.row(found[0]) if found else None
