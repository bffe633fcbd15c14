"""What every use case works with. Put together once, in `compose.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.domain.names import SchemaName, TableName
from tidegate.domain.ports import Authorizer, Clock, CredentialVendor, Database, DeltaLogs
from tidegate.domain.privileges import Operation, Principal, Question
from tidegate.services.outcomes import OutcomeCounts
from tidegate.services.turns import Turns


@dataclass(frozen=True, slots=True)
class Environment:
    database: Database
    authorizer: Authorizer
    delta_logs: DeltaLogs
    vendor: CredentialVendor
    outcomes: OutcomeCounts
    turns: Turns
    clock: Clock
    new_id: Callable[[], str]
    storage_root: str
    """Where managed tables go whose schema and catalog name no place of their own; in normal form."""
    staging_tables_max: int
    page_size_max: int
    commits_page_size_max: int
    metrics_history_max: int
    grants_max: int

    def authorize(self, caller: Principal, operation: Operation, on: str | SchemaName | TableName) -> None:
        self.authorizer.require(caller, Question(operation, on))
