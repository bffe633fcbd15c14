"""Where the catalogs are and who is asking: checked before anything is started."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

# The characters that the server allows in a name. A dot would make the name an option of another catalog.
_CATALOG = re.compile(r"[A-Za-z0-9_@-]+")
# A token travels in an HTTP header: printable, and in one piece.
_TOKEN = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Connection:
    """Who is asking is told by `token` or, for a service account, by `client_id` and `client_secret`."""

    uri: str
    token: str = field(repr=False)
    catalogs: tuple[str, ...]
    client_id: str = ""
    client_secret: str = field(default="", repr=False)


def connection(
    *,
    uri: str | None,
    token: str | None,
    catalogs: str | Iterable[str],
    client_id: str | None = None,
    client_secret: str | None = None,
) -> Connection:
    """What is not given is taken from TIDEGATE_URI, and from TIDEGATE_CLIENT_ID and TIDEGATE_CLIENT_SECRET or, without
    those, from TIDEGATE_TOKEN. A ValueError says what is wrong.
    """
    if token and (client_id or client_secret):
        raise ValueError("Both a token and a client id or secret are given: pass one or the other.")
    if not token:
        client_id = client_id or os.environ.get("TIDEGATE_CLIENT_ID", "")
        client_secret = client_secret or os.environ.get("TIDEGATE_CLIENT_SECRET", "")
    if bool(client_id) != bool(client_secret):
        raise ValueError("A client id needs its secret, and a secret its id: pass client_id=... and client_secret=....")
    return Connection(
        uri=_checked_uri(uri or os.environ.get("TIDEGATE_URI", "")),
        token="" if client_id else _checked_token(token or os.environ.get("TIDEGATE_TOKEN", "")),
        catalogs=checked_catalogs((catalogs,) if isinstance(catalogs, str) else tuple(catalogs)),
        client_id=_checked_client(client_id or ""),
        client_secret=_checked_client(client_secret or ""),
    )


def checked_catalogs(catalogs: tuple[str, ...]) -> tuple[str, ...]:
    if not catalogs:
        raise ValueError("No catalog is given: pass catalogs=['main'], or the names of yours.")
    for name in catalogs:
        if not _CATALOG.fullmatch(name):
            raise ValueError(f"{name!r} cannot be the name of a catalog: use letters, digits, '_', '-' and '@' only.")
        if name.lower() == "spark_catalog":
            raise ValueError("spark_catalog is Spark's own catalog: give the one of the server another name.")
    return tuple(dict.fromkeys(catalogs))


def _checked_uri(uri: str) -> str:
    if not uri.strip():
        raise ValueError("No catalog server is given: pass uri='http://host:port', or set TIDEGATE_URI.")
    try:
        parts = urlsplit(uri.strip())
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError as error:
        raise ValueError(f"The catalog's address {uri!r} cannot be read: {error}.") from None
    if parts.username is not None or parts.password is not None:
        raise ValueError("The catalog's address holds a user or a password: pass the token as token= instead.")
    if parts.scheme not in {"http", "https"} or not has_host or parts.query or parts.fragment:
        raise ValueError(f"The catalog's address {uri!r} must look like http://host:port or https://host.")
    return uri.strip().rstrip("/")


def _checked_client(text: str) -> str:
    if text and not _TOKEN.fullmatch(text.strip()):
        raise ValueError("The client id or its secret holds blanks or characters that are not ASCII.")
    return text.strip()


def _checked_token(token: str) -> str:
    if not token.strip():
        raise ValueError(
            "No token is given: pass token=..., or set TIDEGATE_TOKEN (the server writes it to admin.token)."
        )
    if not _TOKEN.fullmatch(token.strip()):
        raise ValueError(
            "The token holds blanks, line breaks or characters that are not ASCII: pass it as it was issued."
        )
    return token.strip()
