"""Catalogs: create, get, list, update, delete; and the metastore that holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidegate.domain.errors import NotEmpty, Unavailable
from tidegate.domain.names import check_name
from tidegate.domain.namespaces import Catalog, new_catalog
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.services.environment import Environment
from tidegate.services.paging import Page, PageRequest, read_page


async def metastore_id(env: Environment, caller: Principal) -> str:
    env.authorize(caller, Operation.USE_METASTORE, "metastore")
    id = await env.database.read(lambda uow: uow.metastore.id())
    if id is None:
        raise Unavailable("The catalog is still being set up. Try again in a moment.")
    return id


async def create_catalog(
    env: Environment,
    caller: Principal,
    *,
    name: str,
    comment: str | None,
    properties: Mapping[str, str],
    storage_root: str | None,
) -> Catalog:
    catalog = new_catalog(
        id=env.new_id(),
        name=name,
        owner=caller.name,
        now=env.clock(),
        comment=comment,
        properties=properties,
        storage_root=storage_root,
    )
    env.authorize(caller, Operation.CREATE_CATALOG, "metastore")
    await env.database.write(lambda uow: uow.catalogs.add(catalog))
    return catalog


async def get_catalog(env: Environment, caller: Principal, name: str) -> Catalog:
    env.authorize(caller, Operation.USE_CATALOG, name)
    return await env.database.read(lambda uow: uow.catalogs.get(name))


async def list_catalogs(env: Environment, caller: Principal, page: PageRequest) -> Page[Catalog]:
    env.authorize(caller, Operation.USE_METASTORE, "metastore")

    def work(uow: UnitOfWork) -> Page[Catalog]:
        return read_page(
            page,
            lambda after, limit: uow.catalogs.page(after=after, limit=limit),
            lambda catalog: catalog.name,
            size_max=env.page_size_max,
        )

    return await env.database.read(work)


async def update_catalog(
    env: Environment,
    caller: Principal,
    name: str,
    *,
    new_name: str | None,
    comment: str | None,
    properties: Mapping[str, str] | None,
) -> Catalog:
    """What is None stays as it is."""
    if new_name is not None:
        check_name("catalog", new_name)
    env.authorize(caller, Operation.MANAGE_CATALOG, name)

    def work(uow: UnitOfWork) -> Catalog:
        catalog = uow.catalogs.lock(name)
        changed = replace(
            catalog,
            name=catalog.name if new_name is None else new_name,
            comment=catalog.comment if comment is None else comment,
            properties=catalog.properties if properties is None else properties,
            updated_at=env.clock(),
            updated_by=caller.name,
        )
        uow.catalogs.change(changed)
        return changed

    return await env.database.write(work)


async def delete_catalog(env: Environment, caller: Principal, name: str, *, force: bool) -> None:
    """With `force`, all its schemas go first, and their tables are dropped."""
    env.authorize(caller, Operation.MANAGE_CATALOG, name)

    def work(uow: UnitOfWork) -> None:
        catalog = uow.catalogs.lock(name)
        while schemas := uow.schemas.page(catalog, after="", limit=100):
            if not force:
                raise NotEmpty("Catalog", name, f"schemas, {schemas[0].name} among them")
            for schema in schemas:
                uow.tables.drop_all(schema, by=caller, now=env.clock())
                uow.schemas.remove(schema)
        uow.catalogs.remove(catalog)

    await env.database.write(work)
