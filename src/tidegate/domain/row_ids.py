"""Row tracking: how far the ids of a table's rows go.

Every file of new rows begins where the last one ended, so who adds rows must know the highest id of the version before.
The catalog knows it of versions that it has read or made itself; of others the log tells.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tidegate.domain.frozen import frozen
from tidegate.domain.names import Version
from tidegate.domain.protocol import ROW_TRACKING_DOMAIN, ROW_TRACKING_FEATURE, Protocol

_SUSPENDED = "delta.rowTrackingSuspended"
NO_ROWS = -1
"""The highest id before the first row."""


@frozen
class RowMark:
    """The highest row id as of a version."""

    version: Version
    highest: int


def tracks_rows(protocol: Protocol, properties: Mapping[str, str]) -> bool:
    """Whether writers must give ids to rows, shown to users or not. While that is suspended they must not."""
    return ROW_TRACKING_FEATURE in protocol.features() and properties.get(_SUSPENDED, "false").lower() != "true"


def mark_action(highest: int) -> dict[str, Any]:
    configuration = json.dumps({"rowIdHighWaterMark": highest}, separators=(",", ":"))
    return {"domainMetadata": {"domain": ROW_TRACKING_DOMAIN, "configuration": configuration, "removed": False}}
