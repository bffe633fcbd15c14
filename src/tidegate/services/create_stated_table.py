"""Creating a table through the Unity Catalog API, which says less of it than the log does.

The request has no protocol and no domain metadata, its columns and properties may be left out, and clients leave out
different parts of them. So what becomes of a managed table is what version 0 in the log says; whatever the request
states besides must agree with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidegate.domain.commits import check_timestamp
from tidegate.domain.errors import InvalidRequest, TableAlreadyExists, UnsupportedTableFormat
from tidegate.domain.first_commit import FirstCommit, check_storable_first_commit
from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableName, check_name
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.protocol import CLUSTERING_DOMAIN, LEAST_CONTRACT
from tidegate.domain.stated_columns import StatedColumn, difference, stated_partitions, stated_schema
from tidegate.domain.stated_properties import (
    LAST_TIMESTAMP_PROPERTY,
    LAST_VERSION_PROPERTY,
    check_derived,
    check_table_id,
    own_properties,
    stated_clustering,
    stated_protocol,
)
from tidegate.domain.table_actions import SHOWN_DOMAINS
from tidegate.domain.tables import DELTA, Table, TableMetadata, TableType
from tidegate.domain.updates import check_domains, check_property_keys
from tidegate.services.create_table import (
    Creation,
    create_table,
    find_staging,
    finish_staging,
    new_table,
    read_first_commit,
)
from tidegate.services.environment import Environment
from tidegate.telemetry.current import note


@frozen
class StatedTable:
    """`columns` and `properties` are None where the request has none."""

    name: TableName
    type: TableType
    format: str
    location: str
    columns: Sequence[StatedColumn] | None
    properties: Mapping[str, str] | None
    comment: str | None


async def create_stated_table(env: Environment, caller: Principal, stated: StatedTable) -> Table:
    note(stated.name, None, "ok")
    check_name("table", stated.name.table)
    if stated.format != DELTA:
        raise UnsupportedTableFormat(stated.name, stated.format[:50])
    if stated.type is TableType.EXTERNAL:
        return await create_table(env, caller, _external(env, stated))
    allowed = await env.authorize(caller, Operation.CREATE_TABLE, stated.name.parent)
    await _check_name_is_free(env, stated.name)
    staging = await find_staging(env, caller, stated.name, stated.location, tell=allowed.names is None)
    log = await read_first_commit(env, staging.location)
    creation = _described(stated, log)
    table = new_table(env, caller, creation, id=staging.id, location=staging.location)
    _check_statements(stated, table, log)
    await finish_staging(env, table, log)
    return table


async def _check_name_is_free(env: Environment, name: TableName) -> None:
    """Asked first: who sends a creation again hears that the table is there, not that its staging table is gone."""

    def look(uow: UnitOfWork) -> None:
        uow.schemas.get(name.parent)
        if uow.tables.exists(name):
            raise TableAlreadyExists(name)

    await env.database.read(look)


def _described(stated: StatedTable, log: FirstCommit) -> Creation:
    """The table as the log has it."""
    check_storable_first_commit(log)
    metadata = TableMetadata(
        columns=log.columns,
        partition_columns=log.partition_columns,
        protocol=log.protocol,
        properties=own_properties(log.properties),
        domains={domain: log.domains[domain] for domain in SHOWN_DOMAINS if domain in log.domains},
        comment=log.description if stated.comment is None else stated.comment,
        catalog_properties={},
    )
    check_property_keys("the configuration in version 0 of the log", metadata.properties)
    check_domains(metadata.domains)
    check_timestamp("inCommitTimestamp in version 0 of the log", log.timestamp)
    # The API has no word for what was converted to Iceberg: a table's first commit brings it.
    return Creation(
        name=stated.name,
        type=stated.type,
        location=stated.location,
        metadata=metadata,
        timestamp=log.timestamp,
        uniform=None,
        contract=LEAST_CONTRACT,
    )


def _check_statements(stated: StatedTable, table: Table, log: FirstCommit) -> None:
    if stated.columns:
        told = difference(stated.columns, log.columns)
        if told is not None:
            raise InvalidRequest(f"The columns differ from version 0 in the log: {told}.")
        partitions = stated_partitions(stated.columns)
        if partitions is not None and _lower(partitions) != _lower(log.partition_columns):
            _differ("partition columns", list(partitions), list(log.partition_columns))
    if stated.properties:
        check_table_id(stated.properties, table.id)
        check_derived(stated.properties, table.metadata)
        expected = {
            **log.properties,
            LAST_VERSION_PROPERTY: "0",
            LAST_TIMESTAMP_PROPERTY: str(log.timestamp),
        }
        moments = {k: v for k, v in stated.properties.items() if k in {LAST_VERSION_PROPERTY, LAST_TIMESTAMP_PROPERTY}}
        for key, value in {**own_properties(stated.properties), **moments}.items():
            if expected.get(key) != value:
                _differ(f"property {key}", value, expected.get(key))


def _differ(what: str, stated: object, in_log: object) -> None:
    said = "nothing" if in_log is None else str(in_log)[:200]
    raise InvalidRequest(
        f"The request and version 0 in the log differ in {what}: {str(stated)[:200]} is stated, {said} is in the log. "
        "Send what the log says."
    )


def _lower(names: Sequence[str]) -> list[str]:
    return [name.lower() for name in names]


def _external(env: Environment, stated: StatedTable) -> Creation:
    """Its log belongs to somebody else and is not read: the request is all there is."""
    columns, properties = stated.columns or (), stated.properties or {}
    moment, clustering = properties.get(LAST_TIMESTAMP_PROPERTY, ""), stated_clustering(properties)
    metadata = TableMetadata(
        columns=stated_schema(columns),
        partition_columns=stated_partitions(columns) or (),
        protocol=stated_protocol(properties),
        properties=own_properties(properties),
        domains={} if clustering is None else {CLUSTERING_DOMAIN: {"clusteringColumns": clustering}},
        comment=stated.comment,
        catalog_properties={},
    )
    timestamp = int(moment) if moment.isascii() and moment.isdigit() and len(moment) < 19 else env.clock()
    return Creation(
        name=stated.name,
        type=stated.type,
        location=stated.location,
        metadata=metadata,
        timestamp=timestamp,
        uniform=None,
    )
