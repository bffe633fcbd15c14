"""Staging: an id and a location for a table that is about to be made."""

from __future__ import annotations

from tidegate.domain.errors import BacklogFull, TableAlreadyExists
from tidegate.domain.names import TableId, TableName, check_name
from tidegate.domain.namespaces import managed_location
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.tables import StagingTable
from tidegate.services.environment import Environment
from tidegate.telemetry.current import note


async def stage_table(env: Environment, caller: Principal, name: TableName) -> StagingTable:
    """Several staging tables may carry one name; the first to be finished gets it."""
    note(name, None, "ok")
    check_name("table", name.table)
    await env.authorize(caller, Operation.CREATE_TABLE, name.parent)
    id = TableId(env.new_id())

    def work(uow: UnitOfWork) -> StagingTable:
        schema = uow.schemas.get(name.parent)
        if uow.tables.exists(name):
            raise TableAlreadyExists(name)
        if uow.staging_tables.count() >= env.staging_tables_max:
            raise BacklogFull(
                f"There are {env.staging_tables_max} staging tables that were never finished, which is the limit. "
                "Finish them, or raise the setting staging_tables_max."
            )
        location = managed_location(
            catalog=uow.catalogs.get(name.catalog), schema=schema, storage_root=env.storage_root, table_id=id
        )
        staging = StagingTable(id=id, name=name, location=location, created_by=caller.name, created_at=env.clock())
        uow.staging_tables.add(staging, schema)
        return staging

    return await env.database.write(work)
