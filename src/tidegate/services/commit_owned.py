"""Commits of tables that have the catalog as their commit owner: ratified by the same rules as everybody's.

    commit 6, latest is 5        ratified; published in a while, or when somebody asks for it
    the same commit again        it has happened: success, and nothing changes
    another commit 6             taken: the client rebases
    7 takes the owner away       everything is published, the table takes nothing else, 7 is put into the log as a file:
                                 from then on its file system decides on it, and it is known as an external table

What a commit changes of the table's metadata is read from its file: the request says nothing that could differ.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tidegate.domain.admission import admit_staged, check_admission, must_look
from tidegate.domain.commit_owner import OWNER_CONF_PROPERTY, check_conf, gives_back
from tidegate.domain.commits import Commit, check_commit
from tidegate.domain.desired_metadata import metadata_actions
from tidegate.domain.errors import CommitVersionConflict, InvalidRequest, NoSuchTable
from tidegate.domain.frozen import frozen
from tidegate.domain.names import Version
from tidegate.domain.ownership import Change, Kept, OwnershipCommit, Promise
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.ratification import conflict_of
from tidegate.domain.requirements import AssertTableId
from tidegate.domain.table_actions import check_storable, parse_table_actions
from tidegate.domain.tables import Table, TableMetadata, TableType, check_metadata
from tidegate.domain.updates import Action, AddCommit, MetadataAction, apply_metadata
from tidegate.services.authorized_table import authorize_by_id
from tidegate.services.environment import Environment
from tidegate.services.own_table import owned_table
from tidegate.services.publish_whole import published_whole
from tidegate.services.release_table import check_policy, keep_release
from tidegate.services.update_table import lost, replayed, update_table
from tidegate.steps import reached
from tidegate.telemetry.current import note

ATTEMPTS_MAX = 3
"""Somebody may rename the table between finding its name and committing to it."""


@frozen
class OwnedVersions:
    table: Table
    """After the commit."""
    commit: Commit


async def commit_owned(env: Environment, caller: Principal, *, id: str, location: str, commit: Commit) -> OwnedVersions:
    check_commit(commit)
    for attempt in range(1, ATTEMPTS_MAX + 1):
        table = await owned_table(env, caller, Operation.MODIFY_TABLE, id=id, location=location)
        if commit.version <= table.latest:
            return await _settled(env, table, commit)
        if table.type is not TableType.OWNED:
            raise _not_ours(table)
        try:
            return await _commit(env, caller, table, commit)
        except NoSuchTable:
            if attempt == ATTEMPTS_MAX:
                raise
    raise AssertionError("unreachable")


async def _settled(env: Environment, table: Table, commit: Commit) -> OwnedVersions:
    """Of a version that exists: this commit has it, or another one does."""
    key = (table.id, commit.version)
    holder = (await env.database.read(lambda uow: uow.tables.ratified([key]))).get(key)
    if holder is not None and holder.file_name == commit.file_name:
        replayed(env, table, commit.version)
        return OwnedVersions(table, holder)
    # The one that gave the table back was never ratified: it was put.
    if holder is None and await env.delta_logs.verified_sha256(table.location, commit) is not None:
        replayed(env, table, commit.version)
        return OwnedVersions(table, commit)
    raise await _lost(env, table, commit)


async def _lost(env: Environment, table: Table, commit: Commit) -> CommitVersionConflict:
    note(table.name, commit.version, "ratified")
    return await lost(env, table.name, table.id, conflict_of(table, commit.version))


def _not_ours(table: Table) -> InvalidRequest:
    now = "managed by the catalog" if table.type is TableType.MANAGED else "decided on by its file system"
    return InvalidRequest(f"{table.name} has no commit owner any more: it is {now}. Look at the table anew.")


async def _commit(env: Environment, caller: Principal, table: Table, commit: Commit) -> OwnedVersions:
    if commit.version > table.latest + 1:
        raise await _lost(env, table, commit)
    content = await env.delta_logs.read_staged(table.location, commit)
    if content is None:
        raise InvalidRequest(f"The staged file {commit.file_name} is not there. Write it before you propose it.")
    # It may speak of very many files: not on the thread that answers everybody.
    changes, after = await asyncio.to_thread(_read, content, commit, table.metadata)
    if gives_back(after.properties):
        # As every release does: who may change a table may not therefore take it from its catalog.
        await authorize_by_id(env, caller, Operation.MANAGE_TABLE, table.name, table.id)
        if must_look(table):
            seen = await asyncio.to_thread(admit_staged, content, commit)
            check_admission(seen, changes, before=table.metadata, after=after)
        return await _give_back(env, caller, table, commit, content, after)
    actions: list[Action] = [AddCommit(commit, None), *changes]
    done = await update_table(env, caller, table.name, requirements=[AssertTableId(table.id)], actions=actions)
    return OwnedVersions(done, commit)


def _read(content: bytes, commit: Commit, before: TableMetadata) -> tuple[list[MetadataAction], TableMetadata]:
    """What the commit does to the table's metadata, and what that is then."""
    said = parse_table_actions(content, what="the staged commit")
    check_storable(said, what="the staged commit")
    changes = metadata_actions(before, None, said)
    after = apply_metadata(before, changes, in_log=True)
    if not gives_back(after.properties) and _conf(after) != _conf(before):
        # Only then: a table whose conf was wrong from the beginning can still be changed, and given back.
        check_conf(after.properties)
    if len(content) != commit.file_size:
        raise InvalidRequest(f"The staged file {commit.file_name} has {len(content)} bytes, not {commit.file_size}.")
    stamped = None if said.commit_info is None else said.commit_info.get("inCommitTimestamp")
    if stamped != commit.timestamp:
        raise InvalidRequest(f"The inCommitTimestamp in the staged commit is {stamped}, not {commit.timestamp}.")
    return changes, after


def _conf(metadata: TableMetadata) -> str | None:
    return metadata.properties.get(OWNER_CONF_PROPERTY)


async def _give_back(
    env: Environment, caller: Principal, table: Table, commit: Commit, content: bytes, after: TableMetadata
) -> OwnedVersions:
    if commit.timestamp <= table.latest_timestamp:
        raise InvalidRequest(
            f"The timestamp of version {commit.version} is {commit.timestamp}, but version {table.latest} has "
            f"{table.latest_timestamp}. In-commit timestamps must rise: use a later one."
        )
    check_metadata(replace(table, type=TableType.EXTERNAL, metadata=after))
    await published_whole(env, table.id)
    last = OwnershipCommit(commit.version, commit.timestamp, content, after)
    promise = Promise(
        table.id, Change.RELEASE, table.name, table.location, last, Kept.EXTERNAL, env.clock(), caller.name
    )
    await env.database.write(lambda uow: _promise(uow, promise, commit.version))
    reached("own.returning")
    await keep_release(env, promise)
    return OwnedVersions(await env.database.read(lambda uow: uow.tables.get_by_id(table.id)), commit)


def _promise(uow: UnitOfWork, promise: Promise, version: Version) -> None:
    """Decided with the row locked: it is the next version, and all before it are in the log."""
    table = uow.tables.lock([promise.table_id]).get(promise.table_id)
    if table is None or table.name != promise.name:
        raise NoSuchTable(promise.name)
    if table.type is not TableType.OWNED:
        raise _not_ours(table)
    if version != table.latest + 1:
        raise conflict_of(table, version)
    check_policy(uow, table.name)
    if table.unpublished:
        raise AssertionError("what was published stays so")
    uow.ownership.promise(promise)
    uow.tables.change(replace(table, releasing=version))
