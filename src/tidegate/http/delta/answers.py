"""Load answers, encoded once for each state of a table.

Fast because nothing is said twice: a `Table` never changes, so the answer that was made for it is good as long as that
very object is asked about. When the table moves on, the parts that did not change are kept: the metadata, unless a
commit touched it, and every commit, since a ratified version is never anything else. What a load of many unpublished
commits costs is then what it costs to copy their bytes.

    {"metadata":{...},                      kept until the metadata changes
     "commits":[{8},{7},{6}],               each kept until it is published
     "latest-table-version":8}              made anew with every state
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

import msgspec

from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableId, Version
from tidegate.domain.tables import Table, TableType
from tidegate.http.delta.conversion import from_commit, from_metadata, from_uniform

_encode = msgspec.json.Encoder().encode


@frozen
class _Answer:
    table: Table
    metadata: bytes
    commits: Mapping[Version, bytes]
    """By version, newest first."""
    body: bytes

    @property
    def size(self) -> int:
        return 2 * len(self.body) + 1000


class LoadAnswers:
    """For one event loop. Beyond `bytes_max` the answers that were made longest ago are forgotten."""

    def __init__(self, *, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._answers: OrderedDict[TableId, _Answer] = OrderedDict()

    def of(self, table: Table) -> bytes:
        answer = self._answers.get(table.id)
        if answer is not None and answer.table is table:
            return answer.body
        made = _make(table, answer)
        self._keep(made, answer)
        return made.body

    def _keep(self, made: _Answer, before: _Answer | None) -> None:
        if before is not None:
            self._bytes -= before.size
            del self._answers[before.table.id]
        self._answers[made.table.id] = made
        self._bytes += made.size
        while self._bytes > self._bytes_max:
            _, oldest = self._answers.popitem(last=False)
            self._bytes -= oldest.size


def _make(table: Table, before: _Answer | None) -> _Answer:
    if before is not None and _same_metadata(table, before.table):
        metadata = before.metadata
    else:
        metadata = _encode(from_metadata(table))
    kept: Mapping[Version, bytes] = {} if before is None else before.commits
    # Whose commits are decided on by their owner is shown as external: what is not published is the owner's to tell.
    shown = table.unpublished if table.type is TableType.MANAGED else ()
    commits = {commit.version: kept.get(commit.version) or _encode(from_commit(commit)) for commit in reversed(shown)}
    parts = [b'{"metadata":', metadata, b',"commits":[', b",".join(commits.values()), b"]"]
    if table.uniform is not None:
        parts += [b',"uniform":', _encode(from_uniform(table.uniform))]
    if table.type is TableType.MANAGED:
        parts.append(b',"latest-table-version":%d' % table.latest)
    return _Answer(table, metadata, commits, b"".join([*parts, b"}"]))


def _same_metadata(one: Table, other: Table) -> bool:
    """Whether all that the metadata part shows is the same. Type, location and creation of a table never change."""
    return (
        one.metadata is other.metadata
        and one.revision == other.revision
        and one.updated_at == other.updated_at
        and one.metadata_version == other.metadata_version
        and one.metadata_timestamp == other.metadata_timestamp
    )
