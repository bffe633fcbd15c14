"""deltalake (delta-rs): external tables in full; catalog-managed tables it refuses, and leaves as they are."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from deltalake.exceptions import DeltaError

from tests.clients.duck import Duck
from tests.clients.matrix import DELTALAKE, Refused, can, cannot
from tests.clients.tables import CUXHAVEN, External, append, files, folder
from tests.lake import LakeTable
from tests.servers import ServerProcess

NEEDS_THE_CATALOG = (
    "Kernel error: Max catalog version error: Max catalog version is required when loading a catalog-managed table. "
    "Use with_max_catalog_version()."
)

READS: dict[str, Callable[[str], object]] = {
    "latest": DeltaTable,
    "an old version": lambda location: DeltaTable(location, version=1),
}


@cannot(
    DELTALAKE,
    *("describe", "read", "filter, project", "join", "time travel", "unpublished commits"),
    saying=NEEDS_THE_CATALOG,
)
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("published", [True, False])
def test_catalog_managed_tables_are_not_read(table: LakeTable, refused: Refused, read: str, published: bool) -> None:
    append(table, CUXHAVEN, publish=published)
    with refused(DeltaError):
        READS[read](table.location)


@cannot(DELTALAKE, "append", "update, delete, merge", saying=NEEDS_THE_CATALOG)
@pytest.mark.parametrize("mode", ["append", "overwrite", "error", "ignore"])
def test_catalog_managed_tables_are_not_written_to(table: LakeTable, refused: Refused, mode: str) -> None:
    before = files(folder(table))
    with refused(DeltaError):
        write_deltalake(table.location, pl.DataFrame(CUXHAVEN), mode=mode)  # type: ignore[call-overload]
    assert files(folder(table)) == before


@cannot(DELTALAKE, "create", saying="A Delta Lake table already exists at that location.")
def test_no_table_is_created_where_the_catalog_has_one(table: LakeTable, external: External, refused: Refused) -> None:
    before = files(folder(table))
    with refused(DeltaError):
        DeltaTable.create(table.location, schema=DeltaTable(external.path).schema())
    assert files(folder(table)) == before


@cannot(DELTALAKE, saying="error decoding response body for url")
@pytest.mark.parametrize("operation", ["read", "append"])
def test_names_of_the_catalog_are_for_tables_in_the_cloud_only(
    catalog_server: ServerProcess, schema: str, external: External, refused: Refused, operation: str
) -> None:
    """It wants a key, and a moment at which that ends; local files have neither."""
    name = f"uc://{schema}.{external.name}"
    options = {
        "databricks_host": catalog_server.url,
        "databricks_token": catalog_server.token,
        "allow_http_url": "true",
    }
    with refused(DeltaError):
        if operation == "read":
            DeltaTable(name, storage_options=options)
        else:
            write_deltalake(name, pl.DataFrame(CUXHAVEN), mode="append", storage_options=options)
    assert external.version() == 0


@can(DELTALAKE, "read external", "append to external")
def test_external_tables_are_read_filtered_joined_and_written_to(external: External) -> None:
    write_deltalake(external.path, pl.DataFrame(CUXHAVEN), mode="append")
    stations = DeltaTable(external.path)
    assert (stations.version(), external.ids()) == (1, [1, 2, 3])
    asked = QueryBuilder().register("s", stations).execute("SELECT a.name FROM s a JOIN s b ON a.id = b.id + 1")
    assert sorted(pl.DataFrame(asked.read_all())["name"]) == ["Büsum", "Cuxhaven"]
    stations.delete("id = 2")
    assert external.ids() == [1, 3]
    assert DeltaTable(external.path, version=0).count() == 2


def test_what_it_writes_to_an_external_table_others_see_by_name(reader: Duck, external: External, in_lake: str) -> None:
    assert reader(f"SELECT count(*) FROM {in_lake}.{external.name}") == [(2,)]
    write_deltalake(external.path, pl.DataFrame(CUXHAVEN), mode="append")
    assert reader(f"SELECT count(*) FROM {in_lake}.{external.name}") == [(3,)]
