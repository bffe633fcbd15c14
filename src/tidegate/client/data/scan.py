"""Rows of a snapshot, as Arrow tables.

    scan(snapshot, files, columns=["id", "amount"], filter=[("day", ">=", date(2026, 1, 1))]).to_arrow()

The engine is pyarrow's Parquet reader. It is the reference reader of the ecosystem and takes all that Delta's writers
write (INT96 times, two-level lists, field ids); its tables pass to pandas, Polars, DuckDB and Spark without a copy. A
query engine would bring an own understanding of Delta's log, and the log's state comes from the catalog here: what is
missing between Parquet and Delta is a handful of rules, which this module and its neighbours hold.

By file: skip it where partition values or statistics tell that no row can be wanted, read the columns that are wanted,
leave out deleted rows, bring the columns to the table's types, add partition values, filter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.client.data.arrow import pa, pc, pq
from tidegate.client.data.columns import conform, find
from tidegate.client.data.filters import Condition, conditions
from tidegate.client.data.frames import frame_of, pandas_module
from tidegate.client.data.schema import arrow_schema, arrow_type, check_mapping
from tidegate.client.data.values import partition_value
from tidegate.client.log.actions import Add
from tidegate.client.log.deletion_vectors import deleted_rows
from tidegate.client.log.errors import ColumnNotFound, LogDamaged
from tidegate.client.log.snapshot import Snapshot
from tidegate.client.log.storage import Files, resolve
from tidegate.client.log.types import Field, StructType


@dataclass(frozen=True, slots=True)
class Scan:
    """What is to be read; nothing is, before it is asked for."""

    snapshot: Snapshot
    storage: Files
    fields: tuple[Field, ...]
    conditions: tuple[Condition, ...]
    expression: Any = None

    @property
    def schema(self) -> Any:
        """The `pyarrow.Schema` of the answer."""
        return arrow_schema(StructType(self.fields))

    @property
    def files(self) -> list[Add]:
        """The data files that may have rows that are wanted."""
        return [file for file in self.snapshot.files if not self._is_skipped(file)]

    def to_arrow(self) -> Any:
        """All rows, in one `pyarrow.Table`."""
        return pa.concat_tables([self.schema.empty_table(), *self.tables()])

    def to_pandas(self) -> Any:
        """All rows, in one `pandas.DataFrame`; its dtypes follow from the columns' types. Raises PandasMissing."""
        pandas_module()  # Before anything is read.
        return frame_of(self.to_arrow())

    def tables(self) -> Iterator[Any]:
        """The rows file by file, for tables that do not fit into memory."""
        for file in self.files:
            yield self._read(file)

    def _is_skipped(self, file: Add) -> bool:
        statistics = None
        for condition in self.conditions:
            if condition.field.name in self.snapshot.partition_columns:
                if not condition.met_by(self._partition_value(file, condition.field)):
                    return True
                continue
            statistics = statistics or file.statistics
            if statistics is not None and condition.excluded_by(statistics, self._log_name(condition.field)):
                return True
        return False

    def _partition_value(self, file: Add, field: Field) -> Any:
        return partition_value(file.partition_values.get(self._log_name(field)), field)

    def _log_name(self, field: Field) -> str:
        """By which the log's statistics and partition values know a column."""
        return field.name if self.snapshot.column_mapping == "none" else field.physical_name

    def _read(self, file: Add) -> Any:
        fields = self._fields_to_read()
        partitions = {f.name: f for f in fields if f.name in self.snapshot.partition_columns}
        data = [field for field in fields if field.name not in partitions]
        columns, count = self._read_columns(file, data)
        for name, field in partitions.items():
            type = arrow_type(field.type)
            columns[name] = pa.repeat(pa.scalar(self._partition_value(file, field), type), count)
        schema = arrow_schema(StructType(tuple(fields)))
        table: Any = pa.Table.from_arrays([columns[field.name] for field in fields], schema=schema)
        return self._filter(table).select([field.name for field in self.fields])

    def _fields_to_read(self) -> list[Field]:
        """Those that are answered and those that only the filter needs."""
        if self.expression is not None:
            return list(self.snapshot.schema.fields)
        answered = {field.name for field in self.fields}
        others = {condition.field.name: condition.field for condition in self.conditions}
        return [*self.fields, *(field for name, field in others.items() if name not in answered)]

    def _read_columns(self, file: Add, fields: Sequence[Field]) -> tuple[dict[str, Any], int]:
        """By column its values in a file, and the number of rows; deleted rows are left out."""
        path = resolve(self.snapshot.location, file.path)
        content = self.storage.read(path)
        if content is None:
            raise LogDamaged(path, "the data file is not there")
        try:
            parquet: Any = pq.ParquetFile(pa.BufferReader(content), coerce_int96_timestamp_unit="us")
            mode = self.snapshot.column_mapping
            places = {field.name: find(field, parquet.schema_arrow, mode) for field in fields}
            names = {parquet.schema_arrow.field(place).name for place in places.values() if place is not None}
            read: Any = parquet.read(columns=sorted(names))
        except (pa.ArrowException, OSError) as error:
            raise LogDamaged(path, f"it cannot be read as Parquet ({error})") from None
        keep = self._kept_rows(file, parquet.metadata.num_rows)
        rows = read if keep is None else read.filter(keep)
        count = parquet.metadata.num_rows if keep is None else pc.sum(keep).as_py() or 0
        return {field.name: _column(rows, field, mode, count) for field in fields}, count

    def _kept_rows(self, file: Add, count: int) -> Any:
        """By row of the file whether it is still part of the table; None when all are."""
        if file.deletion_vector is None:
            return None
        deleted = deleted_rows(file.deletion_vector, location=self.snapshot.location, files=self.storage)
        if deleted and deleted[-1] >= count:
            raise LogDamaged(file.path, f"it has {count} rows, and its deletion vector deletes row {deleted[-1]}")
        bits = bytearray(b"\xff") * ((count + 7) // 8)
        for row in deleted:
            bits[row >> 3] &= ~(1 << (row & 7))
        return pa.Array.from_buffers(pa.bool_(), count, [None, pa.py_buffer(bytes(bits))])

    def _filter(self, table: Any) -> Any:
        for condition in self.conditions:
            table = table.filter(condition.met_in(table[condition.field.name]))
        return table if self.expression is None else table.filter(self.expression)


def scan(
    snapshot: Snapshot,
    files: Files,
    columns: Sequence[str] | None = None,
    filter: Iterable[Sequence[Any]] | Any = None,
) -> Scan:
    """A scan of these columns (all of them without a choice) and of the rows that meet the filter.

    A filter is a list of conditions (see `filters`), which skip files; or an expression of `pyarrow.compute`, which
    does not.
    """
    check_mapping(snapshot.column_mapping)
    is_expression = isinstance(filter, pc.Expression)
    return Scan(
        snapshot=snapshot,
        storage=files,
        fields=_chosen(snapshot.schema, columns),
        conditions=() if is_expression or filter is None else conditions(filter, snapshot.schema),
        expression=filter if is_expression else None,
    )


def _chosen(schema: StructType, columns: Sequence[str] | None) -> tuple[Field, ...]:
    if columns is None:
        return schema.fields
    if isinstance(columns, str):
        raise ValueError(f"Columns are a list of names: say [{columns!r}].")
    chosen: Mapping[str, Field] = {field.name: field for field in schema.fields}
    for name in columns:
        if name not in chosen:
            raise ColumnNotFound(name, schema.names)
    return tuple(chosen[name] for name in columns)


def _column(rows: Any, field: Field, mode: str, count: int) -> Any:
    place = find(field, rows.schema, mode)
    if place is None:
        return pa.nulls(count, arrow_type(field.type))
    return conform(rows.column(place), field.type, mode)
