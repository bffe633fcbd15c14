"""What a transaction has read of a table, as its author says it, and as other commits are held against it.

    Reads()                                         nothing: a blind append
    Reads(whole_table=True)                         everything
    Reads(where={"country": "is"})                  one partition
    Reads(where=[("day", ">=", date(2026, 1, 1))])  what a scan with this filter reads
    Reads(where=lambda file: ...)                   the files for which it is true
    Reads(files=[...], app_ids=["loader"])          these files, and how far an application has come

What was read by a filter is twofold, as in Delta: the files that it found, which nobody may have removed, and the
partitions that it reaches, to which nobody may have added a file. Conditions on other columns do not narrow the second:
what a new file holds is not known well enough.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from tidegate.client.errors import InvalidCommit
from tidegate.client.log.actions import Add
from tidegate.client.log.errors import ColumnNotFound
from tidegate.client.log.snapshot import Snapshot
from tidegate.client.log.storage import Files

Predicate = Callable[[Add], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """`where`: values of partition columns, a filter as `scan` takes it, or a function of a data file.

    `files`: data files of the snapshot, or their paths. `app_ids`: applications whose progress was looked at.
    `domains`: metadata domains that were looked at.
    """

    whole_table: bool = False
    where: Mapping[str, Any] | Iterable[Sequence[Any]] | Predicate | Any = None
    files: Collection[Add | str] = ()
    app_ids: Collection[str] = ()
    domains: Collection[str] = ()

    def __post_init__(self) -> None:
        for name in ("files", "app_ids", "domains"):
            if isinstance(getattr(self, name), str):
                raise ValueError(f"{name} of Reads is a list: say {name}=[{getattr(self, name)!r}].")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSet:
    """Reads that were understood."""

    whole_table: bool = False
    reaches: Predicate | None = None
    """Whether a file that somebody adds should have been read; None: nothing was looked for."""
    paths: frozenset[str] = frozenset()
    app_ids: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()

    @property
    def has_files(self) -> bool:
        return self.whole_table or self.reaches is not None or bool(self.paths)


def understood(reads: Reads, snapshot: Snapshot, storage: Files) -> ReadSet:
    """Needs pyarrow for a filter; for a function, or without `where`, it does not."""
    reaches, found = (None, ()) if reads.where is None else _looked_for(reads.where, snapshot, storage)
    named = frozenset(file if isinstance(file, str) else file.path for file in reads.files)
    strange = sorted(named - {file.path for file in snapshot.files})
    if strange:
        raise InvalidCommit(f"Reads has the file {strange[0]}, which is not part of version {snapshot.version}.")
    return ReadSet(
        whole_table=reads.whole_table,
        reaches=reaches,
        paths=named | {file.path for file in found},
        app_ids=frozenset(reads.app_ids),
        domains=frozenset(reads.domains),
    )


def _looked_for(where: Any, snapshot: Snapshot, storage: Files) -> tuple[Predicate, Sequence[Add]]:
    if callable(where):
        reaches = _on_the_safe_side(cast("Predicate", where))
        return reaches, [file for file in snapshot.files if reaches(file)]
    from tidegate.client.data.scan import scan  # Needs pyarrow.

    filter = _conditions(cast("Mapping[str, Any]", where), snapshot) if isinstance(where, Mapping) else where
    scanned = scan(snapshot, storage, None, filter)
    return scanned.may_reach, scanned.files


def _conditions(values: Mapping[str, Any], snapshot: Snapshot) -> list[tuple[Any, ...]]:
    strange = [name for name in values if name not in snapshot.partition_columns]
    if strange:
        raise ColumnNotFound(strange[0], snapshot.partition_columns, kind="partition column")
    return [(name, "is null") if value is None else (name, "=", value) for name, value in values.items()]


def _on_the_safe_side(wanted: Predicate) -> Predicate:
    """A file that the function cannot judge counts as read."""

    def reaches(file: Add) -> bool:
        try:
            return bool(wanted(file))
        except Exception:
            return True

    return reaches
