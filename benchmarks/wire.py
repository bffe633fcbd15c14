"""Requests as the bytes that go over the wire: Delta REST v1.0, the old API's listing, Tidegate's own commits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

UNITY = "/api/2.1/unity-catalog"
DELTA = f"{UNITY}/delta/v1"
TIDEGATE = "/api/tidegate/v1"


@dataclass(frozen=True, slots=True)
class Target:
    """A schema on one or several servers of the same catalog."""

    urls: Sequence[str]
    token: str
    catalog: str = "main"
    schema: str = "default"

    @property
    def addresses(self) -> list[tuple[str, int]]:
        parts = [urlsplit(url) for url in self.urls]
        if any(part.scheme != "http" for part in parts):
            raise ValueError(f"The driver speaks plain HTTP, to http:// addresses: not {', '.join(self.urls)}.")
        return [(part.hostname or "127.0.0.1", part.port or 80) for part in parts]

    def load(self, table: str) -> bytes:
        return self.request("GET", f"{self._schema()}/tables/{table}")

    def update(self, table: str, body: bytes) -> bytes:
        return self.request("POST", f"{self._schema()}/tables/{table}", body)

    def commit_inline(self, table: str, body: bytes) -> bytes:
        return self.request("POST", self._commits(table), body)

    def kept(self, table: str, *, start: int) -> bytes:
        """The table's latest version, and the commits from this one on that are not published yet."""
        return self.request("GET", f"{self._commits(table)}?start_version={start}")

    def drop(self, table: str) -> bytes:
        return self.request("DELETE", f"{self._schema()}/tables/{table}")

    def stage(self, table: str) -> bytes:
        return self.request("POST", f"{self._schema()}/staging-tables", encode({"name": table}))

    def create(self, body: dict[str, Any]) -> bytes:
        return self.request("POST", f"{self._schema()}/tables", encode(body))

    def list(self, page_token: str | None, *, page_size: int) -> bytes:
        query = f"catalog_name={self.catalog}&schema_name={self.schema}&max_results={page_size}"
        if page_token is not None:
            query += f"&page_token={quote(page_token)}"
        return self.request("GET", f"{UNITY}/tables?{query}")

    def create_schema(self) -> bytes:
        body = {"name": self.schema, "catalog_name": self.catalog}
        return self.request("POST", f"{UNITY}/schemas", encode(body))

    def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", "Host: catalog", f"Authorization: Bearer {self.token}"]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return "\r\n".join([*lines, "", ""]).encode() + (body or b"")

    def _commits(self, table: str) -> str:
        return f"{TIDEGATE}/tables/{self.catalog}.{self.schema}.{table}/commits"

    def _schema(self) -> str:
        return f"{DELTA}/catalogs/{self.catalog}/schemas/{self.schema}"


def encode(body: Any) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()
