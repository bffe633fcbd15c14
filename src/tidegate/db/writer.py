"""The one thread that writes.

Proposals that wait together are decided together, in one transaction with one sync; each gets its own answer, and
nobody is answered before the sync. While a group is being synced the next one gathers, and before that is written the
event loop reads what else has arrived, so groups grow with the load:

    A, B, C arrive while a group is written  ->  [A B C] decided and written at once  ->  three answers

If the transaction fails, none of its members knows what became of it: all are told so, and recover by re-sending.
Other writes (create, rename, drop) are rare; each has a transaction of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
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

GATHERING_ROUNDS_MAX = 4
"""Rounds of the event loop for which a group may grow before it is written."""

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
        self._complete = False
        """Whether what has arrived is worth a group, so that the thread may take it."""
        self._gathering = False
        self._writing = False
        self._stopping = False
        self._connection: sa.Connection | None = None
        """The thread's own, kept open: opening and closing one for each group costs as much as a small group."""
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
            if not self._writing and not self._gathering:
                self._gathering = True
                loop.call_soon(self._gather, loop, len(self._queue), GATHERING_ROUNDS_MAX)
        return await waiting.future

    def _gather(self, loop: asyncio.AbstractEventLoop, seen: int, rounds: int) -> None:
        """Lets the event loop read what else has arrived, round by round, before the thread is woken: a thread that
        takes the first of many proposals alone makes all the others wait for its sync.
        """
        with self._arrived:
            if seen < len(self._queue) < self._group_max and rounds > 0:
                loop.call_soon(self._gather, loop, len(self._queue), rounds - 1)
            else:
                self._gathering = False
                self._wake()

    def _wake(self) -> None:
        self._complete = True
        self._arrived.notify()

    def _run(self) -> None:
        while batch := self._next_batch():
            group: list[tuple[_Waiting, Proposal]] = []
            answers: list[_Answer] = []
            for waiting in batch:
                if isinstance(waiting.work, Proposal):
                    group.append((waiting, waiting.work))
                else:
                    answers.append(self._write_one(waiting, waiting.work))
            self._deliver(answers + (self._write_group(group) if group else []))
        self._disconnect()

    def _next_batch(self) -> list[_Waiting]:
        """Empty when there is nothing more to do."""
        with self._arrived:
            while not (self._complete and self._queue) and not self._stopping:
                self._arrived.wait()
            self._complete = False
            self._writing = True
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
                connection = self._connection = self._connection or self._engine.connect()
                with connection.begin():
                    outcome = work(SqlUnitOfWork(connection, self._known, self._hot))
                    worked = True
                self._known.confirm()
                return outcome
            except BaseException as error:
                self._known.dismiss()
                if not isinstance(error, TidegateError):
                    self._disconnect()
                if attempt == ATTEMPTS_MAX or not _may_try_again(error, committing=worked):
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _disconnect(self) -> None:
        """After an error whose cause may be the connection. The next transaction gets another one."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            with contextlib.suppress(DBAPIError):
                connection.close()

    def _deliver(self, answers: Sequence[_Answer]) -> None:
        """Wakes each event loop once for all of its answers; those who were answered may have more to ask."""
        for loop in {answer.waiting.loop for answer in answers}:
            mine = [answer for answer in answers if answer.waiting.loop is loop]
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, mine)
        with self._arrived:
            self._writing = False
            if self._queue and not self._gathering:
                self._gather_on(self._queue[0].loop)

    def _gather_on(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop.is_closed():
            self._wake()
        else:
            self._gathering = True
            loop.call_soon_threadsafe(self._gather, loop, 0, GATHERING_ROUNDS_MAX)


def _may_try_again(error: BaseException, *, committing: bool) -> bool:
    """Whether nothing was stored for certain. A connection that is lost before the commit, as one that lay idle while
    the database was restarted, has stored nothing; one that is lost during the commit may have.
    """
    lost = isinstance(error, DBAPIError) and error.connection_invalidated
    return is_transient(error) or (lost and not committing)


def _settle(answers: Sequence[_Answer]) -> None:
    for answer in answers:
        if answer.waiting.future.done():
            continue  # the caller went away; what it asked for happened all the same
        if answer.error is not None:
            answer.waiting.future.set_exception(answer.error)
        else:
            answer.waiting.future.set_result(answer.value)
