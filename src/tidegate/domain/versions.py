"""Which version of the REST protocol a client and this server speak together.

A client lists, per major version, the highest minor it knows: `1.1,2.3` means 1.0 to 1.1 and 2.0 to 2.3.
"""

from __future__ import annotations

import re

from tidegate.domain.errors import InvalidRequest

SUPPORTED: dict[int, int] = {1: 0}
"""Major version to the highest minor that we serve."""

_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")


def negotiate(offered: str) -> str:
    common: list[tuple[int, int]] = []
    for part in offered.split(","):
        match = _VERSION.fullmatch(part.strip())
        if match is None:
            raise InvalidRequest(
                f"{part.strip()[:50]!r} in protocol-versions is not a version. Write them like 1.0,2.3."
            )
        major, minor = int(match[1]), int(match[2])
        if major in SUPPORTED:
            common.append((major, min(minor, SUPPORTED[major])))
    if not common:
        ours = ", ".join(f"{major}.{minor}" for major, minor in sorted(SUPPORTED.items()))
        raise InvalidRequest(f"No common protocol version: this server supports {ours}, the client {offered[:100]}.")
    major, minor = max(common)
    return f"{major}.{minor}"
