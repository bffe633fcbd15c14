"""How a table's commits come about: ratified in the catalog's database, or put into the log where nothing is.

    tidegate.commits = ratified          the default: ratified by the catalog, published afterwards
    tidegate.commits = put-if-absent     the file _delta_log/<v>.json is the commit, whoever puts it there first

With put-if-absent a commit is ratified and published in one step, as the catalog-managed specification allows it; the
catalog puts the file, or learns of one that somebody else has put. The property lives in the log: it changes with a
version, so everybody who proposes the version after it knows how to.

    5 sets put-if-absent      ratified in the database, and published; 6 is the first that is put
    9 takes it away           put as a file, like 6, 7 and 8; 10 is ratified in the database
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tidegate.domain.errors import InvalidRequest

COMMITS_PROPERTY: Final = "tidegate.commits"
RATIFIED: Final = "ratified"
PUT_IF_ABSENT: Final = "put-if-absent"


def is_put_if_absent(properties: Mapping[str, str]) -> bool:
    """`properties` are those of the log."""
    return properties.get(COMMITS_PROPERTY) == PUT_IF_ABSENT


def check_commits_property(properties: Mapping[str, str]) -> None:
    value = properties.get(COMMITS_PROPERTY, RATIFIED)
    if value not in (RATIFIED, PUT_IF_ABSENT):
        raise InvalidRequest(
            f"The property {COMMITS_PROPERTY} is {RATIFIED} or {PUT_IF_ABSENT}, not {value[:100]!r}. Send one of them, "
            "or leave it out."
        )
