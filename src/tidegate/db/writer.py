"""The one thread that writes.

Proposals that wait together are decided together, in one transaction with one sync; each gets its own answer, and
nobody is answered before the sync. While a group is being synced the next one gathers, so groups grow with the load:

    A, B, C arrive while a group is written  ->  [A B C] decided and written at once  ->  three answers

If the transaction fails, none of its members knows what became of it: all are told so, and recover by re-sending.
Other writes (create, rename, drop) are rare; each has a transaction of its own.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from tidegate.db.errors import is_transient, unavailable
from tidegate.db.hot_statements import HotStatements
from tidegate.db.known_tables import KnownTables
from tidegate.db.unit_of_work import SqlUnitOfWork
from tidegate.domain.errors import OutcomeUnknown, TidegateError, TooManyRequests
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.ratification import Decision, Proposal

T = TypeVar("T")
DecideGroup = Callable[[UnitOfWork, Sequence[Proposal]], Sequence[Decision]]

ATTEMPTS_MAX = 5
"""How often a transaction that the database rolled back for another one's sake is run again."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """Work handed in by an event loop that waits for its answer."""

    work: Proposal | Callable[[UnitOfWork], Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


@dataclass(frozen=True, slots=True)
class _Answer:
    waiting: _Waiting
    value: Any = None
    error: BaseException | None = None


class Writer:
    """`decide_group` gets the transaction and the proposals, and returns one decision for each."""

    def __init__(
        self,
        engine: sa.Engine,
        known: KnownTables,
        hot: HotStatements,
        decide_group: DecideGroup,
        *,
        group_max: int,
        queue_max: int,
    ) -> None:
        self._engine = engine
        self._known = known
        self._hot = hot
        self._decide_group = decide_group
        self._group_max = group_max
        self._queue_max = queue_max
        self._queue: deque[_Waiting] = deque()
        self._arrived = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="tidegate-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finishes what was accepted, then returns."""
        with self._arrived:
            self._stopping = True
            self._arrived.notify()
        self._thread.join()

    async def submit(self, work: Proposal | Callable[[UnitOfWork], T]) -> Any:
        loop = asyncio.get_running_loop()
        waiting = _Waiting(work, loop.create_future(), loop)
        with self._arrived:
            if self._stopping or len(self._queue) >= self._queue_max:
                raise TooManyRequests("The server cannot take more writes right now. Try again in a moment.")
            self._queue.append(waiting)
            self._arrived.notify()
        return await waiting.future

    def _run(self) -> None:
        while batch := self._next_batch():
            group: list[tuple[_Waiting, Proposal]] = []
            answers: list[_Answer] = []
            for waiting in batch:
                if isinstance(waiting.work, Proposal):
                    group.append((waiting, waiting.work))
                else:
                    answers.append(self._write_one(waiting, waiting.work))
            _deliver(answers + (self._write_group(group) if group else []))

    def _next_batch(self) -> list[_Waiting]:
        with self._arrived:
            while not self._queue and not self._stopping:
                self._arrived.wait()
            return [self._queue.popleft() for _ in range(min(len(self._queue), self._group_max))]

    def _write_group(self, group: Sequence[tuple[_Waiting, Proposal]]) -> list[_Answer]:
        proposals = [proposal for _, proposal in group]
        try:
            decisions = self._transaction(lambda uow: self._decide_group(uow, proposals))
        except Exception:
            log.exception("a group of %d proposals failed", len(group))
            unknown = "The database failed while the commit was written; it may have happened. Send it again unchanged."
            return [_Answer(waiting, error=OutcomeUnknown(unknown)) for waiting, _ in group]
        return [_Answer(waiting, decision) for (waiting, _), decision in zip(group, decisions, strict=True)]

    def _write_one(self, waiting: _Waiting, work: Callable[[UnitOfWork], Any]) -> _Answer:
        try:
            return _Answer(waiting, self._transaction(work))
        except TidegateError as error:
            return _Answer(waiting, error=error)
        except DBAPIError as error:
            log.exception("a write failed")
            return _Answer(waiting, error=unavailable(error))
        except Exception as error:
            return _Answer(waiting, error=error)

    def _transaction(self, work: Callable[[UnitOfWork], T]) -> T:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            worked = False
            try:
                with self._engine.begin() as connection:
                    outcome = work(SqlUnitOfWork(connection, self._known, self._hot))
                    worked = True
                self._known.confirm()
                return outcome
            except BaseException as error:
                self._known.dismiss()
                if attempt == ATTEMPTS_MAX or not _may_try_again(error, committing=worked):
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")


def _may_try_again(error: BaseException, *, committing: bool) -> bool:
    """Whether nothing was stored for certain. A connection that is lost before the commit, as one that lay idle while
    the database was restarted, has stored nothing; one that is lost during the commit may have.
    """
    if not isinstance(error, DBAPIError):
        return False
    return is_transient(error) or (error.connection_invalidated and not committing)


def _deliver(answers: Sequence[_Answer]) -> None:
    """Wakes each event loop once for all of its answers."""
    for loop in {answer.waiting.loop for answer in answers}:
        mine = [answer for answer in answers if answer.waiting.loop is loop]
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, mine)


def _settle(answers: Sequence[_Answer]) -> None:
    for answer in answers:
        if answer.waiting.future.done():
            continue  # the caller went away; what it asked for happened all the same
        if answer.error is not None:
            answer.waiting.future.set_exception(answer.error)
        else:
            answer.waiting.future.set_result(answer.value)
