"""Metrics: a writer tells what its commit did to the table's files."""

from __future__ import annotations

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.metrics import FileSizeHistogram, check_histogram
from tidegate.domain.names import TableName
from tidegate.domain.privileges import Operation, Principal
from tidegate.services.environment import Environment


async def report_metrics(
    env: Environment, caller: Principal, name: TableName, *, table_id: str, histogram: FileSizeHistogram | None
) -> None:
    if histogram is not None:
        check_histogram(histogram)
    env.authorize(caller, Operation.MODIFY_TABLE, name)
    table = await env.database.table(name)
    if table.id != table_id.lower():
        raise InvalidRequest(f"table-id is {table_id[:100]}, but {name} has the id {table.id}.")
