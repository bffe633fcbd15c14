"""Actions -> the state of a table: pure reconciliation, oldest first, the newest wins.

A logical file is a data file together with its deletion vector. A DELETE that marks rows of `a.parquet` is

    {"remove": a.parquet}  {"add": a.parquet with vector 1}

and leaves one logical file; the next one removes `a.parquet with vector 1` and adds `a.parquet with vector 2`.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.client.log.actions import Action, Add, DomainMetadata, Metadata, Protocol, Transaction


class State:
    """What all actions so far amount to, without files if none are wanted. Apply them in the order of versions."""

    def __init__(self, *, with_files: bool = True) -> None:
        self._with_files = with_files
        self.protocol: Protocol | None = None
        self.metadata: Metadata | None = None
        self.in_commit_timestamp: int | None = None
        """That of the newest commit which was applied; compactions and checkpoints do not keep it."""
        self._files: dict[tuple[str, str | None], Add] = {}
        self._domains: dict[str, DomainMetadata] = {}
        self._transactions: dict[str, Transaction] = {}

    @property
    def files(self) -> list[Add]:
        return list(self._files.values())

    @property
    def domains(self) -> dict[str, str]:
        """By domain its configuration, without those that were removed."""
        return {name: domain.configuration for name, domain in self._domains.items() if not domain.removed}

    @property
    def transactions(self) -> dict[str, Transaction]:
        return dict(self._transactions)

    def apply(self, actions: Iterable[Action]) -> None:
        """A commit, a compaction file or a part of a checkpoint."""
        self.in_commit_timestamp = None
        for action in actions:
            self._apply_action(action)

    def _apply_action(self, action: Action) -> None:
        if action.add is not None:
            if self._with_files:
                self._files[action.add.key] = action.add
        elif action.remove is not None:
            self._files.pop(action.remove.key, None)
        elif action.txn is not None:
            self._transactions[action.txn.app_id] = action.txn
        elif action.commit_info is not None:
            self.in_commit_timestamp = action.commit_info.in_commit_timestamp
        elif action.domain_metadata is not None:
            self._domains[action.domain_metadata.domain] = action.domain_metadata
        elif action.meta_data is not None:
            self.metadata = action.meta_data
        elif action.protocol is not None:
            self.protocol = action.protocol
