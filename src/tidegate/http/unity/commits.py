"""Ratified commits: get them, propose them, report them as published. By specification v0.1.0, in two spellings.

GET  /delta/commits   POST /delta/commit             as the specification has it
GET  /delta/preview/commits   POST (the same)        as the clients that exist call it
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET
from msgspec.structs import asdict

from tidegate.domain import errors
from tidegate.domain.commits import Commit
from tidegate.domain.desired_metadata import UNSTATED, DesiredMetadata
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.names import Version
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.unity.columns import to_stated
from tidegate.http.unity.face import UNITY
from tidegate.http.unity.uniform import to_uniform
from tidegate.services.get_commits import get_commits
from tidegate.services.write_commit import CommitRequest, write_commit
from tidegate.wire import unity_commits as wire
from tidegate.wire.unity import Empty, SentColumn


async def get(call: Call) -> wire.RatifiedCommits:
    asked = _merged(call.query, call.body)
    if not asked.table_id or not asked.table_uri:
        missing = "table_uri" if asked.table_id else "table_id"
        raise InvalidRequest(f"{missing} is missing. Send it in the query or in a JSON body.")
    found = await get_commits(
        call.env,
        call.caller,
        table_id=asked.table_id,
        location=asked.table_uri,
        start=asked.start_version,
        end=asked.end_version,
    )
    return wire.RatifiedCommits([from_commit(commit) for commit in found.commits], found.latest)


def _merged(query: wire.GetCommits, body: wire.GetCommits | None) -> wire.GetCommits:
    merged: dict[str, Any] = {}
    for sent in (query, body or wire.GetCommits()):
        for name, value in asdict(sent).items():
            if value is not None and merged.setdefault(name, value) != value:
                raise InvalidRequest(f"{name} is one thing in the query and another in the body. Send it once.")
    return wire.GetCommits(**merged)


async def write(call: Call) -> Empty:
    body: wire.WriteCommit = call.body
    request = CommitRequest(
        table_id=body.table_id,
        location=body.table_uri,
        commit=None if body.commit_info is None else _to_commit(body.commit_info),
        published=_published(body),
        desired=None if body.metadata is None else _to_desired(body.metadata),
        uniform=to_uniform(body.uniform),
    )
    await write_commit(call.env, call.caller, request)
    return Empty()


def _published(body: wire.WriteCommit) -> Version | None:
    told = {v for v in (body.latest_published_version, body.latest_backfilled_version) if v is not None}
    if len(told) > 1:
        raise InvalidRequest("latest_published_version and latest_backfilled_version differ. Send one of them.")
    return Version(told.pop()) if told else None


def _to_desired(sent: wire.Metadata) -> DesiredMetadata:
    for provider in (sent.provider, sent.format.provider if sent.format else None):
        if provider is not None and provider != "parquet":
            raise InvalidRequest(f"The files of a Delta table are parquet, not {provider[:50]!r}.")
    columns = _to_columns(sent)
    return DesiredMetadata(
        comment=UNSTATED if sent.description is UNSET else sent.description,
        columns=None if columns is None else to_stated(columns),
        partition_columns=None if sent.partition_columns is None else tuple(sent.partition_columns),
        properties=_to_properties(sent),
    )


def _to_columns(sent: wire.Metadata) -> list[SentColumn] | None:
    return sent.schema.columns if isinstance(sent.schema, wire.ColumnInfos) else sent.schema


def _to_properties(sent: wire.Metadata) -> dict[str, str] | None:
    if sent.properties is None:
        return None
    wrapped = sent.properties.get("properties")
    if isinstance(wrapped, dict) and len(sent.properties) == 1:
        return wrapped
    plain: dict[str, str] = {}
    for key, value in sent.properties.items():
        if not isinstance(value, str):
            raise InvalidRequest(f"The property {key[:100]} is not a text. Send texts only.")
        plain[key] = value
    return plain


def _to_commit(sent: wire.CommitInfo) -> Commit:
    return Commit(
        version=Version(sent.version),
        timestamp=sent.timestamp,
        file_name=sent.file_name,
        file_size=sent.file_size,
        file_modified_at=sent.file_modification_timestamp,
    )


def from_commit(commit: Commit) -> wire.CommitInfo:
    return wire.CommitInfo(
        version=commit.version,
        timestamp=commit.timestamp,
        file_name=commit.file_name,
        file_size=commit.file_size,
        file_modification_timestamp=commit.file_modified_at,
    )


def _getting(path: str, name: str, summary: str) -> Endpoint:
    return Endpoint(
        UNITY,
        "GET",
        path,
        name,
        summary,
        get,
        body=wire.GetCommits,
        body_required=False,
        query=wire.GetCommitsQuery,
        answer=wire.RatifiedCommits,
        errors=(errors.InvalidRequest, errors.NoSuchTable),
    )


def _writing(path: str, name: str, summary: str) -> Endpoint:
    return Endpoint(
        UNITY,
        "POST",
        path,
        name,
        summary,
        write,
        body=wire.WriteCommit,
        answer=Empty,
        errors=(
            errors.InvalidRequest,
            errors.NoSuchTable,
            errors.CommitVersionConflict,
            errors.CommitVersionGap,
            errors.RequirementConflict,
            errors.BacklogFull,
            errors.OutcomeUnknown,
        ),
    )


_GETS = "Ratified commits that are not published yet, and the latest version; asked for in the query or a JSON body."
_WRITES = "Propose a commit, with the metadata that it leads to, and report what is published."

ENDPOINTS: list[Endpoint] = [
    _getting("/delta/commits", "getCommits", _GETS),
    _writing("/delta/commit", "writeCommit", _WRITES),
    _getting("/delta/preview/commits", "getCommitsPreview", "The same as GET /delta/commits."),
    _writing("/delta/preview/commits", "writeCommitPreview", "The same as POST /delta/commit."),
]
