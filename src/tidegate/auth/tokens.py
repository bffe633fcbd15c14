"""Who is calling, by a token: that of the admin, one of those that the database knows by their hashes, or one that an
identity provider has signed.

The admin token is made at the first start, and kept in a file that only its owner can read.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import secrets
from collections import OrderedDict
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from tidegate.auth.issuers import is_jwt
from tidegate.auth.token_lookups import TokenLookups
from tidegate.domain.access_epoch import AccessEpoch
from tidegate.domain.errors import NotAuthenticated
from tidegate.domain.identities import ADMIN_NAME, ANONYMOUS_NAME, IdentityKind, digest_of, is_token
from tidegate.domain.ports import Clock, Database
from tidegate.domain.privileges import Principal

if TYPE_CHECKING:
    from tidegate.auth.jwts import Providers

ADMIN = Principal(ADMIN_NAME)
ANONYMOUS = Principal(ANONYMOUS_NAME)


class AdminToken:
    """Knows one token, by its hash, and compares in constant time."""

    def __init__(self, token: str) -> None:
        self._digest = _digest(token)
        self._accepted = b""
        """The header that was last found right: it is right again."""

    def knows(self, authorization: str) -> bool:
        """Whether this very header was found right before."""
        return hmac.compare_digest(authorization.encode("utf-8", "surrogateescape"), self._accepted)

    def accepts(self, token: str, authorization: str) -> bool:
        if not hmac.compare_digest(_digest(token), self._digest):
            return False
        self._accepted = authorization.encode("utf-8", "surrogateescape")
        return True


class Remembered(NamedTuple):
    principal: Principal
    expires_at: int
    epoch: int
    until: float


class Tokens:
    """The admin's token, and everybody else's. Those that were found right are remembered, at most `known_max` of them:
    until this server changes anything, and never longer than `seconds_max`, for changes by other servers.
    """

    def __init__(
        self,
        admin: AdminToken,
        database: Database,
        epoch: AccessEpoch,
        clock: Clock,
        *,
        known_max: int,
        seconds_max: float,
        providers: Providers | None = None,
    ) -> None:
        self._admin = admin
        self._database = database
        self._lookups = TokenLookups(database, unknown_max=known_max)
        self._providers = providers
        self._epoch = epoch
        self._clock = clock
        self._known_max = known_max
        self._seconds_max = seconds_max
        self._known: OrderedDict[str, Remembered] = OrderedDict()

    async def authenticate(self, authorization: str | None) -> Principal:
        if authorization and self._admin.knows(authorization):
            return ADMIN
        token = _bearer(authorization)
        if self._admin.accepts(token, authorization or ""):
            return ADMIN
        known = await self._find(token)
        if known is None:
            raise NotAuthenticated(
                "The token is not valid. Use one that was made for you and is not revoked, or the one in admin.token "
                "of the server's home."
            )
        if known.expires_at <= self._clock():
            raise NotAuthenticated("The token has expired. Make another one.")
        return known.principal

    async def _find(self, token: str) -> Remembered | None:
        """What cannot be a token is told by its form, and costs nothing more."""
        own = is_token(token)
        providers = self._providers if not own and is_jwt(token) else None
        if not own and providers is None:
            return None
        digest = digest_of(token)
        known = self._known.get(digest)
        if known is not None and known.epoch == self._epoch.number and monotonic() < known.until:
            return known
        epoch, until = self._epoch.number, monotonic() + self._seconds_max
        self._known.pop(digest, None)
        found = await (self._look_up(digest) if providers is None else self._verify(token, providers))
        if found is None:
            return None
        self._known[digest] = known = Remembered(*found, epoch, until)
        if len(self._known) > self._known_max:
            self._known.popitem(last=False)
        return known

    async def _look_up(self, digest: str) -> tuple[Principal, int] | None:
        found = await self._lookups.find(digest)
        return None if found is None else (Principal(found.principal), found.expires_at)

    async def _verify(self, token: str, providers: Providers) -> tuple[Principal, int]:
        """Groups that the catalog does not know do not count: none is a way to a user's rights."""
        told = await providers.verify(token)
        kind, groups = await self._database.read(
            lambda uow: (uow.identities.kind_of(told.name), uow.identities.groups_among(told.groups))
        )
        if kind is not IdentityKind.USER and (told.must_be_known or kind is not None):
            raise NotAuthenticated("The token is right, and this catalog has no such user. Ask an administrator.")
        return Principal(told.name, frozenset(groups)), told.expires_at


def _bearer(authorization: str | None) -> str:
    if not authorization:
        raise NotAuthenticated("The Authorization header is missing. Send 'Authorization: Bearer <token>'.")
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise NotAuthenticated("The Authorization header is not a bearer token. Send 'Bearer <token>'.")
    return token.strip()


class Nobody:
    """Everybody is welcome: for a server that only this machine can reach."""

    async def authenticate(self, authorization: str | None) -> Principal:
        return ANONYMOUS


def read_or_make_token(path: Path) -> str:
    """The token in the file; on the first start a new one, readable by its owner alone.

    Servers that start together on one home take turns, and the file appears whole or not at all: neither a race nor a
    crash may leave a server with a token that nobody can read.
    """
    turn = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(turn, fcntl.LOCK_EX)
        token = _read(path)
        return token or _make(path)
    finally:
        os.close(turn)


def _make(path: Path) -> str:
    token = secrets.token_urlsafe(32)
    draft = path.with_name(f".{path.name}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(token + "\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    return token


def _read(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
