"""What every use case works with. Put together once, in `compose.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tidegate.domain.frozen import frozen
from tidegate.domain.names import SchemaName, TableName
from tidegate.domain.ports import (
    Authorizer,
    Clock,
    CredentialVendor,
    Database,
    DeltaLogs,
    FoundTables,
    Functions,
    TableFiles,
    Webhooks,
)
from tidegate.domain.privileges import Operation, Principal, Question
from tidegate.domain.retention import Retentions
from tidegate.services.activity import TableCounts
from tidegate.services.describe_commits import CommitDescriptions
from tidegate.services.event_feed import EventFeed
from tidegate.services.one_at_a_time import OneAtATime
from tidegate.services.outcomes import OutcomeCounts
from tidegate.services.publish_queue import PublishQueue
from tidegate.services.refused_files import RefusedFiles
from tidegate.services.staged_versions import StagedVersions
from tidegate.services.turns import Turns
from tidegate.telemetry.server import ServerMeasures
from tidegate.telemetry.traces import Traces


@frozen
class DeliveryLimits:
    attempts_max: int
    backoff_ms: int
    dead_letters_max: int
    subscriptions_max: int


@frozen
class Environment:
    database: Database
    authorizer: Authorizer
    delta_logs: DeltaLogs
    table_files: TableFiles
    found_tables: FoundTables
    vendor: CredentialVendor
    outcomes: OutcomeCounts
    activity: TableCounts
    turns: Turns
    publishing: PublishQueue
    one_at_a_time: OneAtATime
    """For tables whose commits are put into their logs."""
    refused: RefusedFiles
    staged_versions: StagedVersions
    measures: ServerMeasures
    traces: Traces | None
    """None: nobody listens."""
    feed: EventFeed
    descriptions: CommitDescriptions
    webhooks: Webhooks
    functions: Functions
    delivery: DeliveryLimits
    deliveries: asyncio.Event
    """Set when there is something new to deliver that is no event."""
    clock: Clock
    patient_clock: Clock
    """For the end of retentions: see `domain/retention.py`."""
    retentions: Retentions
    new_id: Callable[[], str]
    storage_root: str
    """Where managed tables go whose schema and catalog name no place of their own; in normal form."""
    staging_tables_max: int
    page_size_max: int
    commits_page_size_max: int
    metrics_history_max: int
    grants_max: int
    inline_bytes_max: int

    def authorize(self, caller: Principal, operation: Operation, on: str | SchemaName | TableName) -> None:
        self.authorizer.require(caller, Question(operation, on))
