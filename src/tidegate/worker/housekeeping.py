"""Housekeeping: tables whose time is over are purged or expire, one server at a time, a few folders at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tidegate.domain.removals import Removal
from tidegate.services.environment import Environment
from tidegate.services.expire_staging import EXPIRED_AT_ONCE, expire_staging
from tidegate.services.purge_table import MARKED_AT_ONCE, mark_overdue
from tidegate.services.remove_folder import REMOVALS_AT_ONCE, due_removals, remove_folder

FOLDERS_AT_ONCE = 4


async def end_retentions(env: Environment) -> None:
    async with env.database.exclusively("ending retentions") as alone:
        if alone:
            while await mark_overdue(env) == MARKED_AT_ONCE:
                pass
            while await expire_staging(env) == EXPIRED_AT_ONCE:
                pass


async def remove_folders(env: Environment) -> None:
    async with env.database.exclusively("removing folders") as alone:
        while alone and (due := await due_removals(env)):
            await _remove(env, due)
            alone = len(due) == REMOVALS_AT_ONCE


async def _remove(env: Environment, due: Sequence[Removal]) -> None:
    turns = asyncio.Semaphore(FOLDERS_AT_ONCE)

    async def remove(removal: Removal) -> None:
        async with turns:
            await remove_folder(env, removal)

    async with asyncio.TaskGroup() as tasks:
        for removal in due:
            tasks.create_task(remove(removal))
