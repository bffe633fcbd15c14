"""Counts the changes of identities, tokens and rights that this server makes.

What is remembered of them is marked with the count at which it was read: a change makes all of it useless at once. For
changes by other servers of the same database, what is remembered also grows old: see `access_cache_ms`.
"""

from __future__ import annotations


class AccessEpoch:
    def __init__(self) -> None:
        self.number = 0

    def advance(self) -> None:
        self.number += 1
