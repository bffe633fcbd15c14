"""What a caller asserts of a table before it changes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from tidegate.domain.errors import InvalidRequest, RequirementConflict
from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableId, parse_table_id
from tidegate.domain.tables import Table


@frozen
class AssertTableId:
    type: ClassVar[str] = "assert-table-uuid"
    id: str


@frozen
class AssertEtag:
    type: ClassVar[str] = "assert-etag"
    etag: str


Requirement: TypeAlias = AssertTableId | AssertEtag


@frozen
class Requirements:
    """The id is always asserted: a cached name could otherwise reach a table made anew under it."""

    table_id: TableId
    etag: str | None


def collect_requirements(requirements: Sequence[Requirement]) -> Requirements:
    table_id = etag = None
    for requirement in requirements:
        if isinstance(requirement, AssertTableId):
            table_id = requirement.id
        else:
            etag = requirement.etag
    if len(requirements) > (table_id is not None) + (etag is not None):
        name, count = Counter(requirement.type for requirement in requirements).most_common(1)[0]
        raise InvalidRequest(f"{name} is required {count} times. Send at most one of each kind.")
    if table_id is None:
        raise InvalidRequest("Every update needs the requirement assert-table-uuid. Send it.")
    return Requirements(parse_table_id(AssertTableId.type, table_id), etag)


def check_etag(requirements: Requirements, table: Table) -> None:
    if requirements.etag is not None and requirements.etag != table.etag:
        raise RequirementConflict(
            f"The metadata of {table.name} has changed: its etag is {table.etag}, not {requirements.etag[:200]}. "
            "Reload the table and decide again."
        )
