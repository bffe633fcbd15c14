"""Tables as objects of the catalog: get, list, exists, rename, drop."""

from __future__ import annotations

from tidegate.domain.commit_owner import OWNER_FEATURE
from tidegate.domain.errors import InvalidRequest, NoSuchTable, TableAlreadyExists
from tidegate.domain.events import Event, EventKind, table_event
from tidegate.domain.grants import SecurableType
from tidegate.domain.names import SchemaName, TableName, check_name
from tidegate.domain.namespaces import Schema
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.tables import Table, TableType
from tidegate.services.authorized_table import authorized_table, still
from tidegate.services.constraints import detach, lock_with_children
from tidegate.services.environment import Environment
from tidegate.services.learn_commits import up_to_date
from tidegate.services.paging import Page, PageRequest, read_page
from tidegate.services.places import changing_owner, check_staying


async def get_table(env: Environment, caller: Principal, name: TableName) -> Table:
    """Any table, whatever its format. Where there is none, the error says whether it is the catalog that is missing."""
    try:
        return await up_to_date(env, await authorized_table(env, caller, Operation.DESCRIBE_TABLE, name))
    except NoSuchTable as missing:
        if missing.above is not None:
            raise missing.above from None
        await env.database.read(lambda uow: uow.schemas.get(name.parent))
        raise


async def list_tables(env: Environment, caller: Principal, schema: SchemaName, page: PageRequest) -> Page[Table]:
    allowed = await env.authorize(caller, Operation.USE_SCHEMA, schema)
    only_for = allowed.only_for(SecurableType.TABLE)

    def work(uow: UnitOfWork) -> Page[Table]:
        parent = uow.schemas.get(schema)
        return read_page(
            page,
            lambda after, limit: uow.tables.page(parent, after=after, limit=limit, only_for=only_for),
            lambda table: table.name.table,
            size_max=env.page_size_max,
        )

    return await env.database.read(work)


async def table_exists(env: Environment, caller: Principal, name: TableName) -> bool:
    await env.authorize(caller, Operation.DESCRIBE_TABLE, name)
    return await env.database.read(lambda uow: uow.tables.exists(name))


async def rename_table(env: Environment, caller: Principal, name: TableName, *, new_name: str) -> None:
    """Within its schema. A table that is already called so is left alone."""
    to = TableName(name.catalog, name.schema, check_name("table", new_name))
    allowed = await env.authorize(caller, Operation.MANAGE_TABLE, name)

    def work(uow: UnitOfWork) -> None:
        table = still(allowed, uow.tables.get(name))
        if to == name:
            return
        if uow.tables.exists(to):
            raise TableAlreadyExists(to)
        now = env.clock()
        uow.tables.rename(table, to, by=caller, now=now)
        uow.events.add([table_event(EventKind.RENAMED, table, at=now, by=caller.name, to=str(to))])

    await env.database.write(work)
    env.access.epoch.advance()


async def drop_table(env: Environment, caller: Principal, name: TableName, *, force: bool = False) -> None:
    """Frees the name at once. The files of an external table are never touched, those of a managed one stay for now.

    With `force`, foreign keys of others that refer to it go; without it they keep it.
    """
    allowed = await env.authorize(caller, Operation.MANAGE_TABLE, name)

    def work(uow: UnitOfWork) -> None:
        table, now = still(allowed, uow.tables.get(name)), env.clock()
        # Locked before it is asked whether it is being given back: one of the two comes first.
        table = lock_with_children(uow, table.id) or table
        if table.name != name:
            raise NoSuchTable(name)
        promise = uow.ownership.get(table.id)
        if promise is not None:
            raise changing_owner(promise)
        if table.type is TableType.OWNED:
            raise _owned(name)
        detach(uow, table, force=force, doing="dropped", way_out="Remove them first, or drop it with force=true.")
        uow.tables.drop(table, by=caller, now=now)
        uow.events.add([table_event(EventKind.DROPPED, table, at=now, by=caller.name)])

    await env.database.write(work)
    env.access.epoch.advance()


def drop_tables(uow: UnitOfWork, schema: Schema, *, by: Principal, now: int) -> None:
    """All tables of a schema that goes, and the foreign keys of others that refer to them."""
    dropped = uow.tables.drop_all(schema, by=by, now=now)
    # Asked when all are locked: nobody begins to give one back any more.
    check_staying(uow, schema.name)
    names = dict(dropped)
    owned = uow.tables.find_owned(list(names))
    if owned is not None:
        raise _owned(names[owned])
    uow.constraints.remove_referring(list(names))
    uow.events.add([Event(EventKind.DROPPED, id, str(name), now, by.name) for id, name in dropped])


def _owned(name: TableName) -> InvalidRequest:
    """Its log would name an owner that knows nothing of it, and nobody could write to it any more."""
    return InvalidRequest(
        f"The catalog is the commit owner of {name}, and cannot forget it. Give it back first, with ALTER TABLE ... "
        f"DROP FEATURE '{OWNER_FEATURE}', or adopt it."
    )
