"""The doctor, as Tidegate's own API offers it: look at a table, or mend what is safe to mend."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.domain import errors
from tidegate.domain.doctor import Finding
from tidegate.domain.names import parse_table_name
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.extensions.face import TIDEGATE
from tidegate.services.doctor import examine_table, mend_table
from tidegate.services.storage_doctor import examine_storage, mend_storage
from tidegate.wire import doctor as wire


async def look_at_table(call: Call) -> wire.Findings:
    return _findings(await examine_table(call.env, call.caller, parse_table_name(call.path["full_name"])))


async def mend_a_table(call: Call) -> wire.Findings:
    return _findings(await mend_table(call.env, call.caller, parse_table_name(call.path["full_name"])))


async def look_at_storage(call: Call) -> wire.Findings:
    return _findings(await examine_storage(call.env, call.caller))


async def mend_the_storage(call: Call) -> wire.Findings:
    return _findings(await mend_storage(call.env, call.caller))


def _findings(found: Sequence[Finding]) -> wire.Findings:
    return wire.Findings([wire.Finding(one.problem.value, one.subject, one.message, one.fixable) for one in found])


_ERRORS = (errors.InvalidRequest, errors.NoSuchTable)

ENDPOINTS: list[Endpoint] = [
    Endpoint(
        TIDEGATE,
        "GET",
        "/doctor/tables/{full_name}",
        "examineTable",
        "What is wrong with a table: catalog, log and store compared. Changes nothing.",
        look_at_table,
        answer=wire.Findings,
        errors=_ERRORS,
    ),
    Endpoint(
        TIDEGATE,
        "POST",
        "/doctor/tables/{full_name}",
        "mendTable",
        "Mends what is safe to mend. Answers with what was found before.",
        mend_a_table,
        answer=wire.Findings,
        errors=_ERRORS,
    ),
    Endpoint(
        TIDEGATE,
        "GET",
        "/doctor/storage",
        "examineStorage",
        "What is wrong in the storage of managed tables: expired staging tables, folders that no table has.",
        look_at_storage,
        answer=wire.Findings,
    ),
    Endpoint(
        TIDEGATE,
        "POST",
        "/doctor/storage",
        "mendStorage",
        "Mends what is safe to mend in the storage of managed tables. Answers with what was found before.",
        mend_the_storage,
        answer=wire.Findings,
    ),
]
