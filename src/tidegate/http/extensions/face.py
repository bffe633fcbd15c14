"""Tidegate's own API: its root and its errors, spelled as the Unity Catalog API spells them."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.domain.commits import Commit
from tidegate.http.faces import ErrorCode, Face
from tidegate.http.unity.face import UNITY
from tidegate.wire import inline_commits as wire


def from_commit(commit: Commit, content: bytes | None) -> wire.KeptCommit:
    return wire.KeptCommit(
        version=commit.version,
        timestamp=commit.timestamp,
        file_name=commit.file_name,
        file_size=commit.file_size,
        file_modification_timestamp=commit.file_modified_at,
        inline=commit.inline,
        content=None if content is None else content.decode(),
    )


def _error_body(code: ErrorCode, error: errors.TidegateError) -> wire.ErrorResponse:
    if not isinstance(error, errors.CommitVersionConflict):
        return wire.ErrorResponse(code.code, error.message)
    winners = [from_commit(commit, None) for commit in error.winners]
    return wire.ErrorResponse(code.code, error.message, wire.Conflict(error.latest, error.append_stands, winners))


TIDEGATE = Face(
    name="Tidegate",
    root="/api/tidegate/v1",
    codes={
        **UNITY.codes,
        errors.UnsupportedTableFormat: ErrorCode(400, "UNSUPPORTED_TABLE_FORMAT"),
        errors.EventsForgotten: ErrorCode(410, "EVENTS_FORGOTTEN"),
        errors.InlineTooLarge: ErrorCode(400, "COMMIT_TOO_LARGE"),
        # Conflicts are conflicts, as everywhere but in that API.
        errors.CommitVersionGap: ErrorCode(409, "ALREADY_EXISTS"),
        errors.RequirementConflict: ErrorCode(409, "ABORTED"),
        errors.AlreadyExists: ErrorCode(409, "RESOURCE_ALREADY_EXISTS"),
        errors.CatalogAlreadyExists: ErrorCode(409, "CATALOG_ALREADY_EXISTS"),
        errors.SchemaAlreadyExists: ErrorCode(409, "SCHEMA_ALREADY_EXISTS"),
        errors.TableAlreadyExists: ErrorCode(409, "TABLE_ALREADY_EXISTS"),
    },
    error_body=_error_body,
    error_type=wire.ErrorResponse,
)
