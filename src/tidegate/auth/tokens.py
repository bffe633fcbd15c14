"""The admin token: made at the first start, kept in a file that only its owner can read."""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import secrets
from pathlib import Path

from tidegate.domain.errors import NotAuthenticated
from tidegate.domain.privileges import Principal

ADMIN = Principal("admin")
ANONYMOUS = Principal("anonymous")


class AdminToken:
    """Knows one token, by its hash, and compares in constant time."""

    def __init__(self, token: str) -> None:
        self._digest = _digest(token)
        self._accepted = b""
        """The header that was last found right: it is right again."""

    def authenticate(self, authorization: str | None) -> Principal:
        if authorization and hmac.compare_digest(authorization.encode("utf-8", "surrogateescape"), self._accepted):
            return ADMIN
        return self._read(authorization)

    def _read(self, authorization: str | None) -> Principal:
        if not authorization:
            raise NotAuthenticated("The Authorization header is missing. Send 'Authorization: Bearer <token>'.")
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise NotAuthenticated("The Authorization header is not a bearer token. Send 'Bearer <token>'.")
        if not hmac.compare_digest(_digest(token.strip()), self._digest):
            raise NotAuthenticated("The token is not valid. Use the one in admin.token of the server's home.")
        self._accepted = authorization.encode("utf-8", "surrogateescape")
        return ADMIN


class Nobody:
    """Everybody is welcome: for a server that only this machine can reach."""

    def authenticate(self, authorization: str | None) -> Principal:
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
