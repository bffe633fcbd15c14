"""The ratified commits of a table that are not published yet, in bounded pages, with its latest version.

unpublished 4 to 9, pages of at most 3:  from 0 -> 4 5 6,  from 7 -> 7 8 9;  the latest version is 9 both times
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.domain.commits import Commit
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.tables import DELTA, Table
from tidegate.services.environment import Environment
from tidegate.services.identified_table import identified_table
from tidegate.services.learn_commits import up_to_date
from tidegate.services.stage_inline_commits import with_files

NOT_MANAGED = -1


@frozen
class RatifiedCommits:
    commits: Sequence[Commit]
    """In order, without a gap; more of them may follow."""
    latest: int
    """The table's latest version, whatever was asked for; NOT_MANAGED if it is not decided here."""


async def get_commits(
    env: Environment, caller: Principal, *, table_id: str, location: str, start: int | None, end: int | None
) -> RatifiedCommits:
    first = 0 if start is None else start
    check_range(first, end)
    table = await identified_table(env, caller, Operation.READ_TABLE, table_id=table_id, location=location)
    if not _is_ours(table):
        return RatifiedCommits((), NOT_MANAGED)
    table = await up_to_date(env, table)
    env.activity.count_load(table)
    table = await with_files(env, table)
    wanted = [c for c in table.unpublished if first <= c.version and (end is None or c.version <= end)]
    return RatifiedCommits(wanted[: env.commits_page_size_max], table.latest)


def _is_ours(table: Table) -> bool:
    return table.decided_here and table.format == DELTA


def check_range(start: int, end: int | None) -> None:
    if start < 0 or (end is not None and end < 0):
        raise InvalidRequest("start_version and end_version are 0 or higher. Send them so, or leave them out.")
    if end is not None and end < start:
        raise InvalidRequest(f"end_version {end} is lower than start_version {start}. Ask for a range that exists.")
