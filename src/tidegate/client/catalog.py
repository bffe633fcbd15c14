"""The client for programs that block: a catalog server, and its tables. `async_catalog.py` offers the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tidegate.client import (
    catalogs,
    commits,
    constraints,
    creation,
    dropped_tables,
    events,
    file_appends,
    ownership,
    rights,
    schemas,
    snapshots,
    tables,
    transactions,
    writes,
)
from tidegate.client.address import address, split_table
from tidegate.client.columns import Columns
from tidegate.client.commits import RatifiedCommits
from tidegate.client.constraints import ForeignKey, PrimaryKey, TableConstraints
from tidegate.client.conversations import Patience
from tidegate.client.drivers import Driver
from tidegate.client.errors import CommitOutcomeUnknown
from tidegate.client.files import Files, LocalFiles
from tidegate.client.inline_limits import INLINE_BYTES_MAX, InlineLimits, inline_limits
from tidegate.client.known_tables import TableHandle
from tidegate.client.log.snapshot import Snapshot
from tidegate.client.outcomes import CommitResponse
from tidegate.client.reads import Reads
from tidegate.client.wire import (
    AdoptedTable,
    CatalogInfo,
    DroppedTable,
    Event,
    EventPage,
    LoadedTable,
    Purge,
    ReleasedTable,
    SchemaInfo,
    TableInfo,
)

if TYPE_CHECKING:
    from tidegate.client.data.scan import Scan


def connect(
    url: str | None = None,
    *,
    token: str | None = None,
    patience: Patience | None = None,
    files: Files | None = None,
    inline_bytes_max: int = INLINE_BYTES_MAX,
) -> Catalog:
    """A catalog server. Nothing is sent before the first call.

    `url` and `token` may come from TIDEGATE_URI and TIDEGATE_TOKEN. `patience`: how often requests are sent again.
    `inline_bytes_max`: commits up to this size are sent with their content, larger ones are staged; 0: all are.
    """
    limits = inline_limits(inline_bytes_max)
    return Catalog(Driver(address(url, token), patience or Patience()), files or LocalFiles(), limits)


class Catalog:
    """A catalog server. May be used by several threads. Close it, or use it in a `with` statement."""

    def __init__(self, driver: Driver, files: Files, inline: InlineLimits) -> None:
        self._driver = driver
        self._files = files
        self._inline = inline

    def __enter__(self) -> Catalog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Catalog({self._driver.url!r})"

    def close(self) -> None:
        self._driver.close()

    def list_catalogs(self) -> list[CatalogInfo]:
        return self._driver.run(catalogs.list_catalogs())

    def get_catalog(self, name: str) -> CatalogInfo:
        return self._driver.run(catalogs.get_catalog(name))

    def create_catalog(
        self,
        name: str,
        *,
        comment: str | None = None,
        properties: Mapping[str, str] | None = None,
        storage_root: str | None = None,
    ) -> CatalogInfo:
        return self._driver.run(
            catalogs.create_catalog(name, comment=comment, properties=properties, storage_root=storage_root)
        )

    def alter_catalog(
        self,
        name: str,
        *,
        new_name: str | None = None,
        comment: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> CatalogInfo:
        """What is None stays as it is."""
        return self._driver.run(catalogs.alter_catalog(name, new_name=new_name, comment=comment, properties=properties))

    def delete_catalog(self, name: str, *, force: bool = False) -> None:
        self._driver.run(catalogs.delete_catalog(name, force=force))

    def list_schemas(self, catalog: str) -> list[SchemaInfo]:
        return self._driver.run(schemas.list_schemas(catalog))

    def get_schema(self, name: str) -> SchemaInfo:
        return self._driver.run(schemas.get_schema(name))

    def create_schema(
        self,
        name: str,
        *,
        comment: str | None = None,
        properties: Mapping[str, str] | None = None,
        storage_root: str | None = None,
    ) -> SchemaInfo:
        return self._driver.run(
            schemas.create_schema(name, comment=comment, properties=properties, storage_root=storage_root)
        )

    def alter_schema(
        self,
        name: str,
        *,
        new_name: str | None = None,
        comment: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> SchemaInfo:
        """What is None stays as it is. `new_name` is the schema's own, without its catalog."""
        return self._driver.run(schemas.alter_schema(name, new_name=new_name, comment=comment, properties=properties))

    def delete_schema(self, name: str, *, force: bool = False) -> None:
        """With `force` also one that holds tables, which are dropped."""
        self._driver.run(schemas.delete_schema(name, force=force))

    def list_tables(self, schema: str) -> list[TableInfo]:
        return self._driver.run(tables.list_tables(schema))

    def has_table(self, name: str) -> bool:
        return self._driver.run(tables.has_table(name))

    def table(self, name: str) -> Table:
        """A table by its full name. Nothing is sent: whether it exists shows when it is used."""
        split_table(name)
        return Table(self._driver, self._files, TableHandle(name, inline=self._inline))

    def create_table(
        self,
        name: str,
        columns: Columns,
        *,
        partition_by: Sequence[str] = (),
        cluster_by: Sequence[str] = (),
        comment: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        """A managed table. `columns`: types by name, fields or struct type of a Delta schema, or a schema of Arrow."""
        wanted = creation.NewTable(
            name=name,
            columns=columns,
            partition_by=partition_by,
            cluster_by=cluster_by,
            comment=comment,
            properties=properties or {},
        )
        known = self._driver.run(creation.create_table(wanted, self._files))
        return Table(self._driver, self._files, TableHandle(name, known, inline=self._inline))

    def adopt_table(self, location: str, name: str, *, external: bool = False, dry_run: bool = False) -> AdoptedTable:
        """Takes over a Delta table of a file system, with its data, its history and its place.

        `external`: it is only made known. `dry_run`: nothing changes, the answer shows the commit.
        """
        asked = ownership.adopt_table(location, name, external=external, dry_run=dry_run)
        return self._driver.run(asked)

    def release_table(self, name: str, *, forget: bool = False) -> ReleasedTable:
        """Gives a managed table back to its file system. `forget`: it is not kept as an external table."""
        return self._driver.run(ownership.release_table(name, forget=forget))

    def grants(self, on: str) -> dict[str, list[str]]:
        """What was granted on a catalog, schema, table or `metastore`: the privileges of each principal."""
        return self._driver.run(rights.get_grants(on))

    def grant(self, principal: str, privilege: str, on: str) -> dict[str, list[str]]:
        """Gives a privilege on an object and everything below it. What is granted on the object afterwards."""
        return self._driver.run(rights.change_grants(on, principal, add=[privilege]))

    def revoke(self, principal: str, privilege: str, on: str) -> dict[str, list[str]]:
        """Takes a privilege away. What is granted on the object afterwards."""
        return self._driver.run(rights.change_grants(on, principal, remove=[privilege]))

    def list_dropped_tables(self) -> list[DroppedTable]:
        """The last dropped first."""
        return self._driver.run(dropped_tables.list_dropped_tables())

    def restore_table(self, table_id: str, *, new_full_name: str | None = None) -> Table:
        """Under its own name, or another one."""
        restored = self._driver.run(dropped_tables.restore_table(table_id, new_full_name=new_full_name))
        return self.table(restored.full_name)

    def purge_table(self, table_id: str) -> Purge:
        """Now and for good; its files go in the background."""
        return self._driver.run(dropped_tables.purge_table(table_id))

    def read_events(
        self,
        *,
        after: int | None = None,
        table: str | None = None,
        kinds: Iterable[str] | None = None,
        max_results: int | None = None,
        wait_seconds: int = 0,
    ) -> EventPage:
        """One page. Without `after`, from the oldest event that is kept."""
        return self._driver.run(
            events.read_events(
                after=after, table=table, kinds=kinds, max_results=max_results, wait_seconds=wait_seconds
            )
        )

    def follow_events(
        self, *, after: int | None = None, table: str | None = None, kinds: Iterable[str] | None = None
    ) -> Iterator[Event]:
        """Every event after this number, as it happens, once and in order, without end.

        Who stops goes on later with `after=` the `sequence` of the last event it has dealt with.
        """
        wanted = None if kinds is None else tuple(kinds)
        while True:
            wait = events.FOLLOW_WAIT_SECONDS
            page = self.read_events(after=after, table=table, kinds=wanted, wait_seconds=wait)
            yield from page.events
            after = page.next_after


class Table:
    """A table of a catalog server. It remembers what the last answer told of it, and asks for nothing twice."""

    def __init__(self, driver: Driver, files: Files, handle: TableHandle) -> None:
        self._driver = driver
        self._files = files
        self._handle = handle

    def __repr__(self) -> str:
        return f"Table({self.name!r})"

    @property
    def name(self) -> str:
        """Its full name."""
        return self._handle.name

    def load(self) -> LoadedTable:
        """Metadata, ratified unpublished commits and the latest version: one state of the table."""
        return self._driver.run(tables.load(self._handle))

    def describe(self) -> TableInfo:
        """As in a listing: columns with their types, comment, owner."""
        return self._driver.run(tables.describe_table(self.name))

    def rename(self, new_name: str) -> None:
        """`new_name` is the table's own, without its schema."""
        self._driver.run(tables.rename_table(self._handle, new_name))

    def drop(self, *, force: bool = False) -> None:
        """It can be restored for a while. With `force` also one that foreign keys refer to, which are removed."""
        self._driver.run(tables.drop_table(self._handle, force=force))

    def constraints(self) -> TableConstraints:
        """Its keys, and the foreign keys of others that refer to it."""
        return self._driver.run(constraints.get_constraints(self.name))

    def add_primary_key(self, columns: Sequence[str], *, name: str | None = None) -> PrimaryKey:
        """Declares it: nobody compares rows, and the columns keep their names, types and NOT NULL."""
        return self._driver.run(constraints.add_primary_key(self.name, columns, name=name))

    def add_foreign_key(
        self,
        columns: Sequence[str],
        *,
        references: str,
        parent_columns: Sequence[str] | None = None,
        name: str | None = None,
    ) -> ForeignKey:
        """Declares that the columns refer to the primary key of the table `references`."""
        asked = constraints.add_foreign_key(
            self.name, columns, references=references, parent_columns=parent_columns, name=name
        )
        return self._driver.run(asked)

    def remove_constraint(self, name: str, *, cascade: bool = False) -> None:
        """With `cascade` a primary key takes the foreign keys along that refer to it."""
        self._driver.run(constraints.remove_constraint(self.name, name, cascade=cascade))

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Properties that exist only in the catalog. Those of the log, such as `delta.*`, change with a commit."""
        self._driver.run(tables.set_properties(self._handle, properties))

    def remove_properties(self, keys: Iterable[str]) -> None:
        self._driver.run(tables.remove_properties(self._handle, keys))

    def set_comment(self, comment: str | None) -> None:
        self._driver.run(tables.set_comment(self._handle, comment))

    def snapshot(self, version: int | None = None, timestamp: datetime | int | None = None) -> Snapshot:
        """The state of the table at its latest version, at an earlier one, or at a time (ms since 1970)."""
        talk = snapshots.snapshot(self._handle, self._files, version=version, timestamp=timestamp)
        return self._driver.run(talk)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: Iterable[Sequence[Any]] | Any = None,
        *,
        version: int | None = None,
        timestamp: datetime | int | None = None,
    ) -> Scan:
        """What is to be read of a version; `.to_arrow()` reads it, on the calling thread. Needs pyarrow.

        `filter`: conditions such as `("amount", ">", 100)`, all of which rows must meet.
        """
        talk = snapshots.scan(self._handle, self._files, columns, filter, version=version, timestamp=timestamp)
        return self._driver.run(talk)

    def append(self, rows: Any) -> CommitResponse:
        """Adds rows: an Arrow table, a DataFrame, or a list of dicts. Needs pyarrow.

        Columns are found by name; those that are missing are null. No rows that others write stand in the way.
        """
        return self._driver.run(writes.append(self._handle, self._files, rows))

    def append_files(self, adds: Iterable[Mapping[str, Any]]) -> CommitResponse:
        """Adds data files that are there already, by their add actions. No rows that others write stand in the way."""
        return self._driver.run(file_appends.append_files(self._handle, self._files, adds))

    def overwrite(self, rows: Any) -> CommitResponse:
        """Replaces all rows by these; raises ConcurrentChange if others wrote meanwhile. Needs pyarrow."""
        return self._driver.run(writes.overwrite(self._handle, self._files, rows))

    def commit(
        self,
        version: int,
        actions: Iterable[Mapping[str, Any]],
        *,
        metadata_before: Mapping[str, Any] | None = None,
    ) -> CommitResponse:
        """Commits Delta actions as this version; raises CommitConflict if another commit has it.

        `metadata_before`: with a metaData action, the one before it; without it the log is looked through.
        """
        return self._driver.run(
            commits.commit(self._handle, self._files, version, actions, metadata_before=metadata_before)
        )

    def commit_after(self, snapshot: Snapshot, actions: Iterable[Mapping[str, Any]], *, reads: Reads) -> CommitResponse:
        """Commits Delta actions that were made for a snapshot, as the next version there is.

        Goes ahead past the commits of others as long as they do not touch what was read, or is written, by Delta's
        rules; raises the ConcurrentChange that says what is in the way.
        """
        talk = transactions.commit_after(self._handle, self._files, snapshot, actions, reads)
        return self._driver.run(talk)

    def resend(self, unknown: CommitOutcomeUnknown) -> CommitResponse:
        """Sends a commit again of which nobody could tell whether it happened. It never counts twice."""
        return self._driver.run(commits.resend(self._handle, self._files, unknown))

    def get_ratified_commits(self, start: int | None = None, end: int | None = None) -> RatifiedCommits:
        """Those of the versions `start` to `end` that are ratified and not published, and the latest version."""
        return self._driver.run(commits.get_ratified_commits(self._handle, start, end))

    def publish(self) -> int:
        """Publishes what is ratified, as far as it can be. The version up to which the log is published."""
        return self._driver.run(commits.publish_all(self._handle, self._files))
