"""What can be wrong with a table: the catalog, the log and the store compared, each finding a sentence.

Pure: whoever looks gathers the facts, and `examine` says what they mean. A finding is *safe to fix* if the fix only
completes what was ratified or removes what can never be needed; everything else is explained and left to a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from tidegate.domain.columns import log_schema
from tidegate.domain.commits import Commit, published_name
from tidegate.domain.frozen import frozen
from tidegate.domain.json_values import same_json
from tidegate.domain.names import Version
from tidegate.domain.ownership import Change, Promise
from tidegate.domain.protocol import ROW_TRACKING_DOMAIN, Protocol
from tidegate.domain.publishing import AlarmReason, Obstacle
from tidegate.domain.table_actions import SHOWN_DOMAINS, LogMetadata
from tidegate.domain.tables import Table, TableMetadata, is_derived_property

SHOWN_MAX = 5
"""Names that a sentence lists before it says how many more there are."""


class Problem(StrEnum):
    UNPUBLISHED = "unpublished_tail"
    OBSTACLE = "published_file_with_other_bytes"
    STAGED = "staged_file_gone_or_changed"
    MISSING = "published_file_missing"
    UNKNOWN_VERSION = "published_file_never_ratified"
    LEFTOVERS = "staged_leftovers"
    METADATA = "metadata_differs_from_log"
    NO_FOLDER = "table_folder_vanished"
    UNREADABLE = "log_unreadable"
    EXPIRED_STAGING = "expired_staging_tables"
    ORPHAN = "orphaned_folder"
    PROMISE = "unfinished_change_of_ownership"


@frozen
class Finding:
    problem: Problem
    subject: str
    """The full name of a table, or a location."""
    message: str
    fixable: bool


@frozen
class LogState:
    """What the log says of the table at the latest version; None where no file that can be read says it."""

    protocol: Protocol | None
    metadata: LogMetadata | None
    domains: Mapping[str, Any]
    complete: bool
    """Whether every version was read: only then a domain that was not found is not there."""


@frozen
class Facts:
    """About a managed table whose folder is there."""

    published: frozenset[Version]
    """Versions that have a file in the log."""
    obstacles: Sequence[Obstacle]
    """Of unpublished commits."""
    altered: Sequence[Version] = ()
    """Versions whose published file was verified once, and holds other bytes now."""
    restorable: Sequence[Commit] = ()
    """Commits that count as published, whose file in the log is gone and whose staged file is still there."""
    leftovers: Sequence[str] = ()
    """Staged files that can never be needed again."""
    log: LogState | None = None
    unreadable: str | None = None
    """Why the log could not be read."""
    checkpoints: frozenset[Version] = frozenset()


def examine(table: Table, facts: Facts) -> list[Finding]:
    """What is wrong, the worst first."""
    return [
        *_obstacles(table, facts),
        *_altered(table, facts),
        *_missing(table, facts),
        *_never_ratified(table, facts),
        *_metadata(table, facts),
        *_unpublished(table, facts),
        *_leftovers(table, facts),
    ]


def vanished(table: Table) -> Finding:
    return Finding(
        Problem.NO_FOLDER,
        str(table.name),
        f"The folder of {table.name}, {table.location}, is not there: its data and its log are lost, or the store is "
        "not mounted. Mount it or restore it from a backup; the catalog keeps the table. If it is gone for good, drop "
        "the table.",
        fixable=False,
    )


def orphaned(location: str, *, empty: bool) -> Finding:
    what = "an empty folder" if empty else "a folder with files"
    todo = "It can go." if empty else "Look at it, and remove it if nobody needs it."
    return Finding(
        Problem.ORPHAN,
        location,
        f"{location} is {what} in the storage of managed tables, but no table, dropped table or staging table is "
        f"there. {todo}",
        fixable=empty,
    )


def unfinished(promise: Promise) -> Finding:
    if promise.change is Change.OWN:
        return Finding(
            Problem.PROMISE,
            promise.location,
            f"A client wanted to make the catalog the commit owner of the table at {promise.location}, with version "
            f"{promise.version}, and has not done so. Any commit to it ends that; until then {promise.name.parent} "
            "stays.",
            fixable=False,
        )
    return Finding(
        Problem.PROMISE,
        promise.location,
        f"{promise.name} at {promise.location} is being {promise.doing}, and that has not come to an end yet. It can "
        "be finished, or ended, now.",
        fixable=True,
    )


def expired_staging(count: int) -> Finding:
    return Finding(
        Problem.EXPIRED_STAGING,
        "staging tables",
        f"{count} staging tables were never finished and have expired. They and their files can go.",
        fixable=True,
    )


def metadata_differences(ours: TableMetadata, log: LogState) -> list[str]:
    """The parts that the catalog and the log do not agree on. What the log does not say is not compared."""
    differences: list[str] = []
    if log.protocol is not None and log.protocol != ours.protocol:
        differences.append("the protocol")
    if log.metadata is not None:
        if not same_json(log_schema(log.metadata.columns), log_schema(ours.columns)):
            differences.append("the columns")
        if log.metadata.partition_columns != ours.partition_columns:
            differences.append("the partition columns")
        keys = sorted({*log.metadata.properties, *ours.properties})
        differences += [
            f"the property {key}"
            for key in keys
            if not is_derived_property(key) and log.metadata.properties.get(key) != ours.properties.get(key)
        ]
    if log.complete:
        # The mark of row tracking moves with the data, and clients do not tell the catalog each time.
        differences += [
            f"the domain {domain}"
            for domain in SHOWN_DOMAINS
            if domain != ROW_TRACKING_DOMAIN and not same_json(log.domains.get(domain), ours.domains.get(domain))
        ]
    return differences


def _obstacles(table: Table, facts: Facts) -> list[Finding]:
    return [
        Finding(_kind(obstacle), str(table.name), f"{table.name}: {obstacle.message}", fixable=False)
        for obstacle in facts.obstacles
    ]


def _kind(obstacle: Obstacle) -> Problem:
    staged = obstacle.reason in {AlarmReason.STAGED_FILE_GONE, AlarmReason.STAGED_FILE_CHANGED}
    return Problem.STAGED if staged else Problem.OBSTACLE


def _altered(table: Table, facts: Facts) -> list[Finding]:
    if not facts.altered:
        return []
    verb = "holds" if len(facts.altered) == 1 else "hold"
    return [
        Finding(
            Problem.OBSTACLE,
            str(table.name),
            f"{_listed([published_name(v) for v in facts.altered])} in the log of {table.name} {verb} other bytes than "
            "were ratified and published: somebody has changed the log since. Restore from a backup of the store, or, "
            "while it is there, from the staged file.",
            fixable=False,
        )
    ]


def _missing(table: Table, facts: Facts) -> list[Finding]:
    """Published versions without a file, newer than what a clean-up of the log may have removed."""
    oldest_needed = max(facts.checkpoints, default=min(facts.published, default=Version(0)))
    gone = [Version(v) for v in range(oldest_needed, table.published + 1) if Version(v) not in facts.published]
    if not gone:
        return []
    restorable = {commit.version for commit in facts.restorable}
    fixable = restorable.issuperset(gone)
    todo = (
        "Their staged files are still there, from which they can be restored."
        if fixable
        else "Restore them from a backup of the store: readers cannot read the table without them."
    )
    return [
        Finding(
            Problem.MISSING,
            str(table.name),
            f"{table.name} is published up to version {table.published}, but {_files(gone)} missing in the log. {todo}",
            fixable,
        )
    ]


def _never_ratified(table: Table, facts: Facts) -> list[Finding]:
    beyond = sorted(version for version in facts.published if version > table.latest)
    if not beyond:
        return []
    verb = "is" if len(beyond) == 1 else "are"
    return [
        Finding(
            Problem.UNKNOWN_VERSION,
            str(table.name),
            f"{_listed([published_name(v) for v in beyond])} {verb} in the log of {table.name}, whose latest ratified "
            f"version is {table.latest}: somebody wrote to the log without the catalog. Readers may take it for part "
            "of the table, and the next commits cannot be published: move it away.",
            fixable=False,
        )
    ]


def _metadata(table: Table, facts: Facts) -> list[Finding]:
    name = str(table.name)
    if facts.altered:
        return []  # what such a log says is nobody's word
    if facts.unreadable is not None:
        text = f"The log of {name} cannot be read: {facts.unreadable}"
        return [Finding(Problem.UNREADABLE, name, text, fixable=False)]
    if facts.log is None:
        return []
    differences = metadata_differences(table.metadata, facts.log)
    if not differences:
        return []
    return [
        Finding(
            Problem.METADATA,
            name,
            f"The catalog and the log of {name} differ in {_listed(differences)} at version {table.latest}. The log "
            "is what engines use: change the table once more through an engine, so that both say the same.",
            fixable=False,
        )
    ]


def _unpublished(table: Table, facts: Facts) -> list[Finding]:
    """Those that can be: nothing is published after an obstacle."""
    stops = min((obstacle.version for obstacle in facts.obstacles), default=Version(table.latest + 1))
    waiting = [commit.version for commit in table.unpublished if commit.version < stops]
    if not waiting:
        return []
    which = f"version {waiting[0]} is" if len(waiting) == 1 else f"versions {waiting[0]} to {waiting[-1]} are"
    return [
        Finding(
            Problem.UNPUBLISHED,
            str(table.name),
            f"{table.name}: {which} ratified and not published yet. Readers of the catalog see them; those of the "
            "file system do not. They can be published now.",
            fixable=True,
        )
    ]


def _leftovers(table: Table, facts: Facts) -> list[Finding]:
    if not facts.leftovers:
        return []
    count = len(facts.leftovers)
    files = "1 staged file" if count == 1 else f"{count} staged files"
    text = f"{table.name} has {files} that lost a race, or were published long ago, and can go."
    return [Finding(Problem.LEFTOVERS, str(table.name), text, fixable=True)]


def _files(versions: Sequence[Version]) -> str:
    return f"{_listed([published_name(v) for v in versions])} {'is' if len(versions) == 1 else 'are'}"


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    shown = every[:SHOWN_MAX]
    more = f" and {len(every) - len(shown)} more" if len(every) > len(shown) else ""
    return ", ".join(shown) + more
