"""What the audit log and the hash chains need from the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tidegate.domain.audit import AuditFilter, AuditId, AuditPage, AuditRecord
from tidegate.domain.chain import Link
from tidegate.domain.names import TableId, Version


class AuditLog(Protocol):
    """Records are added, read, and removed from the front; nothing else can be done to them."""

    def add(self, records: Sequence[AuditRecord]) -> None: ...
    def page(self, wanted: AuditFilter, *, before: AuditId | None, limit: int) -> AuditPage:
        """The newest first; looks at a bounded number of records, wanted or not."""
        ...

    def oldest(self, *, limit: int) -> Sequence[tuple[AuditId, int]]:
        """With their moments."""
        ...

    def remove_up_to(self, id: AuditId) -> int:
        """How many."""
        ...


class Chains(Protocol):
    """The hash chains of tables."""

    def begin(self, id: TableId, link: Link) -> None:
        """With the commit by which the catalog began to decide on the table."""
        ...

    def first(self, id: TableId) -> Link | None:
        """What it began with; None for a table that is older than the chain."""
        ...

    def links(self, id: TableId, *, after: Version, limit: int) -> Sequence[Link]:
        """The ratified commits after a version, oldest first."""
        ...
