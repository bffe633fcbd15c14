"""The commit owner of tables on file systems, through Tidegate's own API; what `tidegate.spark.commit_owner` calls."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.domain.commits import Commit
from tidegate.domain.names import Version, parse_schema_name
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.extensions.face import TIDEGATE
from tidegate.services.commit_owned import commit_owned
from tidegate.services.own_table import register_owned
from tidegate.services.owned_commits import owned_commits, publish_owned
from tidegate.wire import commit_owner as wire


async def register(call: Call) -> wire.OwnedTable:
    body: wire.RegisterOwned = call.body
    schema, version = parse_schema_name(body.schema), Version(body.version)
    promise = await register_owned(call.env, call.caller, body.location, schema, version=version)
    return wire.OwnedTable(promise.table_id, str(promise.name), promise.location, body.version + 1)


async def commit(call: Call) -> wire.OwnedCommitted:
    body: wire.OwnedCommit = call.body
    proposed = Commit(
        version=Version(body.version),
        timestamp=body.timestamp,
        file_name=body.file_name,
        file_size=body.file_size,
        file_modified_at=body.file_modification_timestamp,
    )
    done = await commit_owned(call.env, call.caller, id=call.path["table_id"], location=body.location, commit=proposed)
    published = done.table.published >= proposed.version
    return wire.OwnedCommitted(proposed.version, done.table.latest, published)


async def commits(call: Call) -> wire.UnpublishedCommits:
    query: wire.OwnedQuery = call.query
    id, start, end = call.path["table_id"], query.start_version, query.end_version
    found = await owned_commits(call.env, call.caller, id=id, location=query.location, start=start, end=end)
    shown = [
        wire.UnpublishedCommit(one.version, one.timestamp, one.file_name, one.file_size, one.file_modified_at)
        for one in found.commits
    ]
    return wire.UnpublishedCommits(shown, found.latest)


async def publish(call: Call) -> wire.PublishedOwned:
    body: wire.PublishOwned = call.body
    table = await publish_owned(
        call.env, call.caller, id=call.path["table_id"], location=body.location, version=body.version
    )
    return wire.PublishedOwned(table.published)


_TABLES = "/owned-tables"
_COMMITS = f"{_TABLES}/{{table_id}}/commits"

ENDPOINTS: list[Endpoint] = [
    Endpoint(
        TIDEGATE,
        "POST",
        _TABLES,
        "registerOwnedTable",
        "Agree to be the commit owner of a table on a file system, from the next version in its log on.",
        register,
        body=wire.RegisterOwned,
        answer=wire.OwnedTable,
        errors=(errors.InvalidRequest, errors.NoSuchSchema, errors.NoSuchCatalog),
    ),
    Endpoint(
        TIDEGATE,
        "POST",
        _COMMITS,
        "commitOwned",
        "Commit a staged file to a table that has the catalog as its commit owner.",
        commit,
        body=wire.OwnedCommit,
        answer=wire.OwnedCommitted,
        errors=(
            errors.InvalidRequest,
            errors.NoSuchTable,
            errors.CommitVersionConflict,
            errors.CommitVersionGap,
            errors.BacklogFull,
            errors.OutcomeUnknown,
        ),
    ),
    Endpoint(
        TIDEGATE,
        "GET",
        _COMMITS,
        "getOwnedCommits",
        "The latest version, and the ratified commits that are not published yet.",
        commits,
        query=wire.OwnedQuery,
        answer=wire.UnpublishedCommits,
        errors=(errors.InvalidRequest, errors.NoSuchTable),
    ),
    Endpoint(
        TIDEGATE,
        "POST",
        f"{_TABLES}/{{table_id}}/publish",
        "publishOwned",
        "Publish all commits up to a version now: their files are in the log when this answers.",
        publish,
        body=wire.PublishOwned,
        answer=wire.PublishedOwned,
        errors=(errors.InvalidRequest, errors.NoSuchTable),
    ),
]
