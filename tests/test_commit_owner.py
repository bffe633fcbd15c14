"""The catalog as the commit owner of tables on file systems: it decides, publishes, and gives them back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.lake import UNITY, Lake, LakeTable
from tests.owned import CONF, FEATURE, OWNER, PROTOCOL, WRITER_FEATURES, Owned
from tests.servers import PUBLISHING, ServerProcess
from tests.test_ownership import TIDEGATE, Plain, adopt, allow, promises, started
from tests.waiting import wait_until
from tidegate.steps import STEPS

SLOW = {"publish_after_ms": "600000"}
"""What is ratified waits for whoever asks for it to be published."""


@pytest.fixture
def owned(server: ServerProcess, http: httpx.Client, tmp_path: Path, unique: str) -> Owned:
    allow(http, tmp_path)
    return Owned(http, Plain(tmp_path / f"lake_{unique}").create())


def message(refused: httpx.Response) -> str:
    assert refused.status_code == 400, refused.text
    return refused.json()["message"]


def test_a_table_is_owned_when_the_log_says_so_and_not_before(owned: Owned) -> None:
    agreed = owned.register(1)
    assert agreed.status_code == 200, agreed.text
    owned.id = agreed.json()["table_id"]
    assert agreed.json()["owned_from"] == 2
    name = agreed.json()["full_name"]
    assert owned.commits().status_code == 404, "the owner has agreed, and the client has put nothing"
    assert owned.commit(2).status_code == 404
    assert [(one["change"], one["version"]) for one in promises(owned.http, "own") if one["table_id"] == owned.id] == [
        ("own", 2)
    ]
    assert owned.put(2)
    assert owned.latest() == 2
    assert owned.id not in [one["table_id"] for one in promises(owned.http, "own")]
    shown = Lake(owned.http).load(name.rpartition(".")[2]).json()
    assert shown["metadata"]["table-type"] == "EXTERNAL", "clients read and write it by its path"
    assert shown["metadata"]["properties"][OWNER] == "tidegate"


def test_commits_are_ratified_once_each_told_and_published(owned: Owned) -> None:
    name = owned.register(1).json()["full_name"]
    owned.taken_over()
    first = owned.stage(3)
    assert owned.send(first).json()["latest_version"] == 3
    assert owned.send(first).json()["latest_version"] == 3, "a lost answer: sent again, it is the same commit"
    lost = owned.commit(3)
    assert lost.status_code == 409
    assert lost.json()["conflict"]["latest_version"] == 3
    gap = owned.commit(5)
    assert (gap.status_code, gap.json()["conflict"]["latest_version"]) == (409, 3)
    counts = owned.http.get(f"{TIDEGATE}/tables/{name}/timeline").json()
    assert (counts["conflicts"], counts["replays"]) == (2, 1)
    owned.staged[3] = first
    assert owned.commit(4).status_code == 200
    told = owned.commits(start_version=3).json()
    assert told["latest_version"] == 4
    assert owned.publish(4).json()["published_version"] == 4
    assert [owned.published(version) == owned.content(version) for version in (3, 4)] == [True, True]
    assert owned.commits().json() == {"commits": [], "latest_version": 4}
    assert owned.send(first).status_code == 200, "published, it is still the same commit"


def test_what_waits_is_told_in_order_and_filesystem_readers_see_what_is_published(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "home", settings=SLOW).start()
    try:
        with server.http() as http:
            allow(http, tmp_path)
            owned = Owned(http, Plain(tmp_path / "t").create()).taken_over()
            for version in (3, 4, 5):
                assert owned.commit(version).status_code == 200
            told = owned.commits().json()
            assert [one["version"] for one in told["commits"]] == [3, 4, 5]
            assert [one["file_name"] for one in told["commits"]] == [owned.staged[v]["file_name"] for v in (3, 4, 5)]
            assert [one["version"] for one in owned.commits(start_version=4, end_version=4).json()["commits"]] == [4]
            assert owned.plain.versions() == [0, 1, 2]
            assert owned.publish(4).json()["published_version"] == 4
            assert owned.plain.versions() == [0, 1, 2, 3, 4], "as far as was asked for, and in order"
            assert [one["version"] for one in owned.commits().json()["commits"]] == [5]
            assert owned.latest() == 5
            returned = owned.send(owned.giving_back(6))
            assert returned.json() == {"version": 6, "latest_version": 6, "published": True}
            assert owned.plain.versions() == [0, 1, 2, 3, 4, 5, 6], "all of it, before the answer"
    finally:
        server.stop()


def test_a_client_that_loses_its_version_has_changed_nothing(owned: Owned) -> None:
    owned.id = owned.register(1).json()["table_id"]
    assert owned.plain.append(2), "another writer is first"
    assert not owned.put(2)
    assert owned.commits().status_code == 404
    assert owned.id not in [one["table_id"] for one in promises(owned.http, "own")], "the promise has ended"
    assert owned.taken_over(2).latest() == 3, "the next attempt succeeds"


def test_a_registration_keeps_an_adoption_off_until_its_version_is_somebody_elses(owned: Owned, unique: str) -> None:
    assert owned.register(1).status_code == 200
    assert "registered with its commit owner" in message(adopt(owned.http, owned.plain, unique))
    assert owned.plain.append(2)
    done = adopt(owned.http, owned.plain, unique)
    assert (done.status_code, done.json()["version"]) == (200, 3), done.text
    left = [one for one in promises(owned.http, "own", "adopt") if one["location"] == owned.plain.location]
    assert left == [], "nobody had to ask about it before"


def test_of_two_clients_that_take_a_table_over_both_get_the_same_id(owned: Owned) -> None:
    first, second = owned.register(1), owned.register(1)
    assert first.json() == second.json()
    assert "is at version 1, not 7" in message(owned.register(7))
    assert "is at version 1, not 0" in message(owned.register(0))
    owned.id = first.json()["table_id"]
    assert owned.put(2)
    assert owned.latest() == 2
    assert "has a commit owner" in message(owned.register(2))


def test_a_new_table_begins_with_its_owner(server: ServerProcess, http: httpx.Client, tmp_path: Path) -> None:
    allow(http, tmp_path)
    model = Plain(tmp_path / "model").create()
    owned = Owned(http, Plain(tmp_path / "new"))
    agreed = owned.register(-1)
    assert (agreed.status_code, agreed.json()["owned_from"]) == (200, 0)
    owned.id, metadata = agreed.json()["table_id"], model.actions(0)["metaData"]
    owned.plain.log.mkdir(parents=True)
    owned.plain.put(0, {"metaData": metadata})
    (owned.plain.log / f"{0:020}.json").unlink()
    conf = {OWNER: "tidegate", "delta.coordinatedCommits.tableConf-preview": f'{{"tableId": "{owned.id}"}}'}
    conf["delta.enableInCommitTimestamps"] = "true"
    assert owned.plain.put(0, owned.info(), {"protocol": PROTOCOL}, {"metaData": {**metadata, "configuration": conf}})
    assert owned.latest() == 0
    assert owned.commit(1).status_code == 200
    assert "already" in message(Owned(http, model).register(-1))


def test_metadata_follows_the_files_that_are_committed(owned: Owned) -> None:
    name = owned.taken_over().register(2).json()
    assert "has a commit owner" in name["message"]
    metadata = owned.plain.actions(2)["metaData"]
    changed = {**metadata, "configuration": {**metadata["configuration"], "team": "sea"}}
    assert owned.commit(3, {"metaData": changed}).status_code == 200
    listed = owned.http.get(
        f"{UNITY}/tables", params={"catalog_name": "main", "schema_name": "default", "max_results": 1000}
    ).json()["tables"]
    mine = next(one for one in listed if one["table_id"] == owned.id)
    assert (mine["table_type"], mine["properties"]["team"]) == ("EXTERNAL", "sea")


def test_bad_commits_change_nothing(owned: Owned) -> None:
    owned.taken_over()
    good = owned.stage(3)
    for change, says in (
        ({"file_name": "../x.json"}, "cannot be the staged file"),
        ({"file_name": f"{3:020}.00000000-0000-0000-0000-000000000000.json"}, "is not there"),
        ({"file_size": 1}, "bytes"),
        ({"timestamp": 5}, "inCommitTimestamp"),
        ({"version": 0}, "version is 1 or higher"),
        ({"location": "file:///elsewhere"}, "is at"),
    ):
        assert says in message(owned.send({**good, **change})), change
    metadata = owned.plain.actions(2)["metaData"]
    for configuration, says in (
        ({**metadata["configuration"], OWNER: "somebody"}, "would change that"),
        ({**metadata["configuration"], "delta.enableInCommitTimestamps": "false"}, "Keep them"),
    ):
        refused = owned.commit(3, {"metaData": {**metadata, "configuration": configuration}})
        assert says in message(refused)
    for conf, says in (
        ('{"endpoint": "http://x", "token": "hidden"}', "token"),
        ('{"endpoint": "http://ada:hidden@x"}', "user or password"),
        ('{"endpoint": 1}', "endpoint"),
        ("[]", "endpoint"),
        ("{", "endpoint"),
    ):
        refused = owned.commit(
            3, {"metaData": {**metadata, "configuration": {**metadata["configuration"], CONF: conf}}}
        )
        assert says in message(refused), conf
        assert "hidden" not in refused.text
    managed = {**PROTOCOL, "readerFeatures": ["catalogManaged"], "writerFeatures": [*WRITER_FEATURES, "catalogManaged"]}
    assert "catalogManaged" in message(owned.commit(3, {"protocol": managed}))
    assert "is 0 or higher" in message(owned.commits(start_version=-1)).replace("are 0", "is 0")
    assert "has no version 9" in message(owned.publish(9))
    assert owned.latest() == 2
    assert owned.send(good).status_code == 200


def test_places_that_nobody_allowed_and_tables_that_others_own_are_refused(
    server: ServerProcess, http: httpx.Client, tmp_path: Path, unique: str
) -> None:
    plain = Plain(tmp_path / "t").create()
    assert "nobody has allowed" in message(Owned(http, plain).register(1))
    allow(http, tmp_path)
    assert Owned(http, plain).register(1, schema="main.nosuch").status_code == 404
    assert "There is no Delta table" in message(Owned(http, Plain(tmp_path / "none")).register(1))
    assert "or higher" in message(Owned(http, plain).register(-2))
    managed = Lake(http).new_table(unique)
    refused = http.post(f"{TIDEGATE}/owned-tables", json={"location": managed.location, "version": 0})
    assert "belongs to a catalog" in message(refused)
    managed_commit = {**PROTOCOL, "writerFeatures": ["inCommitTimestamp", "managedCommit"]}
    older = Plain(tmp_path / "older", managed_commit, {"delta.managedCommit.commitOwner": "theirs"}).create()
    assert "managedCommit" in message(Owned(http, older).register(1)), "as the text of the RFC spells it"
    for property in (OWNER, "delta.managedCommit.commitOwner"):
        half = Plain(tmp_path / property, configuration={property: "theirs"}).create()
        for refused in (Owned(http, half).register(1), adopt(http, half, f"{unique}_half")):
            assert f"has the property {property}, but not the feature" in message(refused)
    with_owner = Plain(tmp_path / "theirs", protocol=PROTOCOL, configuration={OWNER: "dynamodb"}).create()
    assert "called dynamodb" in message(Owned(http, with_owner).register(1))


def test_the_owner_forgets_no_table_that_names_it(owned: Owned) -> None:
    name = owned.register(1).json()["full_name"]
    owned.taken_over()
    assert owned.latest() == 2
    assert "cannot forget it" in message(owned.http.delete(f"{UNITY}/tables/{name}"))
    assert "DROP FEATURE" in message(owned.http.post(f"{TIDEGATE}/tables/{name}/release", json={}))


def test_the_last_commit_gives_the_table_back_and_it_can_be_taken_over_again(owned: Owned, unique: str) -> None:
    owned.taken_over()
    assert owned.commit(3).status_code == 200
    last = owned.giving_back(4)
    assert owned.send(last).json() == {"version": 4, "latest_version": 4, "published": True}
    assert owned.published(4) == owned.content(4)
    assert owned.send(last).status_code == 200, "a lost answer: sent again, it is the same commit"
    assert owned.commits().json() == {"commits": [], "latest_version": 4}
    assert "no commit owner any more" in message(owned.commit(5))
    assert owned.commit(4).status_code == 409
    without = {**PROTOCOL, "writerFeatures": [one for one in WRITER_FEATURES if one != FEATURE]}
    assert owned.plain.put(5, owned.info(), {"protocol": without}), "the file system decides"
    assert owned.taken_over(5).latest() == 6
    assert owned.commit(7).status_code == 200
    assert adopt(owned.http, owned.plain, unique).status_code == 200
    verified = owned.http.get(f"{TIDEGATE}/tables/main.default.{unique}/verify").json()
    assert verified["difference"] is None, verified


def test_a_catalog_that_keeps_its_tables_gives_none_back(
    server: ServerProcess, http: httpx.Client, tmp_path: Path, unique: str
) -> None:
    http.post(f"{UNITY}/catalogs", json={"name": unique, "properties": {"tidegate.release": "forbidden"}})
    http.post(f"{UNITY}/schemas", json={"name": "s", "catalog_name": unique})
    allow(http, tmp_path)
    owned = Owned(http, Plain(tmp_path / "t").create())
    owned.id = owned.register(1, schema=f"{unique}.s").json()["table_id"]
    assert owned.put(2)
    refused = owned.send(owned.giving_back(3))
    assert refused.status_code == 403
    assert owned.commit(3).status_code == 200, "and goes on taking commits"


REGISTRATION = ["own.promised", "own.found", "own.registered"]
RETURN = ["own.returning", "put.linked", "release.put", "release.forgotten"]
"""From there on it is a release as any other."""


def test_every_step_of_the_owner_is_cut_off_somewhere() -> None:
    assert {*REGISTRATION, "own.returning", "own.planned"} == {step for step in STEPS if step.startswith("own.")}


@pytest.fixture(params=["sqlite", "postgresql"])
def own_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerProcess]:
    database = None
    if request.param == "postgresql":
        database = request.getfixturevalue("postgres").create_database()
    process = ServerProcess(tmp_path / "home", database, settings=PUBLISHING)
    yield process
    process.stop()


def ended(server: ServerProcess) -> None:
    assert server.process is not None
    server.process.wait(30)


@pytest.mark.parametrize("step", REGISTRATION)
def test_a_registration_that_was_cut_off_goes_on(own_server: ServerProcess, tmp_path: Path, step: str) -> None:
    plain = Plain(tmp_path / "lake" / "t").create()
    with started(own_server, fault=step).http() as http:
        allow(http, tmp_path / "lake")
        owned = Owned(http, plain)
        with pytest.raises(httpx.TransportError):
            owned.taken_over().commits()
    ended(own_server)
    with started(own_server).http() as http:
        again = Owned(http, plain, owned.id)
        if step == "own.promised":
            assert plain.versions() == [0, 1], "fully not ours"
            again.taken_over()
        assert again.latest() == 2
        assert again.commit(3).status_code == 200
        assert promises(http, "own", "adopt", "release") == []


@pytest.mark.parametrize("step", RETURN)
def test_a_return_that_was_cut_off_is_finished_at_the_next_start(tmp_path: Path, step: str) -> None:
    own_server = ServerProcess(tmp_path / "home", settings=PUBLISHING)
    plain = Plain(tmp_path / "lake" / "t").create()
    with started(own_server).http() as http:
        allow(http, tmp_path / "lake")
        owned = Owned(http, plain).taken_over()
        assert owned.commit(3).status_code == 200
        assert owned.publish(3).status_code == 200
    with started(own_server, fault=step).http() as http:
        again = Owned(http, plain, owned.id, timestamp=owned.timestamp)
        last = again.giving_back(4)
        with pytest.raises(httpx.TransportError):
            again.send(last)
    ended(own_server)
    with started(own_server).http() as http:
        wait_until(lambda: promises(http, "own", "adopt", "release") == [], "the promise is kept")
        back = Owned(http, plain, owned.id)
        assert plain.versions() == [0, 1, 2, 3, 4]
        assert OWNER not in plain.actions(4)["metaData"]["configuration"]
        assert back.send(last).status_code == 200, "its client did not hear of it"
        assert plain.append(5)
        assert "known as an external table" in message(adopt(http, plain, "t"))
    own_server.stop()


def test_a_promise_that_nobody_asks_about_is_kept_by_the_server_itself(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "home", settings=PUBLISHING)
    try:
        with server.start().http() as http:
            allow(http, tmp_path)
            owned = Owned(http, Plain(tmp_path / "t").create()).taken_over()
            assert len(promises(http, "own", "adopt", "release")) == 1
        with started(server).http() as http:
            wait_until(lambda: promises(http, "own", "adopt", "release") == [], "the promise is kept")
            assert Owned(http, owned.plain, owned.id).latest() == 2
    finally:
        server.stop()


def findings(http: httpx.Client, name: str) -> list[str]:
    found = http.get(f"{TIDEGATE}/doctor/tables/{name}")
    assert found.status_code == 200, found.text
    return [one["problem"] for one in found.json()["findings"]]


def is_managed(plain: Plain) -> bool:
    actions = plain.latest()
    features = set(actions["protocol"]["writerFeatures"])
    configuration = actions["metaData"]["configuration"]
    return "catalogManaged" in features and FEATURE not in features and OWNER not in configuration


def test_a_table_of_ours_is_adopted_and_managed_from_then_on(lake: Lake, owned: Owned, unique: str) -> None:
    owned.taken_over()
    assert owned.commit(3).status_code == 200
    waiting = owned.stage(5)
    shown = adopt(lake.http, owned.plain, unique, dry_run=True)
    assert (shown.status_code, shown.json()["version"]) == (200, 4), shown.text
    assert owned.commit(4).status_code == 200, "nothing has changed"
    done = adopt(lake.http, owned.plain, unique)
    assert (done.status_code, done.json()["table_id"], done.json()["version"]) == (200, owned.id, 5), done.text
    assert is_managed(owned.plain)
    assert owned.plain.versions() == [0, 1, 2, 3, 4, 5], "no commit is lost"
    assert owned.send(waiting).status_code == 409, "a writer that was under way finds its version taken"
    assert "managed by the catalog" in message(owned.commit(6))
    assert owned.send(owned.staged[4]).status_code == 200, "what happened before is still known"
    assert adopt(lake.http, owned.plain, unique).json()["version"] == 5, "asked for again, it is the same adoption"
    table = LakeTable(lake, unique, owned.id, owned.plain.location, timestamp=owned.timestamp + 60_000)
    loaded = table.load()
    assert (loaded["metadata"]["table-type"], loaded["latest-table-version"]) == ("MANAGED", 5)
    assert table.commit(6).status_code == 200
    assert findings(lake.http, f"main.default.{unique}") == ["unpublished_tail"]


def test_an_adoption_of_a_table_that_somebody_wrote_past_its_owner_ends(owned: Owned, unique: str) -> None:
    name = owned.register(1).json()["full_name"]
    assert owned.taken_over().latest() == 2
    assert findings(owned.http, name) == []
    assert owned.plain.append(3)
    assert findings(owned.http, name) != [], "the doctor sees it"
    assert "never ratified" in message(adopt(owned.http, owned.plain, unique))
    (owned.plain.log / f"{3:020}.json").unlink()
    assert owned.commit(3).status_code == 200, "the owner goes on"
    assert adopt(owned.http, owned.plain, unique).status_code == 200


@pytest.mark.parametrize("step", ["adopt.promised", "own.planned", "adopt.put", "adopt.registered"])
def test_an_adoption_of_a_table_of_ours_that_was_cut_off_is_finished_at_the_next_start(
    own_server: ServerProcess, tmp_path: Path, step: str
) -> None:
    plain = Plain(tmp_path / "lake" / "t").create()
    with started(own_server, fault=step).http() as http:
        allow(http, tmp_path / "lake")
        owned = Owned(http, plain).taken_over()
        assert owned.commit(3).status_code == 200
        with pytest.raises(httpx.TransportError):
            adopt(http, plain, "managed")
    ended(own_server)
    with started(own_server).http() as http:
        wait_until(lambda: promises(http, "own", "adopt", "release") == [], "the promise is kept")
        assert is_managed(plain)
        assert plain.versions() == [0, 1, 2, 3, 4]
        assert Lake(http).load("managed").json()["latest-table-version"] == 4
