"""The one place that writes.

Proposals that wait together are decided together, in one transaction with one sync; each gets its own answer, and
nobody is answered before the sync. While a group is being synced the next one gathers, and before that is written the
event loop reads what else has arrived, so groups grow with the load:

    A, B, C arrive while a group is written  ->  [A B C] decided and written at once  ->  three answers

If the transaction fails, none of its members knows what became of it: all are told so, and recover by re-sending.
Other writes (create, rename, drop) are rare; each has a transaction of its own.

A thread writes, so that the event loop never waits for a database. On SQLite there is less to wait for: see
`quick_transactions.py`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from sqlalchemy.exc import DBAPIError

from tidegate.db.errors import unavailable
from tidegate.db.quick_transactions import QuickTransactions
from tidegate.db.transactions import Transactions
from tidegate.domain.errors import OutcomeUnknown, TidegateError, TooManyRequests
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.ratification import Decision, Proposal

T = TypeVar("T")
DecideGroup = Callable[[UnitOfWork, Sequence[Proposal]], Sequence[Decision]]

GATHERING_ROUNDS_MAX = 4
"""Rounds of the event loop for which a group may grow before it is written."""

log = logging.getLogger(__name__)


class _Waiting(NamedTuple):
    work: Proposal | Callable[[UnitOfWork], Any]
    future: asyncio.Future[Any]


class _Answer(NamedTuple):
    future: asyncio.Future[Any]
    value: Any = None
    error: BaseException | None = None


class _Job(NamedTuple):
    """For the thread. `decisions`: what is written already, and only has to be committed."""

    loop: asyncio.AbstractEventLoop
    batch: Sequence[_Waiting]
    decisions: Sequence[Decision] | None


class Writer:
    """For one event loop at a time. `decide_group` gets the transaction and the proposals, and returns one decision
    for each.
    """

    def __init__(
        self,
        transactions: Transactions,
        quick: QuickTransactions | None,
        decide_group: DecideGroup,
        *,
        group_max: int,
        queue_max: int,
    ) -> None:
        self._transactions = transactions
        self._quick = quick
        self._decide_group = decide_group
        self._group_max = group_max
        self._queue_max = queue_max
        self._queue: deque[_Waiting] = deque()
        self._busy = False
        """Whether a group is gathering or being written: who comes meanwhile waits in the queue."""
        self._stopping = False
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="tidegate-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finishes what was accepted, then returns."""
        self._stopping = True
        self._jobs.put(None)
        self._thread.join()
        while self._queue:
            _settle(self._write(self._take(), None))
        self._transactions.close()
        if self._quick is not None:
            self._quick.close()

    async def submit(self, work: Proposal | Callable[[UnitOfWork], T]) -> Any:
        if self._stopping or len(self._queue) >= self._queue_max:
            raise TooManyRequests("The server cannot take more writes right now. Try again in a moment.")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._queue.append(_Waiting(work, future))
        if not self._busy:
            self._busy = True
            loop.call_soon(self._gather, loop, len(self._queue), GATHERING_ROUNDS_MAX)
        return await future

    def _gather(self, loop: asyncio.AbstractEventLoop, seen: int, rounds: int) -> None:
        """Lets the event loop read what else has arrived, round by round: whoever writes the first of many proposals
        alone makes all the others wait for its sync.
        """
        if seen < len(self._queue) < self._group_max and rounds > 0:
            loop.call_soon(self._gather, loop, len(self._queue), rounds - 1)
        elif self._queue and not self._stopping:
            self._start(loop, self._take())
        else:
            self._busy = False

    def _take(self) -> list[_Waiting]:
        """The next group, or a single write of another kind."""
        batch = [self._queue.popleft()]
        if isinstance(batch[0].work, Proposal):
            while self._queue and len(batch) < self._group_max and isinstance(self._queue[0].work, Proposal):
                batch.append(self._queue.popleft())
        return batch

    def _start(self, loop: asyncio.AbstractEventLoop, batch: Sequence[_Waiting]) -> None:
        group = _proposals(batch)
        decisions = None
        if self._quick is not None and group:
            tables = [proposal.requirements.table_id for proposal in group]
            decisions = self._quick.begin(lambda uow: self._decide_group(uow, group), tables)
        if self._quick is not None and decisions is not None and self._quick.ends_quickly:
            self._finish(loop, self._write(batch, decisions))
        else:
            self._jobs.put(_Job(loop, batch, decisions))

    def _finish(self, loop: asyncio.AbstractEventLoop, answers: Sequence[_Answer]) -> None:
        """Those who are answered may have more to ask."""
        _settle(answers)
        self._gather(loop, 0, GATHERING_ROUNDS_MAX)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            answers = self._write(job.batch, job.decisions)
            if self._quick is not None:
                self._quick.checkpoint()
            if job.loop.is_closed():
                self._busy = False
            else:
                job.loop.call_soon_threadsafe(self._finish, job.loop, answers)

    def _write(self, batch: Sequence[_Waiting], decisions: Sequence[Decision] | None) -> list[_Answer]:
        group = _proposals(batch)
        if not group:
            return [self._write_one(waiting.future, waiting.work) for waiting in batch]
        try:
            if decisions is None or self._quick is None or not self._quick.end():
                decisions = self._transactions.run(lambda uow: self._decide_group(uow, group))
        except Exception:
            log.exception("a group of %d proposals failed", len(group))
            unknown = "The database failed while the commit was written; it may have happened. Send it again unchanged."
            return [_Answer(waiting.future, error=OutcomeUnknown(unknown)) for waiting in batch]
        return [_Answer(waiting.future, decision) for waiting, decision in zip(batch, decisions, strict=True)]

    def _write_one(self, future: asyncio.Future[Any], work: Any) -> _Answer:
        try:
            return _Answer(future, self._transactions.run(work))
        except TidegateError as error:
            return _Answer(future, error=error)
        except DBAPIError as error:
            log.exception("a write failed")
            return _Answer(future, error=unavailable(error))
        except Exception as error:
            return _Answer(future, error=error)


def _proposals(batch: Sequence[_Waiting]) -> list[Proposal]:
    return [waiting.work for waiting in batch if isinstance(waiting.work, Proposal)]


def _settle(answers: Sequence[_Answer]) -> None:
    for answer in answers:
        if answer.future.done():
            continue  # the caller went away; what it asked for happened all the same
        if answer.error is not None:
            answer.future.set_exception(answer.error)
        else:
            answer.future.set_result(answer.value)
