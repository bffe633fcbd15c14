"""Types of command line arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T", int, float)


def positive(type: Callable[[str], T]) -> Callable[[str], T]:
    def parse(text: str) -> T:
        value = type(text)
        if value <= 0:
            raise ValueError
        return value

    parse.__name__ = "positive number"  # argparse says: invalid positive number value
    return parse
