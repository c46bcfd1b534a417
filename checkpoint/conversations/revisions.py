"""Bringing the tables to this release's form. Only forward; an unknown revision is left untouched."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from checkpoint.conversations.database import Database
from checkpoint.conversations.errors import StoreRevisionError
from checkpoint.conversations.models import metadata

SCRIPTS = Path(__file__).parent / "migrations"
LOCK = 0x42_41_63_6F_6E_76  # any fixed number: of all starting processes one migrates, the others wait


def migrate(database: Database, to: str = "head") -> None:
    """Upgrade to `to` in one transaction. Raises StoreRevisionError for a database of a newer release.

    A database that is at the head already is only read, so it may be read-only.
    """
    with database.read("checking the tables") as connection:
        if revision_of(connection) == head() and to == "head":
            return
    with database.write("migrating") as connection:
        if not database.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
        _upgrade(connection, to)


def head() -> str:
    return str(ScriptDirectory.from_config(_config()).get_current_head())


def known_revisions() -> list[str]:
    """Every revision, oldest first."""
    scripts = ScriptDirectory.from_config(_config()).walk_revisions()
    return [script.revision for script in scripts][::-1]


def revision_of(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def check_revision(database: Database) -> None:
    """Raise unless the tables are this release's."""
    with database.read("checking the tables") as connection:
        found = revision_of(connection)
    if found != head():
        raise _other_revision(found)


def _upgrade(connection: Connection, to: str) -> None:
    found = revision_of(connection)
    if found is not None and found not in known_revisions():
        raise _other_revision(found)
    config = _config()
    config.attributes["connection"] = connection
    config.attributes["metadata"] = metadata
    command.upgrade(config, to)


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _other_revision(found: str | None) -> StoreRevisionError:
    return StoreRevisionError(
        "opening the conversations",
        f"the tables are at revision {found}, this release is at {head()}",
        "Upgrade business-assistant on this host, or restore a backup made by this release",
    )
