"""What the rules need from the object store: the logs of tables, tables that it holds, and their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tidegate.domain.chain import FileDigest
from tidegate.domain.commits import Commit
from tidegate.domain.files import FoundFile
from tidegate.domain.names import Version
from tidegate.domain.ownership import FoundTable
from tidegate.domain.publishing import Look, Obstacle, Publication, PublishedFile


class DeltaLogs(Protocol):
    """The logs of tables in the object store."""

    async def read_published(self, location: str, version: Version) -> bytes | None:
        """The content of `_delta_log/<version>.json`, None if it is not there."""
        ...

    async def find_published(self, location: str, version: Version) -> PublishedFile | None:
        """What the store says of `_delta_log/<version>.json`, None if it is not there; its content is not read."""
        ...

    async def read_staged(self, location: str, commit: Commit) -> bytes | None:
        """The content of the commit's staged file, None if it is not there."""
        ...

    async def read_head(self, location: str, commit: Commit, *, bytes_max: int) -> bytes | None:
        """The first bytes of the commit's file, staged or published; None if there is neither."""
        ...

    async def verified_sha256(self, location: str, commit: Commit) -> str | None:
        """Of the published file, if it holds the very bytes of the staged one, and of those that were ratified if they
        are known.
        """
        ...

    async def look(self, location: str, commits: Sequence[Commit], staged: Commit) -> Look:
        """What `verified_sha256` says of these commits and `read_staged` of another one, in one turn."""
        ...

    async def published_digests(self, location: str, versions: Sequence[Version]) -> Mapping[Version, FileDigest]:
        """Of the published files of these versions, as far as they are there. Raises Unavailable if the log is not."""
        ...

    async def find_obstacle(
        self, location: str, commit: Commit, contents: Mapping[Version, bytes], *, ahead: bool = False
    ) -> Obstacle | None:
        """Why the published file of this version does not count; if there is none, with `ahead`, why none can be."""
        ...

    async def stage(self, location: str, commits: Sequence[Commit], contents: Mapping[Version, bytes]) -> None:
        """Writes inline commits where staged ones lie, whole and synced. They may be there already."""
        ...

    async def publish(self, location: str, commits: Sequence[Commit], contents: Mapping[Version, bytes]) -> Publication:
        """Puts commits into the log, in order, each only where nothing is, synced and then verified. They are read from
        their staged files, but for those whose content is given.

        What is there already counts if it holds the same bytes. Stops at the first obstacle.
        """
        ...

    async def put_if_absent(self, location: str, version: Version, content: bytes) -> bool:
        """Whether `_delta_log/<version>.json` holds this content, whole and synced: put there now, or before.

        False: something else is there. Raises Unavailable if nothing was put, OutcomeUnknown if it may have been.
        """
        ...

    async def is_put(self, location: str, version: Version, content: bytes) -> bool:
        """Whether `_delta_log/<version>.json` holds this content; it is synced then, whoever has put it there."""
        ...


class FoundTables(Protocol):
    """Tables in the object store that need not be known to the catalog."""

    async def find(self, location: str) -> FoundTable:
        """Raises InvalidRequest if there is none, or its log cannot be read."""
        ...

    async def look(self, location: str) -> FoundTable | str | None:
        """As `find`; a text says why no reader can read the log, None that this server cannot tell."""
        ...

    async def check_writable(self, location: str) -> None:
        """Raises InvalidRequest unless the server can write to the table's log."""
        ...

    async def lies_within(self, location: str, roots: Sequence[str]) -> bool:
        """Whether the log of a table at this location is below one of these places once all links are followed."""
        ...


class TableFiles(Protocol):
    """Files of tables in the object store, whatever they are. Paths are relative to the table's location."""

    async def find(self, location: str, *, below: str = "", deep: bool, limit: int) -> Sequence[FoundFile]:
        """At most `limit` files, in no order; with `deep` those of all folders below. Nothing there: no files."""
        ...

    async def read(self, location: str, path: str, *, bytes_max: int) -> bytes | None:
        """The content of a file; None if it is not there, or larger than that."""
        ...

    async def remove(self, location: str, paths: Sequence[str]) -> None:
        """What is gone already is no error."""
        ...

    async def clear(self, location: str, *, limit: int) -> int:
        """Removes at most `limit` files, whatever they are, and the folders that are empty then, the table's own too:
        how many files. Links are removed, never followed.
        """
        ...

    async def remove_empty_folders(self, location: str) -> None:
        """On stores that have folders: the table's own too, if nothing is left in it."""
        ...

    async def exists(self, location: str) -> bool:
        """Whether there is anything at all."""
        ...

    async def folders(self, location: str) -> Sequence[str]:
        """The names of the folders right below a location."""
        ...
