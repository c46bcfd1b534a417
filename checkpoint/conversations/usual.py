"""The usual course of a save: a few statements given straight to the driver.

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
Rows = list[tuple[Any, ...]]
Step = tuple[Prepared, Callable[[Rows], Mapping[str, Any]]]  # and its parameters, from the rows before it


@dataclass(frozen=True)
class Course(Generic[Made]):
    """Steps that give one row each, and what those rows make."""

    steps: Sequence[Step]
    made: Callable[[Rows], Made]


def take(engine: Engine, course: Course[Made]) -> Made | None:
    """All steps in one transaction. None where one gave no row, or where the connection was lost.

    Nothing is changed then, unless it was lost while committing: only for what is safe to repeat. Raises
    DBAPIError without parameters, which may quote the user.
    """
    dialect, driver = engine.dialect, engine.dialect.loaded_dbapi
    try:
        held = engine.raw_connection()
    except driver.Error:
        return None  # whoever tries next says why
    try:
        rows = _run(held.driver_connection, dialect, course.steps)
    except driver.Error as fault:
        if dialect.is_disconnect(fault, held, None):
            held.invalidate(fault)
            return None
        with suppress(driver.Error):
            held.rollback()
        raise DBAPIError.instance("a save", None, fault, driver.Error, dialect=dialect) from fault
    finally:
        held.close()
    return None if rows is None else course.made(rows)


def _run(connection: Any, dialect: Dialect, steps: Sequence[Step]) -> Rows | None:
    """A rollback makes psycopg, which begins by itself, forget its plans: only what was changed is undone."""
    planned: dict[str, Any] = {"prepare": True}
    if dialect.name == "sqlite":
        connection.execute("BEGIN IMMEDIATE")
        planned = {}
    rows: Rows = []
    with closing(connection.cursor()) as cursor:
        for prepared, given in steps:
            compiled = prepared.on(dialect)
            cursor.execute(compiled.text, compiled.parameters(given(rows)), **planned)
            found = cursor.fetchall()
            if not found:
                (connection.rollback if rows else connection.commit)()
                return None
            rows.append(compiled.row(found[0]))
    connection.commit()
    return rows
