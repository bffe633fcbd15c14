"""Adopting: a table that lies on a file system, and that other writers may be writing to, becomes a managed one.

    1. look        the log can be read, nobody owns the table, its features are known, the server can write there
    2. promise     what is going to be put into the log is written down, and the name and the place are taken
    3. put         _delta_log/<v>.json, if absent: THE COMMIT. If a writer was first: look again, and go on
    4. register    the table is a table of the catalog, and the promise is struck out

After the third step the catalog cannot refuse any more, and does not: whoever finds the promise goes on with it, see
`keep_promises.py`. What went wrong before it has changed nothing. Who asks again for what has happened is told so.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate.domain.errors import InvalidRequest, TableAlreadyExists, Unavailable
from tidegate.domain.events import EventKind, table_event
from tidegate.domain.frozen import frozen
from tidegate.domain.locations import lies_under, normalize_location
from tidegate.domain.names import TableId, TableName, Version, check_name
from tidegate.domain.ownership import (
    ADOPTED_PROPERTY,
    Change,
    FoundTable,
    Kept,
    OwnershipCommit,
    Promise,
    found_metadata,
    is_commit_of,
    plan_adoption,
)
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.protocol import LEAST_CONTRACT
from tidegate.domain.tables import DELTA, Table, TableType, check_metadata
from tidegate.services.create_table import Creation, create_table
from tidegate.services.environment import Environment
from tidegate.services.places import check_free
from tidegate.steps import reached

ATTEMPTS_MAX = 20
"""Each that fails lost its version to a writer of the file system."""


@frozen
class Adoption:
    name: TableName
    table_id: TableId
    location: str
    version: Version
    """Of the commit that changes the owner; of an external table, the newest one."""
    content: bytes
    """That commit; nothing for an external table."""


async def adopt_table(
    env: Environment,
    caller: Principal,
    location: str,
    name: TableName,
    *,
    external: bool = False,
    dry_run: bool = False,
) -> Adoption:
    check_name("table", name.table)
    env.authorize(caller, Operation.CREATE_TABLE, name.parent)
    place = normalize_location(location)
    known = await env.database.read(lambda uow: _look(uow, env, place, name, external=external))
    if isinstance(known, Table):
        return _adopted(known)
    if known is not None and not dry_run:
        return _adoption(await keep_adoption(env, known))
    found = await env.found_tables.find(place)
    if external:
        return await _register(env, caller, found, name, dry_run=dry_run)
    id = TableId(env.new_id())
    commit = plan_adoption(found, table_id=id, txn_id=env.new_id(), now=env.clock())
    promise = Promise(id, Change.ADOPT, name, place, commit, Kept.NOTHING, env.clock(), caller.name)
    check_metadata(_table(promise, commit, now=env.clock()), LEAST_CONTRACT)
    await env.found_tables.check_writable(place)
    if dry_run:
        return Adoption(name, id, place, commit.version, commit.content)
    await env.database.write(lambda uow: _promise(uow, promise))
    reached("adopt.promised")
    return _adoption(await keep_adoption(env, promise))


async def keep_adoption(env: Environment, promise: Promise) -> Promise:
    """Goes on until the table is registered. Raises InvalidRequest, and the promise has ended, if that can never be."""
    for _ in range(ATTEMPTS_MAX):
        commit = _planned(promise)
        if await env.delta_logs.put_if_absent(promise.location, commit.version, commit.content):
            reached("adopt.put")
            await env.database.write(lambda uow, kept=promise: _register_promised(uow, env, kept))
            reached("adopt.registered")
            env.feed.notice()
            return promise
        promise = await _plan_anew(env, promise)
    await env.database.write(lambda uow: uow.ownership.strike_out(promise))
    raise Unavailable(
        f"Others write to {promise.location} so fast that it could not be adopted. Nothing has changed; try again."
    )


def _look(uow: UnitOfWork, env: Environment, place: str, name: TableName, *, external: bool) -> Promise | Table | None:
    """The adoption that is under way, or the table that it has led to."""
    uow.schemas.get(name.parent)
    promise = uow.ownership.find(place)
    if promise is not None:
        if promise.name != name or promise.change is not Change.ADOPT:
            raise InvalidRequest(
                f"{place} is being {promise.change.value}ed already, as {promise.name}. Wait until that is done."
            )
        return promise
    if uow.tables.exists(name):
        table = uow.tables.get(name)
        if table.location == place and (table.type is TableType.EXTERNAL) == external:
            return table
        raise TableAlreadyExists(name)
    if not _is_adoptable(place, env.storage_root, [one.location for one in uow.ownership.allowed()]):
        raise InvalidRequest(
            f"{place} is outside the storage of managed tables, and nobody has allowed to adopt tables there. An "
            f"admin can: tidegate adoptable add {place}"
        )
    return None


def _is_adoptable(place: str, storage_root: str, allowed: list[str]) -> bool:
    return any(place == root or lies_under(place, root) for root in [storage_root, *allowed])


def _promise(uow: UnitOfWork, promise: Promise) -> None:
    check_free(uow, promise.location)
    uow.schemas.get(promise.name.parent)
    if uow.tables.exists(promise.name):
        raise TableAlreadyExists(promise.name)
    uow.ownership.promise(promise)


async def _plan_anew(env: Environment, promise: Promise) -> Promise:
    """After a lost version: that one can never be ours, so whoever plans first decides for all."""
    try:
        found = await env.found_tables.find(promise.location)
        if is_commit_of(found, promise.table_id):
            raise Unavailable(f"The log of {promise.location} says more than it should. Look at it with doctor.")
        commit = plan_adoption(found, table_id=promise.table_id, txn_id=env.new_id(), now=env.clock())
    except InvalidRequest:
        # Somebody else owns it by now, or it is gone.
        await env.database.write(lambda uow: uow.ownership.strike_out(promise))
        raise
    await env.database.write(lambda uow: uow.ownership.plan(promise, commit))
    reached("adopt.planned_anew")
    now = await env.database.read(lambda uow: uow.ownership.get(promise.table_id))
    if now is None:
        raise InvalidRequest(f"The adoption of {promise.location} was ended by somebody else meanwhile. Look at it.")
    return now


def _register_promised(uow: UnitOfWork, env: Environment, promise: Promise) -> None:
    """Does nothing where it was done before."""
    if not uow.ownership.strike_out(promise):
        return
    table = _table(promise, _planned(promise), now=env.clock())
    if uow.tables.exists(table.name):
        # Somebody took the name meanwhile. The log says already that the table is ours: it gets another one.
        table = replace(table, name=replace(table.name, table=f"{table.name.table}_{table.id[:8]}"))
    uow.tables.add(table, uow.schemas.get(table.name.parent))
    kind, told = EventKind.CREATED, {"type": table.type.value, "adopted": True}
    uow.events.add([replace(table_event(kind, table, at=table.created_at, by=promise.begun_by), data=told)])


async def _register(
    env: Environment, caller: Principal, found: FoundTable, name: TableName, *, dry_run: bool
) -> Adoption:
    """As an external table: its log stays whose it is."""
    metadata = found_metadata(found)
    creation = Creation(name, TableType.EXTERNAL, found.location, metadata, found.timestamp, None)
    if dry_run:
        return Adoption(name, TableId(""), found.location, found.version, b"")
    table = await create_table(env, caller, creation)
    return Adoption(name, table.id, found.location, found.version, b"")


def _table(promise: Promise, commit: OwnershipCommit, *, now: int) -> Table:
    return Table(
        id=promise.table_id,
        name=promise.name,
        type=TableType.MANAGED,
        format=DELTA,
        location=promise.location,
        owner=promise.begun_by,
        created_at=now,
        created_by=promise.begun_by,
        updated_at=now,
        updated_by=promise.begun_by,
        metadata=commit.metadata,
        revision=1,
        metadata_version=commit.version,
        metadata_timestamp=commit.timestamp,
        latest=commit.version,
        latest_timestamp=commit.timestamp,
        published=commit.version,
        unpublished=(),
        uniform=None,
    )


def _adopted(table: Table) -> Adoption:
    version = table.metadata.properties.get(ADOPTED_PROPERTY, "")
    return Adoption(
        table.name, table.id, table.location, Version(int(version)) if version.isdigit() else table.latest, b""
    )


def _adoption(promise: Promise) -> Adoption:
    commit = _planned(promise)
    return Adoption(promise.name, promise.table_id, promise.location, commit.version, commit.content)


def _planned(promise: Promise) -> OwnershipCommit:
    if promise.commit is None:
        raise AssertionError("an adoption is promised with its commit")
    return promise.commit
