"""Keep the versions of a conversation's summary, with the sources each was made from.

Revision 0002, after 0001. A summary of before names no sources, so nobody could tell when one of them is
withdrawn: it is dropped, and made anew when turns fall out of the window again.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "summary_version",
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column(
            "conversation_id",
            sa.Uuid(),
            sa.ForeignKey("conversation.id", name="summary_version_conversation_id_fk", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("message_sequence", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("sources", DOCUMENT, nullable=False),
        sa.Column("model", sa.String(128)),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.UniqueConstraint("conversation_id", "version", name="summary_version_conversation_id_version_uk"),
    )
    op.execute("UPDATE conversation SET summary = NULL, summary_message_sequence = 0")


def downgrade() -> None:
    op.drop_table("summary_version")
