"""Which commits are sent with their content, and what a connection has learnt of its server about that."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidegate.client.errors import InvalidRequest

INLINE_BYTES_MAX = 32 * 1024
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(slots=True)
class InlineLimits:
    """One for each connection: what one table learns of the server, the others need not ask again."""

    bytes_max: int = INLINE_BYTES_MAX
    """The largest content that goes inline; 0: none does."""
    is_served: bool = True
    """False: the server is older, and knows nothing of inline commits."""

    def allow(self, content: bytes, txn_id: str) -> bool:
        """The server knows an inline commit by its transaction's id, which must be a UUID for that."""
        return len(content) <= self.bytes_max and _UUID.fullmatch(txn_id) is not None

    def learn_too_large(self, content: bytes) -> None:
        """The server does not say how much it takes. Half of what it refused: so it is asked a few times at most."""
        self.bytes_max = min(self.bytes_max, len(content) // 2)

    def learn_not_served(self) -> None:
        self.bytes_max = 0
        self.is_served = False


def inline_limits(bytes_max: object) -> InlineLimits:
    if type(bytes_max) is not int or bytes_max < 0:
        raise InvalidRequest(f"inline_bytes_max is a number of bytes, 0 or higher, not {bytes_max!r}.")
    return InlineLimits(bytes_max)
