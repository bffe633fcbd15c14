"""What the rules of rights are applied to: owners and grants along the way to an object, read with two questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from tidegate.db.known_tables import new_state
from tidegate.db.schema import catalogs, grants, group_members, identities, metastore, schemas, tables
from tidegate.domain.errors import Unavailable
from tidegate.domain.grants import Grant, Privilege, SecurableType
from tidegate.domain.identities import IdentityKind
from tidegate.domain.names import SchemaName, TableId, TableName
from tidegate.domain.privileges import Principal
from tidegate.domain.rights import Level, Names, Path

_CATALOG = [
    catalogs.c.id.label("catalog_id"),
    catalogs.c.name.label("catalog"),
    catalogs.c.owner.label("catalog_owner"),
]
_SCHEMA = [schemas.c.id.label("schema_id"), schemas.c.name.label("schema"), schemas.c.owner.label("schema_owner")]
_TABLE = [tables.c.id.label("table_id"), tables.c.name.label("table"), tables.c.owner.label("table_owner")]
_OWNED = {
    SecurableType.CATALOG: catalogs,
    SecurableType.SCHEMA: schemas,
    SecurableType.TABLE: tables,
}


class SqlRights:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def names(self, principal: Principal) -> Names | None:
        wanted = {principal.name, *principal.groups}
        found = self._connection.execute(sa.select(identities.c.name, identities.c.kind).where(_in(identities, wanted)))
        kinds = {name: IdentityKind(kind) for name, kind in found}
        told = {name for name in principal.groups if kinds.get(name) is IdentityKind.GROUP}
        own = kinds.get(principal.name)
        if own is IdentityKind.GROUP or (own is None and not told and not self._was_given(principal.name)):
            return None
        member = sa.select(group_members.c.group_name).where(group_members.c.member == principal.name)
        return frozenset({principal.name, *told, *self._connection.scalars(member)})

    def _was_given(self, name: str) -> bool:
        """Whom an identity provider vouches for may be known by name alone: see `unknown_users`."""
        return (
            self._connection.execute(sa.select(grants.c.principal).where(grants.c.principal == name).limit(1)).first()
            is not None
        )

    def path(self, to: str | SchemaName | TableName | None, names: Names) -> Path:
        row = None if to is None else self._connection.execute(_way_to(to)).first()
        return self._with_grants([[] if row is None else _levels(row)], names)[0]

    def paths(self, ids: Sequence[TableId], names: Names) -> Mapping[TableId, Path]:
        if not ids:
            return {}
        query = (
            sa.select(*_CATALOG, *_SCHEMA, *_TABLE)
            .select_from(tables)
            .outerjoin(schemas, schemas.c.id == tables.c.schema_id)
            .outerjoin(catalogs, catalogs.c.id == schemas.c.catalog_id)
            .where(tables.c.id.in_(ids))
        )
        rows = self._connection.execute(query).all()
        found = self._with_grants([_levels(row) for row in rows], names)
        return {TableId(row.table_id): path for row, path in zip(rows, found, strict=True)}

    def give(self, securable_id: str, type: SecurableType, *, owner: str, by: Principal, now: int) -> None:
        owned = _OWNED[type]
        values: dict[str, Any] = {"owner": owner, "updated_at": now, "updated_by": by.name}
        if owned is tables:
            values["state"] = new_state()
        self._connection.execute(owned.update().where(owned.c.id == securable_id).values(values))

    def guard(self, id: TableId, *, guarded: bool) -> None:
        change = tables.update().where(tables.c.id == id)
        self._connection.execute(change.values(guarded=int(guarded), state=new_state()))

    def _with_grants(self, ways: Sequence[Sequence[Level]], names: Names) -> list[Path]:
        id = self._connection.scalar(sa.select(metastore.c.id))
        if id is None:
            raise Unavailable("The catalog is still being set up. Try again in a moment.")
        top = Level(SecurableType.METASTORE, id, "metastore", None)
        ids = {id, *(level.id for way in ways for level in way)}
        given = self._given(ids, names)
        return [
            [Level(one.type, one.id, one.name, one.owner, given.get(one.id, ())) for one in (top, *way)] for way in ways
        ]

    def _given(self, ids: Iterable[str], names: Names) -> dict[str, list[Grant]]:
        query = sa.select(grants).where(grants.c.securable_id.in_(ids), grants.c.principal.in_(names))
        given: dict[str, list[Grant]] = {}
        for row in self._connection.execute(query.order_by(grants.c.principal, grants.c.privilege)):
            given.setdefault(row.securable_id, []).append(Grant(row.principal, Privilege(row.privilege)))
        return given


def _in(table: sa.Table, names: Iterable[str]) -> sa.ColumnElement[bool]:
    return table.c.name.in_(list(names))


def _way_to(to: str | SchemaName | TableName) -> sa.Select[Any]:
    """One row, with nulls for what is not there."""
    if isinstance(to, str):
        return sa.select(*_CATALOG).where(catalogs.c.name == to)
    in_catalog = sa.and_(schemas.c.catalog_id == catalogs.c.id, schemas.c.name == to.schema)
    of_catalog = catalogs.c.name == to.catalog
    if isinstance(to, SchemaName):
        return sa.select(*_CATALOG, *_SCHEMA).select_from(catalogs.outerjoin(schemas, in_catalog)).where(of_catalog)
    in_schema = sa.and_(tables.c.schema_id == schemas.c.id, tables.c.name == to.table, tables.c.dropped_at.is_(None))
    way = catalogs.outerjoin(schemas, in_catalog).outerjoin(tables, in_schema)
    return sa.select(*_CATALOG, *_SCHEMA, *_TABLE).select_from(way).where(of_catalog)


def _levels(row: sa.Row[Any]) -> list[Level]:
    found = row._mapping  # pyright: ignore[reportPrivateUsage]
    levels: list[Level] = []
    for type in (SecurableType.CATALOG, SecurableType.SCHEMA, SecurableType.TABLE):
        id = found.get(f"{type.value}_id")
        if id is not None:
            above = f"{levels[-1].name}." if levels else ""
            name = above + found[type.value]
            levels.append(Level(type, id, name, found[f"{type.value}_owner"]))
    return levels
