"""Releasing: a managed table is given back to its file system, with all of its history.

    1. promise     the table takes no new commits
    2. publish     every ratified commit is in the log, and verified there
    3. plan        the last commit is written down
    4. put         _delta_log/<v>.json, if absent: THE COMMIT. From here on the file system decides on the table
    5. forget      the entry is one of an external table, or goes; and the promise is struck out

Before the third step a release can end as if it had never begun. After it the only way is forward, and whoever finds
the promise goes on, see `keep_promises.py`.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate.domain.commit_owner import OWNER_FEATURE
from tidegate.domain.constraints import check_unreferred
from tidegate.domain.errors import InvalidRequest, NoSuchTable, PermissionDenied
from tidegate.domain.events import EventKind, table_event
from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableId, TableName, Version
from tidegate.domain.ownership import Change, Kept, OwnershipCommit, Promise, plan_release
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.tables import Table, TableType
from tidegate.services.authorized_table import authorized_table
from tidegate.services.environment import Environment
from tidegate.services.learn_commits import up_to_date
from tidegate.services.publish_whole import published_whole
from tidegate.steps import reached

RELEASE_PROPERTY = "tidegate.release"
"""Of a catalog; with the value `forbidden` its tables stay."""


@frozen
class Release:
    name: TableName
    table_id: TableId
    location: str
    version: Version
    """Of the commit that gives the table back."""
    kept: Kept


async def release_table(env: Environment, caller: Principal, name: TableName, *, kept: Kept) -> Release:
    await up_to_date(env, await authorized_table(env, caller, Operation.MANAGE_TABLE, name))
    promise = await env.database.write(lambda uow: _promise(uow, env, caller, name, kept))
    reached("release.promised")
    return await keep_release(env, promise)


async def keep_release(env: Environment, promise: Promise) -> Release:
    """Goes on until the table is given back. Raises InvalidRequest, with the promise struck out, if it cannot be."""
    if promise.commit is None:
        promise = await _plan(env, promise)
    commit = _planned(promise)
    if not await env.delta_logs.put_if_absent(promise.location, commit.version, commit.content):
        await env.database.write(lambda uow: _end(uow, promise))
        raise InvalidRequest(
            f"The log of {promise.name} has a version {commit.version} that was never ratified: somebody wrote to it "
            "without the catalog. Move that file away, and release the table again."
        )
    reached("release.put")
    await env.database.write(lambda uow: _forget(uow, env, promise))
    env.access.epoch.advance()
    reached("release.forgotten")
    env.feed.notice()
    return Release(promise.name, promise.table_id, promise.location, commit.version, promise.kept)


def _promise(uow: UnitOfWork, env: Environment, caller: Principal, name: TableName, kept: Kept) -> Promise:
    table = uow.tables.get(name)
    begun = uow.ownership.get(table.id)
    if begun is not None:
        return begun
    if table.type is TableType.OWNED:
        raise InvalidRequest(
            f"The catalog is the commit owner of {name}: it is given back by ALTER TABLE delta.`{table.location}` DROP "
            f"FEATURE '{OWNER_FEATURE}', in a session that knows the owner."
        )
    if table.type is not TableType.MANAGED:
        raise InvalidRequest(f"{name} is external: its file system decides on it already.")
    check_policy(uow, name)
    promise = Promise(table.id, Change.RELEASE, name, table.location, None, kept, env.clock(), caller.name)
    locked = uow.tables.lock([table.id]).get(table.id)
    if locked is None:
        raise NoSuchTable(name)
    way_out = "Remove them first: the file system would not keep what they rest on."
    check_unreferred(name, uow.constraints.referring(table.id), doing="released", way_out=way_out)
    uow.ownership.promise(promise)
    uow.tables.change(replace(locked, releasing=Version(locked.latest + 1)))
    return promise


def check_policy(uow: UnitOfWork, name: TableName) -> None:
    if uow.catalogs.get(name.catalog).details.properties.get(RELEASE_PROPERTY) == "forbidden":
        raise PermissionDenied(
            f"Tables of the catalog {name.catalog} may not be released: its property {RELEASE_PROPERTY} says so."
        )


async def _plan(env: Environment, promise: Promise) -> Promise:
    """Publishes everything, then writes the last commit down; whoever does so first decides for all."""
    try:
        table = await published_whole(env, promise.table_id)
        reached("release.published")
        found = await env.found_tables.find(promise.location)
        if found.version != table.latest:
            raise InvalidRequest(
                f"The log of {promise.name} is at version {found.version}, and the catalog at {table.latest}: somebody "
                "wrote to it without the catalog. Move what was never ratified away, and release the table again."
            )
        now = max(env.clock(), table.latest_timestamp + 1)
        commit = plan_release(found, txn_id=env.new_id(), now=now)
    except InvalidRequest:
        await env.database.write(lambda uow: _end(uow, promise))
        raise
    await env.database.write(lambda uow: uow.ownership.plan(promise, commit))
    reached("release.planned")
    planned = await env.database.read(lambda uow: uow.ownership.get(promise.table_id))
    if planned is None:
        raise InvalidRequest(f"The release of {promise.name} was ended by somebody else meanwhile. Try again.")
    return planned


def _end(uow: UnitOfWork, promise: Promise) -> None:
    """As if it had never begun."""
    if uow.ownership.strike_out(promise):
        for table in uow.tables.lock([promise.table_id]).values():
            uow.tables.change(replace(table, releasing=None))


def _forget(uow: UnitOfWork, env: Environment, promise: Promise) -> None:
    """Does nothing where it was done before."""
    commit = _planned(promise)
    if not uow.ownership.strike_out(promise):
        return
    for table in uow.tables.lock([promise.table_id]).values():
        now = env.clock()
        event = table_event(EventKind.RELEASED, table, at=now, by=promise.begun_by, version=commit.version)
        uow.events.add([replace(event, data={"kept": promise.kept.value})])
        uow.constraints.remove_all(table.id)
        uow.constraints.remove_referring([table.id])
        if promise.kept is Kept.EXTERNAL:
            uow.tables.change(_external(table, commit, now=now, by=promise.begun_by))
        else:
            uow.tables.forget(table.id)


def _external(table: Table, commit: OwnershipCommit, *, now: int, by: str) -> Table:
    return replace(
        table,
        type=TableType.EXTERNAL,
        constraints=(),
        metadata=replace(commit.metadata, catalog_properties=table.metadata.catalog_properties),
        revision=table.revision + 1,
        metadata_version=commit.version,
        metadata_timestamp=commit.timestamp,
        latest=commit.version,
        latest_timestamp=commit.timestamp,
        published=commit.version,
        unpublished=(),
        uniform=None,
        row_mark=None,
        releasing=None,
        updated_at=now,
        updated_by=by,
    )


def _planned(promise: Promise) -> OwnershipCommit:
    if promise.commit is None:
        raise AssertionError("what is put into the log was planned")
    return promise.commit
