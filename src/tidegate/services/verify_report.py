"""A writer's report that versions are published is a claim: what it says is looked at before it counts."""

from __future__ import annotations

import logging

from tidegate.domain.commits import Commit
from tidegate.domain.errors import NoSuchTable, Unavailable
from tidegate.domain.names import TableId, TableName, Version
from tidegate.domain.publishing import Publication, commits_to_verify
from tidegate.domain.tables import Table
from tidegate.domain.updates import ReportPublished
from tidegate.services.environment import Environment
from tidegate.services.inline_contents import find_obstacle, verified_sha256
from tidegate.services.raise_alarm import raise_alarm

log = logging.getLogger(__name__)


async def verify_report(env: Environment, name: TableName, id: TableId, report: ReportPublished | None) -> Publication:
    """How far the published files were seen to hold the ratified bytes, in order and without a gap.

    A past state of the table is good enough to look at: what was ratified then is what was ratified.
    """
    if report is None or report.version == 0:
        return Publication(None)
    try:
        table = env.database.known_table(id) or await env.database.table(name)
    except NoSuchTable:
        return Publication(None)
    if table.id != id or table.name != name:  # nobody looks at files of a table that they were not asked about
        return Publication(None)
    verified, digests = table.published, dict[Version, str]()
    try:
        for commit in commits_to_verify(table, report.version):
            digest = await verified_sha256(env, table, commit)
            if digest is None:
                await _look_closer(env, table, commit)
                break
            verified = commit.version
            if commit.content_sha256 is None:
                digests[verified] = digest
    except Unavailable as error:
        # What could not be read is not verified; the commit that the report rides along with goes on.
        log.warning("the report about %s could not be verified: %s", name, error.message)
    return Publication(verified, digests=digests)


async def _look_closer(env: Environment, table: Table, commit: Commit) -> None:
    """A report of what is not there is a mistake; one of a file with other bytes is an alarm."""
    obstacle = await find_obstacle(env, table, commit)
    if obstacle is not None:
        await raise_alarm(env, table, obstacle)
