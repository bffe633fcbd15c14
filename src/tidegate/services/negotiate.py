"""The first call of a client: which protocol version do we speak, for a catalog that exists?"""

from __future__ import annotations

from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.versions import negotiate
from tidegate.services.environment import Environment


async def negotiate_version(env: Environment, caller: Principal, *, catalog: str, offered: str) -> str:
    version = negotiate(offered)
    await env.authorize(caller, Operation.USE_CATALOG, catalog)
    await env.database.read(lambda uow: uow.catalogs.get(catalog))
    return version
