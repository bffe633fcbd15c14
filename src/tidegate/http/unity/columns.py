"""Columns as the Unity Catalog API shows them: one ColumnInfo each, types in Spark's words."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tidegate.domain.columns import DataType, Field, StructType, decimal_parts, log_field
from tidegate.domain.sql_types import sql_type
from tidegate.domain.stated_columns import StatedColumn
from tidegate.domain.type_names import type_name
from tidegate.wire import unity as wire


def from_columns(columns: StructType, partition_columns: Sequence[str]) -> list[wire.ColumnInfo]:
    partitions = {name.lower(): index for index, name in enumerate(partition_columns)}
    return [_column_info(field, position, partitions) for position, field in enumerate(columns.fields)]


def _column_info(field: Field, position: int, partitions: dict[str, int]) -> wire.ColumnInfo:
    decimal = decimal_parts(field.type) if isinstance(field.type, str) else None
    comment = field.metadata.get("comment")
    interval = _interval(field.type)
    return wire.ColumnInfo(
        name=field.name,
        type_text=sql_type(field.type),
        type_json=json.dumps(log_field(field), separators=(",", ":")),
        type_name=type_name(field.type),
        type_precision=None if decimal is None else decimal[0],
        type_scale=None if decimal is None else decimal[1],
        type_interval_type=interval,
        type_internal_type=interval,
        position=position,
        comment=comment if isinstance(comment, str) else None,
        nullable=field.nullable,
        partition_index=partitions.get(field.name.lower()),
    )


def _interval(data_type: DataType) -> str | None:
    if isinstance(data_type, str) and data_type.startswith("interval "):
        return data_type.removeprefix("interval ").upper()
    return None


def to_stated(columns: Sequence[wire.SentColumn]) -> list[StatedColumn]:
    return [
        StatedColumn(
            name=column.name,
            type_json=column.type_json,
            type=column.type,
            type_text=column.type_text,
            type_name=column.type_name,
            precision=column.type_precision,
            scale=column.type_scale,
            interval=column.type_interval_type or column.type_internal_type,
            position=column.position,
            partition_index=column.partition_index,
            comment=column.comment,
            nullable=column.nullable,
        )
        for column in columns
    ]
