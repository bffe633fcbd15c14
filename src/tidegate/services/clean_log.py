"""Cleaning the log of one table: staged files that have done their work, and history that is older than it need be.

The table is read first and its files are found afterwards: what is ratified or published meanwhile is newer than all
that is judged here. What one look does not see, because a folder holds too many files, the next ones do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from tidegate.domain.errors import NoSuchTable
from tidegate.domain.files import FoundFile
from tidegate.domain.log_cleanup import (
    DAY_MS,
    checkpoint_versions,
    checkpoints_to_read,
    plan_cleanup,
    sidecars_in,
    sidecars_to_remove,
)
from tidegate.domain.log_files import LOG, SIDECARS, STAGED
from tidegate.domain.log_retention import log_retention_ms
from tidegate.domain.names import TableId, Version
from tidegate.domain.staged_files import staged_files_to_remove
from tidegate.domain.tables import Table
from tidegate.services.environment import Environment
from tidegate.steps import reached

FILES_FOUND_MAX = 200_000
FILES_AT_ONCE = 1000
CHECKPOINTS_MAX = 500
"""Whose times are asked for, and whose sidecars are looked up, at once: the newest."""
CHECKPOINT_BYTES_MAX = 64 * 1024 * 1024

log = logging.getLogger(__name__)


async def clean_log(env: Environment, id: TableId) -> int:
    """How many files are gone. Raises Unavailable if the store fails."""
    try:
        table = await env.database.read(lambda uow: uow.tables.get_by_id(id))
    except NoSuchTable:
        return 0
    if not table.decided_here:
        return 0
    in_log = await _find(env, table, LOG)
    files = [*await _find(env, table, STAGED), *in_log]
    before = env.patient_clock() - env.retentions.staged_files_ms
    # A log may hold very many files: not on the thread that answers everybody.
    going = await asyncio.to_thread(staged_files_to_remove, table, files, before=before)
    history = await _old_history(env, table, files)
    paths = list(dict.fromkeys([*going, *history]))
    removed = await _remove(env, table, paths)
    if log_retention_ms(table.metadata.properties) is not None and len(in_log) < FILES_FOUND_MAX:
        removed += await _remove_sidecars(env, table)
    if removed:
        log.info("%s files of the log of %s are gone", removed, table.name)
    return removed


async def _find(env: Environment, table: Table, folder: str) -> Sequence[FoundFile]:
    return await env.table_files.find(table.location, below=folder, deep=False, limit=FILES_FOUND_MAX)


async def _old_history(env: Environment, table: Table, files: Sequence[FoundFile]) -> Sequence[str]:
    kept_ms = log_retention_ms(table.metadata.properties)
    if kept_ms is None:
        return ()
    checkpoints = sorted(await asyncio.to_thread(checkpoint_versions, files), reverse=True)[:CHECKPOINTS_MAX]
    if not checkpoints:
        return ()
    wanted = [(table.id, version) for version in checkpoints]
    commits = await env.database.read(lambda uow: uow.tables.ratified(wanted))
    times = {Version(version): commit.timestamp for (_, version), commit in commits.items()}
    moment = env.patient_clock() - kept_ms
    # History is kept in whole days, as other Delta clients keep it.
    cut_off = moment - moment % DAY_MS
    plan = await asyncio.to_thread(plan_cleanup, files, published=table.published, times=times, cut_off=cut_off)
    return () if plan is None else plan.paths


async def _remove(env: Environment, table: Table, paths: Sequence[str]) -> int:
    if paths:
        reached("clean.planned")
    for start in range(0, len(paths), FILES_AT_ONCE):
        batch = paths[start : start + FILES_AT_ONCE]
        await env.table_files.remove(table.location, batch)
        env.measures.removed_files.at("clean").value += len(batch)
        reached("clean.removed")
    return len(paths)


async def _remove_sidecars(env: Environment, table: Table) -> int:
    """Those of checkpoints that are gone. Sidecars are found first: a checkpoint that appears later has newer ones."""
    sidecars = await _find(env, table, SIDECARS)
    if not sidecars:
        return 0
    wanted = checkpoints_to_read(await _find(env, table, LOG))
    if wanted is None or len(wanted) > CHECKPOINTS_MAX:
        return 0
    referenced: set[str] = set()
    for path in wanted:
        content = await env.table_files.read(table.location, path, bytes_max=CHECKPOINT_BYTES_MAX)
        names = None if content is None else sidecars_in(content)
        if names is None:
            return 0
        referenced |= names
    going = sidecars_to_remove(sidecars, referenced=frozenset(referenced), now=env.patient_clock())
    return await _remove(env, table, going)
