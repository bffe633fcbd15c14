"""A table's timeline: when each of its commits was proposed, ratified and published, newest first.

    version  proposed  ratified  published  verified
       3        100       104        -         no      the writer has not published it yet
       2         90        95       98         no      it is in _delta_log, and nobody has reported it
       1         80        84       86        yes      reported, and found to hold the ratified bytes
       0          -        70       69        yes      made by creating the table

What is published is asked of the store when somebody wants to know; everything else is the catalog's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tidegate.domain.commits import RatifiedCommit, published_name
from tidegate.domain.frozen import frozen
from tidegate.domain.names import Version
from tidegate.domain.publishing import PublishedFile
from tidegate.domain.tables import Table


@frozen
class Entry:
    """Moments are milliseconds, None where nobody knows them; `timestamp` is the one in the commit itself."""

    version: Version
    timestamp: int | None
    proposed_at: int | None
    ratified_at: int | None
    published_at: int | None
    verified: bool
    file_name: str
    file_size: int | None


def entries_of(table: Table, ratified: Sequence[RatifiedCommit]) -> list[Entry]:
    return [
        Entry(
            version=one.commit.version,
            timestamp=one.commit.timestamp,
            proposed_at=one.proposed_at,
            ratified_at=one.ratified_at,
            published_at=None,
            verified=one.commit.version <= table.published,
            file_name=one.commit.file_name,
            file_size=one.commit.file_size,
        )
        for one in ratified
    ]


def first_entry(table: Table) -> Entry:
    """Version 0 is never proposed: creating the table reads its published file, and makes it count.

    The catalog remembers its timestamp until a later version changes the metadata.
    """
    return Entry(
        version=Version(0),
        timestamp=table.metadata_timestamp if table.metadata_version == 0 else None,
        proposed_at=None,
        ratified_at=table.created_at,
        published_at=None,
        verified=True,
        file_name=published_name(0),
        file_size=None,
    )


def with_published(entry: Entry, files: Mapping[Version, PublishedFile]) -> Entry:
    file = files.get(entry.version)
    if file is None:
        return entry
    size = file.size if entry.file_size is None else entry.file_size
    return replace(entry, published_at=file.modified_at, file_size=size)
