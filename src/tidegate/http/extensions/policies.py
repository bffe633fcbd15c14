"""Policies of tables, through Tidegate's own API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET
from msgspec.structs import asdict

from tidegate.domain import errors
from tidegate.domain.commit_policies import Admission, CommitPolicies, parse_writers
from tidegate.domain.names import parse_table_name
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.extensions.face import TIDEGATE
from tidegate.services.policies import change_policies, read_policies
from tidegate.wire import policies as wire

_PARSED: dict[str, Callable[[Any], Any]] = {"admission": Admission, "writers": parse_writers}


async def get(call: Call) -> wire.Policies:
    return _from_policies(await read_policies(call.env, call.caller, parse_table_name(call.path["full_name"])))


async def change(call: Call) -> wire.Policies:
    sent: dict[str, Any] = {key: value for key, value in asdict(call.body).items() if value is not UNSET}
    changes: dict[str, Any] = {key: _PARSED[key](value) if key in _PARSED else value for key, value in sent.items()}
    name = parse_table_name(call.path["full_name"])
    return _from_policies(await change_policies(call.env, call.caller, name, changes))


def _from_policies(policies: CommitPolicies) -> wire.Policies:
    return wire.Policies(
        admission=policies.admission.value,
        append_only=policies.append_only,
        schema_frozen=policies.schema_frozen,
        writers=None if policies.writers is None else list(policies.writers),
        files_max=policies.files_max,
        bytes_max=policies.bytes_max,
    )


_POLICIES = "/tables/{full_name}/policies"

ENDPOINTS: list[Endpoint] = [
    Endpoint(
        TIDEGATE,
        "GET",
        _POLICIES,
        "getPolicies",
        "What a managed table asks of its commits.",
        get,
        answer=wire.Policies,
        errors=(errors.InvalidRequest, errors.NoSuchTable, errors.UnsupportedTableFormat),
    ),
    Endpoint(
        TIDEGATE,
        "PATCH",
        _POLICIES,
        "changePolicies",
        "Change what a managed table asks of its commits: for those who manage it.",
        change,
        body=wire.ChangePolicies,
        answer=wire.Policies,
        errors=(errors.InvalidRequest, errors.NoSuchTable, errors.UnsupportedTableFormat),
    ),
]
