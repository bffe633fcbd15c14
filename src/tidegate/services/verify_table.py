"""Verifying a table: its chain and the files of its log, a bounded number of versions at a time.

The rows are one snapshot. The files are read afterwards: what is published meanwhile is not looked at, and what is
cleaned up meanwhile is found to be so, because that is looked for last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tidegate.domain.chain import FileDigest, Link
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.log_cleanup import DAY_MS, checkpoint_versions, cut_off_checkpoint
from tidegate.domain.log_files import LOG, LogFileKind, parse_log_file
from tidegate.domain.log_retention import log_retention_ms
from tidegate.domain.names import TableName, Version
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.tables import Table, TableType, require_delta
from tidegate.domain.verification import Verified, missing_versions, verify_links
from tidegate.services.environment import Environment

VERSIONS_AT_ONCE = 200
VERSIONS_AT_ONCE_MAX = 1000
BYTES_AT_ONCE = 256 * 1024 * 1024
"""Of commits that one answer is about; at least one is looked at, however large."""
FILES_AT_ONCE = 50
"""That are read before others get the thread."""
FILES_FOUND_MAX = 200_000


@frozen
class Verification:
    table: Table
    first: Version | None
    last: Version | None
    """Of the versions that were looked at; None if there were none."""
    verified: Verified
    next_after: Version | None
    """Where to go on; None at the end, or at a difference."""


async def verify_table(
    env: Environment, caller: Principal, name: TableName, *, after: Version | None = None, limit: int = VERSIONS_AT_ONCE
) -> Verification:
    if not 1 <= limit <= VERSIONS_AT_ONCE_MAX:
        raise InvalidRequest(f"max_results is {limit}. Use 1 to {VERSIONS_AT_ONCE_MAX}, or leave it out.")
    await env.authorize(caller, Operation.READ_TABLE, name)
    page = await env.database.read(lambda uow: _read(uow, name, after, limit))
    table, links = page.table, page.links
    files = await _files(env, table, links)
    cleaned_before = Version(0)
    if missing_versions(table, links, files):
        cleaned_before = await _cleaned_before(env, table)
    found = await asyncio.to_thread(
        verify_links,
        table,
        links,
        before=page.before,
        files=files,
        cleaned_before=cleaned_before,
        to_the_end=page.whole,
    )
    versions = [link.commit.version for link in links]
    ends = page.whole or found.difference is not None
    return Verification(
        table,
        versions[0] if versions else None,
        versions[-1] if versions else None,
        found,
        None if ends else versions[-1],
    )


@frozen
class _Page:
    table: Table
    before: Link | None
    links: Sequence[Link]
    whole: bool
    """Whether there are no links after these."""


def _read(uow: UnitOfWork, name: TableName, after: Version | None, limit: int) -> _Page:
    table = require_delta(uow.tables.get(name))
    if table.type is not TableType.MANAGED:
        raise InvalidRequest(
            f"{name} is external: the catalog has ratified none of its commits, and can prove nothing."
        )
    first = uow.chains.first(table.id)
    if after is None:
        links = [*([] if first is None else [first]), *uow.chains.links(table.id, after=Version(-1), limit=limit + 1)]
        before = None
    else:
        behind = uow.chains.links(table.id, after=Version(after - 1), limit=1)
        before = first if first is not None and first.commit.version == after else next(iter(behind), None)
        if before is None or before.commit.version != after:
            raise InvalidRequest(f"{name} has no ratified version {after} to go on after. Start again without it.")
        links = list(uow.chains.links(table.id, after=after, limit=limit + 1))
    taken = _at_once(links[:limit])
    return _Page(table, before, taken, whole=len(taken) == len(links))


def _at_once(links: Sequence[Link]) -> Sequence[Link]:
    total = 0
    for count, link in enumerate(links):
        total += link.commit.file_size
        if count and total > BYTES_AT_ONCE:
            return links[:count]
    return links


async def _files(env: Environment, table: Table, links: Sequence[Link]) -> dict[Version, FileDigest]:
    versions = [link.commit.version for link in links if link.commit.version <= table.published]
    files: dict[Version, FileDigest] = {}
    for start in range(0, len(versions), FILES_AT_ONCE):
        files |= await env.delta_logs.published_digests(table.location, versions[start : start + FILES_AT_ONCE])
    return files


async def _cleaned_before(env: Environment, table: Table) -> Version:
    """Files of versions before this one may be gone: the table's retention allows it, and nothing older is left."""
    kept_ms = log_retention_ms(table.metadata.properties)
    if kept_ms is None:
        return Version(0)
    found = await env.table_files.find(table.location, below=LOG, deep=False, limit=FILES_FOUND_MAX)
    log = [file for one in found if (file := parse_log_file(one)) is not None]
    checkpoints = [(table.id, version) for version in checkpoint_versions(found)]
    commits = await env.database.read(lambda uow: uow.tables.ratified(checkpoints))
    times = {version: commit.timestamp for (_, version), commit in commits.items()}
    moment = env.patient_clock() - kept_ms
    cut_off = moment - moment % DAY_MS
    checkpoint = cut_off_checkpoint(log, published=table.published, times=times, cut_off=cut_off)
    left = [file.version for file in log if file.kind is LogFileKind.PUBLISHED]
    return Version(0) if checkpoint is None or not left else min(checkpoint, *left)
