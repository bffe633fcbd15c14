"""pyarrow, imported when it is needed and not before; without types, for it has none to give."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tidegate.client.log.errors import ArrowMissing


def load(module: str, *, purpose: str) -> Any:
    """A module of pyarrow; `purpose` is what the error says that it is needed for."""
    try:
        return import_module(module)
    except ImportError:
        raise ArrowMissing(purpose) from None
