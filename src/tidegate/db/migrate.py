"""Brings a database to the schema that this program knows, before anything else touches it.

Several servers may start at once: they take turns. A database that a newer program has migrated is refused, not guessed
at. The tool that migrates is loaded only when there is something to migrate: most starts find the schema as it should
be, and it takes as long to load as everything else of a start.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from tidegate.db.engines import parse_url, writing_engine
from tidegate.domain.errors import InvalidRequest, Unavailable

if TYPE_CHECKING:
    from alembic.config import Config

_TURNS = 7_455_012_026
"""The advisory lock under which PostgreSQL lets one server migrate at a time; any number that is ours alone."""
_MIGRATIONS = Path(__file__).parent / "migrations"


def migrate(url: str) -> None:
    """Upgrades the schema to the newest revision, in one transaction."""
    engine = writing_engine(parse_url(url))
    try:
        # SQLite: BEGIN IMMEDIATE is the turn.
        with engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_TURNS)))
            _upgrade(connection)
    except DBAPIError as error:
        reason = str(error.orig).strip().partition("\n")[0]
        raise Unavailable(f"The database cannot be used, and was not changed: {reason}") from error
    finally:
        engine.dispose()


def known_revisions() -> list[str]:
    """Oldest first. A migration's file is named after its revision."""
    return sorted(file.name.partition("_")[0] for file in (_MIGRATIONS / "versions").glob("[0-9]*.py"))


def alembic_config(connection: sa.Connection | None = None) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def _upgrade(connection: sa.Connection) -> None:
    current, known = _revision(connection), known_revisions()
    if current == known[-1]:
        return
    if current is not None and current not in known:
        raise InvalidRequest(
            f"The database has schema revision {current}, which this Tidegate does not know: a newer one has upgraded "
            "it. Start that version, or restore a backup from before the upgrade."
        )
    from alembic import command

    command.upgrade(alembic_config(connection), "head")


def _revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
