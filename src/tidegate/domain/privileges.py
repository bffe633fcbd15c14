"""Who asks, and for what. Every use case asks exactly one authorization question before it does anything."""

from __future__ import annotations

from enum import StrEnum

from tidegate.domain.frozen import frozen
from tidegate.domain.names import SchemaName, TableName


@frozen
class Principal:
    """Compared by both fields: what was found out about one caller must not be taken for what another one, whom an
    identity provider calls the same with other groups, may do.
    """

    name: str
    groups: frozenset[str] = frozenset()
    """Groups that an identity provider told. Those of the catalog are besides them."""


class Operation(StrEnum):
    """What a caller wants to do. Which privileges that takes is told in `rights.py`."""

    BE_KNOWN = "ask about oneself in the"
    USE_METASTORE = "use the"
    WATCH_METASTORE = "watch the"
    MANAGE_METASTORE = "manage the"
    CREATE_CATALOG = "create a catalog in the"
    USE_CATALOG = "use"
    MANAGE_CATALOG = "manage"
    CREATE_SCHEMA = "create a schema in"
    USE_SCHEMA = "use the schema"
    MANAGE_SCHEMA = "manage the schema"
    CREATE_TABLE = "create a table in"
    CREATE_EXTERNAL_TABLE = "create an external table in"
    RESTORE_INTO = "restore a table into"
    FINISH_STAGING = "finish the staging table"
    DESCRIBE_TABLE = "look at"
    READ_TABLE = "read"
    MODIFY_TABLE = "change"
    REPORT_METRICS = "report metrics of"
    MAINTAIN_TABLE = "maintain"
    MANAGE_TABLE = "manage the table"
    MANAGE_DROPPED_TABLE = "manage the dropped table"
    READ_LOCATION = "read the location"
    WRITE_LOCATION = "write to the location"


@frozen
class Question:
    """May this principal do this to that?"""

    operation: Operation
    on: str | SchemaName | TableName

    def __str__(self) -> str:
        return f"{self.operation} {self.on}"
