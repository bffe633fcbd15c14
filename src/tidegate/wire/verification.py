"""What verifying a table has found, as JSON."""

from __future__ import annotations

from msgspec import Struct


class VerifyQuery(Struct, frozen=True):
    """Which versions: those after `after`, from the first without it."""

    after: int | None = None
    max_results: int | None = None


class Difference(Struct, frozen=True):
    """The first version that is not what was ratified: file_missing, other_bytes, row_changed or row_missing."""

    version: int
    kind: str
    message: str


class Verification(Struct, frozen=True):
    """Counts of the versions that were looked at. `next_after` is where to go on, null at the end or a difference."""

    full_name: str
    table_id: str
    latest_version: int
    published_version: int
    chain: str | None
    first_version: int | None
    last_version: int | None
    same_since_ratified: int
    same_since_published: int
    same_size: int
    cleaned: int
    unpublished: int
    unchained: int
    difference: Difference | None
    next_after: int | None
