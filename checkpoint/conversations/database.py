"""Opening the database, its transactions, and its faults in our words."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy import exc as faults

from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.errors import (
    ConversationStoreError,
    StoreBusyError,
    StoreDamagedError,
    StoreFullError,
    StoreReadOnlyError,
    StoreRevisionError,
    StoreUnavailable,
)
from checkpoint.conversations.prepared import run_text
from checkpoint.conversations.usual import Course, Made, Taking
from checkpoint.errors import ConfigError

# SQLite's own name for a fault, by its beginning, and PostgreSQL's sqlstate, by its beginning.
Remedy = tuple[type[StoreUnavailable], str, str]
FAULTS: Mapping[str, Remedy] = {
    "SQLITE_BUSY": (StoreBusyError, "it is locked by another process", "Try again shortly"),
    "SQLITE_LOCKED": (StoreBusyError, "it is locked", "Try again shortly"),
    "SQLITE_READONLY": (StoreReadOnlyError, "it is read-only", "Make its file and folder writable"),
    "SQLITE_PERM": (StoreReadOnlyError, "access is denied", "Make its file and folder writable"),
    "SQLITE_FULL": (StoreFullError, "the disk is full", "Make room, then try again"),
    "SQLITE_CANTOPEN": (StoreUnavailable, "it cannot be opened", "Check that its folder can be written"),
    "SQLITE_CORRUPT": (StoreDamagedError, "the file is damaged", "Restore it from a backup"),
    "SQLITE_NOTADB": (StoreDamagedError, "the file is no database", "Restore it, or name another file"),
    "SQLITE_IOERR": (StoreUnavailable, "the disk reported an error", "Check the disk"),
    "25006": (StoreReadOnlyError, "it is read-only", "Name the primary server in DATABASE_URL"),
    "42501": (StoreReadOnlyError, "the user may not write", "Grant it the tables, or name another user"),
    "53100": (StoreFullError, "the disk is full", "Make room on the server, then try again"),
    "53200": (StoreFullError, "the server is out of memory", "Lower its load, then try again"),
    "53300": (StoreBusyError, "it takes no more connections", "Lower DATABASE_POOL_SIZE or raise its limit"),
    "26000": (
        StoreUnavailable,
        "what pools its connections forgets prepared statements",
        "Pool by session, or let it keep them (PgBouncer: max_prepared_statements)",
    ),
    "28": (StoreUnavailable, "it refused the user or password", "Check user and password in DATABASE_URL"),
    "3D000": (StoreUnavailable, "there is no such database", "Create it, or name another in DATABASE_URL"),
    "40": (StoreBusyError, "the transaction met another one", "Try again"),
    "55P03": (StoreBusyError, "a lock was not free in time", "Try again shortly"),
    "57014": (StoreBusyError, "it took too long", "Try again shortly"),
    "42P01": (StoreRevisionError, "a table is missing", "Run this release's migrations: start it once"),
    "42703": (StoreRevisionError, "a column is missing", "Run this release's migrations: start it once"),
}
MISSING = ("no such table", "no such column", "has no column named")  # SQLite has no name for these
UNREACHABLE = ("it cannot be reached", "Check that it runs and that DATABASE_URL names it")
IMMEDIATE = "business_assistant_writes"


class Database:
    """An engine with two kinds of transactions. Threads may share it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._for_writes = engine.execution_options(**{IMMEDIATE: True})

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def read(self, doing: str) -> Iterator[Connection]:
        """One snapshot where the database has them. Raises ConversationStoreError.

        It ends with a commit: a rollback would make the driver forget the plans of its statements.
        """
        with translated(doing), self._connected(self.engine) as connection:
            yield connection
            connection.commit()

    @contextmanager
    def write(self, doing: str) -> Iterator[Connection]:
        """All or nothing. On SQLite the write lock is taken first, so that no upgrade of it can fail."""
        with translated(doing), self._connected(self._for_writes) as connection, connection.begin():
            yield connection

    def take(self, doing: str, courses: Iterable[Course[Made]]) -> Made | None:
        """What the first course made that came to its end; None, and nothing is saved, where none did."""
        with translated(doing):
            taken = (Taking(self.engine, course).end() for course in courses)
            return next((made for made in taken if made is not None), None)

    @contextmanager
    def taking(self, doing: str, course: Course[Made]) -> Iterator[Callable[[], Made | None]]:
        """The same of one course, under way already where a server does it: the call waits for it."""
        under_way = Taking(self.engine, course)
        under_way.begin()

        def taken() -> Made | None:
            with translated(doing):
                return under_way.end()

        try:
            yield taken
        finally:
            under_way.leave()

    @contextmanager
    def _connected(self, engine: Engine) -> Iterator[Connection]:
        """A connection that answers, if there is one: the server may have gone since it was used last.

        Asking costs a round trip and spares the first request after a restart of the server.
        """
        pooled = 0 if self.is_sqlite else self.engine.pool.size()  # type: ignore[attr-defined]
        for _ in range(pooled):
            with engine.connect() as connection:
                if answers(connection):
                    yield connection
                    return
                connection.invalidate()
        with engine.connect() as connection:
            yield connection

    def shed_deleted_bytes(self) -> bool:
        """Leave nothing of deleted rows in SQLite's write-ahead log; PostgreSQL has its own vacuum.

        False when somebody reads for longer than the time-out: the log is then left as it is.
        """
        if not self.is_sqlite:
            return True
        with translated("cleaning up"), self.engine.connect() as connection:
            autocommit = connection.execution_options(isolation_level="AUTOCOMMIT")
            is_busy = autocommit.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").scalar()
        return not is_busy

    def describe(self) -> str:
        """Kind and place of the database, never its password."""
        url = self.engine.url
        place = url.database if self.is_sqlite else f"{url.host or 'a unix socket'}/{url.database}"
        with self.read("looking at the database") as connection:
            version = ".".join(map(str, connection.dialect.server_version_info or ()))
        return f"{self.engine.dialect.name} {version} at {place} answers".replace("  ", " ")

    def is_read_only(self) -> bool:
        """Whether it can be read and not written; nothing is changed to see it."""
        try:
            with self.write("looking at the database") as connection:
                connection.exec_driver_sql("UPDATE alembic_version SET version_num = version_num WHERE 1 = 0")
        except StoreReadOnlyError:
            return True
        except StoreBusyError:
            return False  # somebody writes just now
        return False

    def close(self) -> None:
        self.engine.dispose()


def answers(connection: Connection) -> bool:
    """Whether the server is still at the other end."""
    dialect = connection.dialect
    try:
        return dialect.do_ping(connection.connection.dbapi_connection)  # type: ignore[arg-type]
    except dialect.loaded_dbapi.Error:
        return False


def open_engine(config: StoreConfig) -> Engine:
    """An engine that has not connected yet. Raises ConfigError for an address that cannot be read."""
    url = read_url(config)
    if url.get_backend_name() == "sqlite":
        return _open_sqlite(url, config)
    return create_engine(
        url,
        pool_size=config.pool_size,
        max_overflow=0,
        pool_timeout=config.timeout_seconds,
        pool_use_lifo=True,
        connect_args={
            "connect_timeout": max(2, round(config.timeout_seconds)),  # libpq takes 1 for 2
            "options": f"-c lock_timeout={round(config.timeout_seconds * 1000)} -c timezone=UTC",
            "application_name": "business-assistant",
        },
    )


def read_url(config: StoreConfig) -> URL:
    if config.url is None:
        return URL.create("sqlite", database=str(config.file))
    try:
        url = make_url(config.url)
    except (faults.ArgumentError, ValueError):
        # The parser's message would show the address, and with it the password.
        raise ConfigError(
            "DATABASE_URL", "cannot be read", "Example: postgresql://user@host:5432/database"
        ) from None
    is_sqlite = url.get_backend_name() == "sqlite"
    return url if is_sqlite else url.set(drivername="postgresql+psycopg")


def _open_sqlite(url: URL, config: StoreConfig) -> Engine:
    if config.url is None:
        _make_home(config)
    engine = create_engine(
        url,
        pool_size=config.pool_size,
        max_overflow=0,
        pool_use_lifo=True,  # the connection used last has its statements and pages at hand
        pool_timeout=config.timeout_seconds,
        connect_args={"timeout": config.timeout_seconds},
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _make_home(config: StoreConfig) -> None:
    try:
        config.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not config.file.exists():  # a file that is there may be read-only
            config.file.touch(mode=0o600)  # the name is the user's own business, and so is the content
    except OSError as fault:
        raise StoreUnavailable(
            "opening the conversations",
            f"{config.home} cannot be used ({fault.strerror})",
            "Set BUSINESS_ASSISTANT_HOME to a folder that can be written, or DATABASE_URL to a server",
        ) from fault


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # transactions begin where we say, not where the driver guesses
    with suppress(sqlite3.OperationalError):  # a read-only file keeps the mode it has
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
    # In WAL mode a power cut may take the newest commits but never the file.
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA secure_delete=ON")
    # Of a file that only grows, more would be filled page by page for as long as the process lives.
    connection.execute("PRAGMA cache_size=-256")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get(IMMEDIATE)
    run_text(connection, "BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Every fault of the database leaves as a ConversationStoreError; bugs in statements stay bugs."""
    try:
        yield
    except ConversationStoreError:
        raise
    except faults.TimeoutError as fault:
        raise StoreBusyError(
            doing, "every connection is in use", "Raise DATABASE_POOL_SIZE or lower the load"
        ) from fault
    except faults.DBAPIError as fault:
        known = translate(fault, doing)
        if known is None:
            raise
        raise known from fault


def translate(fault: faults.DBAPIError, doing: str) -> StoreUnavailable | None:
    """Our error for one of the driver's, or None for what no operator can mend."""
    name = name_of(fault.orig)
    # From the longest beginning to the shortest, so that a whole sqlstate goes before its class.
    for length in range(len(name), 1, -1):
        if name[:length] in FAULTS:
            kind, problem, remedy = FAULTS[name[:length]]
            return kind(doing, problem, remedy)
    if any(said in str(fault.orig) for said in MISSING):
        kind, problem, remedy = FAULTS["42P01"]
        return kind(doing, problem, remedy)
    is_lost = fault.connection_invalidated or name[:2] in ("08", "57", "58", "XX")
    if is_lost or (isinstance(fault, faults.OperationalError) and not name):
        return StoreUnavailable(doing, *UNREACHABLE)
    return None


def name_of(fault: Any) -> str:
    """SQLITE_BUSY_SNAPSHOT, 25006 and the like; empty where the driver gives none."""
    return str(getattr(fault, "sqlite_errorname", None) or getattr(fault, "sqlstate", None) or "")
