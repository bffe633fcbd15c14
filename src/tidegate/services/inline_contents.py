"""What the catalog keeps of inline commits, for those who publish, verify, describe or stage them.

A content goes when its commit is published; so who finds none looks into the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

from tidegate.domain.commits import Commit
from tidegate.domain.names import TableId, Version
from tidegate.domain.publishing import Obstacle, Publication
from tidegate.domain.tables import Table
from tidegate.services.environment import Environment


async def contents_of(env: Environment, id: TableId, commits: Sequence[Commit]) -> Mapping[Version, bytes]:
    """By version, those of the inline ones among these commits that are not published."""
    inline = [commit.version for commit in commits if commit.inline]
    if not inline:
        return {}
    return await env.database.read(lambda uow: uow.inline_commits.contents(id, first=min(inline), last=max(inline)))


async def content_of(env: Environment, table: Table, commit: Commit) -> bytes | None:
    """The commit as it was ratified, wherever it is; None if it cannot be found."""
    kept = (await contents_of(env, table.id, [commit])).get(commit.version)
    if kept is not None:
        return kept
    staged = await env.delta_logs.read_staged(table.location, commit)
    if staged is not None:
        return staged
    published = await env.delta_logs.read_published(table.location, commit.version)
    return published if published is None or _may_be(commit, published) else None


def _may_be(commit: Commit, content: bytes) -> bool:
    """Another one's file may have the version in the log; what nobody has read when it was ratified cannot be told."""
    return commit.content_sha256 in (None, sha256(content).hexdigest())


async def verified_sha256(env: Environment, table: Table, commit: Commit) -> str | None:
    """Of the published file of this version, if it holds the very bytes that were ratified."""
    if not commit.inline:
        return await env.delta_logs.verified_sha256(table.location, commit)
    content = (await contents_of(env, table.id, [commit])).get(commit.version)
    if content is None or await env.delta_logs.read_published(table.location, commit.version) != content:
        return None
    return sha256(content).hexdigest()


async def find_obstacle(env: Environment, table: Table, commit: Commit, *, ahead: bool = False) -> Obstacle | None:
    """Why the published file of this version does not count; None if it does count, or if there is no such file: with
    `ahead` it is then said why there can be none.
    """
    contents = await contents_of(env, table.id, [commit])
    if commit.inline and not contents:
        return None  # published meanwhile
    return await env.delta_logs.find_obstacle(table.location, commit, contents, ahead=ahead)


async def publish(env: Environment, table: Table, commits: Sequence[Commit]) -> Publication:
    """Into the log, in order, each put only where nothing is, synced and then verified."""
    contents = await contents_of(env, table.id, commits)
    gone = next((i for i, one in enumerate(commits) if one.inline and one.version not in contents), len(commits))
    # Whose content is gone has been published by another server; the next look knows.
    return await env.delta_logs.publish(table.location, commits[:gone], contents)
