"""Commits that come with their content, and are kept by the catalog until they are published.

The content is what the file would hold: one action a line, the commitInfo first. It says itself when the commit was
made and which transaction it is, so its name follows from it, and whoever sends it again sends the same commit:

    {"commitInfo":{"inCommitTimestamp":1767225600001,"txnId":"6f1c0d0e-...", ...}}    7, <txnId>   ->
    {"add":{...}}                                             00000000000000000007.6f1c0d0e-....json
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tidegate.domain.commit_contents import CommitContent, read_content, timestamp_of
from tidegate.domain.commits import Commit, check_commit
from tidegate.domain.errors import InlineTooLarge, InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.names import Version
from tidegate.domain.protocol import ROW_TRACKING_DOMAIN
from tidegate.domain.row_ids import RowMark
from tidegate.domain.table_actions import TableActions

WHAT = "the content"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@frozen
class InlineCommit:
    """A commit and its content, sound as far as can be told without its table."""

    commit: Commit
    content: CommitContent
    row_mark: RowMark | None
    """The highest row id, if the content says so."""


def encode_content(content: str, *, bytes_max: int) -> bytes:
    try:
        encoded = content.encode()
    except UnicodeEncodeError:
        raise InvalidRequest("The content is not UTF-8: it holds half a surrogate pair.") from None
    if len(encoded) > bytes_max:
        raise InlineTooLarge(size=len(encoded), bytes_max=bytes_max)
    return encoded


def transaction_of(info: Mapping[str, Any]) -> str:
    txn_id = info.get("txnId")
    if not isinstance(txn_id, str) or _UUID.fullmatch(txn_id) is None:
        raise InvalidRequest(
            "The commitInfo has no txnId by which the commit could be known again. "
            "Give every commit one of its own: a UUID in lower case."
        )
    return txn_id


def file_name(version: int, txn_id: str) -> str:
    return f"{version:020}.{txn_id}.json"


def parse_inline_commit(content: bytes, *, version: Version, now: int) -> InlineCommit:
    """`now`: when the catalog got it, which takes the place of when a file was written."""
    read = read_content(content, what=WHAT)
    timestamp, name = timestamp_of(read), file_name(version, transaction_of(read.info))
    commit = Commit(version, timestamp, name, len(content), now, inline=True, content_sha256=read.sha256.hex())
    check_commit(commit)
    return InlineCommit(commit, read, _row_mark(read.says, version))


def _row_mark(says: TableActions, version: Version) -> RowMark | None:
    told = says.domains.get(ROW_TRACKING_DOMAIN)
    highest = None if told is None else told.get("rowIdHighWaterMark")
    return RowMark(version, highest) if type(highest) is int else None
