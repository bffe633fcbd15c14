"""Files in logs that were read and found not to be sound, so that they are not read again until they change."""

from __future__ import annotations

from collections import OrderedDict

from tidegate.domain.names import TableId, Version
from tidegate.domain.publishing import PublishedFile


class RefusedFiles:
    """For one event loop. One for each table; beyond `tables_max` the oldest is forgotten."""

    def __init__(self, *, tables_max: int) -> None:
        self._tables_max = tables_max
        self._files: OrderedDict[TableId, tuple[Version, PublishedFile, str]] = OrderedDict()

    def put(self, id: TableId, version: Version, file: PublishedFile, *, reason: str) -> None:
        self._files[id] = (version, file, reason)
        self._files.move_to_end(id)
        if len(self._files) > self._tables_max:
            self._files.popitem(last=False)

    def has(self, id: TableId, version: Version, file: PublishedFile) -> bool:
        known = self._files.get(id)
        return known is not None and known[:2] == (version, file)

    def reason(self, id: TableId, version: Version) -> str | None:
        """Why the file that was last found as this version is not sound."""
        known = self._files.get(id)
        return known[2] if known is not None and known[0] == version else None
