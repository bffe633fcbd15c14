"""Who there is: users, service accounts, groups of both, and the tokens by which they are known.

All share one space of names, so that a grant to a name is a grant to one of them. A token is a secret that is shown
once; the catalog keeps its hash alone. Its form tells what it is, so that a scanner can find one that leaked:

    tg_8fJ2kQ...          43 random characters after the prefix
    tgs_x7Rw0b...         the same, of a client secret: it opens nothing but the way to short tokens, for a machine
"""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.names import NAME_LENGTH_MAX

ADMIN_NAME = "admin"
ANONYMOUS_NAME = "anonymous"
RESERVED = frozenset({ADMIN_NAME, ANONYMOUS_NAME})
"""The one with the admin token, and whoever comes to a server that asks nobody: nobody else is called so."""

TOKEN_PREFIX = "tg_"  # noqa: S105
SECRET_PREFIX = "tgs_"  # noqa: S105
COMMENT_LENGTH_MAX = 200
_NAME = re.compile(r"[A-Za-z0-9_.+@-]+")
_TOKEN = re.compile(r"tg_[A-Za-z0-9_-]{43}")
_SECRET = re.compile(r"tgs_[A-Za-z0-9_-]{43}")


class IdentityKind(StrEnum):
    USER = "user"
    SERVICE_ACCOUNT = "service account"
    GROUP = "group"


@frozen
class Identity:
    name: str
    kind: IdentityKind
    created_at: int
    created_by: str


class TokenKind(StrEnum):
    PERSONAL = "personal"
    CLIENT_SECRET = "client secret"  # noqa: S105
    """Of a service account: what it gets machine's tokens for."""
    MACHINE = "machine"
    """Given for a client secret, for a short while."""


@frozen
class AccessToken:
    """All of a token but the token."""

    id: str
    principal: str
    comment: str
    created_at: int
    created_by: str
    expires_at: int
    kind: TokenKind = TokenKind.PERSONAL
    given_for: str | None = None
    """Of a machine's token: the id of the client secret."""


def is_identity_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None and len(text) <= NAME_LENGTH_MAX


def check_identity_name(name: str) -> str:
    if not is_identity_name(name):
        raise InvalidRequest(
            f"{name[:100]!r} cannot be the name of a user, service account or group. Use 1 to "
            f"{NAME_LENGTH_MAX} letters, digits and '_', '-', '.', '+', '@'."
        )
    if name in RESERVED:
        raise InvalidRequest(f"{name} is a name that the server keeps for itself. Choose another one.")
    return name


def check_comment(comment: str) -> str:
    if len(comment) > COMMENT_LENGTH_MAX or not (comment.isprintable() or not comment):
        raise InvalidRequest(f"A token's comment is a line of at most {COMMENT_LENGTH_MAX} characters.")
    return comment


def expiry_of(*, now: int, lifetime_seconds: int, hours_max: int) -> int:
    """When a token ends that is made now."""
    if not 0 < lifetime_seconds <= hours_max * 3600:
        raise InvalidRequest(
            f"lifetime_seconds is {lifetime_seconds}. A token lives from 1 second to {hours_max} hours, the setting "
            "token_hours_max."
        )
    return now + lifetime_seconds * 1000


def is_token(text: str) -> bool:
    """Whether it can be one: what cannot be need not be looked for."""
    return _TOKEN.fullmatch(text) is not None


def is_client_secret(text: str) -> bool:
    return _SECRET.fullmatch(text) is not None


def digest_of(token: str) -> str:
    """A token is random: its plain hash cannot be guessed back, and is found by an index."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
