"""Tables that are taken over and given back, through Tidegate's own API."""

from __future__ import annotations

import json

from tidegate.domain import errors
from tidegate.domain.names import parse_table_name
from tidegate.domain.ownership import AdoptableLocation, Kept
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.extensions.face import TIDEGATE
from tidegate.services.adopt_table import adopt_table
from tidegate.services.adoptable_locations import allow_adoption, disallow_adoption, list_adoptable, list_promises
from tidegate.services.release_table import release_table
from tidegate.wire import ownership as wire


async def adopt(call: Call) -> wire.AdoptedTable:
    body: wire.AdoptTable = call.body
    name = parse_table_name(body.full_name)
    done = await adopt_table(call.env, call.caller, body.location, name, external=body.external, dry_run=body.dry_run)
    actions = [json.loads(line) for line in done.content.splitlines()]
    return wire.AdoptedTable(str(done.name), done.table_id, done.location, done.version, actions)


async def release(call: Call) -> wire.ReleasedTable:
    body: wire.ReleaseTable | None = call.body
    kept = Kept.EXTERNAL if body is None else Kept(body.keep)
    done = await release_table(call.env, call.caller, parse_table_name(call.path["full_name"]), kept=kept)
    return wire.ReleasedTable(str(done.name), done.table_id, done.location, done.version, done.kept.value)


async def promises(call: Call) -> wire.OwnershipPromises:
    return wire.OwnershipPromises(
        [
            wire.OwnershipPromise(
                table_id=one.table_id,
                change=one.change.value,
                full_name=str(one.name),
                location=one.location,
                version=one.version,
                begun_at=one.begun_at,
                begun_by=one.begun_by,
            )
            for one in await list_promises(call.env, call.caller)
        ]
    )


async def list_locations(call: Call) -> wire.AdoptableLocations:
    return wire.AdoptableLocations([_from_place(one) for one in await list_adoptable(call.env, call.caller)])


async def allow(call: Call) -> wire.AdoptableLocation:
    return _from_place(await allow_adoption(call.env, call.caller, call.body.location))


async def disallow(call: Call) -> None:
    await disallow_adoption(call.env, call.caller, call.query.location)


def _from_place(place: AdoptableLocation) -> wire.AdoptableLocation:
    return wire.AdoptableLocation(place.location, place.added_at, place.added_by)


_PLACES = "/adoptable-locations"

ENDPOINTS: list[Endpoint] = [
    Endpoint(
        TIDEGATE,
        "POST",
        "/adoptions",
        "adoptTable",
        "Take a table of a file system over: it becomes a managed one, with its data, its history and its place.",
        adopt,
        body=wire.AdoptTable,
        answer=wire.AdoptedTable,
        errors=(
            errors.InvalidRequest,
            errors.NoSuchSchema,
            errors.NoSuchCatalog,
            errors.TableAlreadyExists,
            errors.OutcomeUnknown,
        ),
    ),
    Endpoint(
        TIDEGATE,
        "POST",
        "/tables/{full_name}/release",
        "releaseTable",
        "Give a managed table back to its file system, with all of its history.",
        release,
        body=wire.ReleaseTable,
        body_required=False,
        answer=wire.ReleasedTable,
        errors=(errors.InvalidRequest, errors.NoSuchTable, errors.OutcomeUnknown),
    ),
    Endpoint(
        TIDEGATE,
        "GET",
        "/ownership-promises",
        "listOwnershipPromises",
        "Tables that are being taken over or given back right now, the oldest first.",
        promises,
        answer=wire.OwnershipPromises,
    ),
    Endpoint(
        TIDEGATE,
        "GET",
        _PLACES,
        "listAdoptableLocations",
        "Where tables may be adopted from, besides the storage of managed tables.",
        list_locations,
        answer=wire.AdoptableLocations,
    ),
    Endpoint(
        TIDEGATE,
        "POST",
        _PLACES,
        "allowAdoption",
        "Allow to adopt tables at this place and below it.",
        allow,
        body=wire.AllowLocation,
        answer=wire.AdoptableLocation,
        errors=(errors.InvalidRequest,),
    ),
    Endpoint(
        TIDEGATE,
        "DELETE",
        _PLACES,
        "disallowAdoption",
        "Allow it no longer. Tables that were adopted from there stay what they are.",
        disallow,
        query=wire.LocationQuery,
        status=204,
        errors=(errors.InvalidRequest, errors.NotFound),
    ),
]
