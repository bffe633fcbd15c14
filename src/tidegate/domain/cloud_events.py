"""Events as CloudEvents 1.0, for receivers that know nothing of Tidegate."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tidegate.domain.events import NumberedEvent

MEDIA_TYPE = "application/cloudevents+json"


def cloud_event_id(numbered: NumberedEvent, *, metastore: str) -> str:
    """The same whenever and to whomever it is sent."""
    return f"{metastore}-{numbered.sequence}"


def cloud_event(numbered: NumberedEvent, *, metastore: str) -> dict[str, Any]:
    event = numbered.event
    data: dict[str, Any] = {"table_id": event.table_id, "table": event.table, "by": event.by, **event.data}
    if event.version is not None:
        data["version"] = event.version
    return {
        "specversion": "1.0",
        "id": cloud_event_id(numbered, metastore=metastore),
        "source": f"/tidegate/{metastore}",
        "type": f"tidegate.{event.kind.value}",
        "subject": event.table,
        "time": datetime.fromtimestamp(event.at / 1000, UTC).isoformat(timespec="milliseconds"),
        "sequence": str(numbered.sequence),
        "datacontenttype": "application/json",
        "data": data,
    }
