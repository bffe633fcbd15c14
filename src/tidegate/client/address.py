"""Where the server is and who is asking: checked before anything is sent."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from tidegate.client.errors import InvalidRequest

UNITY = "/api/2.1/unity-catalog"
DELTA = f"{UNITY}/delta/v1"
TIDEGATE = "/api/tidegate/v1"

# A token travels in an HTTP header: printable, and in one piece.
_TOKEN = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Address:
    url: str
    token: str | None = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}


def address(url: str | None, token: str | None) -> Address:
    """What is not given is taken from TIDEGATE_URI and TIDEGATE_TOKEN. A server with `--auth none` needs no token."""
    given = url or os.environ.get("TIDEGATE_URI", "")
    return Address(_checked_url(given), _checked_token(token or os.environ.get("TIDEGATE_TOKEN", "")))


def schema_path(full_name: str) -> str:
    """The path of a schema in Delta REST."""
    catalog, schema = split_schema(full_name)
    return f"{DELTA}/catalogs/{quote(catalog, safe='')}/schemas/{quote(schema, safe='')}"


def table_path(full_name: str) -> str:
    catalog, schema, table = split_table(full_name)
    return f"{schema_path(f'{catalog}.{schema}')}/tables/{quote(table, safe='')}"


def split_schema(full_name: str) -> tuple[str, str]:
    match full_name.split("."):
        case [catalog, schema] if catalog and schema:
            return catalog, schema
        case _:
            raise InvalidRequest(f"{full_name!r} is not a schema's full name. Write catalog.schema.")


def split_table(full_name: str) -> tuple[str, str, str]:
    match full_name.split("."):
        case [catalog, schema, table] if catalog and schema and table:
            return catalog, schema, table
        case _:
            raise InvalidRequest(f"{full_name!r} is not a table's full name. Write catalog.schema.table.")


def segment(name: str) -> str:
    """A name as one segment of a path, whatever it holds."""
    if not name:
        raise InvalidRequest("The name is empty. Give one.")
    return quote(name, safe="")


def _checked_url(url: str) -> str:
    text = url.strip()
    if not text:
        raise InvalidRequest("No server is given: pass url='http://host:port', or set TIDEGATE_URI.")
    try:
        parts = urlsplit(text)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError as error:
        raise InvalidRequest(f"The server's address {text!r} cannot be read: {error}.") from None
    if parts.username is not None or parts.password is not None:
        raise InvalidRequest("The server's address holds a user or a password: pass the token as token= instead.")
    if parts.scheme not in {"http", "https"} or not has_host or parts.query or parts.fragment:
        raise InvalidRequest(f"The server's address {text!r} must look like http://host:port or https://host.")
    return text.rstrip("/")


def _checked_token(token: str) -> str | None:
    text = token.strip()
    if text and not _TOKEN.fullmatch(text):
        raise InvalidRequest(
            "The token holds blanks, line breaks or characters that are not ASCII: pass it as it was issued."
        )
    return text or None
