"""Settings of the durable record, its documentation, and what importing it costs."""

import subprocess
import sys
from pathlib import Path

import pytest

from checkpoint.conversations.config import StoreConfig, load_store_config, settings_table
from checkpoint.conversations.database import read_url
from checkpoint.errors import ConfigError

ROOT = Path(__file__).parents[2]


def test_nothing_needs_to_be_set() -> None:
    config = load_store_config({"BUSINESS_ASSISTANT_HOME": "/data", "DATABASE_URL": "  "})
    assert config.url is None
    assert config.file == Path("/data/conversations.db")
    assert config == StoreConfig(home=Path("/data"))


def test_every_setting_is_read() -> None:
    config = load_store_config(
        {
            "DATABASE_URL": "postgresql://u@h/d",
            "DATABASE_POOL_SIZE": "7",
            "RETAIN_DELETED_DAYS": "0",
            "RETAIN_AUDIT_DAYS": "1",
            "RETAIN_ARCHIVE_DAYS": "2",
            "RETAIN_LOG_DAYS": "3",
            "SUMMARY_VERSIONS": "4",
        }
    )
    assert (config.url, config.pool_size, config.summary_versions) == ("postgresql://u@h/d", 7, 4)
    assert [config.deleted_days, config.audit_days, config.archive_days, config.log_days] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("DATABASE_URL", "mysql://u:geheim@h/d"),
        ("DATABASE_URL", "geheim"),
        ("DATABASE_URL", "sqlite://"),
        ("DATABASE_POOL_SIZE", "0"),
        ("DATABASE_POOL_SIZE", "many"),
        ("RETAIN_DELETED_DAYS", "-1"),
        ("RETAIN_AUDIT_DAYS", "36501"),
        ("SUMMARY_VERSIONS", "0"),
    ],
)
def test_a_wrong_value_is_refused_by_name_and_without_the_password(setting: str, value: str) -> None:
    with pytest.raises(ConfigError, match=setting) as error:
        load_store_config({setting: value})
    assert "geheim" not in str(error.value)


def test_an_address_that_cannot_be_read_shows_no_password() -> None:
    with pytest.raises(ConfigError, match="DATABASE_URL") as error:
        read_url(StoreConfig(url="postgresql://u:geheim@h:port/d"))
    assert "geheim" not in str(error.value)
    assert error.value.__cause__ is None
    assert "geheim" not in repr(StoreConfig(url="postgresql://u:geheim@h/d"))


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_spelling_of_postgresql_is_the_same_driver(scheme: str) -> None:
    url = read_url(StoreConfig(url=f"{scheme}://u@h/d"))
    assert url.drivername == "postgresql+psycopg"


def test_the_page_shows_the_settings() -> None:
    page = (ROOT / "docs" / "conversations.md").read_text()
    block = page.split("<!-- conversation settings -->\n")[1].split("<!-- end of conversation settings -->")[
        0
    ]
    assert block.rstrip("\n") == settings_table()


def test_reading_settings_loads_no_database() -> None:
    names = "('sqlalchemy', 'alembic', 'psycopg')"
    code = f"import graph.settings, sys; print([m for m in {names} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
