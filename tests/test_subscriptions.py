"""Subscriptions: every event reaches its receiver, in order and signed, whatever the receiver and the server do."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import DATABASES
from tests.lake import Lake, LakeTable, error_of
from tests.receivers import OK, Delivery, Receiver
from tests.servers import ServerProcess
from tests.waiting import PATIENCE_SECONDS, wait_until
from tidegate.steps import STEPS

SUBSCRIPTIONS = "/api/tidegate/v1/subscriptions"
QUICK = {"delivery_backoff_ms": "20", "delivery_seconds_max": "1", "delivery_attempts_max": "3", "publishing": "off"}


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces")


@pytest.fixture(scope="module", params=DATABASES)
def teller(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, traces: Path
) -> Iterator[ServerProcess]:
    """A server that gives up soon."""
    database = request.getfixturevalue("postgres").create_database() if request.param == "postgresql" else None
    functions = ", ".join(f"{name}=tests.followups:{name}" for name in ("note", "fail", "hang"))
    settings = {**QUICK, "functions": functions, "test_traces": str(traces)}
    server = ServerProcess(tmp_path_factory.mktemp("home"), database, settings=settings).start()
    yield server
    assert server.stop() == 0, "".join(server.log[-50:])


@pytest.fixture
def told(teller: ServerProcess) -> Iterator[Lake]:
    with teller.lake() as lake:
        yield lake


def subscribe(http: httpx.Client, name: str, **fields: Any) -> dict[str, Any]:
    made = http.post(SUBSCRIPTIONS, json={"name": name, **fields})
    assert made.status_code == 200, made.text
    return made.json()


def state_of(http: httpx.Client, name: str) -> dict[str, Any]:
    answer = http.get(f"{SUBSCRIPTIONS}/{name}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def letters_of(http: httpx.Client, name: str) -> list[dict[str, Any]]:
    return http.get(f"{SUBSCRIPTIONS}/{name}/dead-letters").json()["dead_letters"]


def versions(deliveries: list[Delivery]) -> list[int]:
    return [delivery.event["data"]["version"] for delivery in deliveries if "version" in delivery.event["data"]]


def commit(table: LakeTable, *numbers: int) -> None:
    for number in numbers:
        assert table.commit(number).status_code == 200


# What receivers get


def test_a_webhook_gets_every_event_of_its_table_in_order_signed_and_as_a_cloud_event(told: Lake, unique: str) -> None:
    table = told.new_table(unique)
    with Receiver() as receiver:
        made = subscribe(told.http, unique, webhook={"url": receiver.url}, table=f"main.default.{unique}")
        commit(table, 1, 2, 3)
        told.new_table(f"{unique}_other")
        commit(table, 4)
        receiver.wait_for(lambda: len(receiver.deliveries) == 4, "all events")
        assert versions(receiver.deliveries) == [1, 2, 3, 4]
        for delivery in receiver.deliveries:
            assert delivery.is_signed_with(made["secret"])
            assert not delivery.is_signed_with("whsec_" + "A" * 32)
        event = receiver.deliveries[0].event
        assert receiver.deliveries[0].headers["content-type"] == "application/cloudevents+json"
        assert receiver.deliveries[0].headers["webhook-id"] == event["id"]
        assert {name: event[name] for name in ("specversion", "type", "subject", "datacontenttype")} == {
            "specversion": "1.0",
            "type": "tidegate.table.committed",
            "subject": f"main.default.{unique}",
            "datacontenttype": "application/json",
        }
        assert event["data"]["operation"] == "WRITE"
        assert len({delivery.headers["webhook-id"] for delivery in receiver.deliveries}) == 4
    told.http.delete(f"{SUBSCRIPTIONS}/{unique}").raise_for_status()


def test_a_filter_lets_through_what_it_names(told: Lake, unique: str) -> None:
    table = told.new_table(unique)
    with Receiver() as receiver:
        wanted = {"table": table.id, "kinds": ["table.committed"], "operation": "merge"}
        subscribe(told.http, unique, webhook={"url": receiver.url}, **wanted)
        commit(table, 1)
        table.timestamp += 1
        merge = {"commitInfo": {"inCommitTimestamp": table.timestamp, "txnId": "t", "operation": "MERGE"}}
        proposed = table.stage_commit(2, timestamp=table.timestamp, content=json.dumps(merge).encode())
        assert table.update({"action": "add-commit", "commit": proposed}).status_code == 200
        commit(table, 3)
        last = told.http.get("/api/tidegate/v1/events").json()["last"]
        wait_until(lambda: state_of(told.http, unique)["cursor"] >= last, "everything is looked at")
        assert versions(receiver.deliveries) == [2]
    told.http.delete(f"{SUBSCRIPTIONS}/{unique}").raise_for_status()


def test_a_subscription_may_begin_with_what_has_happened(told: Lake, unique: str) -> None:
    before = told.http.get("/api/tidegate/v1/events", params={"kind": "table.purged"}).json()["last"]
    table = told.new_table(unique)
    commit(table, 1, 2)
    with Receiver() as receiver:
        subscribe(told.http, unique, webhook={"url": receiver.url}, table=table.id, after=before)
        receiver.wait_for(lambda: len(receiver.deliveries) == 3, "created and two commits")
    told.http.delete(f"{SUBSCRIPTIONS}/{unique}").raise_for_status()


@pytest.mark.parametrize("misbehaviour", ["500", "302", "404", "hang", "break", "drip", "reset"])
def test_a_receiver_that_fails_twice_gets_the_event_a_third_time_and_then_the_next(
    told: Lake, unique: str, misbehaviour: str
) -> None:
    seen: Counter[str] = Counter()

    def twice(delivery: Delivery) -> str:
        seen[delivery.event["id"]] += 1
        return misbehaviour if seen[delivery.event["id"]] <= 2 and delivery.event["data"].get("version") == 2 else OK

    table = told.new_table(unique)
    with Receiver(twice) as receiver:
        subscribe(told.http, unique, webhook={"url": receiver.url}, table=table.id)
        commit(table, 1, 2, 3)
        receiver.wait_for(lambda: versions(receiver.taken()) == [1, 2, 3], "all in order")
        assert versions(receiver.deliveries) == [1, 2, 2, 2, 3]
        assert letters_of(told.http, unique) == []
    told.http.delete(f"{SUBSCRIPTIONS}/{unique}").raise_for_status()


def test_a_huge_answer_is_an_answer_of_which_little_is_read(told: Lake, unique: str) -> None:
    table = told.new_table(unique)
    with Receiver(lambda _: "huge") as receiver:
        subscribe(told.http, unique, webhook={"url": receiver.url}, table=table.id)
        commit(table, 1, 2)
        receiver.wait_for(lambda: versions(receiver.deliveries) == [1, 2], "both")
    told.http.delete(f"{SUBSCRIPTIONS}/{unique}").raise_for_status()


def test_what_is_refused_too_often_is_a_dead_letter_that_can_be_sent_again(told: Lake, unique: str) -> None:
    refused = {2, 3}
    table = told.new_table(unique)
    with Receiver(lambda got: "500" if got.event["data"].get("version") in refused else OK) as receiver:
        made = subscribe(told.http, unique, webhook={"url": receiver.url}, table=table.id)
        commit(table, 1, 2, 3, 4)
        receiver.wait_for(lambda: versions(receiver.taken()) == [1, 4], "delivery goes on")
        wait_until(lambda: state_of(told.http, unique)["dead_letters"] == 2, "both are dead letters")
        letters = letters_of(told.http, unique)
        assert [(one["event"]["version"], one["attempts"], one["error"]) for one in letters] == [
            (2, 3, "The receiver answered 500."),
            (3, 3, "The receiver answered 500."),
        ]
        assert made["secret"] not in str(letters)
        refused.clear()
        second = letters[0]["event"]["sequence"]
        resent = told.http.post(f"{SUBSCRIPTIONS}/{unique}/dead-letters/resend", json={"sequences": [second]})
        assert resent.json() == {"count": 1}
        wait_until(lambda: [one["event"]["version"] for one in letters_of(told.http, unique)] == [3], "sent again")
        assert versions(receiver.taken()) == [1, 4, 2]
        discarded = told.http.post(f"{SUBSCRIPTIONS}/{unique}/dead-letters/discard", json={})
        assert discarded.json() == {"count": 1}
        assert letters_of(told.http, unique) == []
    told.http.delete(f"{SUBSCRIPTIONS}/{unique}").raise_for_status()


def test_a_paused_subscription_gets_nothing_until_it_goes_on_where_it_stopped(told: Lake, unique: str) -> None:
    table = told.new_table(unique)
    with Receiver() as receiver:
        subscribe(told.http, unique, webhook={"url": receiver.url}, table=table.id)
        assert told.http.patch(f"{SUBSCRIPTIONS}/{unique}", json={"paused": True}).json()["paused"]
        with Receiver() as other:
            subscribe(told.http, f"{unique}_other", webhook={"url": other.url}, table=table.id)
            commit(table, 1, 2)
            other.wait_for(lambda: len(other.deliveries) == 2, "the other one gets them")
        assert receiver.deliveries == []
        told.http.patch(f"{SUBSCRIPTIONS}/{unique}", json={"paused": False}).raise_for_status()
        receiver.wait_for(lambda: versions(receiver.deliveries) == [1, 2], "what was missed")
    for name in (unique, f"{unique}_other"):
        told.http.delete(f"{SUBSCRIPTIONS}/{name}").raise_for_status()


def test_a_receiver_that_hangs_holds_up_neither_commits_nor_other_receivers(told: Lake, unique: str) -> None:
    table = told.new_table(unique)
    with Receiver(lambda _: "hang") as stuck, Receiver() as sound:
        for name, receiver in ((f"{unique}_stuck", stuck), (unique, sound)):
            subscribe(told.http, name, webhook={"url": receiver.url}, table=table.id)
        started = time.monotonic()
        commit(table, *range(1, 21))
        sound.wait_for(lambda: versions(sound.deliveries) == [*range(1, 21)], "all")
        assert time.monotonic() - started < 15
        stuck.wait_for(lambda: len(stuck.deliveries) >= 1, "it was tried")
    for name in (unique, f"{unique}_stuck"):
        told.http.delete(f"{SUBSCRIPTIONS}/{name}").raise_for_status()


# Functions


def noted(traces: Path) -> list[str]:
    file = traces / "noted"
    return file.read_text().splitlines() if file.exists() else []


def test_a_function_is_called_with_every_event_that_matches(told: Lake, unique: str, traces: Path) -> None:
    table = told.new_table(unique)
    before = len(noted(traces))
    subscribe(told.http, unique, function="note", table=table.id, kinds=["table.committed"])
    commit(table, 1, 2)
    wait_until(lambda: len(noted(traces)) == before + 2, "both are noted")
    assert [line.split()[1:] for line in noted(traces)[before:]] == [["tidegate.table.committed", v] for v in "12"]
    told.http.delete(f"{SUBSCRIPTIONS}/{unique}").raise_for_status()


@pytest.mark.parametrize(("function", "why"), [("fail", "raised RuntimeError"), ("hang", "not returned")])
def test_a_function_that_fails_leaves_a_dead_letter_and_the_commit_alone(
    told: Lake, unique: str, function: str, why: str
) -> None:
    table = told.new_table(unique)
    subscribe(told.http, unique, function=function, table=table.id)
    commit(table, 1)
    wait_until(lambda: state_of(told.http, unique)["dead_letters"] == 1, "it is a dead letter")
    assert why in letters_of(told.http, unique)[0]["error"]
    assert table.versions() == [1]
    told.http.delete(f"{SUBSCRIPTIONS}/{unique}").raise_for_status()


# Asking for the impossible


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "one target"),
        ({"webhook": {"url": "http://a/"}, "function": "note"}, "one target"),
        ({"webhook": {"url": "ftp://a/"}}, "http://"),
        ({"webhook": {"url": "http://"}}, "http://"),
        ({"webhook": {"url": "http://a:99999/"}}, "http://"),
        ({"webhook": {"url": "http://user:geheim@a/"}}, "signature"),
        ({"webhook": {"url": "http://a/ b"}}, "spaces"),
        ({"webhook": {"url": "http://a/", "secret": "geheim"}}, "whsec_"),
        ({"function": "os.system"}, "functions"),
        ({"function": "note", "kinds": ["table.exploded"]}, "table.committed"),
        ({"function": "note", "kinds": ["table.dropped"], "operation": "WRITE"}, "operation"),
        ({"function": "note", "table": "a"}, "UUID"),
        ({"function": "note", "after": 10**12}, "after"),
    ],
)
def test_a_subscription_that_cannot_be_is_refused_in_one_sentence(
    told: Lake, unique: str, fields: dict[str, Any], says: str
) -> None:
    refused = told.http.post(SUBSCRIPTIONS, json={"name": unique, **fields})
    assert error_of(refused) == (400, "INVALID_PARAMETER_VALUE")
    assert says in refused.json()["message"]
    assert "geheim" not in refused.text
    assert told.http.get(f"{SUBSCRIPTIONS}/{unique}").status_code == 404


def test_a_secret_is_shown_once_and_never_again(teller: ServerProcess, told: Lake, unique: str) -> None:
    with Receiver(lambda _: "500") as receiver:
        made = subscribe(told.http, unique, webhook={"url": receiver.url})
        table = told.new_table(unique)
        wait_until(lambda: state_of(told.http, unique)["dead_letters"] == 1, "a dead letter")
        shown = [told.http.get(f"{SUBSCRIPTIONS}{path}").text for path in ("", f"/{unique}", f"/{unique}/dead-letters")]
        told.http.delete(f"{SUBSCRIPTIONS}/{unique}").raise_for_status()
    assert made["secret"].startswith("whsec_")
    assert made["secret"] not in "".join([*shown, *teller.log])
    assert table.versions() == []


@pytest.mark.parametrize(
    "functions", ["note", "note=tests.followups", "note=tests.absent:note", "later=tests.followups:later", "a b=os:sep"]
)
def test_a_server_with_functions_that_cannot_be_loaded_does_not_start(tmp_path: Path, functions: str) -> None:
    with pytest.raises(RuntimeError, match="function"):
        ServerProcess(tmp_path, settings={"functions": functions}).start()


# The server dies


DELIVERY_STEPS = [step for step in STEPS if step.startswith("deliver.")]


@pytest.mark.parametrize("step", DELIVERY_STEPS)
@pytest.mark.parametrize("database", DATABASES)
def test_a_server_killed_while_it_delivers_loses_nothing(
    database: str, step: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("postgres").create_database() if database == "postgresql" else None
    settings = {**QUICK, "delivery_attempts_max": "2"}
    refused = {2}
    with Receiver(lambda got: "500" if got.event["data"].get("version") in refused else OK) as receiver:
        server = ServerProcess(tmp_path / "home", url, settings=settings).start()
        with server.lake() as lake:
            table = lake.new_table("t")
            subscribe(lake.http, "s", webhook={"url": receiver.url}, table=table.id)
            lake.http.patch(f"{SUBSCRIPTIONS}/s", json={"paused": True}).raise_for_status()
            commit(table, 1, 2, 3)
        server.kill()
        server.settings["fault"] = f"{step}:kill"
        server.start()
        with server.lake() as lake:
            told_to_die(server, lake, refused)
        assert server.process is not None
        assert server.process.wait(timeout=PATIENCE_SECONDS) == -9, "".join(server.log[-20:])
        del server.settings["fault"]
        server.start()
        with server.lake() as lake:
            wait_until(lambda: finished(lake.http, refused, receiver), "everything is delivered after the fault")
        assert server.stop() == 0
    assert sorted(set(versions(receiver.taken()))) == [1, 2, 3]
    firsts = list(dict.fromkeys(versions(receiver.deliveries)))
    assert firsts == [1, 2, 3]
    assert max(Counter(versions(receiver.taken())).values()) <= 2


def told_to_die(server: ServerProcess, lake: Lake, refused: set[int]) -> None:
    """Lets delivery go on, and the dead letter be sent again, until the server is gone."""
    try:
        lake.http.patch(f"{SUBSCRIPTIONS}/s", json={"paused": False})
        if server.settings["fault"].startswith("deliver.resent"):
            wait_until(lambda: state_of(lake.http, "s")["dead_letters"] == 1, "a dead letter")
            refused.clear()
            lake.http.post(f"{SUBSCRIPTIONS}/s/dead-letters/resend", json={})
    except httpx.TransportError:
        return


def finished(http: httpx.Client, refused: set[int], receiver: Receiver) -> bool:
    state = state_of(http, "s")
    if state["dead_letters"]:
        refused.clear()
        http.post(f"{SUBSCRIPTIONS}/s/dead-letters/resend", json={}).raise_for_status()
    return set(versions(receiver.taken())) == {1, 2, 3} and not state["dead_letters"]


def test_two_servers_share_the_work_and_each_event_comes_in_order(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("postgres").create_database()
    settings = {**QUICK, "storage_root": f"file://{tmp_path}/tables"}
    servers = [ServerProcess(tmp_path / "home", url, settings=dict(settings)).start() for _ in range(2)]
    with Receiver() as receiver, servers[0].lake() as lake, servers[1].lake() as other:
        subscribe(lake.http, "s", webhook={"url": receiver.url}, kinds=["table.committed"])
        tables = [one.new_table(f"t{number}") for number, one in enumerate((lake, other))]
        for version in range(1, 31):
            for table in tables:
                commit(table, version)
            if version == 15:
                servers[0].kill()
                tables[0].lake = other
        receiver.wait_for(lambda: len({one.sequence for one in receiver.taken()}) == 60, "all events")
        for table in tables:
            own = [one for one in receiver.taken() if one.event["data"]["table_id"] == table.id]
            assert list(dict.fromkeys(versions(own))) == [*range(1, 31)]
    assert servers[1].stop() == 0
