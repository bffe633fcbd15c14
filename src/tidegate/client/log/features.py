"""What a table may ask of its readers, and what this one knows."""

from __future__ import annotations

from tidegate.client.log.actions import Protocol
from tidegate.client.log.errors import UnsupportedTable

READER_VERSION_MAX = 3
KNOWN = frozenset(
    {
        "catalogManaged",
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
COLUMN_MAPPING_MODE = "delta.columnMapping.mode"


def check_readable(protocol: Protocol) -> None:
    """Refuses a table that could be misread, by the names of what is not known."""
    if protocol.min_reader_version > READER_VERSION_MAX:
        version = protocol.min_reader_version
        told = f"The table needs reader version {version}, and this client knows versions up to {READER_VERSION_MAX}: "
        raise UnsupportedTable([f"reader version {version}"], told + "read it with a newer client.")
    unknown = sorted(set(protocol.reader_features or ()) - KNOWN)
    if protocol.min_reader_version == READER_VERSION_MAX and unknown:
        told = f"Reading the table needs {', '.join(unknown)}, which this client does not know: "
        raise UnsupportedTable(unknown, told + "read it with a newer client, or with Spark.")


def maps_columns(protocol: Protocol) -> bool:
    """Whether the table's property about column mapping is to be honoured."""
    if protocol.min_reader_version == READER_VERSION_MAX:
        return "columnMapping" in (protocol.reader_features or ())
    return protocol.min_reader_version == 2
