"""Tables and their ratified commits in the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from tidegate.db.documents import decode_metadata, decode_uniform, encode_metadata, encode_uniform
from tidegate.db.errors import is_missing_parent
from tidegate.db.locations import overlapping
from tidegate.db.schema import catalogs, commits, schemas, table_metadata, tables
from tidegate.domain.commits import Commit, RatifiedCommit
from tidegate.domain.errors import NoSuchSchema, NoSuchTable, TableAlreadyExists
from tidegate.domain.names import TableId, TableName, Version
from tidegate.domain.namespaces import Schema
from tidegate.domain.ports import Commits
from tidegate.domain.privileges import Principal
from tidegate.domain.tables import Table, TableType

_LIVE = tables.c.dropped_at.is_(None)
_SELECT = (
    sa.select(tables, table_metadata.c.document, schemas.c.name.label("schema"), catalogs.c.name.label("catalog"))
    .select_from(tables)
    .join(table_metadata, table_metadata.c.table_id == tables.c.id)
    .join(schemas, schemas.c.id == tables.c.schema_id)
    .join(catalogs, catalogs.c.id == schemas.c.catalog_id)
    .where(_LIVE)
)
_FIND = (
    sa.select(tables.c.id)
    .join(schemas, schemas.c.id == tables.c.schema_id)
    .join(catalogs, catalogs.c.id == schemas.c.catalog_id)
    .where(_LIVE)
)
_COMMIT = [column for column in commits.c if column.name not in {"proposed_at", "ratified_at"}]
"""What a commit is, without when it happened: loads and decisions have no use for that."""
_UNPUBLISHED = (
    sa.select(*_COMMIT)
    .select_from(commits)
    .join(tables, tables.c.id == commits.c.table_id)
    .where(commits.c.version > tables.c.published)
    .order_by(commits.c.table_id, commits.c.version)
)
_CHANGING = (
    "updated_at",
    "updated_by",
    "revision",
    "metadata_version",
    "metadata_timestamp",
    "latest",
    "latest_timestamp",
    "published",
    "uniform",
)
_CHANGE = (
    tables.update()
    .where(tables.c.id == sa.bindparam("table_id"))
    .values({name: sa.bindparam(f"new_{name}") for name in _CHANGING})
)
_CHANGE_METADATA = (
    table_metadata.update()
    .where(table_metadata.c.table_id == sa.bindparam("of_table"))
    .values(document=sa.bindparam("new_document"))
)


class SqlTables:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def add(self, table: Table, schema: Schema) -> None:
        row = {
            "id": table.id,
            "schema_id": schema.id,
            "name": table.name.table,
            "type": table.type.value,
            "format": table.format,
            "location": table.location,
            "owner": table.owner,
            "created_at": table.created_at,
            "created_by": table.created_by,
            **_changing(table),
        }
        try:
            self._connection.execute(tables.insert().values(**row))
        except IntegrityError as error:
            if is_missing_parent(error):
                raise NoSuchSchema(table.name.parent) from None
            raise TableAlreadyExists(table.name) from None
        self._connection.execute(
            table_metadata.insert().values(table_id=table.id, document=encode_metadata(table.metadata))
        )

    def get(self, name: TableName) -> Table:
        row = self._connection.execute(_SELECT.where(*_named(name))).one_or_none()
        if row is None:
            raise NoSuchTable(name)
        return self._with_commits([row])[0]

    def exists(self, name: TableName) -> bool:
        return self._connection.execute(_FIND.where(*_named(name))).first() is not None

    def find_by_location(self, location: str) -> TableName | None:
        row = self._connection.execute(_SELECT.where(tables.c.location == location).limit(1)).first()
        return None if row is None else _name(row)

    def find_overlapping(self, location: str) -> TableName | None:
        row = self._connection.execute(_SELECT.where(overlapping(tables.c.location, location)).limit(1)).first()
        return None if row is None else _name(row)

    def page(self, schema: Schema, *, after: str, limit: int) -> Sequence[Table]:
        query = _SELECT.where(tables.c.schema_id == schema.id, tables.c.name > after)
        rows = self._connection.execute(query.order_by(tables.c.name).limit(limit)).all()
        return [_table(row, ()) for row in rows]

    def rename(self, table: Table, to: TableName, *, by: Principal, now: int) -> None:
        change = tables.update().where(*_still(table))
        try:
            changed = self._connection.execute(change.values(name=to.table, updated_at=now, updated_by=by.name))
        except IntegrityError:
            raise TableAlreadyExists(to) from None
        if changed.rowcount == 0:
            raise NoSuchTable(table.name)

    def drop(self, table: Table, *, by: Principal, now: int) -> None:
        change = tables.update().where(*_still(table))
        if self._connection.execute(change.values(dropped_at=now, dropped_by=by.name)).rowcount == 0:
            raise NoSuchTable(table.name)

    def drop_all(self, schema: Schema, *, by: Principal, now: int) -> None:
        live = sa.select(tables.c.id).where(tables.c.schema_id == schema.id, _LIVE)
        # Locked in id order, as commits do it, so that the two never wait for each other.
        self._connection.execute(live.order_by(tables.c.id).with_for_update()).all()
        change = tables.update().where(tables.c.schema_id == schema.id, _LIVE)
        self._connection.execute(change.values(dropped_at=now, dropped_by=by.name))

    def lock(self, ids: Sequence[TableId]) -> Mapping[TableId, Table]:
        wanted = sorted(set(ids))
        # Locked first and read afterwards: a statement that waited for a lock would see joined rows as they were
        # before it waited. SQLite ignores the lock: there the transaction itself is the lock.
        self._connection.execute(
            sa.select(tables.c.id).where(tables.c.id.in_(wanted), _LIVE).order_by(tables.c.id).with_for_update()
        ).all()
        rows = self._connection.execute(_SELECT.where(tables.c.id.in_(wanted))).all()
        return {table.id: table for table in self._with_commits(rows)}

    def ratified(self, versions: Sequence[tuple[TableId, Version]]) -> Mapping[tuple[TableId, Version], Commit]:
        if not versions:
            return {}
        query = sa.select(*_COMMIT).where(sa.tuple_(commits.c.table_id, commits.c.version).in_(versions))
        return {(TableId(row.table_id), Version(row.version)): _commit(row) for row in self._connection.execute(query)}

    def history(self, id: TableId, *, before: Version | None, limit: int) -> Sequence[RatifiedCommit]:
        query = sa.select(commits).where(commits.c.table_id == id)
        if before is not None:
            query = query.where(commits.c.version < before)
        rows = self._connection.execute(query.order_by(commits.c.version.desc()).limit(limit))
        return [RatifiedCommit(_commit(row), row.proposed_at, row.ratified_at) for row in rows]

    def save(self, before: Mapping[TableId, Table], after: Mapping[TableId, Table], won: Commits) -> None:
        changed = [table for id, table in sorted(after.items()) if table is not before[id]]
        documents = [
            {"of_table": table.id, "new_document": encode_metadata(table.metadata)}
            for table in changed
            if table.metadata is not before[table.id].metadata
        ]
        if won:
            self._connection.execute(commits.insert(), [_commit_row(id, ratified) for id, ratified in won])
        if changed:
            self._connection.execute(_CHANGE, [_change_row(table) for table in changed])
        if documents:
            self._connection.execute(_CHANGE_METADATA, documents)

    def _with_commits(self, rows: Sequence[sa.Row[Any]]) -> list[Table]:
        behind = [row.id for row in rows if row.latest > row.published]
        unpublished: dict[str, list[Commit]] = defaultdict(list)
        if behind:
            for row in self._connection.execute(_UNPUBLISHED.where(commits.c.table_id.in_(behind))):
                unpublished[row.table_id].append(_commit(row))
        return [_table(row, tuple(unpublished[row.id])) for row in rows]


def _named(name: TableName) -> tuple[sa.ColumnElement[bool], ...]:
    return (catalogs.c.name == name.catalog, schemas.c.name == name.schema, tables.c.name == name.table)


def _still(table: Table) -> tuple[sa.ColumnElement[bool], ...]:
    """That nobody has dropped or renamed it since it was read: another server may have, a moment ago."""
    return (tables.c.id == table.id, tables.c.name == table.name.table, _LIVE)


def _name(row: sa.Row[Any]) -> TableName:
    return TableName(row.catalog, row.schema, row.name)


def _table(row: sa.Row[Any], unpublished: tuple[Commit, ...]) -> Table:
    return Table(
        id=TableId(row.id),
        name=_name(row),
        type=TableType(row.type),
        format=row.format,
        location=row.location,
        owner=row.owner,
        created_at=row.created_at,
        created_by=row.created_by,
        updated_at=row.updated_at,
        updated_by=row.updated_by,
        metadata=decode_metadata(row.document),
        revision=row.revision,
        metadata_version=row.metadata_version,
        metadata_timestamp=row.metadata_timestamp,
        latest=row.latest,
        latest_timestamp=row.latest_timestamp,
        published=row.published,
        unpublished=unpublished,
        uniform=decode_uniform(row.uniform),
    )


def _changing(table: Table) -> dict[str, Any]:
    return {name: getattr(table, name) for name in _CHANGING} | {"uniform": encode_uniform(table.uniform)}


def _change_row(table: Table) -> dict[str, Any]:
    return {"table_id": table.id, **{f"new_{name}": value for name, value in _changing(table).items()}}


def _commit(row: sa.Row[Any]) -> Commit:
    return Commit(
        version=row.version,
        timestamp=row.timestamp,
        file_name=row.file_name,
        file_size=row.file_size,
        file_modified_at=row.file_modified_at,
    )


def _commit_row(table_id: TableId, ratified: RatifiedCommit) -> dict[str, Any]:
    commit = ratified.commit
    return {
        "table_id": table_id,
        "version": commit.version,
        "timestamp": commit.timestamp,
        "file_name": commit.file_name,
        "file_size": commit.file_size,
        "file_modified_at": commit.file_modified_at,
        "proposed_at": ratified.proposed_at,
        "ratified_at": ratified.ratified_at,
    }
