"""DuckDB with its extensions for Unity Catalog and Delta: it reads what is ratified, and appends."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from tests.clients import duck as ducks
from tests.clients.duck import Duck
from tests.clients.matrix import DUCKDB, Refused, can, cannot
from tests.clients.tables import CUXHAVEN, HUSUM, STATIONS, External, append, files, folder, make
from tests.lake import UNITY, Lake, LakeTable
from tests.servers import ServerProcess


@pytest.fixture(scope="module")
def stations(shore: Lake) -> LakeTable:
    """Version 1 is published, version 2 is ratified only. Readers leave it so."""
    table = make(shore, "stations", STATIONS)
    append(table, HUSUM)
    append(table, CUXHAVEN, publish=False)
    return table


@pytest.fixture(scope="module")
def heights(shore: Lake) -> LakeTable:
    table = make(shore, "heights", {"station": "long", "height": "double"})
    append(table, {"station": [1, 1, 3], "height": [3.14, -1.5, 2.0]})
    return table


# Looking around


@can(DUCKDB, "list tables")
def test_schemas_and_tables_are_listed(
    reader: Duck, stations: LakeTable, heights: LakeTable, schema: str, in_lake: str
) -> None:
    assert {("stations",), ("heights",)} <= set(reader(f"SHOW TABLES FROM {in_lake}"))
    name = schema.rpartition(".")[2]
    schemas = reader("SELECT schema_name FROM information_schema.schemata WHERE catalog_name = 'lake'")
    assert {(name,), ("default",)} <= set(schemas)
    columns = reader(
        f"SELECT column_name FROM duckdb_columns() WHERE schema_name = '{name}' AND table_name = 'heights'"
    )
    assert columns == [("station",), ("height",)]


TYPES: dict[str, tuple[Any, str]] = {
    "flag": ("boolean", "BOOLEAN"),
    "tiny": ("byte", "TINYINT"),
    "small": ("short", "SMALLINT"),
    "plain": ("integer", "INTEGER"),
    "large": ("long", "BIGINT"),
    "narrow": ("float", "FLOAT"),
    "wide": ("double", "DOUBLE"),
    "exact": ("decimal(18,4)", "DECIMAL(18,4)"),
    "words": ("string", "VARCHAR"),
    "bytes": ("binary", "BLOB"),
    "day": ("date", "DATE"),
    "moment": ("timestamp", "TIMESTAMP WITH TIME ZONE"),
    "many": ({"type": "array", "element-type": "long", "contains-null": True}, "BIGINT[]"),
    "named": (
        {"type": "map", "key-type": "string", "value-type": "double", "value-contains-null": True},
        "MAP(VARCHAR, DOUBLE)",
    ),
    "inside": (
        {"type": "struct", "fields": [{"name": "x", "type": "integer", "nullable": True, "metadata": {}}]},
        "STRUCT(x INTEGER)",
    ),
}


@can(DUCKDB, "describe")
def test_tables_are_described_with_every_type(reader: Duck, shore: Lake, in_lake: str) -> None:
    make(shore, "wide", {name: told for name, (told, _) in TYPES.items()})
    described = reader(f"DESCRIBE {in_lake}.wide")
    assert {row[0]: row[1] for row in described} == {name: shown for name, (_, shown) in TYPES.items()}


# Reading


@can(DUCKDB, "read", "unpublished commits")
def test_ratified_commits_are_read_before_they_are_published(reader: Duck, stations: LakeTable, in_lake: str) -> None:
    assert stations.versions() == [2]
    assert reader(f"FROM {in_lake}.stations ORDER BY id") == [(1, "Husum"), (2, "Büsum"), (3, "Cuxhaven")]
    assert not (stations.log / f"{2:020}.json").exists()


@can(DUCKDB, "filter, project")
@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT name FROM {} WHERE id = 2", [("Büsum",)]),
        ("SELECT id FROM {} WHERE name > 'D' ORDER BY id", [(1,)]),
        ("SELECT count(*), max(name) FROM {} WHERE id <> 1", [(2, "Cuxhaven")]),
        ("SELECT id FROM {} WHERE id > 3", []),
    ],
)
def test_rows_are_filtered_and_columns_chosen(
    reader: Duck, stations: LakeTable, in_lake: str, query: str, rows: list[tuple[Any, ...]]
) -> None:
    assert reader(query.format(f"{in_lake}.stations")) == rows


@can(DUCKDB, "join")
def test_two_tables_are_joined(reader: Duck, stations: LakeTable, heights: LakeTable, in_lake: str) -> None:
    both = f"{in_lake}.stations JOIN {in_lake}.heights ON id = station"
    highest = reader(f"SELECT name, max(height) FROM {both} GROUP BY name ORDER BY name")
    assert highest == [
        ("Cuxhaven", 2.0),
        ("Husum", 3.14),
    ]


def test_nothing_beyond_the_ratified_version_is_read(reader: Duck, table: LakeTable, in_lake: str) -> None:
    stray = table.log / f"{2:020}.json"
    stray.write_text((table.log / f"{1:020}.json").read_text())
    try:
        assert reader(f"SELECT count(*) FROM {in_lake}.{table.name}") == [(2,)]
    finally:
        stray.unlink()


def test_a_table_is_seen_as_it_was_at_first_sight_until_it_is_attached_again(
    reader: Duck, table: LakeTable, in_lake: str
) -> None:
    count = f"SELECT count(*) FROM {in_lake}.{table.name}"
    assert reader(count) == [(2,)]
    append(table, CUXHAVEN)
    assert reader(count) == [(2,)]
    reader.attach("READ_ONLY")
    assert reader(count) == [(3,)]


@cannot(DUCKDB, saying='Binder Error: Failed to detach database with name "__unity_catalog_internal_main_')
def test_after_a_statement_that_failed_it_complains_when_detached_and_is_attached_again_all_the_same(
    reader: Duck, table: LakeTable, in_lake: str, refused: Refused
) -> None:
    with pytest.raises(duckdb.BinderException):
        reader(f"SELECT no_such_column FROM {in_lake}.{table.name}")
    with refused(duckdb.BinderException):
        reader("DETACH lake")
    reader.attach("READ_ONLY")
    assert reader(f"SELECT count(*) FROM {in_lake}.{table.name}") == [(2,)]


def test_rows_go_on_to_polars(reader: Duck, stations: LakeTable, in_lake: str) -> None:
    frame = reader.frame(f"SELECT * FROM {in_lake}.stations WHERE id > 1 ORDER BY id")
    assert frame.equals(pl.DataFrame({"id": [2, 3], "name": ["Büsum", "Cuxhaven"]}))


@cannot(DUCKDB, saying="Invalid Input Error: Required module 'pytz' failed to import")
def test_moments_come_to_python_with_pytz_only(reader: Duck, shore: Lake, in_lake: str, refused: Refused) -> None:
    table = make(shore, "moments", {"at": "timestamp"})
    append(table, {"at": [datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)]})
    with refused(duckdb.InvalidInputException):
        reader(f"FROM {in_lake}.moments")
    assert reader.frame(f"FROM {in_lake}.moments")["at"].dt.epoch("s").to_list() == [1767268800]


@cannot(DUCKDB, "time travel", saying="INTERNAL Error: Attempting to dereference an optional pointer that is not set")
def test_versions_cannot_be_asked_for(reader: Duck, stations: LakeTable, in_lake: str, refused: Refused) -> None:
    with refused(duckdb.InternalException):
        reader(f"FROM {in_lake}.stations AT (VERSION => 1)")
    assert reader(f"SELECT count(*) FROM {in_lake}.stations") == [(3,)]


@cannot(DUCKDB, saying="Delta tables only support at_clause with unit 'version'")
def test_timestamps_cannot_be_asked_for(reader: Duck, stations: LakeTable, in_lake: str, refused: Refused) -> None:
    with refused(duckdb.Error):
        reader(f"FROM {in_lake}.stations AT (TIMESTAMP => now())")


def test_published_versions_are_read_by_location_when_the_latest_is_told(
    duckdb_instance: duckdb.DuckDBPyConnection, shore: Lake, table: LakeTable
) -> None:
    """The way around for time travel: the catalog names the location and the latest version."""
    append(table, CUXHAVEN)
    told = table.load()
    latest, location = told["latest-table-version"], told["metadata"]["location"]
    duckdb_instance.execute(f"ATTACH '{location}' AS past (TYPE delta, MAX_CATALOG_VERSION {latest})")
    try:
        for version, ids in ((0, []), (1, [(1,), (2,)]), (2, [(1,), (2,), (3,)])):
            asked = duckdb_instance.execute(f"SELECT id FROM past AT (VERSION => {version}) ORDER BY id")
            assert asked.fetchall() == ids
    finally:
        duckdb_instance.execute("DETACH past")


@cannot(
    DUCKDB,
    saying="Catalog-managed table requires max_catalog_version to be set. "
    "Use with_max_catalog_version() when loading a catalog-managed table.",
)
@pytest.mark.parametrize("function", ["delta_scan", "delta_list_files"])
def test_access_by_location_alone_is_refused(
    duckdb_instance: duckdb.DuckDBPyConnection, stations: LakeTable, refused: Refused, function: str
) -> None:
    with refused(duckdb.IOException):
        duckdb_instance.execute(f"FROM {function}('{stations.location}')")


# Writing


@can(DUCKDB, "append")
def test_rows_are_appended_through_the_catalog_and_published(writer: Duck, table: LakeTable, in_lake: str) -> None:
    name = f"{in_lake}.{table.name}"
    assert writer(f"INSERT INTO {name} VALUES (3, 'Cuxhaven'), (4, NULL)") == [(2,)]
    assert writer(f"INSERT INTO {name} SELECT id + 10, name FROM {name} WHERE id < 3") == [(2,)]
    assert table.load()["latest-table-version"] == 3
    writer.attach("READ_ONLY")
    assert writer(f"SELECT id FROM {name} ORDER BY id") == [(1,), (2,), (3,), (4,), (11,), (12,)]
    # As with Spark, the writer of a version publishes the one before it.
    (staged,) = table.log.glob(f"_staged_commits/{2:020}.*")
    assert (table.log / f"{2:020}.json").read_bytes() == staged.read_bytes()
    assert table.versions() == [3]


def test_several_inserts_of_a_transaction_are_one_version(writer: Duck, table: LakeTable, in_lake: str) -> None:
    for statement in (
        "BEGIN",
        f"INSERT INTO {in_lake}.{table.name} VALUES (3, 'Cuxhaven')",
        f"INSERT INTO {in_lake}.{table.name} VALUES (4, 'Dagebüll')",
        "COMMIT",
    ):
        writer(statement)
    assert table.load()["latest-table-version"] == 2
    assert writer(f"SELECT count(*) FROM {in_lake}.{table.name}") == [(4,)]


def test_what_is_rolled_back_never_happened(writer: Duck, table: LakeTable, in_lake: str) -> None:
    for statement in ("BEGIN", f"INSERT INTO {in_lake}.{table.name} VALUES (3, 'Cuxhaven')", "ROLLBACK"):
        writer(statement)
    assert table.load()["latest-table-version"] == 1
    assert writer(f"SELECT count(*) FROM {in_lake}.{table.name}") == [(2,)]


@cannot(DUCKDB, saying="is already taken: the latest version is 2. Rebase and propose version 3.")
def test_a_lost_race_is_told_and_the_insert_succeeds_after_attaching_again(
    writer: Duck, table: LakeTable, in_lake: str, refused: Refused
) -> None:
    insert = f"INSERT INTO {in_lake}.{table.name} VALUES (4, 'Dagebüll')"
    writer(f"FROM {in_lake}.{table.name}")
    append(table, CUXHAVEN)
    with refused(duckdb.TransactionException):
        writer(insert)
    assert table.load()["latest-table-version"] == 2
    writer.attach()
    writer(insert)
    assert writer(f"SELECT id FROM {in_lake}.{table.name} ORDER BY id") == [(1,), (2,), (3,), (4,)]


def test_a_transaction_over_two_tables_is_a_commit_for_each_and_half_of_it_may_stay(
    writer: Duck, shore: Lake, in_lake: str, unique: str
) -> None:
    kept = []
    for loser, other in ((0, 1), (1, 0)):
        pair = [make(shore, f"{unique}_{loser}_{number}", STATIONS) for number in range(2)]
        writer.attach()
        for table in pair:
            writer(f"FROM {in_lake}.{table.name}")
        append(pair[loser], CUXHAVEN)
        writer("BEGIN")
        for table in pair:
            writer(f"INSERT INTO {in_lake}.{table.name} VALUES (1, 'Husum')")
        with pytest.raises(duckdb.TransactionException, match="409"):
            writer("COMMIT")
        assert pair[loser].load()["latest-table-version"] == 1
        kept.append(pair[other].load()["latest-table-version"])
    assert 1 in kept


def test_reading_through_a_catalog_attached_for_writing_publishes_what_was_ratified(
    writer: Duck, table: LakeTable, in_lake: str
) -> None:
    append(table, CUXHAVEN, publish=False)
    staged = (table.log / "_staged_commits" / table.staged[2]).read_bytes()
    assert writer(f"SELECT count(*) FROM {in_lake}.{table.name}") == [(3,)]
    assert (table.log / f"{2:020}.json").read_bytes() == staged
    assert table.versions() == [2]  # until somebody reports it, and the catalog has compared the bytes
    assert table.report(2).status_code == 200
    assert table.versions() == []


def test_a_catalog_attached_for_reading_writes_nothing(reader: Duck, table: LakeTable, in_lake: str) -> None:
    append(table, CUXHAVEN, publish=False)
    before = files(folder(table))
    assert reader(f"SELECT count(*) FROM {in_lake}.{table.name}") == [(3,)]
    with pytest.raises(duckdb.InvalidInputException, match="attached in read-only mode"):
        reader(f"INSERT INTO {in_lake}.{table.name} VALUES (4, 'Dagebüll')")
    assert files(folder(table)) == before


# What it leaves to others


@cannot(DUCKDB, "update, delete, merge", saying="Binder Error: Can only update base table")
def test_rows_are_not_updated(writer: Duck, table: LakeTable, in_lake: str, refused: Refused) -> None:
    with refused(duckdb.BinderException):
        writer(f"UPDATE {in_lake}.{table.name} SET name = 'Husum'")


@cannot(DUCKDB, "update, delete, merge", saying="Binder Error: Can only delete from base table")
@pytest.mark.parametrize("statement", ["DELETE FROM {} WHERE id = 1", "TRUNCATE {}"])
def test_rows_are_not_deleted(writer: Duck, table: LakeTable, in_lake: str, refused: Refused, statement: str) -> None:
    with refused(duckdb.BinderException):
        writer(statement.format(f"{in_lake}.{table.name}"))


@cannot(DUCKDB, "update, delete, merge", saying="Binder Error: Can only merge into base tables!")
def test_rows_are_not_merged(writer: Duck, table: LakeTable, in_lake: str, refused: Refused) -> None:
    with refused(duckdb.BinderException):
        writer(f"MERGE INTO {in_lake}.{table.name} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")


@cannot(DUCKDB, "create", "register external", saying="Not implemented Error: UCTableSet::CreateTable")
def test_tables_are_not_created(writer: Duck, in_lake: str, unique: str, refused: Refused) -> None:
    with refused(duckdb.NotImplementedException):
        writer(f"CREATE TABLE {in_lake}.{unique} (id BIGINT)")


@cannot(DUCKDB, "create", saying="Not implemented Error: UnityCatalog PlanCreateTableAs")
def test_tables_are_not_created_from_rows(writer: Duck, in_lake: str, unique: str, refused: Refused) -> None:
    with refused(duckdb.NotImplementedException):
        writer(f"CREATE TABLE {in_lake}.{unique} AS SELECT 1 AS id")


@cannot(DUCKDB, "drop", saying="Not implemented Error: UCTableSet::DropEntry")
def test_tables_are_not_dropped(writer: Duck, table: LakeTable, in_lake: str, refused: Refused) -> None:
    with refused(duckdb.NotImplementedException):
        writer(f"DROP TABLE {in_lake}.{table.name}")
    assert table.load()["latest-table-version"] == 1


# Errors


@cannot(DUCKDB, saying='Binder Error: Attached database name "main" cannot be used because it is a reserved name')
def test_the_catalog_main_needs_another_name(reader: Duck, refused: Refused) -> None:
    with refused(duckdb.BinderException):
        reader("ATTACH 'main' AS main (TYPE unity_catalog)")


@pytest.fixture
def by_default(shore: Lake, unique: str) -> Iterator[LakeTable]:
    """A table in the schema that is meant where none is named."""
    made = make(Lake(shore.http, schema="default"), f"{unique}_by_default", STATIONS)
    append(made, HUSUM)
    yield made
    assert shore.http.delete(f"{UNITY}/tables/main.default.{made.name}").status_code == 200


def test_the_default_schema_need_not_be_named(reader: Duck, by_default: LakeTable) -> None:
    """DuckDB asks the server for it, and can use no catalog without one."""
    assert len(reader(f"FROM lake.{by_default.name}")) == 2
    assert len(reader(f"FROM lake.default.{by_default.name}")) == 2


def test_another_default_schema_may_be_named(reader: Duck, table: LakeTable, in_lake: str) -> None:
    reader.attach(f"DEFAULT_SCHEMA '{in_lake.removeprefix('lake.')}'")
    assert len(reader(f"FROM lake.{table.name}")) == 2


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"token": "wrong"}, "The token is not valid. Use one that was made for you"),
        ({"catalog": "nowhere"}, "There is no catalog nowhere."),
    ],
)
def test_what_the_server_says_is_shown(reader: Duck, changed: dict[str, str], told: str) -> None:
    reader.attach(**changed)
    with pytest.raises(duckdb.IOException, match=re.escape(told)):
        reader("FROM duckdb_tables()")


@cannot(DUCKDB, saying="INTERNAL Error: Attempted to access index 1 within vector of size 1")
def test_an_insert_must_name_every_column_or_the_instance_is_lost(
    catalog_server: ServerProcess, table: LakeTable, in_lake: str, refused: Refused
) -> None:
    with ducks.start() as connection:
        duck = Duck(connection, catalog_server.url, catalog_server.token)
        duck.attach()
        with refused(duckdb.InternalException):
            duck(f"INSERT INTO {in_lake}.{table.name} (name) VALUES ('Cuxhaven')")
        with pytest.raises(duckdb.FatalException, match="The database must be restarted"):
            duck(f"FROM {in_lake}.{table.name}")
    assert table.load()["latest-table-version"] == 1


def test_only_the_first_page_of_a_listing_is_known(
    duckdb_instance: duckdb.DuckDBPyConnection, tmp_path: Path, unique: str
) -> None:
    """A schema with more tables than the server puts on a page is a schema with tables that DuckDB never finds."""
    server = ServerProcess(tmp_path / "home", settings={"page_size_max": "2"}).start()
    try:
        with server.lake() as lake:
            for name in ("first", "second", "third"):
                make(lake, name, STATIONS)
        duck = Duck(duckdb_instance, server.url, server.token)
        duck.attach("READ_ONLY")
        assert duck("SHOW TABLES FROM lake.default") == [("first",), ("second",)]
        duck.detach()
    finally:
        assert server.stop() == 0


# External tables


@can(DUCKDB, "read external", "append to external")
def test_external_tables_are_read_and_appended_to(writer: Duck, external: External, in_lake: str) -> None:
    name = f"{in_lake}.{external.name}"
    assert writer(f"FROM {name} ORDER BY id") == [(1, "Husum"), (2, "Büsum")]
    writer(f"INSERT INTO {name} VALUES (3, 'Cuxhaven')")
    assert writer(f"SELECT count(*) FROM {name}") == [(3,)]
    assert (external.version(), external.ids()) == (1, [1, 2, 3])
