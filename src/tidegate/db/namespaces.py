"""Catalogs and schemas in the database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from tidegate.db.errors import is_missing_parent
from tidegate.db.schema import catalogs, grants, metastore, schemas, tables
from tidegate.db.shown import is_shown
from tidegate.db.tables import change_all
from tidegate.domain.errors import (
    AlreadyExists,
    CatalogAlreadyExists,
    NoSuchCatalog,
    NoSuchSchema,
    NotEmpty,
    SchemaAlreadyExists,
)
from tidegate.domain.grants import SecurableType
from tidegate.domain.names import SchemaName
from tidegate.domain.namespaces import Catalog, Details, Schema, Stamps
from tidegate.domain.rights import SHOWN_BY, Names


class SqlMetastore:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def id(self) -> str | None:
        return self._connection.scalar(sa.select(metastore.c.id))

    def create(self, id: str, *, now: int) -> None:
        try:
            self._connection.execute(metastore.insert().values(one=1, id=id, created_at=now))
        except IntegrityError:
            raise AlreadyExists("metastore") from None


class SqlCatalogs:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def add(self, catalog: Catalog) -> None:
        try:
            self._connection.execute(catalogs.insert().values(**_row(catalog)))
        except IntegrityError:
            raise CatalogAlreadyExists(catalog.name) from None

    def get(self, name: str) -> Catalog:
        return self._one(name, sa.select(catalogs))

    def lock(self, name: str) -> Catalog:
        return self._one(name, sa.select(catalogs).with_for_update())

    def page(self, *, after: str, limit: int, only_for: Names | None = None) -> Sequence[Catalog]:
        query = sa.select(catalogs).where(catalogs.c.name > after).order_by(catalogs.c.name).limit(limit)
        if only_for is not None:
            query = query.where(is_shown(catalogs, only_for, SHOWN_BY[SecurableType.CATALOG]))
        return [_catalog(row) for row in self._connection.execute(query)]

    def change(self, catalog: Catalog) -> None:
        change = catalogs.update().where(catalogs.c.id == catalog.id).values(**_row(catalog))
        try:
            changed = self._connection.execute(change)
        except IntegrityError:
            raise CatalogAlreadyExists(catalog.name) from None
        if changed.rowcount == 0:
            raise NoSuchCatalog(catalog.name)
        # Its tables carry its name.
        below = sa.select(schemas.c.id).where(schemas.c.catalog_id == catalog.id)
        change_all(self._connection, tables.c.schema_id.in_(below))

    def remove(self, catalog: Catalog) -> None:
        self._connection.execute(grants.delete().where(grants.c.securable_id == catalog.id))
        try:
            self._connection.execute(catalogs.delete().where(catalogs.c.id == catalog.id))
        except IntegrityError:
            raise NotEmpty("Catalog", catalog.name, "schemas") from None

    def _one(self, name: str, query: sa.Select[Any]) -> Catalog:
        row = self._connection.execute(query.where(catalogs.c.name == name)).one_or_none()
        if row is None:
            raise NoSuchCatalog(name)
        return _catalog(row)


class SqlSchemas:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def add(self, schema: Schema) -> None:
        catalog_id = self._catalog_id(schema.name)
        try:
            self._connection.execute(schemas.insert().values(catalog_id=catalog_id, **_row(schema)))
        except IntegrityError as error:
            if is_missing_parent(error):
                raise NoSuchCatalog(schema.name.catalog) from None
            raise SchemaAlreadyExists(schema.name) from None

    def get(self, name: SchemaName) -> Schema:
        query = (
            sa.select(schemas, catalogs.c.name.label("catalog"))
            .select_from(schemas)
            .join(catalogs, catalogs.c.id == schemas.c.catalog_id)
            .where(catalogs.c.name == name.catalog, schemas.c.name == name.schema)
        )
        row = self._connection.execute(query).one_or_none()
        if row is None:
            self._catalog_id(name)
            raise NoSuchSchema(name)
        return _schema(row, row.catalog)

    def lock(self, name: SchemaName) -> Schema:
        wanted = self.get(name)
        self._connection.execute(sa.select(schemas.c.id).where(schemas.c.id == wanted.id).with_for_update()).all()
        # Read again: while we waited for the lock, it may have been changed.
        return self.get(name)

    def page(self, catalog: Catalog, *, after: str, limit: int, only_for: Names | None = None) -> Sequence[Schema]:
        query = (
            sa.select(schemas)
            .where(schemas.c.catalog_id == catalog.id, schemas.c.name > after)
            .order_by(schemas.c.name)
            .limit(limit)
        )
        if only_for is not None:
            query = query.where(is_shown(schemas, only_for, SHOWN_BY[SecurableType.SCHEMA]))
        return [_schema(row, catalog.name) for row in self._connection.execute(query)]

    def change(self, schema: Schema) -> None:
        change = schemas.update().where(schemas.c.id == schema.id).values(**_row(schema))
        try:
            changed = self._connection.execute(change)
        except IntegrityError:
            raise SchemaAlreadyExists(schema.name) from None
        if changed.rowcount == 0:
            raise NoSuchSchema(schema.name)
        change_all(self._connection, tables.c.schema_id == schema.id)

    def remove(self, schema: Schema) -> None:
        self._connection.execute(grants.delete().where(grants.c.securable_id == schema.id))
        try:
            self._connection.execute(schemas.delete().where(schemas.c.id == schema.id))
        except IntegrityError:
            # A table that came in between: its row may not lose its schema while it lives.
            raise NotEmpty("Schema", schema.name, "tables") from None

    def _catalog_id(self, name: SchemaName) -> str:
        catalog_id = self._connection.scalar(sa.select(catalogs.c.id).where(catalogs.c.name == name.catalog))
        if catalog_id is None:
            raise NoSuchCatalog(name.catalog)
        return catalog_id


def _row(thing: Catalog | Schema) -> dict[str, Any]:
    return {
        "id": thing.id,
        "name": thing.name if isinstance(thing, Catalog) else thing.name.schema,
        "comment": thing.details.comment,
        "properties": json.dumps(dict(thing.details.properties)),
        "storage_root": thing.details.storage_root,
        "owner": thing.stamps.owner,
        "created_at": thing.stamps.created_at,
        "created_by": thing.stamps.created_by,
        "updated_at": thing.stamps.updated_at,
        "updated_by": thing.stamps.updated_by,
    }


def _catalog(row: sa.Row[Any]) -> Catalog:
    return Catalog(row.id, row.name, _details(row), _stamps(row))


def _schema(row: sa.Row[Any], catalog: str) -> Schema:
    return Schema(row.id, SchemaName(catalog, row.name), _details(row), _stamps(row))


def _details(row: sa.Row[Any]) -> Details:
    return Details(row.comment, json.loads(row.properties), row.storage_root)


def _stamps(row: sa.Row[Any]) -> Stamps:
    return Stamps(row.owner, row.created_at, row.created_by, row.updated_at, row.updated_by)
