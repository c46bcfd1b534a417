"""Index deleted conversations alone.

Revision 0003, after 0002. Only the purge looks by this index, and only for deleted ones; with all of them in
it every question and every answer moved its conversation within the index.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

DELETED = sa.text("status = 'DELETED'")


def upgrade() -> None:
    op.drop_index("conversation_deleted", "conversation")
    op.create_index(
        "conversation_deleted",
        "conversation",
        ["updated_at"],
        sqlite_where=DELETED,
        postgresql_where=DELETED,
    )


def downgrade() -> None:
    op.drop_index("conversation_deleted", "conversation")
    op.create_index("conversation_deleted", "conversation", ["status", "updated_at"])
