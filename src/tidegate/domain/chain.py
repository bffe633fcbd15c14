"""The hash chain: one SHA-256 over every ratified commit of a table and all that were ratified before it.

    chain(v) = SHA-256 of this JSON array, without spaces, in ASCII (other characters as \\uXXXX):

    ["tidegate-chain-1", table id, chain(v - 1) or null, v, in-commit timestamp, file name, file size,
     SHA-256 of the content or null, principal, when it was ratified]

Hashes are written in lower-case hexadecimal, moments in milliseconds. The first link has null for the one before it. A
content that nobody had read when the commit was ratified is null: then name and size are all that the link holds of it,
and what was seen in the log when it was published is kept beside the chain, see `verification.py`.

Whoever changes, removes or inserts a row has to compute every later link anew; whoever has written down a link at some
other place notices even that.
"""

from __future__ import annotations

import json
from hashlib import sha256

from tidegate.domain.commits import Commit, published_name
from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableId, Version

FORMAT = "tidegate-chain-1"


@frozen
class Link:
    """A row of the chain, as it is stored."""

    commit: Commit
    principal: str | None
    ratified_at: int | None
    chain: str | None
    """None for a commit that is older than the chain."""
    verified_sha256: str | None = None
    """Of the file in the log when it was verified, where the content was not known before."""


def chain_of(table_id: TableId, previous: str | None, commit: Commit, *, principal: str, ratified_at: int) -> str:
    fields = (
        FORMAT,
        table_id,
        previous,
        commit.version,
        commit.timestamp,
        commit.file_name,
        commit.file_size,
        commit.content_sha256,
        principal,
        ratified_at,
    )
    return sha256(json.dumps(fields, separators=(",", ":")).encode("ascii")).hexdigest()


def first_link(table_id: TableId, version: Version, content: FileDigest, *, timestamp: int, by: str, at: int) -> Link:
    """Of the commit with which the catalog began to decide on a table: its version 0, or the one that adopted it."""
    name = published_name(version)
    commit = Commit(version, timestamp, name, content.size, 0, content_sha256=content.sha256)
    return Link(commit, by, at, chain_of(table_id, None, commit, principal=by, ratified_at=at))


@frozen
class FileDigest:
    size: int
    sha256: str

    @staticmethod
    def of(content: bytes) -> FileDigest:
        return FileDigest(len(content), sha256(content).hexdigest())
