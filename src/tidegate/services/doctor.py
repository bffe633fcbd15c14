"""The doctor: looks at a table and says what is wrong; on demand mends what is safe to mend.

Looking changes nothing. Mending does what background work would do sooner or later, and restores published files from
their staged ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tidegate.domain.commits import Commit
from tidegate.domain.doctor import Facts, Finding, LogState, Problem, examine, vanished
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.files import FoundFile
from tidegate.domain.log_files import CHECKPOINTS, LOG, STAGED, LogFileKind, parse_log_file
from tidegate.domain.names import TableName, Version
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.publishing import Obstacle
from tidegate.domain.staged_files import staged_files_to_remove
from tidegate.domain.table_actions import parse_table_actions
from tidegate.domain.tables import Table, TableType
from tidegate.services.clean_log import clean_log
from tidegate.services.environment import Environment
from tidegate.services.inline_contents import content_of, find_obstacle, publish
from tidegate.services.learn_commits import up_to_date
from tidegate.services.publish_commits import PublishingBlocked, publish_commits

FILES_MAX = 200_000
"""Files of one log that are looked at."""
REPLAYED_MAX = 10_000
"""Commits that are read, newest first, to find what the log says of the table."""
LEARNING_ATTEMPTS_MAX = 3
"""How often what others have put into a log meanwhile is learned before the log is looked at once more."""


async def examine_table(env: Environment, caller: Principal, name: TableName) -> list[Finding]:
    env.authorize(caller, Operation.MANAGE_TABLE, name)
    table = await env.database.read(lambda uow: uow.tables.get(name))
    if not await env.table_files.exists(table.location):
        return [vanished(table)]
    if table.type is not TableType.MANAGED:
        return []
    table, facts = await _facts_of_now(env, table)
    return examine(table, facts)


async def mend_table(env: Environment, caller: Principal, name: TableName) -> list[Finding]:
    """Mends what is safe to mend. Returns what was found before; look again to see what is left."""
    found = await examine_table(env, caller, name)
    table = await env.database.read(lambda uow: uow.tables.get(name))
    problems = {finding.problem for finding in found if finding.fixable}
    if Problem.MISSING in problems:
        missing = (await _facts(env, table)).restorable
        await publish(env, table, missing)
    if Problem.UNPUBLISHED in problems:
        await _publish_all(env, table)
    if Problem.LEFTOVERS in problems:
        await clean_log(env, table.id)
    return found


async def _publish_all(env: Environment, table: Table) -> None:
    """Each pass publishes a bounded number of commits, so there are as many passes as that takes at most."""
    try:
        for _ in table.unpublished:
            left = await publish_commits(env, table.id, up_to=table.latest)
            if left is None or left.latest - left.waiting >= table.latest:
                return
    except PublishingBlocked:
        return


async def _facts_of_now(env: Environment, table: Table) -> tuple[Table, Facts]:
    """A file that was put into the log a moment ago is not held against a table whose commits are put there."""
    facts = await _facts(env, table)
    for _ in range(LEARNING_ATTEMPTS_MAX):
        if not table.puts_if_absent or table.latest >= max(facts.published, default=table.latest):
            break
        now = await up_to_date(env, table)
        if now is table:
            break
        table = now
        facts = await _facts(env, table)
    return table, facts


async def _facts(env: Environment, table: Table) -> Facts:
    in_log = await env.table_files.find(table.location, below=LOG, deep=False, limit=FILES_MAX)
    staged = await env.table_files.find(table.location, below=STAGED, deep=False, limit=FILES_MAX)
    files = [file for found in in_log if (file := parse_log_file(found)) is not None]
    published = frozenset(file.version for file in files if file.kind is LogFileKind.PUBLISHED)
    log, unreadable = await _replay(env, table)
    before = env.patient_clock() - env.retentions.staged_files_ms
    return Facts(
        published=published,
        obstacles=await _obstacles(env, table),
        restorable=await _restorable(env, table, published, staged),
        leftovers=staged_files_to_remove(table, [*staged, *in_log], before=before),
        log=log,
        unreadable=unreadable,
        checkpoints=frozenset(file.version for file in files if file.kind in CHECKPOINTS),
    )


async def _obstacles(env: Environment, table: Table) -> list[Obstacle]:
    """The first one: after it nothing is published, and little can be said."""
    for commit in table.unpublished:
        obstacle = await find_obstacle(env, table, commit)
        if obstacle is not None:
            return [obstacle]
    return []


async def _restorable(
    env: Environment, table: Table, published: frozenset[Version], staged: Sequence[FoundFile]
) -> list[Commit]:
    missing = [v for v in range(1, table.published + 1) if Version(v) not in published][-REPLAYED_MAX:]
    if not missing:
        return []
    keys = [(table.id, Version(version)) for version in missing]
    commits = await env.database.read(lambda uow: uow.tables.ratified(keys))
    sizes = {file.path.rpartition("/")[2]: file.size for file in staged}
    found = [commits[key] for key in keys if key in commits]
    return [commit for commit in found if sizes.get(commit.file_name) == commit.file_size]


async def _replay(env: Environment, table: Table) -> tuple[LogState | None, str | None]:
    """What the newest actions say, from the latest version backwards until nothing more is asked for."""
    protocol = metadata = None
    domains: dict[str, object] = {}
    removed: set[str] = set()
    version = table.latest
    for _ in range(REPLAYED_MAX):
        content = await _content(env, table, version)
        if content is None:
            break
        try:
            actions = await asyncio.to_thread(parse_table_actions, content, what=f"version {version}")
        except InvalidRequest as error:
            return None, error.message
        protocol = protocol or actions.protocol
        metadata = metadata or actions.metadata
        removed |= {domain for domain in actions.removed_domains if domain not in domains}
        domains |= {d: v for d, v in actions.domains.items() if d not in domains and d not in removed}
        if version == 0:
            return LogState(protocol, metadata, domains, complete=True), None
        version = Version(version - 1)
    # Older versions are cleaned up, and only a checkpoint knows.
    return LogState(protocol, metadata, domains, complete=False), None


async def _content(env: Environment, table: Table, version: Version) -> bytes | None:
    commit = table.ratified(version)
    if commit is not None:
        return await content_of(env, table, commit)
    return await env.delta_logs.read_published(table.location, version)
