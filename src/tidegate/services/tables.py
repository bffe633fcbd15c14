"""Tables as objects of the catalog: get, list, exists, rename, drop."""

from __future__ import annotations

from tidegate.domain.errors import NoSuchTable, TableAlreadyExists
from tidegate.domain.events import Event, EventKind, table_event
from tidegate.domain.names import SchemaName, TableName, check_name
from tidegate.domain.namespaces import Schema
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.tables import Table
from tidegate.services.environment import Environment
from tidegate.services.learn_commits import up_to_date
from tidegate.services.paging import Page, PageRequest, read_page


async def get_table(env: Environment, caller: Principal, name: TableName) -> Table:
    """Any table, whatever its format. Where there is none, the error says whether it is the catalog that is missing."""
    env.authorize(caller, Operation.READ_TABLE, name)
    try:
        return await up_to_date(env, await env.database.table(name))
    except NoSuchTable:
        await env.database.read(lambda uow: uow.schemas.get(name.parent))
        raise


async def list_tables(env: Environment, caller: Principal, schema: SchemaName, page: PageRequest) -> Page[Table]:
    env.authorize(caller, Operation.USE_SCHEMA, schema)

    def work(uow: UnitOfWork) -> Page[Table]:
        parent = uow.schemas.get(schema)
        return read_page(
            page,
            lambda after, limit: uow.tables.page(parent, after=after, limit=limit),
            lambda table: table.name.table,
            size_max=env.page_size_max,
        )

    return await env.database.read(work)


async def table_exists(env: Environment, caller: Principal, name: TableName) -> bool:
    env.authorize(caller, Operation.READ_TABLE, name)
    return await env.database.read(lambda uow: uow.tables.exists(name))


async def rename_table(env: Environment, caller: Principal, name: TableName, *, new_name: str) -> None:
    """Within its schema. A table that is already called so is left alone."""
    to = TableName(name.catalog, name.schema, check_name("table", new_name))
    env.authorize(caller, Operation.MANAGE_TABLE, name)

    def work(uow: UnitOfWork) -> None:
        table = uow.tables.get(name)
        if to == name:
            return
        if uow.tables.exists(to):
            raise TableAlreadyExists(to)
        now = env.clock()
        uow.tables.rename(table, to, by=caller, now=now)
        uow.events.add([table_event(EventKind.RENAMED, table, at=now, by=caller.name, to=str(to))])

    await env.database.write(work)


async def drop_table(env: Environment, caller: Principal, name: TableName) -> None:
    """Frees the name at once. The files of an external table are never touched, those of a managed one stay for now."""
    env.authorize(caller, Operation.MANAGE_TABLE, name)

    def work(uow: UnitOfWork) -> None:
        table, now = uow.tables.get(name), env.clock()
        uow.tables.drop(table, by=caller, now=now)
        uow.events.add([table_event(EventKind.DROPPED, table, at=now, by=caller.name)])

    await env.database.write(work)


def drop_tables(uow: UnitOfWork, schema: Schema, *, by: Principal, now: int) -> None:
    """All tables of a schema that goes."""
    dropped = uow.tables.drop_all(schema, by=by, now=now)
    uow.events.add([Event(EventKind.DROPPED, id, str(name), now, by.name) for id, name in dropped])
