"""Polars: looks around through its Unity Catalog client, and reads and writes external tables by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake.exceptions import DeltaError

from tests.clients.duck import Duck
from tests.clients.matrix import POLARS, Refused, can, cannot
from tests.clients.tables import CUXHAVEN, External, append, files, folder
from tests.clients.test_deltalake import NEEDS_THE_CATALOG
from tests.lake import UNITY, Lake, LakeTable
from tests.servers import ServerProcess

pytestmark = pytest.mark.filterwarnings("ignore:.*functionality is considered \\*\\*unstable")

Uses = dict[str, Callable[[pl.Catalog, str, LakeTable], object]]


@pytest.fixture
def polars(catalog_server: ServerProcess) -> pl.Catalog:
    return pl.Catalog(catalog_server.url, bearer_token=catalog_server.token, require_https=False)


@pytest.fixture
def name(schema: str) -> str:
    """The schema of the module, without its catalog."""
    return schema.rpartition(".")[2]


@can(POLARS, "list tables")
def test_catalogs_schemas_and_tables_are_listed(polars: pl.Catalog, table: LakeTable, name: str) -> None:
    assert "main" in [found.name for found in polars.list_catalogs()]
    assert name in [found.name for found in polars.list_namespaces("main")]
    assert table.name in [found.name for found in polars.list_tables("main", name)]


@can(POLARS, "describe")
def test_tables_are_described(polars: pl.Catalog, table: LakeTable, name: str) -> None:
    told = polars.get_table_info("main", name, table.name)
    assert (told.table_id, told.table_type, told.storage_location) == (table.id, "MANAGED", table.location)
    assert told.get_polars_schema() == pl.Schema({"id": pl.Int64, "name": pl.String})
    assert told.properties is not None
    assert told.properties["delta.feature.catalogManaged"] == "supported"


READS: Uses = {
    "by name": lambda polars, name, table: polars.scan_table("main", name, table.name).collect(),
    "by location": lambda polars, name, table: pl.read_delta(table.location),
    "lazily": lambda polars, name, table: pl.scan_delta(table.location).filter(pl.col("id") > 1).collect(),
    "an old version": lambda polars, name, table: pl.read_delta(table.location, version=1),
    "an old version by name": lambda polars, name, table: polars.scan_table(
        "main", name, table.name, delta_table_version=1
    ).collect(),
}


@cannot(
    POLARS,
    *("read", "filter, project", "join", "time travel", "unpublished commits"),
    saying=NEEDS_THE_CATALOG,
)
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("published", [True, False])
def test_catalog_managed_tables_are_not_read(
    polars: pl.Catalog, table: LakeTable, name: str, refused: Refused, read: str, published: bool
) -> None:
    append(table, CUXHAVEN, publish=published)
    with refused(DeltaError):
        READS[read](polars, name, table)


def test_catalog_managed_tables_are_read_through_duckdb(reader: Duck, table: LakeTable, in_lake: str) -> None:
    append(table, CUXHAVEN, publish=False)
    frame = reader.frame(f"FROM {in_lake}.{table.name}")
    assert frame.filter(pl.col("id") > 1).sort("id")["name"].to_list() == ["Büsum", "Cuxhaven"]


def test_frames_are_appended_to_catalog_managed_tables_through_duckdb(
    writer: Duck, table: LakeTable, in_lake: str, tmp_path: Path
) -> None:
    pl.DataFrame(CUXHAVEN).write_parquet(tmp_path / "rows.parquet")
    writer(f"INSERT INTO {in_lake}.{table.name} FROM '{tmp_path}/rows.parquet'")
    assert writer(f"SELECT id FROM {in_lake}.{table.name} ORDER BY id") == [(1,), (2,), (3,)]


FRAME = pl.DataFrame(CUXHAVEN)
MERGE: dict[str, Any] = {"predicate": "s.id = t.id", "source_alias": "s", "target_alias": "t"}
WRITES: Uses = {
    "append": lambda polars, name, table: FRAME.write_delta(table.location, mode="append"),
    "overwrite": lambda polars, name, table: FRAME.write_delta(table.location, mode="overwrite"),
    "merge": lambda polars, name, table: FRAME.write_delta(table.location, mode="merge", delta_merge_options=MERGE),
    "append by name": lambda polars, name, table: polars.write_table(
        FRAME, "main", name, table.name, delta_mode="append"
    ),
}


@cannot(POLARS, "append", "update, delete, merge", saying=NEEDS_THE_CATALOG)
@pytest.mark.parametrize("write", WRITES)
def test_catalog_managed_tables_are_not_written_to(
    polars: pl.Catalog, table: LakeTable, name: str, refused: Refused, write: str
) -> None:
    before = files(folder(table))
    with refused(DeltaError):
        WRITES[write](polars, name, table)
    assert files(folder(table)) == before


@cannot(POLARS, "create", saying="A table needs a storage_location: a managed table that of its staging table")
def test_catalog_managed_tables_are_not_created(
    polars: pl.Catalog, shore: Lake, name: str, unique: str, refused: Refused
) -> None:
    with refused(pl.exceptions.ComputeError):
        polars.create_table("main", name, unique, schema=FRAME.schema, table_type="MANAGED", data_source_format="DELTA")
    assert shore.load(unique).status_code == 404


@can(POLARS, "drop")
def test_catalog_managed_tables_are_dropped(polars: pl.Catalog, shore: Lake, table: LakeTable, name: str) -> None:
    polars.delete_table("main", name, table.name)
    assert shore.load(table.name).status_code == 404


@can(POLARS, "register external")
@pytest.mark.parametrize("written", ["before", "afterwards"])
def test_external_tables_are_registered_before_or_after_they_are_written(
    polars: pl.Catalog, name: str, unique: str, tmp_path: Path, written: str
) -> None:
    place = f"file://{tmp_path}/stations"
    if written == "before":
        FRAME.write_delta(place)
    told = polars.create_table(
        "main",
        name,
        unique,
        schema=FRAME.schema,
        table_type="EXTERNAL",
        data_source_format="DELTA",
        storage_root=place,
    )
    assert (told.table_type, told.storage_location) == ("EXTERNAL", place)
    if written == "afterwards":
        polars.write_table(FRAME, "main", name, unique)
    assert polars.scan_table("main", name, unique).collect().equals(FRAME)


@can(POLARS, "read external", "append to external")
def test_external_tables_are_read_and_written_to_by_name(polars: pl.Catalog, external: External, name: str) -> None:
    polars.write_table(FRAME, "main", name, external.name, delta_mode="append")
    rows = polars.scan_table("main", name, external.name)
    assert sorted(rows.filter(pl.col("id") > 1).select("name").collect()["name"]) == ["Büsum", "Cuxhaven"]
    old = polars.scan_table("main", name, external.name, delta_table_version=0)
    assert old.collect().height == 2


def test_catalogs_and_schemas_come_and_go(polars: pl.Catalog, shore: Lake, unique: str) -> None:
    polars.create_catalog(unique, comment="of the harbour")
    polars.create_namespace(unique, "tides")
    assert shore.http.get(f"{UNITY}/schemas/{unique}.tides").status_code == 200
    polars.delete_namespace(unique, "tides")
    polars.delete_catalog(unique)
    assert shore.http.get(f"{UNITY}/catalogs/{unique}").status_code == 404
