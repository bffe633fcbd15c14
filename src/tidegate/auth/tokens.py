"""The admin token: made at the first start, kept in a file that only its owner can read."""

from __future__ import annotations

import contextlib
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
    """The token in the file; on the first start a new one, readable by its owner alone.

    The file appears whole or not at all: a crash at the wrong moment must not lock everybody out.
    """
    token = _read(path)
    if token:
        return token
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
        file.flush()
        os.fsync(file.fileno())
    if path.exists():  # empty, by a crash or by hand
        draft.replace(path)
    else:
        with contextlib.suppress(FileExistsError):  # another server on this home was faster: its token counts
            os.link(draft, path)
        draft.unlink()
    return _read(path)


def _read(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
