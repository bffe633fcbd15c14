"""What a commit through the Unity Catalog API does to a table's metadata.

The request states a desired final state, and leaves parts of it out: the clients that exist never send a protocol or
domain metadata, and some no schema. The staged file has all of it. So:

    in the file, not stated      the file's word counts
    in both                      they must agree
    stated, not in the file      the request's word counts, as it does in Delta REST v1.0
    in neither                   nothing changes

What comes out are the same metadata actions that Delta REST v1.0 has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.protocol import CLUSTERING_DOMAIN
from tidegate.domain.stated_columns import StatedColumn, difference, stated_partitions, stated_schema
from tidegate.domain.stated_properties import (
    check_derived,
    clustering_domain,
    clustering_shown,
    own_properties,
    stated_clustering,
)
from tidegate.domain.table_actions import SHOWN_DOMAINS, LogMetadata, TableActions
from tidegate.domain.tables import TableMetadata
from tidegate.domain.updates import (
    MetadataAction,
    RemoveDomainMetadata,
    ReplaceProperties,
    SetColumns,
    SetComment,
    SetDomainMetadata,
    SetPartitionColumns,
    SetProtocol,
    apply_metadata,
    check_domains,
)


class Unstated(Enum):
    UNSTATED = "unstated"


UNSTATED: Final = Unstated.UNSTATED
Comment: TypeAlias = str | Unstated | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredMetadata:
    """What is None is not stated; a comment of None is one that is cleared."""

    comment: Comment = UNSTATED
    columns: Sequence[StatedColumn] | None = None
    partition_columns: tuple[str, ...] | None = None
    properties: Mapping[str, str] | None = None

    def partitions(self) -> tuple[str, ...] | None:
        if self.partition_columns is not None:
            return self.partition_columns
        return None if self.columns is None else stated_partitions(self.columns)


def metadata_actions(
    before: TableMetadata, desired: DesiredMetadata | None, staged: TableActions | None
) -> list[MetadataAction]:
    """`before` is the table's metadata, `staged` what the staged file says, None where it is not there."""
    actions: list[MetadataAction] = []
    if staged is not None and staged.metadata is not None:
        if desired is not None:
            _check_agreement(desired, staged.metadata, before)
        actions += _from_log(desired, staged.metadata)
    elif desired is not None:
        actions += _from_request(desired, before)
    if staged is not None and staged.protocol is not None:
        actions.append(SetProtocol(staged.protocol))
    stated: Mapping[str, str] = (desired.properties or {}) if desired is not None else {}
    actions += _domain_actions(stated, apply_metadata(before, actions, in_log=True), staged)
    check_derived(stated, apply_metadata(before, actions, in_log=True))
    return actions


def _from_log(desired: DesiredMetadata | None, log: LogMetadata) -> list[MetadataAction]:
    stated = UNSTATED if desired is None else desired.comment
    return [
        SetColumns(log.columns),
        SetPartitionColumns(log.partition_columns),
        ReplaceProperties(own_properties(log.properties)),
        SetComment(log.description if isinstance(stated, Unstated) else stated),
    ]


def _from_request(desired: DesiredMetadata, before: TableMetadata) -> list[MetadataAction]:
    actions: list[MetadataAction] = []
    partitions = desired.partitions()
    if desired.columns is not None:
        actions.append(SetColumns(stated_schema(desired.columns)))
    if partitions is not None:
        actions.append(SetPartitionColumns(partitions))
    if desired.properties is not None:
        own = own_properties(desired.properties)
        actions.append(ReplaceProperties({k: v for k, v in own.items() if not _only_in_catalog(k, v, before)}))
    if not isinstance(desired.comment, Unstated):
        actions.append(SetComment(desired.comment))
    return actions


def _only_in_catalog(key: str, value: str, before: TableMetadata) -> bool:
    """Clients send back all properties that they were shown, also those that were never in the log."""
    return key not in before.properties and before.catalog_properties.get(key) == value


def _domain_actions(
    stated: Mapping[str, str], after: TableMetadata, staged: TableActions | None
) -> list[MetadataAction]:
    said: Mapping[str, Any] = {} if staged is None else staged.domains
    gone = [domain for domain in SHOWN_DOMAINS if staged is not None and domain in staged.removed_domains]
    shown: dict[str, Mapping[str, Any]] = {domain: said[domain] for domain in SHOWN_DOMAINS if domain in said}
    paths = stated_clustering(stated)
    if paths is not None and CLUSTERING_DOMAIN not in {*shown, *gone} and paths != (clustering_shown(after) or []):
        shown[CLUSTERING_DOMAIN] = clustering_domain(after, paths)
    check_domains(shown)
    actions: list[MetadataAction] = [SetDomainMetadata(shown)] if shown else []
    return [*actions, RemoveDomainMetadata(gone)] if gone else actions


def _check_agreement(desired: DesiredMetadata, log: LogMetadata, before: TableMetadata) -> None:
    if desired.columns is not None:
        told = difference(desired.columns, log.columns)
        if told is not None:
            raise InvalidRequest(f"The schema differs from the staged commit: {told}.")
    partitions = desired.partitions()
    if partitions is not None and partitions != log.partition_columns:
        _differ("partition columns", list(partitions), list(log.partition_columns))
    if desired.properties is not None:
        _check_properties(own_properties(desired.properties), own_properties(log.properties), before)
    if isinstance(desired.comment, str) and desired.comment != (log.description or ""):
        _differ("description", desired.comment, log.description)


def _check_properties(stated: Mapping[str, str], log: Mapping[str, str], before: TableMetadata) -> None:
    for key in sorted({*stated, *log}):
        if key not in log and _only_in_catalog(key, stated[key], before):
            continue
        if stated.get(key) != log.get(key):
            _differ(f"property {key}", stated.get(key), log.get(key))


def _differ(what: str, stated: object, in_file: object) -> None:
    said, found = ("nothing" if value is None else str(value)[:200] for value in (stated, in_file))
    raise InvalidRequest(
        f"The request and the staged commit differ in {what}: {said} is stated, {found} is in the file. "
        "Send what the file says."
    )
