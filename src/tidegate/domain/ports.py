"""What the rules need from the outside world. Adapters implement it; `compose.py` plugs them in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from tidegate.domain.commits import Commit, RatifiedCommit
from tidegate.domain.credentials import Credential, CredentialOperation
from tidegate.domain.grants import Grant
from tidegate.domain.metrics import KeptReport
from tidegate.domain.names import SchemaName, TableId, TableName, Version
from tidegate.domain.namespaces import Catalog, Schema
from tidegate.domain.privileges import Principal, Question
from tidegate.domain.publishing import PublishedFile
from tidegate.domain.ratification import Decision, Proposal
from tidegate.domain.tables import StagingTable, Table

T = TypeVar("T")


class Catalogs(Protocol):
    def add(self, catalog: Catalog) -> None: ...
    def get(self, name: str) -> Catalog: ...
    def lock(self, name: str) -> Catalog:
        """Nothing is added to it, and nobody else changes it, until the transaction ends."""
        ...

    def page(self, *, after: str, limit: int) -> Sequence[Catalog]: ...
    def change(self, catalog: Catalog) -> None: ...
    def remove(self, catalog: Catalog) -> None: ...


class Schemas(Protocol):
    def add(self, schema: Schema) -> None: ...
    def get(self, name: SchemaName) -> Schema: ...
    def lock(self, name: SchemaName) -> Schema:
        """Nothing is added to it, and nobody else changes it, until the transaction ends."""
        ...

    def page(self, catalog: Catalog, *, after: str, limit: int) -> Sequence[Schema]: ...
    def change(self, schema: Schema) -> None: ...
    def remove(self, schema: Schema) -> None: ...


class StagingTables(Protocol):
    def add(self, staging: StagingTable, schema: Schema) -> None: ...
    def count(self) -> int: ...
    def get(self, id: TableId) -> StagingTable: ...
    def find_by_location(self, location: str) -> StagingTable | None: ...
    def overlaps(self, location: str) -> bool: ...
    def remove(self, staging: StagingTable) -> None: ...


class Tables(Protocol):
    """Live tables only: a dropped one keeps its rows, and nobody finds it here."""

    def add(self, table: Table, schema: Schema) -> None: ...
    def get(self, name: TableName) -> Table: ...
    def get_by_id(self, id: TableId) -> Table: ...
    def exists(self, name: TableName) -> bool: ...
    def find_by_location(self, location: str) -> TableName | None: ...
    def find_overlapping(self, location: str) -> TableName | None:
        """A table at, above or below this location."""
        ...

    def page(self, schema: Schema, *, after: str, limit: int) -> Sequence[Table]:
        """For listings, which show no commits: the unpublished ones, perhaps very many, are left out."""
        ...

    def rename(self, table: Table, to: TableName, *, by: Principal, now: int) -> None: ...
    def drop(self, table: Table, *, by: Principal, now: int) -> None: ...
    def drop_all(self, schema: Schema, *, by: Principal, now: int) -> None: ...
    def lock(self, ids: Sequence[TableId]) -> Mapping[TableId, Table]:
        """The live tables among `ids`, their rows locked in id order until the transaction ends."""
        ...

    def ratified(self, versions: Sequence[tuple[TableId, Version]]) -> Mapping[tuple[TableId, Version], Commit]:
        """The commits that were ratified for these versions, published or not."""
        ...

    def history(self, id: TableId, *, before: Version | None, limit: int) -> Sequence[RatifiedCommit]:
        """The ratified commits of a table, published or not, newest first; with `before` those of lower versions."""
        ...

    def save(self, before: Mapping[TableId, Table], after: Mapping[TableId, Table], won: Commits) -> None:
        """Writes what changed from `before` to `after`, and the newly ratified commits."""
        ...


Commits = Sequence[tuple[TableId, RatifiedCommit]]


class CommitReports(Protocol):
    """What writers have reported, for each table the newest versions only."""

    def put(self, id: TableId, kept: KeptReport, *, history_max: int) -> None:
        """Keeps the report, instead of one about the same version, and forgets those beyond `history_max`."""
        ...

    def page(self, id: TableId, *, before: Version | None, limit: int) -> Sequence[KeptReport]:
        """Newest version first; with `before` those of lower versions."""
        ...


class Grants(Protocol):
    def of(self, securable_id: str) -> Sequence[Grant]:
        """By principal and privilege, in order."""
        ...

    def add(self, securable_id: str, given: Sequence[Grant]) -> None:
        """What is granted already stays granted."""
        ...

    def remove(self, securable_id: str, taken: Sequence[Grant]) -> None: ...


class Metastore(Protocol):
    def id(self) -> str | None: ...
    def create(self, id: str, *, now: int) -> None: ...


class UnitOfWork(Protocol):
    """One database transaction."""

    @property
    def metastore(self) -> Metastore: ...
    @property
    def catalogs(self) -> Catalogs: ...
    @property
    def schemas(self) -> Schemas: ...
    @property
    def staging_tables(self) -> StagingTables: ...
    @property
    def tables(self) -> Tables: ...
    @property
    def commit_reports(self) -> CommitReports: ...
    @property
    def grants(self) -> Grants: ...


class Database(Protocol):
    async def read(self, work: Callable[[UnitOfWork], T]) -> T:
        """Runs `work` on one consistent snapshot."""
        ...

    async def table(self, name: TableName) -> Table:
        """The live table of this name in its present state, as `tables.get` on a snapshot of its own; but fast."""
        ...

    def known_table(self, id: TableId) -> Table | None:
        """A state that the table was in for certain, though perhaps no longer is; None if none is at hand."""
        ...

    async def write(self, work: Callable[[UnitOfWork], T]) -> T:
        """Runs `work` in a transaction of its own; the answer comes after the sync."""
        ...

    async def ratify(self, proposal: Proposal) -> Decision:
        """Decides the proposal together with those that arrive meanwhile; the answer comes after the sync."""
        ...


class Authorizer(Protocol):
    def require(self, principal: Principal, question: Question) -> None:
        """Raises PermissionDenied unless the answer is yes."""
        ...


class DeltaLogs(Protocol):
    """The logs of tables in the object store."""

    async def read_published(self, location: str, version: Version) -> bytes | None:
        """The content of `_delta_log/<version>.json`, None if it is not there."""
        ...

    async def find_published(self, location: str, version: Version) -> PublishedFile | None:
        """What the store says of `_delta_log/<version>.json`, None if it is not there; its content is not read."""
        ...

    async def read_staged(self, location: str, commit: Commit) -> bytes | None:
        """The content of the commit's staged file, None if it is not there."""
        ...

    async def is_published(self, location: str, commit: Commit) -> bool:
        """Whether the published file of this version holds the very bytes of the staged one."""
        ...


class CredentialVendor(Protocol):
    def vend(self, location: str, operation: CredentialOperation) -> Credential:
        """A credential for the location, or InvalidRequest for a store that this server cannot vend for."""
        ...


class Authenticator(Protocol):
    def authenticate(self, authorization: str | None) -> Principal:
        """Who sent this Authorization header; raises NotAuthenticated."""
        ...


class Clock(Protocol):
    def __call__(self) -> int:
        """Milliseconds since the epoch."""
        ...
