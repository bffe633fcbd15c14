"""From an answer that is no success to the error that a program sees: by status and code, never by text.

The faces of the server spell errors differently; the table below knows both spellings.
"""

from __future__ import annotations

import msgspec

from tidegate.client import errors
from tidegate.client.wire import Conflict, ErrorBody, InlineConflict

MESSAGE_LENGTH_MAX = 1000

_BY_CODE: dict[str, type[errors.TidegateError]] = {
    "NoSuchCatalogException": errors.NoSuchCatalog,
    "CATALOG_DOES_NOT_EXIST": errors.NoSuchCatalog,
    "NoSuchSchemaException": errors.NoSuchSchema,
    "SCHEMA_DOES_NOT_EXIST": errors.NoSuchSchema,
    "NoSuchTableException": errors.NoSuchTable,
    "TABLE_DOES_NOT_EXIST": errors.NoSuchTable,
    "AlreadyExistsException": errors.AlreadyExists,
    "RESOURCE_ALREADY_EXISTS": errors.AlreadyExists,
    "CATALOG_ALREADY_EXISTS": errors.AlreadyExists,
    "SCHEMA_ALREADY_EXISTS": errors.AlreadyExists,
    "TABLE_ALREADY_EXISTS": errors.AlreadyExists,
    "FAILED_PRECONDITION": errors.NotEmpty,
    "UpdateRequirementConflictException": errors.RequirementConflict,
    "EVENTS_FORGOTTEN": errors.EventsForgotten,
}
_BY_STATUS: dict[int, type[errors.TidegateError]] = {
    400: errors.InvalidRequest,
    401: errors.NotAuthenticated,
    403: errors.PermissionDenied,
    404: errors.NotFound,
    409: errors.RequirementConflict,
    410: errors.EventsForgotten,
    413: errors.InvalidRequest,
    429: errors.TooBusy,
}
_OUTCOME_UNKNOWN = frozenset({"CommitStateUnknownException", "COMMIT_STATE_UNKNOWN"})
_NO_SUCH_CALL = frozenset({"ENDPOINT_NOT_FOUND", "METHOD_NOT_ALLOWED"})
_VERSION_TAKEN = frozenset({"CommitVersionConflictException", "ALREADY_EXISTS"})
_TOO_LARGE = "COMMIT_TOO_LARGE"
_METADATA_CHANGED = "ABORTED"


def refusal(status: int, body: bytes, *, url: str) -> errors.TidegateError:
    told = _read(body)
    if told is None:
        if status in {502, 503, 504}:
            return errors.ServerFailure(f"The server at {url} is not available (status {status}). Try again later.")
        return errors.NotATidegate(url, f"status {status} without a message")
    code, message = told
    if status == 405 or code in _NO_SUCH_CALL:
        return errors.NotATidegate(url, message)
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status, errors.ServerFailure)
    return kind(message)


def says_outcome_unknown(status: int, body: bytes) -> bool:
    return status == 500 and _code(body) in _OUTCOME_UNKNOWN


def says_version_taken(status: int, body: bytes) -> bool:
    return status == 409 and _code(body) in _VERSION_TAKEN


def says_too_large(status: int, body: bytes) -> bool:
    """Of an inline commit: it has to be staged."""
    return status == 400 and _code(body) == _TOO_LARGE


def says_metadata_changed(status: int, body: bytes) -> bool:
    """Of an append that left its version open."""
    return status == 409 and _code(body) == _METADATA_CHANGED


def says_no_such_call(status: int, body: bytes) -> bool:
    """In a server's own words: what stands in between has others, and does not know what the server knows."""
    return status in {404, 405} and _code(body) in _NO_SUCH_CALL


def told_conflict(body: bytes) -> Conflict | None:
    """None from a server that tells nothing beyond the error."""
    try:
        return _conflict(msgspec.json.decode(body, type=ErrorBody).conflict)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _conflict(told: msgspec.Raw) -> Conflict | None:
    try:
        return msgspec.json.decode(told, type=Conflict | None)
    except msgspec.ValidationError:
        return msgspec.json.decode(told, type=InlineConflict).conflict()


def _code(body: bytes) -> str | None:
    told = _read(body)
    return None if told is None else told[0]


def _read(body: bytes) -> tuple[str, str] | None:
    """Code and message; None if the body is not one of Tidegate's."""
    try:
        told = msgspec.json.decode(body, type=ErrorBody)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if told.error is not None:
        return told.error.type, told.error.message[:MESSAGE_LENGTH_MAX]
    if told.error_code is None or told.message is None:
        return None
    return told.error_code, told.message[:MESSAGE_LENGTH_MAX]
