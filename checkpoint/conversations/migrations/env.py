"""Alembic's entry: runs the migrations in the transaction that `revisions.migrate` has begun."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=context.config.attributes["metadata"],
    render_as_batch=True,
    # The transaction around it all is ours, on SQLite too: a failed migration leaves nothing behind.
    transactional_ddl=True,
    transaction_per_migration=False,
)
context.run_migrations()
