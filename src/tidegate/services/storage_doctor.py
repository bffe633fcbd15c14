"""The doctor for the storage of managed tables: what lies there that no table needs."""

from __future__ import annotations

from tidegate.domain.doctor import Finding, Problem, expired_staging, orphaned, unfinished
from tidegate.domain.namespaces import Catalog
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.services.environment import Environment
from tidegate.services.expire_staging import EXPIRED_AT_ONCE, expire_staging
from tidegate.services.keep_promises import GRACE_MS, keep_promises, overdue

PAGE = 1000


async def examine_storage(env: Environment, caller: Principal, *, grace_ms: int = GRACE_MS) -> list[Finding]:
    """Staging tables that have expired, folders that belong to no table, dropped table or staging table, and changes of
    ownership that have not come to an end within the grace.
    """
    await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")
    before = env.patient_clock() - env.retentions.staging_ms
    expired = await env.database.read(lambda uow: uow.staging_tables.count(made_before=before))
    found = [expired_staging(expired)] if expired else []
    found += [unfinished(promise) for promise in await overdue(env, grace_ms=grace_ms)]
    for root in await env.database.read(lambda uow: _roots(env, uow)):
        for orphan in await _orphans(env, root):
            location = f"{root}/{orphan}"
            empty = not await env.table_files.find(location, deep=True, limit=1)
            found.append(orphaned(location, empty=empty))
    return found


async def mend_storage(env: Environment, caller: Principal) -> list[Finding]:
    # Who is asked to mend does not wait: going on with what somebody else is just doing does no harm.
    found = await examine_storage(env, caller, grace_ms=0)
    for finding in found:
        if finding.problem is Problem.ORPHAN and finding.fixable:
            await env.table_files.remove_empty_folders(finding.subject)
        elif finding.problem is Problem.PROMISE:
            await keep_promises(env, grace_ms=0)
        elif finding.problem is Problem.EXPIRED_STAGING:
            # In bounded batches; their files go in the background.
            while await expire_staging(env) == EXPIRED_AT_ONCE:
                continue
    return found


def _roots(env: Environment, uow: UnitOfWork) -> list[str]:
    """Where managed tables may lie: the server's storage root, and those of catalogs and schemas."""
    roots = {env.storage_root}
    after = ""
    while catalogs := uow.catalogs.page(after=after, limit=PAGE):
        for catalog in catalogs:
            homes = [catalog.storage_location, *_schema_homes(uow, catalog)]
            roots |= {f"{home}/tables" for home in homes if home is not None}
        after = catalogs[-1].name
    return sorted(roots)


def _schema_homes(uow: UnitOfWork, catalog: Catalog) -> list[str | None]:
    homes: list[str | None] = []
    after = ""
    while schemas := uow.schemas.page(catalog, after=after, limit=PAGE):
        homes += [schema.storage_location for schema in schemas]
        after = schemas[-1].name.schema
    return homes


async def _orphans(env: Environment, root: str) -> list[str]:
    folders = await env.table_files.folders(root)
    orphans: list[str] = []
    for start in range(0, len(folders), PAGE):
        names = folders[start : start + PAGE]
        owned = await env.database.read(lambda uow: uow.tables.owned(names))  # noqa: B023
        strange = [name for name in names if name not in owned]
        orphans += await env.database.read(lambda uow: [name for name in strange if not _has_table(uow, root, name)])  # noqa: B023
    return orphans


def _has_table(uow: UnitOfWork, root: str, folder: str) -> bool:
    """A table that was adopted lies in a folder that is not called by its id, also when it is dropped."""
    place = f"{root}/{folder}"
    return (
        uow.tables.find_overlapping(place) is not None
        or uow.dropped_tables.overlaps(place)
        or uow.removals.find_overlapping(place) is not None
        or uow.staging_tables.overlaps(place)
        or uow.ownership.find_overlapping(place) is not None
    )
