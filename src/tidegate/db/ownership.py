"""Changes of ownership under way, in the database; and where tables may be taken over from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from tidegate.db.documents import decode_metadata, encode_metadata
from tidegate.db.insert_if_absent import insert_if_absent
from tidegate.db.locations import overlapping
from tidegate.db.schema import adoptable_locations, ownership_promises
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.names import SchemaName, TableId, Version, parse_table_name
from tidegate.domain.ownership import AdoptableLocation, Change, Kept, OwnershipCommit, Promise


class SqlOwnership:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def promise(self, promise: Promise) -> None:
        row = {
            "table_id": promise.table_id,
            "change": promise.change.value,
            "name": str(promise.name),
            "location": promise.location,
            "kept": promise.kept.value,
            "begun_at": promise.begun_at,
            "begun_by": promise.begun_by,
            **_planned(promise.commit),
            "version": promise.version,
        }
        try:
            self._connection.execute(ownership_promises.insert().values(**row))
        except IntegrityError:
            raise InvalidRequest(
                f"The table at {promise.location} is changing its owner right now. Try again in a moment."
            ) from None

    def get(self, id: TableId) -> Promise | None:
        row = self._connection.execute(_SELECT.where(ownership_promises.c.table_id == id)).one_or_none()
        return None if row is None else _promise(row)

    def find(self, location: str) -> Promise | None:
        row = self._connection.execute(_SELECT.where(ownership_promises.c.location == location)).one_or_none()
        return None if row is None else _promise(row)

    def find_overlapping(self, location: str) -> Promise | None:
        query = _SELECT.where(overlapping(ownership_promises.c.location, location)).limit(1)
        row = self._connection.execute(query).first()
        return None if row is None else _promise(row)

    def find_below(self, parent: SchemaName | str) -> Promise | None:
        # Compared as it is: LIKE would take capitals for small letters, and an underscore for anything.
        prefix = f"{parent}."
        below = sa.func.substr(ownership_promises.c.name, 1, len(prefix)) == prefix
        row = self._connection.execute(_SELECT.where(below).limit(1)).first()
        return None if row is None else _promise(row)

    def all(self, *, limit: int, after: Promise | None = None) -> Sequence[Promise]:
        begun, id = ownership_promises.c.begun_at, ownership_promises.c.table_id
        query = _SELECT.order_by(begun, id).limit(limit)
        if after is not None:
            same = sa.and_(begun == after.begun_at, id > after.table_id)
            query = query.where(sa.or_(begun > after.begun_at, same))
        return [_promise(row) for row in self._connection.execute(query)]

    def count(self, change: Change) -> int:
        counted = sa.select(sa.func.count()).where(ownership_promises.c.change == change.value)
        return self._connection.scalars(counted).one()

    def plan(self, promise: Promise, commit: OwnershipCommit) -> bool:
        change = ownership_promises.update().where(*_still(promise)).values(**_planned(commit))
        return self._connection.execute(change).rowcount == 1

    def strike_out(self, promise: Promise) -> bool:
        return self._connection.execute(ownership_promises.delete().where(*_still(promise))).rowcount == 1

    def allow(self, place: AdoptableLocation) -> bool:
        row = {"location": place.location, "added_at": place.added_at, "added_by": place.added_by}
        statement = insert_if_absent(self._connection, adoptable_locations).values(**row)
        return self._connection.execute(statement).rowcount == 1

    def disallow(self, location: str) -> bool:
        gone = adoptable_locations.delete().where(adoptable_locations.c.location == location)
        return self._connection.execute(gone).rowcount == 1

    def allowed(self) -> Sequence[AdoptableLocation]:
        rows = self._connection.execute(sa.select(adoptable_locations).order_by(adoptable_locations.c.location))
        return [AdoptableLocation(row.location, row.added_at, row.added_by) for row in rows]


_SELECT = sa.select(ownership_promises)


def _still(promise: Promise) -> tuple[sa.ColumnElement[bool], ...]:
    """That nobody has planned it anew since it was read."""
    version = ownership_promises.c.version
    same = version.is_(None) if promise.version is None else version == promise.version
    return (ownership_promises.c.table_id == promise.table_id, same)


def _planned(commit: OwnershipCommit | None) -> dict[str, Any]:
    if commit is None:
        return {"version": None, "timestamp": None, "content": None, "document": None}
    return {
        "version": commit.version,
        "timestamp": commit.timestamp,
        "content": commit.content.decode(),
        "document": encode_metadata(commit.metadata),
    }


def _promise(row: sa.Row[Any]) -> Promise:
    return Promise(
        table_id=TableId(row.table_id),
        change=Change(row.change),
        name=parse_table_name(row.name),
        location=row.location,
        commit=_commit(row),
        kept=Kept(row.kept),
        begun_at=row.begun_at,
        begun_by=row.begun_by,
        awaited=None if row.version is None or row.content is not None else Version(row.version),
    )


def _commit(row: sa.Row[Any]) -> OwnershipCommit | None:
    if row.content is None:
        return None
    return OwnershipCommit(Version(row.version), row.timestamp, row.content.encode(), decode_metadata(row.document))
