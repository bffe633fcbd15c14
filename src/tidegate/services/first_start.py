"""The first start: an identity for the metastore, and a catalog and a schema to begin with."""

from __future__ import annotations

from tidegate.domain.errors import AlreadyExists
from tidegate.domain.names import SchemaName
from tidegate.domain.namespaces import Catalog, Details, Schema, Stamps
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
        stamps = Stamps.new(owner, now)
        uow.catalogs.add(Catalog(env.new_id(), FIRST_CATALOG, Details(), stamps))
        uow.schemas.add(Schema(env.new_id(), SchemaName(FIRST_CATALOG, FIRST_SCHEMA), Details(), stamps))

    try:
        await env.database.write(work)
    except AlreadyExists:
        return
