"""What the client knows of a table from the last answer about it.

It may be old, and never wrong in what matters: an id and a place do not change, a ratified version stays what it is.
So a writer that commits version after version asks for nothing in between.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate.client.errors import InvalidRequest
from tidegate.client.log.snapshot import Snapshot
from tidegate.client.wire import Commit, Conflict, LoadedTable, TableMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTable:
    metadata: TableMetadata
    latest: int
    latest_timestamp: int | None
    """None: not told, since that commit is published. Its file has it."""
    unpublished: tuple[Commit, ...]
    """Oldest first."""

    @property
    def id(self) -> str:
        return self.metadata.table_uuid

    @property
    def location(self) -> str:
        return self.metadata.location


@dataclass(slots=True)
class TableHandle:
    """A name, and what is known of the table that has it."""

    name: str
    known: KnownTable | None = None
    written: Snapshot | None = None
    """What the last write was made for, without its files."""


def known_after_conflict(known: KnownTable | None, told: Conflict) -> KnownTable | None:
    """None if what was known is not enough: metadata may have changed too."""
    if known is None or not told.append_stands or not told.commits:
        return None
    before = tuple(one for one in known.unpublished if one.version < told.commits[0].version)
    return replace(
        known,
        latest=told.latest_table_version,
        latest_timestamp=told.commits[-1].timestamp,
        unpublished=(*before, *told.commits),
    )


def known_table(name: str, loaded: LoadedTable) -> KnownTable:
    if loaded.latest_table_version is None:
        raise InvalidRequest(
            f"{name} is an external table: the catalog does not decide on its commits. Write it where it lies."
        )
    commits = tuple(sorted(loaded.commits, key=lambda commit: commit.version))
    return KnownTable(
        metadata=loaded.metadata,
        latest=loaded.latest_table_version,
        latest_timestamp=commits[-1].timestamp if commits else None,
        unpublished=commits,
    )
