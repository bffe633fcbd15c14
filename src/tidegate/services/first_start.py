"""The first start: an identity for the metastore, and a catalog and a schema to begin with."""

from __future__ import annotations

from tidegate.domain.errors import AlreadyExists
from tidegate.domain.names import SchemaName
from tidegate.domain.namespaces import new_catalog, new_schema
from tidegate.domain.ports import UnitOfWork
from tidegate.services.environment import Environment

FIRST_CATALOG = "main"
FIRST_SCHEMA = "default"


async def first_start(env: Environment, *, owner: str) -> None:
    """Does nothing where it was done before, by this server or another one on the same database."""

    def work(uow: UnitOfWork) -> None:
        if uow.metastore.id() is not None:
            return
        now = env.clock()
        uow.metastore.create(env.new_id(), now=now)
        uow.catalogs.add(new_catalog(id=env.new_id(), name=FIRST_CATALOG, owner=owner, now=now))
        name = SchemaName(FIRST_CATALOG, FIRST_SCHEMA)
        uow.schemas.add(new_schema(id=env.new_id(), name=name, owner=owner, now=now))

    try:
        await env.database.write(work)
    except AlreadyExists:
        return
