"""Grants: which privilege a principal was given on which object. What follows from them is told in `rights.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tidegate.domain.errors import BacklogFull, InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.names import NAME_LENGTH_MAX


class SecurableType(StrEnum):
    METASTORE = "metastore"
    CATALOG = "catalog"
    SCHEMA = "schema"
    TABLE = "table"


class Privilege(StrEnum):
    CREATE_CATALOG = "CREATE CATALOG"
    USE_CATALOG = "USE CATALOG"
    CREATE_SCHEMA = "CREATE SCHEMA"
    USE_SCHEMA = "USE SCHEMA"
    CREATE_TABLE = "CREATE TABLE"
    SELECT = "SELECT"
    MODIFY = "MODIFY"
    MODIFY_METADATA = "MODIFY METADATA"
    """Ours: change schema, properties, protocol. It comes with MODIFY, unless the table is guarded."""
    MAINTAIN = "MAINTAIN"
    MANAGE = "MANAGE"
    CREATE_FUNCTION = "CREATE FUNCTION"
    EXECUTE = "EXECUTE"
    CREATE_VOLUME = "CREATE VOLUME"
    READ_VOLUME = "READ VOLUME"
    CREATE_MODEL = "CREATE MODEL"
    CREATE_EXTERNAL_LOCATION = "CREATE EXTERNAL LOCATION"
    READ_FILES = "READ FILES"
    WRITE_FILES = "WRITE FILES"
    CREATE_EXTERNAL_TABLE = "CREATE EXTERNAL TABLE"
    CREATE_EXTERNAL_VOLUME = "CREATE EXTERNAL VOLUME"
    CREATE_MANAGED_STORAGE = "CREATE MANAGED STORAGE"
    CREATE_STORAGE_CREDENTIAL = "CREATE STORAGE CREDENTIAL"


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    principal: str
    privilege: Privilege


@frozen
class GrantChange:
    principal: str
    add: Sequence[Privilege]
    remove: Sequence[Privilege]


CHANGES_MAX = 1000
"""In one request, which is one transaction."""


def check_changes(changes: Sequence[GrantChange]) -> None:
    if len(changes) > CHANGES_MAX:
        raise InvalidRequest(f"The request holds {len(changes)} changes. Send at most {CHANGES_MAX} at once.")
    for change in changes:
        if not change.principal or len(change.principal) > NAME_LENGTH_MAX or not change.principal.isprintable():
            raise InvalidRequest(
                f"{change.principal[:100]!r} cannot be a principal. Use 1 to {NAME_LENGTH_MAX} printable characters."
            )
        both = set(change.add) & set(change.remove)
        if both:
            raise InvalidRequest(
                f"{min(both)} is granted to {change.principal} and taken away at once. Decide for one."
            )


def check_number(grants: Sequence[Grant], *, grants_max: int) -> None:
    if len(grants) > grants_max:
        raise BacklogFull(
            f"More than {grants_max} privileges would be granted on one object, the setting grants_max. "
            "Take some away, or raise it."
        )
