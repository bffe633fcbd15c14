"""Adopting: a table that lies on a file system, and that other writers may be writing to, becomes a managed one.

    1. look        the log can be read, nobody owns the table, its features are known, the server can write there
    2. promise     what is going to be put into the log is written down, and the name and the place are taken
    3. put         _delta_log/<v>.json, if absent: THE COMMIT. If a writer was first: look again, and go on
    4. register    the table is a table of the catalog, and the promise is struck out

After the third step the catalog cannot refuse any more, and does not: whoever finds the promise goes on with it, see
`keep_promises.py`. What went wrong before it has changed nothing. Who asks again for what has happened is told so.
A table that has the catalog as its commit owner goes the same way, after `adopt_owned.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from tidegate.domain.chain import FileDigest
from tidegate.domain.errors import InvalidRequest, NoSuchTable, TableAlreadyExists, Unavailable
from tidegate.domain.events import EventKind, table_event
from tidegate.domain.locations import normalize_location
from tidegate.domain.names import TableId, TableName, Version, check_name
from tidegate.domain.ownership import (
    ADOPTED_PROPERTY,
    Change,
    FoundTable,
    Kept,
    OwnershipCommit,
    Promise,
    check_unowned,
    found_metadata,
    is_commit_of,
    plan_adoption,
)
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.protocol import LEAST_CONTRACT
from tidegate.domain.tables import DELTA, Table, TableType, check_metadata
from tidegate.services.adopt_owned import (
    Adoption,
    adopt_owned,
    end_if_owned,
    plan_owned_adoption,
    register_owned_adoption,
)
from tidegate.services.adoptable_locations import check_adoptable_place, check_no_way_out
from tidegate.services.create_table import Creation, add_managed, create_table
from tidegate.services.environment import Environment
from tidegate.services.own_table import keep_registration
from tidegate.services.places import check_free
from tidegate.steps import reached
from tidegate.telemetry.current import note

ATTEMPTS_MAX = 20
"""Each that fails lost its version to a writer of the file system."""
NAME_KEPT_MAX = 200
"""Characters of a name that are kept when it has to be made another one."""


async def adopt_table(
    env: Environment,
    caller: Principal,
    location: str,
    name: TableName,
    *,
    external: bool = False,
    dry_run: bool = False,
) -> Adoption:
    note(name, None, "ok")
    check_name("table", name.table)
    operation = Operation.CREATE_EXTERNAL_TABLE if external else Operation.CREATE_TABLE
    allowed = await env.authorize(caller, operation, name.parent)
    tell = allowed.names is None
    place = normalize_location(location)

    await _end_registration(env, place)

    def look(uow: UnitOfWork) -> Promise | Table | None:
        return _look(uow, env, place, name, external=external, by=None if tell else caller.name)

    known = await env.database.read(look)
    if isinstance(known, Table) or (known is not None and not dry_run):
        return await _go_on(env, caller, known, name, dry_run=dry_run, tell=tell)
    await check_no_way_out(env, place)
    if external:
        return await _register(env, caller, await env.found_tables.find(place), name, dry_run=dry_run)
    try:
        begun = await _begin(env, caller, place, name, dry_run=dry_run, tell=tell)
    except (InvalidRequest, TableAlreadyExists):
        # Somebody else may have begun to adopt it, or done so, after the first look.
        known = await env.database.read(look)
        if known is None or dry_run:
            raise
        return await _go_on(env, caller, known, name, dry_run=dry_run, tell=tell)
    return begun if isinstance(begun, Adoption) else await keep_adoption(env, begun)


async def _end_registration(env: Environment, place: str) -> None:
    """One whose client has put its commit, or has lost its version, is not in the way for any longer."""
    promise = await env.database.read(lambda uow: uow.ownership.find(place))
    if promise is not None:
        await keep_registration(env, promise)


async def keep_adoption(env: Environment, promise: Promise) -> Adoption:
    """Goes on until the table is registered. Raises InvalidRequest, and the promise has ended, if that can never be."""
    if promise.commit is None:
        promise = await plan_owned_adoption(env, promise)
    for attempt in range(1, ATTEMPTS_MAX + 1):
        commit = _planned(promise)
        if await env.delta_logs.put_if_absent(promise.location, commit.version, commit.content):
            reached("adopt.put")
            name = await env.database.write(lambda uow, kept=promise: _register_promised(uow, env, kept))
            reached("adopt.registered")
            env.access.epoch.advance()
            env.feed.notice()
            return Adoption(name, promise.table_id, promise.location, commit.version, commit.content)
        await end_if_owned(env, promise)
        if attempt < ATTEMPTS_MAX:
            planned = await _plan_anew(env, promise)
            if isinstance(planned, Adoption):
                return planned
            promise = planned
    # What was promised last has lost its version, so nobody can have put it. A promise of the next one is not struck
    # out: whoever made that may just be putting it.
    await env.database.write(lambda uow: uow.ownership.strike_out(promise))
    raise Unavailable(
        f"Others write to {promise.location} so fast that it could not be adopted. Nothing has changed; try again."
    )


async def _begin(
    env: Environment, caller: Principal, place: str, name: TableName, *, dry_run: bool, tell: bool
) -> Promise | Adoption:
    """The promise; of a dry run, what it would lead to."""
    found = await env.found_tables.find(place)
    id = TableId(env.new_id())
    commit = plan_adoption(found, table_id=id, txn_id=env.new_id(), now=env.clock())
    promise = Promise(id, Change.ADOPT, name, place, commit, Kept.NOTHING, env.clock(), caller.name)
    check_metadata(_table(promise, commit, now=env.clock()), LEAST_CONTRACT)
    await env.found_tables.check_writable(place)
    if dry_run:
        await env.database.write(lambda uow: check_free(uow, place, tell=tell))
        return Adoption(name, id, place, commit.version, commit.content)
    await env.database.write(lambda uow: _promise(uow, promise, tell=tell))
    reached("adopt.promised")
    return promise


async def _go_on(
    env: Environment, caller: Principal, known: Promise | Table, name: TableName, *, dry_run: bool, tell: bool
) -> Adoption:
    """With an adoption that is under way, or has led to a table; or with the table whose commit owner we are."""
    if isinstance(known, Promise):
        return await keep_adoption(env, known)
    if known.type is TableType.OWNED:
        begun = await adopt_owned(env, caller, known, name, dry_run=dry_run)
        return begun if isinstance(begun, Adoption) else await keep_adoption(env, begun)
    if not tell and known.owner != caller.name:
        raise TableAlreadyExists(name)
    return _adopted(known)


def _look(
    uow: UnitOfWork, env: Environment, place: str, name: TableName, *, external: bool, by: str | None
) -> Promise | Table | None:
    """The adoption that is under way, or the table that it has led to."""
    uow.schemas.get(name.parent)
    promise = uow.ownership.find(place)
    if promise is not None:
        if by not in (None, promise.begun_by):
            raise InvalidRequest(f"{place} is at, above or below the place of something else. Tables may not overlap.")
        if promise.name != name or promise.change is not Change.ADOPT:
            raise InvalidRequest(
                f"{place} is being {promise.doing} already, as {promise.name}. Wait until that is done."
            )
        return promise
    at_place = uow.tables.find_by_location(place)
    if at_place is not None and not external and uow.tables.get(at_place).type is TableType.OWNED:
        if name != at_place and uow.tables.exists(name):
            raise TableAlreadyExists(name)
        return uow.tables.get(at_place)
    if uow.tables.exists(name):
        table = uow.tables.get(name)
        if table.location == place and (table.type is TableType.EXTERNAL) == external:
            return table
        if by not in (None, table.owner):
            raise TableAlreadyExists(name)
        _refuse_name(table, place)
    check_adoptable_place(uow, env, place)
    return None


def _refuse_name(table: Table, place: str) -> NoReturn:
    if table.location == place and table.type is TableType.EXTERNAL:
        raise InvalidRequest(
            f"{table.name} is known as an external table at {place}. Drop that entry first, which removes no file: "
            f"tidegate drop {table.name}"
        )
    raise TableAlreadyExists(table.name)


def _promise(uow: UnitOfWork, promise: Promise, *, tell: bool) -> None:
    check_free(uow, promise.location, tell=tell)
    # Locked, so that neither goes or is renamed without seeing the promise.
    uow.catalogs.lock(promise.name.catalog)
    uow.schemas.lock(promise.name.parent)
    if uow.tables.exists(promise.name):
        raise TableAlreadyExists(promise.name)
    uow.ownership.promise(promise)


async def _plan_anew(env: Environment, promise: Promise) -> Promise | Adoption:
    """After a lost version: that one can never be ours, so whoever plans first decides for all, and may be done."""
    try:
        found = await env.found_tables.find(promise.location)
        # Ours already: somebody else who keeps this promise has planned it anew and put it.
        if not is_commit_of(found, promise.table_id):
            commit = plan_adoption(found, table_id=promise.table_id, txn_id=env.new_id(), now=env.clock())
            # Who was first may have made it a table that cannot be a managed one.
            check_metadata(_table(promise, commit, now=env.clock()), LEAST_CONTRACT)
            await env.database.write(lambda uow: uow.ownership.plan(promise, commit))
            reached("adopt.planned_anew")
    except InvalidRequest:
        # Somebody else owns it by now, or it is gone.
        await env.database.write(lambda uow: uow.ownership.strike_out(promise))
        raise
    return await env.database.read(lambda uow: _look_again(uow, promise))


def _look_again(uow: UnitOfWork, promise: Promise) -> Promise | Adoption:
    planned = uow.ownership.get(promise.table_id)
    if planned is not None:
        return planned
    try:
        return _adopted(uow.tables.get_by_id(promise.table_id))
    except NoSuchTable:
        raise InvalidRequest(
            f"The adoption of {promise.location} was ended by somebody else meanwhile. Look at it."
        ) from None


def _register_promised(uow: UnitOfWork, env: Environment, promise: Promise) -> TableName:
    """What the table is called now. Does nothing where it was done before."""
    if not uow.ownership.strike_out(promise):
        return _registered_name(uow, promise)
    owned = uow.tables.lock([promise.table_id]).get(promise.table_id)
    if owned is not None:
        return register_owned_adoption(uow, env, promise, owned)
    table = _table(promise, _planned(promise), now=env.clock())
    if uow.tables.exists(table.name):
        # Somebody took the name meanwhile. The log says already that the table is ours: it gets another one.
        table = replace(table, name=replace(table.name, table=f"{table.name.table[:NAME_KEPT_MAX]}_{table.id[:8]}"))
    first = FileDigest.of(_planned(promise).content)
    add_managed(uow, table, uow.schemas.get(table.name.parent), first=first)
    kind, told = EventKind.CREATED, {"type": table.type.value, "adopted": True}
    uow.events.add([replace(table_event(kind, table, at=table.created_at, by=promise.begun_by), data=told)])
    return table.name


def _registered_name(uow: UnitOfWork, promise: Promise) -> TableName:
    try:
        return uow.tables.get_by_id(promise.table_id).name
    except NoSuchTable:
        return promise.name  # Dropped since.


async def _register(
    env: Environment, caller: Principal, found: FoundTable, name: TableName, *, dry_run: bool
) -> Adoption:
    """As an external table: its log stays whose it is."""
    check_unowned(found)
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


def _planned(promise: Promise) -> OwnershipCommit:
    if promise.commit is None:
        raise AssertionError("an adoption is promised with its commit")
    return promise.commit
