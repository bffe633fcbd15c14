"""Grants in the database."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from tidegate.db.insert_if_absent import insert_if_absent
from tidegate.db.schema import grants
from tidegate.domain.grants import Grant, Privilege


class SqlGrants:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def of(self, securable_id: str) -> Sequence[Grant]:
        query = sa.select(grants).where(grants.c.securable_id == securable_id)
        rows = self._connection.execute(query.order_by(grants.c.principal, grants.c.privilege))
        return [Grant(row.principal, Privilege(row.privilege)) for row in rows]

    def add(self, securable_id: str, given: Sequence[Grant]) -> None:
        if not given:
            return
        rows = [_row(securable_id, grant) for grant in given]
        self._connection.execute(insert_if_absent(self._connection, grants), rows)

    def remove(self, securable_id: str, taken: Sequence[Grant]) -> None:
        pairs = [(grant.principal, grant.privilege.value) for grant in taken]
        if not pairs:
            return
        wanted = sa.tuple_(grants.c.principal, grants.c.privilege).in_(pairs)
        self._connection.execute(grants.delete().where(grants.c.securable_id == securable_id, wanted))


def _row(securable_id: str, grant: Grant) -> dict[str, str]:
    return {"securable_id": securable_id, "principal": grant.principal, "privilege": grant.privilege.value}
