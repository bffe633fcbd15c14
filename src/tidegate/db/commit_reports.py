"""Commit reports in the database: one for each version of a table, and of the newest versions only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from tidegate.db.schema import commit_reports
from tidegate.domain.metrics import CommitReport, FileSizeHistogram, KeptReport
from tidegate.domain.names import TableId, Version


class SqlCommitReports:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def put(self, id: TableId, kept: KeptReport, *, history_max: int) -> None:
        of_table = commit_reports.c.table_id == id
        row = {
            "table_id": id,
            "version": kept.version,
            "reported_at": kept.reported_at,
            "reported_by": kept.reported_by,
            "document": _encode(kept.report),
        }
        self._connection.execute(commit_reports.delete().where(of_table, commit_reports.c.version == kept.version))
        self._connection.execute(commit_reports.insert().values(**row))
        newest = sa.select(commit_reports.c.version).where(of_table).order_by(commit_reports.c.version.desc())
        oldest_kept = self._connection.scalar(newest.offset(history_max - 1).limit(1))
        if oldest_kept is not None:
            self._connection.execute(commit_reports.delete().where(of_table, commit_reports.c.version < oldest_kept))

    def page(self, id: TableId, *, before: Version | None, limit: int) -> Sequence[KeptReport]:
        query = sa.select(commit_reports).where(commit_reports.c.table_id == id)
        if before is not None:
            query = query.where(commit_reports.c.version < before)
        rows = self._connection.execute(query.order_by(commit_reports.c.version.desc()).limit(limit))
        return [_kept(row) for row in rows]


def _kept(row: sa.Row[Any]) -> KeptReport:
    return KeptReport(Version(row.version), row.reported_at, row.reported_by, _decode(row.document))


def _encode(report: CommitReport) -> str:
    said = {name: value for name, value in asdict(report).items() if value is not None}
    return json.dumps(said, separators=(",", ":"))


def _decode(document: str) -> CommitReport:
    said: dict[str, Any] = json.loads(document)
    histogram = said.pop("histogram", None)
    return CommitReport(
        version=said.pop("version", None),
        histogram=None if histogram is None else FileSizeHistogram(**histogram),
        **said,
    )
