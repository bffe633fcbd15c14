"""Staging tables in the database. A row lives until its table is created."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from tidegate.db.locations import overlapping
from tidegate.db.schema import catalogs, schemas, staging_tables
from tidegate.domain.errors import InvalidRequest, NoSuchSchema, no_such_staging_table
from tidegate.domain.names import TableId, TableName
from tidegate.domain.namespaces import Schema
from tidegate.domain.tables import StagingTable

_SELECT = (
    sa.select(staging_tables, schemas.c.name.label("schema"), catalogs.c.name.label("catalog"))
    .select_from(staging_tables)
    .join(schemas, schemas.c.id == staging_tables.c.schema_id)
    .join(catalogs, catalogs.c.id == schemas.c.catalog_id)
)


class SqlStagingTables:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def add(self, staging: StagingTable, schema: Schema) -> None:
        row = {
            "id": staging.id,
            "schema_id": schema.id,
            "name": staging.name.table,
            "location": staging.location,
            "created_by": staging.created_by,
            "created_at": staging.created_at,
        }
        try:
            self._connection.execute(staging_tables.insert().values(**row))
        except IntegrityError:
            # Ids and locations are random; what can be missing is the schema, deleted a moment ago.
            raise NoSuchSchema(schema.name) from None

    def count(self, *, made_before: int | None = None) -> int:
        waiting = sa.select(sa.func.count()).select_from(staging_tables)
        if made_before is None:
            waiting = waiting.where(staging_tables.c.schema_id.is_not(None))
        else:
            waiting = waiting.where(staging_tables.c.created_at <= made_before)
        return self._connection.scalar(waiting) or 0

    def get(self, id: TableId) -> StagingTable:
        row = self._connection.execute(_SELECT.where(staging_tables.c.id == id)).one_or_none()
        if row is None:
            raise no_such_staging_table(id)
        return _staging_table(row)

    def find_by_location(self, location: str) -> StagingTable | None:
        row = self._connection.execute(_SELECT.where(staging_tables.c.location == location)).one_or_none()
        return None if row is None else _staging_table(row)

    def overlaps(self, location: str) -> bool:
        found = sa.select(staging_tables.c.id).where(overlapping(staging_tables.c.location, location)).limit(1)
        return self._connection.execute(found).first() is not None

    def remove(self, staging: StagingTable) -> None:
        gone = self._connection.execute(staging_tables.delete().where(staging_tables.c.id == staging.id))
        if gone.rowcount == 0:
            raise InvalidRequest(
                f"The staging table at {staging.location} was finished a moment ago, or has expired. Look whether "
                f"{staging.name} is there, or stage it anew."
            )

    def take_older(self, moment: int, *, limit: int) -> Sequence[tuple[TableId, str, str]]:
        old = sa.select(staging_tables.c.id).where(staging_tables.c.created_at <= moment)
        chosen = old.order_by(staging_tables.c.created_at).limit(limit)
        # Only what this statement itself removes counts: a creation may take a row away first.
        taken = self._connection.execute(
            staging_tables.delete()
            .where(staging_tables.c.id.in_(chosen))
            .returning(staging_tables.c.id, staging_tables.c.name, staging_tables.c.location)
        )
        return [(TableId(id), name, location) for id, name, location in taken]


def _staging_table(row: sa.Row[Any]) -> StagingTable:
    return StagingTable(
        id=TableId(row.id),
        name=TableName(row.catalog, row.schema, row.name),
        location=row.location,
        created_by=row.created_by,
        created_at=row.created_at,
    )
