"""Which version was the latest at a time, by Delta's rule.

The last version that was committed at or before the time. A commit's time is its in-commit timestamp; for versions from
before in-commit timestamps were switched on it is the time of the commit's file, moved forward where it would not rise.
A time after the latest commit is refused as Delta refuses it: nobody knows yet what the table will be then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidegate.client.log.errors import LogDamaged, TimestampNotFound
from tidegate.client.log.folder import LogFolder
from tidegate.client.log.names import commit_name
from tidegate.client.log.segment import Listing

ENABLED = "delta.enableInCommitTimestamps"
ENABLED_SINCE_VERSION = "delta.inCommitTimestampEnablementVersion"
ENABLED_SINCE_TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"


def in_commit_timestamps_since(configuration: Mapping[str, str]) -> int | None:
    """The first version whose commit tells its time; None when none does."""
    if configuration.get(ENABLED, "").lower() != "true":
        return None
    return int(configuration.get(ENABLED_SINCE_VERSION, "0"))


def version_at(time_ms: int, log: LogFolder, *, latest: int, configuration: Mapping[str, str]) -> int:
    """The version at a time; `configuration` is that of the latest version."""
    since = in_commit_timestamps_since(configuration)
    if since is None:
        return _by_files(time_ms, log.listing(), end=latest + 1, is_latest=True)
    kept = max((commit.version for commit in log.ratified.commits if commit.timestamp <= time_ms), default=latest)
    if kept < latest:
        return kept
    listing = log.listing()
    earliest = _earliest(listing, log)
    if since > earliest and time_ms < int(configuration.get(ENABLED_SINCE_TIMESTAMP, "0")):
        return _by_files(time_ms, listing, end=since, is_latest=False)
    return _search(time_ms, max(since, earliest), latest, _timestamps(log))


def _search(time_ms: int, first: int, last: int, timestamp: Callable[[int], int]) -> int:
    """The last version of a rising sequence that is not after the time."""
    if (told := timestamp(first)) > time_ms:
        raise TimestampNotFound(time_ms, version=first, version_timestamp=told)
    if (told := timestamp(last)) < time_ms:
        raise TimestampNotFound(time_ms, version=last, version_timestamp=told)
    low, high = first, last
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if timestamp(middle) <= time_ms else (low, middle - 1)
    return low


def _timestamps(log: LogFolder) -> Callable[[int], int]:
    def timestamp(version: int) -> int:
        told = log.in_commit_timestamp(version)
        if told is None:
            raise LogDamaged(commit_name(version), "it should tell when it was committed, and does not")
        return told

    return timestamp


def _earliest(listing: Listing, log: LogFolder) -> int:
    """The first version that can be read and whose commit is there to tell its time."""
    start = listing.earliest or 0
    kept = {commit.version for commit in log.ratified.commits}
    return min((version for version in {*listing.commits, *kept} if version >= start), default=start)


def _by_files(time_ms: int, listing: Listing, *, end: int, is_latest: bool) -> int:
    """The search by the times of files, in versions before `end`; `is_latest` when the last of them is the latest."""
    start = listing.earliest or 0
    versions = sorted(version for version in listing.commits if start <= version < end)
    if not versions:
        raise LogDamaged("_delta_log", "it holds no commit of that time")
    times: dict[int, int] = {}
    at = -1
    for version in versions:
        at = times[version] = max(listing.modified_ms[version], at + 1)
    found = max((version for version in versions if times[version] <= time_ms), default=None)
    if found is None or (is_latest and found == end - 1 and times[found] < time_ms):
        nearest = versions[0] if found is None else found
        raise TimestampNotFound(time_ms, version=nearest, version_timestamp=times[nearest])
    return found
