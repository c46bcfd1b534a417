"""The tables. Times are UTC and come back aware; text is storable on every database or mended first."""

import re
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

TITLE_LENGTH = 255
NAME_LENGTH = 512

# PostgreSQL stores no NUL, and no database stores half a character.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(value: str) -> str:
    """`value` with NUL and lone surrogates as U+FFFD. Questions with them are refused long before."""
    return _UNSTORABLE.sub("\ufffd", value)


def storable_json(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(key): storable_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [storable_json(item) for item in value]
    return value


class Moment(TypeDecorator[datetime]):
    """A point in time. Refuses naive values, which mean another moment on every host."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a stored time needs its offset: pass an aware datetime")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - SQLAlchemy's signature
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class _Mended(TypeDecorator[str]):
    """Text that every database can store."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        return None if value is None else storable(value)


class Words(_Mended):
    """Text of any length."""

    impl = Text
    cache_ok = True


class ShortWords(_Mended):
    """Text of at most so many characters."""

    cache_ok = True


class Document(TypeDecorator[Any]):
    """A JSON value; None is SQL's NULL."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        kind = JSONB(none_as_null=True) if dialect.name == "postgresql" else JSON(none_as_null=True)
        return dialect.type_descriptor(kind)

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002 - SQLAlchemy's signature
        return storable_json(value)


def one_of(column: str, *values: str) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pk",
        "uq": "%(table_name)s_%(column_0_N_name)s_uk",
        "fk": "%(table_name)s_%(column_0_N_name)s_fk",
        "ck": "%(table_name)s_%(constraint_name)s_ck",
    }
)

conversation = Table(
    "conversation",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("external_id", ShortWords(NAME_LENGTH), nullable=False),
    Column("tenant_id", ShortWords(255), nullable=False),
    Column("user_id", ShortWords(255), nullable=False),
    Column("knowledge_base_id", ShortWords(255), nullable=False),
    Column("title", ShortWords(TITLE_LENGTH)),
    Column("summary", Words()),
    Column("summary_message_sequence", BigInteger, nullable=False, server_default="0"),
    Column("status", String(32), nullable=False, server_default="ACTIVE"),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    one_of("status", "ACTIVE", "ARCHIVED", "DELETED"),
    # A name is free again once its conversation is deleted.
    Index(
        "conversation_name_uk",
        "tenant_id",
        "user_id",
        "external_id",
        unique=True,
        sqlite_where=text("status <> 'DELETED'"),
        postgresql_where=text("status <> 'DELETED'"),
    ),
    Index("conversation_listing", "tenant_id", "user_id", "status", "created_at", "id"),
    # Since revision 0003 of deleted ones alone: writing a turn then moves nothing in any index of this table.
    Index(
        "conversation_deleted",
        "updated_at",
        sqlite_where=text("status = 'DELETED'"),
        postgresql_where=text("status = 'DELETED'"),
    ),
)

message = Table(
    "message",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("conversation_id", Uuid, ForeignKey("conversation.id", ondelete="CASCADE"), nullable=False),
    Column("sequence_no", BigInteger, nullable=False),
    Column("role", String(32), nullable=False),
    Column("content", Words(), nullable=False),
    Column("standalone_question", Words()),
    Column("sources", Document),
    Column("model", ShortWords(128)),
    Column("prompt_tokens", Integer),
    Column("completion_tokens", Integer),
    Column("trace_id", ShortWords(128)),
    Column("request_id", ShortWords(128)),
    Column("client_message_id", ShortWords(200)),
    Column("status", String(32), nullable=False, server_default="COMPLETE"),
    Column("feedback", Document),
    Column("created_at", Moment, nullable=False),
    one_of("role", "USER", "ASSISTANT", "SYSTEM"),
    one_of("status", "COMPLETE", "PARTIAL", "FAILED"),
    UniqueConstraint("conversation_id", "sequence_no"),
    UniqueConstraint("conversation_id", "client_message_id"),
    # One question and one answer a request, whoever writes and however often.
    UniqueConstraint("conversation_id", "request_id", "role"),
)

request_archive = Table(
    "request_archive",
    metadata,
    Column("request_id", Words(), primary_key=True),
    Column("schema_version", SmallInteger, nullable=False),
    Column("thread_id", Words(), nullable=False),
    Column("question", Words(), nullable=False),
    Column("original_question", Words()),
    Column("input_kind", String(32), nullable=False),
    # The record's own texts, Shanghai time: they sort as they are and are kept to the letter.
    Column("received_at", String(40), nullable=False),
    Column("started_at", String(40), nullable=False),
    Column("finished_at", String(40)),
    Column("duration_ms", Integer),
    Column("status", String(32), nullable=False),
    Column("degraded", Boolean, nullable=False),
    Column("error_code", String(64)),
    Column("received_on", String(10), nullable=False),  # the day of received_at, in Shanghai
    Column("archived_at", Moment, nullable=False),
    Column("gone_at", Moment),  # when a record last seen running was no longer in Redis
    Index("request_archive_days", "input_kind", "received_on"),
    Index("request_archive_thread", "thread_id", "received_at"),
    Index(
        "request_archive_running",
        "status",
        sqlite_where=text("status = 'running'"),
        postgresql_where=text("status = 'running'"),
    ),
)

audit = Table(
    "audit",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("tenant_id", ShortWords(255), nullable=False),
    Column("user_id", ShortWords(255), nullable=False),
    Column("action", String(32), nullable=False),
    # No foreign key: who deleted what must outlive what was deleted.
    Column("conversation_id", Uuid),
    Column("at", Moment, nullable=False),
    Column("detail", Document),  # numbers and ids only
    Index("audit_time", "at"),
    Index("audit_conversation", "conversation_id", "at"),
)

# Since revision 0002.
summary_version = Table(
    "summary_version",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("conversation_id", Uuid, ForeignKey("conversation.id", ondelete="CASCADE"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("message_sequence", BigInteger, nullable=False),
    Column("content", Words(), nullable=False),
    Column("sources", Document, nullable=False),  # [[document id, version]] of every turn folded in
    Column("model", ShortWords(128)),
    Column("created_at", Moment, nullable=False),
    UniqueConstraint("conversation_id", "version"),
)
