"""What the server answers, as far as the client needs it. Fields that it does not know are passed over.

Moments are milliseconds since the epoch.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct


class CatalogInfo(Struct, frozen=True, kw_only=True):
    name: str
    id: str
    comment: str | None = None
    properties: dict[str, str] = {}
    owner: str = ""
    created_at: int = 0
    updated_at: int = 0
    storage_root: str | None = None
    storage_location: str | None = None


class CatalogPage(Struct, frozen=True):
    catalogs: list[CatalogInfo]
    next_page_token: str | None = None


class SchemaInfo(Struct, frozen=True, kw_only=True):
    name: str
    catalog_name: str
    full_name: str
    schema_id: str
    comment: str | None = None
    properties: dict[str, str] = {}
    owner: str = ""
    created_at: int = 0
    updated_at: int = 0
    storage_root: str | None = None
    storage_location: str | None = None


class SchemaPage(Struct, frozen=True):
    schemas: list[SchemaInfo]
    next_page_token: str | None = None


class ColumnInfo(Struct, frozen=True, kw_only=True):
    name: str
    type_text: str
    nullable: bool
    position: int
    comment: str | None = None
    partition_index: int | None = None


class TableInfo(Struct, frozen=True, kw_only=True):
    """A table as a listing shows it."""

    name: str
    catalog_name: str
    schema_name: str
    table_id: str
    table_type: str
    data_source_format: str
    storage_location: str
    columns: list[ColumnInfo] = []
    comment: str | None = None
    properties: dict[str, str] = {}
    owner: str = ""
    created_at: int = 0
    updated_at: int = 0

    @property
    def full_name(self) -> str:
        return f"{self.catalog_name}.{self.schema_name}.{self.name}"


class TablePage(Struct, frozen=True):
    tables: list[TableInfo]
    next_page_token: str | None = None


class AdoptedTable(Struct, frozen=True, kw_only=True):
    """`version` and `actions`: the commit that made the catalog the table's owner. There are no actions for an external
    table, or for one that was adopted before.
    """

    full_name: str
    table_id: str
    location: str
    version: int
    actions: list[dict[str, Any]] = []


class ReleasedTable(Struct, frozen=True, kw_only=True):
    """`version`: the commit that gave the table back. `kept`: what the catalog has of it, `external` or `nothing`."""

    full_name: str
    table_id: str
    location: str
    version: int
    kept: str


class DroppedTable(Struct, frozen=True, kw_only=True):
    """`purge_at`: until when it can be restored, while its state is DROPPED."""

    table_id: str
    full_name: str
    table_type: str
    storage_location: str
    dropped_at: int
    dropped_by: str
    purge_at: int
    state: str
    files_removed: int = 0
    problem: str | None = None


class DroppedTablePage(Struct, frozen=True):
    tables: list[DroppedTable]
    next_page_token: str | None = None


class RestoredTable(Struct, frozen=True):
    table_id: str
    full_name: str
    latest_version: int


class Purge(Struct, frozen=True):
    table_id: str
    state: str


class Event(Struct, frozen=True, kw_only=True):
    sequence: int
    kind: str
    table_id: str
    table: str
    at: int
    by: str
    version: int | None = None
    data: dict[str, Any] = {}


class EventPage(Struct, frozen=True):
    """`next_after` is for the next question; it counts what a filter passed over too."""

    events: list[Event]
    next_after: int
    last: int


class Commit(Struct, frozen=True, rename="kebab"):
    """A ratified commit. Its staged file lies in `_delta_log/_staged_commits`; one that is known to be `inline` has
    none, and its `content` is told where commits are read.
    """

    version: int
    timestamp: int
    file_name: str
    file_size: int
    file_modification_timestamp: int
    inline: bool = False
    content: bytes | None = None


class TableMetadata(Struct, frozen=True, rename="kebab", kw_only=True):
    etag: str
    table_type: str
    table_uuid: str
    location: str
    columns: dict[str, Any]
    partition_columns: list[str] = []
    properties: dict[str, str] = {}
    last_commit_version: int = 0
    last_commit_timestamp_ms: int = 0
    created_time: int = 0
    updated_time: int = 0


class LoadedTable(Struct, frozen=True, rename="kebab", kw_only=True):
    """One state of a table. `commits`: ratified and not published, newest first."""

    metadata: TableMetadata
    commits: list[Commit] = []
    latest_table_version: int | None = None


class Protocol(Struct, frozen=True, rename="kebab"):
    min_reader_version: int
    min_writer_version: int
    reader_features: list[str] = []
    writer_features: list[str] = []


class StagingTable(Struct, frozen=True, rename="kebab", kw_only=True):
    table_id: str
    location: str
    required_protocol: Protocol
    required_properties: dict[str, str | None]


class Conflict(Struct, frozen=True, rename="kebab"):
    """What a server tells the loser of a version beyond the error itself."""

    latest_table_version: int
    commits: list[Commit]
    append_stands: bool


class KeptCommit(Struct, frozen=True):
    """A commit in the spelling of Tidegate's own API."""

    version: int
    timestamp: int
    file_name: str
    file_size: int
    file_modification_timestamp: int
    inline: bool
    content: str | None = None

    def commit(self) -> Commit:
        return Commit(
            self.version,
            self.timestamp,
            self.file_name,
            self.file_size,
            self.file_modification_timestamp,
            inline=self.inline,
            content=None if self.content is None else self.content.encode(),
        )


class KeptCommitPage(Struct, frozen=True):
    """`commits`: in order and without a gap; more of them may follow."""

    table_id: str
    location: str
    latest_version: int | None
    metadata_version: int
    commits: list[KeptCommit]


class InlineCommitted(Struct, frozen=True):
    version: int
    timestamp: int
    file_name: str
    file_size: int
    file_modification_timestamp: int
    latest_version: int


class InlineConflict(Struct, frozen=True):
    """As `Conflict`, in the spelling of Tidegate's own API."""

    latest_version: int
    commits: list[KeptCommit]
    append_stands: bool

    def conflict(self) -> Conflict:
        return Conflict(self.latest_version, [one.commit() for one in self.commits], self.append_stands)


class PrivilegeAssignment(Struct, frozen=True):
    principal: str
    privileges: list[str]


class PermissionsList(Struct, frozen=True):
    privilege_assignments: list[PrivilegeAssignment]


class ErrorBody(Struct, frozen=True):
    """Both spellings: Delta REST v1.0 has an object `error`, the other faces `error_code` and `message`."""

    error: DeltaError | None = None
    conflict: Raw = Raw(b"null")
    """In the spelling of its face."""
    error_code: str | None = None
    message: str | None = None


class DeltaError(Struct, frozen=True):
    type: str
    message: str
