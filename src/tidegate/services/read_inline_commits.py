"""The ratified commits of a table that are not published yet, the inline ones with their content.

One answer is enough to read the table: where it is, its latest version, and what the log does not have yet. Nothing is
staged for a client that asks like this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidegate.domain.commits import Commit
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableName, Version
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.tables import Table, TableType, require_delta
from tidegate.services.authorized_table import still
from tidegate.services.environment import Environment
from tidegate.services.learn_commits import up_to_date

CONTENT_BYTES_MAX = 8 * 1024 * 1024
"""Of all contents in one answer; at least one commit is always in it."""


@frozen
class KeptCommits:
    table: Table
    latest: Version | None
    """None: the table is external, and nobody ratifies its commits."""
    commits: Sequence[Commit]
    """In order, without a gap; more of them may follow."""
    contents: Mapping[Version, bytes]


async def read_inline_commits(
    env: Environment, caller: Principal, name: TableName, *, start: int | None, end: int | None
) -> KeptCommits:
    allowed = await env.authorize(caller, Operation.READ_TABLE, name)
    first = 0 if start is None else start
    if first < 0 or (end is not None and end < first):
        raise InvalidRequest(
            "start_version is 0 or higher, and end_version not lower. Send them so, or leave them out."
        )
    kept = await env.database.read(lambda uow: _read(uow, name, first, end, env.commits_page_size_max))
    if await up_to_date(env, kept.table) is not kept.table:
        kept = await env.database.read(lambda uow: _read(uow, name, first, end, env.commits_page_size_max))
    env.activity.count_load(still(allowed, kept.table))
    return kept


def _read(uow: UnitOfWork, name: TableName, first: int, end: int | None, commits_max: int) -> KeptCommits:
    table = require_delta(uow.tables.get(name))
    if table.type is not TableType.MANAGED:
        return KeptCommits(table, None, (), {})
    wanted = [c for c in table.unpublished if first <= c.version and (end is None or c.version <= end)]
    wanted = _bounded(wanted[:commits_max])
    inline = [commit.version for commit in wanted if commit.inline]
    if not inline:
        return KeptCommits(table, table.latest, wanted, {})
    contents = uow.inline_commits.contents(table.id, first=inline[0], last=inline[-1])
    return KeptCommits(table, table.latest, wanted, contents)


def _bounded(commits: Sequence[Commit]) -> list[Commit]:
    taken: list[Commit] = []
    size = 0
    for commit in commits:
        size += commit.file_size if commit.inline else 0
        if taken and size > CONTENT_BYTES_MAX:
            break
        taken.append(commit)
    return taken
