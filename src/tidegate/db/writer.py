"""The one place that writes.

Proposals that wait together are decided together, in one transaction with one sync; each gets its own answer, and
nobody is answered before the sync. While a group is being synced the next one gathers, and before that is written the
event loop reads what else has arrived, so groups grow with the load:

    A, B, C arrive while a group is written  ->  [A B C] decided and written at once  ->  three answers

If the transaction fails, none of its members knows what became of it: all are told so, and recover by re-sending.
Other writes (create, rename, drop) are rare; each has a transaction of its own.

A thread writes, so that the event loop never waits for a database. Most groups need no thread: SQLite leaves little to
wait for (`quick_transactions.py`), and PostgreSQL's answers come to the event loop (`pipelined_transactions.py`).
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextvars import Context
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from sqlalchemy.exc import DBAPIError

from tidegate.db.errors import unavailable
from tidegate.db.quick_transactions import QuickTransactions
from tidegate.db.transactions import Transactions
from tidegate.domain.errors import OutcomeUnknown, TidegateError, TooManyRequests
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.ratification import Decision, Proposal
from tidegate.telemetry.current import CURRENT, AtWork
from tidegate.telemetry.logs import about
from tidegate.telemetry.server import ServerMeasures
from tidegate.telemetry.traces import Span, Traces

if TYPE_CHECKING:
    from tidegate.db.pipelined_transactions import PipelinedTransactions

T = TypeVar("T")
DecideGroup = Callable[[UnitOfWork, Sequence[Proposal]], Sequence[Decision]]

GATHERING_ROUNDS_MAX = 4
"""Rounds of the event loop for which a group may grow before it is written."""

_OUTCOMES = frozenset({"ratified", "replay", "conflict", "rejected"})

log = logging.getLogger(__name__)


class _Waiting(NamedTuple):
    work: Proposal | Callable[[UnitOfWork], Any]
    future: asyncio.Future[Any]
    asked_by: AtWork | None
    """For the log: the thread that writes is nobody's own."""


class _Answer(NamedTuple):
    future: asyncio.Future[Any]
    value: Any = None
    error: BaseException | None = None


class _Job(NamedTuple):
    """For the thread. `decisions`: what is written already, and only has to be committed."""

    loop: asyncio.AbstractEventLoop
    batch: Sequence[_Waiting]
    decisions: Sequence[Decision] | None
    span: Span


class Writer:
    """For one event loop at a time. `decide_group` gets the transaction and the proposals, and returns one decision
    for each.
    """

    def __init__(
        self,
        transactions: Transactions,
        quick: QuickTransactions | None,
        pipelined: PipelinedTransactions | None,
        decide_group: DecideGroup,
        *,
        group_max: int,
        queue_max: int,
        measures: ServerMeasures,
        traces: Traces | None = None,
    ) -> None:
        self._measures = measures
        self._traces = traces
        self._transactions = transactions
        self._quick = quick
        self._pipelined = pipelined
        self._piping: asyncio.Task[None] | None = None
        self._decide_group = decide_group
        self._group_max = group_max
        self._queue_max = queue_max
        self._queue: deque[_Waiting] = deque()
        self._busy = False
        """Whether a group is gathering or being written: who comes meanwhile waits in the queue."""
        self._stopping = False
        self._nobody = Context()
        """A group belongs to none of the requests in it, not even to the one that came first."""
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="tidegate-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    async def finish(self) -> None:
        """Takes no more, and waits for what the event loop itself has under way."""
        self._stopping = True
        if self._piping is not None:
            await asyncio.wait([self._piping])

    def stop(self) -> None:
        """Finishes what was accepted, then returns."""
        self._stopping = True
        self._jobs.put(None)
        self._thread.join()
        while self._queue:
            _settle(self._write(self._take(), None, None))
        self._transactions.close()
        if self._quick is not None:
            self._quick.close()
        if self._pipelined is not None:
            self._pipelined.close()

    async def submit(self, work: Proposal | Callable[[UnitOfWork], T]) -> Any:
        if self._stopping or len(self._queue) >= self._queue_max:
            raise TooManyRequests("The server cannot take more writes right now. Try again in a moment.")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._queue.append(_Waiting(work, future, CURRENT.get()))
        if not self._busy:
            self._busy = True
            loop.call_soon(self._gather, loop, len(self._queue), GATHERING_ROUNDS_MAX, context=self._nobody)
        return await future

    def _gather(self, loop: asyncio.AbstractEventLoop, seen: int, rounds: int) -> None:
        """Lets the event loop read what else has arrived, round by round: whoever writes the first of many proposals
        alone makes all the others wait for its sync.
        """
        if seen < len(self._queue) < self._group_max and rounds > 0:
            loop.call_soon(self._gather, loop, len(self._queue), rounds - 1, context=self._nobody)
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
        span = None if self._traces is None else self._begin_span(batch, group)
        measures, decisions = self._measures, None
        if group:
            measures.group_sizes.observe(len(group))
        if self._pipelined is not None and group:
            self._piping = loop.create_task(self._pipe(loop, self._pipelined, batch, group, span))
            return
        if self._quick is not None and group:
            tables = [proposal.requirements.table_id for proposal in group]
            decisions = self._quick.begin(lambda uow: self._decide_group(uow, group), tables)
        if self._quick is not None and decisions is not None and self._quick.ends_quickly:
            measures.on_loop.value += 1
            self._finish(loop, self._write(batch, decisions, span))
        else:
            way = measures.singles if not group else measures.on_thread if decisions is None else measures.on_sync
            way.value += 1
            self._jobs.put(_Job(loop, batch, decisions, span))

    async def _pipe(
        self,
        loop: asyncio.AbstractEventLoop,
        pipelined: PipelinedTransactions,
        batch: Sequence[_Waiting],
        group: Sequence[Proposal],
        span: Span,
    ) -> None:
        tables = [proposal.requirements.table_id for proposal in group]
        try:
            opening = [(p.requirements.table_id, p.append.txn_id) for p in group if p.append is not None]
            decisions = await pipelined.run(lambda uow: self._decide_group(uow, group), tables, opening)
        except asyncio.CancelledError:
            # The event loop ends, and with it everybody who waits.
            pipelined.close()
            self._busy = False
            raise
        except Exception:
            self._measures.failed_groups.value += 1
            answers = _unknown(batch)
        else:
            if decisions is None:
                self._measures.on_thread.value += 1
                self._jobs.put(_Job(loop, batch, None, span))
                return
            self._measures.on_loop.value += 1
            answers = _answers(batch, decisions)
        self._end_span(span, answers)
        self._finish(loop, answers)

    def _finish(self, loop: asyncio.AbstractEventLoop, answers: Sequence[_Answer]) -> None:
        """Those who are answered may have more to ask."""
        _settle(answers)
        self._gather(loop, 0, GATHERING_ROUNDS_MAX)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            answers = self._write(job.batch, job.decisions, job.span)
            if self._quick is not None:
                self._quick.checkpoint()
            if job.loop.is_closed():
                self._busy = False
            else:
                job.loop.call_soon_threadsafe(self._finish, job.loop, answers)

    def _write(self, batch: Sequence[_Waiting], decisions: Sequence[Decision] | None, span: Span) -> list[_Answer]:
        answers = self._write_batch(batch, decisions)
        self._end_span(span, answers)
        return answers

    def _begin_span(self, batch: Sequence[_Waiting], group: Sequence[Proposal]) -> Span:
        """A group is done for all who wait for it; a write of another kind is a part of what asks for it."""
        if self._traces is None:
            return None
        if not group:
            return self._traces.begin("transaction", {}, of=batch[0].asked_by)
        size = {"tidegate.group_size": len(group)}
        return self._traces.begin("ratify group", size, links=[waiting.asked_by for waiting in batch])

    def _end_span(self, span: Span, answers: Sequence[_Answer]) -> None:
        if self._traces is not None and span is not None:
            failed = next((type(answer.error).__name__ for answer in answers if answer.error is not None), None)
            outcomes = Counter(type(answer.value).__name__.lower() for answer in answers if answer.error is None)
            by_thread = threading.current_thread() is self._thread
            told = {f"tidegate.{outcome}": count for outcome, count in outcomes.items() if outcome in _OUTCOMES}
            self._traces.end(span, {**told, "tidegate.by_thread": by_thread}, failure=failed)

    def _write_batch(self, batch: Sequence[_Waiting], decisions: Sequence[Decision] | None) -> list[_Answer]:
        group = _proposals(batch)
        if not group:
            return [self._write_one(waiting) for waiting in batch]
        try:
            if decisions is None or self._quick is None or not self._quick.end():
                decisions = self._transactions.run(lambda uow: self._decide_group(uow, group))
        except Exception:
            self._measures.failed_groups.value += 1
            return _unknown(batch)
        return _answers(batch, decisions)

    def _write_one(self, waiting: _Waiting) -> _Answer:
        future, work = waiting.future, cast("Callable[[UnitOfWork], Any]", waiting.work)
        before = CURRENT.set(waiting.asked_by)
        try:
            return _Answer(future, self._transactions.run(work))
        except TidegateError as error:
            return _Answer(future, error=error)
        except DBAPIError as error:
            log.exception("a write failed")
            return _Answer(future, error=unavailable(error))
        except Exception as error:
            return _Answer(future, error=error)
        finally:
            CURRENT.reset(before)


def _proposals(batch: Sequence[_Waiting]) -> list[Proposal]:
    return [waiting.work for waiting in batch if isinstance(waiting.work, Proposal)]


def _answers(batch: Sequence[_Waiting], decisions: Sequence[Decision]) -> list[_Answer]:
    return [_Answer(waiting.future, decision) for waiting, decision in zip(batch, decisions, strict=True)]


def _unknown(batch: Sequence[_Waiting]) -> list[_Answer]:
    """For an exception that is being handled."""
    log.exception("a group of %d proposals failed", len(batch), extra=about(proposals=_asked(batch)))
    unknown = "The database failed while the commit was written; it may have happened. Send it again unchanged."
    return [_Answer(waiting.future, error=OutcomeUnknown(unknown)) for waiting in batch]


def _asked(batch: Sequence[_Waiting]) -> list[dict[str, Any]]:
    return [{} if waiting.asked_by is None else waiting.asked_by.fields() for waiting in batch]


def _settle(answers: Sequence[_Answer]) -> None:
    for answer in answers:
        if answer.future.done():
            continue  # the caller went away; what it asked for happened all the same
        if answer.error is not None:
            answer.future.set_exception(answer.error)
        else:
            answer.future.set_result(answer.value)
