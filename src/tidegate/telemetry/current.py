"""What is being worked on: a request or a background job, for the log lines and traces that tell of it.

A request's task has a context of its own, so what is set there is seen by everything that the request calls, and by
nothing else. Only what everybody needs is noted at once; the rest is put into words when a line is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from time import perf_counter
from types import MappingProxyType
from typing import Any, Protocol


class AtWork(Protocol):
    span: Any
    """For traces: whatever the tracer keeps of it, None without traces."""

    def fields(self) -> dict[str, Any]:
        """What a log line says beside its message."""
        ...


class Named(Protocol):
    @property
    def name(self) -> str: ...


class Called(Named, Protocol):
    """The endpoint that a request has called, as far as it is told of."""

    @property
    def face(self) -> Named: ...
    @property
    def template(self) -> str:
        """The path with its {parameters}."""
        ...


class RequestAtWork:
    """Fields that are unknown are the class's own: one request makes one small object."""

    endpoint: Called | None = None
    """None for a request that reached none."""
    path: Mapping[str, str] = MappingProxyType({})
    """The values of its path's parameters, by name."""
    principal: str | None = None
    table: object = None
    """Its name, or whatever becomes that as a text."""
    version: int | None = None
    status: int | None = None
    seconds: float = 0.0
    error: str | None = None
    """The kind of it."""
    outcome: str = "ok"
    """Where there is more to say of a success than that it was one."""
    address: str | None = None
    """Of who asks, as this server sees it."""
    subject: object = None
    """What the caller's rights were asked for."""
    denied: bool = False
    """Whether they were not enough, whatever the caller is told."""
    txn_id: str | None = None
    recorded: bool = False
    """Whether the audit log tells of it already."""
    span: Any = None

    def __init__(self, id: bytes, method: str) -> None:
        self.id = id
        self.method = method
        self.started = perf_counter()

    def fields(self) -> dict[str, Any]:
        known: dict[str, Any] = {
            "request_id": self.id.decode("ascii", "replace"),
            "method": self.method,
            "path": None if self.endpoint is None else self.endpoint.template,
            "principal": self.principal,
            "table": self.table_name(),
            "version": self.version,
            "status": self.status,
            "ms": None if self.status is None else round(self.seconds * 1000, 3),
            "error": self.error,
        }
        return {name: value for name, value in known.items() if value is not None}

    def table_name(self) -> str | None:
        if self.table is not None:
            return str(self.table)
        if "table" in self.path:
            return ".".join(self.path[part] for part in ("catalog", "schema", "table") if part in self.path)
        name = self.path.get("full_name")
        return name if name is not None and name.count(".") == 2 else None


class JobAtWork:
    def __init__(self, job: str, span: Any = None) -> None:
        self.job = job
        self.span = span
        self.more: dict[str, Any] = {}

    def fields(self) -> dict[str, Any]:
        return {"job": self.job, **self.more}


CURRENT: ContextVar[AtWork | None] = ContextVar("tidegate_current", default=None)


def note(table: object, version: int | None, outcome: str) -> None:
    """The request at hand is about this table, and this version of it. Called with every commit, so next to free."""
    at_work = CURRENT.get()
    if isinstance(at_work, RequestAtWork):
        at_work.table = table
        at_work.version = version
        at_work.outcome = outcome


def note_question(subject: object, *, denied: bool = False) -> None:
    """What the request at hand needs the caller's rights for."""
    at_work = CURRENT.get()
    if isinstance(at_work, RequestAtWork):
        at_work.subject = subject
        at_work.denied = denied


def note_recorded(version: int | None, txn_id: str | None) -> None:
    """The audit log tells of the request at hand, with this version and transaction."""
    at_work = CURRENT.get()
    if isinstance(at_work, RequestAtWork):
        at_work.recorded = True
        at_work.version = version
        at_work.txn_id = txn_id
