"""The statements that every request runs, compiled once and then given to the driver as text.

SQLAlchemy keeps compiled statements, but looks one up and works out its parameters, types and result columns
anew at every use, which takes longer than SQLite takes to run it. Pooling and transactions stay its own.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Dialect, Engine, PoolProxiedConnection
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.base import Executable

Convert = Callable[[Any], Any]


@dataclass(frozen=True)
class Compiled:
    """`fixed` are the values that the statement itself holds, `order` the names of a driver that counts."""

    text: str
    fixed: Mapping[str, Any]
    order: tuple[str, ...] | None
    writers: tuple[tuple[str, Convert], ...]
    readers: tuple[tuple[int, Convert], ...]  # of the columns that need one

    def parameters(self, given: Mapping[str, Any]) -> Any:
        """NULL is NULL in every type, and most of a message's columns are."""
        values = {**given, **self.fixed}
        for name, write in self.writers:
            value = values[name]
            if value is not None:
                values[name] = write(value)
        return values if self.order is None else [values[name] for name in self.order]

    def row(self, found: Any) -> tuple[Any, ...]:
        values = list(found)
        for place, read in self.readers:
            values[place] = read(values[place])
        return tuple(values)


class Prepared:
    """A statement with parameters that gives rows. Threads may share it."""

    def __init__(self, statement: Executable, **of_dialect: Executable) -> None:
        """`of_dialect` are the statements of those that have one of their own."""
        self.statement = statement
        self._of_dialect = of_dialect
        self._compiled: dict[str, Compiled] = {}  # no two dialects count parameters alike

    @classmethod
    def of_dialect(cls, build: Callable[[Any], Executable]) -> "Prepared":
        """`build` is given the dialect's own `insert`, which knows what to do with rows that are there."""
        return cls(build(sqlite.insert), postgresql=build(postgresql.insert))

    def all(self, connection: Connection, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """The rows, their values as the columns' types give them. Raises DBAPIError as SQLAlchemy does."""
        if not connection.in_transaction():
            connection.begin()
        compiled = self.on(connection.dialect)
        found = run_text(connection, compiled.text, compiled.parameters(given))
        return [compiled.row(each) for each in found]

    def one_or_none(self, connection: Connection, given: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """The only row, or None; the statement can give no more than one."""
        found = self.all(connection, given)
        return found[0] if found else None

    def on(self, dialect: Dialect) -> Compiled:
        known = self._compiled.get(dialect.paramstyle)
        if known is None:
            known = self._compiled[dialect.paramstyle] = _compile(
                self._of_dialect.get(dialect.name, self.statement), dialect
            )
        return known


def run_text(connection: Connection, text: str, parameters: Any = ()) -> list[Any]:
    """The driver's own rows. Without parameters in the fault: they may quote the user."""
    driver, held = connection.dialect.loaded_dbapi, connection.connection
    cursor = held.cursor()
    try:
        cursor.execute(text, parameters)
        return list(cursor.fetchall()) if cursor.description else []
    except driver.Error as fault:
        is_lost = connection.dialect.is_disconnect(fault, held, cursor)
        if is_lost:
            connection.invalidate(fault)
        raise DBAPIError.instance(
            text, None, fault, driver.Error, connection_invalidated=is_lost, dialect=connection.dialect
        ) from fault
    finally:
        cursor.close()


class LostError(Exception):
    """The connection was lost. What ran on it is saved only if it was just committing."""


@contextmanager
def giving_back(engine: Engine, held: PoolProxiedConnection) -> Iterator[PoolProxiedConnection]:
    """To the pool, in the end; after a fault without what was begun. Raises LostError and DBAPIError."""
    dialect = engine.dialect
    driver = dialect.loaded_dbapi
    try:
        yield held
    except driver.Error as fault:
        if dialect.is_disconnect(fault, held, None):
            held.invalidate(fault)
            raise LostError from fault
        with suppress(driver.Error):
            held.rollback()
        raise DBAPIError.instance("a save", None, fault, driver.Error, dialect=dialect) from fault
    finally:
        held.close()


def _compile(statement: Any, dialect: Dialect) -> Compiled:
    made = statement.compile(dialect=dialect)
    fixed, writers = {}, []
    for name, bind in made.binds.items():
        write = bind.type.dialect_impl(dialect).bind_processor(dialect)
        if not bind.required:
            fixed[name] = write(bind.value) if write else bind.value
        elif write:
            writers.append((name, write))
    reads = [column.type.dialect_impl(dialect) for column in statement.exported_columns]
    readers = ((place, kind.result_processor(dialect, None)) for place, kind in enumerate(reads))
    return Compiled(
        text=str(made),
        fixed=fixed,
        order=tuple(made.positiontup) if made.positional else None,
        writers=tuple(writers),
        readers=tuple((place, read) for place, read in readers if read),
    )
