"""What a commit owner tells of a table: the ratified commits that are not published yet, and the latest version; and
publishing on request, for whoever needs the file in the log, such as one who is about to write a checkpoint.
"""

from __future__ import annotations

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.names import Version
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.tables import Table, TableType
from tidegate.services.environment import Environment
from tidegate.services.get_commits import RatifiedCommits, check_range
from tidegate.services.own_table import owned_table
from tidegate.services.publish_whole import published_whole


async def owned_commits(
    env: Environment, caller: Principal, *, id: str, location: str, start: int | None, end: int | None
) -> RatifiedCommits:
    first = 0 if start is None else start
    check_range(first, end)
    table = await owned_table(env, caller, Operation.READ_TABLE, id=id, location=location)
    env.activity.count_load(table)
    # Of a table that is managed by now its catalog tells, and the log says so.
    unpublished = table.unpublished if table.type is TableType.OWNED else ()
    wanted = [one for one in unpublished if first <= one.version and (end is None or one.version <= end)]
    latest = table.latest if table.type is not TableType.MANAGED else table.published
    return RatifiedCommits(wanted[: env.commits_page_size_max], latest)


async def publish_owned(env: Environment, caller: Principal, *, id: str, location: str, version: int) -> Table:
    """All commits up to this version are in the log, and verified there."""
    table = await owned_table(env, caller, Operation.READ_TABLE, id=id, location=location)
    if not 0 <= version <= table.latest:
        raise InvalidRequest(
            f"{table.name} has no version {version}: its latest is {table.latest}. Ask for one it has."
        )
    if table.type is not TableType.OWNED:
        return table
    return await published_whole(env, table.id, up_to=Version(version))
