"""Questions answered together: what comes while others are being answered waits, and goes next, in one call.

For round trips, which cost about the same for one question and for many. The more is asked, the more is answered at
once, so their number does not grow with the load.

    A asks -> [A];  B, C, D ask meanwhile -> [B C D]

No answer is older than its question: a question never joins a call that has begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")


class Together(Generic[Q, A]):
    """`answer_all` returns one answer for each question, in order; an exception is an answer too.

    For one event loop at a time. How many can wait is bounded by the requests in flight.
    """

    def __init__(
        self, answer_all: Callable[[Sequence[Q]], Coroutine[Any, Any, Sequence[A | Exception]]], *, batch_max: int
    ) -> None:
        self._answer_all = answer_all
        self._batch_max = batch_max
        self._waiting: list[tuple[Q, asyncio.Future[A]]] = []
        self._busy = False

    async def ask(self, question: Q) -> A:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[A] = loop.create_future()
        self._waiting.append((question, answer))
        if not self._busy:
            self._busy = True
            # Not at once: what else has arrived by now comes along.
            loop.call_soon(self._next, loop)
        return await answer

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self._waiting = self._waiting[: self._batch_max], self._waiting[self._batch_max :]
        if not batch:
            self._busy = False
            return
        answering = loop.create_task(self._answer_all([question for question, _ in batch]))
        answering.add_done_callback(lambda done: self._settle(loop, batch, done))

    def _settle(
        self,
        loop: asyncio.AbstractEventLoop,
        batch: Sequence[tuple[Q, asyncio.Future[A]]],
        done: asyncio.Task[Sequence[A | Exception]],
    ) -> None:
        failure = asyncio.CancelledError() if done.cancelled() else done.exception()
        answers = [failure] * len(batch) if failure is not None else done.result()
        for (_, waiting), answer in zip(batch, answers, strict=True):
            if waiting.done():
                continue  # whoever asked went away
            if isinstance(answer, asyncio.CancelledError):
                waiting.cancel()
            elif isinstance(answer, BaseException):
                waiting.set_exception(answer)
            else:
                waiting.set_result(answer)
        self._next(loop)
