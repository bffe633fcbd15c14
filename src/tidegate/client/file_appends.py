"""Data files that another engine has put into a table's place, into the table: a blind append."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from tidegate.client.conversations import Conversation, do
from tidegate.client.errors import InvalidCommit
from tidegate.client.files import Files
from tidegate.client.known_tables import TableHandle
from tidegate.client.log.snapshot import Snapshot
from tidegate.client.log.storage import resolve
from tidegate.client.logical_conflicts import transaction_of
from tidegate.client.open_appends import append_open
from tidegate.client.outcomes import CommitResponse
from tidegate.client.proposals import Action
from tidegate.client.reads import ReadSet
from tidegate.client.rebasing import ground_of
from tidegate.client.snapshots import latest_snapshot
from tidegate.client.transactions import committed
from tidegate.client.writable import check_writable


def append_files(table: TableHandle, files: Files, adds: Iterable[Action]) -> Conversation[CommitResponse]:
    given = list(adds)
    snapshot, known = yield from latest_snapshot(table, files)
    check_writable(snapshot, removes=False)
    now = time.time_ns() // 1_000_000
    actions = [_completed(action, number, now) for number, action in enumerate(given, start=1)]
    ours = transaction_of(table.name, snapshot, [{"commitInfo": _info(snapshot)}, *actions], ReadSet())
    yield from do(partial(_check, [action["add"] for action in actions], snapshot, files))
    ground = ground_of(snapshot)
    opened = yield from append_open(table, files, ours, ground, known)
    return opened or (yield from committed(table, files, ours, ground))


def _completed(action: Action | Any, number: int, now: int) -> Action:
    add = cast("Action", action).get("add") if isinstance(action, Mapping) else None
    if not isinstance(add, Mapping):
        raise InvalidCommit(f'Action {number} is no add: files are appended by actions such as {{"add": {{...}}}}.')
    add = cast("Action", add)
    if add.get("dataChange", True) is not True:
        raise InvalidCommit(f"Action {number} says that it changes no data. Files that are appended bring rows.")
    return {"add": {"modificationTime": now, **add, "dataChange": True}}


def _check(adds: Sequence[Action], snapshot: Snapshot, files: Files) -> None:
    """Whether the files are there, are new to the table, and are of its partitions."""
    fields = {field.name: field for field in snapshot.schema.fields}
    mapped = snapshot.column_mapping != "none"
    partitions = {fields[name].physical_name if mapped else name for name in snapshot.partition_columns}
    taken = {file.path for file in snapshot.files}
    for add in adds:
        path = add["path"]
        if path in taken:
            raise InvalidCommit(f"{path} is part of the table already, or is named twice. Append it once.")
        taken.add(path)
        if set(add["partitionValues"]) != partitions:
            wanted = ", ".join(sorted(partitions)) or "no column"
            raise InvalidCommit(f"The partitionValues of {path} are not those of the table, which has {wanted}.")
        size = files.size(resolve(snapshot.location, path))
        if size != add["size"]:
            found = "it is not there" if size is None else f"it has {size} bytes"
            raise InvalidCommit(f"{path} should have {add['size']} bytes, and {found}. Write the file first.")


def _info(snapshot: Snapshot) -> Action:
    by = json.dumps(snapshot.partition_columns)
    return {
        "txnId": str(uuid.uuid4()),
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": by},
    }
