"""Policies of a table: what it asks of its commits. Who can read the table sees them; who manages it changes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tidegate.domain.commit_policies import CommitPolicies, kept_policies
from tidegate.domain.errors import InvalidRequest, RequirementConflict, Unavailable
from tidegate.domain.names import TableName
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.ratification import Proposal
from tidegate.domain.requirements import Requirements
from tidegate.domain.tables import Table, TableType, require_delta
from tidegate.domain.updates import SetPolicies
from tidegate.services.environment import Environment
from tidegate.services.update_table import propose

ATTEMPTS_MAX = 5
"""Others may change the table's metadata between reading its policies and writing them."""


async def read_policies(env: Environment, caller: Principal, name: TableName) -> CommitPolicies:
    await env.authorize(caller, Operation.READ_TABLE, name)
    return kept_policies(_managed(await env.database.table(name)).metadata)


async def change_policies(
    env: Environment, caller: Principal, name: TableName, changes: Mapping[str, Any]
) -> CommitPolicies:
    """`changes` are fields of CommitPolicies; the others stay as they are."""
    now = env.clock()
    await env.authorize(caller, Operation.MANAGE_TABLE, name)
    for _ in range(ATTEMPTS_MAX):
        table = _managed(await env.database.table(name))
        policies = replace(kept_policies(table.metadata), **changes)
        policies.check()
        needed = Requirements(table.id, table.etag)
        try:
            await propose(env, Proposal(name, caller.name, needed, (SetPolicies(policies),), proposed_at=now))
            return policies
        except RequirementConflict:
            continue
    raise Unavailable(f"The metadata of {name} changes too fast to change its policies. Try again.")


def _managed(table: Table) -> Table:
    if require_delta(table).type is not TableType.MANAGED:
        raise InvalidRequest(f"{table.name} is external: the catalog does not decide on its commits.")
    return table
