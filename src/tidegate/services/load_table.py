"""Load: a table's metadata, its ratified unpublished commits and its latest version, from one snapshot."""

from __future__ import annotations

from tidegate.domain.names import TableName
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.tables import Table, require_delta
from tidegate.services.authorized_table import authorized_table
from tidegate.services.environment import Environment
from tidegate.services.learn_commits import up_to_date
from tidegate.services.stage_inline_commits import with_files


async def load_table(env: Environment, caller: Principal, name: TableName) -> Table:
    found = await authorized_table(env, caller, Operation.READ_TABLE, name)
    table = await up_to_date(env, require_delta(found))
    env.activity.count_load(table)
    return await with_files(env, table)
