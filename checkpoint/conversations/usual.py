"""The usual course of a save: a few statements, or one alone, given straight to the driver.

SQLAlchemy's connections and transactions, with their events, take longer than SQLite takes for the work, and
on PostgreSQL a statement that nobody keeps is planned anew each time. Pooling stays SQLAlchemy's.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import Dialect, Engine
from sqlalchemy.exc import DBAPIError

from checkpoint.conversations.prepared import Prepared

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


def take(engine: Engine, course: Course[Made]) -> Made | None:
    """The whole save in one transaction. None where it gave no row, or where the connection was lost.

    Nothing is saved then, unless it was lost while committing: only for what is safe to repeat. Raises
    DBAPIError without parameters, which may quote the user.
    """
    dialect, driver = engine.dialect, engine.dialect.loaded_dbapi
    run = _in_steps if dialect.name == "sqlite" else _at_once
    try:
        held = engine.raw_connection()
    except driver.Error:
        return None  # whoever tries next says why
    try:
        row = run(held.driver_connection, dialect, course)
    except driver.Error as fault:
        if dialect.is_disconnect(fault, held, None):
            held.invalidate(fault)
            return None
        with suppress(driver.Error):
            held.rollback()
        raise DBAPIError.instance("a save", None, fault, driver.Error, dialect=dialect) from fault
    finally:
        held.close()
    return None if row is None else course.made(row)


def _in_steps(connection: Any, dialect: Dialect, course: Course[Any]) -> Row | None:
    """SQLite answers without a round trip, and takes no statement that changes two tables."""
    connection.execute("BEGIN IMMEDIATE")
    given = dict(course.given)
    row: Row = ()
    for step in course.steps:
        found = _row_of(connection, dialect, step, given)
        if found is None:
            connection.rollback()
            return None
        row += found
        given["b_conversation_id"] = row[0]
    connection.commit()
    return row


def _at_once(connection: Any, dialect: Dialect, course: Course[Any]) -> Row | None:
    """By itself the statement is a transaction. What the pool takes back begins transactions again."""
    connection.autocommit = True  # kept by the driver alone: nothing is sent
    try:
        return _row_of(connection, dialect, course.at_once, course.given, prepare=True)
    finally:
        connection.autocommit = False


def _row_of(
    connection: Any, dialect: Dialect, prepared: Prepared, given: Mapping[str, Any], **planned: bool
) -> Row | None:
    compiled = prepared.on(dialect)
    with closing(connection.cursor()) as cursor:
        cursor.execute(compiled.text, compiled.parameters(given), **planned)
        found = cursor.fetchall()
    return compiled.row(found[0]) if found else None
