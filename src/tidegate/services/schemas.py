"""Schemas: create, get, list, update, delete."""

from __future__ import annotations

from dataclasses import replace

from tidegate.domain.errors import NotEmpty
from tidegate.domain.grants import SecurableType
from tidegate.domain.names import SchemaName, check_name
from tidegate.domain.namespaces import Change, Details, Schema, Stamps, check_details
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.services.environment import Environment
from tidegate.services.paging import Page, PageRequest, read_page
from tidegate.services.places import check_staying
from tidegate.services.tables import drop_tables


async def create_schema(env: Environment, caller: Principal, name: SchemaName, details: Details) -> Schema:
    check_name("schema", name.schema)
    details = check_details(details)
    await env.authorize(caller, Operation.CREATE_SCHEMA, name.catalog)
    schema = Schema(env.new_id(), name, details, Stamps.new(caller.name, env.clock()))
    await env.database.write(lambda uow: uow.schemas.add(schema))
    return schema


async def get_schema(env: Environment, caller: Principal, name: SchemaName) -> Schema:
    await env.authorize(caller, Operation.USE_SCHEMA, name)
    return await env.database.read(lambda uow: uow.schemas.get(name))


async def list_schemas(env: Environment, caller: Principal, catalog: str, page: PageRequest) -> Page[Schema]:
    allowed = await env.authorize(caller, Operation.USE_CATALOG, catalog)
    only_for = allowed.only_for(SecurableType.SCHEMA)

    def work(uow: UnitOfWork) -> Page[Schema]:
        parent = uow.catalogs.get(catalog)
        return read_page(
            page,
            lambda after, limit: uow.schemas.page(parent, after=after, limit=limit, only_for=only_for),
            lambda schema: schema.name.schema,
            size_max=env.page_size_max,
        )

    return await env.database.read(work)


async def update_schema(env: Environment, caller: Principal, name: SchemaName, change: Change) -> Schema:
    new_name = name.schema if change.new_name is None else check_name("schema", change.new_name)
    await env.authorize(caller, Operation.MANAGE_SCHEMA, name)

    def work(uow: UnitOfWork) -> Schema:
        schema = uow.schemas.lock(name)
        if new_name != name.schema:
            check_staying(uow, name)
        stamps = schema.stamps.touched(caller.name, env.clock())
        renamed = SchemaName(name.catalog, new_name)
        changed = replace(schema, name=renamed, details=change.apply(schema.details), stamps=stamps)
        uow.schemas.change(changed)
        return changed

    changed = await env.database.write(work)
    env.access.epoch.advance()
    return changed


async def delete_schema(env: Environment, caller: Principal, name: SchemaName, *, force: bool) -> None:
    """With `force`, its tables are dropped first."""
    await env.authorize(caller, Operation.MANAGE_SCHEMA, name)

    def work(uow: UnitOfWork) -> None:
        schema = uow.schemas.lock(name)
        tables = uow.tables.page(schema, after="", limit=1)
        if tables and not force:
            raise NotEmpty("Schema", name, f"tables, {tables[0].name} among them")
        drop_tables(uow, schema, by=caller, now=env.clock())
        uow.schemas.remove(schema)

    await env.database.write(work)
    env.access.epoch.advance()
