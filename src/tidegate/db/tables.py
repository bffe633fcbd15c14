"""Tables and their ratified commits in the database."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from tidegate.db.audit import audit_row
from tidegate.db.commit_rows import COMMIT, commit_of, commit_row
from tidegate.db.constraints import CONSTRAINTS_OF_TABLE, decode_constraints
from tidegate.db.documents import decode_metadata, decode_uniform, encode_metadata, encode_uniform
from tidegate.db.errors import is_missing_parent
from tidegate.db.events import event_row
from tidegate.db.hot_statements import CHANGING_COLUMNS, NOTHING, GroupRows, HotStatements
from tidegate.db.known_tables import KnownTables, State, new_state
from tidegate.db.locations import overlapping
from tidegate.db.schema import catalogs, commits, grants, removals, schemas, staging_tables, table_metadata, tables
from tidegate.db.shown import is_shown
from tidegate.domain.audit import AuditRecord
from tidegate.domain.commits import Commit, RatifiedCommit
from tidegate.domain.errors import NoSuchSchema, NoSuchTable, TableAlreadyExists
from tidegate.domain.events import Event
from tidegate.domain.grants import SecurableType
from tidegate.domain.names import TableId, TableName, Version
from tidegate.domain.namespaces import Schema
from tidegate.domain.ports import Won
from tidegate.domain.privileges import Principal
from tidegate.domain.publishing import Backlog, Behind
from tidegate.domain.put_if_absent import COMMITS_PROPERTY, PUT_IF_ABSENT
from tidegate.domain.rights import SHOWN_BY, Names
from tidegate.domain.row_ids import RowMark
from tidegate.domain.tables import Table, TableType

IDS_AT_ONCE = 1000
"""In one statement."""

_LIVE = tables.c.dropped_at.is_(None)
LIVE_TABLES = (
    sa.select(
        tables,
        table_metadata.c.document,
        schemas.c.name.label("schema"),
        catalogs.c.name.label("catalog"),
        CONSTRAINTS_OF_TABLE,
    )
    .select_from(tables)
    .join(table_metadata, table_metadata.c.table_id == tables.c.id)
    .join(schemas, schemas.c.id == tables.c.schema_id)
    .join(catalogs, catalogs.c.id == schemas.c.catalog_id)
    .where(_LIVE)
)
_FIND = (
    sa.select(tables.c.id)
    .join(schemas, schemas.c.id == tables.c.schema_id)
    .join(catalogs, catalogs.c.id == schemas.c.catalog_id)
    .where(_LIVE)
)
_STATE = sa.select(tables.c.id, tables.c.state).where(_LIVE)
_UNPUBLISHED = (
    sa.select(*COMMIT)
    .select_from(commits)
    .join(tables, tables.c.id == commits.c.table_id)
    .where(commits.c.version > tables.c.published)
    .order_by(commits.c.table_id, commits.c.version)
)
_BEHIND = (
    sa.select(tables.c.id, tables.c.latest, tables.c.published, commits.c.ratified_at)
    .select_from(tables)
    .join(commits, (commits.c.table_id == tables.c.id) & (commits.c.version == tables.c.published + 1))
    .where(_LIVE, tables.c.latest > tables.c.published)
    .order_by(tables.c.id)
)
_WAITING = tables.c.latest - tables.c.published
_BACKLOG = (
    sa.select(
        sa.func.count(),
        sa.func.coalesce(sa.func.sum(_WAITING), 0),
        sa.func.coalesce(sa.func.max(_WAITING), 0),
        sa.func.min(commits.c.ratified_at),
    )
    .select_from(tables)
    .join(commits, (commits.c.table_id == tables.c.id) & (commits.c.version == tables.c.published + 1))
    .where(_LIVE, tables.c.latest > tables.c.published)
)
_CHANGE_METADATA = (
    table_metadata.update()
    .where(table_metadata.c.table_id == sa.bindparam("of_table"))
    .values(document=sa.bindparam("new_document"))
)


class SqlTables:
    def __init__(self, connection: sa.Connection, known: KnownTables, hot: HotStatements) -> None:
        self._connection = connection
        self._known = known
        self._hot = hot

    def add(self, table: Table, schema: Schema) -> None:
        row = {
            "id": table.id,
            "schema_id": schema.id,
            "name": table.name.table,
            "type": table.type.value,
            "format": table.format,
            "location": table.location,
            "owner": table.owner,
            "created_at": table.created_at,
            "created_by": table.created_by,
            **dict(zip(CHANGING_COLUMNS, _changing(table, new_state()), strict=True)),
        }
        try:
            self._connection.execute(tables.insert().values(**row))
        except IntegrityError as error:
            if is_missing_parent(error):
                raise NoSuchSchema(table.name.parent) from None
            raise TableAlreadyExists(table.name) from None
        self._connection.execute(
            table_metadata.insert().values(table_id=table.id, document=encode_metadata(table.metadata))
        )

    def get(self, name: TableName) -> Table:
        found = self._connection.exec_driver_sql(self._hot.find, self._hot.names([name])).first()
        if found is None:
            raise NoSuchTable(name)
        _, id, state = found
        # A transaction that writes sees what others commit meanwhile: by now it may be gone.
        table = self._known.get(id, state) or self._read([id]).get(id)
        if table is None or table.name != name:
            raise NoSuchTable(name)
        return table

    def get_by_id(self, id: TableId) -> Table:
        for found, state in self._connection.execute(_STATE.where(tables.c.id == id)):
            table = self._known.get(found, state) or self._read([id]).get(id)
            if table is not None:
                return table
        raise NoSuchTable(f"with id {id}")

    def exists(self, name: TableName) -> bool:
        return self._connection.execute(_FIND.where(*_named(name))).first() is not None

    def find_by_location(self, location: str) -> TableName | None:
        row = self._connection.execute(LIVE_TABLES.where(tables.c.location == location).limit(1)).first()
        return None if row is None else _name(row)

    def find_overlapping(self, location: str) -> TableName | None:
        row = self._connection.execute(LIVE_TABLES.where(overlapping(tables.c.location, location)).limit(1)).first()
        return None if row is None else _name(row)

    def page(self, schema: Schema, *, after: str, limit: int, only_for: Names | None = None) -> Sequence[Table]:
        query = LIVE_TABLES.where(tables.c.schema_id == schema.id, tables.c.name > after)
        if only_for is not None:
            query = query.where(is_shown(tables, only_for, SHOWN_BY[SecurableType.TABLE]))
        rows = self._connection.execute(query.order_by(tables.c.name).limit(limit)).all()
        return [_table(row, ()) for row in rows]

    def change(self, table: Table) -> None:
        """Type, metadata and where its log stands."""
        row = dict(zip(CHANGING_COLUMNS, _changing(table, new_state()), strict=True))
        self._connection.execute(tables.update().where(tables.c.id == table.id).values(type=table.type.value, **row))
        changed = {"of_table": table.id, "new_document": encode_metadata(table.metadata)}
        self._connection.execute(_CHANGE_METADATA, changed)

    def find_owned(self, ids: Sequence[TableId]) -> TableId | None:
        # A schema may have more tables than a statement may have parameters.
        for start in range(0, len(ids), IDS_AT_ONCE):
            among = tables.c.id.in_(ids[start : start + IDS_AT_ONCE])
            query = sa.select(tables.c.id).where(among, tables.c.type == TableType.OWNED.value).limit(1)
            owned = self._connection.scalars(query).first()
            if owned is not None:
                return owned
        return None

    def forget(self, id: TableId) -> None:
        self._connection.execute(grants.delete().where(grants.c.securable_id == id))
        self._connection.execute(tables.delete().where(tables.c.id == id))

    def succeed(self, id: TableId, table: Table, schema: Schema) -> None:
        guarded = self._connection.scalar(sa.select(tables.c.guarded).where(tables.c.id == id))
        self._connection.execute(tables.delete().where(tables.c.id == id))
        self.add(table, schema)
        self._connection.execute(tables.update().where(tables.c.id == table.id).values(guarded=guarded or 0))
        self._connection.execute(grants.update().where(grants.c.securable_id == id).values(securable_id=table.id))

    def move(self, table: Table, to: TableName, schema: Schema) -> None:
        place = {"schema_id": schema.id, "name": to.table, "state": new_state()}
        self._connection.execute(tables.update().where(tables.c.id == table.id).values(**place))

    def rename(self, table: Table, to: TableName, *, by: Principal, now: int) -> None:
        change = tables.update().where(*_still(table))
        try:
            stamps = {"updated_at": now, "updated_by": by.name, "state": new_state()}
            changed = self._connection.execute(change.values(name=to.table, **stamps))
        except IntegrityError:
            raise TableAlreadyExists(to) from None
        if changed.rowcount == 0:
            raise NoSuchTable(table.name)

    def drop(self, table: Table, *, by: Principal, now: int) -> None:
        change = tables.update().where(*_still(table))
        stamps = {"dropped_at": now, "dropped_by": by.name, "dropped_name": str(table.name), "state": new_state()}
        if self._connection.execute(change.values(**stamps)).rowcount == 0:
            raise NoSuchTable(table.name)

    def drop_all(self, schema: Schema, *, by: Principal, now: int) -> Sequence[tuple[TableId, TableName]]:
        of_schema = tables.c.schema_id == schema.id
        dropped = self._connection.execute(sa.select(tables.c.id, tables.c.name).where(of_schema, _LIVE)).all()
        full_name = sa.literal(f"{schema.name}.").concat(tables.c.name)
        change_all(self._connection, of_schema, dropped_at=now, dropped_by=by.name, dropped_name=full_name)
        return [(TableId(row.id), TableName(schema.name.catalog, schema.name.schema, row.name)) for row in dropped]

    def lock(self, ids: Sequence[TableId]) -> Mapping[TableId, Table]:
        locked, unknown = dict[TableId, Table](), list[TableId]()
        for id, state in self._hot.lock(self._connection, sorted(set(ids))):
            table = self._known.get(id, state)
            if table is None:
                unknown.append(id)
            else:
                locked[id] = table
        # Locked first and read afterwards: a statement that waited for a lock would see joined rows as they were
        # before it waited.
        return {**locked, **self._read(unknown)} if unknown else locked

    def ratified(self, versions: Sequence[tuple[TableId, Version]]) -> Mapping[tuple[TableId, Version], Commit]:
        if not versions:
            return {}
        query = sa.select(*COMMIT).where(sa.tuple_(commits.c.table_id, commits.c.version).in_(versions))
        return {
            (TableId(row.table_id), Version(row.version)): commit_of(row) for row in self._connection.execute(query)
        }

    def opened(self, appends: Sequence[tuple[TableId, str]]) -> Mapping[tuple[TableId, str], Version]:
        if not appends:
            return {}
        found = self._hot.opened(self._connection, appends)
        return {(TableId(id), txn_id): Version(version) for id, txn_id, version in found}

    def history(self, id: TableId, *, before: Version | None, limit: int) -> Sequence[RatifiedCommit]:
        query = sa.select(commits).where(commits.c.table_id == id)
        if before is not None:
            query = query.where(commits.c.version < before)
        rows = self._connection.execute(query.order_by(commits.c.version.desc()).limit(limit))
        return [RatifiedCommit(commit_of(row), row.proposed_at, row.ratified_at) for row in rows]

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
        changed = {id: (new_state(), table) for id, table in sorted(after.items()) if table is not before[id]}
        if changed:
            rows = GroupRows(
                commits=[commit_row(one) for one in won],
                tables=[(*_changing(table, state), id) for id, (state, table) in changed.items()],
                events=[event_row(event) for event in happened],
                contents=[_content_row(one, one.content) for one in won if one.content is not None],
                opened=[_opened_row(one, one.txn_id) for one in won if one.txn_id is not None],
                done=[(id, table.published) for id, (_, table) in changed.items() if _has_done(before[id], table)],
                verified=[(digest, id, version) for id, version, digest in verified],
                audit=[audit_row(record) for record in audited],
            )
            self._hot.write(self._connection, rows)
        elif audited:
            self._hot.write(self._connection, NOTHING._replace(audit=[audit_row(record) for record in audited]))
        documents = [
            {"of_table": id, "new_document": encode_metadata(table.metadata)}
            for id, (_, table) in changed.items()
            if table.metadata is not before[id].metadata
        ]
        if documents:
            self._connection.execute(_CHANGE_METADATA, documents)
        self._known.expect(changed)

    def owned(self, ids: Sequence[str]) -> Set[str]:
        of_tables = sa.select(tables.c.id).where(tables.c.id.in_(ids))
        of_staging_tables = sa.select(staging_tables.c.id).where(staging_tables.c.id.in_(ids))
        of_removals = sa.select(removals.c.table_id).where(removals.c.table_id.in_(ids))
        return set(self._connection.scalars(of_tables.union(of_staging_tables, of_removals)))

    def behind(self, *, after: str, limit: int) -> Sequence[Behind]:
        rows = self._connection.execute(_BEHIND.where(tables.c.id > after).limit(limit))
        return [Behind(TableId(id), latest, published, at) for id, latest, published, at in rows]

    def backlog(self) -> Backlog:
        behind, waiting, largest, oldest_at = self._connection.execute(_BACKLOG).one()
        return Backlog(tables=behind, commits=int(waiting), largest=largest, oldest_at=oldest_at)

    def count_dropped(self) -> int:
        dropped = sa.select(sa.func.count()).select_from(tables).where(tables.c.dropped_at.is_not(None))
        return self._connection.scalars(dropped).one()

    def managed(self, *, after: str, limit: int) -> Sequence[TableId]:
        query = sa.select(tables.c.id).where(_LIVE, tables.c.type != TableType.EXTERNAL.value, tables.c.id > after)
        return [TableId(id) for id in self._connection.scalars(query.order_by(tables.c.id).limit(limit))]

    def putting(self, *, after: str, limit: int) -> tuple[Sequence[TableId], str | None]:
        # Found by a look into the documents: there is no index, so the tables are gone through a few at a time.
        managed = (_LIVE, tables.c.type == TableType.MANAGED.value, tables.c.id > after)
        next_ones = sa.select(tables.c.id).where(*managed).order_by(tables.c.id).limit(limit).subquery()
        puts = table_metadata.c.document.contains(json.dumps(COMMITS_PROPERTY) + ":" + json.dumps(PUT_IF_ABSENT))
        query = sa.select(next_ones.c.id, puts).join(table_metadata, table_metadata.c.table_id == next_ones.c.id)
        rows = self._connection.execute(query.order_by(next_ones.c.id)).all()
        found = [TableId(id) for id, is_putting in rows if is_putting]
        return found, rows[-1][0] if len(rows) == limit else None

    def _read(self, ids: Sequence[TableId]) -> dict[TableId, Table]:
        rows = self._connection.execute(LIVE_TABLES.where(tables.c.id.in_(ids))).all()
        behind = [row.id for row in rows if row.latest > row.published]
        unpublished = self._connection.execute(_UNPUBLISHED.where(commits.c.table_id.in_(behind))) if behind else ()
        return keep_tables(self._known, rows, unpublished)


def keep_tables(
    known: KnownTables, rows: Iterable[sa.Row[Any]], unpublished: Iterable[sa.Row[Any]]
) -> dict[TableId, Table]:
    """The tables of which these are the rows, and those of their unpublished commits; they are known from now on."""
    commits_of: dict[str, list[Commit]] = defaultdict(list)
    for row in unpublished:
        commits_of[row.table_id].append(commit_of(row))
    found: dict[TableId, Table] = {}
    for row in rows:
        table = found[TableId(row.id)] = _table(row, tuple(commits_of[row.id]))
        known.put(table.id, row.state, table)
    return found


def change_all(connection: sa.Connection, where: sa.ColumnElement[bool], **values: Any) -> None:
    """Changes all live tables of which `where` holds."""
    # Locked in id order, as commits do it, so that the two never wait for each other.
    connection.execute(sa.select(tables.c.id).where(where, _LIVE).order_by(tables.c.id).with_for_update()).all()
    connection.execute(tables.update().where(where, _LIVE).values(state=new_state(), **values))


def _named(name: TableName) -> tuple[sa.ColumnElement[bool], ...]:
    return (catalogs.c.name == name.catalog, schemas.c.name == name.schema, tables.c.name == name.table)


def _still(table: Table) -> tuple[sa.ColumnElement[bool], ...]:
    """That nobody has dropped or renamed it since it was read: another server may have, a moment ago."""
    return (tables.c.id == table.id, tables.c.name == table.name.table, _LIVE)


def _name(row: sa.Row[Any]) -> TableName:
    return TableName(row.catalog, row.schema, row.name)


def _table(row: sa.Row[Any], unpublished: tuple[Commit, ...]) -> Table:
    return Table(
        id=TableId(row.id),
        name=_name(row),
        type=TableType(row.type),
        format=row.format,
        location=row.location,
        owner=row.owner,
        created_at=row.created_at,
        created_by=row.created_by,
        updated_at=row.updated_at,
        updated_by=row.updated_by,
        metadata=decode_metadata(row.document),
        revision=row.revision,
        metadata_version=row.metadata_version,
        metadata_timestamp=row.metadata_timestamp,
        latest=row.latest,
        latest_timestamp=row.latest_timestamp,
        published=row.published,
        unpublished=unpublished,
        uniform=decode_uniform(row.uniform),
        row_mark=None if row.row_mark_version is None else RowMark(row.row_mark_version, row.row_mark),
        releasing=row.releasing,
        chain=row.chain,
        guarded=bool(row.guarded),
        constraints=decode_constraints(row.constraints),
    )


def _changing(table: Table, state: State) -> tuple[Any, ...]:
    """The values of CHANGING_COLUMNS."""
    return (
        table.updated_at,
        table.updated_by,
        table.revision,
        table.metadata_version,
        table.metadata_timestamp,
        table.latest,
        table.latest_timestamp,
        table.published,
        encode_uniform(table.uniform),
        None if table.row_mark is None else table.row_mark.version,
        None if table.row_mark is None else table.row_mark.highest,
        table.releasing,
        table.chain,
        state,
    )


def _content_row(won: Won, content: bytes) -> tuple[Any, ...]:
    """The values of CONTENT_COLUMNS."""
    return (won.table_id, won.ratified.commit.version, content.decode())


def _opened_row(won: Won, txn_id: str) -> tuple[Any, ...]:
    """The values of OPENED_COLUMNS."""
    return (won.table_id, txn_id, won.ratified.commit.version, won.ratified.ratified_at)


def _has_done(before: Table, after: Table) -> bool:
    """Whether commits were published whose content the catalog keeps."""
    return any(commit.inline for commit in before.unpublished[: after.published - before.published])
