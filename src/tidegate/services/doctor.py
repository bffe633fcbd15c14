"""The doctor: looks at a table and says what is wrong; on demand mends what is safe to mend.

Looking changes nothing. Mending does what background work would do sooner or later, and restores published files from
their staged ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidegate.domain.commits import Commit
from tidegate.domain.doctor import Facts, Finding, Problem, examine, unfinished, vanished
from tidegate.domain.files import FoundFile
from tidegate.domain.log_files import CHECKPOINTS, LOG, STAGED, LogFile, LogFileKind, parse_log_file
from tidegate.domain.names import TableName, Version
from tidegate.domain.ownership import Promise
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.publishing import Obstacle
from tidegate.domain.staged_files import staged_files_to_remove
from tidegate.domain.tables import Table
from tidegate.domain.verification import holds
from tidegate.services.authorized_table import still
from tidegate.services.clean_log import clean_log
from tidegate.services.environment import Environment
from tidegate.services.inline_contents import find_obstacle, publish
from tidegate.services.keep_promises import keep_promise
from tidegate.services.learn_commits import up_to_date
from tidegate.services.log_state import read_log
from tidegate.services.publish_commits import PublishingBlocked, publish_commits

FILES_MAX = 200_000
"""Files of one log that are looked at."""
HASHED_MAX = 10_000
"""Published files, the newest, whose hashes are taken, and that are looked for if they are gone."""
FILES_AT_ONCE = 50
"""Published files whose hashes are taken before others get the thread."""
LEARNING_ATTEMPTS_MAX = 3
"""How often what others have put into a log meanwhile is learned before the log is looked at once more."""


async def examine_table(env: Environment, caller: Principal, name: TableName) -> list[Finding]:
    allowed = await env.authorize(caller, Operation.MAINTAIN_TABLE, name)
    table, promise = await env.database.read(lambda uow: _with_promise(uow, name))
    still(allowed, table)
    if promise is not None:
        # Its log may be ahead of the catalog, rightly so: there is nothing else to say before that has come to an end.
        return [unfinished(promise)]
    if not await env.table_files.exists(table.location):
        return [vanished(table)]
    if not table.decided_here:
        return []
    table, facts = await _facts_of_now(env, table)
    return examine(table, facts)


async def mend_table(env: Environment, caller: Principal, name: TableName) -> list[Finding]:
    """Mends what is safe to mend. Returns what was found before; look again to see what is left."""
    found = await examine_table(env, caller, name)
    if any(finding.problem is Problem.PROMISE for finding in found):
        _, promise = await env.database.read(lambda uow: _with_promise(uow, name))
        if promise is not None:
            await keep_promise(env, promise)
        return found
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


def _with_promise(uow: UnitOfWork, name: TableName) -> tuple[Table, Promise | None]:
    table = uow.tables.get(name)
    return table, uow.ownership.get(table.id)


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
    log, unreadable = await read_log(env, table, files)
    before = env.patient_clock() - env.retentions.staged_files_ms
    return Facts(
        published=published,
        obstacles=await _obstacles(env, table),
        altered=await _altered(env, table, files),
        restorable=await _restorable(env, table, published, staged),
        leftovers=staged_files_to_remove(table, [*staged, *in_log], before=before),
        log=log,
        unreadable=unreadable,
        checkpoints=frozenset(file.version for file in files if file.kind in CHECKPOINTS),
    )


async def _obstacles(env: Environment, table: Table) -> list[Obstacle]:
    """The first one: after it nothing is published, and little can be said."""
    for commit in table.unpublished:
        obstacle = await find_obstacle(env, table, commit, ahead=True)
        if obstacle is not None:
            return [obstacle]
    return []


async def _altered(env: Environment, table: Table, files: Sequence[LogFile]) -> list[Version]:
    """Oldest first. `tidegate verify` looks at the whole history, and at the rows of the catalog too."""
    there = {file.version for file in files if file.kind is LogFileKind.PUBLISHED}
    after = Version(max(0, table.published - HASHED_MAX))
    links = await env.database.read(lambda uow: uow.chains.links(table.id, after=after, limit=HASHED_MAX))
    known = {link.commit.version: link for link in links if link.commit.version <= table.published}
    versions, altered = sorted(there & known.keys()), list[Version]()
    for start in range(0, len(versions), FILES_AT_ONCE):
        some = versions[start : start + FILES_AT_ONCE]
        digests = await env.delta_logs.published_digests(table.location, some)
        altered += [version for version in some if version in digests and not holds(known[version], digests[version])]
    return altered


async def _restorable(
    env: Environment, table: Table, published: frozenset[Version], staged: Sequence[FoundFile]
) -> list[Commit]:
    missing = [v for v in range(1, table.published + 1) if Version(v) not in published][-HASHED_MAX:]
    if not missing:
        return []
    keys = [(table.id, Version(version)) for version in missing]
    commits = await env.database.read(lambda uow: uow.tables.ratified(keys))
    sizes = {file.path.rpartition("/")[2]: file.size for file in staged}
    found = [commits[key] for key in keys if key in commits]
    # Also one that came with its content: once it is published, the staged file is all that there is of it.
    there = [replace(commit, inline=False) for commit in found if sizes.get(commit.file_name) == commit.file_size]
    return [commit for commit in there if await find_obstacle(env, table, commit, ahead=True) is None]
