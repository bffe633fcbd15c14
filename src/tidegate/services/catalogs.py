"""Catalogs: create, get, list, update, delete; and the metastore that holds them."""

from __future__ import annotations

from dataclasses import replace

from tidegate.domain.errors import NotEmpty, Unavailable
from tidegate.domain.grants import SecurableType
from tidegate.domain.names import check_name
from tidegate.domain.namespaces import Catalog, Change, Details, Stamps, check_details
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.services.environment import Environment
from tidegate.services.first_start import FIRST_SCHEMA
from tidegate.services.paging import Page, PageRequest, read_page
from tidegate.services.places import check_staying
from tidegate.services.tables import drop_tables


async def metastore_id(env: Environment, caller: Principal) -> str:
    await env.authorize(caller, Operation.USE_METASTORE, "metastore")
    id = await env.database.read(lambda uow: uow.metastore.id())
    if id is None:
        raise Unavailable("The catalog is still being set up. Try again in a moment.")
    return id


async def default_schema(env: Environment, caller: Principal) -> str:
    """The schema that is meant where none is named: the one that the first start makes, together with the metastore."""
    await metastore_id(env, caller)
    return FIRST_SCHEMA


async def create_catalog(env: Environment, caller: Principal, name: str, details: Details) -> Catalog:
    check_name("catalog", name)
    details = check_details(details)
    await env.authorize(caller, Operation.CREATE_CATALOG, "metastore")
    catalog = Catalog(env.new_id(), name, details, Stamps.new(caller.name, env.clock()))
    await env.database.write(lambda uow: uow.catalogs.add(catalog))
    return catalog


async def get_catalog(env: Environment, caller: Principal, name: str) -> Catalog:
    await env.authorize(caller, Operation.USE_CATALOG, name)
    return await env.database.read(lambda uow: uow.catalogs.get(name))


async def list_catalogs(env: Environment, caller: Principal, page: PageRequest) -> Page[Catalog]:
    allowed = await env.authorize(caller, Operation.USE_METASTORE, "metastore")
    only_for = allowed.only_for(SecurableType.CATALOG)

    def work(uow: UnitOfWork) -> Page[Catalog]:
        return read_page(
            page,
            lambda after, limit: uow.catalogs.page(after=after, limit=limit, only_for=only_for),
            lambda catalog: catalog.name,
            size_max=env.page_size_max,
        )

    return await env.database.read(work)


async def update_catalog(env: Environment, caller: Principal, name: str, change: Change) -> Catalog:
    new_name = name if change.new_name is None else check_name("catalog", change.new_name)
    await env.authorize(caller, Operation.MANAGE_CATALOG, name)

    def work(uow: UnitOfWork) -> Catalog:
        catalog = uow.catalogs.lock(name)
        if new_name != name:
            check_staying(uow, name)
        stamps = catalog.stamps.touched(caller.name, env.clock())
        changed = replace(catalog, name=new_name, details=change.apply(catalog.details), stamps=stamps)
        uow.catalogs.change(changed)
        return changed

    changed = await env.database.write(work)
    env.access.epoch.advance()
    return changed


async def delete_catalog(env: Environment, caller: Principal, name: str, *, force: bool) -> None:
    """With `force`, all its schemas go first, and their tables are dropped."""
    await env.authorize(caller, Operation.MANAGE_CATALOG, name)

    def work(uow: UnitOfWork) -> None:
        catalog = uow.catalogs.lock(name)
        while schemas := uow.schemas.page(catalog, after="", limit=100):
            if not force:
                raise NotEmpty("Catalog", name, f"schemas, {schemas[0].name} among them")
            for schema in schemas:
                drop_tables(uow, schema, by=caller, now=env.clock())
                uow.schemas.remove(schema)
        uow.catalogs.remove(catalog)

    await env.database.write(work)
    env.access.epoch.advance()
