"""Files of tables as a store describes them."""

from __future__ import annotations

from tidegate.domain.frozen import frozen


@frozen
class FoundFile:
    path: str
    """Below the table's location, without a slash in front."""
    size: int
    modified_at: int
    """Milliseconds since the epoch, by the store's clock."""
