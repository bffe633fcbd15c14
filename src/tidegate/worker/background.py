"""Jobs that run beside the requests for as long as the server does.

A job that fails is logged and runs again at its next time; none holds up another, and a stop cancels them all.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter, time

from tidegate.domain.errors import TidegateError
from tidegate.domain.frozen import frozen
from tidegate.telemetry.current import CURRENT, JobAtWork
from tidegate.telemetry.server import ServerMeasures
from tidegate.telemetry.traces import Traces

FIRST_SECONDS_MAX = 30.0
"""After the start, a job runs for the first time within this time, however rarely it runs."""
AGAIN_SECONDS = 5.0
"""After which a job that should never end, and did, is started again."""

log = logging.getLogger(__name__)


@frozen
class Job:
    name: str
    run: Callable[[], Awaitable[None]]
    every_seconds: float | None = None
    """None: it runs for ever."""


class Background:
    def __init__(self, jobs: Sequence[Job], measures: ServerMeasures, traces: Traces | None = None) -> None:
        self._jobs = jobs
        self._measures = measures
        self._traces = traces
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._repeat(job), name=job.name) for job in self._jobs]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _repeat(self, job: Job) -> None:
        """Servers that were started together do not all do it at the same moment, and none while it starts."""
        if job.every_seconds is not None:
            await asyncio.sleep(min(job.every_seconds, FIRST_SECONDS_MAX) * random.uniform(0.5, 1.0))  # noqa: S311
        while True:
            await self._run(job)
            pause = AGAIN_SECONDS if job.every_seconds is None else job.every_seconds * random.uniform(0.5, 1.0)  # noqa: S311
            await asyncio.sleep(pause)

    async def _run(self, job: Job) -> None:
        """A log line of the work says which job it belongs to: the task is the job's own."""
        at_work = JobAtWork(job.name)
        CURRENT.set(at_work)
        self._measures.job_runs.at(job.name).value += 1
        # One that runs for ever would be told when it ends: what it does has spans of its own.
        if self._traces is not None and job.every_seconds is not None:
            at_work.span = self._traces.begin("job", {"tidegate.job": job.name})
        started, failure = perf_counter(), None
        try:
            await job.run()
            self._measures.job_successes.at(job.name).value = time()
        except Exception as error:
            failure = type(error).__name__
            self._measures.job_failures.at(job.name).value += 1
            _tell(job, error)
        finally:
            self._measures.job_seconds.at(job.name).value += perf_counter() - started
            if self._traces is not None and at_work.span is not None:
                self._traces.end(at_work.span, {}, failure=failure)


def _tell(job: Job, error: Exception) -> None:
    if isinstance(error, TidegateError):
        log.warning("%s failed and is tried again: %s", job.name, error.message)
    else:
        log.error("%s failed and is tried again", job.name, exc_info=error)
