"""`GET /metrics`: Prometheus can read it, and the numbers are those of what happened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa
from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import DATABASES
from tests.lake import DELTA, Lake, LakeTable, add_commit, error_of
from tests.postgres import PostgresServer
from tests.receivers import OK, Receiver
from tests.servers import ServerProcess
from tests.test_publishing import published
from tests.test_subscriptions import SUBSCRIPTIONS, subscribe
from tests.test_workers import workers_of
from tests.waiting import wait_until
from tidegate.db import schema as db
from tidegate.services.shared_gauges import SHARED_GAUGES
from tidegate.telemetry.exposition import render
from tidegate.telemetry.measures import SERIES_MAX, Measures
from tidegate.telemetry.server import ServerMeasures

Numbers = dict[tuple[str, frozenset[tuple[str, str]]], float]


def parsed(text: str) -> Numbers:
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    numbers = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}
    assert len(numbers) == len(samples), "a sample is told twice"
    return numbers


def scraped(http: httpx.Client) -> Numbers:
    answer = http.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return parsed(answer.text)


def at(numbers: Numbers, name: str, **labels: str) -> float:
    """The sum of those that have these labels, whatever others they have."""
    return sum(value for (of, has), value in numbers.items() if of == name and set(labels.items()) <= has)


def moved(before: Numbers, after: Numbers, name: str, **labels: str) -> float:
    return at(after, name, **labels) - at(before, name, **labels)


@pytest.fixture(scope="module", params=DATABASES)
def counted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that nobody else asks for anything."""
    database = request.getfixturevalue("postgres").create_database() if request.param == "postgresql" else None
    settings = {"publish_after_ms": "600000", "unpublished_commits_max": "3"}
    process = ServerProcess(tmp_path_factory.mktemp("home"), database, settings=settings).start()
    yield process
    assert process.stop() == 0, "".join(process.log[-50:])


@pytest.fixture
def alone(counted: ServerProcess) -> Iterator[Lake]:
    with counted.lake() as lake:
        yield lake


# What is counted


def test_requests_are_counted_by_api_endpoint_and_status_with_how_long_they_took(alone: Lake, unique: str) -> None:
    table = alone.new_table(unique)
    before = scraped(alone.http)
    for _ in range(3):
        table.load()
    assert alone.load("absent").status_code == 404
    assert alone.http.get("/nowhere").status_code == 404
    assert alone.http.get(f"{DELTA}/nowhere").status_code == 404
    assert alone.http.get("/metrics", headers={"Authorization": "Bearer wrong"}).status_code == 401
    after = scraped(alone.http)
    of_load = {"face": "Delta REST v1.0", "endpoint": "loadTable"}
    assert moved(before, after, "tidegate_requests_total", **of_load, status="200") == 3
    assert moved(before, after, "tidegate_requests_total", **of_load, status="404") == 1
    for face in ("Besides", "Delta REST v1.0"):
        assert moved(before, after, "tidegate_requests_total", face=face, endpoint="none", status="404") == 1
    assert moved(before, after, "tidegate_errors_total", kind="NoSuchTable") == 1
    assert moved(before, after, "tidegate_errors_total", kind="NoSuchEndpoint") == 2
    assert moved(before, after, "tidegate_errors_total", kind="NotAuthenticated") == 1
    assert moved(before, after, "tidegate_request_seconds_count", endpoint="loadTable") == 4
    assert moved(before, after, "tidegate_request_seconds_bucket", endpoint="loadTable", le="+Inf") == 4
    assert 0 < moved(before, after, "tidegate_request_seconds_sum", endpoint="loadTable") < 10


def test_proposals_are_counted_by_what_became_of_them(alone: Lake, unique: str) -> None:
    table = alone.new_table(unique)
    before = scraped(alone.http)
    for version in (1, 2, 3):
        assert table.commit(version).status_code == 200
    again = {**table.stage_commit(3), "file-name": table.staged[3]}
    assert table.update(add_commit(again)).status_code == 200
    assert table.commit(2).status_code == 409
    assert table.commit(5).status_code == 409
    table.publish(1)
    assert table.report(1).status_code == 200
    assert table.update({"action": "set-properties", "updates": {"delta.appendOnly": "true"}}).status_code == 400
    after = scraped(alone.http)
    outcomes = {
        outcome: moved(before, after, "tidegate_proposals_total", outcome=outcome)
        for outcome in ("ratified", "updated", "replay", "conflict", "rejected")
    }
    assert outcomes == {"ratified": 3, "updated": 1, "replay": 1, "conflict": 2, "rejected": 1}
    assert moved(before, after, "tidegate_rejections_total") == 1
    assert moved(before, after, "tidegate_group_size_count") == moved(
        before, after, "tidegate_transactions_total", kind="group"
    )
    assert moved(before, after, "tidegate_group_size_sum") >= 4


def test_what_waits_to_be_published_and_to_be_finished_is_told(alone: Lake, unique: str) -> None:
    before = scraped(alone.http)
    table = alone.new_table(unique)
    alone.draft(f"{unique}_staged")
    for version in (1, 2):
        table.commit(version)
    after = scraped(alone.http)
    assert moved(before, after, "tidegate_unpublished_commits") == 2
    assert moved(before, after, "tidegate_unpublished_tables") == 1
    assert at(after, "tidegate_largest_backlog") >= 2
    assert 0 <= at(after, "tidegate_unpublished_seconds") < 600
    assert moved(before, after, "tidegate_staging_tables") == 1
    assert moved(before, after, "tidegate_dropped_tables") == 0
    alone.http.delete(f"{alone.tables_url()}/{unique}").raise_for_status()
    last = scraped(alone.http)
    assert moved(before, last, "tidegate_unpublished_commits") == 0
    assert moved(before, last, "tidegate_dropped_tables") == 1
    assert at(last, "tidegate_database_up") == 1


@pytest.mark.parametrize("database", DATABASES)
def test_the_work_of_the_publisher_is_counted(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    url = request.getfixturevalue("postgres").create_database() if database == "postgresql" else None
    server = ServerProcess(tmp_path / "home", url, settings={"publish_after_ms": "20"}).start()
    with server.lake() as lake:
        table = lake.new_table("t")
        for version in (1, 2, 3):
            table.commit(version)
        wait_until(lambda: at(scraped(lake.http), "tidegate_published_commits_total") == 3, "three are published")
        block(table, 4)
        wait_until(lambda: at(scraped(lake.http), "tidegate_alarms") == 1, "an alarm stands")
        seen = scraped(lake.http)
        assert at(seen, "tidegate_publishing_total", outcome="done") >= 1
        assert at(seen, "tidegate_publishing_total", outcome="blocked") >= 1
        assert at(seen, "tidegate_job_runs_total", job="publishing") == 1
        assert at(seen, "tidegate_job_failures_total") == 0
    assert server.stop() == 0


def test_publishing_that_fails_is_counted_and_told_until_it_works(tmp_path: Path) -> None:
    settings = {"publish_after_ms": "20", "log_format": "json", "fault": "publish.copied:fail:1"}
    server = ServerProcess(tmp_path / "home", settings=settings).start()
    with server.lake() as lake:
        lake.new_table("t").commit(1)
        wait_until(
            lambda: at(scraped(lake.http), "tidegate_publishing_total", outcome="failed") == 1, "the failure is counted"
        )
        wait_until(lambda: at(scraped(lake.http), "tidegate_published_commits_total") == 1, "it worked after all")
        wait_until(lambda: at(scraped(lake.http), "tidegate_publishing_failing_tables") == 0, "nothing fails any more")
    assert server.stop() == 0
    told = [json.loads(line) for line in server.log if '"publishing' in line]
    assert [(line["table"], line["version"], line["job"]) for line in told] == [("main.default.t", 1, "publishing")]


def test_what_is_delivered_and_what_is_removed_is_counted(tmp_path: Path, database_url: str) -> None:
    settings = {"housekeeping_seconds": "1", "dropped_retention_hours": "0", "staging_retention_hours": "0"}
    settings |= {"delivery_backoff_ms": "20", "delivery_attempts_max": "2"}
    server = ServerProcess(tmp_path / "home", database_url, settings).start()
    with server.lake() as lake, Receiver(lambda delivery: OK if delivery.sequence == 1 else "500") as receiver:
        subscribe(lake.http, "s", webhook={"url": receiver.url})
        lake.new_table("t").commit(1)
        wait_until(lambda: at(scraped(lake.http), "tidegate_dead_letters") == 1, "what is refused is a dead letter")
        wait_until(lambda: at(scraped(lake.http), "tidegate_undelivered_events") == 0, "nothing is left to deliver")
        seen = scraped(lake.http)
        assert at(seen, "tidegate_events_kept") == at(seen, "tidegate_events_last_sequence") == 2
        outcomes = [at(seen, "tidegate_deliveries_total", outcome=of) for of in ("delivered", "failed", "buried")]
        assert outcomes == [1, 2, 1]
        assert at(seen, "tidegate_paused_subscriptions") == at(seen, "tidegate_removals") == 0

        lake.http.patch(f"{SUBSCRIPTIONS}/s", json={"paused": True}).raise_for_status()
        lake.http.delete(f"{lake.tables_url()}/t").raise_for_status()
        wait_until(lambda: at(scraped(lake.http), "tidegate_dropped_tables") == 0, "it is purged")
        seen = scraped(lake.http)
        assert at(seen, "tidegate_removed_files_total", reason="purge") == 2
        assert at(seen, "tidegate_paused_subscriptions") == 1
        assert at(seen, "tidegate_undelivered_events") == 0
    assert server.stop() == 0


def block(table: LakeTable, version: int) -> None:
    """Something else has the name of this version in the log."""
    published(table, version).write_text("{}\n")
    assert table.commit(version).status_code == 200


def test_the_process_tells_what_it_is(alone: Lake) -> None:
    seen = scraped(alone.http)
    assert at(seen, "tidegate_info") == 1
    assert 1.7e9 < at(seen, "process_start_time_seconds") < 1e11
    assert at(seen, "process_resident_memory_bytes") > 1e7
    assert at(seen, "process_cpu_seconds_total") > 0


def test_without_its_database_a_server_still_tells_its_own_numbers(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "home", settings={"publishing": "off"}).start()
    with server.http() as http:
        Lake(http).new_table("t").commit(1)
        before = scraped(http)
        assert at(before, "tidegate_database_up") == 1
        assert at(before, "tidegate_events_last_sequence") == 2
        engine = sa.create_engine(f"sqlite:///{tmp_path}/home/catalog.db")
        db.metadata.drop_all(engine)
        engine.dispose()
        seen = scraped(http)
    assert at(seen, "tidegate_database_up") == 0
    assert at(seen, "tidegate_requests_total", endpoint="metrics") >= 1
    assert not [name for name, _ in seen if name == "tidegate_alarms"]
    server.stop()


def test_workers_count_apart_and_say_so_while_what_they_share_is_told_once(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    crew = ServerProcess(tmp_path / "home", postgres.create_database(), settings={"workers": "2"}).start()
    seen: Numbers = {}
    for _ in range(200):
        with crew.http() as http:  # a new connection, which either of them takes
            seen |= scraped(http)
        if len(pids(seen)) == 2:
            break
    assert pids(seen) == {str(pid) for pid in workers_of(crew)}
    assert [labels for name, labels in seen if name == "tidegate_alarms"] == [frozenset()]
    assert crew.stop() == 0


def pids(numbers: Numbers) -> set[str]:
    return {dict(labels)["worker"] for name, labels in numbers if name == "tidegate_info"}


# Who may look


def test_the_numbers_need_a_token_and_are_read_only(counted: ServerProcess, alone: Lake) -> None:
    assert error_of(httpx.get(f"{counted.url}/metrics")) == (401, "UNAUTHENTICATED")
    refused = alone.http.post("/metrics")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET")


# How they are told


def test_labels_of_any_text_are_read_as_they_are() -> None:
    measures = Measures()
    odd = 'a "quoted" \\ back\nslash, {brace}='
    measures.counter("odd_total", "Help \\ with\nlines.", "kind").at(odd).value = 2.5
    assert parsed(render(measures.families())) == {("odd_total", frozenset({("kind", odd)})): 2.5}


def test_a_histogram_counts_what_is_on_a_bound_below_it() -> None:
    measures = Measures()
    histogram = measures.histogram("size", "Sizes.", (1.0, 2.0)).at()
    for value in (0.5, 1.0, 1.5, 99.0):
        histogram.observe(value)
    numbers = parsed(render(measures.families()))
    assert [at(numbers, "size_bucket", le=le) for le in ("1", "2", "+Inf")] == [2, 3, 4]
    assert (at(numbers, "size_sum"), at(numbers, "size_count")) == (102, 4)


def test_series_are_bounded_whatever_labels_come() -> None:
    measures = Measures()
    counter = measures.counter("many_total", "Many.", "kind")
    for number in range(SERIES_MAX + 50):
        counter.at(str(number)).value += 1
    numbers = parsed(render(measures.families()))
    assert len(numbers) == SERIES_MAX + 1
    assert at(numbers, "many_total", kind="other") == 50


def test_no_number_is_named_by_a_table(alone: Lake, unique: str) -> None:
    table = alone.new_table(unique)
    table.commit(1)
    alone.load(f"{unique}_absent")
    text = alone.http.get("/metrics").text
    assert unique not in text
    assert table.id not in text


def test_names_follow_the_rules_for_names() -> None:
    for family in ServerMeasures().all.families():
        assert (family.kind == "counter") == family.name.endswith("_total"), family.name
    assert len({gauge.name for gauge in SHARED_GAUGES}) == len(SHARED_GAUGES)


REFERENCE = Path(__file__).parent.parent / "docs" / "reference" / "metrics.md"


def test_every_number_that_a_server_tells_is_documented(alone: Lake) -> None:
    page = REFERENCE.read_text()
    told = [family.name for family in text_string_to_metric_families(alone.http.get("/metrics").text)]
    kinds = {family.name: family.kind for family in ServerMeasures().all.families()}
    assert len(told) > 20
    for name in told:
        # The parser takes the end off a counter's name.
        assert f"`{name}`" in page or (f"`{name}_total`" in page and kinds[f"{name}_total"] == "counter"), name
