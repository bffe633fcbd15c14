"""Columns as clients of the Unity Catalog API state them, and what they come to.

A type can be stated in several ways at once, each with less to say than the one before:

    type_json   {"name":"id","type":"long","nullable":true,"metadata":{}}   or the type alone, "long"
    type        "long": the log's own spelling
    type_text   bigint
    type_name   LONG, with type_precision and type_scale for decimals

The first that is there counts. What is left out is not stated, which matters where the log has the last word: there a
statement may be incomplete, but not wrong.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from tidegate.domain.columns import (
    DataType,
    Field,
    StructType,
    decimal_parts,
    is_known_primitive,
    log_schema,
    parse_log_field,
    parse_log_type,
)
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.json_values import check_nesting, check_texts, same_json
from tidegate.domain.sql_types import parse_sql_type, sql_type
from tidegate.domain.type_names import named_type, names_type

RAW_TYPE_KEY = "__CHAR_VARCHAR_TYPE_STRING"
"""Delta keeps char and varchar as string, and what it was in the field's metadata. Catalogs are told what it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedColumn:
    name: str | None = None
    type_json: str | None = None
    type: object = None
    type_text: str | None = None
    type_name: str | None = None
    precision: int | None = None
    scale: int | None = None
    interval: str | None = None
    position: int | None = None
    partition_index: int | None = None
    comment: str | None = None
    nullable: bool | None = None


@frozen
class _Column:
    name: str
    type: DataType
    whole: bool
    """Whether the type says everything: also which of its parts may be null."""
    nullable: bool | None
    metadata: dict[str, Any]


def stated_schema(columns: Sequence[StatedColumn]) -> StructType:
    """The columns as a struct. What is not stated is as the API says: nullable, without metadata."""
    return StructType(
        tuple(
            Field(column.name, column.type, column.nullable is not False, column.metadata)
            for column in map(_read, _ordered(columns))
        )
    )


def stated_partitions(columns: Sequence[StatedColumn]) -> tuple[str, ...] | None:
    """The partition columns in order; None when no column has a partition_index, which some clients never send."""
    indexed = {c.partition_index: _read(c).name for c in columns if c.partition_index is not None}
    if sum(c.partition_index is not None for c in columns) != len(indexed) or set(indexed) != set(range(len(indexed))):
        raise InvalidRequest("partition_index counts the partition columns from 0, each number once. Send it so.")
    return tuple(indexed[index] for index in sorted(indexed)) if indexed else None


def difference(columns: Sequence[StatedColumn], log: StructType) -> str | None:
    """The first thing that is stated otherwise than the log has it."""
    stated = [_read(column) for column in _ordered(columns)]
    names = [column.name for column in stated]
    if names != log.names():
        return f"the columns {names} are stated, {log.names()} are in the log"
    for column, field in zip(stated, log.fields, strict=True):
        if column.nullable is not None and column.nullable != field.nullable:
            return f"{column.name} is stated with nullable={column.nullable}, in the log it is {field.nullable}"
        if not _same_type(column, field):
            return f"{column.name} is stated as {sql_type(column.type)}, in the log it is {sql_type(field.type)}"
    return None


def _same_type(column: _Column, field: Field) -> bool:
    raw = field.metadata.get(RAW_TYPE_KEY)
    if isinstance(raw, str) and sql_type(column.type) == raw.lower():
        return True
    if column.whole:
        return same_json(log_schema(column.type), log_schema(field.type))
    return sql_type(column.type) == sql_type(field.type)


def _ordered(columns: Sequence[StatedColumn]) -> list[StatedColumn]:
    positions = [column.position for column in columns if column.position is not None]
    if not positions:
        return list(columns)
    if sorted(positions) != list(range(len(columns))):
        raise InvalidRequest("position counts the columns from 0, each number once. Send it for all of them, or none.")
    return sorted(columns, key=lambda column: column.position or 0)


def _read(column: StatedColumn) -> _Column:
    try:
        read = _from_json(column) if column.type_json is not None else _from_words(column)
    except InvalidRequest as wrong:
        raise InvalidRequest(f"Column {column.name or '(without a name)'}: {wrong.message}") from None
    if column.comment is not None:
        read.metadata["comment"] = column.comment
    _check_consistent(column, read)
    return read


def _from_json(column: StatedColumn) -> _Column:
    node: Any = _decoded(column.type_json or "")
    if isinstance(node, dict) and "name" in node:
        described = cast("dict[str, Any]", node)
        # Delta's own fields always say it; where a client leaves it out, its other word counts.
        nullable = described.setdefault("nullable", column.nullable is not False)
        field = parse_log_field(described)
        return _Column(field.name, field.type, whole=True, nullable=_boolean(nullable), metadata=dict(field.metadata))
    if isinstance(node, str) and not is_known_primitive(node):
        return _Column(_name(column), parse_sql_type(node), whole=False, nullable=column.nullable, metadata={})
    data_type = parse_log_type(cast("object", node))
    return _Column(_name(column), data_type, whole=True, nullable=column.nullable, metadata={})


def _from_words(column: StatedColumn) -> _Column:
    if column.type is not None:
        whole, data_type = True, parse_log_type(column.type)
    elif column.type_text is not None:
        whole, data_type = False, parse_sql_type(column.type_text)
    elif column.type_name is not None:
        whole, data_type = (
            False,
            named_type(column.type_name, precision=column.precision, scale=column.scale, interval=column.interval),
        )
    else:
        raise InvalidRequest("It has no type. Send type_json, type_text or type_name.")
    return _Column(_name(column), data_type, whole, column.nullable, metadata={})


def _decoded(text: str) -> Any:
    try:
        node = json.loads(text)
    except (ValueError, RecursionError):
        # Some clients send the name of a type without the quotes that would make it JSON.
        return text
    check_nesting(node, "Its type_json")
    check_texts(node, "Its type_json")
    return node


def _name(column: StatedColumn) -> str:
    if column.name is None:
        raise InvalidRequest("It has no name. Send it.")
    return column.name


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidRequest("nullable in type_json is neither true nor false.")
    return value


def _check_consistent(column: StatedColumn, read: _Column) -> None:
    if column.name is not None and column.name != read.name:
        raise InvalidRequest(f"Column {column.name} is called {read.name} in its type_json. Decide for one.")
    if column.nullable is not None and column.nullable != read.nullable:
        raise InvalidRequest(f"nullable of column {read.name} is not the one in its type_json. Decide for one.")
    if column.type_name is not None and not names_type(column.type_name, read.type):
        raise InvalidRequest(
            f"type_name of column {read.name} is {column.type_name[:50]}, but its type is {sql_type(read.type)[:200]}."
        )
    decimal = decimal_parts(read.type) if isinstance(read.type, str) else None
    for part, given in zip(decimal or (), (column.precision, column.scale), strict=False):
        if given is not None and given != part:
            raise InvalidRequest(
                f"type_precision and type_scale of column {read.name} are not those of its type {read.type}."
            )
