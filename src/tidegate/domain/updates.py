"""The actions of an update request. Each checks itself and applies itself to a table's metadata.

Metadata that lives in the Delta log changes only together with a commit. A comment, and a property that exists only
in the catalog, may change alone:

    set-properties {"team": "sea"}, no commit    -> a property of the catalog
    set-properties {"team": "sea"} with a commit -> a property of the log (and no longer one of the catalog)
    set-properties {"delta.x": ...}, no commit   -> refused: it would say something else than the log
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeAlias, TypeVar

from tidegate.domain.clustering import is_list_of_paths
from tidegate.domain.columns import StructType, log_schema
from tidegate.domain.commit_policies import CommitPolicies, is_policy_property
from tidegate.domain.commits import Commit, check_commit, check_timestamp
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.json_values import canonical_json, check_nesting
from tidegate.domain.names import Version
from tidegate.domain.protocol import CLUSTERING_DOMAIN, ROW_TRACKING_DOMAIN, TABLE_ID_PROPERTY, Protocol
from tidegate.domain.put_if_absent import COMMITS_PROPERTY
from tidegate.domain.tables import TableMetadata, is_derived_property
from tidegate.domain.uniform import Uniform


@frozen
class AddCommit:
    action: ClassVar[str] = "add-commit"
    commit: Commit
    uniform: Uniform | None

    def check(self) -> None:
        check_commit(self.commit)


@frozen
class ReportPublished:
    """A writer's claim that every version up to this one is in `_delta_log`. Only what is verified counts."""

    action: ClassVar[str] = "set-latest-backfilled-version"
    version: Version

    def check(self) -> None:
        if self.version < 0:
            raise InvalidRequest(f"The latest published version is 0 or higher, not {self.version}.")


@frozen
class SetSnapshotVersion:
    """For external tables: their log is written elsewhere, and a writer tells how far it got."""

    action: ClassVar[str] = "update-metadata-snapshot-version"
    version: Version
    timestamp: int

    def check(self) -> None:
        if self.version < 0:
            raise InvalidRequest(f"last-commit-version is 0 or higher, not {self.version}.")
        check_timestamp("last-commit-timestamp-ms", self.timestamp)


@frozen
class SetProperties:
    action: ClassVar[str] = "set-properties"
    updates: Mapping[str, str]

    def check(self) -> None:
        check_property_keys(self.action, self.updates)

    def apply(self, metadata: TableMetadata, *, in_log: bool) -> TableMetadata:
        if in_log:
            kept = {k: v for k, v in metadata.catalog_properties.items() if k not in self.updates}
            return replace(metadata, properties={**metadata.properties, **self.updates}, catalog_properties=kept)
        for key in self.updates:
            _check_catalog_only(key, metadata)
        return replace(metadata, catalog_properties={**metadata.catalog_properties, **self.updates})


@frozen
class RemoveProperties:
    action: ClassVar[str] = "remove-properties"
    removals: Sequence[str]

    def check(self) -> None:
        check_property_keys(self.action, self.removals)

    def apply(self, metadata: TableMetadata, *, in_log: bool) -> TableMetadata:
        gone = set(self.removals)
        catalog = {k: v for k, v in metadata.catalog_properties.items() if k not in gone}
        if not in_log:
            for key in self.removals:
                _check_catalog_only(key, metadata)
            return replace(metadata, catalog_properties=catalog)
        log = {k: v for k, v in metadata.properties.items() if k not in gone}
        return replace(metadata, properties=log, catalog_properties=catalog)


@frozen
class ReplaceProperties:
    """The log's properties are these and no others. What exists only in the catalog is not the log's, and stays."""

    action: ClassVar[str] = "replace-properties"
    properties: Mapping[str, str]

    def check(self) -> None:
        check_property_keys("properties", self.properties)

    def apply(self, metadata: TableMetadata, *, in_log: bool) -> TableMetadata:
        _require_commit(self.action, in_log)
        kept = {k: v for k, v in metadata.catalog_properties.items() if k not in self.properties}
        return replace(metadata, properties=self.properties, catalog_properties=kept)


@frozen
class SetProtocol:
    action: ClassVar[str] = "set-protocol"
    protocol: Protocol

    def check(self) -> None:
        pass

    def apply(self, metadata: TableMetadata, *, in_log: bool) -> TableMetadata:
        _require_commit(self.action, in_log)
        return replace(metadata, protocol=self.protocol)


@frozen
class SetColumns:
    action: ClassVar[str] = "set-columns"
    columns: StructType

    def check(self) -> None:
        pass

    def apply(self, metadata: TableMetadata, *, in_log: bool) -> TableMetadata:
        _require_commit(self.action, in_log)
        return replace(metadata, columns=self.columns)


@frozen
class SetPartitionColumns:
    action: ClassVar[str] = "set-partition-columns"
    partition_columns: tuple[str, ...]

    def check(self) -> None:
        pass

    def apply(self, metadata: TableMetadata, *, in_log: bool) -> TableMetadata:
        _require_commit(self.action, in_log)
        return replace(metadata, partition_columns=self.partition_columns)


@frozen
class SetComment:
    """None clears the comment: that is what a REPLACE of a commented table sends."""

    action: ClassVar[str] = "set-table-comment"
    comment: str | None

    def check(self) -> None:
        pass

    def apply(self, metadata: TableMetadata, *, in_log: bool) -> TableMetadata:
        return replace(metadata, comment=self.comment)


@frozen
class SetDomainMetadata:
    action: ClassVar[str] = "set-domain-metadata"
    updates: Mapping[str, Mapping[str, Any]]

    def check(self) -> None:
        if not self.updates:
            raise InvalidRequest(f"{self.action} names no domain. Name at least one.")
        check_domains(self.updates)

    def apply(self, metadata: TableMetadata, *, in_log: bool) -> TableMetadata:
        _require_commit(self.action, in_log)
        return replace(metadata, domains={**metadata.domains, **self.updates})


@frozen
class RemoveDomainMetadata:
    action: ClassVar[str] = "remove-domain-metadata"
    domains: Sequence[str]

    def check(self) -> None:
        if not self.domains:
            raise InvalidRequest(f"{self.action} names no domain. Name at least one.")

    def apply(self, metadata: TableMetadata, *, in_log: bool) -> TableMetadata:
        _require_commit(self.action, in_log)
        kept = {k: v for k, v in metadata.domains.items() if k not in set(self.domains)}
        return replace(metadata, domains=kept)


@frozen
class SetPolicies:
    """Of the table; all of them at once, those that are not set included. They live in the catalog alone."""

    action: ClassVar[str] = "set-policies"
    policies: CommitPolicies

    def check(self) -> None:
        self.policies.check()

    def apply(self, metadata: TableMetadata, *, in_log: bool) -> TableMetadata:
        others = {k: v for k, v in metadata.catalog_properties.items() if not is_policy_property(k)}
        return replace(metadata, catalog_properties={**others, **self.policies.properties()})


MetadataAction: TypeAlias = (
    SetProperties
    | RemoveProperties
    | ReplaceProperties
    | SetProtocol
    | SetColumns
    | SetPartitionColumns
    | SetComment
    | SetDomainMetadata
    | RemoveDomainMetadata
    | SetPolicies
)
Action: TypeAlias = AddCommit | ReportPublished | SetSnapshotVersion | MetadataAction
_A = TypeVar("_A", bound=Action)


def check_actions(actions: Sequence[Action]) -> None:
    """The shape rules: at least one action, at most one of each kind, no key set and removed at once."""
    if not actions:
        raise InvalidRequest("The request holds no update. Send at least one.")
    kinds = {type(action) for action in actions}
    if len(kinds) < len(actions):
        name, count = Counter(action.action for action in actions).most_common(1)[0]
        raise InvalidRequest(f"{name} is sent {count} times. Send at most one of each kind.")
    for action in actions:
        action.check()
    if SetProperties in kinds and RemoveProperties in kinds:
        _check_overlap(find(actions, SetProperties), find(actions, RemoveProperties))
    if SetDomainMetadata in kinds and RemoveDomainMetadata in kinds:
        _check_domain_overlap(find(actions, SetDomainMetadata), find(actions, RemoveDomainMetadata))


def find(actions: Sequence[Action], kind: type[_A]) -> _A | None:
    for action in actions:
        if isinstance(action, kind):
            return action
    return None


def apply_metadata(metadata: TableMetadata, actions: Sequence[Action], *, in_log: bool) -> TableMetadata:
    """The metadata after all actions. Their order means nothing: no two of them touch the same thing."""
    for action in actions:
        if not isinstance(action, AddCommit | ReportPublished | SetSnapshotVersion):
            metadata = action.apply(metadata, in_log=in_log)
    return metadata


def is_metadata_change(before: TableMetadata, after: TableMetadata) -> bool:
    """Whether the etag must change. The row-tracking high-water mark moves with the data and does not count."""
    return before is not after and _fingerprint(before) != _fingerprint(after)


def _fingerprint(metadata: TableMetadata) -> tuple[object, ...]:
    domains = {k: v for k, v in metadata.domains.items() if k != ROW_TRACKING_DOMAIN}
    return (
        canonical_json(log_schema(metadata.columns)),
        canonical_json(domains),
        metadata.partition_columns,
        metadata.protocol,
        metadata.properties,
        metadata.comment,
        metadata.catalog_properties,
    )


def check_property_keys(where: str, keys: Mapping[str, str] | Sequence[str]) -> None:
    for key in keys:
        if not key:
            raise InvalidRequest(f"{where} holds an empty property key. Remove it.")
        if is_derived_property(key):
            raise InvalidRequest(f"The property {key} is derived by the catalog. Leave it out of {where}.")
        if is_policy_property(key):
            raise InvalidRequest(
                f"The property {key} is a policy of the table and no property of its log. Leave it out of {where}; who "
                "manages the table sets it with `tidegate policies`."
            )


def check_domains(domains: Mapping[str, Mapping[str, Any]]) -> None:
    """The two domains whose content the catalog shows must have the shape that it shows."""
    for domain, configuration in domains.items():
        if not domain:
            raise InvalidRequest("A domain of domain metadata has an empty name.")
        check_nesting(configuration, f"The domain metadata {domain}")
    clustering = domains.get(CLUSTERING_DOMAIN)
    if clustering is not None and not is_list_of_paths(clustering.get("clusteringColumns")):
        raise InvalidRequest(f"{CLUSTERING_DOMAIN} needs clusteringColumns, a list of column paths.")
    row_tracking = domains.get(ROW_TRACKING_DOMAIN)
    if row_tracking is not None and not _is_long(row_tracking.get("rowIdHighWaterMark")):
        raise InvalidRequest(f"{ROW_TRACKING_DOMAIN} needs rowIdHighWaterMark, a whole number of 64 bits.")


def _is_long(value: object) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _require_commit(action: str, in_log: bool) -> None:
    if not in_log:
        raise InvalidRequest(f"{action} changes the Delta log. Send it together with the add-commit that does so.")


def _check_catalog_only(key: str, metadata: TableMetadata) -> None:
    if key in metadata.properties or key.startswith("delta.") or key in (TABLE_ID_PROPERTY, COMMITS_PROPERTY):
        raise InvalidRequest(
            f"The property {key} lives in the Delta log. Change it together with the add-commit that does so."
        )


def _check_overlap(set_: SetProperties | None, removed: RemoveProperties | None) -> None:
    if set_ is not None and removed is not None:
        both = set(set_.updates) & set(removed.removals)
        if both:
            raise InvalidRequest(f"The property {min(both)} is set and removed at once. Decide for one.")


def _check_domain_overlap(set_: SetDomainMetadata | None, removed: RemoveDomainMetadata | None) -> None:
    if set_ is not None and removed is not None:
        both = set(set_.updates) & set(removed.domains)
        if both:
            raise InvalidRequest(f"The domain {min(both)} is set and removed at once. Decide for one.")
