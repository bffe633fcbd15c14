"""Who asks, and for what. Every use case asks exactly one authorization question before it does anything."""

from __future__ import annotations

from enum import StrEnum

from tidegate.domain.frozen import frozen
from tidegate.domain.names import SchemaName, TableName


@frozen
class Principal:
    name: str


class Operation(StrEnum):
    """What a caller wants to do. Which privileges that takes is the authorizer's business."""

    USE_METASTORE = "use the metastore"
    MANAGE_METASTORE = "manage the metastore"
    CREATE_CATALOG = "create a catalog in"
    USE_CATALOG = "use"
    MANAGE_CATALOG = "manage"
    CREATE_SCHEMA = "create a schema in"
    USE_SCHEMA = "use the schema"
    MANAGE_SCHEMA = "manage the schema"
    CREATE_TABLE = "create a table in"
    FINISH_STAGING = "finish the staging table of"
    READ_TABLE = "read"
    MODIFY_TABLE = "change"
    REPORT_METRICS = "report metrics of"
    MANAGE_TABLE = "manage the table"
    READ_LOCATION = "read the location"
    WRITE_LOCATION = "write to the location"


@frozen
class Question:
    """May this principal do this to that?"""

    operation: Operation
    on: str | SchemaName | TableName

    def __str__(self) -> str:
        return f"{self.operation} {self.on}"
