"""A connection to PostgreSQL on the event loop: what is sent arrives as it was, and what goes wrong is told."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.postgres import PostgresServer
from tidegate.db.engines import parse_url, postgres_connection
from tidegate.db.postgres_arrays import bigints, read_bigint, texts
from tidegate.db.postgres_session import ConnectionLost, NoAnswer, PostgresSession, Statement

BEGIN = Statement(b"begin", b"BEGIN")
ROLLBACK = Statement(b"rollback", b"ROLLBACK")
ME = Statement(b"me", b"SELECT pg_backend_pid()::bigint")
TEXTS = Statement(b"texts", b"SELECT given FROM unnest($1::text[]) AS given")
NUMBERS = Statement(b"numbers", b"SELECT given FROM unnest($1::bigint[]) AS given")
DIVIDE = Statement(b"divide", b"SELECT 1 / given FROM unnest($1::bigint[]) AS given")
KEEP = Statement(b"keep", b"INSERT INTO kept SELECT * FROM unnest($1::text[])")
SLEEP = Statement(b"sleep", b"SELECT pg_sleep(60)")
STATEMENTS = (BEGIN, ROLLBACK, ME, TEXTS, NUMBERS, DIVIDE, KEEP, SLEEP)


class Sessions:
    """`made` counts connections."""

    def __init__(self, url: str, threads: ThreadPoolExecutor) -> None:
        self._url = parse_url(url)
        self._threads = threads
        self.made = 0
        self.all: list[PostgresSession] = []

    def new(self, *, seconds_max: float = 30) -> PostgresSession:
        self.all.append(PostgresSession(self._connect, STATEMENTS, self._threads, seconds_max=seconds_max))
        return self.all[-1]

    def other(self) -> psycopg.Connection[Any]:
        return postgres_connection(self._url)

    def _connect(self) -> psycopg.Connection[Any]:
        self.made += 1
        return self.other()


@pytest.fixture(scope="module")
def sessions(postgres: PostgresServer) -> Iterator[Sessions]:
    with ThreadPoolExecutor(1) as threads:
        sessions = Sessions(postgres.create_database(), threads)
        with sessions.other() as connection:
            connection.execute("CREATE TABLE kept (it text)")
        yield sessions


@pytest.fixture(autouse=True)
def _closed(sessions: Sessions) -> Iterator[None]:
    with sessions.other() as connection:
        connection.execute("TRUNCATE kept")
    sessions.made = 0
    yield
    for session in sessions.all:
        session.close()
    sessions.all.clear()


async def column(session: PostgresSession, statement: Statement, *parameters: bytes) -> list[Any]:
    (rows,) = await session.run([(statement, parameters)])
    return [value for (value,) in rows]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.lists(st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=8),
    numbers=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=8),
)
def test_what_is_sent_is_what_the_database_sees(
    sessions: Sessions, words: list[str | None], numbers: list[int | None]
) -> None:
    session = sessions.all[0] if sessions.all else sessions.new()

    async def story() -> None:
        seen, counted = await session.run([(TEXTS, [texts(words)]), (NUMBERS, [bigints(numbers)])])
        assert [word if word is None else word.decode() for (word,) in seen] == words
        assert [number if number is None else read_bigint(number) for (number,) in counted] == numbers

    asyncio.run(story())


@pytest.mark.parametrize("word", ['"', "'", "\\", "{}", "a,b", "NULL", "", " ", "ä€🎈", "$1", "%s", "\n\t"])
def test_no_character_means_anything_but_itself(sessions: Sessions, word: str) -> None:
    assert asyncio.run(column(sessions.new(), TEXTS, texts([word, None, word]))) == [word.encode(), None, word.encode()]


def test_a_number_beyond_64_bits_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(struct.error):
        bigints([2**63])


def test_more_than_a_socket_takes_at_once_arrives_whole(sessions: Sessions) -> None:
    words = [f"{number} {'x' * 1000}" for number in range(20_000)]
    assert asyncio.run(column(sessions.new(), TEXTS, texts(words))) == [word.encode() for word in words]


def test_a_statement_that_fails_tells_why_and_those_after_it_are_not_run(sessions: Sessions) -> None:
    session = sessions.new()

    async def story() -> None:
        with pytest.raises(psycopg.errors.DivisionByZero):
            await session.run(
                [(KEEP, [texts(["before"])]), (DIVIDE, [bigints([0])]), (KEEP, [texts(["after"])]), (ME, ())]
            )
        assert session.connected
        assert await column(session, TEXTS, texts(["next"])) == [b"next"]

    asyncio.run(story())
    assert kept(sessions) == [], "statements of one round trip are one transaction"
    assert sessions.made == 1


def test_a_transaction_may_take_several_round_trips(sessions: Sessions) -> None:
    session = sessions.new()

    async def story() -> None:
        await session.run([(BEGIN, ()), (KEEP, [texts(["lost"])])])
        await session.run([(KEEP, [texts(["lost too"])]), (ROLLBACK, ())])
        await session.run([(KEEP, [texts(["kept"])])])

    asyncio.run(story())
    assert kept(sessions) == ["kept"]


def test_a_connection_that_is_lost_idle_is_noticed_and_replaced(sessions: Sessions) -> None:
    session = sessions.new()

    async def story() -> None:
        terminate(sessions, read_bigint((await column(session, ME))[0]))
        await until(lambda: not session.connected)
        assert await column(session, TEXTS, texts(["again"])) == [b"again"]

    asyncio.run(story())
    assert sessions.made == 2


def test_a_connection_that_is_lost_under_way_is_told_and_replaced(sessions: Sessions) -> None:
    session = sessions.new()

    async def story() -> None:
        pid = read_bigint((await column(session, ME))[0])
        asleep = asyncio.ensure_future(column(session, SLEEP))
        await until(lambda: active(sessions, pid))
        terminate(sessions, pid)
        with pytest.raises(ConnectionLost, match="terminat"):
            await asleep
        assert await column(session, TEXTS, texts(["again"])) == [b"again"]

    asyncio.run(story())


def test_a_database_that_does_not_answer_is_given_up(sessions: Sessions) -> None:
    session = sessions.new(seconds_max=0.2)

    async def story() -> None:
        with pytest.raises(NoAnswer):
            await column(session, SLEEP)
        assert await column(session, TEXTS, texts(["again"])) == [b"again"]

    asyncio.run(story())


def test_whoever_stops_waiting_does_not_leave_an_answer_to_the_next(sessions: Sessions) -> None:
    session = sessions.new()

    async def story() -> None:
        pid = read_bigint((await column(session, ME))[0])
        asleep = asyncio.ensure_future(column(session, SLEEP))
        await until(lambda: active(sessions, pid))
        asleep.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asleep
        assert await column(session, TEXTS, texts(["mine"])) == [b"mine"]

    asyncio.run(story())


def test_the_next_event_loop_uses_the_same_connection(sessions: Sessions) -> None:
    session = sessions.new()
    assert asyncio.run(column(session, ME)) == asyncio.run(column(session, ME))
    assert sessions.made == 1


def test_a_database_that_cannot_be_reached_is_told(sessions: Sessions) -> None:
    with ThreadPoolExecutor(1) as threads:
        nowhere = parse_url("postgresql://nobody@127.0.0.1:1/none")
        session = PostgresSession(lambda: postgres_connection(nowhere), STATEMENTS, threads, seconds_max=1)
        with pytest.raises(psycopg.OperationalError):
            asyncio.run(column(session, ME))
        assert not session.connected


async def until(condition: Callable[[], bool]) -> None:
    """Polls; the test's time limit ends it."""
    while not condition():
        await asyncio.sleep(0.005)


def kept(sessions: Sessions) -> list[str]:
    with sessions.other() as connection:
        return [it for (it,) in connection.execute("SELECT it FROM kept")]


def active(sessions: Sessions, pid: int) -> bool:
    with sessions.other() as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'"
        return connection.execute(query, [pid]).fetchone() == (1,)


def terminate(sessions: Sessions, pid: int) -> None:
    with sessions.other() as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", [pid])
