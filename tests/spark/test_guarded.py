"""A guarded table: who has MODIFY and not MODIFY METADATA writes its rows, and nothing else of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.lake import UNITY
from tests.servers import ServerProcess
from tests.spark.logs import Catalog
from tidegate.spark.connection import connection
from tidegate.spark.settings import catalog_settings

API = "/api/tidegate/v1"
CATALOG = "guarded_lake"
TABLE = f"{CATALOG}.s.orders"
READS = {"principal": "writer", "add": ["SELECT"], "remove": []}


@pytest.fixture(scope="module")
def guarded(spark: SparkSession, catalog: Catalog, catalog_server: ServerProcess) -> Iterator[str]:
    """A guarded table of the admin's, in a catalog that the session uses as somebody with MODIFY."""
    http = catalog.http
    assert http.post(f"{UNITY}/catalogs", json={"name": CATALOG}).status_code == 200
    assert http.post(f"{UNITY}/schemas", json={"name": "s", "catalog_name": CATALOG}).status_code == 200
    assert http.post(f"{API}/identities", json={"name": "writer"}).status_code == 200
    grants = [{"principal": "writer", "add": ["USE CATALOG", "USE SCHEMA", "CREATE TABLE", "MODIFY"], "remove": []}]
    assert http.patch(f"{UNITY}/permissions/catalog/{CATALOG}", json={"changes": grants}).status_code == 200
    token = http.post(f"{API}/tokens", json={"principal": "writer"}).json()["token"]
    wanted = connection(uri=catalog_server.url, token=token, catalogs=[CATALOG])
    for key, value in catalog_settings(wanted).items():
        spark.conf.set(key, value)
    spark.sql(f"CREATE TABLE {TABLE} (id BIGINT, name STRING) TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    owned = http.patch(f"{API}/access/table/{TABLE}", json={"owner": "admin", "guarded": True})
    assert owned.json() == {"owner": "admin", "guarded": True}
    yield TABLE
    assert http.delete(f"{UNITY}/catalogs/{CATALOG}", params={"force": "true"}).status_code == 200


def test_rows_are_written_in_every_way(spark: SparkSession, guarded: str) -> None:
    spark.sql(f"INSERT INTO {guarded} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    spark.sql(f"UPDATE {guarded} SET name = 'z' WHERE id = 1")
    spark.sql(f"DELETE FROM {guarded} WHERE id = 2")
    spark.sql(f"""MERGE INTO {guarded} t USING (SELECT 3 AS id, 'm' AS name UNION SELECT 4, 'n') s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""")
    assert spark.sql(f"SELECT * FROM {guarded} ORDER BY id").collect() == [(1, "z"), (3, "m"), (4, "n")]
    spark.sql(f"INSERT OVERWRITE {guarded} VALUES (5, 'e')")
    assert spark.sql(f"SELECT * FROM {guarded}").collect() == [(5, "e")]


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE {} ADD COLUMN more STRING",
        "ALTER TABLE {} SET TBLPROPERTIES ('delta.appendOnly' = 'true')",
        "ALTER TABLE {} ADD CONSTRAINT positive CHECK (id > 0)",
        "ALTER TABLE {} CLUSTER BY (id)",
        "COMMENT ON TABLE {} IS 'mine'",
        "CREATE OR REPLACE TABLE {} AS SELECT 1 AS other",
    ],
)
def test_metadata_is_not_changed(spark: SparkSession, guarded: str, catalog: Catalog, statement: str) -> None:
    before = catalog.state(guarded)
    with pytest.raises(Exception, match="MODIFY METADATA"):
        spark.sql(statement.format(guarded))
    assert catalog.state(guarded) == before


def test_a_write_does_not_widen_the_schema(spark: SparkSession, guarded: str, catalog: Catalog) -> None:
    before = catalog.state(guarded)
    wider = spark.sql("SELECT 9 AS id, 'x' AS name, 1 AS more")
    with pytest.raises(Exception, match="MODIFY METADATA"):
        wider.write.format("delta").mode("append").option("mergeSchema", "true").saveAsTable(guarded)
    assert catalog.state(guarded) == before


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {} VALUES (7, 'r')",
        "DELETE FROM {}",
        "UPDATE {} SET name = 'r'",
        "INSERT OVERWRITE {} VALUES (7, 'r')",
    ],
)
def test_who_may_only_read_hears_so_before_anything_is_written(
    spark: SparkSession, guarded: str, catalog: Catalog, statement: str
) -> None:
    """The stock client takes the refusal of its commit for a broken network, and would try again for minutes."""
    catalog.http.patch(f"{UNITY}/permissions/table/{guarded}", json={"changes": [READS]}).raise_for_status()
    writes = {"principal": "writer", "add": [], "remove": ["MODIFY"]}
    catalog.http.patch(f"{UNITY}/permissions/catalog/{CATALOG}", json={"changes": [writes]}).raise_for_status()
    try:
        before = catalog.state(guarded)
        with pytest.raises(Exception, match=r"Permission denied: writer may not change .* It takes MODIFY on "):
            spark.sql(statement.format(guarded))
        assert catalog.state(guarded) == before
        assert spark.sql(f"SELECT count(*) FROM {guarded}").first() is not None
    finally:
        writes = {"principal": "writer", "add": ["MODIFY"], "remove": []}
        catalog.http.patch(f"{UNITY}/permissions/catalog/{CATALOG}", json={"changes": [writes]}).raise_for_status()
