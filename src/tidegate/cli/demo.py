"""`tidegate demo`: a catalog of its own, and one table taken through its life."""

from __future__ import annotations


def demo() -> None:
    """Start a catalog, make a table, commit to it from two writers, publish, and show what happened."""
