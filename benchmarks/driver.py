r"""The load driver: many keep-alive connections, one thread, and little between an answer and the next request.

What a client does is a generator: it yields the bytes of a request and gets back the status and the body of the answer.

    def step():
        status, body = yield b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n"
        yield write_a_file

What it does itself and has to wait for, such as a synced file, it yields as a function (`workers.py`).

There is no HTTP library in here: of an answer only the status line and Content-Length are read. That is all that the
servers under test need, and whatever else comes (chunks, a closed connection, silence) ends the run with an error: a
benchmark that goes on after something odd measures something else.
"""

from __future__ import annotations

import gc
import math
import select
import socket
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from time import perf_counter, process_time

from benchmarks.workers import NOTHING, Work, Workers

ANSWER_SECONDS_MAX = 60
_RECEIVE_BYTES = 64 * 1024
_LENGTH = b"content-length:"

Answer = tuple[int, bytes]
Step = Generator[bytes | Work, Answer, None]


class DriverError(Exception):
    """The run cannot go on; what was measured so far means nothing."""


class UnexpectedAnswer(DriverError):
    def __init__(self, doing: str, status: int, body: bytes) -> None:
        super().__init__(f"{doing}: the server answered {status}: {body[:600].decode(errors='replace')}")
        self.status = status


def require(answer: Answer, status: int, doing: str) -> bytes:
    """The body of an answer that has this status; anything else ends the run."""
    if answer[0] != status:
        raise UnexpectedAnswer(doing, *answer)
    return answer[1]


@dataclass(frozen=True, slots=True)
class Lap:
    """When the clock ran, and the share of a core that the driver itself took meanwhile."""

    started: float
    ended: float
    cpu_share: float

    @property
    def seconds(self) -> float:
        return self.ended - self.started


class Connection:
    """One socket and the answer that is arriving on it."""

    __slots__ = ("_arrived", "_missing", "_parts", "_socket", "client", "fd", "receive", "send")

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=ANSWER_SECONDS_MAX)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)
        self.fd = self._socket.fileno()
        self.send = self._socket.send
        self.receive = self._socket.recv
        self.client: Client
        self._parts: list[bytes] = []
        self._arrived = 0
        self._missing = 0

    def close(self) -> None:
        self._socket.close()

    def answer(self) -> Answer | None:
        """The answer, once it is there completely."""
        try:
            data = self.receive(_RECEIVE_BYTES)
        except ConnectionError:
            data = b""
        if not data:
            raise DriverError("The server closed a connection without having answered.")
        if self._parts:
            self._parts.append(data)
            self._arrived += len(data)
            if self._arrived < self._missing:
                return None
            data = b"".join(self._parts)
            self._parts = []
        head = data.find(b"\r\n\r\n")
        if head < 0:
            self._wait_for(data, 0)
            return None
        start = head + 4
        end = start + body_length(data, head)
        if len(data) < end:
            self._wait_for(data, end)
            return None
        if len(data) > end:
            raise DriverError(f"The server sent more than it announced: {data[end : end + 200]!r}")
        return int(data[9:12]), data[start:]

    def _wait_for(self, data: bytes, size: int) -> None:
        self._parts = [data]
        self._arrived = len(data)
        self._missing = size


def body_length(data: bytes, head: int) -> int:
    """What Content-Length says, of an answer whose head ends at `head`."""
    at = data.find(_LENGTH, 0, head)
    if at < 0:
        at = data[:head].lower().find(_LENGTH)
    if at >= 0:
        return int(data[at + 15 : data.find(b"\r", at)])
    if data[9:12] in {b"204", b"304"}:
        return 0
    raise DriverError(f"An answer does not say how long it is: {data[:head]!r}")


class Client:
    """One user of the catalog, with a connection to each server; they take turns."""

    __slots__ = ("_connections", "_turn", "step")

    def __init__(self, connections: Sequence[Connection]) -> None:
        self._connections = connections
        self._turn = 0
        self.step: Step
        for connection in connections:
            connection.client = self

    def ask(self, request: bytes) -> None:
        self._turn = (self._turn + 1) % len(self._connections)
        if self._connections[self._turn].send(request) != len(request):
            raise DriverError(f"A request of {len(request)} bytes did not fit into the socket at once.")


class Driver:
    """`clients` clients, each connected to every one of the addresses.

    Connections are opened for each lap, before its clock starts: servers close those that idle, and much may have to be
    prepared between two laps.
    """

    def __init__(self, addresses: Sequence[tuple[str, int]], clients: int) -> None:
        self._addresses = addresses
        self._clients_max = clients

    def complete(self, steps: Sequence[Step]) -> None:
        """Runs all steps to their ends, as many at once as there are clients."""
        shares = [steps[number :: self._clients_max] for number in range(min(self._clients_max, len(steps)))]
        with self._connected(len(shares)) as clients:
            self._run(clients, [_one_after_the_other(share) for share in shares], math.inf, until_first=False)

    def lap(self, steps: Sequence[Step], *, seconds: float) -> Lap:
        """Runs one step for each client until the time is over. Then nothing new is asked, but every answer that is
        still to come is waited for and given to its step, so that steps and catalog agree on what happened.

        A step that ends by itself has run out of work: the clock stops there, for an idle client measures nothing.
        """
        with self._connected(len(steps)) as clients, _undisturbed():
            cpu, started = process_time(), perf_counter()
            ended = self._run(clients, steps, started + seconds, until_first=True)
            share = (process_time() - cpu) / (perf_counter() - started)
        return Lap(started, ended, share)

    @contextmanager
    def _connected(self, count: int) -> Iterator[Sequence[Client]]:
        with ExitStack() as stack:
            self._poll = stack.enter_context(select.epoll())
            self._connections: dict[int, Connection] = {}
            self._workers: Workers[Client] = Workers(count)
            stack.callback(self._workers.close)
            self._poll.register(self._workers.fd, select.EPOLLIN)
            yield [Client([self._connect(address, stack) for address in self._addresses]) for _ in range(count)]

    def _connect(self, address: tuple[str, int], stack: ExitStack) -> Connection:
        connection = Connection(address)
        stack.callback(connection.close)
        self._connections[connection.fd] = connection
        self._poll.register(connection.fd, select.EPOLLIN)
        return connection

    def _run(self, clients: Sequence[Client], steps: Sequence[Step], deadline: float, *, until_first: bool) -> float:
        """When the clock stopped."""
        busy = self._begin(clients, steps)
        poll = self._poll.poll
        while busy:
            events = poll(ANSWER_SECONDS_MAX)
            if not events:
                raise DriverError(f"The server has not answered for {ANSWER_SECONDS_MAX} s.")
            for client, answer in (ready for fd, _ in events for ready in self._ready(fd)):
                try:
                    wanted = client.step.send(answer)
                except StopIteration:
                    busy -= 1
                    deadline = min(deadline, perf_counter()) if until_first else deadline
                    continue
                if perf_counter() < deadline:
                    self._do(client, wanted)
                else:
                    busy -= 1
                    client.step.close()
        return min(deadline, perf_counter())

    def _ready(self, fd: int) -> Sequence[tuple[Client, Answer]]:
        """The clients that have got what they waited for."""
        connection = self._connections.get(fd)
        if connection is None:
            return [(client, NOTHING) for client in self._workers.done()]
        answer = connection.answer()
        return () if answer is None else ((connection.client, answer),)

    def _do(self, client: Client, wanted: bytes | Work) -> None:
        if isinstance(wanted, bytes):
            client.ask(wanted)
        else:
            self._workers.begin(client, wanted)

    def _begin(self, clients: Sequence[Client], steps: Sequence[Step]) -> int:
        """The number of clients that have something to do."""
        busy = 0
        for client, step in zip(clients, steps, strict=True):
            client.step = step
            wanted = next(step, None)
            if wanted is not None:
                self._do(client, wanted)
                busy += 1
        return busy


def _one_after_the_other(steps: Sequence[Step]) -> Step:
    for step in steps:
        yield from step


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Without the garbage collector, whose pauses would be taken for the server's."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
