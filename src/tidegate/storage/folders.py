"""Folders of this machine's file systems, walked without ever following a link.

Every step goes from an open folder to one right below it, and a link in between is an error, not a way. So nobody can
lead a walk out of the folder that it began in, not even by putting a link in its way while it is under way.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Generator, Sequence

DEPTH_MAX = 300
"""Folders within folders: each that is open takes one of the process's open files."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_NOT_A_FOLDER = frozenset({errno.ENOTDIR, errno.ELOOP})


@contextlib.contextmanager
def open_folder(root: str, below: Sequence[str] = ()) -> Generator[int | None]:
    """The folder, open; None where there is none, or only a link to one."""
    with contextlib.ExitStack() as opened:
        folder = _open(root, None)
        for name in (*below, None):
            if folder is not None:
                opened.callback(os.close, folder)
                folder = folder if name is None else _open(name, folder)
                if name is None:
                    yield folder
                    return
        yield None


def _open(name: str, folder: int | None) -> int | None:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in _NOT_A_FOLDER:
            return None
        raise


def clear(root: str, *, limit: int) -> int:
    """Removes at most `limit` files below a folder, and what folders are empty then, itself too: how many files."""
    parent, _, name = root.rpartition("/")
    try:
        # The way to the table's folder is the administrator's: links are welcome there.
        above = os.open(parent or "/", os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return 0
    try:
        return _clear(above, name, limit, depth=0)
    finally:
        os.close(above)


def _clear(above: int, name: str, limit: int, *, depth: int) -> int:
    if depth > DEPTH_MAX:
        raise OSError(errno.ENAMETOOLONG, f"folders are nested more than {DEPTH_MAX} deep")
    folder = _open(name, above)
    if folder is None:
        return _unlink(name, above)
    removed = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if removed >= limit:
                    return removed
                if entry.is_dir(follow_symlinks=False):
                    removed += _clear(folder, entry.name, limit - removed, depth=depth + 1)
                else:
                    removed += _unlink(entry.name, folder)
    finally:
        os.close(folder)
    try:
        os.rmdir(name, dir_fd=above)
    except FileNotFoundError:
        return removed
    except OSError as error:
        # Something is left: beyond the limit, or put there a moment ago.
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise
    return removed


def _unlink(name: str, folder: int) -> int:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return 0
    return 1
