"""A change of ownership that is under way: what it keeps others from, who goes on with it, and how it ends."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from tests.lake import UNITY, Lake
from tests.postgres import PostgresServer
from tests.servers import ServerProcess
from tests.test_drop_commands import run
from tests.test_ownership import TIDEGATE, Plain, adopt, adopted, allow, is_ours, promises, release, started
from tests.waiting import wait_until
from tidegate.compose import build_server, prepare
from tidegate.domain.errors import InvalidRequest, TooManyRequests, Unavailable
from tidegate.domain.names import SchemaName, TableId, TableName, Version
from tidegate.domain.ownership import Change, Kept, OwnershipCommit, Promise, plan_adoption
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Principal
from tidegate.domain.storage_ports import DeltaLogs
from tidegate.services.adopt_table import ATTEMPTS_MAX, adopt_table
from tidegate.services.adoptable_locations import allow_adoption, list_promises
from tidegate.services.environment import Environment
from tidegate.services.first_start import first_start
from tidegate.services.keep_promises import keep_promises, overdue
from tidegate.services.own_table import WAITING_MAX, register_owned
from tidegate.services.storage_doctor import examine_storage
from tidegate.settings import Settings

ADMIN = Principal("admin")


@pytest.fixture(params=["sqlite", "postgresql"])
def own_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerProcess]:
    database = None
    if request.param == "postgresql":
        postgres: PostgresServer = request.getfixturevalue("postgres")
        database = postgres.create_database()
    process = ServerProcess(tmp_path / "home", database)
    yield process
    process.stop()


def message(refused: httpx.Response) -> str:
    assert refused.status_code == 400, refused.text
    return refused.json()["message"]


def test_the_schema_and_the_catalog_stay_until_an_adoption_has_come_to_an_end(
    own_server: ServerProcess, tmp_path: Path
) -> None:
    """The commit is in the log: the catalog has to register the table, and needs a place for it."""
    plain = Plain(tmp_path / "lake" / "t").create()
    with started(own_server, fault="adopt.put", what="fail").http() as http:
        allow(http, tmp_path / "lake")
        assert adopt(http, plain, "t").status_code >= 500
        schema, catalog = f"{UNITY}/schemas/main.default", f"{UNITY}/catalogs/main"
        assert "being adopted" in message(http.delete(schema, params={"force": "true"}))
        assert "being adopted" in message(http.delete(catalog, params={"force": "true"}))
        assert "being adopted" in message(http.patch(schema, json={"new_name": "other"}))
        assert "being adopted" in message(http.patch(catalog, json={"new_name": "other"}))
        assert http.patch(schema, json={"comment": "may change"}).status_code == 200
    with started(own_server).http() as http:
        wait_until(lambda: promises(http) == [], "the promise is kept")
        assert Lake(http).load("t").json()["latest-table-version"] == 2
        assert http.patch(f"{UNITY}/schemas/main.default", json={"new_name": "other"}).status_code == 200


def test_a_table_is_not_dropped_while_it_is_given_back(own_server: ServerProcess, tmp_path: Path) -> None:
    plain = Plain(tmp_path / "lake" / "t").create()
    with started(own_server, fault="release.put", what="fail").http() as http:
        allow(http, tmp_path / "lake")
        table = adopted(Lake(http), plain, "t")
        assert release(http, "t").status_code >= 500
        assert "being released" in message(http.delete(f"{UNITY}/tables/main.default.t"))
        assert "being released" in message(http.delete(f"{UNITY}/schemas/main.default", params={"force": "true"}))
        refused = table.commit(3)
        assert refused.status_code == 400
        assert "takes no commits" in refused.json()["error"]["message"]
    with started(own_server).http() as http:
        wait_until(lambda: promises(http) == [], "the promise is kept")
        assert Lake(http).load("t").json()["metadata"]["table-type"] == "EXTERNAL"
        assert http.delete(f"{UNITY}/tables/main.default.t").status_code == 200
        assert plain.versions() == [0, 1, 2, 3], "dropped as an external table, its files stay"


def test_a_dropped_table_is_not_restored_where_one_is_being_adopted(own_server: ServerProcess, tmp_path: Path) -> None:
    plain = Plain(tmp_path / "lake" / "t").create()
    with started(own_server, fault="adopt.put", what="fail").http() as http:
        allow(http, tmp_path / "lake")
        known = adopt(http, plain, "known", external=True)
        assert http.delete(f"{UNITY}/tables/main.default.known").status_code == 200
        assert adopt(http, plain, "t").status_code >= 500
        restored = http.post(f"{TIDEGATE}/dropped-tables/{known.json()['table_id']}/restore")
        assert "being adopted" in message(restored)


def test_the_doctor_goes_on_with_what_was_not_finished(own_server: ServerProcess, tmp_path: Path) -> None:
    plain = Plain(tmp_path / "lake" / "t").create()
    server = started(own_server, fault="adopt.put", what="fail:1")
    with server.http() as http:
        allow(http, tmp_path / "lake")
        assert adopt(http, plain, "t").status_code >= 500
        assert [one["change"] for one in promises(http)] == ["adopt"]
        mended = run(server, "doctor", "--fix")
        assert mended.exit_code == 0, mended.output
        assert "mended: main.default.t" in mended.stdout
        assert promises(http) == []
        assert Lake(http).load("t").json()["latest-table-version"] == 2
        assert run(server, "doctor").exit_code == 0
    server = started(own_server, fault="release.put", what="fail:1")
    with server.http() as http:
        assert release(http, "t").status_code >= 500
        assert [one["change"] for one in promises(http)] == ["release"]
        looked = run(server, "doctor", "main.default.t")
        assert (looked.exit_code, looked.stdout.count("!")) == (1, 1), (
            "the commit that gives it back is not held against it"
        )
        assert "main.default.t" in looked.stdout
        assert run(server, "doctor", "--fix").exit_code == 0
        assert promises(http) == []
        assert not is_ours(plain)


def test_the_doctor_ends_what_can_never_be(own_server: ServerProcess, tmp_path: Path) -> None:
    plain = Plain(tmp_path / "lake" / "t").create()
    server = started(own_server, fault="adopt.promised", what="fail:1")
    with server.http() as http:
        allow(http, tmp_path / "lake")
        assert adopt(http, plain, "t").status_code >= 500
        owned = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": [],
            "writerFeatures": ["catalogManaged"],
        }
        plain.put(2, {"commitInfo": {}}, {"protocol": owned})
        assert run(server, "doctor", "--fix").exit_code == 0
        assert promises(http) == []
        assert plain.versions() == [0, 1, 2]
        assert Lake(http).load("t").status_code == 404


def test_many_who_adopt_one_table_at_once_are_told_of_one_adoption(lake: Lake, tmp_path: Path, unique: str) -> None:
    allow(lake.http, tmp_path)
    plain = Plain(tmp_path / "t").create()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: adopt(lake.http, plain, unique), range(8)))
    done = [answer.json() for answer in answers if answer.status_code == 200]
    assert done
    assert {(one["table_id"], one["version"]) for one in done} == {(done[0]["table_id"], 2)}
    for refused in answers:
        assert refused.status_code == 200 or "right now" in refused.text or "being adopted" in refused.text, (
            refused.text
        )
    assert plain.versions() == [0, 1, 2]


def test_a_name_that_was_taken_meanwhile_is_made_another_one(own_server: ServerProcess, tmp_path: Path) -> None:
    plain = Plain(tmp_path / "lake" / "t").create()
    with started(own_server, fault="adopt.put", what="fail:1").http() as http:
        allow(http, tmp_path / "lake")
        assert adopt(http, plain, "t").status_code >= 500
        Lake(http).new_table("t")
        done = adopt(http, plain, "t")
        assert done.status_code == 200, done.text
        name = f"t_{done.json()['table_id'][:8]}"
        assert done.json()["full_name"] == f"main.default.{name}"
        assert Lake(http).load(name).json()["metadata"]["location"] == plain.location


class Hurried:
    """The logs of tables; before a version is put into one, somebody else may do something there."""

    def __init__(self, logs: DeltaLogs, before: Callable[[Version], Any]) -> None:
        self._logs, self._before = logs, before

    async def put_if_absent(self, location: str, version: Version, content: bytes) -> bool:
        done = self._before(version)
        if inspect.isawaitable(done):
            await done
        return await self._logs.put_if_absent(location, version, content)


async def adopt_while(
    database_url: str, tmp_path: Path, plain: Plain, before: Callable[[Environment, Version], Any]
) -> tuple[Environment, list[Promise]]:
    env = await environment(database_url, tmp_path)
    with pytest.raises(Unavailable, match="so fast"):
        await adopt_hurried(env, plain, lambda version: before(env, version))
    return env, list(await list_promises(env, ADMIN))


async def environment(database_url: str, tmp_path: Path) -> Environment:
    settings = Settings(home=tmp_path / "home", database=database_url)
    prepare(settings)
    env = build_server(settings).env
    env.database.start()  # type: ignore[attr-defined]
    await first_start(env, owner=ADMIN.name)
    await allow_adoption(env, ADMIN, f"file://{tmp_path}/lake")
    return env


async def adopt_hurried(env: Environment, plain: Plain, before: Callable[[Version], Any]) -> None:
    hurried = replace(env, delta_logs=cast("DeltaLogs", Hurried(env.delta_logs, before)))
    await adopt_table(hurried, ADMIN, plain.location, TableName("main", "default", "t"))


def test_an_adoption_that_never_gets_a_version_ends_and_changes_nothing(database_url: str, tmp_path: Path) -> None:
    plain = Plain(tmp_path / "lake" / "t").create()

    async def check() -> None:
        env, left = await adopt_while(database_url, tmp_path, plain, lambda _, version: none(plain.append(version)))
        assert left == []
        assert plain.versions() == list(range(2 + ATTEMPTS_MAX))
        assert not is_ours(plain)
        done = await adopt_table(env, ADMIN, plain.location, TableName("main", "default", "t"))
        assert done.version == 2 + ATTEMPTS_MAX
        env.database.stop()  # type: ignore[attr-defined]

    asyncio.run(check())


def test_who_gives_up_an_adoption_does_not_end_what_somebody_else_goes_on_with(
    database_url: str, tmp_path: Path
) -> None:
    """The last version is lost too, but another server has planned the next one and may just be putting it."""
    plain = Plain(tmp_path / "lake" / "t").create()

    async def last_is_planned_by_another(env: Environment, version: Version) -> None:
        plain.append(version)
        if version == 1 + ATTEMPTS_MAX:
            (promise,) = await list_promises(env, ADMIN)
            found = await env.found_tables.find(plain.location)
            commit = plan_adoption(found, table_id=promise.table_id, txn_id="another", now=env.clock())
            assert await env.database.write(lambda uow: uow.ownership.plan(promise, commit))

    async def check() -> None:
        env, left = await adopt_while(database_url, tmp_path, plain, last_is_planned_by_another)
        assert [promise.commit and promise.commit.version for promise in left] == [2 + ATTEMPTS_MAX]
        await keep_promises(env, grace_ms=0)
        assert is_ours(plain)
        assert await list_promises(env, ADMIN) == []
        env.database.stop()  # type: ignore[attr-defined]

    asyncio.run(check())


async def adopted_by_rivals(env: Environment, waiting: int, plain: Plain) -> None:
    """A promise of an adoption that nobody has kept, younger than many of registrations that no client will keep."""
    place, now = plain.location, env.clock()

    def promised(uow: UnitOfWork) -> None:
        for number in range(waiting):
            name, id = TableName("main", "default", f"w{number}"), TableId(env.new_id())
            at, version = f"{place}_{number}", Version(0)
            uow.ownership.promise(Promise(id, Change.OWN, name, at, None, Kept.NOTHING, now - 9000, "ada", version))
        id = TableId(env.new_id())
        name = TableName("main", "default", "t")
        uow.ownership.promise(Promise(id, Change.ADOPT, name, place, commit(id), Kept.NOTHING, now, ADMIN.name))

    found = await env.found_tables.find(place)

    def commit(id: TableId) -> OwnershipCommit:
        return plan_adoption(found, table_id=id, txn_id="x", now=now)

    await env.database.write(promised)


def test_registrations_that_wait_for_ever_hold_nothing_up(database_url: str, tmp_path: Path) -> None:
    plain = Plain(tmp_path / "lake" / "t").create()

    async def check() -> None:
        env = await environment(database_url, tmp_path)
        await adopted_by_rivals(env, WAITING_MAX, plain)
        await keep_promises(env, grace_ms=0)
        assert is_ours(plain)
        left = await overdue(env, grace_ms=0)
        assert {promise.change for promise in left} == {Change.OWN}, "they wait on"
        assert len(left) == WAITING_MAX
        with pytest.raises(TooManyRequests, match="wait for clients"):
            await register_owned(
                env, ADMIN, f"{plain.location}_new", SchemaName("main", "default"), version=Version(-1)
            )
        told = [finding for finding in await examine_storage(env, ADMIN, grace_ms=0) if not finding.fixable]
        assert len(told) == WAITING_MAX
        assert "Any commit to it ends that" in told[0].message
        env.database.stop()  # type: ignore[attr-defined]

    asyncio.run(check())


def test_who_was_first_may_have_made_it_a_table_that_cannot_be_ours(database_url: str, tmp_path: Path) -> None:
    """What is checked before an adoption begins is checked again after a lost version."""
    plain = Plain(tmp_path / "lake" / "t").create()
    metadata = plain.actions(0)["metaData"]

    async def check() -> None:
        with pytest.raises(InvalidRequest, match="Partition column"):
            await adopt_hurried(
                await environment(database_url, tmp_path),
                plain,
                lambda version: plain.put(
                    version, {"commitInfo": {}}, {"metaData": {**metadata, "partitionColumns": ["x"]}}
                ),
            )
        assert plain.versions() == [0, 1, 2]

    asyncio.run(check())


def none(_: object) -> None:
    return None
