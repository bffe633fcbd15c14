"""Asks the database for tokens that nobody remembers: one question at a time, for all that came meanwhile.

So a flood of wrong tokens is one reader's work, whatever its size, and a right one among them waits for two questions
at the most. A token that was not found is never asked for again: it is random, so none that is made later is the same.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from tidegate.domain.errors import TidegateError
from tidegate.domain.identities import AccessToken
from tidegate.domain.ports import Database

TOGETHER_MAX = 500
"""Digests in one question."""


class TokenLookups:
    """Remembers at most `unknown_max` tokens that do not exist."""

    def __init__(self, database: Database, *, unknown_max: int) -> None:
        self._database = database
        self._unknown_max = unknown_max
        self._unknown: OrderedDict[str, None] = OrderedDict()
        self._waiting: dict[str, asyncio.Future[AccessToken | None]] = {}
        self._asking: asyncio.Task[None] | None = None

    async def find(self, digest: str) -> AccessToken | None:
        if digest in self._unknown:
            self._unknown.move_to_end(digest)
            return None
        answer = self._waiting.get(digest)
        if answer is None:
            answer = self._waiting[digest] = asyncio.get_running_loop().create_future()
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
        # Whoever goes away takes nothing from the others who wait for the same.
        return await asyncio.shield(answer)

    async def _ask(self) -> None:
        try:
            while self._waiting:
                digests = list(self._waiting)[:TOGETHER_MAX]
                await self._answer({digest: self._waiting.pop(digest) for digest in digests})
        finally:
            self._asking = None

    async def _answer(self, waiting: dict[str, asyncio.Future[AccessToken | None]]) -> None:
        try:
            found = await self._database.read(lambda uow: uow.access_tokens.find(list(waiting)))
        except Exception as error:
            for answer in waiting.values():
                answer.set_exception(error if isinstance(error, TidegateError) else RuntimeError("the lookup failed"))
                answer.exception()  # those who waited for it may have gone
            return
        for digest, answer in waiting.items():
            token = found.get(digest)
            if token is None:
                self._note_unknown(digest)
            answer.set_result(token)

    def _note_unknown(self, digest: str) -> None:
        self._unknown[digest] = None
        if len(self._unknown) > self._unknown_max:
            self._unknown.popitem(last=False)
