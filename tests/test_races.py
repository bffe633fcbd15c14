"""Many clients at once: on one table, on many, on one name; through one server, and through two on one PostgreSQL.

Every racing client is a thread with a connection of its own that behaves as a Delta client does: load, write a staged
file for latest + 1, propose it, on a 409 load again. While it races it checks each answer: commits complete and
contiguous, metadata in step with the newest commit, never older than what somebody was told before.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from subprocess import PIPE
from typing import Any, TypeVar

import httpx
import pytest

from tests.lake import DELTA, UNITY, Draft, Lake, LakeTable, add_commit, error_of, report
from tests.postgres import PostgresServer
from tests.servers import ServerProcess

T = TypeVar("T")

RACERS = 8
ROUNDS = 4
"""How often a race that is over in a moment is run."""
VERSION_PROPERTY = "race.version"

ALREADY_EXISTS = (409, "AlreadyExistsException")
INVALID = (400, "InvalidParameterValueException")
NO_SUCH_SCHEMA = (404, "NoSuchSchemaException")
NO_SUCH_TABLE = (404, "NoSuchTableException")


@pytest.fixture(scope="module", params=["sqlite", "postgresql", "two servers on postgresql"])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ServerProcess]]:
    """Servers that share one database; clients are dealt out to them in turn."""
    database = None if request.param == "sqlite" else request.getfixturevalue("postgres").create_database()
    count = 2 if request.param.startswith("two") else 1
    started = [ServerProcess(tmp_path_factory.mktemp("home"), database).start() for _ in range(count)]
    yield started
    for process in started:
        assert process.stop() == 0, "".join(process.log[-50:])


@dataclass
class Track:
    """One table, and what clients were told about it."""

    table: LakeTable
    acknowledged: dict[int, str] = field(default_factory=dict)
    newest: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def first(self) -> dict[str, Any]:
        """The metaData of version 0. What is committed after it changes one property alone."""
        lines = (self.table.log / f"{0:020}.json").read_text().splitlines()
        return next(action["metaData"] for line in lines if "metaData" in (action := json.loads(line)))

    def acknowledge(self, commit: dict[str, Any]) -> None:
        with self.lock:
            assert commit["version"] not in self.acknowledged, "two clients were told that they have the same version"
            self.acknowledged[commit["version"]] = commit["file-name"]
            self.newest = max(self.newest, commit["version"])

    def seen_by(self, lake: Lake) -> LakeTable:
        return LakeTable(lake, self.table.name, self.table.id, self.table.location)


@dataclass
class Racer:
    """A client that must win `wins` times on each table. It loses only to somebody who wins: that bounds its tries."""

    lake: Lake
    wins: int
    tries_max: int
    publishes: bool = False
    statuses: Counter[int] = field(default_factory=Counter)
    won: list[tuple[LakeTable, int]] = field(default_factory=list)
    """Not published yet. Put off until the next race, so that others report what is not there yet."""

    def race(self, tracks: Sequence[Track]) -> None:
        for _ in range(self.wins):
            for track in tracks:
                self.win(track)
                if self.publishes and len(self.won) > 1:
                    self.publish_one()

    def win(self, track: Track) -> None:
        table, first = track.seen_by(self.lake), track.first
        for _ in range(self.tries_max):
            loaded = self.load(track)
            version = loaded["latest-table-version"] + 1
            updates = {VERSION_PROPERTY: str(version)}
            said = {"metaData": {**first, "configuration": first["configuration"] | updates}}
            commit = table.stage_commit(version, timestamp=next_timestamp(loaded), actions=[said])
            properties = {"action": "set-properties", "updates": updates}
            # As a stock client does: what it believes to be published is reported with the next commit.
            reports = [report(version - 1)] if self.publishes else []
            answer = table.update(add_commit(commit), properties, *reports)
            self.statuses[answer.status_code] += 1
            if answer.status_code == 200:
                track.acknowledge(commit)
                check_snapshot(answer.json(), table, at_least=version)
                table.staged[version] = commit["file-name"]
                self.won.append((table, version))
                return
            assert error_of(answer) == (409, "CommitVersionConflictException"), answer.text
        raise AssertionError(f"{self.tries_max} tries, and every one lost")

    def load(self, track: Track) -> dict[str, Any]:
        told = track.newest
        loaded = track.seen_by(self.lake).load()
        check_snapshot(loaded, track.table, at_least=told)
        return loaded

    def publish_one(self) -> None:
        table, version = self.won.pop(0)
        table.publish(version)


def next_timestamp(loaded: dict[str, Any]) -> int:
    stamps = [commit["timestamp"] for commit in loaded["commits"]] + [loaded["metadata"]["last-commit-timestamp-ms"]]
    return max(int(time.time() * 1000), max(stamps) + 1)


def check_snapshot(loaded: dict[str, Any], table: LakeTable, *, at_least: int) -> None:
    """One state of the catalog: every part of the answer speaks of the same version; what it omits is published."""
    latest, metadata = loaded["latest-table-version"], loaded["metadata"]
    versions = [commit["version"] for commit in loaded["commits"]]
    assert latest >= at_least, "older than what somebody was told before"
    assert versions == list(range(latest, latest - len(versions), -1))
    assert metadata["last-commit-version"] == latest
    assert metadata["properties"].get(VERSION_PROPERTY, "0") == str(latest)
    for version in range(latest - len(versions) + 1):
        assert (table.log / f"{version:020}.json").exists(), "a commit was forgotten before it was published"


def all_at_once(works: Sequence[Callable[[], T]]) -> list[T]:
    """Runs each in a thread of its own, from the same moment on; fails when one of them fails."""
    gate = threading.Barrier(len(works))

    def run(work: Callable[[], T]) -> T:
        gate.wait(timeout=60)
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return [future.result() for future in [pool.submit(run, work) for work in works]]


@contextlib.contextmanager
def lakes(servers: Sequence[ServerProcess], count: int) -> Iterator[list[Lake]]:
    """Clients with connections of their own, dealt out to the servers in turn."""
    with contextlib.ExitStack() as open_ones:
        # verify=False: there is no TLS, and reading the trusted certificates for each client takes long.
        dealt = itertools.islice(itertools.cycle(servers), count)
        yield [Lake(open_ones.enter_context(server.http(verify=False))) for server in dealt]


def race(
    servers: Sequence[ServerProcess], names: Sequence[str], *, clients: int, wins: int, publishes: bool = False
) -> None:
    with lakes(servers, clients) as racing:
        tracks = [Track(racing[0].new_table(name)) for name in names]
        racers = [Racer(lake, wins, clients * wins, publishes) for lake in racing]
        all_at_once([lambda racer=racer: racer.race(tracks) for racer in racers])
        for track in tracks:
            check_outcome(track, versions=clients * wins)
        if publishes:
            publish_the_rest(tracks, racers)
        assert {status for racer in racers for status in racer.statuses} <= {200, 409}


def check_outcome(track: Track, *, versions: int) -> None:
    """Every version once, no gap, and each under the file name of the client that was told so."""
    assert sorted(track.acknowledged) == list(range(1, versions + 1))
    loaded = track.table.load()
    assert loaded["latest-table-version"] == versions
    check_snapshot(loaded, track.table, at_least=versions)
    listed = {commit["version"]: commit["file-name"] for commit in loaded["commits"]}
    published = {version: name for version, name in track.acknowledged.items() if version not in listed}
    assert {**published, **listed} == track.acknowledged
    for version, name in published.items():
        staged = (track.table.log / "_staged_commits" / name).read_bytes()
        assert (track.table.log / f"{version:020}.json").read_bytes() == staged


def publish_the_rest(tracks: Sequence[Track], racers: Sequence[Racer]) -> None:
    for racer in racers:
        while racer.won:
            racer.publish_one()
    for track in tracks:
        answer = track.table.report(track.newest)
        assert answer.status_code == 200, answer.text
        assert answer.json()["commits"] == []


# ---- commits ----


@pytest.mark.parametrize(("clients", "wins"), [(8, 5), (32, 1)])
def test_clients_racing_on_one_table_ratify_every_version_once(
    servers: list[ServerProcess], unique: str, clients: int, wins: int
) -> None:
    race(servers, [unique], clients=clients, wins=wins)


@pytest.mark.parametrize(("clients", "wins", "tables"), [(8, 1, 6), (32, 1, 2)])
def test_clients_racing_on_many_tables_ratify_every_version_once(
    servers: list[ServerProcess], unique: str, clients: int, wins: int, tables: int
) -> None:
    race(servers, [f"{unique}_{number}" for number in range(tables)], clients=clients, wins=wins)


def test_racing_clients_that_publish_and_report_lose_no_commit(servers: list[ServerProcess], unique: str) -> None:
    race(servers, [unique], clients=8, wins=5, publishes=True)


def test_one_commit_sent_many_times_at_once_is_a_success_for_all_and_happens_once(
    servers: list[ServerProcess], unique: str
) -> None:
    with lakes(servers, RACERS) as clients:
        table = clients[0].new_table(unique)
        for version in range(1, ROUNDS + 1):
            request = table.request(add_commit(table.stage_commit(version)))
            answers = all_at_once([lambda lake=lake, r=request: lake.update(unique, r) for lake in clients])
            assert {answer.status_code for answer in answers} == {200}, [answer.text for answer in answers]
        assert table.versions() == list(range(ROUNDS, 0, -1))


# ---- metadata ----


def test_parallel_property_updates_all_arrive(servers: list[ServerProcess], unique: str) -> None:
    """Without a commit and without an etag there is nothing to lose to."""
    turns = 10
    with lakes(servers, RACERS) as clients:
        table = clients[0].new_table(unique)

        def update(number: int) -> set[int]:
            own = [{f"key.{number}.{turn}": str(turn), "shared": str(number)} for turn in range(turns)]
            requests = [table.request({"action": "set-properties", "updates": keys}) for keys in own]
            return {clients[number].update(unique, request).status_code for request in requests}

        statuses = all_at_once([lambda number=number: update(number) for number in range(RACERS)])
        assert set.union(*statuses) == {200}
        properties = table.load()["metadata"]["properties"]
    expected = {f"key.{number}.{turn}": str(turn) for number in range(RACERS) for turn in range(turns)}
    assert {key: value for key, value in properties.items() if key.startswith("key.")} == expected
    assert int(properties["shared"]) in range(RACERS)


def test_a_counter_kept_under_assert_etag_counts_every_acknowledged_step(
    servers: list[ServerProcess], unique: str
) -> None:
    steps = 5
    with lakes(servers, RACERS) as clients:
        table = clients[0].new_table(unique)

        def count(lake: Lake) -> None:
            for _ in range(steps):
                step_counter(table, lake, tries_max=RACERS * steps)

        all_at_once([lambda lake=lake: count(lake) for lake in clients])
        assert table.load()["metadata"]["properties"]["counter"] == str(RACERS * steps)


def step_counter(table: LakeTable, lake: Lake, *, tries_max: int) -> None:
    for _ in range(tries_max):
        metadata = lake.load(table.name).json()["metadata"]
        after = int(metadata["properties"].get("counter", "0")) + 1
        change = {"action": "set-properties", "updates": {"counter": str(after)}}
        answer = lake.update(table.name, table.request(change, etag=metadata["etag"]))
        if answer.status_code == 200:
            return
        assert error_of(answer) == (409, "UpdateRequirementConflictException"), answer.text
    raise AssertionError("lost more often than others can have won")


# ---- names ----


def losers_of(answers: Sequence[httpx.Response], *, won: int, lost: Sequence[tuple[int, str]]) -> list[int]:
    """The numbers of those who lost: all but one, each with one of the given errors."""
    losers = [number for number, answer in enumerate(answers) if answer.status_code != won]
    assert len(losers) == len(answers) - 1, [(answer.status_code, answer.text) for answer in answers]
    for number in losers:
        assert error_of(answers[number]) in lost, answers[number].text
    return losers


def test_of_racing_creations_of_one_name_one_wins_and_the_others_stay_staged(
    servers: list[ServerProcess], unique: str
) -> None:
    with lakes(servers, RACERS) as clients:
        drafts = [lake.draft(unique) for lake in clients]
        for draft in drafts:
            draft.write_version_0()
        pairs = zip(clients, drafts, strict=True)
        answers = all_at_once([lambda lake=lake, draft=draft: lake.create(draft.request) for lake, draft in pairs])
        losers = losers_of(answers, won=200, lost=[ALREADY_EXISTS])
        winner = next(draft for number, draft in enumerate(drafts) if number not in losers)
        assert clients[0].load(unique).json()["metadata"]["table-uuid"] == winner.id
        check_still_usable(clients[0], [drafts[number] for number in losers])


def check_still_usable(lake: Lake, drafts: Sequence[Draft]) -> None:
    """Each staging table is there, and gets the name once that is free."""
    for draft in drafts:
        credentials = lake.http.get(f"{DELTA}/staging-tables/{draft.id}/credentials")
        assert credentials.status_code == 200, credentials.text
        assert drop(lake, draft.request["name"]).status_code == 204
        created = lake.create(draft.request)
        assert created.status_code == 200, created.text
        assert created.json()["metadata"]["table-uuid"] == draft.id


def test_one_creation_sent_many_times_at_once_happens_once(servers: list[ServerProcess], unique: str) -> None:
    with lakes(servers, RACERS) as clients:
        for number in range(ROUNDS):
            draft = clients[0].draft(f"{unique}_{number}")
            draft.write_version_0()
            answers = all_at_once([lambda lake=lake, draft=draft: lake.create(draft.request) for lake in clients])
            # Both are true of a loser: its staging table is finished already, and the name is taken.
            losers_of(answers, won=200, lost=[INVALID, ALREADY_EXISTS])
            assert clients[0].load(f"{unique}_{number}").json()["metadata"]["table-uuid"] == draft.id


@pytest.mark.parametrize(
    ("kind", "others", "taken"),
    [
        ("schemas", {"catalog_name": "main"}, (400, "SCHEMA_ALREADY_EXISTS")),
        ("catalogs", {}, (400, "CATALOG_ALREADY_EXISTS")),
    ],
)
def test_of_racing_creations_of_one_namespace_one_wins(
    servers: list[ServerProcess], unique: str, kind: str, others: dict[str, str], taken: tuple[int, str]
) -> None:
    with lakes(servers, RACERS) as clients:
        for number in range(ROUNDS):
            body = {"name": f"{unique}_{number}", **others}
            answers = all_at_once(
                [lambda lake=lake, b=body: lake.http.post(f"{UNITY}/{kind}", json=b) for lake in clients]
            )
            losers = losers_of(answers, won=200, lost=[taken])
            won = next(answer.json() for number, answer in enumerate(answers) if number not in losers)
            full_name = ".".join([*others.values(), body["name"]])
            assert clients[0].http.get(f"{UNITY}/{kind}/{full_name}").json() == won


def test_of_racing_renames_to_one_name_one_wins_and_the_others_keep_theirs(
    servers: list[ServerProcess], unique: str
) -> None:
    with lakes(servers, RACERS) as clients:
        tables = [lake.new_table(f"{unique}_{number}") for number, lake in enumerate(clients)]
        answers = all_at_once([lambda table=table: rename(table.lake, table.name, unique) for table in tables])
        losers = losers_of(answers, won=204, lost=[ALREADY_EXISTS])
        for number, table in enumerate(tables):
            if number not in losers:
                assert error_of(clients[0].load(table.name)) == NO_SUCH_TABLE
                table.name = unique
            assert table.load()["metadata"]["table-uuid"] == table.id


def test_one_table_renamed_to_many_names_at_once_has_one_of_them(servers: list[ServerProcess], unique: str) -> None:
    with lakes(servers, RACERS) as clients:
        table = clients[0].new_table(unique)
        wanted = [f"{unique}_{number}" for number in range(RACERS)]
        pairs = zip(clients, wanted, strict=True)
        answers = all_at_once([lambda lake=lake, to=to: rename(lake, unique, to) for lake, to in pairs])
        losers = losers_of(answers, won=204, lost=[NO_SUCH_TABLE])
        names = [name for number, name in enumerate(wanted) if number not in losers]
        assert [name for name in [unique, *wanted] if clients[0].load(name).status_code == 200] == names
        table.name = names[0]
        assert table.load()["metadata"]["table-uuid"] == table.id


def test_of_racing_drops_one_drops(servers: list[ServerProcess], unique: str) -> None:
    with lakes(servers, RACERS) as clients:
        for _ in range(ROUNDS):
            clients[0].new_table(unique)
            answers = all_at_once([lambda lake=lake: drop(lake, unique) for lake in clients])
            losers_of(answers, won=204, lost=[NO_SUCH_TABLE])
            assert error_of(clients[0].load(unique)) == NO_SUCH_TABLE


def test_of_a_racing_rename_and_drop_of_one_table_one_happens(servers: list[ServerProcess], unique: str) -> None:
    """Whoever comes second finds nothing under that name."""
    with lakes(servers, 2) as clients:
        for number in range(2 * ROUNDS):
            name, to = f"{unique}_{number}", f"{unique}_{number}_new"
            clients[0].new_table(name)
            works = [lambda n=name, to=to: rename(clients[0], n, to), lambda n=name: drop(clients[1], n)]
            # Each of them starts first in half of the rounds.
            answers = all_at_once(works if number % 2 else works[::-1])
            (loser,) = losers_of(answers, won=204, lost=[NO_SUCH_TABLE])
            renamed = answers[loser].request.method == "DELETE"
            assert clients[0].load(to).status_code == (200 if renamed else 404)
            assert clients[0].load(name).status_code == 404


def rename(lake: Lake, name: str, to: str) -> httpx.Response:
    return lake.http.post(f"{lake.tables_url()}/{name}/rename", json={"new-name": to})


def drop(lake: Lake, name: str) -> httpx.Response:
    return lake.http.delete(f"{lake.tables_url()}/{name}")


# ---- a table or a schema that goes away under its writers ----


@dataclass
class DoomedTable:
    """A table that one client writes to until another one drops it."""

    table: LakeTable
    gone: threading.Event = field(default_factory=threading.Event)

    def write_until_gone(self, acknowledged: threading.Semaphore, *, error: tuple[int, str]) -> None:
        for version in range(1, 10_000):
            told = self.gone.is_set()
            answer = self.table.commit(version)
            if answer.status_code != 200:
                assert error_of(answer) == error, answer.text
                return
            assert not told, "a commit was acknowledged after the drop was"
            acknowledged.release()
        raise AssertionError("the table was never dropped")


def wait_for(acknowledged: threading.Semaphore, count: int) -> None:
    for _ in range(count):
        assert acknowledged.acquire(timeout=60)


def test_no_commit_is_acknowledged_once_the_drop_is_nor_reaches_a_new_table_of_that_name(
    servers: list[ServerProcess], unique: str
) -> None:
    with lakes(servers, RACERS) as clients:
        doomed = [DoomedTable(lake.new_table(f"{unique}_{number}")) for number, lake in enumerate(clients[1:])]

        def drop_it(table: LakeTable) -> None:
            assert drop(clients[0], table.name).status_code == 204

        take_away(doomed, drop_it, afterwards=lambda table: clients[0].new_table(table.name))
        for each in doomed:
            loaded = clients[0].load(each.table.name).json()
            assert loaded["metadata"]["table-uuid"] != each.table.id
            assert (loaded["latest-table-version"], loaded["commits"]) == (0, [])


def test_no_commit_is_acknowledged_under_the_old_name_once_the_rename_is(
    servers: list[ServerProcess], unique: str
) -> None:
    with lakes(servers, RACERS) as clients:
        doomed = [DoomedTable(lake.new_table(f"{unique}_{number}")) for number, lake in enumerate(clients[1:])]

        def rename_it(table: LakeTable) -> None:
            assert rename(clients[0], table.name, f"{table.name}_new").status_code == 204

        take_away(doomed, rename_it, afterwards=lambda table: None)
        for each in doomed:
            loaded = clients[0].load(f"{each.table.name}_new").json()
            listed = {commit["version"]: commit["file-name"] for commit in loaded["commits"]}
            assert listed == each.table.staged


def take_away(
    doomed: Sequence[DoomedTable], take: Callable[[LakeTable], None], *, afterwards: Callable[[LakeTable], object]
) -> None:
    """Takes one table after the other away, once their writers are under way."""
    acknowledged = threading.Semaphore(0)

    def taker() -> None:
        wait_for(acknowledged, 5 * len(doomed))
        for each in doomed:
            take(each.table)
            each.gone.set()
            afterwards(each.table)

    writers = [lambda each=each: each.write_until_gone(acknowledged, error=NO_SUCH_TABLE) for each in doomed]
    all_at_once([taker, *writers])


def make_schema(lake: Lake, name: str) -> None:
    created = lake.http.post(f"{UNITY}/schemas", json={"name": name, "catalog_name": "main"})
    assert created.status_code == 200, created.text


def tables_in(lake: Lake, schema: str) -> list[str]:
    listed = lake.http.get(f"{UNITY}/tables", params={"catalog_name": "main", "schema_name": schema})
    assert listed.status_code == 200, listed.text
    return sorted(table["name"] for table in listed.json()["tables"])


def drafts_in(lake: Lake, schema: str, names: Sequence[str]) -> list[Draft]:
    drafts = [Lake(lake.http, schema=schema).draft(name) for name in names]
    for draft in drafts:
        draft.write_version_0()
    return drafts


def create_all(lake: Lake, schema: str, drafts: Sequence[Draft], acknowledged: threading.Semaphore) -> list[str]:
    """The names that were acknowledged. All others must be told that the schema, or their staging table, is gone."""
    created: list[str] = []
    for draft in drafts:
        answer = Lake(lake.http, schema=schema).create(draft.request)
        if answer.status_code == 200:
            created.append(draft.request["name"])
        else:
            assert error_of(answer) in (NO_SUCH_SCHEMA, NO_SUCH_TABLE), answer.text
        acknowledged.release()
    return created


@pytest.mark.parametrize("force", [True, False], ids=["forced", "not forced"])
def test_a_schema_deleted_while_tables_are_made_in_it_is_gone_with_all_of_them_or_stays_with_all_of_them(
    servers: list[ServerProcess], unique: str, force: bool
) -> None:
    with lakes(servers, RACERS) as clients:
        for number in range(ROUNDS):
            schema = f"{unique}_{number}"
            # Somewhat later in each round.
            deleted, created = delete_while_created(clients, schema, force=force, after=number)
            check_schema(clients[0], schema, deleted, created, force=force)


def delete_while_created(
    clients: Sequence[Lake], schema: str, *, force: bool, after: int
) -> tuple[httpx.Response, list[str]]:
    """The first client deletes after so many creations by the others. Its answer, and the tables acknowledged."""
    deleter, *creators = clients
    make_schema(deleter, schema)
    staged = [drafts_in(lake, schema, [f"t{n}_{i}" for i in range(3)]) for n, lake in enumerate(creators)]
    created, done = list[str](), threading.Semaphore(0)

    def delete() -> httpx.Response:
        wait_for(done, after)
        return deleter.http.delete(f"{UNITY}/schemas/main.{schema}", params={"force": str(force).lower()})

    def create(lake: Lake, drafts: Sequence[Draft]) -> None:
        created.extend(create_all(lake, schema, drafts, done))

    pairs = zip(creators, staged, strict=True)
    deleted, *_ = all_at_once([delete, *(lambda lake=lake, own=own: create(lake, own) for lake, own in pairs)])
    assert deleted is not None
    return deleted, sorted(created)


def check_schema(lake: Lake, schema: str, deleted: httpx.Response, created: list[str], *, force: bool) -> None:
    if deleted.status_code != 200:
        assert not force, deleted.text
        assert error_of(deleted) == (400, "FAILED_PRECONDITION")
        assert tables_in(lake, schema) == created
        assert created
        return
    assert force or not created, "deleted without force, though tables were acknowledged"
    assert error_of(lake.http.get(f"{UNITY}/schemas/main.{schema}")) == (404, "SCHEMA_DOES_NOT_EXIST")
    make_schema(lake, schema)
    assert tables_in(lake, schema) == []


def test_a_schema_deleted_by_force_takes_its_tables_from_under_their_writers(
    servers: list[ServerProcess], unique: str
) -> None:
    with lakes(servers, RACERS) as clients:
        make_schema(clients[0], unique)
        inside = [Lake(lake.http, schema=unique) for lake in clients[1:]]
        doomed = [DoomedTable(lake.new_table(f"t{number}")) for number, lake in enumerate(inside)]
        acknowledged = threading.Semaphore(0)

        def delete() -> None:
            wait_for(acknowledged, 5 * len(doomed))
            answer = clients[0].http.delete(f"{UNITY}/schemas/main.{unique}", params={"force": "true"})
            assert answer.status_code == 200, answer.text
            for each in doomed:
                each.gone.set()

        writers = [lambda each=each: each.write_until_gone(acknowledged, error=NO_SUCH_TABLE) for each in doomed]
        all_at_once([delete, *writers])


def test_a_catalog_deleted_by_force_while_schemas_are_made_in_it_is_gone_with_all_of_them(
    servers: list[ServerProcess], unique: str
) -> None:
    with lakes(servers, RACERS) as clients:
        for number in range(ROUNDS):
            catalog, done = f"{unique}_{number}", threading.Semaphore(0)
            assert clients[0].http.post(f"{UNITY}/catalogs", json={"name": catalog}).status_code == 200
            makers = [
                lambda n=n, lake=lake, c=catalog, d=done: make_schemas(lake, c, [f"s{n}_{i}" for i in range(4)], d)
                for n, lake in enumerate(clients[1:])
            ]
            all_at_once([lambda c=catalog, d=done, n=number: delete_catalog(clients[0], c, d, after=n), *makers])
            gone = clients[0].http.get(f"{UNITY}/catalogs/{catalog}")
            assert error_of(gone) == (404, "CATALOG_DOES_NOT_EXIST")


def make_schemas(lake: Lake, catalog: str, names: Sequence[str], done: threading.Semaphore) -> None:
    for name in names:
        answer = lake.http.post(f"{UNITY}/schemas", json={"name": name, "catalog_name": catalog})
        assert answer.status_code == 200 or error_of(answer) == (404, "CATALOG_DOES_NOT_EXIST"), answer.text
        done.release()


def delete_catalog(lake: Lake, catalog: str, done: threading.Semaphore, *, after: int) -> None:
    wait_for(done, after)
    answer = lake.http.delete(f"{UNITY}/catalogs/{catalog}", params={"force": "true"})
    assert answer.status_code == 200, answer.text


# ---- servers that start together ----


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_servers_that_start_at_once_on_nothing_all_come_up_as_one_catalog(
    kind: str, postgres: PostgresServer, tmp_path: Path
) -> None:
    """On SQLite they share the home, and with it the token; on PostgreSQL only the database."""
    shared = kind == "sqlite"
    database = None if shared else postgres.create_database()
    starting = [ServerProcess(tmp_path / ("home" if shared else f"home{number}"), database) for number in range(4)]
    try:
        all_at_once([server.start for server in starting])
        with lakes(starting, len(starting)) as clients:
            metastores = {lake.http.get(f"{UNITY}/metastore_summary").text for lake in clients}
            assert len(metastores) == 1
            assert '"metastore_id"' in metastores.pop()
            table = clients[0].new_table("shared")
            for version, lake in enumerate(clients, start=1):
                own = LakeTable(lake, table.name, table.id, table.location, timestamp=table.timestamp + version)
                answer = own.commit(version)
                assert answer.status_code == 200, answer.text
            assert [len(lake.load("shared").json()["commits"]) for lake in clients] == [len(clients)] * len(clients)
    finally:
        codes = [server.stop() for server in starting if server.process is not None]
    assert codes == [0] * len(starting)


def test_servers_that_make_the_admin_token_at_once_all_know_the_one_in_the_file(tmp_path: Path) -> None:
    """The moment itself, which servers that start together only meet by chance."""
    program = (
        "import sys; from pathlib import Path; from tidegate.auth.tokens import read_or_make_token\n"
        "for home in sys.stdin: print(read_or_make_token(Path(home.strip()) / 'admin.token'), flush=True)"
    )
    with contextlib.ExitStack() as running:
        makers = [
            running.enter_context(
                subprocess.Popen([sys.executable, "-c", program], stdin=PIPE, stdout=PIPE, text=True, bufsize=1)
            )
            for _ in range(4)
        ]
        for number in range(2 * ROUNDS):
            home = tmp_path / f"home{number}"
            home.mkdir()
            known = all_at_once([lambda maker=maker, home=home: ask(maker, f"{home}\n") for maker in makers])
            assert set(known) == {(home / "admin.token").read_text()}
            assert (home / "admin.token").stat().st_mode & 0o777 == 0o600


def ask(process: subprocess.Popen[str], line: str) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line)
    return process.stdout.readline()
