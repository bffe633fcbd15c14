"""Catalogs and schemas: the namespaces that hold tables, and where their managed tables are put."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.locations import normalize_location
from tidegate.domain.names import SchemaName, TableId, check_name


@dataclass(frozen=True, slots=True)
class Catalog:
    id: str
    name: str
    comment: str | None
    properties: Mapping[str, str]
    storage_root: str | None
    owner: str
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str

    @property
    def storage_location(self) -> str | None:
        return None if self.storage_root is None else f"{self.storage_root}/catalogs/{self.id}"


@dataclass(frozen=True, slots=True)
class Schema:
    id: str
    name: SchemaName
    comment: str | None
    properties: Mapping[str, str]
    storage_root: str | None
    owner: str
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str

    @property
    def storage_location(self) -> str | None:
        return None if self.storage_root is None else f"{self.storage_root}/schemas/{self.id}"


def new_catalog(
    *,
    id: str,
    name: str,
    owner: str,
    now: int,
    comment: str | None = None,
    properties: Mapping[str, str] | None = None,
    storage_root: str | None = None,
) -> Catalog:
    return Catalog(
        id=id,
        name=check_name("catalog", name),
        comment=comment,
        properties=properties or {},
        storage_root=check_storage_root(storage_root),
        owner=owner,
        created_at=now,
        created_by=owner,
        updated_at=now,
        updated_by=owner,
    )


def new_schema(
    *,
    id: str,
    name: SchemaName,
    owner: str,
    now: int,
    comment: str | None = None,
    properties: Mapping[str, str] | None = None,
    storage_root: str | None = None,
) -> Schema:
    check_name("schema", name.schema)
    return Schema(
        id=id,
        name=name,
        comment=comment,
        properties=properties or {},
        storage_root=check_storage_root(storage_root),
        owner=owner,
        created_at=now,
        created_by=owner,
        updated_at=now,
        updated_by=owner,
    )


def managed_location(*, catalog: Catalog, schema: Schema, storage_root: str, table_id: TableId) -> str:
    """The schema's place wins over the catalog's, and that one over the server's storage root."""
    home = schema.storage_location or catalog.storage_location
    return f"{storage_root}/{table_id}" if home is None else f"{home}/tables/{table_id}"


def check_storage_root(storage_root: str | None) -> str | None:
    if storage_root is None:
        return None
    normal = normalize_location(storage_root)
    if not normal.startswith("file://"):
        raise InvalidRequest(
            f"storage_root {storage_root[:200]!r} is not on a store that this server can read. Use a file:/// location."
        )
    return normal
