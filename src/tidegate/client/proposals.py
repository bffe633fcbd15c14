"""From actions to a commit that can be proposed: checked, stamped and written down. Pure.

    [{"add": {...}}]    ->   {"commitInfo":{"inCommitTimestamp":1767225600001,"txnId":"6f1c...", ...}}
                             {"add":{...}}

The first line of a commit is its commitInfo. Every commit has a transaction id of its own and an in-commit timestamp
that is later than the one of the version before.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from tidegate.client.errors import InvalidCommit

ROW_TRACKING_DOMAIN = "delta.rowTracking"
ENGINE = "Tidegate Python client"
_ACTIONS = frozenset({"add", "remove", "cdc", "metaData", "protocol", "txn", "domainMetadata", "commitInfo"})
_ONCE = frozenset({"metaData", "protocol", "commitInfo"})

Action = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Actions that can be a commit, told apart as far as the catalog wants to know."""

    others: Sequence[Action]
    """All but the commitInfo, as they were given."""
    commit_info: Action
    metadata: Action | None
    protocol: Action | None
    domains: Mapping[str, Action]

    @property
    def changes_metadata(self) -> bool:
        """Whether the metadata that the catalog keeps may be another one after it; how far row ids go is not."""
        stated = self.metadata is not None or self.protocol is not None
        return stated or any(name != ROW_TRACKING_DOMAIN for name in self.domains)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A commit whose staged file is written: enough to propose it, and to propose it again."""

    table: str
    table_id: str
    location: str
    version: int
    timestamp: int
    txn_id: str
    file_name: str
    file_size: int
    modified_at: int
    updates: Sequence[Mapping[str, Any]]
    """What it changes of the metadata that the catalog keeps."""

    def add_commit(self) -> dict[str, Any]:
        commit = {
            "version": self.version,
            "timestamp": self.timestamp,
            "file-name": self.file_name,
            "file-size": self.file_size,
            "file-modification-timestamp": self.modified_at,
        }
        return {"action": "add-commit", "commit": commit}


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineProposal:
    """A commit that is sent with its content: enough to send it, and to send it again."""

    table: str
    table_id: str
    version: int | None
    """None: left open. It is an append, and becomes the next version."""
    metadata_version: int | None
    """With an open version: the last one that changed the metadata which the files were written for."""
    txn_id: str
    content: bytes
    changes_metadata: bool

    def body(self, *, published: int | None) -> dict[str, Any]:
        told = {
            "version": self.version,
            "metadata_version": self.metadata_version,
            "latest_published_version": published,
        }
        given = {key: value for key, value in told.items() if value is not None}
        return {"table_id": self.table_id, "content": self.content.decode(), **given}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A commit as its file would hold it."""

    timestamp: int
    txn_id: str
    content: bytes


def draft(actions: Iterable[Action]) -> Draft:
    found: dict[str, Action] = {}
    domains: dict[str, Action] = {}
    others: list[Action] = []
    for number, action in enumerate(actions, start=1):
        name, value = _single(action, number)
        if name in _ONCE and name in found:
            raise InvalidCommit(f"Action {number} is a second {name}. A commit has at most one.")
        found[name] = value
        if name == "domainMetadata":
            domain = str(value.get("domain"))
            if domain in domains:
                raise InvalidCommit(f"Action {number} names the domain {domain} again. A commit names it once.")
            domains[domain] = value
        if name != "commitInfo":
            others.append(action)
    return Draft(
        others=others,
        commit_info=found.get("commitInfo", {}),
        metadata=found.get("metaData"),
        protocol=found.get("protocol"),
        domains=domains,
    )


def stamped(draft: Draft, *, previous: int | None, now: int) -> dict[str, Any]:
    """The commitInfo, complete. `previous` is the timestamp of the version before, if it is known."""
    timestamp = draft.commit_info.get("inCommitTimestamp")
    if timestamp is None:
        timestamp = now if previous is None else max(now, previous + 1)
    elif type(timestamp) is not int or timestamp <= (previous or 0):
        raise InvalidCommit(
            f"The inCommitTimestamp {timestamp!r} is not later than {previous or 0}, which the version before has. "
            "Leave it out: the client sets it."
        )
    txn_id = draft.commit_info.get("txnId")
    if txn_id is not None and not (isinstance(txn_id, str) and txn_id):
        raise InvalidCommit(f"The txnId {txn_id!r} is not a text. Leave it out: the client sets it.")
    given = {key: value for key, value in draft.commit_info.items() if key not in {"inCommitTimestamp", "txnId"}}
    # The timestamp comes first: readers look for it at the very beginning of a file.
    return {
        "inCommitTimestamp": timestamp,
        "timestamp": timestamp,
        "operation": "WRITE",
        "operationParameters": {},
        "engineInfo": ENGINE,
        **given,
        "txnId": txn_id or str(uuid.uuid4()),
    }


def encoded(commit_info: Action, others: Sequence[Action]) -> bytes:
    """One action a line."""
    try:
        return b"".join(msgspec.json.encode(action) + b"\n" for action in ({"commitInfo": commit_info}, *others))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidCommit(f"An action cannot be written as JSON: {error}.") from None


def written(draft: Draft, *, previous: int | None, now: int) -> Written:
    info = stamped(draft, previous=previous, now=now)
    return Written(timestamp=info["inCommitTimestamp"], txn_id=info["txnId"], content=encoded(info, draft.others))


def staged_name(version: int, id: str | None = None) -> str:
    """`id`: a UUID, if it is not to be a new one."""
    return f"{version:020}.{id or uuid.uuid4()}.json"


def _single(action: Any, number: int) -> tuple[str, Action]:
    if not isinstance(action, Mapping) or len(cast("Action", action)) != 1:
        raise InvalidCommit(f'Action {number} is not an object with one key, such as {{"add": {{...}}}}.')
    (name, value), *_ = cast("Action", action).items()
    if name not in _ACTIONS:
        raise InvalidCommit(f"Action {number} is {str(name)[:50]!r}. A commit has {', '.join(sorted(_ACTIONS))} only.")
    if not isinstance(value, Mapping):
        raise InvalidCommit(f"Action {number}, {name}, is not an object.")
    return name, cast("Action", value)
