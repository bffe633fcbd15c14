"""The metrics of a table: what was reported of its commits, newest version first, in pages."""

from __future__ import annotations

from tidegate.domain.frozen import frozen
from tidegate.domain.metrics import KeptReport
from tidegate.domain.names import TableId, TableName
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.services.authorized_table import still
from tidegate.services.environment import Environment
from tidegate.services.paging import Page, PageRequest, read_page, version_in


@frozen
class TableMetrics:
    name: TableName
    table_id: TableId
    reports: Page[KeptReport]


async def read_metrics(env: Environment, caller: Principal, name: TableName, page: PageRequest) -> TableMetrics:
    allowed = await env.authorize(caller, Operation.DESCRIBE_TABLE, name)

    def work(uow: UnitOfWork) -> TableMetrics:
        table = still(allowed, uow.tables.get(name))
        reports = read_page(
            page,
            lambda after, limit: uow.commit_reports.page(table.id, before=version_in(after), limit=limit),
            lambda kept: str(kept.version),
            size_max=env.page_size_max,
        )
        return TableMetrics(table.name, table.id, reports)

    return await env.database.read(work)
