"""What the file of a commit tells about it: operation, rows, files.

Read from the first bytes of the file, as far as they go. The first line says what the writer did; whether all files
were counted depends on having seen all lines.

    {"commitInfo": {"operation": "WRITE", "operationMetrics": {"numOutputRows": "3"}, "txnId": "..."}}
    {"add": {"path": "a.parquet", ...}}          ->   WRITE, 3 rows, 1 file added, 0 removed
"""

from __future__ import annotations

import json
from typing import Any, cast

from tidegate.domain.frozen import frozen

OPERATION_LENGTH_MAX = 200


@frozen
class CommitDescription:
    """None: not known."""

    operation: str | None = None
    txn_id: str | None = None
    engine: str | None = None
    rows: int | None = None
    files_added: int | None = None
    files_removed: int | None = None


NOTHING_KNOWN = CommitDescription()


def describe_commit(head: bytes, *, whole: bool) -> CommitDescription:
    """`head` is the beginning of the file, or all of it. What is not as it should be is left out."""
    lines = head.split(b"\n")
    if not whole:
        del lines[-1]  # cut somewhere
    actions = [action for action in map(_parse, lines) if action]
    info = _object(next((action["commitInfo"] for action in actions if "commitInfo" in action), None))
    metrics = _object(info.get("operationMetrics"))
    added = [_object(action["add"]) for action in actions if "add" in action]
    removed = sum("remove" in action for action in actions)
    return CommitDescription(
        operation=_text(info.get("operation")),
        txn_id=_text(info.get("txnId")),
        engine=_text(info.get("engineInfo")),
        rows=_rows(metrics, added if whole else None),
        files_added=len(added) if whole else _number(metrics.get("numAddedFiles", metrics.get("numFiles"))),
        files_removed=removed if whole else _number(metrics.get("numRemovedFiles")),
    )


def _rows(metrics: dict[str, Any], added: list[dict[str, Any]] | None) -> int | None:
    """What the writer says; else what the statistics of the added files say, if all of them do."""
    stated = _number(metrics.get("numOutputRows"))
    if stated is not None or not added:
        return stated
    counted = [_number(_parse(str(file.get("stats", "")).encode()).get("numRecords")) for file in added]
    known = [rows for rows in counted if rows is not None]
    return sum(known) if len(known) == len(counted) else None


def _parse(line: bytes) -> dict[str, Any]:
    try:
        return _object(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    # A lone surrogate is JSON, and cannot be written as UTF-8 again.
    return value[:OPERATION_LENGTH_MAX].encode("utf-8", "replace").decode() if isinstance(value, str) else None


def _number(value: object) -> int | None:
    """Metrics are numbers in texts."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None
