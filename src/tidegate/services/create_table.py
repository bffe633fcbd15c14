"""Creating a table: finish a staging table at version 0, or register an external one.

A managed table exists from the moment its row is committed. Until then the staging table stays as it is: a request that
is refused can be corrected and sent again.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tidegate.domain.chain import FileDigest, first_link
from tidegate.domain.commits import check_timestamp
from tidegate.domain.errors import InvalidRequest, NoSuchStagingTable, PermissionDenied, TableAlreadyExists
from tidegate.domain.events import EventKind, table_event
from tidegate.domain.first_commit import FirstCommit, check_agreement, parse_first_commit
from tidegate.domain.frozen import frozen
from tidegate.domain.locations import normalize_location
from tidegate.domain.names import TableId, TableName, Version, check_name
from tidegate.domain.namespaces import Schema
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.protocol import FULL_CONTRACT, Contract
from tidegate.domain.tables import DELTA, StagingTable, Table, TableMetadata, TableType, check_metadata
from tidegate.domain.uniform import Uniform, check_uniform
from tidegate.domain.updates import check_domains, check_property_keys
from tidegate.services.environment import Environment
from tidegate.services.places import check_free, check_leads_outside, external_place
from tidegate.telemetry.current import note


@frozen
class Creation:
    name: TableName
    type: TableType
    location: str
    metadata: TableMetadata
    timestamp: int
    """Of version 0."""
    uniform: Uniform | None
    contract: Contract = FULL_CONTRACT
    """What the API that the table is created through demands of it."""


async def create_table(env: Environment, caller: Principal, creation: Creation) -> Table:
    note(creation.name, None, "ok")
    check_name("table", creation.name.table)
    check_property_keys("properties", creation.metadata.properties)
    check_domains(creation.metadata.domains)
    check_timestamp("last-commit-timestamp-ms", creation.timestamp)
    managed = creation.type is TableType.MANAGED
    operation = Operation.CREATE_TABLE if managed else Operation.CREATE_EXTERNAL_TABLE
    allowed = await env.authorize(caller, operation, creation.name.parent)
    tell = allowed.names is None
    if managed:
        return await _finish_staging(env, caller, creation, tell=tell)
    return await _register_external(env, caller, creation, tell=tell)


async def _finish_staging(env: Environment, caller: Principal, creation: Creation, *, tell: bool) -> Table:
    staging = await find_staging(env, caller, creation.name, creation.location, tell=tell)
    table = new_table(env, caller, creation, id=staging.id, location=staging.location)
    # Each commit of a UniForm table carries what was converted, and so does its creation.
    check_uniform(
        creation.uniform, properties=creation.metadata.properties, location=table.location, version=0, stored=None
    )
    log = await read_first_commit(env, table.location)
    check_agreement(creation.metadata, timestamp=creation.timestamp, log=log)
    await finish_staging(env, table, log)
    return table


async def find_staging(
    env: Environment, caller: Principal, name: TableName, location: str, *, tell: bool
) -> StagingTable:
    """The staging table that the caller may finish under this name, at this location. `tell` of those of others."""
    normal = normalize_location(location)

    def look(uow: UnitOfWork) -> StagingTable:
        uow.schemas.get(name.parent)
        staging = _find_staging(uow, normal, by=None if tell else caller.name, name=name)
        if uow.tables.exists(name):
            raise TableAlreadyExists(name)
        return staging

    staging = await env.database.read(look)
    if staging.created_by != caller.name:
        raise PermissionDenied(f"The staging table at {staging.location} was made by somebody else. Stage your own.")
    if staging.name != name:
        raise InvalidRequest(f"The staging table at {staging.location} was made for {staging.name}, not for {name}.")
    return staging


async def finish_staging(env: Environment, table: Table, log: FirstCommit) -> None:
    def finish(uow: UnitOfWork) -> None:
        # Taken away and put in place together: of two that finish at once, one finds nothing to take.
        uow.staging_tables.remove(_find_staging(uow, table.location))
        _add(uow, table, uow.schemas.get(table.name.parent), first=log.digest)

    await env.database.write(finish)


def _find_staging(
    uow: UnitOfWork, location: str, *, by: str | None = None, name: TableName | None = None
) -> StagingTable:
    """With `by`, whatever belongs to others is as good as not there."""
    staging = uow.staging_tables.find_by_location(location)
    if staging is not None and by in (None, staging.created_by):
        return staging
    finished = uow.tables.find_by_location(location)
    if finished is not None and (by is None or finished == name):
        raise InvalidRequest(f"The staging table at {location} was finished already: it is {finished}.")
    raise NoSuchStagingTable(
        f"There is no staging table at {location}; it may have expired. Stage the table and use the location it gets."
    )


async def read_first_commit(env: Environment, location: str) -> FirstCommit:
    content = await env.delta_logs.read_published(location, Version(0))
    if content is None:
        raise InvalidRequest(
            f"There is no _delta_log/{0:020}.json at {location}. Write version 0 before you create the table."
        )
    # A version 0 with many files takes a while to read: not on the thread that answers everybody.
    return await asyncio.to_thread(parse_first_commit, content)


async def _register_external(env: Environment, caller: Principal, creation: Creation, *, tell: bool) -> Table:
    """Its log belongs to somebody else: it is neither read nor written here."""
    location = external_place(env, creation.location)
    await check_leads_outside(env, location)
    table = new_table(env, caller, creation, id=TableId(env.new_id()), location=location)
    check_uniform(creation.uniform, properties=creation.metadata.properties, location=location, version=0, stored=None)

    def register(uow: UnitOfWork) -> None:
        schema = uow.schemas.get(creation.name.parent)
        check_free(uow, location, tell=tell)
        _add(uow, table, schema)

    await env.database.write(register)
    return table


def add_managed(uow: UnitOfWork, table: Table, schema: Schema, *, first: FileDigest) -> None:
    """With its hash chain, which begins with the commit that the table has when the catalog begins to decide on it."""
    version, timestamp = table.latest, table.latest_timestamp
    link = first_link(table.id, version, first, timestamp=timestamp, by=table.created_by, at=table.created_at)
    uow.tables.add(replace(table, chain=link.chain), schema)
    uow.chains.begin(table.id, link)


def _add(uow: UnitOfWork, table: Table, schema: Schema, *, first: FileDigest | None = None) -> None:
    if first is None:
        uow.tables.add(table, schema)
    else:
        add_managed(uow, table, schema, first=first)
    created = table_event(EventKind.CREATED, table, at=table.created_at, by=table.created_by, type=table.type.value)
    uow.events.add([created])


def new_table(env: Environment, caller: Principal, creation: Creation, *, id: TableId, location: str) -> Table:
    now = env.clock()
    table = Table(
        id=id,
        name=creation.name,
        type=creation.type,
        format=DELTA,
        location=location,
        owner=caller.name,
        created_at=now,
        created_by=caller.name,
        updated_at=now,
        updated_by=caller.name,
        metadata=creation.metadata,
        revision=1,
        metadata_version=Version(0),
        metadata_timestamp=creation.timestamp,
        latest=Version(0),
        latest_timestamp=creation.timestamp,
        published=Version(0),
        unpublished=(),
        uniform=creation.uniform,
    )
    check_metadata(table, creation.contract)
    return table
