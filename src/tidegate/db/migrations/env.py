"""Alembic's entry: runs the migrations on the connection that `tidegate.db.migrate` opened."""

from __future__ import annotations

from alembic import context

from tidegate.db.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # The caller's transaction holds all of it: either every step happened or none.
    transactional_ddl=True,
    render_as_batch=True,
)
context.run_migrations()
