"""The audit log: who asked for what, from where, and whether it was done; one record for each decision.

    allowed    what was changed: written in the transaction of what it tells of, so neither is there without the other
    refused    by the rights, a rule or a race: nothing has changed, and the record is written a moment later

Records are added and, when they are old enough, removed from the front; never changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NewType

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen

AuditId = NewType("AuditId", int)
MESSAGE_MAX = 500
"""Characters of a refusal that are kept."""
TEXT_MAX = 300
"""Characters of what else a caller had a say in."""


def said_transaction(commit_info: Mapping[str, Any] | None) -> str | None:
    """The txnId of a commit, if it says one that is worth keeping."""
    said = None if commit_info is None else commit_info.get("txnId")
    return said if isinstance(said, str) and 0 < len(said) <= TEXT_MAX and "\0" not in said else None


@frozen
class Origin:
    """Where a request comes from, and what it calls."""

    operation: str
    request_id: str
    address: str | None


@frozen
class AuditRecord:
    at: int
    principal: str | None
    """None for who is not known."""
    operation: str
    """The name of the endpoint, as in the OpenAPI document."""
    subject: str | None
    """The full name of a table or of what else it is about."""
    allowed: bool
    reason: str | None = None
    """The kind of the refusal; `replay` for what had happened before."""
    message: str | None = None
    request_id: str | None = None
    address: str | None = None
    version: int | None = None
    txn_id: str | None = None
    times: int = 1
    """How often, where several refusals of one kind are told together."""


@frozen
class NumberedRecord:
    id: AuditId
    record: AuditRecord


@frozen
class AuditFilter:
    principal: str | None = None
    subject: str | None = None
    """A table, or a schema or catalog with all that is in it."""
    operation: str | None = None
    allowed: bool | None = None
    since: int | None = None
    until: int | None = None

    def check(self) -> None:
        for moment in (self.since, self.until):
            if moment is not None and not 0 <= moment < 2**62:
                raise InvalidRequest(f"{moment} is no moment. Give milliseconds since the epoch.")


@frozen
class AuditPage:
    """The newest first. What a filter passed over is passed over for good: `next_before` goes on behind it."""

    records: tuple[NumberedRecord, ...]
    next_before: AuditId | None
