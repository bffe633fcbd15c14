"""Which staged commit files may go.

    version   latest 9, published 7                                          older than the retention
    1 .. 7    published and verified: the staged file, the winner's or not, has done its work     goes
    8, 9      the ratified one is the only copy of its commit                                     stays
    8, 9      another one lost the race                                                           goes
    10 ..     may be proposed any moment                                                          stays

Moments are those of the store: when a file was last changed.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.domain.files import FoundFile
from tidegate.domain.log_files import LogFile, LogFileKind, parse_log_file
from tidegate.domain.tables import Table


def staged_files_to_remove(table: Table, files: Iterable[FoundFile], *, before: int) -> list[str]:
    """Paths of staged files, and of copies that a publisher left behind, that nobody needs and that were last changed
    before this moment. The files must have been found after the table was read.
    """
    parsed = [parse_log_file(file) for file in files if file.modified_at < before]
    return sorted(file.path for file in parsed if file is not None and _has_done_its_work(table, file))


def _has_done_its_work(table: Table, file: LogFile) -> bool:
    if file.kind is LogFileKind.COPY:
        return True
    if file.kind is not LogFileKind.STAGED or file.version > table.latest:
        return False
    if file.version <= table.published:
        return True
    ratified = table.ratified(file.version)
    return ratified is not None and ratified.file_name != file.name
