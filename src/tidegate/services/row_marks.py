"""How far the ids of a table's rows go, looked up in its newest commits."""

from __future__ import annotations

from tidegate.domain.commits import Commit
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.names import Version
from tidegate.domain.protocol import ROW_TRACKING_DOMAIN
from tidegate.domain.row_ids import NO_ROWS, RowMark
from tidegate.domain.table_actions import parse_table_actions
from tidegate.domain.tables import Table
from tidegate.services.environment import Environment
from tidegate.services.inline_contents import content_of

LOOKED_BACK_MAX = 1000
"""Commits that are read for the newest one that gave ids to rows."""


async def find_row_mark(env: Environment, table: Table, *, fresh: bool) -> RowMark | None:
    """As of the table's latest version; with `fresh` of the present one. None if the catalog knows it itself."""
    if fresh:
        table = await env.database.read(lambda uow: uow.tables.get_by_id(table.id))
    if table.row_mark is not None and table.row_mark.version == table.latest:
        return None
    version = table.latest
    for _ in range(LOOKED_BACK_MAX):
        if version < 0:
            return RowMark(table.latest, NO_ROWS)
        if table.row_mark is not None and table.row_mark.version == version:
            return RowMark(table.latest, table.row_mark.highest)
        highest = await _highest(env, table, version)
        if highest is not None:
            return RowMark(table.latest, highest)
        version = Version(version - 1)
    raise InvalidRequest(
        f"The last {LOOKED_BACK_MAX} commits to {table.name} do not tell how far the ids of its rows go. Append with a "
        "version of your own."
    )


async def _highest(env: Environment, table: Table, version: Version) -> int | None:
    content = await _content(env, table, version)
    if content is None:
        raise InvalidRequest(
            f"Version {version} of {table.name} cannot be read, so nobody can tell how far the ids of its rows go. "
            "Append with a version of your own."
        )
    told = parse_table_actions(content, what=f"version {version}").domains.get(ROW_TRACKING_DOMAIN)
    highest = None if told is None else told.get("rowIdHighWaterMark")
    return highest if type(highest) is int else None


async def _content(env: Environment, table: Table, version: Version) -> bytes | None:
    commit: Commit | None = table.ratified(version)
    if commit is not None:
        return await content_of(env, table, commit)
    return await env.delta_logs.read_published(table.location, version)
