"""What the bytes of a commit say: read once, whole, whether they came with the request or lie in a staged file.

    {"commitInfo":{"inCommitTimestamp":1767225600001,"txnId":"6f1c0d0e-...", ...}}    the first line
    {"metaData":{...}}                                                                what it says of the table
    {"add":{"path":"part-0.parquet","size":912,"dataChange":true,...}}                what it does to files

Every line is one JSON object with one action that a commit may have; none brings a file from outside the table. What a
commit does to its files is counted, and not kept: there may be very many of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from hashlib import sha256
from typing import Any, cast

from tidegate.domain.commits import check_timestamp
from tidegate.domain.data_paths import check_data_paths
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.json_values import NESTING_MAX, check_nesting
from tidegate.domain.table_actions import NOTHING_SAID, READ_ACTIONS, TableActions, check_storable, collect_actions

ACTIONS = frozenset({"add", "remove", "cdc", "metaData", "protocol", "txn", "domainMetadata", "commitInfo"})
STAGED = "the staged commit"
_JSON_SPACE = b" \t\r\n"


@frozen
class Line:
    """An action as it was written, and read."""

    number: int
    written: bytes
    name: str
    value: Mapping[str, Any]


@frozen
class FileChanges:
    added: int = 0
    added_bytes: int = 0
    removed_in_line: int | None = None
    """The first line that takes data away: not one that only moves data into other files."""
    first_added: Mapping[str, Any] | None = None
    """The first new file: a commit has one writer, and all of its files are written alike."""

    def column_names(self) -> frozenset[str]:
        """By which that file speaks of its columns, in its statistics and partition values."""
        return frozenset() if self.first_added is None else _column_names(self.first_added)


@frozen
class CommitContent:
    """Sound as far as can be told without its table. By default one that says nothing."""

    what: str = STAGED
    """Names it in messages."""
    written: bytes = b""
    sha256: bytes = b""
    info: Mapping[str, Any] = field(default_factory=lambda: cast("dict[str, Any]", {}))
    says: TableActions = NOTHING_SAID
    """Of the table as a whole."""
    lines: Mapping[str, int] = field(default_factory=lambda: cast("dict[str, int]", {}))
    """Where it says so: {"metaData": 3, "domainMetadata delta.clustering": 4}."""
    files: FileChanges = FileChanges()

    def where(self, action: str, field: str) -> str:
        number = self.lines.get(action)
        return f"{self.what[0].upper()}{self.what[1:]}" if number is None else f"Line {number} of {self.what}, {field},"


def read_lines(content: bytes, *, what: str) -> Iterable[Line]:
    """All actions, the commitInfo first; blank lines are passed over."""
    first = True
    for number, line in enumerate(content.split(b"\n"), start=1):
        stripped = line.strip(_JSON_SPACE)
        if not stripped:
            continue
        read = _read(line, stripped, number, what)
        if first != (read.name == "commitInfo"):
            raise _not_first(what, number) if first else _twice(what, number, "commitInfo")
        first = False
        yield read
    if first:
        raise _not_first(what, 1)


def read_content(content: bytes, *, what: str) -> CommitContent:
    """Raises InvalidRequest, which names the line and the field."""
    counts = _FileCounts()
    about_table: list[Line] = []
    lines: dict[str, int] = {}
    for line in read_lines(content, what=what):
        if line.name in READ_ACTIONS:
            about_table.append(line)
            key = _key(line)
            if key in lines:
                raise _twice(what, line.number, key)
            lines[key] = line.number
        else:
            counts.count(line)
    says = collect_actions(((line.name, line.value) for line in about_table), what=what)
    check_storable(says, what=what)
    return CommitContent(
        what=what,
        written=content,
        sha256=sha256(content).digest(),
        info=about_table[0].value,
        says=says,
        lines=lines,
        files=counts.result(),
    )


def count_files(lines: Iterable[Line]) -> FileChanges:
    counts = _FileCounts()
    for line in lines:
        counts.count(line)
    return counts.result()


def timestamp_of(content: CommitContent) -> int:
    timestamp = content.info.get("inCommitTimestamp")
    if type(timestamp) is not int:
        raise InvalidRequest(
            f"{content.where('commitInfo', 'commitInfo.inCommitTimestamp')} is missing or no number. "
            "Give it: milliseconds since the epoch."
        )
    check_timestamp(f"inCommitTimestamp in {content.what}", timestamp)
    return timestamp


class _FileCounts:
    def __init__(self) -> None:
        self._added = self._added_bytes = 0
        self._removed_in_line: int | None = None
        self._first_added: Mapping[str, Any] | None = None

    def count(self, line: Line) -> None:
        if line.name == "add":
            self._added += 1
            size = line.value.get("size")
            self._added_bytes += size if type(size) is int and size > 0 else 0
            # One with a deletion vector may have been written long ago.
            if self._first_added is None and line.value.get("deletionVector") is None:
                self._first_added = line.value
        elif line.name == "remove" and line.value.get("dataChange") is not False and self._removed_in_line is None:
            self._removed_in_line = line.number

    def result(self) -> FileChanges:
        return FileChanges(self._added, self._added_bytes, self._removed_in_line, self._first_added)


def _column_names(add: Mapping[str, Any]) -> frozenset[str]:
    names = set(_keys(add.get("partitionValues")))
    try:
        stats = json.loads(add.get("stats") or "{}")
    except (ValueError, TypeError, RecursionError):
        stats = None
    if isinstance(stats, dict):
        for part in ("minValues", "maxValues", "nullCount"):
            names.update(_keys(cast("dict[str, Any]", stats).get(part)))
    return frozenset(names)


def _keys(value: object) -> Iterable[str]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else ()


def _key(line: Line) -> str:
    return f"{line.name} {line.value.get('domain')}" if line.name == "domainMetadata" else line.name


def _not_first(what: str, number: int) -> InvalidRequest:
    return InvalidRequest(f"Line {number} of {what} is not a commitInfo. Begin with it.")


def _twice(what: str, number: int, action: str) -> InvalidRequest:
    return InvalidRequest(f"Line {number} of {what} is a second {action[:100]}. A commit has one.")


def _read(line: bytes, stripped: bytes, number: int, what: str) -> Line:
    try:
        parsed = _parse(stripped.decode())
    except (ValueError, RecursionError):
        raise InvalidRequest(
            f"Line {number} of {what} is not JSON. Write one action a line, without a byte order mark, and no "
            "number that is not finite."
        ) from None
    if line.count(b"{") + line.count(b"[") >= NESTING_MAX:  # else there is nothing to look for
        check_nesting(parsed, f"Line {number} of {what}")
    if not isinstance(parsed, dict) or len(cast("dict[str, Any]", parsed)) != 1:
        raise InvalidRequest(f"Line {number} of {what} is not a single Delta action.")
    ((name, value),) = cast("dict[str, Any]", parsed).items()
    if name not in ACTIONS or not isinstance(value, dict):
        raise InvalidRequest(f"Line {number} of {what}, {name[:50]!r}, is no action that a commit may have.")
    action = cast("dict[str, Any]", value)
    check_data_paths(name, action, where=f"Line {number} of {what}")
    return Line(number, line, name, action)


def _parse(text: str) -> Any:
    # What `decode` does, but for looking for white space around each text.
    parsed, end = _DECODER.raw_decode(text)
    if end != len(text):
        raise ValueError("there is more than one value")
    return parsed


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number in JSON")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(text)


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_no_number)
"""As strict as those who will read the log: Python's own takes NaN, and makes Infinity of 1e999."""
