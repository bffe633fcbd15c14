"""`Pipeline`: tables declared by decorating the functions that compute them.

shop = Pipeline("shop", schema="main.shop", checkpoints="/data/checkpoints/shop")

@shop.table(stream=True)
def orders(spark):
    return spark.readStream.schema("id BIGINT, amount DECIMAL(10, 2), day DATE").json("/data/orders")

@shop.table
def revenue(orders):
    return orders.groupBy("day").sum("amount")

shop.run(spark).print()
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

from tidegate.spark.pipeline.declarations import Table, View, names
from tidegate.spark.pipeline.errors import DeclarationError
from tidegate.spark.pipeline.expectations import Expectation
from tidegate.spark.pipeline.plan import Plan, make_plan
from tidegate.spark.pipeline.progress import Listener, listening
from tidegate.spark.pipeline.report import Report
from tidegate.spark.pipeline.runs import Run
from tidegate.spark.pipeline.sessions import sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

F = TypeVar("F", bound="Callable[..., DataFrame]")


class Pipeline:
    """Tables and views that are computed from one another."""

    def __init__(self, name: str, *, schema: str, checkpoints: str | os.PathLike[str] | None = None) -> None:
        """Tables are stored in `schema` ("catalog.schema"); `checkpoints` is a folder for what streams have read."""
        self.name = name
        self.schema = schema
        self.checkpoints = None if checkpoints is None else os.fspath(checkpoints).rstrip("/")
        self._declared: dict[str, Table | View] = {}

    @overload
    def table(self, function: F, /) -> F: ...
    @overload
    def table(
        self,
        *,
        name: str | None = None,
        stream: bool = False,
        keys: str | Iterable[str] = (),
        sequence_by: str | Iterable[str] = (),
        expect: Iterable[Expectation] = (),
        inputs: Mapping[str, str] | None = None,
        snapshot: str | Iterable[str] = (),
        partitioned_by: str | Iterable[str] = (),
        comment: str | None = None,
        properties: Mapping[str, str] | None = None,
        evolve: bool = False,
    ) -> Callable[[F], F]: ...
    def table(self, function: Any = None, **options: Any) -> Any:
        """Declares a table that holds what the function returns. The function stays as it is.

        Each parameter of the function names a table or view of the pipeline, except `spark`, which is the session.

        name            the table's name, in the schema or with catalog and schema; else that of the function
        stream          adds what is new in its inputs, which are streams; else it is computed as a whole
        keys            the columns that tell rows apart: rows are upserted, not added
        sequence_by     the columns that tell which row of a key is the newest
        expect          expectations: warn(...), drop(...), fail(...)
        inputs          {parameter: table}, for parameters that stand for tables outside, or under another name
        snapshot        inputs of a streaming table that are not streams but tables as they are
        partitioned_by  the columns that the table's files are laid out by
        comment, properties    given to the table when it is created
        evolve          lets a streaming table get new columns
        """
        return self._decorate(Table, function, options)

    @overload
    def view(self, function: F, /) -> F: ...
    @overload
    def view(
        self, *, inputs: Mapping[str, str] | None = None, snapshot: str | Iterable[str] = ()
    ) -> Callable[[F], F]: ...
    def view(self, function: Any = None, **options: Any) -> Any:
        """Declares a DataFrame that tables and views can take. It is not stored, but computed by those that take it."""
        return self._decorate(View, function, options)

    def plan(
        self, *, only: str | Iterable[str] | None = None, full_refresh: bool | str | Iterable[str] = False
    ) -> Plan:
        """What `run` would run, in order. Fails if the declarations do not fit together."""
        plan = make_plan(self.name, self._declared, only=only, full_refresh=full_refresh)
        streams = [step.table.name for step in plan.steps if step.table.stream]
        if streams and self.checkpoints is None:
            raise DeclarationError(
                f"{streams[0]} is a streaming table and needs a place to note what it has read: give "
                "Pipeline(..., checkpoints=...) a folder."
            )
        return plan

    def describe(self) -> str:
        """The plan of everything, to read."""
        return str(self.plan())

    def run(
        self,
        spark: SparkSession,
        *,
        only: str | Iterable[str] | None = None,
        full_refresh: bool | str | Iterable[str] = False,
        progress: bool | Listener = True,
        parallel: int = 1,
    ) -> Report:
        """Brings the tables up to date. Raises PipelineFailed, which carries the report, if one of them failed.

        only            tables to run; others are read as they are
        full_refresh    True, or tables to compute from nothing. Their history stays. Tables that stream from them are
                        refreshed as well.
        progress        shown on stderr; or a function that is told each Event
        parallel        how many tables may be computed at once
        """
        plan = self.plan(only=only, full_refresh=full_refresh)
        if parallel < 1:
            raise DeclarationError(f"parallel={parallel}: at least one table has to run at a time.")
        for schema in dict.fromkeys(step.table.full_name.rpartition(".")[0] for step in plan.steps):
            sql(spark, f"CREATE SCHEMA IF NOT EXISTS {schema}")
        with listening(progress, [step.table.name for step in plan.steps]) as listener:
            run = Run(spark=spark, plan=plan, declared=self._declared, checkpoints=self.checkpoints, listener=listener)
            return run.execute(parallel=parallel)

    def _decorate(self, kind: type[Table] | type[View], function: Any, options: dict[str, Any]) -> Any:
        def declare(function: F) -> F:
            self._add(self._declaration(kind, function, options))
            return function

        return declare if function is None else declare(function)

    def _declaration(self, kind: type[Table] | type[View], function: Any, options: dict[str, Any]) -> Table | View:
        given = {key: value for key, value in options.items() if value is not None}
        for key in ("keys", "sequence_by", "snapshot", "partitioned_by"):
            if key in given:
                given[key] = names(given[key])
        if kind is View:
            return View(name=function.__name__, function=function, **given)
        stored_as = given.pop("name", function.__name__)
        full_name = stored_as if "." in stored_as else f"{self.schema}.{stored_as}"
        given["expect"] = tuple(given.get("expect", ()))
        return Table(name=function.__name__, function=function, full_name=full_name, **given)

    def _add(self, new: Table | View) -> None:
        if new.name in self._declared:
            raise DeclarationError(f"{self.name} has a {new.name} already: give one of the two another name.")
        for other in self._declared.values():
            if isinstance(new, Table) and isinstance(other, Table) and new.full_name == other.full_name:
                raise DeclarationError(f"{new.name} and {other.name} are both stored as {new.full_name}.")
        self._declared[new.name] = new
