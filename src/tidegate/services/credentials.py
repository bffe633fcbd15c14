"""Credentials: what a client needs to reach a table's files, or a place where one shall be."""

from __future__ import annotations

from tidegate.domain.credentials import Credential, CredentialOperation
from tidegate.domain.errors import NoSuchStagingTable, NoSuchTable, PermissionDenied, no_such_staging_table
from tidegate.domain.locations import normalize_location
from tidegate.domain.names import TableId, TableName, parse_table_id
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.services.authorized_table import authorized_table
from tidegate.services.environment import Environment
from tidegate.services.places import check_free, external_place


async def table_credentials(
    env: Environment, caller: Principal, name: TableName, operation: CredentialOperation
) -> Credential:
    reading = operation is CredentialOperation.READ
    operation_asked = Operation.READ_TABLE if reading else Operation.MODIFY_TABLE
    table = await authorized_table(env, caller, operation_asked, name)
    return env.vendor.vend(table.location, operation)


async def staging_credentials(env: Environment, caller: Principal, table_id: str) -> Credential:
    """Only for the principal that staged the table."""
    id = TableId(table_id.lower())
    allowed = await env.authorize(caller, Operation.FINISH_STAGING, id)
    staging = await env.database.read(lambda uow: uow.staging_tables.get(id))
    if staging.created_by != caller.name:
        if allowed.names is not None:
            raise no_such_staging_table(id)  # what belongs to others is as good as not there
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
        try:
            return await table_credentials(env, caller, name, operation)
        except NoSuchTable:
            raise NoSuchTable(f"with id {id}") from None
    try:
        return await staging_credentials(env, caller, id)
    except NoSuchStagingTable:
        await env.authorize(caller, Operation.READ_TABLE, f"with id {id}")
        raise NoSuchTable(f"with id {id}") from None


async def path_credentials(
    env: Environment, caller: Principal, location: str, operation: CredentialOperation
) -> Credential:
    """For writing, only where an external table could be registered: a client asks before it writes version 0."""
    normal = normalize_location(location)
    reading = operation is CredentialOperation.READ
    allowed = await env.authorize(caller, Operation.READ_LOCATION if reading else Operation.WRITE_LOCATION, normal)
    if not reading:
        place = external_place(env, location)
        await env.database.read(lambda uow: check_free(uow, place, tell=allowed.names is None))
    return env.vendor.vend(normal, operation)
