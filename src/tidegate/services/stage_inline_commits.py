"""Inline commits as files, for clients that read nothing else.

Whoever is told of a commit finds its file, so the files are written before the answer: once for each commit, and only
if somebody asks before the commit is published. Most are published by then and never have a staged file.

    inline 7 and 8 are ratified; a client that reads files loads the table   ->   both are staged, then it is answered
    the next such client loads the table                                     ->   answered at once
"""

from __future__ import annotations

from tidegate.domain.errors import OutcomeUnknown, Unavailable
from tidegate.domain.tables import Table
from tidegate.services.environment import Environment
from tidegate.services.inline_contents import contents_of

ATTEMPTS_MAX = 10
"""Commits may be published while they are staged: then there is a newer state of the table to answer with."""


async def with_files(env: Environment, table: Table) -> Table:
    """The table, or a newer state of it, when all of its unpublished commits have files."""
    if env.staged_versions.cover(table):
        return table
    for _ in range(ATTEMPTS_MAX):
        missing = env.staged_versions.missing(table)
        contents = await contents_of(env, table.id, missing)
        if all(commit.version in contents for commit in missing):
            await env.delta_logs.stage(table.location, missing, contents)
            env.staged_versions.remember(table)
            return table
        table = await env.database.read(lambda uow, id=table.id: uow.tables.get_by_id(id))
        if env.staged_versions.cover(table):
            return table
    raise Unavailable(f"The commits of {table.name} are published faster than they can be staged. Try again.")


async def with_files_after_commit(env: Environment, table: Table) -> Table:
    """For an answer to what has happened already: who does not get it sends the same again."""
    try:
        return await with_files(env, table)
    except Unavailable as error:
        raise OutcomeUnknown(f"It happened, but {error.message}") from error
