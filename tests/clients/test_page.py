"""docs/clients.md says what the tests say: every cell, every quoted error, every example and every version."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import httpx
import pytest
from pyspark.sql import SparkSession

from tests import clients
from tests.clients.matrix import CLAIMS, CLIENTS, CURL, DELTALAKE, OLD_SPARK, OPERATIONS, SPARK, TYPED
from tests.servers import ServerProcess
from tests.spark.sessions import SMALL

PAGE = (Path(__file__).parents[2] / "docs" / "clients.md").read_text()

for _module in pkgutil.iter_modules(clients.__path__):
    if _module.name.startswith("test_"):
        importlib.import_module(f"{clients.__name__}.{_module.name}")

ELSEWHERE: dict[str, dict[str, str]] = {
    SPARK: {
        "list tables": "spark.test_tables.test_show_tables_and_schemas",
        "describe": "spark.test_tables.test_create_registers_every_detail_of_the_declaration",
        "read": "spark.test_tables.test_ctas_has_its_rows_in_version_0",
        "filter, project": "spark.test_tables.test_partitioned_tables",
        "join": "spark.test_writes.test_merge_with_every_clause",
        "time travel": "spark.test_history.test_time_travel_by_version",
        "unpublished commits": "spark.test_reading.test_ratified_commit_is_read_before_it_is_published",
        "append": "spark.test_writes.test_every_form_of_insert",
        "update, delete, merge": "spark.test_writes.test_update_and_delete",
        "create": "spark.test_tables.test_create_registers_every_detail_of_the_declaration",
        "drop": "spark.test_tables.test_dropped_name_is_free_at_once_and_its_files_stay",
        "register external": "spark.test_connector_external.test_external_table_over_an_existing_one",
        "read external": "spark.test_connector_external.test_external_table_over_an_existing_one",
        "append to external": "spark.test_connector_external.test_new_external_table",
    },
    OLD_SPARK: {
        "list tables": "spark.test_old_face.test_drop_frees_the_name",
        "describe": "spark.test_old_face.test_create_registers_every_detail_of_the_declaration",
        "read": "spark.test_old_face.test_create_as_select_has_its_rows_in_version_0",
        "filter, project": "spark.test_old_face.test_create_as_select_has_its_rows_in_version_0",
        "join": "spark.test_old_face.test_every_write_is_a_commit_of_the_old_face",
        "time travel": "spark.test_old_face.test_time_travel_and_restore",
        "unpublished commits": "spark.test_reading.test_both_faces_read_the_same_versions",
        "append": "spark.test_old_face.test_every_write_is_a_commit_of_the_old_face",
        "update, delete, merge": "spark.test_old_face.test_every_write_is_a_commit_of_the_old_face",
        "create": "spark.test_old_face.test_create_registers_every_detail_of_the_declaration",
        "drop": "spark.test_old_face.test_drop_frees_the_name",
        "register external": "spark.test_old_face.test_external_tables",
        "read external": "spark.test_old_face.test_external_tables",
        "append to external": "spark.test_old_face.test_external_tables",
    },
    TYPED: {
        "list tables": "test_typed_client.test_the_client_lists_in_pages",
        "describe": "test_typed_client.test_the_client_gets_and_deletes_tables",
        "append": "test_typed_client_old.test_the_client_proposes_commits_and_gets_them",
        "create": "test_typed_client_old.test_the_client_creates_a_managed_table",
        "drop": "test_typed_client.test_the_client_gets_and_deletes_tables",
        "register external": "test_typed_client_old.test_the_client_registers_an_external_table_lists_and_deletes_it",
    },
    CURL: {
        "list tables": "clients.test_page.test_the_examples_run_as_they_stand",
        "describe": "clients.test_page.test_the_examples_run_as_they_stand",
        "unpublished commits": "test_story.test_a_table_is_staged_created_committed_published_renamed_and_dropped",
        "append": "test_story.test_a_table_is_staged_created_committed_published_renamed_and_dropped",
        "create": "test_story.test_a_table_is_staged_created_committed_published_renamed_and_dropped",
        "drop": "clients.test_page.test_the_examples_run_as_they_stand",
        "register external": "test_external_tables."
        "test_an_external_table_is_registered_loaded_and_listed_as_it_was_declared",
    },
}
"""Tests of other rooms that stand behind a cell. What is tested over plain HTTP is tested for curl."""

REFUSED_ELSEWHERE: dict[tuple[str, str], tuple[str, str]] = {
    (TYPED, "unpublished commits"): (
        "test_typed_client_old.test_as_published_the_client_never_says_whose_commits_it_wants",
        "table_id is missing. Send it in the query or in a JSON body.",
    ),
}

NO_CALL: dict[str, set[str]] = {
    DELTALAKE: {"list tables", "drop", "register external"},
    **{
        client: {
            *("read", "filter, project", "join", "time travel", "update, delete, merge"),
            *("read external", "append to external"),
        }
        for client in (TYPED, CURL)
    },
}


def cells_of_the_page() -> dict[tuple[str, str], str]:
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in PAGE.splitlines() if row.startswith("| ")]
    head = next(row for row in rows if row[0] == "managed tables")
    assert head[1:] == list(CLIENTS)
    by_operation = {row[0]: row[1:] for row in rows if len(row) == len(head)}
    return {(client, op): by_operation[op][i] for op in OPERATIONS for i, client in enumerate(CLIENTS)}


def cells_of_the_tests() -> dict[tuple[str, str], str]:
    told: dict[tuple[str, str], set[str]] = {}
    for claim in CLAIMS:
        for operation in claim.operations:
            told.setdefault((claim.client, operation), set()).add("yes" if claim.saying is None else "no")
    for client, tests in ELSEWHERE.items():
        for operation in tests:
            told.setdefault((client, operation), set()).add("yes")
    for cell in REFUSED_ELSEWHERE:
        told.setdefault(cell, set()).add("no")
    for client, operations in NO_CALL.items():
        for operation in operations:
            told.setdefault((client, operation), set()).add("–")
    return {cell: "partly" if words == {"yes", "no"} else " and ".join(words) for cell, words in told.items()}


def test_every_cell_of_the_page_is_what_a_test_says() -> None:
    assert cells_of_the_page() == cells_of_the_tests()


@pytest.mark.parametrize("name", sorted({name for tests in ELSEWHERE.values() for name in tests.values()}))
def test_tests_of_other_rooms_are_there(name: str) -> None:
    module, _, function = name.rpartition(".")
    assert callable(getattr(importlib.import_module(f"tests.{module}"), function))


@pytest.mark.parametrize(("name", "saying"), REFUSED_ELSEWHERE.values())
def test_refusals_of_other_rooms_are_expected_there(name: str, saying: str) -> None:
    module, _, function = name.rpartition(".")
    assert saying in inspect.getsource(getattr(importlib.import_module(f"tests.{module}"), function))


def test_every_claim_of_a_refusal_is_checked_by_its_test() -> None:
    unchecked = [c.test.__name__ for c in CLAIMS if c.saying and "refused" not in inspect.signature(c.test).parameters]
    assert unchecked == []


def test_every_refusal_is_on_the_page_and_every_error_on_the_page_is_a_refusal() -> None:
    said = {claim.saying for claim in CLAIMS if claim.saying is not None}
    said |= {saying for _, saying in REFUSED_ELSEWHERE.values()}
    spans = re.findall(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", prose(PAGE), flags=re.DOTALL)
    quoted = [" ".join(span.split()) for _, span in spans]
    assert [saying for saying in sorted(said) if not any(saying in quote for quote in quoted)] == []
    errors = [quote.removesuffix("...") for quote in quoted if re.search(r"\berror: ", quote, re.IGNORECASE)]
    assert [error for error in errors if not any(error in saying for saying in said)] == []


def prose(page: str) -> str:
    return re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("package", ["unitycatalog-client", "duckdb", "deltalake", "polars"])
def test_the_page_names_the_versions_that_were_tested(package: str) -> None:
    assert f"`{package}` {version(package)}" in PAGE


def test_the_examples_run_as_they_stand(
    spark: SparkSession,
    catalog_server: ServerProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """From the top of the page to its end, as one reader would copy them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDEGATE_URI", catalog_server.url)
    monkeypatch.setenv("TIDEGATE_TOKEN", catalog_server.token)
    shared: dict[str, object] = {"__name__": "example"}
    small = "\n".join(f"{name} {value}" for name, value in SMALL.items())
    (tmp_path / "spark-defaults.conf").write_text(small)
    for language, code in re.findall(r"^```(python|sh)\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL):
        if "deltaRestApi" in code:
            # A session keeps the API that it began with, and this process has one already.
            environment = {**os.environ, "SPARK_CONF_DIR": str(tmp_path)}
            subprocess.run([sys.executable, "-c", code], env=environment, check=True)
        elif language == "python":
            exec(compile(code, "docs/clients.md", "exec"), shared)
        else:
            for line in re.findall(r"^curl .*", code, flags=re.MULTILINE):
                assert curl(os.path.expandvars(line)).status_code == 200
    shown = capfd.readouterr().out
    for told in ("tides", "Husum", "3.15", "Dagebüll", "String"):
        assert told in shown


def curl(line: str) -> httpx.Response:
    """What curl would send."""
    words = iter(shlex.split(line)[1:])
    method, headers, url = "GET", {}, ""
    for word in words:
        match word:
            case "-X":
                method = next(words)
            case "-H":
                name, _, value = next(words).partition(": ")
                headers[name] = value
            case _:
                url = word
    return httpx.request(method, url, headers=headers)
