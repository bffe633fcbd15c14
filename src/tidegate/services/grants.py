"""Grants: who was given which privilege on what, and changes of that. For those who may manage the object."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.domain.errors import NotFound, Unavailable
from tidegate.domain.frozen import frozen
from tidegate.domain.grants import Grant, GrantChange, SecurableType, check_changes, check_number
from tidegate.domain.names import SchemaName, TableName, parse_schema_name, parse_table_name
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.rights import Allowed
from tidegate.services.environment import Environment


@frozen
class Securable:
    """`on` is the name that the authorization question is about."""

    type: SecurableType
    on: str | SchemaName | TableName

    @staticmethod
    def named(type: SecurableType, full_name: str) -> Securable:
        match type:
            case SecurableType.METASTORE:
                return Securable(type, "metastore")
            case SecurableType.CATALOG:
                return Securable(type, full_name)
            case SecurableType.SCHEMA:
                return Securable(type, parse_schema_name(full_name))
            case SecurableType.TABLE:
                return Securable(type, parse_table_name(full_name))


MANAGING = {
    SecurableType.METASTORE: Operation.MANAGE_METASTORE,
    SecurableType.CATALOG: Operation.MANAGE_CATALOG,
    SecurableType.SCHEMA: Operation.MANAGE_SCHEMA,
    SecurableType.TABLE: Operation.MANAGE_TABLE,
}


async def get_grants(
    env: Environment, caller: Principal, securable: Securable, *, principal: str | None
) -> Sequence[Grant]:
    allowed = await env.authorize(caller, MANAGING[securable.type], securable.on)
    found = await env.database.read(lambda uow: uow.grants.of(securable_id(uow, securable, allowed)))
    return [grant for grant in found if principal is None or grant.principal == principal]


async def change_grants(
    env: Environment, caller: Principal, securable: Securable, changes: Sequence[GrantChange]
) -> Sequence[Grant]:
    """All changes or none, one after the other; what is granted afterwards."""
    check_changes(changes)
    allowed = await env.authorize(caller, MANAGING[securable.type], securable.on)

    def work(uow: UnitOfWork) -> Sequence[Grant]:
        id = securable_id(uow, securable, allowed)
        for change in changes:
            uow.grants.add(id, [Grant(change.principal, privilege) for privilege in sorted(set(change.add))])
            uow.grants.remove(id, [Grant(change.principal, privilege) for privilege in sorted(set(change.remove))])
        granted = uow.grants.of(id)
        check_number(granted, grants_max=env.grants_max)
        return granted

    granted = await env.database.write(work)
    env.access.epoch.advance()
    return granted


def securable_id(uow: UnitOfWork, securable: Securable, allowed: Allowed) -> str:
    """Of the object that the caller was allowed something on. Raises NotFound if its name leads to another one."""
    id = _id(uow, securable)
    if allowed.id not in (None, id):
        raise NotFound(f"There is no {securable.type} {securable.on} any more.")
    return id


def _id(uow: UnitOfWork, securable: Securable) -> str:
    match securable.on:
        case TableName() as table:
            return uow.tables.get(table).id
        case SchemaName() as schema:
            return uow.schemas.get(schema).id
        case name if securable.type is SecurableType.CATALOG:
            return uow.catalogs.get(name).id
        case _:
            id = uow.metastore.id()
            if id is None:
                raise Unavailable("The catalog is still being set up. Try again in a moment.")
            return id
