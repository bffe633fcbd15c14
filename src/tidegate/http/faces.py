"""A face: one API with its root, its spelling of errors and its table of statuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tidegate.domain.errors import TidegateError
from tidegate.domain.frozen import frozen


class NoSuchEndpoint(TidegateError):
    def __init__(self, path: str) -> None:
        super().__init__(f"There is nothing at {path[:200]}. GET /openapi.json lists what this server serves.")


class MethodNotAllowed(TidegateError):
    def __init__(self, method: str, allowed: list[str]) -> None:
        super().__init__(f"{method[:20]} is not served here. Use {', '.join(allowed)}.")
        self.allowed = allowed


class BodyTooLarge(TidegateError):
    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"The request body is larger than {bytes_max} bytes, the setting body_bytes_max.")


@frozen
class ErrorCode:
    status: int
    code: str


@frozen
class Face:
    name: str
    root: str
    codes: Mapping[type[TidegateError], ErrorCode]
    error_body: Callable[[ErrorCode, TidegateError], Any]
    error_type: type
    """The wire type of an error's body."""
    challenge: bytes = b"Bearer"
    """How callers are asked to tell who they are."""

    def code_of(self, error: type[TidegateError]) -> ErrorCode:
        """The code of the class, or of the nearest class above it."""
        for ancestor in error.__mro__:
            if ancestor in self.codes:
                return self.codes[ancestor]
        raise KeyError(error)
