"""Conversations, messages, archived requests and the audit trail.

Revision 0001, after nothing.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
NOT_DELETED = sa.text("status <> 'DELETED'")
RUNNING = sa.text("status = 'running'")


def upgrade() -> None:
    _conversation()
    _message()
    _request_archive()
    _audit()


def downgrade() -> None:
    for table in ("audit", "request_archive", "message", "conversation"):
        op.drop_table(table)


def _conversation() -> None:
    op.create_table(
        "conversation",
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("external_id", sa.String(512), nullable=False),
        sa.Column("tenant_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("knowledge_base_id", sa.String(255), nullable=False),
        sa.Column("title", sa.String(255)),
        sa.Column("summary", sa.Text()),
        sa.Column("summary_message_sequence", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("status", sa.String(32), nullable=False, server_default="ACTIVE"),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.CheckConstraint("status IN ('ACTIVE', 'ARCHIVED', 'DELETED')", name="conversation_status_ck"),
    )
    op.create_index(
        "conversation_name_uk",
        "conversation",
        ["tenant_id", "user_id", "external_id"],
        unique=True,
        sqlite_where=NOT_DELETED,
        postgresql_where=NOT_DELETED,
    )
    op.create_index(
        "conversation_listing", "conversation", ["tenant_id", "user_id", "status", "created_at", "id"]
    )
    op.create_index("conversation_deleted", "conversation", ["status", "updated_at"])


def _message() -> None:
    op.create_table(
        "message",
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column(
            "conversation_id",
            sa.Uuid(),
            sa.ForeignKey("conversation.id", name="message_conversation_id_fk", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("sequence_no", sa.BigInteger(), nullable=False),
        sa.Column("role", sa.String(32), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("standalone_question", sa.Text()),
        sa.Column("sources", DOCUMENT),
        sa.Column("model", sa.String(128)),
        sa.Column("prompt_tokens", sa.Integer()),
        sa.Column("completion_tokens", sa.Integer()),
        sa.Column("trace_id", sa.String(128)),
        sa.Column("request_id", sa.String(128)),
        sa.Column("client_message_id", sa.String(200)),
        sa.Column("status", sa.String(32), nullable=False, server_default="COMPLETE"),
        sa.Column("feedback", DOCUMENT),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.CheckConstraint("role IN ('USER', 'ASSISTANT', 'SYSTEM')", name="message_role_ck"),
        sa.CheckConstraint("status IN ('COMPLETE', 'PARTIAL', 'FAILED')", name="message_status_ck"),
        sa.UniqueConstraint("conversation_id", "sequence_no", name="message_conversation_id_sequence_no_uk"),
        sa.UniqueConstraint(
            "conversation_id", "client_message_id", name="message_conversation_id_client_message_id_uk"
        ),
        sa.UniqueConstraint(
            "conversation_id", "request_id", "role", name="message_conversation_id_request_id_role_uk"
        ),
    )


def _request_archive() -> None:
    op.create_table(
        "request_archive",
        sa.Column("request_id", sa.Text(), primary_key=True),
        sa.Column("schema_version", sa.SmallInteger(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("original_question", sa.Text()),
        sa.Column("input_kind", sa.String(32), nullable=False),
        sa.Column("received_at", sa.String(40), nullable=False),
        sa.Column("started_at", sa.String(40), nullable=False),
        sa.Column("finished_at", sa.String(40)),
        sa.Column("duration_ms", sa.Integer()),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("degraded", sa.Boolean(), nullable=False),
        sa.Column("error_code", sa.String(64)),
        sa.Column("received_on", sa.String(10), nullable=False),
        sa.Column("archived_at", MOMENT, nullable=False),
        sa.Column("gone_at", MOMENT),
    )
    op.create_index("request_archive_days", "request_archive", ["input_kind", "received_on"])
    op.create_index("request_archive_thread", "request_archive", ["thread_id", "received_at"])
    op.create_index(
        "request_archive_running",
        "request_archive",
        ["status"],
        sqlite_where=RUNNING,
        postgresql_where=RUNNING,
    )


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("tenant_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("conversation_id", sa.Uuid()),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("detail", DOCUMENT),
    )
    op.create_index("audit_time", "audit", ["at"])
    op.create_index("audit_conversation", "audit", ["conversation_id", "at"])
