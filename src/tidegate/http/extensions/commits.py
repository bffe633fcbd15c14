"""Commits with their content, as Tidegate's own API takes and shows them."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.domain.names import Version, parse_table_name
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.extensions.face import TIDEGATE, from_commit
from tidegate.services.commit_inline import InlineRequest, commit_inline
from tidegate.services.read_inline_commits import read_inline_commits
from tidegate.wire import inline_commits as wire


async def post(call: Call) -> wire.Committed:
    body: wire.CommitRequest = call.body
    name = parse_table_name(call.path["full_name"])
    request = InlineRequest(
        table_id=body.table_id,
        content=body.content,
        version=None if body.version is None else Version(body.version),
        metadata_version=None if body.metadata_version is None else Version(body.metadata_version),
        published=None if body.latest_published_version is None else Version(body.latest_published_version),
    )
    done = await commit_inline(call.env, call.caller, name, request)
    return wire.Committed(
        version=done.commit.version,
        timestamp=done.commit.timestamp,
        file_name=done.commit.file_name,
        file_size=done.commit.file_size,
        file_modification_timestamp=done.commit.file_modified_at,
        latest_version=done.table.latest,
    )


async def get(call: Call) -> wire.KeptCommits:
    query: wire.CommitsQuery = call.query
    name = parse_table_name(call.path["full_name"])
    kept = await read_inline_commits(call.env, call.caller, name, start=query.start_version, end=query.end_version)
    return wire.KeptCommits(
        full_name=str(kept.table.name),
        table_id=kept.table.id,
        location=kept.table.location,
        latest_version=kept.latest,
        metadata_version=kept.table.metadata_version,
        commits=[from_commit(commit, kept.contents.get(commit.version)) for commit in kept.commits],
    )


_PATH = "/tables/{full_name}/commits"

ENDPOINTS: list[Endpoint] = [
    Endpoint(
        TIDEGATE,
        "GET",
        _PATH,
        "getTableCommits",
        "The latest version, and the ratified commits that are not published yet: inline ones with their content.",
        get,
        query=wire.CommitsQuery,
        answer=wire.KeptCommits,
        errors=(errors.InvalidRequest, errors.UnsupportedTableFormat, errors.NoSuchTable),
    ),
    Endpoint(
        TIDEGATE,
        "POST",
        _PATH,
        "commitInline",
        "Commit with the content in the request. Without a version it is a blind append, which becomes the next one.",
        post,
        body=wire.CommitRequest,
        answer=wire.Committed,
        errors=(
            errors.InvalidRequest,
            errors.InlineTooLarge,
            errors.UnsupportedTableFormat,
            errors.NoSuchTable,
            errors.CommitVersionConflict,
            errors.CommitVersionGap,
            errors.RequirementConflict,
            errors.BacklogFull,
            errors.OutcomeUnknown,
        ),
    ),
]
