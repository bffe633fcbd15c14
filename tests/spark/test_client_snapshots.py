"""Tables that stock Spark writes, read by the client: the same files, and the same rows, as Spark sees.

Spark's view of the log is that of its own snapshot, from inside the Java process; its view of the rows is what it
answers. The client's is `table.snapshot()` and `table.scan()`: the catalog's word over HTTP, and the files. Tables that
no catalog knows are read by their files alone.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

import tidegate.spark
from tests.lake import COLUMNS, Lake
from tests.python_client_log.logs import LocalFiles
from tests.servers import ServerProcess
from tests.spark.conftest import Sql
from tests.spark.logs import Catalog, log_folder, published_file
from tests.spark.second import start_with_catalog
from tests.waiting import wait_until
from tidegate import client
from tidegate.client.data.scan import scan
from tidegate.client.log.segment import Ratified
from tidegate.client.log.snapshot import Snapshot, snapshot_of

FILE_FIELDS = ("path", "partitionValues", "size", "modificationTime", "tags", "baseRowId", "defaultRowCommitVersion")
VECTOR_FIELDS = ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality")


@pytest.fixture(scope="module")
def lake(catalog_server: ServerProcess) -> Iterator[client.Catalog]:
    with client.connect(catalog_server.url, token=catalog_server.token) as connected:
        yield connected


@pytest.fixture
def same(spark: SparkSession, lake: client.Catalog) -> Callable[..., Snapshot]:
    return partial(compare, spark, lake)


def compare(
    spark: SparkSession,
    lake: client.Catalog,
    table: str,
    version: int | None = None,
    timestamp: int | None = None,
    word: Ratified | None = None,
) -> Snapshot:
    """Compares the two views of a table, at its latest or an earlier state, and answers the client's snapshot."""
    df = spark.sql(f"SELECT * FROM {table}{as_of(version, timestamp)}")
    if word is None:
        found = lake.table(table).scan(version=version, timestamp=timestamp)
        ours = lake.table(table).snapshot(version=version, timestamp=timestamp)
    else:
        ours = snapshot_of(word, LocalFiles(), version=version, timestamp=timestamp)
        found = scan(ours, LocalFiles())
    compare_logs(spark, snapshot_of_spark(df), ours)
    compare_rows(df, found.to_arrow())
    return ours


def as_of(version: int | None, timestamp: int | None) -> str:
    if timestamp is not None:
        return f" TIMESTAMP AS OF '{datetime.fromtimestamp(timestamp / 1000, UTC)}'"
    return "" if version is None else f" VERSION AS OF {version}"


def snapshot_of_spark(df: DataFrame) -> Any:
    """The snapshot that Delta has resolved a query's table to."""
    return relation_of(df).relation().location().getSnapshot()


def relation_of(df: DataFrame) -> Any:
    """What a query of one table reads, as Spark has it."""
    return df._jdf.queryExecution().analyzed().collectLeaves().head()


def compare_logs(spark: SparkSession, theirs: Any, ours: Snapshot) -> None:
    assert ours.version == theirs.version()
    assert ours.timestamp == theirs.timestamp()
    metadata = json.loads(theirs.metadata().json())["metaData"]
    assert ours.metadata.id == metadata["id"]
    assert json.loads(ours.metadata.schema_string) == json.loads(metadata["schemaString"])
    assert (ours.partition_columns, ours.properties) == (metadata["partitionColumns"], metadata["configuration"])
    protocol = json.loads(theirs.protocol().json())["protocol"]
    assert sorted(ours.protocol.reader_features or ()) == sorted(protocol.get("readerFeatures", ()))
    assert sorted(ours.protocol.writer_features or ()) == sorted(protocol.get("writerFeatures", ()))
    domains = json.loads("[" + ",".join(_jsons(theirs.domainMetadata())) + "]")
    assert ours.domains == {d["domainMetadata"]["domain"]: d["domainMetadata"]["configuration"] for d in domains}
    transactions = json.loads("[" + ",".join(_jsons(theirs.setTransactions())) + "]")
    expected = {told["txn"]["appId"]: told["txn"]["version"] for told in transactions}
    assert {app: txn.version for app, txn in ours.transactions.items()} == expected
    rows = DataFrame(theirs.allFiles().toDF(), spark).collect()
    assert sorted(map(_file, ours.files)) == sorted(map(_file_of_spark, rows))


def _jsons(actions: Any) -> list[str]:
    return [actions.apply(index).json() for index in range(actions.size())]


def _file(file: Any) -> str:
    vector = file.deletion_vector
    told = [file.path, file.partition_values, file.size, file.modification_time, file.tags or {}]
    told += [file.base_row_id, file.default_row_commit_version, json.loads(file.stats or "null")]
    told.append(None if vector is None else [getattr(vector, _snake(name)) for name in VECTOR_FIELDS])
    return json.dumps(told, sort_keys=True)


def _file_of_spark(row: Row) -> str:
    told = [row[name] for name in FILE_FIELDS]
    told[4] = told[4] or {}
    vector = row["deletionVector"]
    told += [json.loads(row["stats"] or "null"), None if vector is None else [vector[name] for name in VECTOR_FIELDS]]
    return json.dumps(told, sort_keys=True)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def compare_rows(df: DataFrame, answer: pa.Table) -> None:
    theirs = df.toArrow()
    assert answer.schema.names == theirs.schema.names
    assert sorted(map(_plain, answer.to_pylist())) == sorted(map(_plain, theirs.to_pylist()))


def _plain(value: Any) -> str:
    """A value so that equal ones look the same: NaN like NaN, times in UTC, the order of maps as told."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{_plain(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_plain(inner) for inner in value) + "]"
    if isinstance(value, datetime):
        return repr(value if value.tzinfo is None else value.astimezone(UTC).isoformat())
    return repr(value)


EVERY_TYPE = """
SELECT id,
    CAST(-128 + id * 255 AS TINYINT) AS a_byte, CAST(-32768 + id * 65535 AS SMALLINT) AS a_short,
    CAST(id * 2147483647 AS INT) AS an_int, id * 9223372036854775807 AS a_long,
    CAST(0.1 AS FLOAT) AS a_float, CAST('NaN' AS DOUBLE) AS a_double, CAST(id * 0.1 AS DOUBLE) AS another,
    CAST(-12345678901234567890123456.7890123456 AS DECIMAL(38, 10)) AS a_decimal, CAST(1.5 AS DECIMAL(5, 2)) AS small,
    id = 1 AS a_boolean, repeat('ü', 40) AS `a string, of "odd" {name}=; x.y`, X'00FF' AS a_binary,
    DATE'0001-01-01' AS a_date, TIMESTAMP'0001-01-02 03:04:05.678901Z' AS a_time,
    TIMESTAMP'9999-12-31 23:59:59.999999Z' AS late, TIMESTAMP_NTZ'2026-03-04 05:06:07.000008' AS a_local_time,
    array(1, NULL, 3) AS an_array, map('k', named_struct('x', id, 'y', array('z', NULL))) AS a_map,
    named_struct('in', named_struct('x', id, 'none', CAST(NULL AS INT)), 'n.m', 1) AS a_struct,
    array(array(named_struct('d', DATE'2026-01-01'))) AS deep, CAST(array() AS ARRAY<INT>) AS empty
FROM range(2)
"""


def test_values_of_every_type(spark: SparkSession, sql: Sql, table: str, same: Callable[..., Snapshot]) -> None:
    sql(f"CREATE TABLE {table} AS {EVERY_TYPE}")
    nulls = ", ".join("NULL" for _ in range(len(spark.table(table).columns) - 1))
    sql(f"INSERT INTO {table} SELECT 7, {nulls}")
    assert len(same(table).files) >= 2


PARTITIONS = """
SELECT * FROM VALUES
    (1, 'plain', 1, DATE'2026-01-01', TIMESTAMP'2026-01-01 00:00:00.000001Z', true, 1.50BD),
    (2, 'a b/c=d%25:e?f#g', -1, DATE'0099-12-31', TIMESTAMP'1899-01-01 12:00:00Z', false, -0.01BD),
    (3, 'ünï \U0001f30a "q" \\\\''{}[]*', NULL, NULL, NULL, NULL, NULL),
    (4, '', 2147483647, DATE'9999-12-31', TIMESTAMP'2026-06-01 00:00:00+09:00', true, 999.99BD),
    (5, NULL, 0, DATE'1970-01-01', TIMESTAMP'1970-01-01 00:00:00Z', false, 0BD),
    (6, '__HIVE_DEFAULT_PARTITION__', 0, DATE'1970-01-01', TIMESTAMP'1970-01-01 00:00:00Z', false, 0BD)
    AS t(id, s, i, d, t, b, m)
"""


def test_partition_values_of_every_type(
    lake: client.Catalog, sql: Sql, table: str, same: Callable[..., Snapshot]
) -> None:
    """Without column mapping Spark makes folders of them, so that the paths of files are as odd as the values."""
    properties = "'delta.columnMapping.mode' = 'none'"
    sql(f"CREATE TABLE {table} PARTITIONED BY (s, i, d, t, b, m) TBLPROPERTIES ({properties}) AS {PARTITIONS}")
    ours = same(table)
    assert len(ours.files) >= 5
    wanted = lake.table(table).scan(["id"], [("d", "=", date(9999, 12, 31)), ("b", "=", True)])
    assert (len(wanted.files), wanted.to_arrow().to_pylist()) == (1, [{"id": 4}])


def test_a_table_through_its_life(
    spark: SparkSession, sql: Sql, table: str, catalog_server: ServerProcess, same: Callable[..., Snapshot]
) -> None:
    """Deletion vectors, columns renamed, dropped and added, widened types, updates, merges, applications' progress, and
    checkpoints on the way; an earlier version is read as well.
    """
    properties = "'delta.enableTypeWidening' = 'true', 'delta.checkpointInterval' = '5'"
    columns = "id, id * 10 AS amount, named_struct('x', CAST(id AS INT), 'y', 'y') AS place"
    sql(
        f"CREATE TABLE {table} TBLPROPERTIES ({properties}) CLUSTER BY (id) AS SELECT {columns} FROM range(0, 40, 1, 2)"
    )
    sql(f"DELETE FROM {table} WHERE id % 7 = 0")
    sql(f"ALTER TABLE {table} RENAME COLUMN amount TO `the amount`")
    sql(f"ALTER TABLE {table} RENAME COLUMN place.x TO east")
    sql(f"ALTER TABLE {table} DROP COLUMN place.y")
    sql(f"ALTER TABLE {table} ADD COLUMNS (place.north DOUBLE, note STRING, small TINYINT)")
    sql(f"INSERT INTO {table} VALUES (100, 1, named_struct('east', 1, 'north', 0.5), 'new', 1)")
    sql(f"ALTER TABLE {table} ALTER COLUMN small TYPE INT")
    sql(f"DELETE FROM {table} WHERE id % 5 = 0")
    sql(f"UPDATE {table} SET note = 'updated' WHERE id < 10")
    sql(
        f"""MERGE INTO {table} AS t USING (SELECT id FROM range(35, 45)) AS s ON t.id = s.id
        WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, small) VALUES (s.id, 70000)"""
    )
    appended = spark.sql("SELECT 200L AS id").write.option("txnAppId", "loader").option("txnVersion", 5)
    appended.format("delta").mode("append").saveAsTable(table)
    latest = same(table)
    noted = read_noted(catalog_server, table)
    assert any(re.fullmatch(r"0*10\.checkpoint\.[0-9a-f-]+\.json", name) for name in noted.reads)
    assert noted.lists == []
    assert latest.transactions["loader"].version == 5
    assert "delta.clustering" in latest.domains
    assert any(file.deletion_vector for file in latest.files)
    same(table, version=6)
    few = scan(latest, LocalFiles(), columns=["id"], filter=[("id", ">=", 3), ("note", "=", "updated")])
    assert len(few.files) < len(latest.files)
    assert sorted(row["id"] for row in few.to_arrow().to_pylist()) == [3, 4, 6, 8, 9]


@pytest.mark.parametrize("mode", ["none", "id"])
def test_column_mapping_of_other_kinds(sql: Sql, table: str, same: Callable[..., Snapshot], mode: str) -> None:
    sql(
        f"""CREATE TABLE {table} PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}')
        AS SELECT 1 AS id, 'a' AS p, array(named_struct('x', 1)) AS xs"""
    )
    if mode == "id":
        sql(f"ALTER TABLE {table} RENAME COLUMN xs.element.x TO z")
        sql(f"ALTER TABLE {table} RENAME COLUMN p TO q")
    sql(f"INSERT INTO {table} VALUES (2, 'b', NULL)")
    assert same(table).column_mapping == mode


CHECKPOINTS: dict[str, tuple[str, dict[str, str]]] = {
    "classic": (".checkpoint.parquet", {}),
    "in parts": (".checkpoint.0000000001.", {"spark.databricks.delta.checkpoint.partSize": "2"}),
    "V2 in Parquet": ("-", {"spark.databricks.delta.checkpointV2.topLevelFileFormat": "parquet"}),
}


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_checkpoints_of_spark_carry_the_client(
    spark: SparkSession,
    sql: Sql,
    table: str,
    catalog: Catalog,
    same: Callable[..., Snapshot],
    tmp_path: Path,
    kind: str,
) -> None:
    """Managed tables have V2 checkpoints, in JSON if nobody asks for something else (as in the test of a table's life);
    the older kinds are tried on a table that no catalog knows.
    """
    shape, conf = CHECKPOINTS[kind]
    name = table if kind.startswith("V2") else f"delta.`{tmp_path}/t`"
    properties = "'delta.checkpointInterval' = '2', 'delta.enableDeletionVectors' = 'true'"
    with settings(spark, conf):
        rows = "SELECT id, id % 2 AS p FROM range(0, 6, 1, 1)"
        sql(f"CREATE TABLE {name} USING delta PARTITIONED BY (p) TBLPROPERTIES ({properties}) AS {rows}")
        sql(f"DELETE FROM {name} WHERE id = 4")
        sql(f"INSERT INTO {name} VALUES (9, NULL)")
    word = None if name == table else Ratified(None, f"file://{tmp_path}/t")
    location = catalog.load(table)["metadata"]["location"] if word is None else word.location
    found = [file.name for file in log_folder(location).glob("*.checkpoint.*")]
    assert any(shape in name for name in found), found
    with hidden([published_file(location, version) for version in range(2)], tmp_path):
        ours = same(name, word=word)
    assert ours.version == 2
    assert any(file.deletion_vector for file in ours.files)


@contextmanager
def settings(spark: SparkSession, conf: dict[str, str]) -> Iterator[None]:
    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in conf:
            spark.conf.unset(name)


@contextmanager
def hidden(files: list[Path], folder: Path) -> Iterator[None]:
    """Without these files, as after a cleanup of the log."""
    for file in files:
        shutil.move(file, folder / file.name)
    try:
        yield
    finally:
        for file in files:
            shutil.move(folder / file.name, file)


def test_what_is_not_published_yet_is_read_and_times_are_found(
    lake: client.Catalog, sql: Sql, table: str, same: Callable[..., Snapshot]
) -> None:
    sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    for id in (2, 3):
        sql(f"INSERT INTO {table} VALUES ({id})")
    ours = lake.table(table)
    assert ours.get_ratified_commits().commits, "a stock writer leaves its last commit to be told of with the next"
    ours.append([{"id": 4}])
    assert ours.get_ratified_commits().commits[-1].inline
    assert same(table).version == 3
    moments = [moment for version in range(4) if (moment := ours.snapshot(version=version).timestamp) is not None]
    for version, moment in enumerate(moments):
        assert same(table, timestamp=moment).version == version
        assert ours.snapshot(timestamp=datetime.fromtimestamp(moment / 1000, UTC)).version == version
    for version, moment in enumerate(moments[1:]):
        assert same(table, timestamp=moment - 1).version == version
    with pytest.raises(client.TimestampNotFound):
        ours.snapshot(timestamp=moments[0] - 1)


LONG_AGO_MS = 1_700_000_000_000
CLEANED_UP_TO = 4


@pytest.fixture
def cleaning(spark: SparkSession, tmp_path: Path) -> Iterator[ServerProcess]:
    server = start_with_catalog(tmp_path / "home", "worn", log_cleaning_seconds="1")
    tidegate.spark.session(uri=server.url, token=server.token, catalogs=["worn"])
    yield server
    assert server.stop() == 0, "".join(server.log[-50:])


def test_a_log_that_the_server_has_cleaned_and_that_has_a_compaction_file(
    spark: SparkSession, sql: Sql, cleaning: ServerProcess
) -> None:
    """History of long ago goes, up to a checkpoint; the commits after it were compacted by Delta's kernel."""
    with cleaning.http() as http, client.connect(cleaning.url, token=cleaning.token) as lake:
        lake.create_schema("worn.s")
        table = written_long_ago(Lake(http, "worn", "s"), lake)
        rows = spark.table(table.name)
        old = snapshot_of_spark(rows)
        old.deltaLog().checkpoint(old, relation_of(rows).catalogTable())
        log = log_folder(table.load().metadata.location)
        wait_until(lambda: not (log / f"{CLEANED_UP_TO - 1:020}.json").exists(), "the log is cleaned")
        for number in range(5, 17):
            table.append([{"id": number, "name": "client"}])
        sql(f"DELETE FROM {table.name} WHERE id IN (2, 6)")
        sql(f"INSERT INTO {table.name} VALUES (20, 'spark')")
        wait_until(lambda: table.publish() == 18, "all is published")
        compact(spark, log, 6, 17)
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

        assert compare(spark, lake, table.name).version == 18
        compacted = f"{6:020}.{17:020}.compacted.json"
        assert compacted in read_noted(cleaning, table.name).reads
        segment = snapshot_of_spark(spark.table(table.name)).logSegment()
        assert compacted in segment.deltas().mkString()
        assert compare(spark, lake, table.name, version=CLEANED_UP_TO).timestamp == LONG_AGO_MS + CLEANED_UP_TO
        moment = table.snapshot(version=12).timestamp
        assert moment is not None
        assert compare(spark, lake, table.name, timestamp=moment).version == 12
        assert compare(spark, lake, table.name, timestamp=moment - 1).version == 11
        for gone in ({"version": CLEANED_UP_TO - 1}, {"timestamp": LONG_AGO_MS + CLEANED_UP_TO - 1}):
            with pytest.raises(client.LogError):
                table.snapshot(**gone)
            with pytest.raises(Exception, match=r"[Vv]ersion|timestamp"):
                sql(f"SELECT * FROM {table.name}{as_of(gone.get('version'), gone.get('timestamp'))}")


def written_long_ago(hand: Lake, lake: client.Catalog) -> client.Table:
    """Versions 0 to 4, a row each but the first, all published."""
    columns = {"type": "struct", "fields": [{**field, "nullable": True} for field in COLUMNS["fields"]]}
    # Spark does not look back further than that.
    kept = {"delta.deletedFileRetentionDuration": "interval 10000 days"}
    draft = hand.draft("t", last_commit_timestamp_ms=LONG_AGO_MS, columns=columns, properties=kept)
    features = draft.request["protocol"]["writer-features"]
    draft.request["protocol"]["writer-features"] = [one for one in features if one not in {"rowTracking", "clustering"}]
    draft.write_version_0()
    assert hand.create(draft.request).status_code == 200
    table = lake.table(f"{hand.catalog}.{hand.schema}.t")
    for version in range(1, CLEANED_UP_TO + 1):
        path = draft.log.parent / f"{version}.parquet"
        pq.write_table(pa.table({"id": [version], "name": ["long ago"]}), path)
        facts = {"size": path.stat().st_size, "modificationTime": LONG_AGO_MS, "dataChange": True}
        add = {"path": path.name, "partitionValues": {}, **facts, "stats": '{"numRecords":1}'}
        info = {"inCommitTimestamp": LONG_AGO_MS + version, "operation": "WRITE"}
        table.commit(version, [{"commitInfo": info}, {"add": add}])
    wait_until(lambda: table.publish() == CLEANED_UP_TO, "all is published")
    return table


def compact(spark: SparkSession, log: Path, start: int, end: int) -> None:
    """Writes a log compaction file as Delta's kernel does: no SQL of stock Spark writes one."""
    kernel = spark._jvm.io.delta.kernel
    folder, place = (kernel.internal.fs.Path(f"file:{path}") for path in (log.parent, log))
    engine = kernel.defaults.engine.DefaultEngine.create(spark._jsc.hadoopConfiguration())
    kernel.internal.compaction.LogCompactionWriter(folder, place, start, end, 0).writeLogCompactionFile(engine)


def read_noted(server: ServerProcess, table: str) -> LocalFiles:
    """What is read to make the latest snapshot."""
    files = LocalFiles()
    with client.connect(server.url, token=server.token, files=cast("client.Files", files)) as noting:
        noting.table(table).snapshot()
    return files
