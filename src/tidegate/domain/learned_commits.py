"""Commits that the catalog learns from the log, on tables whose commits are put there.

The file is all there is: what it says of the table is what the table is, if it is sound. A file that is not sound is
nobody's commit; the table stays as it was.

    latest 4, and 5.json appears     its timestamp is later than that of 4, its metadata keeps all rules   ->   learned
                                     anything else                                                         ->   an alarm
"""

from __future__ import annotations

from tidegate.domain.columns import log_schema
from tidegate.domain.commits import Commit, check_timestamp, published_name
from tidegate.domain.desired_metadata import metadata_actions
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.inline_commits import transaction_of
from tidegate.domain.json_values import same_json
from tidegate.domain.names import Version
from tidegate.domain.protocol import ROW_TRACKING_DOMAIN
from tidegate.domain.publishing import PublishedFile
from tidegate.domain.stated_properties import own_properties
from tidegate.domain.table_actions import SHOWN_DOMAINS, TableActions, check_storable, parse_table_actions, unsound
from tidegate.domain.tables import Table, TableMetadata
from tidegate.domain.uniform import is_iceberg_enabled
from tidegate.domain.updates import Action, AddCommit, apply_metadata

_STAGED = "the staged commit"


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


def check_to_put(content: bytes, commit: Commit, *, before: TableMetadata, after: TableMetadata) -> None:
    """That the file says what the request says: others will learn of the commit from the file alone.

    `after` is what the request makes of the table's metadata.
    """
    if len(content) != commit.file_size:
        raise InvalidRequest(
            f"The staged file {commit.file_name} has {len(content)} bytes, not {commit.file_size}. "
            "Write it whole before you propose it."
        )
    said = parse_table_actions(content, what=_STAGED)
    check_storable(said, what=_STAGED)
    timestamp = _timestamp(said, _STAGED)
    if timestamp != commit.timestamp:
        raise InvalidRequest(
            f"The inCommitTimestamp in the staged commit is {timestamp}, but {commit.timestamp} is proposed. "
            "Send what the file says."
        )
    learned = apply_metadata(before, metadata_actions(before, None, said), in_log=True)
    part = _difference(after, learned)
    if part is not None:
        raise InvalidRequest(
            f"The request and the staged commit lead to different {part}. This table's commits are put into the log, "
            "where the file alone counts. Send what the file says."
        )


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


def _difference(one: TableMetadata, other: TableMetadata) -> str | None:
    """The part of what lives in the log that differs; not the mark of row tracking, which moves with the data."""
    if one.protocol != other.protocol:
        return "protocols"
    if not same_json(log_schema(one.columns), log_schema(other.columns)):
        return "columns"
    if one.partition_columns != other.partition_columns:
        return "partition columns"
    if own_properties(one.properties) != own_properties(other.properties):
        return "properties"
    for domain in SHOWN_DOMAINS:
        if domain != ROW_TRACKING_DOMAIN and not same_json(one.domains.get(domain), other.domains.get(domain)):
            return f"metadata of the domain {domain}"
    return None
