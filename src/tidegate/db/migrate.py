"""Brings a database to the schema that this program knows, before anything else touches it.

Several servers may start at once: they take turns. A database that a newer program has migrated is refused, not guessed
at.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.exc import DBAPIError

from tidegate.db.engines import parse_url, writing_engine
from tidegate.domain.errors import InvalidRequest, Unavailable

_TURNS = 7_455_012_026
"""The advisory lock under which PostgreSQL lets one server migrate at a time; any number that is ours alone."""


def migrate(url: str) -> None:
    """Upgrades the schema to the newest revision, in one transaction."""
    engine = writing_engine(parse_url(url))
    try:
        # SQLite: BEGIN IMMEDIATE is the turn.
        with engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_TURNS)))
            config = alembic_config(connection)
            _refuse_newer(connection, ScriptDirectory.from_config(config))
            command.upgrade(config, "head")
    except DBAPIError as error:
        reason = str(error.orig).strip().partition("\n")[0]
        raise Unavailable(f"The database cannot be used, and was not changed: {reason}") from error
    finally:
        engine.dispose()


def alembic_config(connection: sa.Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def _refuse_newer(connection: sa.Connection, scripts: ScriptDirectory) -> None:
    known = {script.revision for script in scripts.walk_revisions()}
    current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and current not in known:
        raise InvalidRequest(
            f"The database has schema revision {current}, which this Tidegate does not know: a newer one has upgraded "
            "it. Start that version, or restore a backup from before the upgrade."
        )
