"""The timeline of a table, as Tidegate's own API shows it."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.domain.names import parse_table_name
from tidegate.domain.timeline import Entry
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.extensions.face import TIDEGATE
from tidegate.services.paging import PageRequest
from tidegate.services.timeline import Timeline, read_timeline
from tidegate.wire import tidegate as wire


async def get(call: Call) -> wire.Timeline:
    query: wire.TimelineQuery = call.query
    name = parse_table_name(call.path["full_name"])
    page = PageRequest(query.max_results, query.page_token)
    return from_timeline(await read_timeline(call.env, call.caller, name, page))


def from_timeline(timeline: Timeline) -> wire.Timeline:
    return wire.Timeline(
        full_name=str(timeline.name),
        table_id=timeline.table_id,
        table_type=timeline.table_type.value,
        latest_version=timeline.latest,
        verified_version=timeline.verified,
        conflicts=timeline.counts.conflicts,
        replays=timeline.counts.replays,
        since=timeline.counts.since,
        alarms=[
            wire.Alarm(alarm.version, alarm.reason.value, alarm.message, alarm.raised_at) for alarm in timeline.alarms
        ],
        commits=[_from_entry(entry) for entry in timeline.entries],
        next_page_token=timeline.next_token,
    )


def _from_entry(entry: Entry) -> wire.TimelineEntry:
    return wire.TimelineEntry(
        version=entry.version,
        timestamp=entry.timestamp,
        proposed_at=entry.proposed_at,
        ratified_at=entry.ratified_at,
        published_at=entry.published_at,
        verified=entry.verified,
        file_name=entry.file_name,
        file_size=entry.file_size,
    )


ENDPOINTS: list[Endpoint] = [
    Endpoint(
        TIDEGATE,
        "GET",
        "/tables/{full_name}/timeline",
        "getTimeline",
        "When each commit of a table was proposed, ratified and published, newest first, in pages.",
        get,
        query=wire.TimelineQuery,
        answer=wire.Timeline,
        errors=(errors.InvalidRequest, errors.UnsupportedTableFormat, errors.NoSuchTable),
    ),
]
