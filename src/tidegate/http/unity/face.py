"""The Unity Catalog API: its root and its errors, in the words of specification v0.1.0."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.http import faces
from tidegate.http.faces import ErrorCode, Face
from tidegate.wire import unity as wire

UNITY = Face(
    name="Unity Catalog",
    root="/api/2.1/unity-catalog",
    codes={
        errors.MalformedRequest: ErrorCode(400, "INVALID_PARAMETER_VALUE"),
        errors.InvalidRequest: ErrorCode(400, "INVALID_PARAMETER_VALUE"),
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
        # A taken name is a 400 in this API and a 409 in Delta REST v1.0.
        errors.AlreadyExists: ErrorCode(400, "RESOURCE_ALREADY_EXISTS"),
        errors.CatalogAlreadyExists: ErrorCode(400, "CATALOG_ALREADY_EXISTS"),
        errors.SchemaAlreadyExists: ErrorCode(400, "SCHEMA_ALREADY_EXISTS"),
        errors.TableAlreadyExists: ErrorCode(400, "TABLE_ALREADY_EXISTS"),
        errors.CommitVersionConflict: ErrorCode(409, "ALREADY_EXISTS"),
        # A version that nobody holds is an invalid one in this API. Its clients rebase and retry after a 409 only.
        errors.CommitVersionGap: ErrorCode(400, "INVALID_PARAMETER_VALUE"),
        errors.RequirementConflict: ErrorCode(400, "INVALID_PARAMETER_VALUE"),
        faces.BodyTooLarge: ErrorCode(413, "REQUEST_TOO_LARGE"),
        errors.BacklogFull: ErrorCode(429, "RESOURCE_EXHAUSTED"),
        errors.TooManyRequests: ErrorCode(429, "TOO_MANY_REQUESTS"),
        errors.OutcomeUnknown: ErrorCode(500, "COMMIT_STATE_UNKNOWN"),
        errors.InternalFailure: ErrorCode(500, "INTERNAL_ERROR"),
        errors.Unavailable: ErrorCode(503, "TEMPORARILY_UNAVAILABLE"),
    },
    error_body=lambda code, error: wire.ErrorResponse(code.code, error.message),
    error_type=wire.ErrorResponse,
)
