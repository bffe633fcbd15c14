"""A commit that another writer got ratified meanwhile, as far as others can get into its way. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from tidegate.client.log.actions import Action, Add, CommitInfo, DomainMetadata, Metadata, Protocol, Remove, Transaction

BACKFILLS = frozenset({"ROW TRACKING BACKFILL", "ROW TRACKING UNBACKFILL"})
"""Operations that state files anew, with ids of their rows or without, and change no row."""
_IDENTITY = "delta.identity.schemaUpdate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Winner:
    version: int
    info: CommitInfo
    adds: tuple[Add, ...]
    removes: tuple[Remove, ...]
    metadata: Metadata | None
    protocol: Protocol | None
    transactions: tuple[Transaction, ...]
    domains: Mapping[str, DomainMetadata]

    @property
    def is_blind_append(self) -> bool:
        """As its writer says: that it has read nothing of the table."""
        return self.info.is_blind_append is True

    @property
    def is_backfill(self) -> bool:
        return self.info.operation in BACKFILLS

    @property
    def only_counts_identities(self) -> bool:
        """Whether its metaData does no more than to say how far identity columns have come."""
        tags = self.info.tags
        return isinstance(tags, dict) and str(cast("dict[str, Any]", tags).get(_IDENTITY)).lower() == "true"


def winner_of(version: int, actions: Iterable[Action]) -> Winner:
    told = tuple(actions)
    return Winner(
        version=version,
        info=next((one.commit_info for one in told if one.commit_info is not None), CommitInfo()),
        adds=tuple(one.add for one in told if one.add is not None),
        removes=tuple(one.remove for one in told if one.remove is not None),
        metadata=next((one.meta_data for one in told if one.meta_data is not None), None),
        protocol=next((one.protocol for one in told if one.protocol is not None), None),
        transactions=tuple(one.txn for one in told if one.txn is not None),
        domains={one.domain_metadata.domain: one.domain_metadata for one in told if one.domain_metadata is not None},
    )
