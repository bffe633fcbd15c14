"""Checkpoints -> actions: in one file, in parts, and V2 with sidecars, in Parquet and in JSON.

Parquet is read by pyarrow, which is imported when the first checkpoint is met and not before: tables without one are
read without it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, cast
from urllib.parse import unquote

import msgspec

from tidegate.client.log.actions import Action, Sidecar, parse_actions
from tidegate.client.log.arrow import load
from tidegate.client.log.errors import LogDamaged
from tidegate.client.log.names import SIDECARS
from tidegate.client.log.segment import Checkpoint

READ = ("add", "metaData", "protocol", "txn", "domainMetadata", "sidecar", "checkpointMetadata")
"""All but `remove`: what a checkpoint removes was removed before it, and is not among its files."""
ROWS_AT_ONCE = 8192
_PURPOSE = "Reading a table that has a checkpoint"
_TWICE = {"stats_parsed", "partitionValues_parsed"}


def checkpoint_actions(
    checkpoint: Checkpoint, read: Callable[[str], bytes], *, with_files: bool = True
) -> Iterator[Action]:
    """All actions of a checkpoint, or those that speak of no files; `read` answers the content of a file of the log by
    its name in the log's folder.
    """
    kinds = READ if with_files else READ[1:]
    sidecars: list[Sidecar] = []
    for name in checkpoint.names:
        for action in _file_actions(name, read(name), kinds):
            if action.sidecar is not None:
                sidecars.append(action.sidecar)
            elif action.checkpoint_metadata is None:
                yield action
            elif action.checkpoint_metadata.version != checkpoint.version:
                raise LogDamaged(name, f"it says it is of version {action.checkpoint_metadata.version}")
    for sidecar in sidecars if with_files else ():  # They hold files, and nothing else.
        yield from _sidecar_actions(sidecar, read)


def _sidecar_actions(sidecar: Sidecar, read: Callable[[str], bytes]) -> Iterator[Action]:
    # Sidecars are in the table's own folder, whatever stands before their name.
    name = f"{SIDECARS}/{unquote(sidecar.path).rpartition('/')[2]}"
    content = read(name)
    if len(content) != sidecar.size_in_bytes:
        raise LogDamaged(name, f"it has {len(content)} bytes, and its checkpoint tells {sidecar.size_in_bytes}")
    return _parquet_actions(name, content, READ)


def _file_actions(name: str, content: bytes, kinds: Sequence[str]) -> Iterator[Action]:
    return parse_actions(content, name) if name.endswith(".json") else _parquet_actions(name, content, kinds)


def _parquet_actions(name: str, content: bytes, kinds: Sequence[str]) -> Iterator[Action]:
    pa = load("pyarrow", purpose=_PURPOSE)
    pq = load("pyarrow.parquet", purpose=_PURPOSE)
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=_columns(file.schema_arrow, kinds)):
            yield from _batch_actions(batch, pa.types)
    except (pa.ArrowException, OSError) as error:
        raise LogDamaged(name, f"it is no checkpoint in Parquet ({error})") from None
    except msgspec.ValidationError as error:
        raise LogDamaged(name, f"it has an action that is none ({error})") from None


def _columns(schema: Any, kinds: Sequence[str]) -> list[str]:
    """The columns to read: statistics once, as the text that commits have, where the writer has kept it."""
    wanted: list[str] = []
    for field in schema:
        if field.name not in kinds:
            continue
        if field.name == "add":
            parts: list[str] = [part.name for part in field.type]
            leave_out = _TWICE if "stats" in parts else {"partitionValues_parsed"}
            wanted += [f"add.{part}" for part in parts if part not in leave_out]
        else:
            wanted.append(field.name)
    return wanted


def _batch_actions(batch: Any, types: Any) -> Iterator[Action]:
    for kind in batch.schema.names:
        for row in _values(batch.column(kind).drop_null(), types):
            yield msgspec.convert({kind: _present(row)}, Action)


def _values(array: Any, types: Any) -> list[Any]:
    """The values of an array as Python has them, maps as dicts. Column by column, several times as fast as by row."""
    if types.is_struct(array.type):
        names = [field.name for field in array.type]
        columns = [_values(array.field(place), types) for place in range(len(names))]
        values = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    elif types.is_map(array.type):
        keys, items = _values(array.keys, types), _values(array.items, types)
        values = [dict(zip(keys[start:end], items[start:end], strict=True)) for start, end in _spans(array)]
    elif types.is_list(array.type):
        inner = _values(array.values, types)
        values = [inner[start:end] for start, end in _spans(array)]
    else:
        return array.to_pylist()
    if not array.null_count:
        return values
    return [value if valid else None for value, valid in zip(values, array.is_valid().to_pylist(), strict=True)]


def _spans(array: Any) -> Iterator[tuple[int, int]]:
    return itertools.pairwise(array.offsets.to_pylist())


def _present(row: dict[str, Any]) -> dict[str, Any]:
    """An action without nulls, which are what JSON leaves out. Maps keep theirs: a partition value may be null."""
    told = {name: value for name, value in row.items() if value is not None}
    parsed = told.pop("stats_parsed", None)
    if parsed is not None:
        told["stats"] = json.dumps(_without_nulls(parsed), default=_as_text)
    return told


def _without_nulls(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    told = cast("dict[str, Any]", value)
    return {name: _without_nulls(inner) for name, inner in told.items() if inner is not None}


def _as_text(value: object) -> str:
    """A value of parsed statistics as the text in which commits have it, or near it."""
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    return repr(value)
