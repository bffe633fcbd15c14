"""Users, service accounts, groups and tokens in the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from tidegate.db.insert_if_absent import insert_if_absent
from tidegate.db.schema import (
    access_tokens,
    catalogs,
    grants,
    group_members,
    identities,
    schemas,
    staging_tables,
    tables,
)
from tidegate.db.tables import change_all
from tidegate.domain.errors import IdentityAlreadyExists, NoSuchIdentity, NoSuchToken
from tidegate.domain.identities import ADMIN_NAME, AccessToken, Identity, IdentityKind, TokenKind


class SqlIdentities:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def add(self, identity: Identity) -> None:
        values = {
            "name": identity.name,
            "kind": identity.kind.value,
            "created_at": identity.created_at,
            "created_by": identity.created_by,
        }
        try:
            self._connection.execute(identities.insert().values(values))
        except IntegrityError:
            raise IdentityAlreadyExists(identity.name) from None

    def get(self, name: str) -> Identity:
        row = self._connection.execute(sa.select(identities).where(identities.c.name == name)).one_or_none()
        if row is None:
            raise NoSuchIdentity(name)
        return _identity(row)

    def kind_of(self, name: str) -> IdentityKind | None:
        kind = self._connection.scalar(sa.select(identities.c.kind).where(identities.c.name == name))
        return None if kind is None else IdentityKind(kind)

    def count(self) -> int:
        return self._connection.scalar(sa.select(sa.func.count()).select_from(identities)) or 0

    def page(self, *, kind: IdentityKind | None, after: str, limit: int) -> Sequence[Identity]:
        query = sa.select(identities).where(identities.c.name > after)
        if kind is not None:
            query = query.where(identities.c.kind == kind.value)
        return [_identity(row) for row in self._connection.execute(query.order_by(identities.c.name).limit(limit))]

    def remove(self, name: str) -> None:
        run = self._connection.execute
        run(grants.delete().where(grants.c.principal == name))
        change_all(self._connection, tables.c.owner == name, owner=ADMIN_NAME)
        for owned in (catalogs, schemas, tables):  # tables once more, for those that are dropped
            run(owned.update().where(owned.c.owner == name).values(owner=ADMIN_NAME))
        run(staging_tables.update().where(staging_tables.c.created_by == name).values(created_by=ADMIN_NAME))
        run(identities.delete().where(identities.c.name == name))

    def members(self, group: str) -> Sequence[str]:
        query = sa.select(group_members.c.member).where(group_members.c.group_name == group)
        return list(self._connection.scalars(query.order_by(group_members.c.member)))

    def groups_of(self, member: str) -> Sequence[str]:
        query = sa.select(group_members.c.group_name).where(group_members.c.member == member)
        return list(self._connection.scalars(query.order_by(group_members.c.group_name)))

    def groups_among(self, names: Collection[str]) -> Sequence[str]:
        group = identities.c.kind == IdentityKind.GROUP.value
        query = sa.select(identities.c.name).where(identities.c.name.in_(names), group)
        return list(self._connection.scalars(query)) if names else []

    def join(self, group: str, member: str) -> None:
        row = {"group_name": group, "member": member}
        self._connection.execute(insert_if_absent(self._connection, group_members), [row])

    def leave(self, group: str, member: str) -> bool:
        left = group_members.delete().where(group_members.c.group_name == group, group_members.c.member == member)
        return self._connection.execute(left).rowcount > 0


class SqlAccessTokens:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def add(self, token: AccessToken, digest: str) -> None:
        values = {
            "id": token.id,
            "digest": digest,
            "principal": token.principal,
            "comment": token.comment,
            "created_at": token.created_at,
            "created_by": token.created_by,
            "expires_at": token.expires_at,
            "kind": token.kind.value,
            "given_for": token.given_for,
        }
        self._connection.execute(access_tokens.insert().values(values))

    def find(self, digests: Collection[str]) -> Mapping[str, AccessToken]:
        rows = self._connection.execute(sa.select(access_tokens).where(access_tokens.c.digest.in_(digests)))
        return {row.digest: _token(row) for row in rows}

    def get(self, id: str) -> AccessToken:
        row = self._connection.execute(sa.select(*_SHOWN).where(access_tokens.c.id == id)).one_or_none()
        if row is None:
            raise NoSuchToken(id)
        return _token(row)

    def of(self, principal: str) -> Sequence[AccessToken]:
        shown = access_tokens.c.kind != TokenKind.MACHINE.value
        query = sa.select(*_SHOWN).where(access_tokens.c.principal == principal, shown)
        rows = self._connection.execute(query.order_by(access_tokens.c.created_at, access_tokens.c.id))
        return [_token(row) for row in rows]

    def count_for_machines(self, principal: str) -> int:
        counted = access_tokens.c.kind == TokenKind.MACHINE.value
        query = sa.select(sa.func.count()).where(access_tokens.c.principal == principal, counted)
        return self._connection.scalar(query) or 0

    def remove(self, id: str) -> None:
        gone = sa.or_(access_tokens.c.id == id, access_tokens.c.given_for == id)
        self._connection.execute(access_tokens.delete().where(gone))

    def remove_expired(self, principal: str, *, now: int) -> None:
        over = access_tokens.c.expires_at <= now
        self._connection.execute(access_tokens.delete().where(access_tokens.c.principal == principal, over))


_SHOWN = [column for column in access_tokens.c if column.name != "digest"]


def _identity(row: sa.Row[Any]) -> Identity:
    return Identity(row.name, IdentityKind(row.kind), row.created_at, row.created_by)


def _token(row: sa.Row[Any]) -> AccessToken:
    return AccessToken(
        id=row.id,
        principal=row.principal,
        comment=row.comment,
        created_at=row.created_at,
        created_by=row.created_by,
        expires_at=row.expires_at,
        kind=TokenKind(row.kind),
        given_for=row.given_for,
    )
