"""The surrounding Unity Catalog API: the JSON of catalogs, schemas and tables."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tidegate.wire.constraints import TableConstraint

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class CreateCatalog(Struct, frozen=True):
    name: str
    comment: str | None = None
    properties: dict[str, str] | None = None
    storage_root: str | None = None


class UpdateCatalog(Struct, frozen=True):
    comment: str | None = None
    properties: dict[str, str] | None = None
    new_name: str | None = None


class CatalogInfo(Struct, frozen=True):
    name: str
    comment: str | None
    properties: dict[str, str]
    owner: str
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str
    id: str
    storage_root: str | None
    storage_location: str | None


class CatalogList(Struct, frozen=True):
    catalogs: list[CatalogInfo]
    next_page_token: str | None


class CreateSchema(Struct, frozen=True):
    name: str
    catalog_name: str
    comment: str | None = None
    properties: dict[str, str] | None = None
    storage_root: str | None = None


class UpdateSchema(Struct, frozen=True):
    comment: str | None = None
    properties: dict[str, str] | None = None
    new_name: str | None = None


class SchemaInfo(Struct, frozen=True):
    name: str
    catalog_name: str
    comment: str | None
    properties: dict[str, str]
    full_name: str
    owner: str
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str
    schema_id: str
    storage_root: str | None
    storage_location: str | None


class SchemaList(Struct, frozen=True):
    schemas: list[SchemaInfo]
    next_page_token: str | None


class ColumnInfo(Struct, frozen=True):
    name: str
    type_text: str
    type_json: str
    type_name: str
    type_precision: int | None
    type_scale: int | None
    type_interval_type: str | None
    type_internal_type: str | None
    """The same: specification v0.1.0 calls it so, the servers and clients that exist call it as above."""
    position: int
    comment: str | None
    nullable: bool
    partition_index: int | None


class SentColumn(Struct, frozen=True):
    """A column as clients send it, in the spellings that they have; see domain/stated_columns.py."""

    name: str | None = None
    type_text: str | None = None
    type_json: str | None = None
    type_name: str | None = None
    type: Any = None
    type_precision: Int32 | None = None
    type_scale: Int32 | None = None
    type_interval_type: str | None = None
    type_internal_type: str | None = None
    position: Int32 | None = None
    comment: str | None = None
    nullable: bool | None = None
    partition_index: Int32 | None = None


class CreateStagingTable(Struct, frozen=True):
    name: str
    catalog_name: str
    schema_name: str


class StagingTableInfo(Struct, frozen=True):
    name: str
    catalog_name: str
    schema_name: str
    id: str
    staging_location: str


class CreateTable(Struct, frozen=True):
    name: str
    catalog_name: str
    schema_name: str
    table_type: Literal["MANAGED", "EXTERNAL"]
    data_source_format: str
    storage_location: str | None
    columns: list[SentColumn] | None = None
    comment: str | None = None
    properties: dict[str, str] | None = None


class Iceberg(Struct, frozen=True, omit_defaults=True):
    metadata_location: str
    converted_delta_version: Int64
    converted_delta_timestamp: str
    base_converted_delta_version: Int64 | None = None


class Uniform(Struct, frozen=True):
    iceberg: Iceberg | None = None


class TableInfo(Struct, frozen=True):
    name: str
    catalog_name: str
    schema_name: str
    table_type: str
    data_source_format: str
    columns: list[ColumnInfo]
    storage_location: str
    comment: str | None
    properties: dict[str, str]
    owner: str
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str
    table_id: str
    uniform: Uniform | UnsetType = UNSET
    table_constraints: list[TableConstraint] | UnsetType = UNSET
    """Of one table that was asked for; not in listings."""


class TableList(Struct, frozen=True):
    tables: list[TableInfo]
    next_page_token: str | None


class MetastoreSummary(Struct, frozen=True):
    metastore_id: str


class DefaultNamespaceSetting(Struct, frozen=True):
    """DuckDB takes the name of the setting for the schema; here they are the same."""

    setting_name: str


class Empty(Struct, frozen=True):
    """An answer that says no more than that it happened."""


class PageQuery(Struct, frozen=True):
    max_results: Int32 | None = None
    page_token: str | None = None


class SchemasQuery(Struct, frozen=True):
    catalog_name: str
    max_results: Int32 | None = None
    page_token: str | None = None


class TablesQuery(Struct, frozen=True):
    catalog_name: str
    schema_name: str
    max_results: Int32 | None = None
    page_token: str | None = None


class DeleteQuery(Struct, frozen=True):
    force: bool = False


class ErrorResponse(Struct, frozen=True):
    error_code: str
    message: str
