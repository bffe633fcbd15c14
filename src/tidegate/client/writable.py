"""What a table may ask of its writers, and what this one does. Refused by name before anything is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidegate.client.log.actions import Protocol
from tidegate.client.log.errors import UnsupportedTable
from tidegate.client.log.snapshot import Snapshot
from tidegate.client.log.types import all_fields

WRITER_VERSION_MAX = 7
HONOURED = frozenset(
    {
        "allowColumnDefaults",
        "appendOnly",
        "catalogManaged",
        "changeDataFeed",  # Whole files come and go: readers make the changes of them.
        "checkpointProtection",
        "clustering",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "inCommitTimestamp",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
_BY_FIELD = {
    "delta.invariants": "invariants",
    "delta.generationExpression": "generatedColumns",
    "delta.identity.start": "identityColumns",
    "__CHAR_VARCHAR_TYPE_STRING": "CHAR and VARCHAR columns",
}
"""What of a field's metadata a writer would have to do something about, and what that is called."""
IF_USED = frozenset({"invariants", "generatedColumns", "identityColumns", "checkConstraints"})
"""Features that ask for something only where the table makes use of them."""
_LEGACY = {
    2: ("appendOnly", "invariants"),
    3: ("checkConstraints",),
    4: ("changeDataFeed", "generatedColumns"),
    5: ("columnMapping",),
    6: ("identityColumns",),
}


def check_writable(snapshot: Snapshot, *, removes: bool) -> None:
    """`removes`: the write takes rows away."""
    protocol = snapshot.protocol
    if protocol.min_writer_version > WRITER_VERSION_MAX:
        version = f"writer version {protocol.min_writer_version}"
        raise UnsupportedTable([version], f"The table needs {version}: write it with a newer client.")
    unknown = sorted(features_of(protocol) - HONOURED - IF_USED)
    found = [*unknown, *sorted(set(_used(snapshot)))]
    if found:
        told = f"Writing the table needs {', '.join(found)}, which this client cannot do: write it with Spark."
        raise UnsupportedTable(found, told)
    if removes and is_set(snapshot.properties, "delta.appendOnly"):
        told = "The table is append-only (delta.appendOnly is true): append to it, or change that property first."
        raise UnsupportedTable(["appendOnly"], told)


def features_of(protocol: Protocol) -> set[str]:
    """What a writer has to know; older protocols have versions for it."""
    if protocol.min_writer_version == WRITER_VERSION_MAX:
        return set(protocol.writer_features or ())
    versions = range(2, protocol.min_writer_version + 1)
    return {feature for version in versions for feature in _LEGACY.get(version, ())}


def knows_row_ids(protocol: Protocol) -> bool:
    return "rowTracking" in features_of(protocol)


def tracks_rows(protocol: Protocol, properties: Mapping[str, str]) -> bool:
    """Whether every new row gets an id: as soon as the feature is there, enabled or not."""
    return knows_row_ids(protocol) and not is_set(properties, "delta.rowTrackingSuspended")


def is_set(properties: Mapping[str, str], key: str) -> bool:
    return properties.get(key, "").lower() == "true"


def _used(snapshot: Snapshot) -> Iterator[str]:
    if any(key.startswith("delta.constraints.") for key in snapshot.properties):
        yield "checkConstraints"
    for field in all_fields(snapshot.schema):
        yield from (name for key, name in _BY_FIELD.items() if key in field.metadata)
