"""Where tables live: storage locations as URIs, compared in one normal form.

file:/data/t/   file:///data/t   file://localhost/data/t      ->  file:///data/t
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from tidegate.domain.errors import InvalidRequest

LOCATION_LENGTH_MAX = 4096
SEGMENT_BYTES_MAX = 255
"""What file systems allow for one name."""
_URI = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*):(?P<rest>/.*)", re.DOTALL)
_SCHEMES = frozenset({"file", "s3", "s3a", "abfs", "abfss", "gs"})


def normalize_location(location: str) -> str:
    """The location in its normal form, or InvalidRequest for what is not an absolute storage URI."""
    match = _URI.fullmatch(location)
    if match is None or match["scheme"] not in _SCHEMES:
        raise InvalidRequest(
            f"{location[:200]!r} is not a storage location. Write an absolute URI with one of the schemes "
            f"{', '.join(sorted(_SCHEMES))}, such as file:///data/table."
        )
    if len(location) > LOCATION_LENGTH_MAX:
        raise InvalidRequest(f"The location is longer than {LOCATION_LENGTH_MAX} characters.")
    if any(ord(c) < 32 or ord(c) == 127 for c in location):
        raise InvalidRequest("The location holds a control character. Remove it.")
    if "?" in location or "#" in location:
        raise InvalidRequest(f"{location[:200]!r} holds '?' or '#'. A location is a path without a query.")
    authority, path = _split(match["scheme"], match["rest"], location)
    segments = [segment for segment in path.split("/") if segment]
    if any(segment in {".", ".."} for segment in unquote(path).split("/")):
        raise InvalidRequest(f"{location[:200]!r} holds '.' or '..' as a path segment. Write the plain path.")
    if any(len(segment.encode("utf-8", "surrogatepass")) > SEGMENT_BYTES_MAX for segment in segments):
        raise InvalidRequest(f"A path segment of the location is longer than {SEGMENT_BYTES_MAX} bytes. Shorten it.")
    if not segments and match["scheme"] == "file":
        raise InvalidRequest("A location cannot be the root of the file system.")
    return f"{match['scheme']}://{authority}" + "".join(f"/{segment}" for segment in segments)


def _split(scheme: str, rest: str, location: str) -> tuple[str, str]:
    if rest.startswith("//"):
        authority, _, path = rest[2:].partition("/")
    else:
        authority, path = "", rest
    if scheme == "file":
        if authority not in {"", "localhost"}:
            raise InvalidRequest(f"{location[:200]!r} names a host. Write file:/// and an absolute path.")
        return "", path
    if not authority:
        raise InvalidRequest(f"{location[:200]!r} names no bucket or container.")
    return authority, path


def with_ancestors(location: str) -> list[str]:
    """The location and every place above it, down to the bucket or the root of the file system."""
    scheme, _, rest = location.partition("://")
    segments = rest.split("/")
    return [f"{scheme}://" + "/".join(segments[:count]) for count in range(len(segments), 0, -1)]


def lies_under(location: str, parent: str) -> bool:
    """Whether `location` is strictly below `parent`; both in normal form."""
    return location.startswith(parent + "/")
