"""Metrics: what writers report through either face is kept with the table, in bounds, and shown by our own API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.lake import UNITY, Lake, error_of
from tests.old_lake import OldLake, OldTable
from tests.servers import ServerProcess

OWN = "/api/tidegate/v1"
COUNTS = {
    "num_files_added": 10,
    "num_bytes_added": 104857600,
    "num_clustered_bytes_added": 52428800,
    "num_files_removed": 2,
    "num_bytes_removed": 8192,
    "num_clustered_bytes_removed": 4096,
    "num_rows_inserted": 1000000,
    "num_rows_removed": 50000,
    "num_rows_updated": 0,
}
HISTOGRAM = {"sorted_bin_boundaries": [0, 1024, 2048], "file_counts": [100, 40, 5], "total_bytes": [1000, 60000, 9000]}


@pytest.fixture
def table(http: httpx.Client, unique: str) -> OldTable:
    """At version 3."""
    made = OldLake(http).new_table(unique)
    for version in (1, 2, 3):
        assert made.commit(version).status_code == 200
    return made


def send(table: OldTable, version: int, **counts: Any) -> httpx.Response:
    report = {"commit_report": {"commit_version": version, **counts}}
    return table.lake.http.post(f"{UNITY}/delta/metrics", json={**table.identity, "report": report})


def read(table: OldTable, **page: Any) -> dict[str, Any]:
    answer = table.lake.http.get(f"{OWN}/tables/main.default.{table.files.name}/metrics", params=page)
    assert answer.status_code == 200, answer.text
    return answer.json()


def versions(table: OldTable) -> list[int]:
    return [report["version"] for report in read(table)["reports"]]


def test_a_table_of_which_nothing_was_reported_has_no_metrics(table: OldTable) -> None:
    shown = read(table)
    assert shown == {
        "full_name": f"main.default.{table.files.name}",
        "table_id": table.files.id,
        "reports": [],
        "next_page_token": None,
    }


def test_every_field_of_a_report_is_kept_and_shown(table: OldTable) -> None:
    accepted = send(table, 2, **COUNTS, file_size_histogram=HISTOGRAM)
    assert (accepted.status_code, accepted.json()) == (200, {})
    (report,) = read(table)["reports"]
    assert (report.pop("version"), report.pop("reported_by")) == (2, "admin")
    assert report.pop("reported_at") > 0
    assert report == {**COUNTS, "file_size_histogram": HISTOGRAM, "num_files": 145, "num_bytes": 70000}


def test_what_was_not_counted_is_null_and_not_zero(table: OldTable) -> None:
    assert send(table, 1, num_rows_inserted=0).status_code == 200
    (report,) = read(table)["reports"]
    known = {"version", "reported_at", "reported_by", "num_rows_inserted"}
    assert report["num_rows_inserted"] == 0
    assert {key for key, value in report.items() if value is None} == set(report) - known


def test_both_faces_keep_their_reports_in_the_same_place(table: OldTable) -> None:
    assert send(table, 1, num_files_added=1).status_code == 200
    spelled = {key.replace("_", "-"): value for key, value in HISTOGRAM.items()}
    sent = {"num-files-added": 2, "file-size-histogram": {**spelled, "commit-version": 2}}
    url = f"{Lake(table.lake.http).tables_url()}/{table.files.name}/metrics"
    body = {"table-id": table.files.id, "report": {"commit-report": sent}}
    assert table.lake.http.post(url, json=body).status_code == 204
    newer, older = read(table)["reports"]
    assert (newer["version"], newer["num_files_added"], newer["num_files"]) == (2, 2, 145)
    assert (older["version"], older["num_files_added"], older["num_files"]) == (1, 1, None)
    # Without a histogram that face names no version: then it is about the latest.
    body = {"table-id": table.files.id, "report": {"commit-report": {"num-rows-updated": 9}}}
    assert table.lake.http.post(url, json=body).status_code == 204
    assert versions(table) == [3, 2, 1]


def test_the_newest_version_comes_first_in_whatever_order_reports_arrive(table: OldTable) -> None:
    for version in (2, 3, 0, 1):
        assert send(table, version, num_files_added=version).status_code == 200
    assert versions(table) == [3, 2, 1, 0]


def test_a_report_that_is_sent_again_replaces_the_first(table: OldTable) -> None:
    assert send(table, 1, num_files_added=1).status_code == 200
    assert send(table, 1, num_files_added=1).status_code == 200
    assert send(table, 1, num_files_added=5).status_code == 200
    (report,) = read(table)["reports"]
    assert report["num_files_added"] == 5


def test_pages_show_each_report_once(table: OldTable) -> None:
    for version in range(4):
        assert send(table, version, num_files_added=1).status_code == 200
    seen: list[int] = []
    token: str | None = None
    for _ in range(4):
        page = read(table, max_results=1, **({} if token is None else {"page_token": token}))
        seen += [report["version"] for report in page["reports"]]
        token = page["next_page_token"]
    assert (seen, token) == ([3, 2, 1, 0], None)


def test_metrics_follow_the_table_to_its_new_name_and_not_to_another_of_its_old_one(table: OldTable) -> None:
    assert send(table, 1, num_files_added=1).status_code == 200
    old_name = table.files.name
    url = f"{Lake(table.lake.http).tables_url()}/{old_name}/rename"
    assert table.lake.http.post(url, json={"new-name": f"{old_name}_new"}).status_code == 204
    other = table.lake.new_table(old_name)
    assert versions(other) == []
    table.files.name = f"{old_name}_new"
    assert versions(table) == [1]


@pytest.mark.parametrize("report", [None, {}, {"commit_report": None}, {"commit_report": {"commit_version": 1}}])
def test_a_report_that_says_nothing_is_accepted_and_not_kept(table: OldTable, report: dict[str, Any] | None) -> None:
    body = {**table.identity, **({} if report is None else {"report": report})}
    assert table.lake.http.post(f"{UNITY}/delta/metrics", json=body).json() == {}
    assert versions(table) == []


@pytest.mark.parametrize(
    ("version", "counts", "message"),
    [
        (4, {"num_files_added": 1}, "the latest version is 3"),
        (-1, {}, "commit_version"),
        (1, {"num_files_added": -1}, "num_files_added"),
        (1, {"num_bytes_removed": 2**63}, "num_bytes_removed"),
        (1, {"num_rows_updated": "many"}, "num_rows_updated"),
        (1, {"file_size_histogram": {**HISTOGRAM, "file_counts": [1]}}, "one length"),
        (1, {"file_size_histogram": {"file_counts": [1]}}, "one length"),
        (1, {"file_size_histogram": {**HISTOGRAM, "sorted_bin_boundaries": [1, 2, 3]}}, "must start with 0"),
        (1, {"file_size_histogram": {**HISTOGRAM, "sorted_bin_boundaries": [0, 2, 2]}}, "must rise"),
        (1, {"file_size_histogram": {**HISTOGRAM, "total_bytes": [1, 2, -3]}}, "total_bytes"),
        (1, {"file_size_histogram": {**HISTOGRAM, "total_bytes": [2**62] * 3}}, "64 bits"),
    ],
    ids=str,
)
def test_a_report_that_cannot_be_true_is_refused_and_not_kept(
    table: OldTable, version: int, counts: dict[str, Any], message: str
) -> None:
    refused = send(table, version, **counts)
    assert error_of(refused) == (400, "INVALID_PARAMETER_VALUE")
    assert message in refused.json()["message"]
    assert versions(table) == []


def test_a_report_without_its_version_is_refused(table: OldTable) -> None:
    body = {**table.identity, "report": {"commit_report": {"num_files_added": 1}}}
    refused = table.lake.http.post(f"{UNITY}/delta/metrics", json=body)
    assert error_of(refused) == (400, "INVALID_PARAMETER_VALUE")
    assert "commit_version" in refused.json()["message"]


@pytest.fixture(scope="module")
def forgetting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path_factory.mktemp("metrics"), settings={"metrics_history_max": "3"}).start()
    yield server
    assert server.stop() == 0


def test_the_history_is_bounded_and_its_oldest_versions_go_first(forgetting: ServerProcess) -> None:
    with forgetting.http() as http:
        table = OldLake(http).new_table("bounded")
        for version in range(1, 8):
            assert table.commit(version).status_code == 200
            assert send(table, version, num_files_added=version).status_code == 200
        assert versions(table) == [7, 6, 5]
        assert send(table, 1, num_files_added=1).status_code == 200
        assert versions(table) == [7, 6, 5]
        other = OldLake(http).new_table("beside")
        assert send(other, 0, num_files_added=1).status_code == 200
        assert versions(table) == [7, 6, 5]
    forgetting.kill()
    with forgetting.start().http() as http:
        assert versions(OldLake(http).table("bounded", "", "")) == [7, 6, 5]
