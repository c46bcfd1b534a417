"""Where conversations are kept and for how long. Every wrong value is refused by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from checkpoint.config import default_home, read_int
from checkpoint.errors import ConfigError

SCHEMES = ("sqlite", "postgresql", "postgres", "postgresql+psycopg")
FILE_NAME = "conversations.db"
LONGEST_DAYS = 36500

# Setting, field, default, what it does. The documentation's table is made from this one.
DAYS = (
    ("RETAIN_DELETED_DAYS", "deleted_days", 30, "Days from deleting a conversation to purging its rows."),
    ("RETAIN_AUDIT_DAYS", "audit_days", 365, "Days that audit rows are kept."),
    ("RETAIN_ARCHIVE_DAYS", "archive_days", 1095, "Days that archived request records are kept."),
    ("RETAIN_LOG_DAYS", "log_days", 30, "Days that files in the data folder's `logs` are kept."),
)


@dataclass(frozen=True)
class StoreConfig:
    """url None is SQLite in `home`. Checked when made, so a wrong one never exists.

    `pool_size` bounds the connections of one process; none is held while an answer is made.
    """

    url: str | None = field(default=None, repr=False)
    home: Path = field(default_factory=lambda: default_home({}))
    pool_size: int = 5
    timeout_seconds: float = 5.0
    deleted_days: int = 30
    audit_days: int = 365
    archive_days: int = 1095
    log_days: int = 30
    summary_versions: int = 3

    def __post_init__(self) -> None:
        if self.url is not None:
            check_url(self.url)
        for setting, name, default, _ in DAYS:
            check_range(setting, getattr(self, name), 0, LONGEST_DAYS, default)
        check_range("SUMMARY_VERSIONS", self.summary_versions, 1, 1000, 3)
        check_range("DATABASE_POOL_SIZE", self.pool_size, 1, 1000, 5)

    @property
    def file(self) -> Path:
        """SQLite's file when no url is set."""
        return self.home / FILE_NAME


def load_store_config(env: Mapping[str, str]) -> StoreConfig:
    """The settings in `env`. An empty value counts as unset. Raises ConfigError."""
    found = {name: value for name, value in env.items() if value.strip()}
    numbers = {name: read_int(found, setting) for setting, name, _, _ in DAYS}
    numbers["summary_versions"] = read_int(found, "SUMMARY_VERSIONS")
    numbers["pool_size"] = read_int(found, "DATABASE_POOL_SIZE")
    given = {name: value for name, value in numbers.items() if value is not None}
    return StoreConfig(url=found.get("DATABASE_URL"), home=default_home(found), **given)


def check_url(url: str) -> None:
    """The address itself is never part of the message: it may hold a password."""
    scheme = url.split(":", 1)[0]
    if "://" not in url or scheme not in SCHEMES:
        raise ConfigError(
            "DATABASE_URL",
            f"unknown scheme {scheme if '://' in url else ''!r}",
            "Use postgresql://user@host/database or sqlite:////absolute/path.db, or unset it",
        )
    if scheme == "sqlite" and urlsplit(url).path in ("", "/"):
        raise ConfigError(
            "DATABASE_URL", "a sqlite:// address needs a file", "Example: sqlite:////var/lib/app/chats.db"
        )


def check_range(setting: str, value: int, least: int, most: int, example: int) -> None:
    if not least <= value <= most:
        raise ConfigError(setting, f"{value} is not between {least} and {most}", f"Example: {example}")


# Setting, default, what it does: the documentation's table of settings is made from this.
CONVERSATION_SETTINGS = (
    (
        "DATABASE_URL",
        "unset",
        "Where conversations are kept: `postgresql://…` or `sqlite:////file`. "
        "Unset: SQLite in the data folder.",
    ),
    ("DATABASE_POOL_SIZE", "`5`", "Connections to it that one process opens at most. 1 to 1000."),
    *((setting, f"`{default}`", f"{text} 0 to {LONGEST_DAYS}.") for setting, _, default, text in DAYS),
    ("SUMMARY_VERSIONS", "`3`", "Versions of a conversation's summary that are kept. 1 to 1000."),
)


def settings_table() -> str:
    """These settings as a table for the documentation."""
    lines = [f"| `{name}` | {default} | {text} |" for name, default, text in CONVERSATION_SETTINGS]
    return "\n".join(["| setting | default | what it does |", "|---|---|---|", *lines])
