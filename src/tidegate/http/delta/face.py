"""Delta REST v1.0: its root and its errors."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.domain.errors import TidegateError
from tidegate.http import faces
from tidegate.http.delta.conversion import from_commit
from tidegate.http.faces import ErrorCode, Face
from tidegate.wire import delta as wire


def _error_body(code: ErrorCode, error: TidegateError) -> wire.ErrorResponse:
    model = wire.ErrorModel(code.code, code.status, error.message)
    if not isinstance(error, errors.CommitVersionConflict):
        return wire.ErrorResponse(model)
    winners = [from_commit(commit) for commit in error.winners]
    return wire.ErrorResponse(model, wire.Conflict(error.latest, winners, error.append_stands))


DELTA = Face(
    name="Delta REST v1.0",
    root="/api/2.1/unity-catalog/delta/v1",
    codes={
        errors.MalformedRequest: ErrorCode(400, "BadRequestException"),
        errors.InvalidRequest: ErrorCode(400, "InvalidParameterValueException"),
        errors.UnsupportedTableFormat: ErrorCode(400, "UnsupportedTableFormatException"),
        errors.NotAuthenticated: ErrorCode(401, "NotAuthorizedException"),
        errors.PermissionDenied: ErrorCode(403, "PermissionDeniedException"),
        # The stock client takes a 403 for a commit for a failure of the network, and tries again for eight minutes.
        errors.CommitNotAllowed: ErrorCode(400, "InvalidParameterValueException"),
        errors.NotFound: ErrorCode(404, "NotFoundException"),
        errors.NoSuchCatalog: ErrorCode(404, "NoSuchCatalogException"),
        errors.NoSuchSchema: ErrorCode(404, "NoSuchSchemaException"),
        errors.NoSuchTable: ErrorCode(404, "NoSuchTableException"),
        errors.NoSuchStagingTable: ErrorCode(404, "NoSuchTableException"),
        faces.NoSuchEndpoint: ErrorCode(404, "NotFoundException"),
        faces.MethodNotAllowed: ErrorCode(405, "BadRequestException"),
        errors.AlreadyExists: ErrorCode(409, "AlreadyExistsException"),
        errors.CommitVersionConflict: ErrorCode(409, "CommitVersionConflictException"),
        errors.RequirementConflict: ErrorCode(409, "UpdateRequirementConflictException"),
        faces.BodyTooLarge: ErrorCode(413, "BadRequestException"),
        errors.BacklogFull: ErrorCode(429, "ResourceExhaustedException"),
        errors.TooManyRequests: ErrorCode(429, "TooManyRequestsException"),
        errors.OutcomeUnknown: ErrorCode(500, "CommitStateUnknownException"),
        errors.InternalFailure: ErrorCode(500, "InternalServerErrorException"),
        errors.Unavailable: ErrorCode(503, "InternalServerErrorException"),
    },
    error_body=_error_body,
    error_type=wire.ErrorResponse,
)
