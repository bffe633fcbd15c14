"""An endpoint: all that the router, the dispatcher and the OpenAPI document need to know about one call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from tidegate.domain.errors import (
    InternalFailure,
    MalformedRequest,
    NotAuthenticated,
    PermissionDenied,
    TidegateError,
    TooManyRequests,
    Unavailable,
)
from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableName
from tidegate.domain.privileges import Principal
from tidegate.http.faces import BodyTooLarge, Face
from tidegate.services.environment import Environment


@frozen
class Call:
    """One request, read and authenticated. `body` and `query` have the types that the endpoint declares."""

    env: Environment
    caller: Principal
    path: Mapping[str, str]
    query: Any
    body: Any
    ending: asyncio.Future[None] | None = None
    """Of a patient endpoint: done when nobody waits for the answer any more, or when the server stops."""
    last_event_id: str | None = None
    """Of a patient endpoint: the header of that name."""
    authorization: str | None = field(default=None, repr=False)
    """Of an open endpoint: the header of that name."""

    @property
    def table_name(self) -> TableName:
        return TableName(self.path["catalog"], self.path["schema"], self.path["table"])


Encoded = bytes
"""What a handler may return instead of a value of its endpoint's answer type: that value, encoded already."""
JSON = b"application/json"
Handler = Callable[[Call], Awaitable[Any]]


@frozen
class Endpoint:
    face: Face
    method: str
    path: str
    """Below the face's root, with {parameters}."""
    name: str
    summary: str
    handler: Handler
    body: type | None = None
    body_required: bool = True
    query: type | None = None
    answer: type | None = None
    """None: the answer has no body."""
    content_type: bytes = JSON
    """For another one than JSON, the handler encodes the answer; that of a patient endpoint comes in pieces, as an
    asynchronous iterator of bytes.
    """
    status: int = 200
    errors: tuple[type[TidegateError], ...] = ()
    """Those of its own; every endpoint has the common ones too."""
    patient: bool = False
    """It may wait for long: such requests are counted on their own, and never keep others out."""
    open: bool = False
    """Nobody is asked for a token: the handler sees to who is calling. Its path has no parameters."""
    form: bool = False
    """The body is a form, not JSON."""
    for_everybody: bool = False
    """Whoever has a token may ask: nobody is refused."""

    @property
    def template(self) -> str:
        return self.face.root + self.path

    def all_errors(self) -> list[type[TidegateError]]:
        common: list[type[TidegateError]] = [NotAuthenticated, PermissionDenied, TooManyRequests]
        if self.for_everybody:
            common.remove(PermissionDenied)
        reading: list[type[TidegateError]] = []
        if self.body is not None or self.query is not None or "{" in self.path:
            reading.append(MalformedRequest)
        if self.body is not None:
            reading.append(BodyTooLarge)
        return [*self.errors, *reading, *common, Unavailable, InternalFailure]


@dataclass(slots=True)
class _Node:
    literals: dict[str, _Node] = field(default_factory=lambda: cast("dict[str, _Node]", {}))
    parameter: _Node | None = None
    endpoints: dict[str, tuple[Endpoint, list[str]]] = field(
        default_factory=lambda: cast("dict[str, tuple[Endpoint, list[str]]]", {})
    )


@frozen
class Match:
    endpoint: Endpoint
    path: Mapping[str, str]


class Router:
    """Finds endpoints by path segments. Segments are split before they are decoded: `%2F` never makes a new one."""

    def __init__(self, endpoints: list[Endpoint]) -> None:
        self._root = _Node()
        for endpoint in endpoints:
            self._add(endpoint)

    def find(self, method: str, segments: list[str]) -> Match | list[str] | None:
        """The match; the methods that would match if only the method is wrong; None for an unknown path."""
        values: list[str] = []
        node = self._root
        for segment in segments:
            if segment in node.literals:
                node = node.literals[segment]
            elif node.parameter is not None and segment:
                node = node.parameter
                values.append(segment)
            else:
                return None
        if method in node.endpoints:
            endpoint, names = node.endpoints[method]
            return Match(endpoint, dict(zip(names, values, strict=True)))
        return sorted(node.endpoints) or None

    def _add(self, endpoint: Endpoint) -> None:
        node, names = self._root, list[str]()
        for segment in endpoint.template.strip("/").split("/"):
            if segment.startswith("{"):
                names.append(segment[1:-1])
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.literals.setdefault(segment, _Node())
        node.endpoints[endpoint.method] = (endpoint, names)
