"""Commits that the catalog learns from the log, on tables whose commits are put there.

The file is all there is: what it says of the table is what the table is, if it is sound. A file that is not sound is
nobody's commit; the table stays as it was.

    latest 4, and 5.json appears     its timestamp is later than that of 4, its metadata keeps all rules   ->   learned
                                     anything else                                                         ->   an alarm
"""

from __future__ import annotations

from tidegate.domain.commits import Commit, check_timestamp, published_name
from tidegate.domain.desired_metadata import metadata_actions
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.inline_commits import transaction_of
from tidegate.domain.names import Version
from tidegate.domain.publishing import PublishedFile
from tidegate.domain.table_actions import TableActions, check_storable, parse_table_actions, unsound
from tidegate.domain.tables import Table
from tidegate.domain.uniform import is_iceberg_enabled
from tidegate.domain.updates import Action, AddCommit, apply_metadata


@frozen
class LearnedCommit:
    actions: tuple[Action, ...]
    txn_id: str | None
    """By which an append that had left its version open is known again."""


def learned_commit(table: Table, version: Version, content: bytes, file: PublishedFile) -> LearnedCommit:
    """What the published file of a table's next version does to it. Raises InvalidRequest if it is not sound."""
    what = f"version {version} in the log"
    said = parse_table_actions(content, what=what)
    check_storable(said, what=what)
    timestamp = _timestamp(said, what)
    if timestamp <= table.latest_timestamp:
        raise InvalidRequest(
            f"The inCommitTimestamp of version {version} in the log is {timestamp}, but version {table.latest} has "
            f"{table.latest_timestamp}. In-commit timestamps must rise."
        )
    changes = metadata_actions(table.metadata, None, said)
    for change in changes:
        change.check()
    after = apply_metadata(table.metadata, changes, in_log=True)
    # What was converted to Iceberg is told by requests only: what was told last stays true.
    uniform = table.uniform if is_iceberg_enabled(after.properties) else None
    commit = Commit(version, timestamp, published_name(version), len(content), max(file.modified_at, 1))
    return LearnedCommit((AddCommit(commit, uniform), *changes), _transaction(said))


def _transaction(said: TableActions) -> str | None:
    try:
        return None if said.commit_info is None else transaction_of(said.commit_info)
    except InvalidRequest:
        return None


def _timestamp(said: TableActions, what: str) -> int:
    if said.commit_info is None:
        raise InvalidRequest(f"{what[0].upper()}{what[1:]} has no commitInfo action. Write it first.")
    timestamp = said.commit_info.get("inCommitTimestamp")
    if type(timestamp) is not int:
        raise unsound(what, "inCommitTimestamp")
    check_timestamp(f"inCommitTimestamp in {what}", timestamp)
    return timestamp
