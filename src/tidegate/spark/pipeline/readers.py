"""Calls the functions of a pipeline with the DataFrames that their parameters name, and checks what they return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from tidegate.spark.pipeline.declarations import SESSION, Table, View, listed
from tidegate.spark.pipeline.errors import TableError
from tidegate.spark.pipeline.expectations import require_conditions
from tidegate.spark.pipeline.history import Commit
from tidegate.spark.pipeline.plan import Declared, resolve

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads for one step of a run."""

    spark: SparkSession
    declared: Declared
    versions: Mapping[str, Commit | None] = field(default_factory=dict[str, "Commit | None"])
    """Tables to read at a version; others are read as they are now."""

    def rows(self, table: Table) -> DataFrame:
        """What the table's function returns, once it is known to be fit for the table."""
        rows = self._call(table, streamed=table.stream)
        if table.stream and not rows.isStreaming:
            raise TableError(
                f"{table.name} is a streaming table, and its function returned a DataFrame that is no stream: read one "
                "of its inputs as a stream, or leave out stream=True."
            )
        if rows.isStreaming and not table.stream:
            raise TableError(f"{table.name} is a batch table, and its function returned a stream: add stream=True.")
        for option in ("keys", "sequence_by", "partitioned_by"):
            _require_columns(table, option, getattr(table, option), rows.columns)
        require_conditions(table.name, table.expect, rows)
        return rows

    def _call(self, reader: View, *, streamed: bool) -> DataFrame:
        from pyspark.sql import DataFrame

        arguments = {
            parameter: self.spark if parameter == SESSION else self._read(reader, parameter, streamed=streamed)
            for parameter in reader.parameters
        }
        rows = cast("Callable[..., object]", reader.function)(**arguments)
        if not isinstance(rows, DataFrame):
            raise TableError(f"{reader.name} returned {type(rows).__name__}: its function has to return a DataFrame.")
        return rows

    def _read(self, reader: View, parameter: str, *, streamed: bool) -> DataFrame:
        source = resolve(self.declared, reader, parameter)
        as_stream = streamed and parameter not in reader.snapshot
        if isinstance(source, View) and not isinstance(source, Table):
            return self._call(source, streamed=as_stream)
        name = source.full_name if isinstance(source, Table) else source
        if as_stream:
            return self.spark.readStream.table(name)
        commit = self.versions.get(name)
        read = self.spark.read if commit is None else self.spark.read.option("versionAsOf", commit.version)
        return read.table(name)


def _require_columns(table: Table, option: str, wanted: Iterable[str], columns: Iterable[str]) -> None:
    known = {column.lower() for column in columns}
    unknown = [name for name in wanted if name.lower() not in known]
    if unknown:
        raise TableError(f"{table.name}: {option}= names {listed(unknown)}; its function returns {listed(columns)}.")
