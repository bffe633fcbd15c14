"""Keys of tables: declared and removed by those who manage the tables, both of them for a foreign key."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.domain.constraints import (
    Constraint,
    Referring,
    check_unreferred,
    find_constraint,
    new_foreign_key,
    new_primary_key,
)
from tidegate.domain.errors import InvalidRequest, NoSuchTable, NotFound, PermissionDenied
from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableId, TableName
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal, Question
from tidegate.domain.rights import Allowed
from tidegate.domain.tables import Table, TableType, require_delta
from tidegate.services.authorized_table import authorized_table, still
from tidegate.services.environment import Environment


@frozen
class NewPrimaryKey:
    name: str | None
    columns: Sequence[str]


@frozen
class NewForeignKey:
    name: str | None
    columns: Sequence[str]
    parent: TableName
    parent_columns: Sequence[str] | None
    """None: those of the parent's primary key."""


@frozen
class Shown:
    """`parent` is None for a primary key."""

    constraint: Constraint
    parent: TableName | None


@frozen
class TableConstraints:
    own: Sequence[Shown]
    referring: Sequence[Referring]


async def get_constraints(env: Environment, caller: Principal, name: TableName) -> TableConstraints:
    """The keys of a table and those that refer to it, as far as the caller may see the other tables."""
    table = require_delta(await authorized_table(env, caller, Operation.DESCRIBE_TABLE, name))
    referring = await env.database.read(lambda uow: uow.constraints.referring(table.id))
    visible = [one for one in referring if await _sees(env, caller, one.table)]
    return TableConstraints(await shown_constraints(env, caller, table), visible)


async def shown_constraints(env: Environment, caller: Principal, table: Table) -> Sequence[Shown]:
    """Its own keys, without those that refer to a table which the caller may not see."""
    if not table.constraints:
        return ()
    parents = await env.database.read(lambda uow: _names(uow, {one.parent for one in table.constraints}))
    shown: list[Shown] = []
    for one in table.constraints:
        parent = None if one.parent is None else parents.get(one.parent)
        if one.parent is None or (parent is not None and await _sees(env, caller, parent)):
            shown.append(Shown(one, parent))
    return shown


def _names(uow: UnitOfWork, ids: set[TableId | None]) -> dict[TableId, TableName]:
    names: dict[TableId, TableName] = {}
    for id in ids:
        if id is not None:
            names[id] = uow.tables.get_by_id(id).name
    return names


async def _sees(env: Environment, caller: Principal, name: TableName) -> bool:
    try:
        await env.authorizer.require(caller, Question(Operation.DESCRIBE_TABLE, name))
    except (NotFound, PermissionDenied):
        return False
    return True


async def add_constraint(
    env: Environment, caller: Principal, name: TableName, new: NewPrimaryKey | NewForeignKey
) -> Shown:
    allowed = await env.authorize(caller, Operation.MANAGE_TABLE, name)
    if isinstance(new, NewPrimaryKey):
        return await env.database.write(lambda uow: _add_primary_key(uow, allowed, name, new))
    # A key keeps its parent from being dropped: so it takes the word of who manages that.
    parent_allowed = await env.authorize(caller, Operation.MANAGE_TABLE, new.parent)
    return await env.database.write(lambda uow: _add_foreign_key(uow, (allowed, name), (parent_allowed, new)))


def _add_primary_key(uow: UnitOfWork, allowed: Allowed, name: TableName, new: NewPrimaryKey) -> Shown:
    table = _locked(uow, {name: allowed})[name]
    key = new_primary_key(name, table.constraints, table.metadata.columns, wanted=new.columns, name=new.name)
    uow.constraints.add(table.id, key)
    return Shown(key, None)


def _add_foreign_key(uow: UnitOfWork, child: tuple[Allowed, TableName], key: tuple[Allowed, NewForeignKey]) -> Shown:
    (allowed, name), (parent_allowed, new) = child, key
    locked = _locked(uow, {name: allowed, new.parent: parent_allowed})
    table, parent = locked[name], locked[new.parent]
    made = new_foreign_key(
        name,
        table.constraints,
        table.metadata.columns,
        wanted=new.columns,
        name=new.name,
        parent=(parent.id, parent.name, parent.constraints, parent.metadata.columns),
        parent_wanted=new.parent_columns,
    )
    uow.constraints.add(table.id, made)
    return Shown(made, parent.name)


async def remove_constraint(
    env: Environment, caller: Principal, name: TableName, constraint: str, *, cascade: bool
) -> None:
    """With `cascade` a primary key takes the foreign keys along that refer to it."""
    allowed = await env.authorize(caller, Operation.MANAGE_TABLE, name)

    def work(uow: UnitOfWork) -> None:
        children = _children(uow, still(allowed, uow.tables.get(name)).id)
        table = _locked(uow, {name: allowed}, also=children)[name]
        found = find_constraint(name, table.constraints, constraint)
        uow.constraints.remove(table.id, found.name)
        if found.is_primary:
            _let_go(uow, table, cascade=cascade)

    await env.database.write(work)


def _let_go(uow: UnitOfWork, table: Table, *, cascade: bool) -> None:
    own = [one.name for one in table.constraints if one.parent == table.id]
    if own and not cascade:
        raise InvalidRequest(
            f"The primary key of {table.name} cannot be removed: its foreign key {own[0]} refers to it. Remove that "
            "first, or remove both with cascade=true."
        )
    for name in own:
        uow.constraints.remove(table.id, name)
    detach(
        uow,
        table,
        force=cascade,
        doing="left without its primary key",
        way_out="Remove them first, or all at once with cascade=true.",
    )


def detach(uow: UnitOfWork, table: Table, *, force: bool, doing: str, way_out: str) -> None:
    """Foreign keys of others go, with `force`; without it there are none. Those of dropped tables always go."""
    if not force:
        check_unreferred(table.name, uow.constraints.referring(table.id), doing=doing, way_out=way_out)
    uow.constraints.remove_referring([table.id])


def lock_with_children(uow: UnitOfWork, id: TableId) -> Table | None:
    """The table and those whose foreign keys refer to it, locked in the order in which everybody locks."""
    return uow.tables.lock([id, *_children(uow, id)]).get(id)


def _children(uow: UnitOfWork, id: TableId) -> list[TableId]:
    return [one.table_id for one in uow.constraints.referring(id)]


def _locked(
    uow: UnitOfWork, wanted: dict[TableName, Allowed], *, also: Sequence[TableId] = ()
) -> dict[TableName, Table]:
    """Managed tables that stay with the catalog, and are those that the caller was allowed something on."""
    ids = [still(allowed, uow.tables.get(name)).id for name, allowed in wanted.items()]
    by_name = {table.name: table for table in uow.tables.lock([*ids, *also]).values()}
    for name, allowed in wanted.items():
        if name not in by_name:
            raise NoSuchTable(name)
        _check_managed(still(allowed, by_name[name]))
    return by_name


def _check_managed(table: Table) -> None:
    if require_delta(table).type is not TableType.MANAGED:
        raise InvalidRequest(
            f"{table.name} is external: the catalog does not decide on its columns, and keeps no keys."
        )
    if table.releasing is not None:
        raise InvalidRequest(f"{table.name} is being given back to its file system, and its keys stay as they are.")
