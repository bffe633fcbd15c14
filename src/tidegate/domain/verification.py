"""Verification: is the log what was ratified, and are the rows that say so the ones that were written?

    link 5: its hash follows from link 4 and its fields    else   the row was changed, removed or put in between
    5.json is there and has the SHA-256 of the link        else   the log was changed
    5.json is gone, and so is all before it,
    up to a checkpoint that is older than the retention    ->     cleaned up; nothing more can be said of it

What the SHA-256 is of differs, and is counted apart: of what was ratified, where the catalog had read it; else of what
was in the log when it was verified as published; for commits that are older than both, the size is all there is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tidegate.domain.chain import FileDigest, Link, chain_of
from tidegate.domain.commits import published_name
from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableId, Version
from tidegate.domain.tables import Table


class Difference(StrEnum):
    FILE_MISSING = "file_missing"
    OTHER_BYTES = "other_bytes"
    ROW_CHANGED = "row_changed"
    ROW_MISSING = "row_missing"


@frozen
class FirstDifference:
    version: Version
    kind: Difference
    message: str


@dataclass(slots=True)
class Verified:
    """How many versions were found to be what they were, by what that was found, and the first that was not."""

    since_ratified: int = 0
    since_published: int = 0
    by_size: int = 0
    cleaned: int = 0
    unpublished: int = 0
    unchained: int = 0
    """Of all of these, those whose rows are older than the chain."""
    difference: FirstDifference | None = None


def missing_versions(table: Table, links: Sequence[Link], files: Mapping[Version, FileDigest]) -> list[Version]:
    versions = [link.commit.version for link in links if link.commit.version <= table.published]
    return [version for version in versions if version not in files]


def verify_links(
    table: Table,
    links: Sequence[Link],
    *,
    before: Link | None,
    files: Mapping[Version, FileDigest],
    cleaned_before: Version,
    to_the_end: bool,
) -> Verified:
    """`before` is the link that comes before the first of these; `to_the_end`: none comes after the last of them.
    Versions before `cleaned_before` may be gone.
    """
    found, previous = Verified(), before
    for link in links:
        found.difference = _wrong_row(table.id, link, previous) or _wrong_file(table, link, files, cleaned_before)
        if found.difference is not None:
            return found
        _count(found, table, link, files)
        previous = link
    if to_the_end:
        found.difference = _wrong_end(table, previous)
    return found


def holds(link: Link, file: FileDigest) -> bool:
    """Whether the published file is what was ratified, as far as that is known."""
    return file.size == link.commit.file_size and _wanted(link) in (None, file.sha256)


def _wrong_row(id: TableId, link: Link, previous: Link | None) -> FirstDifference | None:
    commit = link.commit
    if previous is not None and commit.version != previous.commit.version + 1:
        return _row_missing(Version(previous.commit.version + 1))
    chain_before = None if previous is None else previous.chain
    if link.chain is None and chain_before is None:
        return None
    by, at = link.principal, link.ratified_at
    if by is None or at is None or chain_of(id, chain_before, commit, principal=by, ratified_at=at) != link.chain:
        message = (
            f"The row of version {commit.version} in the catalog's database is not the one that was written: its hash "
            "does not follow from its fields and from the hash before it. Compare it with a backup of the database."
        )
        return FirstDifference(commit.version, Difference.ROW_CHANGED, message)
    return None


def _wrong_file(
    table: Table, link: Link, files: Mapping[Version, FileDigest], cleaned_before: Version
) -> FirstDifference | None:
    version, file = link.commit.version, files.get(link.commit.version)
    if version > table.published or (file is None and version < cleaned_before):
        return None
    name = published_name(version)
    if file is None:
        message = f"{name} is gone from the log, and no cleanup has removed it. Restore it from a backup of the store."
        return FirstDifference(version, Difference.FILE_MISSING, message)
    if holds(link, file):
        return None
    wanted = _wanted(link)
    found = f"{file.size} bytes with SHA-256 {file.sha256}"
    expected = f"{link.commit.file_size} bytes" + ("" if wanted is None else f" with SHA-256 {wanted}")
    message = f"{name} in the log holds {found}; it was {expected}. Restore it from a backup of the store."
    return FirstDifference(version, Difference.OTHER_BYTES, message)


def _wanted(link: Link) -> str | None:
    return link.commit.content_sha256 or link.verified_sha256


def _wrong_end(table: Table, last: Link | None) -> FirstDifference | None:
    if last is None:
        return None if table.chain is None else _row_missing(table.latest)
    if last.commit.version < table.latest:
        return _row_missing(Version(last.commit.version + 1))
    if last.commit.version > table.latest or last.chain != table.chain:
        message = (
            f"The chain ends with version {last.commit.version} and the hash {last.chain}, but the table says that its "
            f"latest version is {table.latest}, with the hash {table.chain}. Compare both with a backup."
        )
        return FirstDifference(last.commit.version, Difference.ROW_CHANGED, message)
    return None


def _row_missing(version: Version) -> FirstDifference:
    message = f"The row of version {version} is gone from the catalog's database. Restore it from a backup."
    return FirstDifference(version, Difference.ROW_MISSING, message)


def _count(found: Verified, table: Table, link: Link, files: Mapping[Version, FileDigest]) -> None:
    found.unchained += link.chain is None
    if link.commit.version > table.published:
        found.unpublished += 1
    elif link.commit.version not in files:
        found.cleaned += 1
    elif link.commit.content_sha256 is not None:
        found.since_ratified += 1
    elif link.verified_sha256 is not None:
        found.since_published += 1
    else:
        found.by_size += 1
