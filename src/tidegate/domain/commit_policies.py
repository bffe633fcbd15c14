"""What a table asks of its commits, beyond the rules that hold for all: kept with it, in properties of the catalog.

    tidegate.admission              full (the default): every commit is read; declared: the request is trusted
    tidegate.policy.append-only     true: no commit takes data away
    tidegate.policy.schema-frozen   true: columns and partitioning stay as they are
    tidegate.policy.writers         ["etl","ann"]: nobody else commits
    tidegate.policy.files-max       the most files that one commit adds
    tidegate.policy.bytes-max       the most bytes that it adds

They are shown with all other properties, never reach the log, and are changed by those who manage the table, through a
call of their own: who may change properties cannot switch off what guards them. Delta's own `delta.appendOnly` is held
too; it is a property of the log and changes as such.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, cast

from tidegate.domain.commit_contents import CommitContent
from tidegate.domain.errors import CommitNotAllowed, InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.tables import Table, TableMetadata

ADMISSION_PROPERTY: Final = "tidegate.admission"
POLICY_PREFIX: Final = "tidegate.policy."
APPEND_ONLY: Final = f"{POLICY_PREFIX}append-only"
SCHEMA_FROZEN: Final = f"{POLICY_PREFIX}schema-frozen"
WRITERS: Final = f"{POLICY_PREFIX}writers"
FILES_MAX: Final = f"{POLICY_PREFIX}files-max"
BYTES_MAX: Final = f"{POLICY_PREFIX}bytes-max"
DELTA_APPEND_ONLY: Final = "delta.appendOnly"
WRITERS_MAX: Final = 1000


class Admission(StrEnum):
    FULL = "full"
    DECLARED = "declared"


@frozen
class CommitPolicies:
    admission: Admission = Admission.FULL
    append_only: bool = False
    schema_frozen: bool = False
    writers: tuple[str, ...] | None = None
    """None: all who have the right."""
    files_max: int | None = None
    bytes_max: int | None = None

    @property
    def need_content(self) -> bool:
        """Whether nobody can tell without having read the commit."""
        return self.append_only or self.files_max is not None or self.bytes_max is not None

    def check(self) -> None:
        for name, value in (("files_max", self.files_max), ("bytes_max", self.bytes_max)):
            if value is not None and value < 0:
                raise InvalidRequest(f"{name} is 0 or higher, not {value}. Leave it out for no limit.")
        if self.writers is not None and len(self.writers) > WRITERS_MAX:
            raise InvalidRequest(f"A table names at most {WRITERS_MAX} writers. Grant MODIFY to a group instead.")

    def properties(self) -> dict[str, str]:
        """As they are kept: what is as it is by default is left out."""
        said: dict[str, str | None] = {
            ADMISSION_PROPERTY: None if self.admission is Admission.FULL else self.admission.value,
            APPEND_ONLY: "true" if self.append_only else None,
            SCHEMA_FROZEN: "true" if self.schema_frozen else None,
            WRITERS: None if self.writers is None else json.dumps(self.writers),
            FILES_MAX: None if self.files_max is None else str(self.files_max),
            BYTES_MAX: None if self.bytes_max is None else str(self.bytes_max),
        }
        return {key: value for key, value in said.items() if value is not None}


def is_policy_property(key: str) -> bool:
    """Whether the key is changed through its own call only."""
    return key == ADMISSION_PROPERTY or key.startswith(POLICY_PREFIX)


def policies_of(metadata: TableMetadata) -> CommitPolicies:
    kept, in_log = metadata.catalog_properties, metadata.properties.get(DELTA_APPEND_ONLY)
    if not kept and in_log is None:
        return DEFAULT
    told = tuple(sorted((key, value) for key, value in kept.items() if is_policy_property(key)))
    return _parse(told, str(in_log).lower() == "true")


@lru_cache(maxsize=1024)
def _parse(kept: tuple[tuple[str, str], ...], append_only: bool) -> CommitPolicies:
    told = dict(kept)
    return CommitPolicies(
        admission=Admission(told.get(ADMISSION_PROPERTY, Admission.FULL)),
        append_only=append_only or told.get(APPEND_ONLY) == "true",
        schema_frozen=told.get(SCHEMA_FROZEN) == "true",
        writers=tuple(json.loads(told[WRITERS])) if WRITERS in told else None,
        files_max=_number(told, FILES_MAX),
        bytes_max=_number(told, BYTES_MAX),
    )


def kept_policies(metadata: TableMetadata) -> CommitPolicies:
    """Those that were set on the table, without what its log says."""
    return policies_of_properties(metadata.catalog_properties)


def policies_of_properties(kept: Mapping[str, str]) -> CommitPolicies:
    return _parse(tuple(sorted((key, value) for key, value in kept.items() if is_policy_property(key))), False)


def check_policies(table: Table, after: TableMetadata, content: CommitContent | None, *, principal: str) -> None:
    """Raises what tells the writer which policy its commit is against. `content` is there if a policy needs it."""
    policies = policies_of(table.metadata)
    if policies is DEFAULT:
        return
    if policies.writers is not None and principal not in policies.writers:
        raise CommitNotAllowed(f"{table.name} takes commits of certain writers only ({WRITERS}), not of {principal}.")
    if policies.schema_frozen:
        _check_frozen(table, after)
    if content is not None:
        _check_content(table, policies, content)


def _check_frozen(table: Table, after: TableMetadata) -> None:
    before = table.metadata
    if before.columns != after.columns or before.partition_columns != after.partition_columns:
        raise InvalidRequest(
            f"The schema of {table.name} is frozen ({SCHEMA_FROZEN}): its columns and its partitioning stay as they "
            "are. Ask who manages the table."
        )


def _check_content(table: Table, policies: CommitPolicies, content: CommitContent) -> None:
    files = content.files
    if policies.append_only and files.removed_in_line is not None:
        why = DELTA_APPEND_ONLY if not kept_policies(table.metadata).append_only else APPEND_ONLY
        raise InvalidRequest(
            f"Line {files.removed_in_line} of {content.what}, remove, takes data away, and {table.name} is append-only "
            f"({why}). Append, or rewrite files with dataChange=false."
        )
    if policies.files_max is not None and files.added > policies.files_max:
        raise InvalidRequest(
            f"The commit adds {files.added} files to {table.name}; {policies.files_max} is the most that one may add "
            f"({FILES_MAX}). Write fewer, larger files, or several commits."
        )
    if policies.bytes_max is not None and files.added_bytes > policies.bytes_max:
        raise InvalidRequest(
            f"The commit adds {files.added_bytes} bytes to {table.name}; {policies.bytes_max} is the most that one may "
            f"add ({BYTES_MAX}). Split it into several."
        )


def _number(told: Mapping[str, str], key: str) -> int | None:
    return int(told[key]) if key in told else None


def parse_writers(writers: object) -> tuple[str, ...] | None:
    if writers is None:
        return None
    return tuple(sorted({str(one) for one in cast("list[Any]", writers)}))


DEFAULT: Final = CommitPolicies()
