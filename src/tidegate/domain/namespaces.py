"""Catalogs and schemas: the namespaces that hold tables, and where their managed tables are put."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.locations import normalize_location
from tidegate.domain.names import SchemaName, TableId


@frozen
class Details:
    """What its owner says of a namespace."""

    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict[str, str])
    storage_root: str | None = None


@frozen
class Stamps:
    """Who made it and who changed it last, and when."""

    owner: str
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str

    @staticmethod
    def new(owner: str, now: int) -> Stamps:
        return Stamps(owner=owner, created_at=now, created_by=owner, updated_at=now, updated_by=owner)

    def touched(self, by: str, now: int) -> Stamps:
        return replace(self, updated_at=now, updated_by=by)


@frozen
class Catalog:
    id: str
    name: str
    details: Details
    stamps: Stamps

    @property
    def storage_location(self) -> str | None:
        root = self.details.storage_root
        return None if root is None else f"{root}/catalogs/{self.id}"


@frozen
class Schema:
    id: str
    name: SchemaName
    details: Details
    stamps: Stamps

    @property
    def storage_location(self) -> str | None:
        root = self.details.storage_root
        return None if root is None else f"{root}/schemas/{self.id}"


@frozen
class Change:
    """A change of a namespace. What is None stays as it is."""

    new_name: str | None = None
    comment: str | None = None
    properties: Mapping[str, str] | None = None

    def apply(self, details: Details) -> Details:
        return replace(
            details,
            comment=details.comment if self.comment is None else self.comment,
            properties=details.properties if self.properties is None else self.properties,
        )


def managed_location(*, catalog: Catalog, schema: Schema, storage_root: str, table_id: TableId) -> str:
    """The schema's place wins over the catalog's, and that one over the server's storage root."""
    home = schema.storage_location or catalog.storage_location
    return f"{storage_root}/{table_id}" if home is None else f"{home}/tables/{table_id}"


def check_details(details: Details) -> Details:
    """The details, their storage root in normal form and on a store that this server can read."""
    root = details.storage_root
    if root is None:
        return details
    normal = normalize_location(root)
    if not normal.startswith("file://"):
        raise InvalidRequest(
            f"storage_root {root[:200]!r} is not on a store that this server can read. Use a file:/// location."
        )
    return replace(details, storage_root=normal)
