"""What can be wrong with a log, or with what is asked of it.

LogError
├── VersionNotFound         no such version: not ratified yet, or no longer to be had
├── TimestampNotFound       no version was the latest at that time
├── VersionMissing          a commit between the first and the last file is not there
├── LogDamaged              a file of the log, or a deletion vector, is not what it should be
├── UnsupportedTable        reading the table needs what this client does not know
├── ColumnNotFound          a scan names a column that the table does not have
├── InvalidFilter           a filter that cannot be understood, or does not fit its column
├── ArrowMissing            the part of the client that needs pyarrow is used without it
└── PandasMissing           a DataFrame is asked for without pandas
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.client.errors import TidegateError


class LogError(TidegateError):
    """Something in the way between the files of a table and what was asked for."""


class VersionNotFound(LogError):
    """Facts: `version` as asked for, `earliest` and `latest` that can be read (None where it is not known)."""

    def __init__(self, version: int, *, earliest: int | None = None, latest: int | None = None) -> None:
        self.version, self.earliest, self.latest = version, earliest, latest
        if latest is not None and version > latest:
            told = f"Version {version} does not exist: the latest version is {latest}."
        elif earliest is not None:
            told = f"Version {version} can no longer be read: ask for version {earliest} or a later one."
        else:
            told = f"Version {version} does not exist: versions are counted from 0."
        super().__init__(told)


class TimestampNotFound(LogError):
    """Facts: `timestamp` as asked for and the `version` nearest to it with its own `version_timestamp`."""

    def __init__(self, timestamp: int, *, version: int, version_timestamp: int) -> None:
        self.timestamp, self.version, self.version_timestamp = timestamp, version, version_timestamp
        if timestamp < version_timestamp:
            told = f"The earliest version that can be read, {version}, was committed at {version_timestamp} ms"
            told += f", after {timestamp} ms: ask for a later time."
        else:
            told = f"The latest version, {version}, was committed at {version_timestamp} ms, before {timestamp} ms: "
            told += "ask for an earlier time, or for no time to get the latest version."
        super().__init__(told)


class VersionMissing(LogError):
    """Fact: `version`, whose commit the table cannot be read without."""

    def __init__(self, version: int, location: str) -> None:
        self.version = version
        super().__init__(
            f"The commit of version {version} is missing from {location}/_delta_log, and no checkpoint covers it: "
            "restore the file, or ask whoever keeps the table."
        )


class LogDamaged(LogError):
    """Facts: `path` of the file and the `reason` it cannot be used."""

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path} cannot be used: {reason}.")


class UnsupportedTable(LogError):
    """Fact: `features` that reading the table would need."""

    def __init__(self, features: Sequence[str], told: str) -> None:
        self.features = tuple(features)
        super().__init__(told)


class ColumnNotFound(LogError):
    """Facts: the `column` and the `columns` that there are."""

    def __init__(self, column: str, columns: Sequence[str]) -> None:
        self.column, self.columns = column, tuple(columns)
        super().__init__(f"The table has no column {column!r}: it has {', '.join(map(repr, columns))}.")


class InvalidFilter(LogError):
    """A filter that cannot be understood."""


class ArrowMissing(LogError):
    def __init__(self, purpose: str) -> None:
        super().__init__(f"{purpose} needs pyarrow: pip install 'tidegate[client]'.")


class PandasMissing(LogError):
    def __init__(self) -> None:
        super().__init__("DataFrames need pandas: pip install 'tidegate[pandas]'.")
