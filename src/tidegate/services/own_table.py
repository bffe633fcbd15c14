"""Registering: the catalog becomes the commit owner of a table on a file system, by a commit that the client puts.

    1. promise     the client's table is at v; the catalog agrees to own it from v + 1 on, and takes the place
    2. put         by the client: _delta_log/<v + 1>.json, if absent. It names us, and the id that we gave. THE COMMIT
    3. register    by whoever asks for the table next: the file is there, so the table is registered

The client may lose its version to another writer, or die. So a promise counts for nothing until the file is there, and
it is not forgotten until then: who has been named in a log must be there. It ends when its version is somebody else's.
Who promises again gets the same id: of two clients that take the same table over, one wins, and both named the same.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tidegate.domain.errors import (
    InvalidRequest,
    NoSuchCatalog,
    NoSuchSchema,
    NoSuchTable,
    PermissionDenied,
    TooManyRequests,
)
from tidegate.domain.events import EventKind, table_event
from tidegate.domain.locations import normalize_location
from tidegate.domain.names import NAME_LENGTH_MAX, SchemaName, TableId, TableName, Version, parse_table_id
from tidegate.domain.ownership import (
    Change,
    FoundTable,
    Kept,
    Promise,
    check_adoptable,
    found_metadata,
    is_owned_as,
)
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.tables import DELTA, Table, TableType
from tidegate.services.adoptable_locations import check_adoptable_place, check_no_way_out
from tidegate.services.authorized_table import authorize_by_id
from tidegate.services.environment import Environment
from tidegate.services.places import check_free
from tidegate.steps import reached

VERSION_MAX = 2**63 - 2
WAITING_MAX = 500
"""Tables that the catalog has agreed to own, and that no client has made its own yet."""
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")


async def register_owned(
    env: Environment, caller: Principal, location: str, schema: SchemaName, *, version: Version
) -> Promise:
    """The promise to own the table from the version after this one on. -1: there is no version yet."""
    if not -1 <= version < VERSION_MAX:
        raise InvalidRequest(f"The table's current version is -1 (there is none yet) or higher, not {version}.")
    place, awaited = normalize_location(location), Version(version + 1)
    known, table = await env.database.read(lambda uow: _look(uow, place))
    if table is None:
        tell = (await env.authorize(caller, Operation.CREATE_TABLE, schema)).names is None
    else:
        tell = (await authorize_by_id(env, caller, Operation.MANAGE_TABLE, table.name, table.id)).names is None
    if known is not None:
        await keep_registration(env, known)
    else:
        await check_no_way_out(env, place)
    await _check_takeover(env, place, version)
    promise = await env.database.write(
        lambda uow: _promise(uow, env, caller, place, schema, awaited=awaited, tell=tell)
    )
    if table is None and promise.begun_by != caller.name:
        await _check_may_join(env, caller, promise)
    reached("own.promised")
    return promise


async def _check_may_join(env: Environment, caller: Principal, promise: Promise) -> None:
    """Who takes a table over that somebody else takes over already gets it where that one has it listed."""
    try:
        await env.authorize(caller, Operation.CREATE_TABLE, promise.name.parent)
    except (PermissionDenied, NoSuchSchema, NoSuchCatalog):
        raise InvalidRequest(
            f"{promise.location} is at, above or below the place of something else. Tables may not overlap."
        ) from None


async def keep_registration(env: Environment, promise: Promise) -> bool:
    """Whether it has come to an end: the table is registered, or its version is somebody else's. Else it waits on."""
    awaited = promise.awaited
    if awaited is None or promise.change is not Change.OWN:
        return False
    if await env.delta_logs.read_published(promise.location, awaited) is None:
        return False
    found = await env.found_tables.find(promise.location)
    if not is_owned_as(found, promise.table_id):
        await env.database.write(lambda uow: uow.ownership.strike_out(promise))
        return True
    reached("own.found")
    await env.database.write(lambda uow: _register(uow, env, promise, found))
    reached("own.registered")
    env.access.epoch.advance()
    env.feed.notice()
    return True


async def owned_table(env: Environment, caller: Principal, operation: Operation, *, id: str, location: str) -> Table:
    """A table that this catalog owns, or did: registered now if its client has just put the commit that says so."""
    table_id, place = parse_table_id("table_id", id), normalize_location(location)
    table, promise = await env.database.read(lambda uow: _named(uow, table_id))
    if promise is not None and promise.change is Change.OWN:
        await keep_registration(env, promise)
        table, _ = await env.database.read(lambda uow: _named(uow, table_id))
    shown = f"with id {table_id}"
    if table is None:
        # Who may not see it cannot tell a table that is hidden from one that is not there.
        await env.authorize(caller, operation, shown)
        raise NoSuchTable(shown)
    await authorize_by_id(env, caller, operation, table.name, table_id)
    if table.location != place:
        raise InvalidRequest(f"The table with id {table_id} is at {table.location}, not at {place[:200]}. Check both.")
    return table


async def _check_takeover(env: Environment, place: str, version: Version) -> None:
    """All that could be in the way: once the client has put its commit, nothing may be."""
    if version < 0:
        if await env.delta_logs.read_published(place, Version(0)) is not None:
            raise InvalidRequest(f"There is a table at {place} already. Look at it anew.")
        return
    found = await env.found_tables.find(place)
    if found.version != version:
        raise InvalidRequest(f"The table at {place} is at version {found.version}, not {version}. Look at it anew.")
    check_adoptable(found)
    found_metadata(found)
    await env.found_tables.check_writable(place)


def _look(uow: UnitOfWork, place: str) -> tuple[Promise | None, Table | None]:
    name = uow.tables.find_by_location(place)
    return uow.ownership.find(place), None if name is None else uow.tables.get(name)


def _named(uow: UnitOfWork, id: TableId) -> tuple[Table | None, Promise | None]:
    promise = uow.ownership.get(id)
    try:
        return uow.tables.get_by_id(id), promise
    except NoSuchTable:
        return None, promise


def _promise(
    uow: UnitOfWork,
    env: Environment,
    caller: Principal,
    place: str,
    schema: SchemaName,
    *,
    awaited: Version,
    tell: bool,
) -> Promise:
    known, table = _look(uow, place)
    if known is not None:
        _check_same(known, awaited)
        return known
    if table is not None and table.type is not TableType.EXTERNAL:
        raise InvalidRequest(f"The catalog decides on {place} already, as {table.name}. Look at the table anew.")
    check_adoptable_place(uow, env, place)
    _check_waiting(uow)
    if table is None:
        check_free(uow, place, tell=tell)
    # Locked, so that neither goes or is renamed without seeing the promise.
    parent = schema if table is None else table.name.parent
    uow.catalogs.lock(parent.catalog)
    uow.schemas.lock(parent)
    if table is not None:
        table = _still_external(uow, table)
    # What was decided here before it was given back is another table's history: there are versions in between.
    again = table is not None and bool(uow.tables.history(table.id, before=None, limit=1))
    id = TableId(env.new_id()) if table is None or again else table.id
    name = _name(uow, schema, place, id) if table is None else table.name
    promise = Promise(id, Change.OWN, name, place, None, Kept.NOTHING, env.clock(), caller.name, awaited)
    uow.ownership.promise(promise)
    return promise


def _check_waiting(uow: UnitOfWork) -> None:
    if uow.ownership.count(Change.OWN) >= WAITING_MAX:
        raise TooManyRequests(
            f"{WAITING_MAX} tables wait for clients that wanted to make the catalog their commit owner. Commit to some "
            "of them, which ends that; tidegate doctor names them."
        )


def _still_external(uow: UnitOfWork, table: Table) -> Table:
    locked = uow.tables.lock([table.id]).get(table.id)
    if locked is None or locked.name != table.name or locked.type is not TableType.EXTERNAL:
        raise InvalidRequest(f"{table.name} has changed meanwhile. Look at the table anew.")
    return locked


def _check_same(known: Promise, awaited: Version) -> None:
    """Another client takes the same table over. Versions that are in the log have been looked at before."""
    if known.change is not Change.OWN:
        raise InvalidRequest(f"{known.location} is being {known.doing} already. Wait until that is done.")
    if known.awaited != awaited:
        raise InvalidRequest(
            f"Somebody else takes {known.location} over with version {known.awaited}, not with {awaited}. Look at "
            "the table anew."
        )


def _name(uow: UnitOfWork, schema: SchemaName, place: str, id: TableId) -> TableName:
    """After its folder. A table that has an owner is known by its place; this is what it is listed as."""
    folder = _UNFIT.sub("_", place.rpartition("/")[2])[: NAME_LENGTH_MAX - 9].strip("_") or "table"
    name = TableName(schema.catalog, schema.schema, folder)
    return replace(name, table=f"{folder}_{id[:8]}") if uow.tables.exists(name) else name


def _register(uow: UnitOfWork, env: Environment, promise: Promise, found: FoundTable) -> None:
    """Does nothing where it was done before."""
    if not uow.ownership.strike_out(promise):
        return
    _, known = _look(uow, promise.location)
    before = None if known is None else uow.tables.lock([known.id]).get(known.id)
    table = _table(promise, found, now=env.clock(), before=before)
    schema = uow.schemas.get(table.name.parent)
    if before is None:
        if uow.tables.exists(table.name):
            table = replace(table, name=_name(uow, schema.name, table.location, table.id))
        uow.tables.add(table, schema)
    elif before.id == table.id:
        uow.tables.change(table)
    else:
        uow.tables.succeed(before.id, table, schema)
    event = table_event(EventKind.CREATED, table, at=table.updated_at, by=promise.begun_by)
    uow.events.add([replace(event, data={"type": table.type.value, "adopted": True})])


def _table(promise: Promise, found: FoundTable, *, now: int, before: Table | None) -> Table:
    """`before` is the external table that it was known as."""
    metadata = found_metadata(found)
    if before is not None:
        metadata = replace(metadata, catalog_properties=before.metadata.catalog_properties)
    return Table(
        id=promise.table_id,
        name=promise.name if before is None else before.name,
        type=TableType.OWNED,
        format=DELTA,
        location=promise.location,
        owner=promise.begun_by if before is None else before.owner,
        created_at=now if before is None else before.created_at,
        created_by=promise.begun_by if before is None else before.created_by,
        updated_at=now,
        updated_by=promise.begun_by,
        metadata=metadata,
        revision=1 if before is None else before.revision + 1,
        metadata_version=found.version,
        metadata_timestamp=found.timestamp,
        latest=found.version,
        latest_timestamp=found.timestamp,
        published=found.version,
        unpublished=(),
        uniform=None,
    )
