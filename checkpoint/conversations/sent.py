"""A statement that PostgreSQL keeps, sent through the driver's own libpq: its row can be read later.

The driver's cursors send and wait in one. What is done in between costs the request no time of its own.
"""

from collections.abc import Mapping
from itertools import count
from secrets import token_hex
from typing import Any, cast

from psycopg import Connection, Error
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import InvalidSqlStatementName, error_from_result
from psycopg.generators import execute
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult
from psycopg.waiting import wait
from sqlalchemy import Dialect, Engine
from sqlalchemy.dialects.postgresql.psycopg import dialect

from checkpoint.conversations.prepared import LostError, Prepared, giving_back

NUMBERED: Dialect = dialect(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call] # as the server counts
_PROCESS = token_hex(4)  # behind a connection pooler, statements of several processes meet on one connection
_numbers = count()
INTERRUPTIBLE = 0.1  # seconds between two looks for Ctrl-C; without any the driver would not sleep


class Kept:
    """What one connection keeps: statements by name, and how their values are written and read."""

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection
        self.adapter = Transformer(connection)
        self.names: dict[Prepared, bytes] = {}

    def send(self, prepared: Prepared, given: Mapping[str, Any]) -> None:
        """Outside a transaction it is one by itself. Raises psycopg.Error."""
        values = prepared.on(NUMBERED).parameters(given)
        written = self.adapter.dump_sequence(values, [PyFormat.TEXT] * len(values))
        name = self.names.get(prepared) or self._prepare(prepared)
        self.connection.pgconn.send_query_prepared(name, written)

    def row(self, prepared: Prepared) -> tuple[Any, ...] | None:
        """Wait for what was sent. -> its row, if it gave one. Raises psycopg.Error."""
        pgconn = self.connection.pgconn
        result = _checked(wait(execute(pgconn), pgconn.socket, INTERRUPTIBLE)[0])
        if not result.ntuples:
            return None
        self.adapter.set_pgresult(result)
        return prepared.on(NUMBERED).row(self.adapter.load_row(0, tuple))

    def _prepare(self, prepared: Prepared) -> bytes:
        name = f"business_assistant_{_PROCESS}_{next(_numbers)}".encode()
        _checked(self.connection.pgconn.prepare(name, prepared.on(NUMBERED).text.encode()))
        self.names[prepared] = name
        return name


class Sent:
    """One statement on its way, and the connection that it is on until its row is read."""

    def __init__(self, engine: Engine, prepared: Prepared, given: Mapping[str, Any]) -> None:
        """Raises DBAPIError, LostError, and SQLAlchemy's TimeoutError where no connection is free."""
        self._engine, self._prepared, self._given = engine, prepared, given
        try:
            self._held = engine.raw_connection()
        except Error as fault:
            raise LostError from fault
        try:
            self._kept = self._held.info.get(Kept) or self._first_use()
            self._kept.send(prepared, given)
        except Error:
            with giving_back(engine, self._held):
                raise

    def row(self) -> tuple[Any, ...] | None:
        """Once. A server that has forgotten the statement has done nothing: it is told it again."""
        with giving_back(self._engine, self._held):
            try:
                return self._kept.row(self._prepared)
            except InvalidSqlStatementName:
                self._kept.names.clear()
                self._kept.send(self._prepared, self._given)
                return self._kept.row(self._prepared)

    def _first_use(self) -> Kept:
        """Kept as long as the connection is."""
        kept = Kept(cast(Any, self._held.driver_connection))
        self._held.info[Kept] = kept
        return kept


def _checked(result: PGresult) -> PGresult:
    if result.status == ExecStatus.FATAL_ERROR:
        raise error_from_result(result, encoding="utf-8")
    return result
