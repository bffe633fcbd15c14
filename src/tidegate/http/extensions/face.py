"""Tidegate's own API: its root and its errors, spelled as the Unity Catalog API spells them."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.http import faces
from tidegate.http.faces import ErrorCode, Face
from tidegate.wire import unity as wire

TIDEGATE = Face(
    name="Tidegate",
    root="/api/tidegate/v1",
    codes={
        errors.MalformedRequest: ErrorCode(400, "INVALID_PARAMETER_VALUE"),
        errors.InvalidRequest: ErrorCode(400, "INVALID_PARAMETER_VALUE"),
        errors.UnsupportedTableFormat: ErrorCode(400, "UNSUPPORTED_TABLE_FORMAT"),
        errors.NotEmpty: ErrorCode(400, "FAILED_PRECONDITION"),
        errors.NotAuthenticated: ErrorCode(401, "UNAUTHENTICATED"),
        errors.PermissionDenied: ErrorCode(403, "PERMISSION_DENIED"),
        errors.NotFound: ErrorCode(404, "NOT_FOUND"),
        errors.NoSuchCatalog: ErrorCode(404, "CATALOG_DOES_NOT_EXIST"),
        errors.NoSuchSchema: ErrorCode(404, "SCHEMA_DOES_NOT_EXIST"),
        errors.NoSuchTable: ErrorCode(404, "TABLE_DOES_NOT_EXIST"),
        errors.NoSuchStagingTable: ErrorCode(404, "TABLE_DOES_NOT_EXIST"),
        faces.NoSuchEndpoint: ErrorCode(404, "ENDPOINT_NOT_FOUND"),
        faces.MethodNotAllowed: ErrorCode(405, "METHOD_NOT_ALLOWED"),
        errors.AlreadyExists: ErrorCode(409, "RESOURCE_ALREADY_EXISTS"),
        errors.CatalogAlreadyExists: ErrorCode(409, "CATALOG_ALREADY_EXISTS"),
        errors.SchemaAlreadyExists: ErrorCode(409, "SCHEMA_ALREADY_EXISTS"),
        errors.TableAlreadyExists: ErrorCode(409, "TABLE_ALREADY_EXISTS"),
        errors.CommitVersionConflict: ErrorCode(409, "ALREADY_EXISTS"),
        errors.RequirementConflict: ErrorCode(409, "ABORTED"),
        faces.BodyTooLarge: ErrorCode(413, "REQUEST_TOO_LARGE"),
        errors.BacklogFull: ErrorCode(429, "RESOURCE_EXHAUSTED"),
        errors.TooManyRequests: ErrorCode(429, "TOO_MANY_REQUESTS"),
        errors.OutcomeUnknown: ErrorCode(500, "COMMIT_STATE_UNKNOWN"),
        errors.InternalFailure: ErrorCode(500, "INTERNAL_ERROR"),
        errors.Unavailable: ErrorCode(503, "TEMPORARILY_UNAVAILABLE"),
    },
    error_body=lambda code, message: wire.ErrorResponse(code.code, message),
    error_type=wire.ErrorResponse,
)
