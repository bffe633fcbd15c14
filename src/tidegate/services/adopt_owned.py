"""Adopting a table that has the catalog as its commit owner: from then on it is a managed table, by the same id.

    1. promise     the table takes no more commits through its owner
    2. publish     every ratified commit is in the log, and verified there
    3. plan        the commit that takes the owner out of the log, and makes the table a managed one, is written down
    4. put         THE COMMIT, as of any adoption; nobody else may have this version, since we are the owner
    5. register    the table is a managed one, under the name that was asked for

Before the third step it can end as if it had never begun; after it the only way is forward.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate.domain.chain import FileDigest, chain_of
from tidegate.domain.commits import Commit, RatifiedCommit, published_name
from tidegate.domain.errors import InvalidRequest, NoSuchTable, TableAlreadyExists
from tidegate.domain.events import EventKind, table_event
from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableId, TableName, Version
from tidegate.domain.ownership import Change, Kept, OwnershipCommit, Promise, plan_adoption
from tidegate.domain.ports import UnitOfWork, Won
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.protocol import LEAST_CONTRACT
from tidegate.domain.tables import Table, TableType, check_metadata
from tidegate.services.authorized_table import authorize_by_id
from tidegate.services.environment import Environment
from tidegate.services.publish_whole import published_whole
from tidegate.services.release_table import check_policy
from tidegate.steps import reached


@frozen
class Adoption:
    name: TableName
    table_id: TableId
    location: str
    version: Version
    """Of the commit that changes the owner; of an external table, the newest one."""
    content: bytes
    """That commit; nothing for an external table."""


async def adopt_owned(
    env: Environment, caller: Principal, table: Table, name: TableName, *, dry_run: bool
) -> Adoption | Promise:
    """What was promised; with `dry_run` what would be."""
    await authorize_by_id(env, caller, Operation.MANAGE_TABLE, table.name, table.id)
    await env.database.read(lambda uow: _check_leaving(uow, table.name, name))
    if dry_run:
        commit = await _planned_commit(env, table.id)
        return Adoption(name, table.id, table.location, commit.version, commit.content)
    promise = Promise(table.id, Change.ADOPT, name, table.location, None, Kept.NOTHING, env.clock(), caller.name)
    await env.database.write(lambda uow: _promise(uow, promise))
    reached("adopt.promised")
    return promise


async def plan_owned_adoption(env: Environment, promise: Promise) -> Promise:
    """Publishes everything, then writes the commit down; whoever does so first decides for all."""
    try:
        commit = await _planned_commit(env, promise.table_id)
    except InvalidRequest:
        await env.database.write(lambda uow: _end(uow, promise))
        raise
    await env.database.write(lambda uow: uow.ownership.plan(promise, commit))
    reached("own.planned")
    planned = await env.database.read(lambda uow: uow.ownership.get(promise.table_id))
    if planned is None:
        raise InvalidRequest(f"The adoption of {promise.location} was ended by somebody else meanwhile. Look at it.")
    return planned


async def end_if_owned(env: Environment, promise: Promise) -> None:
    """Raises InvalidRequest, and the promise has ended, if somebody wrote to the log of a table that is ours."""
    try:
        table = await env.database.read(lambda uow: uow.tables.get_by_id(promise.table_id))
    except NoSuchTable:
        return
    if table.type is TableType.OWNED:
        await env.database.write(lambda uow: _end(uow, promise))
        raise _written_past(table)


def register_owned_adoption(uow: UnitOfWork, env: Environment, promise: Promise, owned: Table) -> TableName:
    """What the table is called now."""
    commit, now = promise.commit, env.clock()
    if commit is None:
        raise AssertionError("what is put into the log was planned")
    digest = FileDigest.of(commit.content)
    put = Commit(
        commit.version,
        commit.timestamp,
        published_name(commit.version),
        digest.size,
        now,
        content_sha256=digest.sha256,
    )
    chain = chain_of(owned.id, owned.chain, put, principal=promise.begun_by, ratified_at=now)
    managed = replace(
        owned,
        type=TableType.MANAGED,
        metadata=replace(commit.metadata, catalog_properties=owned.metadata.catalog_properties),
        revision=owned.revision + 1,
        metadata_version=commit.version,
        metadata_timestamp=commit.timestamp,
        latest=commit.version,
        latest_timestamp=commit.timestamp,
        published=commit.version,
        unpublished=(),
        releasing=None,
        chain=chain,
        updated_at=now,
        updated_by=promise.begun_by,
    )
    won = Won(owned.id, RatifiedCommit(put, now, now), principal=promise.begun_by, chain=chain)
    uow.tables.save({owned.id: owned}, {owned.id: managed}, won=[won], happened=[])
    uow.tables.change(managed)
    # A name that somebody took meanwhile: the table keeps the one that it has.
    name = owned.name if uow.tables.exists(promise.name) else promise.name
    if name != owned.name:
        uow.tables.move(managed, name, uow.schemas.get(name.parent))
    event = table_event(EventKind.CREATED, replace(managed, name=name), at=now, by=promise.begun_by)
    uow.events.add([replace(event, data={"type": managed.type.value, "adopted": True})])
    return name


def _promise(uow: UnitOfWork, promise: Promise) -> None:
    # Locked, so that neither goes or is renamed without seeing the promise.
    uow.catalogs.lock(promise.name.catalog)
    uow.schemas.lock(promise.name.parent)
    table = uow.tables.lock([promise.table_id]).get(promise.table_id)
    if table is None or table.type is not TableType.OWNED:
        raise InvalidRequest(f"{promise.location} has changed its owner meanwhile. Look at it anew.")
    _check_leaving(uow, table.name, promise.name)
    if promise.name != table.name and uow.tables.exists(promise.name):
        raise TableAlreadyExists(promise.name)
    uow.ownership.promise(promise)
    uow.tables.change(replace(table, releasing=Version(table.latest + 1)))


def _check_leaving(uow: UnitOfWork, name: TableName, to: TableName) -> None:
    """A catalog that keeps its tables does not lose one to another catalog, which may let it go."""
    if to.catalog != name.catalog:
        check_policy(uow, name)


async def _planned_commit(env: Environment, id: TableId) -> OwnershipCommit:
    table = await published_whole(env, id)
    found = await env.found_tables.find(table.location)
    if found.version != table.latest:
        raise _written_past(table)
    now = max(env.clock(), table.latest_timestamp + 1)
    commit = plan_adoption(found, table_id=id, txn_id=env.new_id(), now=now)
    check_metadata(replace(table, type=TableType.MANAGED, metadata=commit.metadata), LEAST_CONTRACT)
    return commit


def _end(uow: UnitOfWork, promise: Promise) -> None:
    """As if it had never begun."""
    if uow.ownership.strike_out(promise):
        for table in uow.tables.lock([promise.table_id]).values():
            uow.tables.change(replace(table, releasing=None))


def _written_past(table: Table) -> InvalidRequest:
    return InvalidRequest(
        f"The log of {table.location} has versions after {table.latest} that its commit owner never ratified: somebody "
        "wrote to it without the owner. Move what was never ratified away, and adopt the table again."
    )
