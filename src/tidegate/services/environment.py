"""What every use case works with. Put together once, in `compose.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tidegate.domain.access_epoch import AccessEpoch
from tidegate.domain.access_ports import Authorizer
from tidegate.domain.errors import NotFound, PermissionDenied
from tidegate.domain.frozen import frozen
from tidegate.domain.names import SchemaName, TableName
from tidegate.domain.ports import (
    Clock,
    CredentialVendor,
    Database,
    Functions,
    Webhooks,
)
from tidegate.domain.privileges import Operation, Principal, Question
from tidegate.domain.retention import Retentions
from tidegate.domain.rights import Allowed
from tidegate.domain.storage_ports import DeltaLogs, FoundTables, TableFiles
from tidegate.services.activity import TableCounts
from tidegate.services.audit import Audit
from tidegate.services.describe_commits import CommitDescriptions
from tidegate.services.event_feed import EventFeed
from tidegate.services.one_at_a_time import OneAtATime
from tidegate.services.outcomes import OutcomeCounts
from tidegate.services.publish_queue import PublishQueue
from tidegate.services.refused_files import RefusedFiles
from tidegate.services.staged_versions import StagedVersions
from tidegate.services.turns import Turns
from tidegate.telemetry.current import note_question
from tidegate.telemetry.server import ServerMeasures
from tidegate.telemetry.traces import Traces


@frozen
class DeliveryLimits:
    attempts_max: int
    backoff_ms: int
    dead_letters_max: int
    subscriptions_max: int


@frozen
class Access:
    """What is remembered of identities, tokens and rights goes by the `epoch`; the rest are bounds."""

    epoch: AccessEpoch
    identities_max: int
    tokens_max: int
    token_hours_max: int
    machine_token_seconds: int
    machine_tokens_max: int


@frozen
class Environment:
    database: Database
    authorizer: Authorizer
    access: Access
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
    audit: Audit
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

    async def authorize(self, caller: Principal, operation: Operation, on: str | SchemaName | TableName) -> Allowed:
        note_question(on)
        try:
            return await self.authorizer.require(caller, Question(operation, on))
        except (PermissionDenied, NotFound):
            note_question(on, denied=True)
            raise
