"""A commit through the Unity Catalog API: by the table's id, its metadata as a desired final state.

It comes to the same update as in Delta REST v1.0. Before that the staged file is read, because this API cannot say all
that a commit changes; see `domain/desired_metadata.py`. A file that is not there says nothing, and is refused by
admission; see `domain/admission.py`.
"""

from __future__ import annotations

import asyncio

from tidegate.domain.admission import must_look
from tidegate.domain.commit_contents import STAGED, CommitContent
from tidegate.domain.commits import Commit, check_commit
from tidegate.domain.desired_metadata import DesiredMetadata, metadata_actions
from tidegate.domain.errors import InvalidRequest, NoSuchTable
from tidegate.domain.frozen import frozen
from tidegate.domain.names import Version
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.requirements import AssertTableId
from tidegate.domain.table_actions import TableActions, check_storable, parse_table_actions
from tidegate.domain.tables import Table, TableType
from tidegate.domain.uniform import Uniform
from tidegate.domain.updates import Action, AddCommit, ReportPublished
from tidegate.services.environment import Environment
from tidegate.services.identified_table import identified_table
from tidegate.services.learn_commits import up_to_date
from tidegate.services.look_at_commit import read_staged_commit
from tidegate.services.update_table import update_table

ATTEMPTS_MAX = 3
"""An update goes to a name, and somebody may rename the table between finding its name and updating it."""


@frozen
class CommitRequest:
    table_id: str
    location: str
    commit: Commit | None
    published: Version | None
    desired: DesiredMetadata | None
    uniform: Uniform | None


async def write_commit(env: Environment, caller: Principal, request: CommitRequest) -> None:
    _check_shape(request)
    for attempt in range(1, ATTEMPTS_MAX + 1):
        table = await identified_table(
            env, caller, Operation.MODIFY_TABLE, table_id=request.table_id, location=request.location
        )
        actions, seen = await _actions(env, await up_to_date(env, table), request)
        needed = [AssertTableId(table.id)]
        try:
            await update_table(env, caller, table.name, requirements=needed, actions=actions, seen=seen)
            return
        except NoSuchTable:
            if attempt == ATTEMPTS_MAX:
                raise


def _check_shape(request: CommitRequest) -> None:
    if request.commit is None:
        if request.published is None:
            raise InvalidRequest(
                "The request holds neither commit_info nor latest_published_version. Send one of them."
            )
        for part, value in (("metadata", request.desired), ("uniform", request.uniform)):
            if value is not None:
                raise InvalidRequest(f"{part} changes with a commit only. Send it together with commit_info.")
        return
    # Before anything is read by that name.
    check_commit(request.commit)


async def _actions(env: Environment, table: Table, request: CommitRequest) -> tuple[list[Action], CommitContent | None]:
    """What the request does, and the commit if it was looked at for that."""
    actions: list[Action] = []
    seen: CommitContent | None = None
    if request.published is not None:
        actions.append(ReportPublished(request.published))
    if request.commit is not None:
        actions.append(AddCommit(request.commit, request.uniform))
        # A version that is taken is a conflict or was sent again; neither changes metadata.
        if request.commit.version > table.latest and table.type is TableType.MANAGED:
            says, seen = await _read_staged(env, table, request.commit)
            actions += metadata_actions(table.metadata, request.desired, says)
    return actions, seen


async def _read_staged(
    env: Environment, table: Table, commit: Commit
) -> tuple[TableActions | None, CommitContent | None]:
    """What the file says of the table; also where the request is trusted, because it cannot say all of it."""
    if must_look(table):
        seen = await read_staged_commit(env, table, commit)
        return (None, None) if seen is None else (seen.says, seen)
    content = await env.delta_logs.read_staged(table.location, commit)
    # It may speak of very many files: not on the thread that answers everybody.
    return None if content is None else await asyncio.to_thread(_parse, content), None


def _parse(content: bytes) -> TableActions:
    actions = parse_table_actions(content, what=STAGED)
    check_storable(actions, what=STAGED)
    return actions
