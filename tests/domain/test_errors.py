"""Errors: the tree, what each says, and that every face has a code for every one of them."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from unitycatalog.delta.models.delta_error_response import DeltaErrorResponse
from unitycatalog.delta.models.delta_error_type import DeltaErrorType

import tidegate.compose  # noqa: F401  (with the server wired, every error class that it can raise is defined)
from tests.domain.builders import NAME
from tidegate.domain import errors
from tidegate.domain.errors import (
    AlreadyExists,
    BacklogFull,
    CatalogAlreadyExists,
    CommitVersionConflict,
    CommitVersionGap,
    EventsForgotten,
    InlineTooLarge,
    InternalFailure,
    InvalidRequest,
    MalformedRequest,
    NoSuchCatalog,
    NoSuchSchema,
    NoSuchStagingTable,
    NoSuchTable,
    NotAuthenticated,
    NotEmpty,
    OutcomeUnknown,
    PermissionDenied,
    RequirementConflict,
    SchemaAlreadyExists,
    TableAlreadyExists,
    TidegateError,
    TooManyRequests,
    UnsupportedTableFormat,
)
from tidegate.http import faces
from tidegate.http.delta.face import DELTA
from tidegate.http.extensions.face import TIDEGATE
from tidegate.http.faces import BodyTooLarge, ErrorCode, Face, MethodNotAllowed, NoSuchEndpoint
from tidegate.http.unity.face import UNITY

FACES = (DELTA, UNITY, TIDEGATE)


def descendants(ancestor: type[TidegateError]) -> list[type[TidegateError]]:
    found: list[type[TidegateError]] = []
    for child in ancestor.__subclasses__():
        found += [child, *descendants(child)]
    return found


ERRORS = sorted(
    (error for error in descendants(TidegateError) if error.__module__.startswith("tidegate.")),
    key=lambda error: error.__name__,
)


def test_errors_live_in_one_tree_and_those_of_http_beside_the_faces() -> None:
    assert {error.__module__ for error in ERRORS} == {errors.__name__, faces.__name__}
    assert {NoSuchEndpoint, MethodNotAllowed, BodyTooLarge} < set(ERRORS)


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.name)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_every_error_has_a_code_of_its_own_kind_on_every_face(error: type[TidegateError], face: Face) -> None:
    nearest = next((ancestor for ancestor in error.__mro__ if ancestor in face.codes), None)
    assert nearest not in {None, TidegateError, Exception}
    assert face.code_of(error) == face.codes[nearest]
    assert 400 <= face.code_of(error).status <= 599


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.name)
def test_a_class_that_no_face_knows_has_no_code(face: Face) -> None:
    with pytest.raises(KeyError):
        face.code_of(TidegateError)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_every_delta_type_is_one_that_the_typed_client_knows(error: type[TidegateError]) -> None:
    code = DELTA.code_of(error)
    body = msgspec.json.encode(DELTA.error_body(code, TidegateError("what to change"))).decode()
    read = DeltaErrorResponse.from_json(body)
    assert read is not None
    assert read.error.type is DeltaErrorType(code.code)
    assert (read.error.code, read.error.message) == (code.status, "what to change")


@pytest.mark.parametrize("face", [UNITY, TIDEGATE], ids=lambda face: face.name)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_the_body_of_the_other_faces_holds_the_code_and_the_message(error: type[TidegateError], face: Face) -> None:
    code = face.code_of(error)
    body: dict[str, Any] = msgspec.json.decode(
        msgspec.json.encode(face.error_body(code, TidegateError("what to change")))
    )
    assert body["error_code"] == code.code
    assert body["message"] == "what to change"


@pytest.mark.parametrize(
    ("error", "status", "type"),
    [
        (MalformedRequest, 400, "BadRequestException"),
        (InvalidRequest, 400, "InvalidParameterValueException"),
        (NotEmpty, 400, "InvalidParameterValueException"),
        (UnsupportedTableFormat, 400, "UnsupportedTableFormatException"),
        (NotAuthenticated, 401, "NotAuthorizedException"),
        (PermissionDenied, 403, "PermissionDeniedException"),
        (NoSuchCatalog, 404, "NoSuchCatalogException"),
        (NoSuchSchema, 404, "NoSuchSchemaException"),
        (NoSuchTable, 404, "NoSuchTableException"),
        (NoSuchStagingTable, 404, "NoSuchTableException"),
        (TableAlreadyExists, 409, "AlreadyExistsException"),
        (CommitVersionConflict, 409, "CommitVersionConflictException"),
        (RequirementConflict, 409, "UpdateRequirementConflictException"),
        (BacklogFull, 429, "ResourceExhaustedException"),
        (TooManyRequests, 429, "TooManyRequestsException"),
        (OutcomeUnknown, 500, "CommitStateUnknownException"),
        (InternalFailure, 500, "InternalServerErrorException"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_delta_statuses_and_types_are_those_of_the_api(error: type[TidegateError], status: int, type: str) -> None:
    assert DELTA.code_of(error) == ErrorCode(status, type)


def test_delta_answers_409_only_where_a_name_is_taken_or_a_retry_helps() -> None:
    """Stock clients take every 409 for a lost race."""
    conflicts = {error for error in ERRORS if DELTA.code_of(error).status == 409}
    versions = {CommitVersionConflict, CommitVersionGap}
    assert conflicts == {*descendants(AlreadyExists), AlreadyExists, *versions, RequirementConflict}


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (InvalidRequest, 400, "INVALID_PARAMETER_VALUE"),
        (PermissionDenied, 403, "PERMISSION_DENIED"),
        (NoSuchCatalog, 404, "CATALOG_DOES_NOT_EXIST"),
        (NoSuchSchema, 404, "SCHEMA_DOES_NOT_EXIST"),
        (NoSuchTable, 404, "TABLE_DOES_NOT_EXIST"),
        (NoSuchStagingTable, 404, "TABLE_DOES_NOT_EXIST"),
        (TableAlreadyExists, 400, "TABLE_ALREADY_EXISTS"),
        (CommitVersionConflict, 409, "ALREADY_EXISTS"),
        (CommitVersionGap, 400, "INVALID_PARAMETER_VALUE"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_unity_statuses_and_codes_are_those_of_its_specification(
    error: type[TidegateError], status: int, code: str
) -> None:
    assert UNITY.code_of(error) == ErrorCode(status, code)


def test_our_own_face_differs_from_unity_only_where_that_one_is_odd() -> None:
    """Conflicts are conflicts, a table of another format has a code of its own; events and inline commits are ours."""
    differing = {error for error in ERRORS if TIDEGATE.code_of(error) != UNITY.code_of(error)}
    conflicts = {AlreadyExists, *descendants(AlreadyExists), CommitVersionGap, RequirementConflict}
    assert differing == {*conflicts, UnsupportedTableFormat, EventsForgotten, InlineTooLarge}


def drawn_tree() -> dict[str, str]:
    """Each class in the docstring of the errors with the class above it."""
    parents: dict[str, str] = {}
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        drawn = re.match(r"^(?P<indent>(?:│   |    )*(?:├── |└── )?)(?P<name>[A-Z]\w+)(?:\s{2,}|$)", line)
        if drawn is None:
            continue
        depth = len(drawn["indent"]) // 4
        above[depth:] = [drawn["name"]]
        if depth:
            parents[drawn["name"]] = above[depth - 1]
    return parents


def test_the_tree_in_the_docstring_is_the_tree_of_the_classes() -> None:
    in_tree = [error for error in ERRORS if error.__module__ == errors.__name__]
    assert drawn_tree() == {error.__name__: error.__bases__[0].__name__ for error in in_tree}


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InvalidRequest("Change it."), "Change it."),
        (UnsupportedTableFormat(NAME, "CSV"), f"{NAME} is a CSV table. This call serves Delta tables only."),
        (NotEmpty("Schema", "main.x", "tables"), "Schema main.x still holds tables. Drop them first, or delete with"),
        (NotEmpty("Schema", "main.x", "tables"), "force=true"),
        (NoSuchCatalog("sea"), "There is no catalog sea."),
        (NoSuchSchema("main.sea"), "There is no schema main.sea."),
        (NoSuchTable(NAME), f"There is no table {NAME}."),
        (NoSuchTable(NAME, hint="Look elsewhere."), f"There is no table {NAME}. Look elsewhere."),
        (CatalogAlreadyExists("sea"), "A catalog named sea already exists. Choose another name."),
        (SchemaAlreadyExists("main.sea"), "A schema named main.sea already exists."),
        (TableAlreadyExists(NAME), f"A table named {NAME} already exists."),
        (InternalFailure(), "nothing was stored. The server's log has the details"),
        (NoSuchEndpoint("/nowhere"), "There is nothing at /nowhere. GET /openapi.json lists what this server serves."),
        (MethodNotAllowed("PUT", ["GET", "POST"]), "PUT is not served here. Use GET, POST."),
        (BodyTooLarge(10), "larger than 10 bytes, the setting body_bytes_max"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_message_says_what_is_wrong_and_what_to_do(error: TidegateError, message: str) -> None:
    assert message in error.message
    assert str(error) == error.message


@pytest.mark.parametrize(
    ("kind", "proposed", "why"),
    [
        (CommitVersionConflict, 1, "is already taken"),
        (CommitVersionConflict, 4, "is already taken"),
        (CommitVersionGap, 6, "would leave a gap"),
        (CommitVersionGap, 2**63 - 1, "would leave a gap"),
    ],
)
def test_a_version_conflict_tells_the_latest_version_and_the_one_to_propose(
    kind: type[CommitVersionConflict], proposed: int, why: str
) -> None:
    error = kind(table=NAME, proposed=proposed, latest=4)
    assert error.message == (
        f"Version {proposed} of {NAME} {why}: the latest version is 4. Rebase and propose version 5."
    )
    assert (error.proposed, error.latest) == (proposed, 4)


def test_a_message_ends_and_can_be_written_as_utf_8_whatever_it_quotes() -> None:
    assert len(InvalidRequest("x" * 100_000).message) < 1100
    odd = InvalidRequest("half a character: \ud800")
    assert odd.message.encode() == b"half a character: \\ud800"


@pytest.mark.parametrize("error", [NoSuchEndpoint("/" + "x" * 100_000), MethodNotAllowed("X" * 100_000, ["GET"])])
def test_what_a_caller_sent_is_not_repeated_in_full(error: TidegateError) -> None:
    assert len(error.message) < 400
