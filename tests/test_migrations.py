"""The schema: migrations make exactly what the program expects, safely, and never touch what is newer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from tests.test_cli import tidegate
from tidegate.db.engines import parse_url, writing_engine
from tidegate.db.migrate import alembic_config, known_revisions, migrate
from tidegate.db.schema import metadata
from tidegate.domain.errors import InvalidRequest, Unavailable


def run(database_url: str, *statements: str) -> None:
    with writing_engine(parse_url(database_url)).begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def test_the_migrations_make_the_schema_that_the_program_knows(database_url: str) -> None:
    migrate(database_url)
    with writing_engine(parse_url(database_url)).begin() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_a_migration_is_named_after_its_revision_and_they_follow_each_other() -> None:
    scripts = ScriptDirectory.from_config(alembic_config())
    assert known_revisions() == [script.revision for script in reversed([*scripts.walk_revisions()])]


def test_migrating_again_changes_nothing(database_url: str) -> None:
    migrate(database_url)
    run(database_url, "INSERT INTO metastore (one, id, created_at) VALUES (1, 'kept', 0)")
    migrate(database_url)
    with writing_engine(parse_url(database_url)).begin() as connection:
        assert connection.exec_driver_sql("SELECT id FROM metastore").scalar() == "kept"


def test_every_migration_can_be_undone(database_url: str) -> None:
    migrate(database_url)
    with writing_engine(parse_url(database_url)).begin() as connection:
        command.downgrade(alembic_config(connection), "base")
    with writing_engine(parse_url(database_url)).begin() as connection:
        assert sa.inspect(connection).get_table_names() == ["alembic_version"]


def test_several_that_migrate_at_once_take_turns(database_url: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(migrate, database_url) for _ in range(8)]:
            done.result(timeout=120)
    with writing_engine(parse_url(database_url)).begin() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_a_new_sqlite_database_can_be_opened_by_several_at_once(tmp_path: Path) -> None:
    def open_together(url: sa.URL, gate: Barrier) -> None:
        engine = writing_engine(url)
        gate.wait(timeout=60)
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS opened (x INTEGER)")
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        engine.dispose()

    with ThreadPoolExecutor(8) as pool:
        for number in range(60):
            url, gate = parse_url(f"sqlite:///{tmp_path}/{number}.db"), Barrier(8)
            for done in [pool.submit(open_together, url, gate) for _ in range(8)]:
                done.result(timeout=120)


def test_a_newer_schema_is_refused_and_left_alone(database_url: str, tmp_path: Path) -> None:
    migrate(database_url)
    run(database_url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(InvalidRequest, match="9999"):
        migrate(database_url)
    ended = tidegate("serve", "--home", str(tmp_path / "home"), "--database", database_url)
    assert ended.returncode == 2
    assert "newer" in ended.stderr
    with writing_engine(parse_url(database_url)).begin() as connection:
        assert connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar() == "9999"


def test_a_migration_that_fails_leaves_nothing_behind(database_url: str) -> None:
    # The last table of the first migration is in the way.
    run(database_url, "CREATE TABLE table_metadata (x INTEGER)")
    with pytest.raises(Unavailable, match="was not changed"):
        migrate(database_url)
    with writing_engine(parse_url(database_url)).begin() as connection:
        assert "catalogs" not in sa.inspect(connection).get_table_names()


def test_sqlite_syncs_every_commit_and_keeps_foreign_keys(tmp_path: Path) -> None:
    engine = writing_engine(parse_url(f"sqlite:///{tmp_path}/catalog.db"))
    with engine.begin() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")
        }
        assert pragmas == {"journal_mode": "wal", "synchronous": 2}
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
