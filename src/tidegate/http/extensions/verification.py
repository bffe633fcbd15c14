"""Verification of a table's log, as Tidegate's own API offers it."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.domain.names import Version, parse_table_name
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.extensions.face import TIDEGATE
from tidegate.services.verify_table import VERSIONS_AT_ONCE, verify_table
from tidegate.wire import verification as wire


async def verify(call: Call) -> wire.Verification:
    query: wire.VerifyQuery = call.query
    found = await verify_table(
        call.env,
        call.caller,
        parse_table_name(call.path["full_name"]),
        after=None if query.after is None else Version(query.after),
        limit=query.max_results or VERSIONS_AT_ONCE,
    )
    table, verified, first = found.table, found.verified, found.verified.difference
    return wire.Verification(
        full_name=str(table.name),
        table_id=table.id,
        latest_version=table.latest,
        published_version=table.published,
        chain=table.chain,
        first_version=found.first,
        last_version=found.last,
        same_since_ratified=verified.since_ratified,
        same_since_published=verified.since_published,
        same_size=verified.by_size,
        cleaned=verified.cleaned,
        unpublished=verified.unpublished,
        unchained=verified.unchained,
        difference=None if first is None else wire.Difference(first.version, first.kind.value, first.message),
        next_after=found.next_after,
    )


ENDPOINTS: list[Endpoint] = [
    Endpoint(
        TIDEGATE,
        "GET",
        "/tables/{full_name}/verify",
        "verifyTable",
        "Whether the log of a table is what was ratified, or the first version that differs; in pages.",
        verify,
        query=wire.VerifyQuery,
        answer=wire.Verification,
        errors=(errors.InvalidRequest, errors.UnsupportedTableFormat, errors.NoSuchTable),
    ),
]
