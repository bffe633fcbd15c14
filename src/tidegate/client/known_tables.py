"""What the client knows of a table from the last answer about it.

It may be old, and never wrong in what matters: an id and a place do not change, a ratified version stays what it is.
So a writer that commits version after version asks for nothing in between.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tidegate.client.errors import InvalidRequest
from tidegate.client.inline_limits import InlineLimits
from tidegate.client.log.snapshot import Snapshot
from tidegate.client.wire import Commit, Conflict, InlineCommitted, LoadedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTable:
    id: str
    location: str
    metadata_version: int
    """The last one that changed the table's metadata."""
    latest: int
    latest_timestamp: int | None
    """None: not told, since that commit is published. Its file has it."""
    unpublished: tuple[Commit, ...]
    """Oldest first, without contents. After a commit of one's own that went inline, only up to the first inline one:
    what follows that is not for the client to publish.
    """


@dataclass(slots=True)
class TableHandle:
    """A name, and what is known of the table that has it."""

    name: str
    known: KnownTable | None = None
    written: Snapshot | None = None
    """What the last write was made for, without its files."""
    inline: InlineLimits = field(default_factory=InlineLimits)


def known_after_conflict(known: KnownTable | None, told: Conflict) -> KnownTable | None:
    """None if what was known is not enough: metadata may have changed too."""
    if known is None or not told.append_stands or not told.commits:
        return None
    before = tuple(one for one in known.unpublished if one.version < told.commits[0].version)
    return replace(
        known,
        latest=told.latest_table_version,
        latest_timestamp=told.commits[-1].timestamp,
        unpublished=_up_to_inline((*before, *told.commits)),
    )


def known_after_inline(
    known: KnownTable | None, told: InlineCommitted, *, table_id: str, published: int | None, changes_metadata: bool
) -> KnownTable | None:
    """`published`: how far the client published before. None if others have committed since, or metadata changed."""
    if known is None or known.id != table_id or changes_metadata or told.version != told.latest_version:
        return None
    if told.version <= known.latest:
        return known
    mine = Commit(
        told.version,
        told.timestamp,
        told.file_name,
        told.file_size,
        told.file_modification_timestamp,
        inline=True,
    )
    # What could not be published is tried again when somebody has told of it again.
    left = () if published is None else tuple(one for one in known.unpublished if one.version > published)
    return replace(
        known,
        latest=told.version,
        latest_timestamp=told.timestamp,
        unpublished=_up_to_inline((*left, mine)),
    )


def known_table(name: str, loaded: LoadedTable) -> KnownTable:
    if loaded.latest_table_version is None:
        raise external(name)
    commits = tuple(sorted(loaded.commits, key=lambda commit: commit.version))
    return KnownTable(
        id=loaded.metadata.table_uuid,
        location=loaded.metadata.location,
        metadata_version=loaded.metadata.last_commit_version,
        latest=loaded.latest_table_version,
        latest_timestamp=commits[-1].timestamp if commits else None,
        unpublished=commits,
    )


def external(name: str) -> InvalidRequest:
    return InvalidRequest(
        f"{name} is an external table: the catalog does not decide on its commits. Write it where it lies."
    )


def _up_to_inline(commits: Iterable[Commit]) -> tuple[Commit, ...]:
    """So that what is remembered does not grow with every commit."""
    kept: list[Commit] = []
    for one in commits:
        kept.append(one)
        if one.inline:
            break
    return tuple(kept)
