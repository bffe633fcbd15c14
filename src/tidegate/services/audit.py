"""What is told of every decision: in the transaction of what it changes, or a moment later if it changes nothing.

    a commit           its group writes the records of all of its commits with their rows
    any other write    the record is added to its transaction
    a refusal          has no transaction: it waits here, in bounds, and is written with others once a second
    a read             is told if it was refused; if allowed only where the setting says so

What waits here is lost when the server is killed, and what does not fit is left out; both never hold up anybody, and
what is left out is counted.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from tidegate.domain.audit import MESSAGE_MAX, TEXT_MAX, AuditRecord, Origin
from tidegate.domain.errors import NotAuthenticated, TidegateError, TooManyRequests
from tidegate.domain.ports import Clock, Database
from tidegate.telemetry.current import CURRENT, AtWork, RequestAtWork

STRANGERS_MAX = 1000
"""Addresses whose requests without a valid token are counted apart at a time; the others are counted together."""
_READS = frozenset({"GET", "HEAD"})


class Lost(Protocol):
    """A counter."""

    value: float


def origin() -> Origin | None:
    """Of the request at hand; None for background work."""
    request = CURRENT.get()
    if not isinstance(request, RequestAtWork):
        return None
    return Origin(_operation(request), _request_id(request), request.address)


def record_of_write(at_work: AtWork | None, *, clock: Clock) -> AuditRecord | None:
    """Of a request that changes something; None for background work, and for what a read does on its way."""
    if not isinstance(at_work, RequestAtWork) or at_work.method in _READS or at_work.endpoint is None:
        return None
    return _record(at_work, at=clock(), allowed=True)


@dataclass(slots=True)
class Audit:
    """For one event loop."""

    clock: Clock
    lost: Lost
    """Records that did not fit."""
    waiting_max: int
    reads: bool = False
    lines_to: str = ""
    """`stdout`, a file, or nothing."""
    _rows: list[AuditRecord] = field(default_factory=list[AuditRecord])
    _strangers: dict[str | None, AuditRecord] = field(default_factory=dict[str | None, AuditRecord])
    _lines: list[AuditRecord] = field(default_factory=list[AuditRecord])

    def decided(self, request: RequestAtWork, error: TidegateError | None) -> None:
        """Called with every answer, so next to free where there is nothing to tell."""
        if error is None:
            if request.method in _READS and not self.reads:
                return
            if request.recorded and not self.lines_to:
                return
        elif not _is_decision(request, error):
            return
        if isinstance(error, NotAuthenticated):
            self._count_stranger(request, error)
            return
        record = _record(request, at=self.clock(), allowed=error is None, error=error)
        if not request.recorded or error is not None:
            self._wait(self._rows, record)
        if self.lines_to:
            self._wait(self._lines, record)

    async def flush(self, database: Database) -> None:
        """Raises Unavailable if the database fails: what fits is kept for the next time."""
        strangers = list(self._strangers.values())
        self._strangers = {}
        rows, self._rows = [*self._rows, *strangers], []
        lines, self._lines = [*self._lines, *(strangers if self.lines_to else [])], []
        if lines:
            await _write_lines(self.lines_to, lines)
        if rows:
            try:
                await database.write(lambda uow: uow.audit.add(rows))
            except TidegateError:
                later, self._rows = self._rows, []
                for record in [*rows, *later]:
                    self._wait(self._rows, record)
                raise

    def _wait(self, where: list[AuditRecord], record: AuditRecord) -> None:
        if len(where) < self.waiting_max:
            where.append(record)
        else:
            self.lost.value += 1

    def _count_stranger(self, request: RequestAtWork, error: TidegateError) -> None:
        """Whoever has no token can ask ten thousand times a second: that is one record, with a number."""
        known = request.address in self._strangers or len(self._strangers) < STRANGERS_MAX
        address = request.address if known else None
        before = self._strangers.get(address)
        if before is None:
            record = _record(request, at=self.clock(), allowed=False, error=error)
            self._strangers[address] = replace(record, address=address)
        else:
            self._strangers[address] = replace(before, times=before.times + 1)


def _is_decision(request: RequestAtWork, error: TidegateError) -> bool:
    """What the server has no time for, or does not serve, was not decided on."""
    if isinstance(error, NotAuthenticated):
        return True
    if request.endpoint is None or isinstance(error, TooManyRequests):
        return False
    return request.method not in _READS or request.denied


def _record(request: RequestAtWork, *, at: int, allowed: bool, error: TidegateError | None = None) -> AuditRecord:
    told = None if error is None else type(error).__name__
    return AuditRecord(
        at=at,
        principal=_short(request.principal),
        operation=_operation(request),
        subject=_short(_subject(request)),
        allowed=allowed,
        reason="replay" if told is None and request.outcome == "replay" else told,
        message=None if error is None else error.message[:MESSAGE_MAX],
        request_id=_request_id(request),
        address=request.address,
        version=request.version,
        txn_id=request.txn_id,
    )


def _subject(request: RequestAtWork) -> str | None:
    if request.table is not None or "table" in request.path:
        return request.table_name()
    if request.subject is not None:
        return str(request.subject)
    return ".".join(request.path.values()) or None


def _operation(request: RequestAtWork) -> str:
    return "authenticate" if request.endpoint is None else request.endpoint.name


def _request_id(request: RequestAtWork) -> str:
    return request.id.decode("ascii", "replace")


def _short(text: str | None) -> str | None:
    return None if text is None else text.replace("\0", "")[:TEXT_MAX]


# Lines


async def _write_lines(to: str, records: list[AuditRecord]) -> None:
    text = "".join(json.dumps(_told(record), separators=(",", ":")) + "\n" for record in records)
    await asyncio.to_thread(_append, to, text)


def _told(record: AuditRecord) -> Mapping[str, Any]:
    fields = {name: value for name, value in asdict(record).items() if value is not None}
    if fields["times"] == 1:
        del fields["times"]
    return fields


def _append(to: str, text: str) -> None:
    if to == "stdout":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    # In one go: several servers may append to one file.
    with open(to, "ab", buffering=0) as file:
        file.write(text.encode())
