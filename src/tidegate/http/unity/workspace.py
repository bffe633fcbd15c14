"""What clients ask of a workspace, outside of the catalogs: the setting by which DuckDB finds its default schema."""

from __future__ import annotations

from dataclasses import replace

from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.unity.face import UNITY
from tidegate.services import catalogs
from tidegate.wire import unity as wire

WORKSPACE = replace(UNITY, name="Workspace settings", root="/api/2.0")


async def default_namespace(call: Call) -> wire.DefaultNamespaceSetting:
    return wire.DefaultNamespaceSetting(setting_name=await catalogs.default_schema(call.env, call.caller))


ENDPOINTS = [
    Endpoint(
        WORKSPACE,
        "GET",
        "/settings/types/default_namespace_ws/names/default",
        "getDefaultNamespaceSetting",
        "The schema that is meant where none is named.",
        default_namespace,
        answer=wire.DefaultNamespaceSetting,
    ),
]
