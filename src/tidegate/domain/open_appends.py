"""Blind appends that leave their version open: the catalog assigns the next one, so appends never fight.

What depends on the version is written here: the in-commit timestamp and, where the table tracks rows, their ids.

    latest 6 at 09:00:00.000, highest row id 41; an append of 10 and of 5 rows    ->
    version 7, in-commit timestamp at least 09:00:00.001, rows 42 to 51 and 52 to 56, mark 56

Such an append adds files and does nothing else. It was made for the table's metadata as of a version; should that have
changed, somebody has to look. It is known again by its transaction's id.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from tidegate.domain.commit_contents import FileChanges, Line, count_files, read_lines
from tidegate.domain.commits import Commit
from tidegate.domain.errors import InvalidRequest, RequirementConflict
from tidegate.domain.frozen import frozen
from tidegate.domain.inline_commits import WHAT, file_name, transaction_of
from tidegate.domain.names import Version
from tidegate.domain.row_ids import RowMark, mark_action, tracks_rows
from tidegate.domain.tables import Table


@frozen
class OpenAppend:
    txn_id: str
    metadata_version: Version
    """The last version that changed the metadata which the files were written for."""
    info: Mapping[str, Any]
    adds: Sequence[Line]
    files: FileChanges = FileChanges()
    row_mark: RowMark | None = None
    """The highest row id as the log told it, of a table whose catalog did not know."""


@frozen
class Assigned:
    commit: Commit
    content: bytes
    sha256: bytes
    row_mark: RowMark | None


def parse_open_append(content: bytes, *, metadata_version: Version) -> OpenAppend:
    info, *adds = read_lines(content, what=WHAT)
    for number, line in enumerate(adds, start=2):
        if line.name != "add" or line.value.get("dataChange") is not True:
            raise InvalidRequest(
                f"Action {number} of the content is no new data. A commit without a version may only add files, "
                "with dataChange; give any other one its version."
            )
    if not adds:
        raise InvalidRequest("The content adds no file. A commit without a version adds at least one.")
    return OpenAppend(transaction_of(info.value), metadata_version, info.value, adds, count_files(adds))


def known_mark(table: Table, append: OpenAppend) -> RowMark | None:
    """The highest row id as of the latest version, if anybody knows it."""
    marks = [mark for mark in (table.row_mark, append.row_mark) if mark is not None and mark.version == table.latest]
    return marks[0] if marks else None


def check_append(table: Table, append: OpenAppend) -> None:
    if append.metadata_version != table.metadata_version:
        raise RequirementConflict(
            f"The metadata of {table.name} was last changed by version {table.metadata_version}, but the files were "
            f"written for version {append.metadata_version}. Load the table, look whether they still fit, and send "
            "them again."
        )


def assign(table: Table, append: OpenAppend, *, now: int) -> Assigned:
    """The commit that this append becomes as the table's next version. With row tracking the mark must be known."""
    version = Version(table.latest + 1)
    timestamp = max(now, table.latest_timestamp + 1)
    info = {"commitInfo": {**append.info, "inCommitTimestamp": timestamp, "timestamp": timestamp}}
    written, mark = [line.written for line in append.adds], None
    if tracks_rows(table.metadata.protocol, table.metadata.properties):
        before = known_mark(table, append)
        if before is None:
            raise AssertionError("the ids of the table's rows are not known")
        written, highest = _numbered(append.adds, version=version, highest=before.highest)
        mark = RowMark(version, highest)
    content = b"\n".join([_encode(info), *written, b""])
    name, digest = file_name(version, append.txn_id), sha256(content).digest()
    commit = Commit(version, timestamp, name, len(content), now, inline=True, content_sha256=digest.hex())
    return Assigned(commit, content, digest, mark)


def _numbered(adds: Sequence[Line], *, version: Version, highest: int) -> tuple[list[bytes], int]:
    written: list[bytes] = []
    before = highest
    for number, line in enumerate(adds, start=2):
        add = {**line.value, "baseRowId": highest + 1, "defaultRowCommitVersion": version}
        written.append(_encode({"add": add}))
        highest += _records(line.value, number)
    if highest > before:
        written.append(_encode(mark_action(highest)))
    return written, highest


def _records(add: Mapping[str, Any], number: int) -> int:
    try:
        records = json.loads(add["stats"])["numRecords"]
    except (KeyError, TypeError, ValueError, RecursionError):
        records = None
    if type(records) is not int or records < 0:
        raise InvalidRequest(
            f"Action {number} of the content has no numRecords in its stats. The table tracks its rows: say how many "
            "each file has."
        )
    return records


def _encode(action: Mapping[str, Any]) -> bytes:
    return json.dumps(action, separators=(",", ":")).encode()
