"""Storage credentials: what a client may do below which prefix, and until when."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from tidegate.domain.frozen import frozen


class CredentialOperation(StrEnum):
    READ = "READ"
    READ_WRITE = "READ_WRITE"


@frozen
class Credential:
    prefix: str
    operation: CredentialOperation
    config: Mapping[str, str]
    """The keys of the store; empty for a store that needs none."""
    expires_at: int | None
