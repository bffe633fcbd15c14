"""What the log of a table says of it as a whole at the latest version, for those who compare it with the catalog.

commits, newest first        until version 0, or until one is not there: older ones are cleaned up
the newest checkpoint        says what those have said; it takes an engine's reader, and may be too large to be read
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from tidegate.domain.doctor import LogState
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.log_files import CHECKPOINTS, LogFile, LogFileKind
from tidegate.domain.names import Version
from tidegate.domain.ownership import found_actions
from tidegate.domain.protocol import Protocol
from tidegate.domain.table_actions import LogMetadata, TableActions, parse_table_actions
from tidegate.domain.tables import Table
from tidegate.services.environment import Environment
from tidegate.services.inline_contents import content_of

REPLAYED_MAX = 10_000
"""Commits that are read."""
CHECKPOINT_BYTES_MAX = 64 * 1024 * 1024

Told = tuple[LogState | None, str | None]
"""What it says, or why it cannot be read."""


@frozen
class _Said:
    """By the newest commits; what is None they do not say."""

    protocol: Protocol | None
    metadata: LogMetadata | None
    domains: dict[str, Any]
    removed: set[str]

    def before(self, older: TableActions) -> _Said:
        removed = self.removed | {domain for domain in older.removed_domains if domain not in self.domains}
        domains = {d: v for d, v in older.domains.items() if d not in removed} | self.domains
        return _Said(self.protocol or older.protocol, self.metadata or older.metadata, domains, removed)

    def state(self, *, complete: bool) -> LogState:
        return LogState(self.protocol, self.metadata, self.domains, complete=complete)


async def read_log(env: Environment, table: Table, files: Sequence[LogFile]) -> Told:
    """`files` are those of its log. Raises Unavailable."""
    said = _Said(None, None, {}, set())
    version = table.latest
    for _ in range(REPLAYED_MAX):
        content = await _content(env, table, version)
        if content is None:
            break
        try:
            said = said.before(await asyncio.to_thread(parse_table_actions, content, what=f"version {version}"))
        except InvalidRequest as error:
            return None, error.message
        if version == 0:
            return said.state(complete=True), None
        version = Version(version - 1)
    return await _with_checkpoint(env, table, files, said)


async def _content(env: Environment, table: Table, version: Version) -> bytes | None:
    commit = table.ratified(version)
    if commit is not None:
        return await content_of(env, table, commit)
    return await env.delta_logs.read_published(table.location, version)


async def _with_checkpoint(env: Environment, table: Table, files: Sequence[LogFile], said: _Said) -> Told:
    if not _can_be_read(table, files):
        return said.state(complete=False), None
    found = await env.found_tables.look(table.location)
    if isinstance(found, str):
        return None, found
    # What is newer than the commits that were read may have changed what they say.
    if found is None or found.version > table.latest:
        return said.state(complete=False), None
    try:
        return said.before(found_actions(found)).state(complete=True), None
    except InvalidRequest as error:
        return None, error.message


def _can_be_read(table: Table, files: Sequence[LogFile]) -> bool:
    """Whether there is a checkpoint that is not too large, and all published commits after it: else that is what is
    wrong, and is told.
    """
    checkpoints = [file for file in files if file.kind in CHECKPOINTS and file.version <= table.published]
    if not checkpoints:
        return False
    newest = max(file.version for file in checkpoints)
    size = sum(file.file.size for file in checkpoints if file.version == newest)
    there = {file.version for file in files if file.kind is LogFileKind.PUBLISHED}
    whole = there.issuperset(map(Version, range(newest, table.published + 1)))
    return whole and size <= CHECKPOINT_BYTES_MAX
