"""Local files need no credential, and clients want to be told so in a regular answer."""

from __future__ import annotations

from tidegate.domain.credentials import Credential, CredentialOperation
from tidegate.domain.errors import InvalidRequest


class LocalVendor:
    def vend(self, location: str, operation: CredentialOperation) -> Credential:
        if not location.startswith("file://"):
            raise InvalidRequest(f"This server has no credentials to vend for {location}. Use your own for that store.")
        return Credential(prefix=location, operation=operation, config={}, expires_at=None)
