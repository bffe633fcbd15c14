"""What reading a table asks of the place where its files lie.

A path is a whole address, such as `file:///lake/t/_delta_log/00000000000000000007.json`; what follows the scheme is
taken as it is. The log has addresses as URIs, percent-encoded: `resolve` makes them paths.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol
from urllib.parse import unquote

_ABSOLUTE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(/.*)", re.DOTALL)


class Entry(Protocol):
    """A file of a folder."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def modified_ms(self) -> int:
        """Tells when a commit was made, in milliseconds since 1970, where the commit itself does not."""
        ...


class Files(Protocol):
    def read(self, path: str) -> bytes | None:
        """The whole content, or None where there is no such file."""
        ...

    def entries(self, folder: str, *, after: str = "") -> Sequence[Entry]:
        """The files right in a folder whose names come after this one, in any order; of no folder, none."""
        ...


def join(location: str, *parts: str) -> str:
    return "/".join([location.rstrip("/"), *parts])


def resolve(location: str, uri: str) -> str:
    """The path of a file that the log of the table at `location` names: relative to it, or absolute."""
    if found := _ABSOLUTE.fullmatch(uri):
        scheme, rest = found[1], unquote(found[2])
        return f"{scheme}:{rest}" if rest.startswith("//") else f"{scheme}://{rest}"  # Hadoop writes file:/lake/t.
    path = unquote(uri)
    if not path.startswith("/"):
        return join(location, path)
    scheme, found_one, _ = location.partition("://")
    return f"{scheme}://{path}" if found_one else path
