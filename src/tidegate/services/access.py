"""Who owns an object, whether it is guarded, and who could do what with it, and why."""

from __future__ import annotations

from tidegate.domain.errors import InvalidRequest, NoSuchIdentity
from tidegate.domain.frozen import frozen
from tidegate.domain.grants import Privilege, SecurableType
from tidegate.domain.identities import ADMIN_NAME, RESERVED
from tidegate.domain.names import SchemaName, TableId, TableName
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.rights import Explained, Hidden, Path, explain, may_see
from tidegate.services.environment import Environment
from tidegate.services.grants import MANAGING, Securable, securable_id


@frozen
class ObjectAccess:
    """`owner` is None for the metastore: it is the administrators'."""

    owner: str | None
    guarded: bool


async def get_access(env: Environment, caller: Principal, securable: Securable) -> ObjectAccess:
    await env.authorize(caller, _SEEING[securable.type], securable.on)
    return await env.database.read(lambda uow: _access(uow, securable))


async def change_access(
    env: Environment, caller: Principal, securable: Securable, *, owner: str | None, guarded: bool | None
) -> ObjectAccess:
    """What is None stays as it is. The next owner is one whom the catalog knows, or the admin."""
    if owner is not None and securable.type is SecurableType.METASTORE:
        raise InvalidRequest("The metastore belongs to the administrators. Grant MANAGE on it instead.")
    if guarded is not None and securable.type is not SecurableType.TABLE:
        raise InvalidRequest(f"Only tables are guarded, and this is a {securable.type.value}.")
    allowed = await env.authorize(caller, MANAGING[securable.type], securable.on)

    def work(uow: UnitOfWork) -> ObjectAccess:
        id = securable_id(uow, securable, allowed)
        if owner is not None:
            if owner != ADMIN_NAME:
                uow.identities.get(owner)
            uow.rights.give(id, securable.type, owner=owner, by=caller, now=env.clock())
        if guarded is not None:
            uow.rights.guard(TableId(id), guarded=guarded)
        return _access(uow, securable)

    changed = await env.database.write(work)
    env.access.epoch.advance()
    return changed


async def can(
    env: Environment, caller: Principal, securable: Securable, privilege: Privilege, *, principal: str | None
) -> Explained:
    """Everybody asks about themselves; who asks about others may manage the object."""
    whose = caller if principal in (None, caller.name) else Principal(principal)
    if whose is caller:
        await env.authorize(caller, Operation.BE_KNOWN, "metastore")
    else:
        await env.authorize(caller, MANAGING[securable.type], securable.on)
    if whose.name in RESERVED:
        return Explained(True, f"{whose.name} may do everything.")
    return await env.database.read(lambda uow: _explained(uow, whose, securable, privilege, told=whose is not caller))


def _explained(
    uow: UnitOfWork, whose: Principal, securable: Securable, privilege: Privilege, *, told: bool
) -> Explained:
    names = uow.rights.names(whose)
    if names is None:
        raise NoSuchIdentity(whose.name)
    path = uow.rights.path(None if securable.type is SecurableType.METASTORE else securable.on, names)
    if path[-1].type is not securable.type or (not told and isinstance(may_see(names, path), Hidden)):
        return Explained(False, f"There is no {securable.type.value} {securable.on}.")
    return explain(names, privilege, path, guarded=_is_guarded(uow, path))


def _is_guarded(uow: UnitOfWork, path: Path) -> bool:
    end = path[-1]
    return end.type is SecurableType.TABLE and uow.tables.get_by_id(TableId(end.id)).guarded


def _access(uow: UnitOfWork, securable: Securable) -> ObjectAccess:
    match securable.on:
        case TableName() as table:
            found = uow.tables.get(table)
            return ObjectAccess(found.owner, found.guarded)
        case SchemaName() as schema:
            return ObjectAccess(uow.schemas.get(schema).stamps.owner, False)
        case name if securable.type is SecurableType.CATALOG:
            return ObjectAccess(uow.catalogs.get(name).stamps.owner, False)
        case _:
            return ObjectAccess(None, False)


_SEEING = {
    SecurableType.METASTORE: Operation.USE_METASTORE,
    SecurableType.CATALOG: Operation.USE_CATALOG,
    SecurableType.SCHEMA: Operation.USE_SCHEMA,
    SecurableType.TABLE: Operation.DESCRIBE_TABLE,
}
