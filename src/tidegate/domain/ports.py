"""What the rules need from the outside world. Adapters implement it; `compose.py` plugs them in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar

from tidegate.domain.access_ports import AccessTokens, Grants, Identities, Rights
from tidegate.domain.audit import AuditRecord
from tidegate.domain.audit_ports import AuditLog, Chains
from tidegate.domain.commits import Commit, RatifiedCommit
from tidegate.domain.constraints import Constraint, Referring
from tidegate.domain.credentials import Credential, CredentialOperation
from tidegate.domain.event_filters import EVERYTHING, EventFilter
from tidegate.domain.events import Event, NumberedEvent
from tidegate.domain.events import Sequence as EventSequence
from tidegate.domain.frozen import frozen
from tidegate.domain.lifecycle_ports import DroppedTables, Removals
from tidegate.domain.metrics import KeptReport
from tidegate.domain.names import SchemaName, TableId, TableName, Version
from tidegate.domain.namespaces import Catalog, Schema
from tidegate.domain.ownership import AdoptableLocation, Change, OwnershipCommit, Promise
from tidegate.domain.privileges import Principal
from tidegate.domain.publishing import Alarm, Backlog, Behind
from tidegate.domain.ratification import Decision, Proposal
from tidegate.domain.rights import Names
from tidegate.domain.servers import ServerInfo
from tidegate.domain.subscriptions import DeadLetter, Subscription
from tidegate.domain.tables import StagingTable, Table

T = TypeVar("T")


class Catalogs(Protocol):
    def add(self, catalog: Catalog) -> None: ...
    def get(self, name: str) -> Catalog: ...
    def lock(self, name: str) -> Catalog:
        """Nothing is added to it, and nobody else changes it, until the transaction ends."""
        ...

    def page(self, *, after: str, limit: int, only_for: Names | None = None) -> Sequence[Catalog]:
        """With `only_for`, those that somebody of these names owns or was given something on that shows them."""
        ...

    def change(self, catalog: Catalog) -> None: ...
    def remove(self, catalog: Catalog) -> None: ...


class Schemas(Protocol):
    def add(self, schema: Schema) -> None: ...
    def get(self, name: SchemaName) -> Schema: ...
    def lock(self, name: SchemaName) -> Schema:
        """Nothing is added to it, and nobody else changes it, until the transaction ends."""
        ...

    def page(self, catalog: Catalog, *, after: str, limit: int, only_for: Names | None = None) -> Sequence[Schema]: ...
    def change(self, schema: Schema) -> None: ...
    def remove(self, schema: Schema) -> None: ...


class StagingTables(Protocol):
    def add(self, staging: StagingTable, schema: Schema) -> None: ...
    def count(self, *, made_before: int | None = None) -> int:
        """Those that can still be finished, or with `made_before` all that `take_older` would remove."""
        ...

    def get(self, id: TableId) -> StagingTable: ...
    def find_by_location(self, location: str) -> StagingTable | None: ...
    def overlaps(self, location: str) -> bool: ...
    def remove(self, staging: StagingTable) -> None: ...

    def take_older(self, moment: int, *, limit: int) -> Sequence[tuple[TableId, str, str]]:
        """Removes staging tables that were made at this moment or before, the oldest first: id, name and location."""
        ...


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

    def page(self, schema: Schema, *, after: str, limit: int, only_for: Names | None = None) -> Sequence[Table]:
        """For listings, which show no commits: the unpublished ones, perhaps very many, are left out."""
        ...

    def change(self, table: Table) -> None:
        """Type, metadata and where its log stands, of a table that is locked."""
        ...

    def find_owned(self, ids: Sequence[TableId]) -> TableId | None:
        """One of them, live or dropped, that has us as its commit owner."""
        ...

    def forget(self, id: TableId) -> None:
        """Its rows, and the grants on it; its files and its events stay."""
        ...

    def succeed(self, id: TableId, table: Table, schema: Schema) -> None:
        """Adds the table in place of the one of this id, which is locked: its grants and its guard pass on to it."""
        ...

    def move(self, table: Table, to: TableName, schema: Schema) -> None:
        """To another name, in any schema; the table is locked, and the name is free."""
        ...

    def rename(self, table: Table, to: TableName, *, by: Principal, now: int) -> None: ...
    def drop(self, table: Table, *, by: Principal, now: int) -> None: ...
    def drop_all(self, schema: Schema, *, by: Principal, now: int) -> Sequence[tuple[TableId, TableName]]:
        """All live tables of a schema that is locked: those that were dropped."""
        ...

    def lock(self, ids: Sequence[TableId]) -> Mapping[TableId, Table]:
        """The live tables among `ids`, their rows locked in id order until the transaction ends."""
        ...

    def ratified(self, versions: Sequence[tuple[TableId, Version]]) -> Mapping[tuple[TableId, Version], Commit]:
        """The commits that were ratified for these versions, published or not."""
        ...

    def opened(self, appends: Sequence[tuple[TableId, str]]) -> Mapping[tuple[TableId, str], Version]:
        """Which of these appends, by their transactions' ids, have happened before, and as which version."""
        ...

    def history(self, id: TableId, *, before: Version | None, limit: int) -> Sequence[RatifiedCommit]:
        """The ratified commits of a table, published or not, newest first; with `before` those of lower versions."""
        ...

    def save(
        self,
        before: Mapping[TableId, Table],
        after: Mapping[TableId, Table],
        *,
        won: Sequence[Won],
        happened: Sequence[Event],
        verified: Sequence[tuple[TableId, Version, str]] = (),
        audited: Sequence[AuditRecord] = (),
    ) -> None:
        """Writes what changed from `before` to `after`, the newly ratified commits, the events that tell of it, the
        SHA-256 of published files of commits of which it was not known before, and records of the audit log.
        """
        ...

    def owned(self, ids: Sequence[str]) -> Set[str]:
        """Those of `ids` that belong to a table, live or dropped, a staging table, or one that is being removed."""
        ...

    def behind(self, *, after: str, limit: int) -> Sequence[Behind]:
        """Live tables with unpublished commits, by id."""
        ...

    def backlog(self) -> Backlog:
        """Those tables, counted."""
        ...

    def count_dropped(self) -> int: ...

    def managed(self, *, after: str, limit: int) -> Sequence[TableId]:
        """Live tables whose commits are decided on here, by id."""
        ...

    def putting(self, *, after: str, limit: int) -> tuple[Sequence[TableId], str | None]:
        """Among the next `limit` live managed tables by id those whose commits are put into their logs, as far as a
        quick look can tell; and the id to go on after, None at the end.
        """
        ...


@frozen
class Won:
    """A newly ratified commit, with its content if that came along, and with the id by which it is known again if it
    had left its version open.
    """

    table_id: TableId
    ratified: RatifiedCommit
    content: bytes | None = None
    txn_id: str | None = None
    principal: str = ""
    chain: str | None = None


class Constraints(Protocol):
    """Keys of tables. Those of a live table come with it; whoever changes them has locked it."""

    def add(self, id: TableId, constraint: Constraint) -> None: ...
    def remove(self, id: TableId, name: str) -> None: ...
    def remove_all(self, id: TableId) -> None:
        """Those that are declared on the table."""
        ...

    def referring(self, id: TableId) -> Sequence[Referring]:
        """Foreign keys of other live tables that refer to this one, by the names of those tables."""
        ...

    def remove_referring(self, ids: Sequence[TableId]) -> None:
        """The foreign keys of others that refer to these tables, also those of dropped tables."""
        ...


class InlineCommits(Protocol):
    """Contents of ratified commits that are not published yet, and appends that left their version open."""

    def contents(self, id: TableId, *, first: Version, last: Version) -> Mapping[Version, bytes]:
        """Of the versions from `first` to `last`, those that are inline and not published."""
        ...

    def forget_opened(self, *, ratified_before: int, limit: int) -> int:
        """Appends that nobody will send again: how many were forgotten."""
        ...


class Ownership(Protocol):
    """Changes of ownership that are under way, and where tables may be taken over from."""

    def promise(self, promise: Promise) -> None:
        """Raises InvalidRequest if another one is under way at the place."""
        ...

    def get(self, id: TableId) -> Promise | None: ...
    def find(self, location: str) -> Promise | None: ...
    def find_overlapping(self, location: str) -> Promise | None: ...
    def find_below(self, parent: SchemaName | str) -> Promise | None:
        """Of a table in a schema, or in a catalog."""
        ...

    def all(self, *, limit: int, after: Promise | None = None) -> Sequence[Promise]:
        """The oldest first; those that come after this one."""
        ...

    def count(self, change: Change) -> int: ...

    def plan(self, promise: Promise, commit: OwnershipCommit) -> bool:
        """Gives the promise another commit. False, and nothing has changed, if somebody else did so meanwhile."""
        ...

    def strike_out(self, promise: Promise) -> bool:
        """False if it has been planned anew, or is gone."""
        ...

    def allow(self, place: AdoptableLocation) -> bool:
        """False if it is allowed already."""
        ...

    def disallow(self, location: str) -> bool: ...
    def allowed(self) -> Sequence[AdoptableLocation]: ...


class Events(Protocol):
    def add(self, happened: Sequence[Event]) -> None: ...
    def number(self) -> int:
        """Gives the next numbers to events whose transactions have ended: how many got one."""
        ...

    def unnumbered(self) -> bool:
        """Whether there are events that `number` would give a number."""
        ...

    def after(
        self, sequence: EventSequence, *, up_to: EventSequence, limit: int, wanted: EventFilter = EVERYTHING
    ) -> Sequence[NumberedEvent]:
        """The next events after a number and up to another, in order: those that the filter lets through, whose
        operation it cannot know.
        """
        ...

    def commits_of(self, happened: Sequence[Event]) -> Mapping[tuple[TableId, Version], tuple[Commit, str]]:
        """The commits that events tell of, with the locations of their tables, as far as the catalog has them."""
        ...

    def last(self) -> EventSequence:
        """The newest number; zero if there is none."""
        ...

    def forgotten(self) -> EventSequence:
        """Events up to this number are no longer kept; zero if all are."""
        ...

    def oldest(self, *, limit: int) -> Sequence[tuple[EventSequence, int]]:
        """The numbers of the oldest events, in order, and when each happened."""
        ...

    def remove_up_to(self, sequence: EventSequence) -> int:
        """How many were removed."""
        ...


class Subscriptions(Protocol):
    def add(self, subscription: Subscription) -> None: ...
    def find(self, name: str) -> Subscription | None: ...
    def get(self, name: str) -> Subscription: ...
    def all(self) -> Sequence[Subscription]:
        """By name."""
        ...

    def count(self) -> int: ...
    def remove(self, id: str) -> None:
        """With its dead letters."""
        ...

    def pause(self, id: str, *, paused: bool, note: str | None) -> None:
        """Whoever goes on again starts with a first attempt."""
        ...

    def move(
        self, known: Subscription, to: EventSequence, *, attempts: int, next_attempt_at: int, note: str | None
    ) -> bool:
        """False, and nothing has changed, if it is no longer where `known` says."""
        ...

    def bury(self, id: str, letter: DeadLetter) -> None: ...
    def letters(self, id: str, *, after: EventSequence, limit: int, to_resend: bool = False) -> Sequence[DeadLetter]:
        """By number; with `to_resend` only those."""
        ...

    def mark(self, id: str, sequences: Sequence[EventSequence] | None, *, resend: bool) -> int:
        """How many of these letters, or of all, there are."""
        ...

    def discard(self, id: str, sequences: Sequence[EventSequence] | None) -> int: ...
    def failed_again(self, id: str, letter: DeadLetter) -> None: ...


class Alarms(Protocol):
    def add(self, alarm: Alarm) -> bool:
        """Whether it is news: a version has one at most, of the last reason. The table must be locked."""
        ...

    def of(self, id: TableId) -> Sequence[Alarm]:
        """Those that stand: an alarm is over when its version is published after all."""
        ...

    def count(self) -> int:
        """Of all tables, those that stand."""
        ...

    def newest(self, *, limit: int) -> Sequence[tuple[TableName, Alarm]]:
        """Of all tables, those that stand, with the names of their tables."""
        ...


class Servers(Protocol):
    """Those that share the database, as far as they were heard of lately."""

    def put(self, server: ServerInfo) -> None: ...
    def all(self, *, limit: int) -> Sequence[ServerInfo]:
        """The one that has served longest comes first."""
        ...

    def remove(self, id: str) -> None: ...
    def remove_before(self, moment: int) -> None:
        """Those that were last heard of before this moment."""
        ...


class CommitReports(Protocol):
    """What writers have reported, for each table the newest versions only."""

    def put(self, id: TableId, kept: KeptReport, *, history_max: int) -> None:
        """Keeps the report, instead of one about the same version, and forgets those beyond `history_max`."""
        ...

    def page(self, id: TableId, *, before: Version | None, limit: int) -> Sequence[KeptReport]:
        """Newest version first; with `before` those of lower versions."""
        ...


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
    def constraints(self) -> Constraints: ...
    @property
    def audit(self) -> AuditLog: ...
    @property
    def chains(self) -> Chains: ...
    @property
    def inline_commits(self) -> InlineCommits: ...
    @property
    def ownership(self) -> Ownership: ...
    @property
    def commit_reports(self) -> CommitReports: ...
    @property
    def grants(self) -> Grants: ...
    @property
    def rights(self) -> Rights: ...
    @property
    def identities(self) -> Identities: ...
    @property
    def access_tokens(self) -> AccessTokens: ...
    @property
    def events(self) -> Events: ...
    @property
    def alarms(self) -> Alarms: ...
    @property
    def dropped_tables(self) -> DroppedTables: ...
    @property
    def removals(self) -> Removals: ...
    @property
    def servers(self) -> Servers: ...
    @property
    def subscriptions(self) -> Subscriptions: ...


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

    async def write(self, work: Callable[[UnitOfWork], T], *, audited: bool = True) -> T:
        """Runs `work` in a transaction of its own; the answer comes after the sync. With `audited`, what a request
        changes is told in the audit log by the same transaction.
        """
        ...

    def exclusively(self, work: str) -> AbstractAsyncContextManager[bool]:
        """True inside if nobody else, on any server of this database, does the work of this name meanwhile.

        Spares work that would be done twice; nothing may depend on it, because a lost connection gives it up early.
        """
        ...

    async def ratify(self, proposal: Proposal) -> Decision:
        """Decides the proposal together with those that arrive meanwhile; the answer comes after the sync."""
        ...


class Webhooks(Protocol):
    async def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> None:
        """Raises DeliveryFailed unless the receiver says that it has it."""
        ...


class Functions(Protocol):
    """Those that the server was started with."""

    @property
    def names(self) -> Sequence[str]: ...
    async def call(self, name: str, event: dict[str, Any], *, key: str) -> None:
        """Raises DeliveryFailed unless it returns. A call whose key is still under way from before fails at once."""
        ...


class CredentialVendor(Protocol):
    def vend(self, location: str, operation: CredentialOperation) -> Credential:
        """A credential for the location, or InvalidRequest for a store that this server cannot vend for."""
        ...


class Clock(Protocol):
    def __call__(self) -> int:
        """Milliseconds since the epoch."""
        ...
