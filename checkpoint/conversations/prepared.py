"""The statements that every request runs, compiled once and then given to the driver as text.

SQLAlchemy keeps compiled statements, but looks one up and works out its parameters, types and result columns
anew at every use, which takes longer than SQLite takes to run it. Pooling and transactions stay its own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Dialect
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.base import Executable
from sqlalchemy.types import TypeEngine

Convert = Callable[[Any], Any] | None


@dataclass(frozen=True)
class Compiled:
    """`fixed` are the values that the statement itself holds, `order` the names of a driver that counts."""

    text: str
    fixed: Mapping[str, Any]
    order: tuple[str, ...] | None
    writers: Mapping[str, Convert]
    readers: tuple[Convert, ...]

    def parameters(self, given: Mapping[str, Any]) -> Any:
        values = dict(self.fixed)
        for name, write in self.writers.items():
            values[name] = write(given[name]) if write else given[name]
        return values if self.order is None else tuple(values[name] for name in self.order)

    def row(self, found: Any) -> tuple[Any, ...]:
        return tuple(read(value) if read else value for read, value in zip(self.readers, found, strict=True))


class Prepared:
    """A statement with parameters that gives rows. Threads may share it."""

    def __init__(self, statement: Executable, **of_dialect: Executable) -> None:
        """`of_dialect` are the statements of those that have one of their own."""
        self.statement = statement
        self._of_dialect = of_dialect
        self._compiled: dict[str, Compiled] = {}

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
        known = self._compiled.get(dialect.name)
        if known is None:
            known = self._compiled[dialect.name] = _compile(
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


def _compile(statement: Any, dialect: Dialect) -> Compiled:
    made = statement.compile(dialect=dialect)
    fixed, writers = {}, {}
    for name, bind in made.binds.items():
        write = _writer(bind.type, dialect)
        if bind.required:
            writers[name] = write
        else:
            fixed[name] = write(bind.value) if write else bind.value
    return Compiled(
        text=str(made),
        fixed=fixed,
        order=tuple(made.positiontup) if made.positional else None,
        writers=writers,
        readers=tuple(_reader(column.type, dialect) for column in statement.exported_columns),
    )


def _writer(kind: TypeEngine[Any], dialect: Dialect) -> Convert:
    return kind.dialect_impl(dialect).bind_processor(dialect)


def _reader(kind: TypeEngine[Any], dialect: Dialect) -> Convert:
    return kind.dialect_impl(dialect).result_processor(dialect, None)
