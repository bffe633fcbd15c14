"""Which changes of a table's metadata a commit can stand beside that was made before them. Pure.

They are those that Delta resolves: features that are switched on, after which files that were written without them are
as good as before. Whatever else changed, a writer would have to look at.

    delta.enableDeletionVectors      nobody has to write deletion vectors
    delta.enableRowTracking          rows get their ids when they are committed
    delta.columnMapping.mode=name    columns keep the names that they have in data files
    delta.checkpointPolicy=v2        and in-commit timestamps, and the table's id: not a matter of data files
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.client.log.actions import Metadata, Protocol
from tidegate.client.log.features import COLUMN_MAPPING_MODE
from tidegate.client.log.time_travel import ENABLED, ENABLED_SINCE_TIMESTAMP, ENABLED_SINCE_VERSION
from tidegate.client.log.types import COLUMN_ID, PHYSICAL_NAME, Field
from tidegate.client.writable import features_of, is_set

ROW_TRACKING = "delta.enableRowTracking"
_MATERIALIZED = frozenset(
    {"delta.rowTracking.materializedRowIdColumnName", "delta.rowTracking.materializedRowCommitVersionColumnName"}
)
_MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"
_DELETION_VECTORS = "delta.enableDeletionVectors"
_CHECKPOINT_POLICY = "delta.checkpointPolicy"
_TABLE_ID = "io.unitycatalog.tableId"
_MAPPING_OF_FIELD = frozenset(
    {COLUMN_ID, PHYSICAL_NAME, "delta.columnMapping.nested.ids", "parquet.field.id", "parquet.field.nested.ids"}
)


def refused_changes(before: Metadata, after: Metadata, protocol: Protocol) -> tuple[str, ...]:
    """What has changed that nobody can stand beside; `protocol` is that after the change."""
    plain = (
        ("id", before.id, after.id),
        ("name", before.name, after.name),
        ("comment", before.description, after.description),
        ("partition columns", before.partition_columns, after.partition_columns),
        ("creation time", before.created_time, after.created_time),
    )
    changed = [what for what, old, new in plain if old != new]
    if not _properties_stand(before.configuration, after.configuration, protocol):
        changed.append("properties")
    if before.schema != after.schema and not _columns_stand(before, after):
        changed.append("columns")
    return tuple(changed)


def _properties_stand(before: Mapping[str, str], after: Mapping[str, str], protocol: Protocol) -> bool:
    if before.keys() - after.keys():
        return False
    features = features_of(protocol)
    return all(_property_stands(key, before, after, features) for key in after if before.get(key) != after[key])


def _property_stands(key: str, before: Mapping[str, str], after: Mapping[str, str], features: set[str]) -> bool:
    if key in _MATERIALIZED:
        return is_set(after, ROW_TRACKING)
    if key in {ENABLED_SINCE_VERSION, ENABLED_SINCE_TIMESTAMP}:
        return key not in before
    if key == _TABLE_ID:
        return "catalogManaged" not in features or key not in before
    if key == COLUMN_MAPPING_MODE:
        return "columnMapping" in features and _is_mapped_by_name(before, after)
    if key == _CHECKPOINT_POLICY:
        return "v2Checkpoint" in features and after[key] == "v2"
    feature = {ROW_TRACKING: "rowTracking", _DELETION_VECTORS: "deletionVectors", ENABLED: "inCommitTimestamp"}
    if key in feature:
        return feature[key] in features and is_set(after, key)
    return key == _MAX_COLUMN_ID


def _is_mapped_by_name(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """From then on: the only way into column mapping for a table that is there."""
    return before.get(COLUMN_MAPPING_MODE, "none") == "none" and after.get(COLUMN_MAPPING_MODE) == "name"


def _columns_stand(before: Metadata, after: Metadata) -> bool:
    """The same columns, which got the ids and physical names of column mapping."""
    old, new = before.schema.fields, after.schema.fields
    if len(old) != len(new) or not _is_mapped_by_name(before.configuration, after.configuration):
        return False
    return all(_is_same_field(*pair) for pair in zip(old, new, strict=True))


def _is_same_field(old: Field, new: Field) -> bool:
    keys = old.metadata.keys() | new.metadata.keys()
    changed = {key for key in keys if key not in old.metadata or old.metadata.get(key) != new.metadata.get(key)}
    changed |= old.metadata.keys() - new.metadata.keys()
    same = (old.name, old.type, old.nullable) == (new.name, new.type, new.nullable)
    return same and changed <= _MAPPING_OF_FIELD
