"""Credentials: what a client needs to reach a table's files, or a place where one shall be."""

from __future__ import annotations

from tidegate.domain.credentials import Credential, CredentialOperation
from tidegate.domain.errors import NoSuchStagingTable, NoSuchTable, PermissionDenied
from tidegate.domain.locations import normalize_location
from tidegate.domain.names import TableId, TableName, parse_table_id
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.services.environment import Environment
from tidegate.services.places import check_free, external_place


async def table_credentials(
    env: Environment, caller: Principal, name: TableName, operation: CredentialOperation
) -> Credential:
    reading = operation is CredentialOperation.READ
    env.authorize(caller, Operation.READ_TABLE if reading else Operation.MODIFY_TABLE, name)
    table = await env.database.table(name)
    return env.vendor.vend(table.location, operation)


async def staging_credentials(env: Environment, caller: Principal, table_id: str) -> Credential:
    """Only for the principal that staged the table."""
    staging = await env.database.read(lambda uow: uow.staging_tables.get(TableId(table_id.lower())))
    env.authorize(caller, Operation.FINISH_STAGING, staging.name)
    if staging.created_by != caller.name:
        raise PermissionDenied(f"The staging table {staging.id} was made by somebody else.")
    return env.vendor.vend(staging.location, CredentialOperation.READ_WRITE)


async def credentials_by_id(
    env: Environment, caller: Principal, table_id: str, operation: CredentialOperation
) -> Credential:
    """For a table, or for a staging table as if it were one."""
    id = parse_table_id("table_id", table_id)

    def find(uow: UnitOfWork) -> TableName | None:
        try:
            return uow.tables.get_by_id(id).name
        except NoSuchTable:
            return None

    name = await env.database.read(find)
    if name is not None:
        return await table_credentials(env, caller, name, operation)
    try:
        return await staging_credentials(env, caller, id)
    except NoSuchStagingTable:
        env.authorize(caller, Operation.READ_TABLE, f"the table with id {id}")
        raise NoSuchTable(f"with id {id}") from None


async def path_credentials(
    env: Environment, caller: Principal, location: str, operation: CredentialOperation
) -> Credential:
    """For writing, only where an external table could be registered: a client asks before it writes version 0."""
    normal = normalize_location(location)
    reading = operation is CredentialOperation.READ
    env.authorize(caller, Operation.READ_LOCATION if reading else Operation.WRITE_LOCATION, normal)
    if not reading:
        place = external_place(env, location)
        await env.database.read(lambda uow: check_free(uow, place))
    return env.vendor.vend(normal, operation)
