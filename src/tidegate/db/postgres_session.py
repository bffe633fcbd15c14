"""A connection to PostgreSQL that is used on the event loop: several statements in one round trip, without a thread.

Fast because there is nothing between us and libpq: the statements are prepared when the connection is made, their
parameters and rows travel in the binary format, and one message each way carries all of them.

    session.run([(BEGIN, ()), (LOCK, (ids,))])   ->   [rows of BEGIN: none, rows of LOCK]

One round trip at a time. What can go wrong:

    a statement fails        its error is raised, and none after it was run; the connection goes on
    the connection is lost   `ConnectionLost`; whether the statements were run is not known. The next call makes another
    there is no answer       the same, after `seconds_max`

A connection that is lost while it lies idle is noticed at once, and costs nothing but a new one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import psycopg
from psycopg import pq
from psycopg.errors import error_from_result

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn, PGresult

Row: TypeAlias = tuple[Any, ...]
"""Of bytes, and None for NULL."""
Parameters: TypeAlias = Sequence[bytes]

_SETTINGS = (
    b"SET client_encoding = 'UTF8'",
    # The statements find rows by their keys, in the order in which they name the tables. A plan is kept for as long as
    # the connection: one that was right when the catalog was empty would read all of a large one.
    b"SET join_collapse_limit = 1",
    b"SET enable_seqscan = off",
    b"SET enable_hashjoin = off",
    b"SET enable_mergejoin = off",
    b"SET jit = off",
)
_BAD = pq.ConnStatus.BAD
_BINARY = pq.Format.BINARY
_FAILED = frozenset({pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE})
_SYNCED = pq.ExecStatus.PIPELINE_SYNC
_TUPLES = pq.ExecStatus.TUPLES_OK


class ConnectionLost(psycopg.OperationalError):
    """Of the statements under way it is not known whether they were run."""


class NoAnswer(ConnectionLost):
    """The connection was given up after `seconds_max`."""


class Statement(NamedTuple):
    """`text` has its parameters as $1, $2 and so on."""

    name: bytes
    text: bytes


Question: TypeAlias = tuple[Statement, Parameters]


class PostgresSession:
    """For one event loop at a time. `connect` runs on one of the threads: names are resolved and passwords exchanged
    there.
    """

    def __init__(
        self,
        connect: Callable[[], psycopg.Connection[Any]],
        statements: Sequence[Statement],
        threads: Executor,
        *,
        seconds_max: float,
    ) -> None:
        self._connect = connect
        self._statements = statements
        self._threads = threads
        self._seconds_max = seconds_max
        self._wire: _Wire | None = None

    @property
    def connected(self) -> bool:
        return self._wire is not None and not self._wire.lost

    async def run(self, questions: Sequence[Question]) -> list[list[Row]]:
        """The rows of each statement. Raises what the driver would."""
        loop = asyncio.get_running_loop()
        if self._wire is None or not self._wire.attach(loop):
            self._wire = await self._open(loop)
        return await self.go_on(questions)

    async def go_on(self, questions: Sequence[Question]) -> list[list[Row]]:
        """On the connection of the last call and on no other: a transaction that began there goes on."""
        if self._wire is None or self._wire.lost:
            raise ConnectionLost("The connection is gone.")
        try:
            return await self._wire.ask(questions)
        except asyncio.CancelledError:
            self.close()  # the answer would come to whoever asks next
            raise

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    async def _open(self, loop: asyncio.AbstractEventLoop) -> _Wire:
        self.close()
        wire = _Wire(await loop.run_in_executor(self._threads, self._connect), loop, seconds_max=self._seconds_max)
        try:
            await wire.prepare(self._statements)
        except BaseException:
            wire.close()
            raise
        return wire


class _Wire:
    """One connection. Once lost it stays so."""

    def __init__(
        self, connection: psycopg.Connection[Any], loop: asyncio.AbstractEventLoop, *, seconds_max: float
    ) -> None:
        self._connection = connection
        self._pgconn: PGconn = connection.pgconn
        self._pgconn.nonblocking = 1
        self._pgconn.enter_pipeline_mode()
        self._seconds_max = seconds_max
        self._answer: asyncio.Future[list[list[Row]]] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._rows: list[list[Row]] = []
        self._error: psycopg.Error | None = None
        self.lost = False
        self._socket = self._pgconn.socket
        self._loop = loop
        loop.add_reader(self._socket, self._readable)

    def attach(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether the connection can be used, by this event loop from now on."""
        if self._loop is not loop and not self.lost:
            if self._answer is not None:
                self.close()  # who asked went away with the event loop, in the middle of it
            else:
                self._unwatch()
                self._loop = loop
                loop.add_reader(self._socket, self._readable)
        return not self.lost

    def ask(self, questions: Sequence[Question]) -> asyncio.Future[list[list[Row]]]:
        def send() -> None:
            for statement, parameters in questions:
                formats = [_BINARY] * len(parameters)
                self._pgconn.send_query_prepared(statement.name, parameters, formats, result_format=_BINARY)

        return self._exchange(send)

    def prepare(self, statements: Sequence[Statement]) -> asyncio.Future[list[list[Row]]]:
        def send() -> None:
            for setting in _SETTINGS:
                self._pgconn.send_query_params(setting, None)
            for statement in statements:
                self._pgconn.send_prepare(statement.name, statement.text)

        return self._exchange(send)

    def close(self) -> None:
        self._lose(ConnectionLost("The connection was closed."))

    def _exchange(self, send: Callable[[], None]) -> asyncio.Future[list[list[Row]]]:
        if self._answer is not None:
            raise AssertionError("one round trip at a time")
        answer = self._answer = self._loop.create_future()
        self._rows, self._error = [], None
        self._deadline = self._loop.call_later(self._seconds_max, self._give_up)
        try:
            send()
            self._pgconn.pipeline_sync()
            self._flush()
        except psycopg.Error as error:
            self._lose(ConnectionLost(str(error)))
        return answer

    def _flush(self) -> None:
        """What does not fit into the socket now is sent when it does."""
        if self._pgconn.flush():
            self._loop.add_writer(self._socket, self._writable)

    def _writable(self) -> None:
        self._loop.remove_writer(self._socket)
        try:
            self._flush()
        except psycopg.Error as error:
            self._lose(ConnectionLost(str(error)))

    def _readable(self) -> None:
        try:
            self._pgconn.consume_input()
            while self._answer is not None and not self._pgconn.is_busy():
                self._take(self._pgconn.get_result())
                if self._pgconn.status == _BAD:
                    self._lose(ConnectionLost(self._pgconn.get_error_message()))
        except psycopg.Error as error:
            self._lose(ConnectionLost(str(error)))

    def _take(self, result: PGresult | None) -> None:
        if result is None:
            return  # the end of what one statement returned
        status = result.status
        if status == _TUPLES:
            self._rows.append(_rows(result))
        elif status == _SYNCED:
            self._settle()
        elif status in _FAILED:
            self._error = self._error or error_from_result(result)
        else:
            self._rows.append([])  # a command without rows, or one after the one that failed

    def _settle(self) -> None:
        answer = self._end()
        if answer is None or answer.done():
            return
        if self._error is not None:
            answer.set_exception(self._error)
        else:
            answer.set_result(self._rows)

    def _give_up(self) -> None:
        self._lose(NoAnswer(f"The database did not answer within {self._seconds_max} seconds."))

    def _lose(self, error: ConnectionLost) -> None:
        if self.lost:
            return
        self.lost = True
        self._unwatch()
        self._connection.close()
        answer = self._end()
        if answer is not None and not answer.done() and not self._loop.is_closed():
            answer.set_exception(error)

    def _end(self) -> asyncio.Future[list[list[Row]]] | None:
        answer, self._answer = self._answer, None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        return answer

    def _unwatch(self) -> None:
        if not self._loop.is_closed():
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)


def _rows(result: PGresult) -> list[Row]:
    columns = range(result.nfields)
    return [tuple([result.get_value(row, column) for column in columns]) for row in range(result.ntuples)]
