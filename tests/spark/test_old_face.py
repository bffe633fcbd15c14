"""Spark with `deltaRestApi.enabled=false`: the stock Delta client on specification v0.1.0, and on nothing else.

The session lives in a process of its own and reaches the server over a wire on which everything that it asks is noted.
What it did is looked at in the catalog, and with the session that speaks v1.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.conftest import Sql
from tests.spark.logs import Catalog, check_registration
from tests.spark.wire import Wire
from tests.spark.writers import StatementRefused, WriterProcess

COMMIT = "POST /delta/preview/commits"
COMMITS = "GET /delta/preview/commits"


@pytest.fixture(autouse=True)
def only_the_old_face(old: WriterProcess, old_wire: Wire) -> Iterator[None]:
    """Whatever a test does, not one call of v1.0 is among what the session asks."""
    yield
    assert [call for call in old_wire.calls if "/delta/v1" in call] == []


@pytest.fixture
def asked(old_wire: Wire) -> Wire:
    """Notes from here on."""
    old_wire.calls.clear()
    return old_wire


CREATED = {
    "plain": "(id INT NOT NULL COMMENT 'the key', name VARCHAR(9), height DECIMAL(10, 2)) COMMENT 'tides'",
    "partitioned": "(id INT, day STRING, region STRING) PARTITIONED BY (region, day)",
    "clustered": "(id INT, place STRUCT<lat: DOUBLE, name: STRING>) CLUSTER BY (place.name, id)",
    "with properties": "(id INT) TBLPROPERTIES ('team' = 'sea', 'delta.appendOnly' = 'true')",
    "every type": """(a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f FLOAT, g DOUBLE, h DECIMAL(38, 18), i STRING,
        j BINARY, k DATE, l TIMESTAMP, m TIMESTAMP_NTZ, n ARRAY<INT>, o MAP<STRING, DOUBLE>, p CHAR(3), q VARIANT)""",
}


@pytest.mark.parametrize("case", CREATED)
def test_create_registers_every_detail_of_the_declaration(
    old: WriterProcess, asked: Wire, sql: Sql, table: str, catalog: Catalog, case: str
) -> None:
    """That the catalog says the same as the log, in both faces, is checked after each test."""
    old.sql(f"CREATE TABLE {table} {CREATED[case]}")
    assert {"POST /staging-tables", "POST /tables"} <= set(asked.calls)
    assert catalog.describe(table)["table_type"] == "MANAGED"
    assert old.sql(f"DESCRIBE {table}") == sql(f"DESCRIBE {table}")
    shown, shown_by_v1 = (
        {key: value for key, value in session(f"SHOW TBLPROPERTIES {table}") if not key.startswith("option.")}
        for session in (old.sql, sql)
    )
    assert shown == shown_by_v1
    assert shown["delta.feature.catalogManaged"] == "supported"
    assert "delta.columnMapping.mode" not in shown


def test_create_as_select_has_its_rows_in_version_0(
    old: WriterProcess, asked: Wire, sql: Sql, table: str, catalog: Catalog
) -> None:
    old.sql(f"CREATE TABLE {table} PARTITIONED BY (odd) AS SELECT id, id % 2 = 1 AS odd FROM range(6)")
    assert COMMIT not in asked.calls
    assert catalog.load(table)["latest-table-version"] == 0
    for session in (old.sql, sql):
        assert session(f"SELECT id FROM {table} WHERE odd ORDER BY id") == [(1,), (3,), (5,)]


def test_every_write_is_a_commit_of_the_old_face(
    old: WriterProcess, asked: Wire, sql: Sql, table: str, catalog: Catalog
) -> None:
    old.sql(f"CREATE TABLE {table} (id INT, name STRING)")
    writes = [
        f"INSERT INTO {table} VALUES (1, 'Husum'), (2, 'Büsum'), (3, 'Tönning')",
        f"UPDATE {table} SET name = 'Dagebüll' WHERE id = 2",
        f"DELETE FROM {table} WHERE id = 3",
        f"""MERGE INTO {table} t USING (SELECT * FROM VALUES (1, 'Hooge'), (4, 'Pellworm') AS v(id, name)) s
            ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""",
        f"INSERT OVERWRITE {table} SELECT id, upper(name) FROM {table}",
    ]
    for statement in writes:
        old.sql(statement)
    assert COMMITS in asked.calls
    assert asked.calls.count(COMMIT) == len(writes) == catalog.load(table)["latest-table-version"]
    expected = [(1, "HOOGE"), (2, "DAGEBÜLL"), (4, "PELLWORM")]
    for session in (old.sql, sql):
        assert session(f"SELECT * FROM {table} ORDER BY id") == expected


def test_time_travel_and_restore(old: WriterProcess, table: str) -> None:
    old.sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    old.sql(f"INSERT INTO {table} VALUES (2)")
    assert old.sql(f"SELECT * FROM {table} VERSION AS OF 0") == [(1,)]
    old.sql(f"RESTORE TABLE {table} TO VERSION AS OF 0")
    assert old.sql(f"SELECT * FROM {table}") == [(1,)]
    operations = [(row[0], row[4]) for row in old.sql(f"DESCRIBE HISTORY {table}")]
    assert operations == [(2, "RESTORE"), (1, "WRITE"), (0, "CREATE TABLE AS SELECT")]


ALTERED = {
    "ALTER TABLE {} SET TBLPROPERTIES ('team' = 'harbour', 'grade' = 'a')": "properties",
    "ALTER TABLE {} UNSET TBLPROPERTIES ('team')": "properties",
    "COMMENT ON TABLE {} IS 'heights of the tide'": "comment",
    "ALTER TABLE {} ADD COLUMNS (height DOUBLE COMMENT 'in metres', place STRUCT<lat: DOUBLE>)": "columns",
    "ALTER TABLE {} ALTER COLUMN id COMMENT 'the key'": "columns",
    "ALTER TABLE {} ADD CONSTRAINT positive CHECK (id > 0)": "properties",
    "ALTER TABLE {} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')": "properties",
    "ALTER TABLE {} CLUSTER BY (name)": "properties",
}
"""The stock client tells the catalog description and properties only: the rest is read from the staged commit."""


@pytest.mark.parametrize("statement", ALTERED)
def test_alter_changes_the_catalog_and_the_log(
    old: WriterProcess, asked: Wire, table: str, catalog: Catalog, statement: str
) -> None:
    old.sql(f"CREATE TABLE {table} (id INT, name STRING) CLUSTER BY (id) TBLPROPERTIES ('team' = 'sea')")
    before = catalog.describe(table)
    old.sql(statement.format(table))
    assert COMMIT in asked.calls
    assert catalog.describe(table)[ALTERED[statement]] != before[ALTERED[statement]]


def test_columns_are_mapped_renamed_and_dropped(old: WriterProcess, sql: Sql, table: str) -> None:
    old.sql(f"CREATE TABLE {table} AS SELECT 1 AS id, 'Husum' AS name, 0 AS gone")
    old.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    old.sql(f"ALTER TABLE {table} RENAME COLUMN name TO station")
    old.sql(f"ALTER TABLE {table} DROP COLUMN gone")
    for session in (old.sql, sql):
        assert session(f"SELECT id, station FROM {table}") == [(1, "Husum")]
        assert len(session(f"DESCRIBE {table}")) == 2


def test_replace_keeps_the_table_and_what_it_was_told_of_delta(
    old: WriterProcess, sql: Sql, table: str, catalog: Catalog
) -> None:
    kept = {"delta.logRetentionDuration": "interval 9 days"}
    told = ", ".join(f"'{key}' = '{value}'" for key, value in kept.items())
    old.sql(f"CREATE OR REPLACE TABLE {table} TBLPROPERTIES ({told}) AS SELECT 1 AS a")
    before = catalog.state(table)["metadata"]
    old.sql(f"CREATE OR REPLACE TABLE {table} AS SELECT 2 AS b")
    old.sql(f"REPLACE TABLE {table} AS SELECT 3 AS c")
    after = catalog.load(table)["metadata"]
    assert after["table-uuid"] == before["table-uuid"]
    assert kept.items() <= after["properties"].items()
    assert sql(f"SELECT * FROM {table}") == old.sql(f"SELECT * FROM {table}") == [(3,)]
    assert old.sql(f"SELECT * FROM {table} VERSION AS OF 0") == [(1,)]


def test_drop_frees_the_name(old: WriterProcess, asked: Wire, schema: str, table: str, catalog: Catalog) -> None:
    old.sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    name = table.rpartition(".")[2]
    assert name in [row[1] for row in old.sql(f"SHOW TABLES IN {schema}")]
    old.sql(f"DROP TABLE {table}")
    assert f"DELETE /tables/{table}" in asked.calls
    assert not catalog.exists(table)
    old.sql(f"CREATE TABLE {table} AS SELECT 2 AS id")
    assert old.sql(f"SELECT * FROM {table}") == [(2,)]


def test_external_tables(old: WriterProcess, sql: Sql, table: str, catalog: Catalog, tmp_path: Path) -> None:
    place = tmp_path / "external"
    old.sql(f"CREATE TABLE {table} (id INT COMMENT 'key', day STRING) PARTITIONED BY (day) LOCATION 'file://{place}'")
    check_registration(catalog, table)
    old.sql(f"INSERT INTO {table} VALUES (1, 'mon')")
    sql(f"INSERT INTO {table} VALUES (2, 'tue')")
    old.sql(f"CREATE TABLE {table}_again LOCATION 'file://{tmp_path}/again' AS SELECT * FROM {table}")
    check_registration(catalog, f"{table}_again")
    assert sql(f"SELECT * FROM {table}_again ORDER BY id") == [(1, "mon"), (2, "tue")]
    old.sql(f"DROP TABLE {table}")
    assert (place / "_delta_log").is_dir()


REFUSED = {
    "CREATE TABLE {table} (id INT)": "TABLE_OR_VIEW_ALREADY_EXISTS",
    "CREATE TABLE {table} AS SELECT 1 AS id": "TABLE_OR_VIEW_ALREADY_EXISTS",
    "REPLACE TABLE {table}_missing AS SELECT 1 AS id": "TABLE_OR_VIEW_NOT_FOUND",
    "SELECT * FROM {table}_missing": "TABLE_OR_VIEW_NOT_FOUND",
    "DROP TABLE {table}_missing": "TABLE_OR_VIEW_NOT_FOUND",
    "CREATE TABLE main.no_such_schema.t (id INT)": "SCHEMA_NOT_FOUND",
    "CREATE OR REPLACE TABLE main.no_such_schema.t AS SELECT 1 AS id": "SCHEMA_NOT_FOUND",
    "SELECT * FROM main.no_such_schema.t": "TABLE_OR_VIEW_NOT_FOUND",
    "ALTER TABLE {table} RENAME TO {table}_new": "A table cannot be renamed over specification v0.1.0: remove",
    "CREATE TABLE {table}_new (id INT) TBLPROPERTIES ('io.unitycatalog.tableId' = 'mine')": "leave it out",
    "CREATE TABLE {table}_new (id INT) USING PARQUET": "holds Delta tables",
    "CREATE TABLE {table}_new (id INT) LOCATION '{location}/inside'": "Put external tables elsewhere",
    "ALTER TABLE {table} UNSET TBLPROPERTIES ('delta.enableInCommitTimestamps')": "delta.enableInCommitTimestamps",
    "OPTIMIZE {table}": "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
}


@pytest.fixture(scope="module")
def untouched(old: WriterProcess, schema: str) -> str:
    old.sql(f"CREATE TABLE {schema}.untouched AS SELECT 1 AS id")
    return f"{schema}.untouched"


@pytest.mark.parametrize("statement", REFUSED)
def test_what_is_refused_says_why_and_changes_nothing(
    old: WriterProcess, untouched: str, catalog: Catalog, statement: str
) -> None:
    before = catalog.state(untouched)
    told = {"table": untouched, "location": before["metadata"]["location"]}
    with pytest.raises(StatementRefused, match=REFUSED[statement]):
        old.sql(statement.format_map(told))
    assert catalog.state(untouched) == before
    assert not catalog.exists(f"{untouched}_new")
