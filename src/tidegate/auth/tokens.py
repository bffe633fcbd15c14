"""The admin token: made at the first start, kept in a file that only its owner can read."""

from __future__ import annotations

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

    def authenticate(self, authorization: str | None) -> Principal:
        if not authorization:
            raise NotAuthenticated("The Authorization header is missing. Send 'Authorization: Bearer <token>'.")
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise NotAuthenticated("The Authorization header is not a bearer token. Send 'Bearer <token>'.")
        if not hmac.compare_digest(_digest(token.strip()), self._digest):
            raise NotAuthenticated("The token is not valid. Use the one in admin.token of the server's home.")
        return ADMIN


class Nobody:
    """Everybody is welcome: for a server that only this machine can reach."""

    def authenticate(self, authorization: str | None) -> Principal:
        return ANONYMOUS


def read_or_make_token(path: Path) -> str:
    """The token in the file; on the first start a new one, readable by its owner alone."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    token = secrets.token_urlsafe(32)
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")
        file.flush()
        os.fsync(file.fileno())
    return token


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
