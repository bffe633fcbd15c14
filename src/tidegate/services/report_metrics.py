"""Metrics: a writer tells what its commit did to the table's files. The reports are kept with the table."""

from __future__ import annotations

from tidegate.domain.errors import InvalidRequest, NoSuchTable
from tidegate.domain.metrics import CommitReport, KeptReport, check_report, reported_version
from tidegate.domain.names import TableName
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.tables import Table
from tidegate.services.authorized_table import authorized_table
from tidegate.services.environment import Environment
from tidegate.services.identified_table import identified_table


async def report_metrics(
    env: Environment, caller: Principal, name: TableName, *, table_id: str, report: CommitReport | None
) -> None:
    if report is not None:
        check_report(report)
    table = await authorized_table(env, caller, Operation.REPORT_METRICS, name)
    if table.id != table_id.lower():
        raise InvalidRequest(f"table-id is {table_id[:100]}, but {name} has the id {table.id}.")
    await _keep(env, caller, table, report)


async def report_metrics_by_id(
    env: Environment, caller: Principal, *, table_id: str, location: str, report: CommitReport | None
) -> None:
    if report is not None:
        check_report(report)
    table = await identified_table(env, caller, Operation.REPORT_METRICS, table_id=table_id, location=location)
    await _keep(env, caller, table, report)


async def _keep(env: Environment, caller: Principal, table: Table, report: CommitReport | None) -> None:
    if report is None:
        return
    version = reported_version(report, table)
    if not report.says_something():
        return
    kept = KeptReport(version, env.clock(), caller.name, report)

    def keep(uow: UnitOfWork) -> None:
        # Locked, so that of two servers that keep reports of one table each sees what the other has kept.
        if not uow.tables.lock([table.id]):
            raise NoSuchTable(table.name)
        uow.commit_reports.put(table.id, kept, history_max=env.metrics_history_max)

    await env.database.write(keep)
