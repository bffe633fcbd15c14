"""Publishing now what the publisher would do in a while: for who cannot go on before it is done."""

from __future__ import annotations

import asyncio

from tidegate.domain.errors import InvalidRequest, Unavailable
from tidegate.domain.names import TableId, Version
from tidegate.domain.tables import Table
from tidegate.services.environment import Environment
from tidegate.services.publish_commits import PublishingBlocked, publish_commits

ATTEMPTS_MAX = 100
PAUSE_SECONDS = 0.1


async def published_whole(env: Environment, id: TableId, *, up_to: Version | None = None) -> Table:
    """The table, with all commits up to this version, or up to its latest one, in its log and verified there.

    Raises InvalidRequest if something is in the way that only a person can remove.
    """
    table = await env.database.read(lambda uow: uow.tables.get_by_id(id))
    for _ in range(ATTEMPTS_MAX):
        wanted = table.latest if up_to is None else min(up_to, table.latest)
        if table.published >= wanted:
            return table
        try:
            await publish_commits(env, id, up_to=wanted)
        except Unavailable:
            # The publisher may be at it; one of the two does it.
            await asyncio.sleep(PAUSE_SECONDS)
        except PublishingBlocked as blocked:
            raise InvalidRequest(f"{table.name} cannot be published before this is mended: {blocked}") from blocked
        table = await env.database.read(lambda uow: uow.tables.get_by_id(id))
    raise Unavailable(
        f"The commits of {table.name} could not all be published now. They are as soon as that is possible."
    )
