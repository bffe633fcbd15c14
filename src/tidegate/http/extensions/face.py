"""Tidegate's own API: its root and its errors, spelled as the Unity Catalog API spells them."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.http.faces import ErrorCode, Face
from tidegate.http.unity.face import UNITY

TIDEGATE = Face(
    name="Tidegate",
    root="/api/tidegate/v1",
    codes={
        **UNITY.codes,
        errors.UnsupportedTableFormat: ErrorCode(400, "UNSUPPORTED_TABLE_FORMAT"),
        errors.EventsForgotten: ErrorCode(410, "EVENTS_FORGOTTEN"),
        # Conflicts are conflicts, as everywhere but in that API.
        errors.CommitVersionGap: ErrorCode(409, "ALREADY_EXISTS"),
        errors.RequirementConflict: ErrorCode(409, "ABORTED"),
        errors.AlreadyExists: ErrorCode(409, "RESOURCE_ALREADY_EXISTS"),
        errors.CatalogAlreadyExists: ErrorCode(409, "CATALOG_ALREADY_EXISTS"),
        errors.SchemaAlreadyExists: ErrorCode(409, "SCHEMA_ALREADY_EXISTS"),
        errors.TableAlreadyExists: ErrorCode(409, "TABLE_ALREADY_EXISTS"),
    },
    error_body=UNITY.error_body,
    error_type=UNITY.error_type,
)
