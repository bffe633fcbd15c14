"""Users, service accounts, groups and tokens: their JSON in Tidegate's own API.

Moments are milliseconds since the epoch.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from tidegate.wire.unity import PageQuery

Kind = Literal["user", "service account", "group"]


TokenKind = Literal["personal", "client secret"]


class Oneself(Struct, frozen=True):
    """`kind` is null for the admin, on a server without authentication, and for whom an identity provider alone knows.

    `groups` are those of the catalog, and those that the identity provider tells.
    """

    name: str
    kind: Kind | None
    groups: list[str]


class CreateIdentity(Struct, frozen=True):
    name: str
    kind: Kind = "user"


class IdentityInfo(Struct, frozen=True):
    name: str
    kind: Kind
    created_at: int
    created_by: str


class IdentitiesQuery(PageQuery, frozen=True):
    """Which part of them, and of which kind."""

    kind: Kind | None = None


class IdentityList(Struct, frozen=True):
    identities: list[IdentityInfo]
    next_page_token: str | None


class GroupMembers(Struct, frozen=True):
    members: list[str]


class CreateToken(Struct, frozen=True):
    """`principal`: whose it shall be; the caller's own without it. A client secret is made by an administrator, for a
    service account.
    """

    principal: str | None = None
    comment: str = ""
    lifetime_seconds: int = 90 * 24 * 3600
    kind: TokenKind = "personal"


class TokenInfo(Struct, frozen=True):
    id: str
    principal: str
    comment: str
    created_at: int
    created_by: str
    expires_at: int
    kind: TokenKind


class NewToken(Struct, frozen=True):
    """The token itself is told this once."""

    token: str
    info: TokenInfo


class TokensQuery(Struct, frozen=True):
    """Whose tokens; the caller's own without it."""

    principal: str | None = None


class TokenList(Struct, frozen=True):
    tokens: list[TokenInfo]
