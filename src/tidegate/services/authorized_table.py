"""The table that a caller may do something to, found by its name.

What is known of rights may be a moment old, see `access_cache_ms`, and in that moment another server may have given the
name to another table. Rights belong to tables and not to names: so the two are compared by their ids.
"""

from __future__ import annotations

from tidegate.domain.errors import NoSuchTable, NotFound, PermissionDenied
from tidegate.domain.names import TableId, TableName
from tidegate.domain.privileges import Operation, Principal, Question
from tidegate.domain.rights import Allowed
from tidegate.domain.tables import Table
from tidegate.services.environment import Environment


async def authorized_table(env: Environment, caller: Principal, operation: Operation, name: TableName) -> Table:
    allowed = await env.authorize(caller, operation, name)
    table = await env.database.table(name)
    if is_about(allowed, table.id):
        return table
    await authorize_by_id(env, caller, operation, name, table.id)
    return table


async def authorize_by_id(
    env: Environment, caller: Principal, operation: Operation, name: TableName, id: TableId
) -> Allowed:
    """The right to do this to the table of this id. Raises NoSuchTable if the name leads to another one."""
    allowed = await env.authorize(caller, operation, name)
    if not is_about(allowed, id):
        env.access.epoch.advance()
        allowed = await env.authorize(caller, operation, name)
        if not is_about(allowed, id):
            raise NoSuchTable(name)
    return allowed


async def moved_to(env: Environment, caller: Principal, id: TableId) -> TableName | None:
    """What the table of this id is called now; None if there is none that the caller may see."""
    try:
        table = await env.database.read(lambda uow: uow.tables.get_by_id(id))
        # Not by `env.authorize`: the request is still about the name that it gave.
        allowed = await env.authorizer.require(caller, Question(Operation.DESCRIBE_TABLE, table.name))
    except (NotFound, PermissionDenied):
        return None
    return table.name if is_about(allowed, id) else None


def is_about(allowed: Allowed, id: TableId) -> bool:
    return allowed.id is None or allowed.id == id


def still(allowed: Allowed, table: Table) -> Table:
    """The table, if it is the one that the caller was allowed something on."""
    if not is_about(allowed, table.id):
        raise NoSuchTable(table.name)
    return table
