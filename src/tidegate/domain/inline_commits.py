"""Commits that come with their content, and are kept by the catalog until they are published.

The content is what the file would hold: one action a line, the commitInfo first. It says itself when the commit was
made and which transaction it is, so its name follows from it, and whoever sends it again sends the same commit:

    {"commitInfo":{"inCommitTimestamp":1767225600001,"txnId":"6f1c0d0e-...", ...}}    7, <txnId>   ->
    {"add":{...}}                                             00000000000000000007.6f1c0d0e-....json
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from tidegate.domain.commits import Commit, check_commit, check_timestamp
from tidegate.domain.errors import InlineTooLarge, InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.json_values import check_nesting
from tidegate.domain.names import Version
from tidegate.domain.protocol import ROW_TRACKING_DOMAIN
from tidegate.domain.row_ids import RowMark
from tidegate.domain.table_actions import TableActions, check_storable, parse_table_actions

ACTIONS = frozenset({"add", "remove", "cdc", "metaData", "protocol", "txn", "domainMetadata", "commitInfo"})
WHAT = "the content"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@frozen
class Line:
    """An action as it was written, and read."""

    written: bytes
    name: str
    value: Mapping[str, Any]


@frozen
class InlineCommit:
    """A commit and its content, sound as far as can be told without its table."""

    commit: Commit
    content: bytes
    says: TableActions
    """Of the table as a whole."""
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


def read_lines(content: bytes) -> list[Line]:
    """All actions, the commitInfo first; blank lines are passed over."""
    lines = [_read(line, number) for number, line in enumerate(content.split(b"\n"), start=1) if line.strip()]
    if not lines or lines[0].name != "commitInfo":
        raise InvalidRequest("The first line of the content is not a commitInfo. Begin with it.")
    if any(line.name == "commitInfo" for line in lines[1:]):
        raise InvalidRequest("The content has two commitInfo. A commit has one.")
    return lines


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
    info = read_lines(content)[0].value
    timestamp = info.get("inCommitTimestamp")
    if type(timestamp) is not int:
        raise InvalidRequest("The commitInfo has no inCommitTimestamp. Give it one: milliseconds since the epoch.")
    check_timestamp("The inCommitTimestamp", timestamp)
    commit = Commit(version, timestamp, file_name(version, transaction_of(info)), len(content), now, inline=True)
    check_commit(commit)
    says = parse_table_actions(content, what=WHAT)
    check_storable(says, what=WHAT)
    return InlineCommit(commit, content, says, _row_mark(says, version))


def _row_mark(says: TableActions, version: Version) -> RowMark | None:
    told = says.domains.get(ROW_TRACKING_DOMAIN)
    highest = None if told is None else told.get("rowIdHighWaterMark")
    return RowMark(version, highest) if type(highest) is int else None


def _read(line: bytes, number: int) -> Line:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        raise InvalidRequest(f"Line {number} of the content is not JSON. Write one action a line.") from None
    check_nesting(parsed, f"Line {number} of the content")
    if not isinstance(parsed, dict) or len(cast("dict[str, Any]", parsed)) != 1:
        raise InvalidRequest(f"Line {number} of the content is not a single Delta action.")
    ((name, value),) = cast("dict[str, Any]", parsed).items()
    if name not in ACTIONS or not isinstance(value, dict):
        raise InvalidRequest(f"Line {number} of the content, {name[:50]!r}, is no action that a commit may have.")
    return Line(line, name, cast("dict[str, Any]", value))
