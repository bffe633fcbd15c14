"""Rows that the client appends: read back value by value, refused in one sentence, and never lost or doubled."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests.python_client.conftest import COLUMNS, KINDS, QUICK, log_of
from tests.python_client.faces import close_face, open_face
from tests.python_client.proxy import Fault, proxy_to
from tests.python_client.test_faults import FAULTS, IMPATIENT
from tests.python_client.written import EVERYTHING, ROWS
from tests.servers import ServerProcess
from tests.test_external_tables import external_request
from tidegate import client
from tidegate.client.address import schema_path

MAPPED = {"delta.columnMapping.mode": "name"}
TRACKED = {"delta.enableRowTracking": "true"}


def read(table: Any, order: str = "id") -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row[order])


def data_files(table: Any) -> list[Path]:
    return sorted(log_of(table).parent.rglob("*.parquet"))


def last_commit(table: Any) -> dict[str, list[dict[str, Any]]]:
    """The actions of the newest version, by kind."""
    told = table.get_ratified_commits()
    path = log_of(table) / f"{told.latest:020}.json"
    content = told.commits[-1].content if told.commits else path.read_bytes()
    if content is None:
        content = (log_of(table) / "_staged_commits" / told.commits[-1].file_name).read_bytes()
    found: dict[str, list[dict[str, Any]]] = {}
    for line in content.splitlines():
        ((kind, action),) = json.loads(line).items()
        found.setdefault(kind, []).append(action)
    return found


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_what_was_appended_is_read_value_by_value(catalog: Any, unique: str, mode: str) -> None:
    properties = {"delta.columnMapping.mode": mode}
    table = catalog.create_table(f"main.default.{unique}", EVERYTHING, properties=properties)
    assert table.append(ROWS).version == 1
    assert read(table) == ROWS
    assert table.append(table.scan().to_arrow()).version == 2
    assert read(table) == sorted([*ROWS, *ROWS], key=lambda row: row["id"])


@KINDS
def test_the_log_is_told_what_was_done(catalog: Any, unique: str) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS, partition_by=["name"], properties=TRACKED)
    table.append([{"id": 1, "name": "ebb"}, {"id": 2, "name": "ebb"}, {"id": 3, "name": None}])
    told = last_commit(table)
    info, files = told["commitInfo"][0], data_files(table)
    assert (info["operation"], info["isBlindAppend"]) == ("WRITE", True)
    assert info["operationParameters"] == {"mode": "Append", "partitionBy": '["name"]'}
    size = sum(path.stat().st_size for path in files)
    assert info["operationMetrics"] == {"numFiles": "2", "numOutputRows": "3", "numOutputBytes": str(size)}
    ebb, none = told["add"]
    assert (ebb["partitionValues"], none["partitionValues"]) == ({"name": "ebb"}, {"name": None})
    assert json.loads(ebb["stats"]) == {
        "numRecords": 2,
        "minValues": {"id": 1},
        "maxValues": {"id": 2},
        "nullCount": {"id": 0},
        "tightBounds": True,
    }
    assert [(add["baseRowId"], add["defaultRowCommitVersion"]) for add in (ebb, none)] == [(0, 1), (2, 1)]
    assert json.loads(told["domainMetadata"][0]["configuration"]) == {"rowIdHighWaterMark": 2}


class Stream:
    """Somebody else's DataFrame."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


GIVEN = pa.table({"name": ["ebb", "flood"], "id": pa.array([1, 2], pa.int16())})
FORMS = {
    "table": lambda: GIVEN,
    "batch": lambda: GIVEN.to_batches()[0],
    "reader": lambda: GIVEN.to_reader(max_chunksize=1),
    "dataset": lambda: ds.dataset(GIVEN),
    "scanner": lambda: ds.dataset(GIVEN).scanner(),
    "stream": lambda: Stream(GIVEN),
    "Polars": lambda: pl.DataFrame(GIVEN),
    "DuckDB": lambda: duckdb.from_arrow(GIVEN),
    "dictionaries": lambda: GIVEN.set_column(0, "name", GIVEN["name"].dictionary_encode()),
    "other types": lambda: GIVEN.cast(pa.schema({"name": pa.large_string(), "id": pa.uint64()})),
    "floats without fractions": lambda: GIVEN.set_column(1, "id", GIVEN["id"].cast(pa.float64())),
    "other case": lambda: GIVEN.rename_columns(["NAME", "Id"]),
    "dicts": lambda: GIVEN.to_pylist(),
    "dicts in other case": lambda: [{"ID": 1, "Name": "ebb"}, {"iD": 2, "name": "flood"}],
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_come_in_many_forms(table: Any, form: str) -> None:
    table.append(FORMS[form]())
    assert read(table) == [{"id": 1, "name": "ebb"}, {"id": 2, "name": "flood"}]


@pytest.mark.parametrize("rows", [[], GIVEN.slice(0, 0)], ids=["list", "table"])
def test_no_rows_are_a_commit_without_files(table: Any, rows: Any) -> None:
    assert table.append(rows).version == 1
    assert table.snapshot().files == ()


def test_columns_that_are_missing_are_null(table: Any) -> None:
    table.append([{"id": 1}])
    table.append(pa.table({"id": [2]}))
    assert read(table) == [{"id": 1, "name": None}, {"id": 2, "name": None}]


STRICT = [
    {"name": "id", "type": "long", "nullable": False},
    {"name": "name", "type": "string"},
    {"name": "day", "type": "date"},
    {"name": "at", "type": "timestamp"},
    {"name": "small", "type": "byte"},
    {"name": "price", "type": "decimal(4,2)"},
    {"name": "f", "type": "float"},
    {"name": "s", "type": {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": False}]}},
    {"name": "l", "type": {"type": "array", "elementType": "long", "containsNull": False}},
    {"name": "preset", "type": "long", "metadata": {"CURRENT_DEFAULT": "7"}},
]
UNFIT: dict[str, tuple[Any, str]] = {
    "extra column": ({"other": 1}, "other"),
    "extra field": ({"s": {"x": 1, "z": 2}}, "s.z"),
    "text for a number": ({"id": "1"}, "id"),
    "number for a text": ({"name": 1}, "name"),
    "truth for a number": ({"id": True}, "id"),
    "fraction": ({"id": 1.5}, "id"),
    "too large": ({"small": 128}, "small"),
    "too precise": ({"price": Decimal("1.234")}, "price"),
    "no zone": ({"at": datetime(2026, 1, 1)}, "at"),  # noqa: DTZ001
    "time of day": ({"day": datetime(2026, 1, 1, tzinfo=UTC)}, "day"),
    "null": ({"id": None}, "id"),
    "null in a struct": ({"s": {"x": None}}, "s.x"),
    "field missing": ({"s": {}}, "s.x"),
    "null in an array": ({"l": [1, None]}, "l"),
    "no dict": ({"s": 1}, "s"),
    "twice": ({"ID": 1}, "id"),
    "default": ({"preset": ...}, "preset"),
}


def unfit(change: dict[str, Any]) -> dict[str, Any]:
    row = {"id": 1, "preset": 1, **change}
    return {name: value for name, value in row.items() if value is not ...}


@pytest.fixture(scope="module")
def strict(server: ServerProcess) -> Any:
    with client.connect(server.url, token=server.token) as lake:
        yield lake.create_table("main.default.strict_columns", STRICT)


@pytest.mark.parametrize("case", UNFIT)
def test_what_does_not_fit_is_refused_by_the_columns_name(strict: Any, case: str) -> None:
    change, column = UNFIT[case]
    with pytest.raises(client.InvalidRows) as refused:
        strict.append([unfit(change)])
    assert (refused.value.column or "").lower() == column
    assert column in str(refused.value).lower()
    assert (strict.load().latest_table_version, data_files(strict)) == (0, [])


ARROW_UNFIT: dict[str, tuple[str, Any]] = {
    "text": ("id", pa.array(["1"])),
    "fraction": ("id", pa.array([1.5])),
    "too large": ("small", pa.array([128])),
    "rounded": ("f", pa.array([0.1])),
    "nanoseconds": ("at", pa.array([1], pa.timestamp("ns", "UTC"))),
    "no zone": ("at", pa.array([1], pa.timestamp("us"))),
    "a date is no time": ("at", pa.array([date(2026, 1, 1)])),
    "too precise": ("price", pa.array([Decimal("1.234")])),
    "no struct": ("s", pa.array([1])),
    "no array": ("l", pa.array([1])),
    "null": ("id", pa.array([None], pa.int64())),
    "null in an array": ("l", pa.array([[None]], pa.list_(pa.int64()))),
    "extra": ("z", pa.array([1])),
}


@pytest.mark.parametrize("case", ARROW_UNFIT)
def test_arrow_columns_that_do_not_fit_are_refused_by_name(strict: Any, case: str) -> None:
    column, values = ARROW_UNFIT[case]
    with pytest.raises(client.InvalidRows) as refused:
        strict.append(pa.table({"id": pa.array([1]), "preset": pa.array([1]), column: values}))
    assert refused.value.column == column
    assert data_files(strict) == []


def test_a_row_that_does_not_fit_takes_the_files_before_it_along(table: Any) -> None:
    def batches() -> Any:
        yield pa.record_batch({"id": [1], "name": ["ebb"]})
        raise ValueError("the source broke")

    schema = pa.schema({"id": pa.int64(), "name": pa.string()})
    with pytest.raises(ValueError, match="the source broke"):
        table.append(pa.RecordBatchReader.from_batches(schema, batches()))
    assert (table.load().latest_table_version, data_files(table)) == (0, [])


@pytest.mark.parametrize("rows", [5, "text", {"id": 1}, [1], None])
def test_what_is_no_rows_is_refused(table: Any, rows: Any) -> None:
    with pytest.raises(client.InvalidRows, match="dict"):
        table.append(rows)


UNUSUAL = ["a b", "x/y", "100%", "a=b:c", "ü🌊", "..", ".", "'\"\\", "\n\t", "#?&", "long " * 100, " ", "%2F", "NULL"]


@pytest.mark.parametrize("properties", [{}, MAPPED], ids=["plain", "mapped"])
def test_partitions_with_unusual_values(catalog: Any, unique: str, properties: dict[str, str]) -> None:
    table = catalog.create_table(
        f"main.default.{unique}", COLUMNS, partition_by=["name"], properties={**properties, **TRACKED}
    )
    rows = [{"id": number, "name": name} for number, name in enumerate([*UNUSUAL, None])]
    table.append([*rows, {"id": 100, "name": ""}])
    assert read(table) == [*rows, {"id": 100, "name": None}]
    assert len(table.snapshot().files) == len(rows)
    for row in rows[:-1]:
        assert table.scan(filter=[("name", "=", row["name"])]).to_arrow().to_pylist() == [row]


@pytest.mark.parametrize("column", [name for name in EVERYTHING if not isinstance(EVERYTHING[name], dict)])
def test_a_table_may_be_partitioned_by_any_primitive(catalog: Any, unique: str, column: str) -> None:
    columns = {"row": "long", column: EVERYTHING[column]}
    table = catalog.create_table(f"main.default.{unique}", columns, partition_by=[column])
    values = [row[column] for row in ROWS]
    if column == "a_binary":
        values = [b"abc", "þ".encode(), None]
    rows = [
        {"row": number, column: value or None if value in ("", b"") else value} for number, value in enumerate(values)
    ]
    table.append(rows)
    assert read(table, "row") == rows


def test_statistics_skip_files(table: Any) -> None:
    for start in (0, 10):
        table.append([{"id": start + number, "name": "n"} for number in range(10)])
    assert len(table.scan(filter=[("id", ">", 12)]).files) == 1
    assert len(table.scan(filter=[("id", ">", 19)]).files) == 0


@pytest.mark.parametrize(
    ("codec", "expected"), [(None, "ZSTD"), ("snappy", "SNAPPY"), ("UNCOMPRESSED", "UNCOMPRESSED")]
)
def test_files_are_compressed_as_the_table_says(catalog: Any, unique: str, codec: str | None, expected: str) -> None:
    properties = {} if codec is None else {"delta.parquet.compression.codec": codec}
    table = catalog.create_table(f"main.default.{unique}", COLUMNS, properties=properties)
    table.append([{"id": 1, "name": "ebb"}])
    (path,) = data_files(table)
    assert pq.read_metadata(path).row_group(0).column(0).compression == expected


def test_files_have_a_bounded_size(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.client.data.parquet_files.ROW_GROUP_BYTES", 8_000)
    monkeypatch.setattr("tidegate.client.data.parquet_files.FILE_BYTES_MAX", 20_000)
    names = [random.Random(number).randbytes(20).hex() for number in range(2_000)]
    table.append(pa.table({"id": range(2_000), "name": names}))
    sizes = [path.stat().st_size for path in data_files(table)]
    assert len(sizes) == 3
    assert max(sizes) < 40_000
    assert [row["name"] for row in read(table)] == names


def test_physical_names_and_ids_are_in_the_files(catalog: Any, unique: str) -> None:
    table = catalog.create_table(f"main.default.{unique}", EVERYTHING, properties={"delta.columnMapping.mode": "id"})
    table.append(ROWS)
    (path,) = data_files(table)
    written = {field.name: field.metadata[b"PARQUET:field_id"] for field in pq.read_schema(path)}
    fields = table.snapshot().schema.fields
    assert written == {field.physical_name: str(field.id).encode() for field in fields}
    assert set(table.snapshot().files[0].statistics.null_count) == {field.physical_name for field in fields}


@KINDS
def test_row_ids_go_on_where_they_stopped(catalog: Any, unique: str) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS, properties=TRACKED)
    for _ in range(3):
        table.append([{"id": 1}, {"id": 2}])
    files = sorted(table.snapshot().files, key=lambda file: file.base_row_id)
    assert [(file.base_row_id, file.default_row_commit_version) for file in files] == [(0, 1), (2, 2), (4, 3)]
    assert json.loads(table.snapshot().domains["delta.rowTracking"]) == {"rowIdHighWaterMark": 5}


def race(url: str, token: str, face: str, name: str, writers: int, appends: int, inline_bytes_max: int) -> list[int]:
    """Each row once; the versions that the writers were told."""

    def run(writer: int) -> list[int]:
        lake = open_face(face, url, token=token, patience=QUICK, inline_bytes_max=inline_bytes_max)
        try:
            table = lake.table(name)
            starts = [(writer * appends + number) * 3 for number in range(appends)]
            return [table.append([{"id": start + row} for row in range(3)]).version for start in starts]
        finally:
            close_face(lake)

    with ThreadPoolExecutor(writers) as threads:
        return [version for told in threads.map(run, range(writers)) for version in told]


@KINDS
@pytest.mark.parametrize("properties", [{}, TRACKED], ids=["plain", "row ids"])
def test_writers_that_append_together_lose_and_double_nothing(
    server: ServerProcess, catalog: Any, face: str, unique: str, properties: dict[str, str], inline_bytes_max: int
) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS, properties=properties)
    versions = race(server.url, server.token, face, table.name, writers=4, appends=4, inline_bytes_max=inline_bytes_max)
    assert sorted(versions) == list(range(1, 17))
    check_rows(table, 48, tracked=bool(properties))


@KINDS
@pytest.mark.parametrize("seed", range(2))
def test_appends_through_a_bad_network_lose_and_double_nothing(
    server: ServerProcess, catalog: Any, face: str, unique: str, seed: int, inline_bytes_max: int
) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS, properties=TRACKED)
    dice = random.Random(seed)
    with proxy_to(server.url, lambda _: dice.choice(FAULTS)) as proxy:
        versions = race(
            proxy.url, server.token, face, table.name, writers=4, appends=2, inline_bytes_max=inline_bytes_max
        )
    assert sorted(versions) == list(range(1, 9)), f"seed {seed}"
    check_rows(table, 24, tracked=True)


def check_rows(table: Any, count: int, *, tracked: bool) -> None:
    """Each row once, in files that are all part of the table, with ids that are given once."""
    assert [row["id"] for row in read(table)] == list(range(count))
    files = table.snapshot().files
    assert len(data_files(table)) == len(files)
    if tracked:
        ids = [file.base_row_id + row for file in files for row in range(file.statistics.num_records)]
        assert sorted(ids) == list(range(count))


def test_the_files_of_an_append_stay_while_nobody_knows_what_came_of_it(
    server: ServerProcess, face: str, unique: str
) -> None:
    broken = [False]
    with proxy_to(server.url, lambda line: Fault.DROP_ANSWER if broken[0] and "POST" in line else Fault.PASS) as proxy:
        writer = open_face(face, proxy.url, token=server.token, patience=IMPATIENT)
        table = writer.create_table(f"main.default.{unique}", COLUMNS)
        broken[0] = True
        with pytest.raises(client.CommitOutcomeUnknown) as unknown:
            table.append([{"id": 1, "name": "ebb"}])
        broken[0] = False
        assert table.resend(unknown.value).version == 1
        assert read(table) == [{"id": 1, "name": "ebb"}]
        close_face(writer)


def test_the_files_of_an_append_that_was_turned_away_are_removed(
    server: ServerProcess, catalog: Any, face: str, unique: str
) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS)
    with proxy_to(server.url, lambda line: Fault.BUSY if "POST" in line else Fault.PASS) as proxy:
        writer = open_face(face, proxy.url, token=server.token, patience=IMPATIENT)
        with pytest.raises(client.TooBusy):
            writer.table(table.name).append([{"id": 1, "name": "ebb"}])
        close_face(writer)
    assert (table.load().latest_table_version, data_files(table)) == (0, [])


def metadata_of(table: Any) -> dict[str, Any]:
    lines = (log_of(table) / f"{0:020}.json").read_text().splitlines()
    return next(json.loads(line)["metaData"] for line in lines if '"metaData"' in line)


def changed_columns(table: Any) -> dict[str, Any]:
    """A metaData with one more column."""
    metadata = metadata_of(table)
    schema = json.loads(metadata["schemaString"])
    schema["fields"].append({"name": "note", "type": "string", "nullable": True, "metadata": {}})
    return {"metaData": {**metadata, "schemaString": json.dumps(schema)}}


@pytest.fixture
def other(server: ServerProcess) -> Iterator[client.Catalog]:
    """A client of its own, for what happens inside of a call of the first."""
    with client.connect(server.url, token=server.token) as lake:
        yield lake


class Meanwhile:
    """Rows during whose reading something happens: after the snapshot, before the commit."""

    def __init__(self, happens: Any) -> None:
        self._happens = happens

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        self._happens()
        return GIVEN.__arrow_c_stream__(requested_schema)


def with_property(table: Any, key: str, value: str) -> dict[str, Any]:
    metadata = metadata_of(table)
    return {"metaData": {**metadata, "configuration": {**metadata["configuration"], key: value}}}


@KINDS
def test_an_append_stands_beside_a_feature_that_was_switched_on(table: Any, other: client.Catalog) -> None:
    changed = with_property(table, "delta.enableDeletionVectors", "true")
    assert "deletionVectors" in table.snapshot().protocol.writer_features
    appended = table.append(Meanwhile(lambda: other.table(table.name).commit(1, [changed])))
    assert appended.version == 2
    assert len(read(table)) == 2


@KINDS
def test_an_append_does_not_stand_beside_another_property_that_changed(table: Any, other: client.Catalog) -> None:
    changed = with_property(table, "color", "blue")
    with pytest.raises(client.MetadataChanged, match="properties") as refused:
        table.append(Meanwhile(lambda: other.table(table.name).commit(1, [changed])))
    assert (refused.value.version, refused.value.changed) == (1, ("properties",))
    assert data_files(table) == []


@KINDS
def test_an_append_after_another_gets_over_a_property_that_changed_in_between(
    table: Any, other: client.Catalog
) -> None:
    table.append([{"id": 1}])
    other.table(table.name).commit(2, [with_property(table, "color", "blue")])
    assert table.append([{"id": 2}]).version == 3
    assert [row["id"] for row in read(table)] == [1, 2]
    assert len(data_files(table)) == 2


@KINDS
def test_an_append_does_not_stand_beside_columns_that_changed(table: Any, other: client.Catalog) -> None:
    changed = changed_columns(table)
    with pytest.raises(client.ConcurrentChange, match="columns") as refused:
        table.append(Meanwhile(lambda: other.table(table.name).commit(1, [changed])))
    assert refused.value.version == 1
    assert data_files(table) == []


IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
REFUSED: dict[str, tuple[Any, dict[str, str]]] = {
    "invariants": ([{"name": "id", "type": "long", "metadata": {"delta.invariants": "{}"}}], {}),
    "generatedColumns": ([{"name": "id", "type": "long", "metadata": {"delta.generationExpression": "1"}}], {}),
    "identityColumns": ([{"name": "id", "type": "long", "metadata": IDENTITY}], {}),
    "checkConstraints": (COLUMNS, {"delta.constraints.positive": "id > 0"}),
}


@pytest.mark.parametrize("feature", REFUSED)
def test_what_the_client_cannot_do_is_refused_by_name(catalog: Any, unique: str, feature: str) -> None:
    columns, properties = REFUSED[feature]
    table = catalog.create_table(f"main.default.{unique}", columns, properties=properties)
    with pytest.raises(client.UnsupportedTable, match=feature) as refused:
        table.append([{"id": 1}])
    assert refused.value.features == (feature,)
    assert data_files(table) == []


def test_slices_and_lists_of_every_kind_are_taken_as_they_are(
    catalog: Any, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slice of Arrow's shares the memory of the whole, and begins somewhere inside of it."""
    table = catalog.create_table(f"main.default.{unique}", EVERYTHING)
    table.append([{**row, "id": 3 * turn + row["id"]} for turn in range(3) for row in ROWS])
    whole = table.scan().to_arrow()
    monkeypatch.setattr("tidegate.client.data.parquet_files.ROW_GROUP_BYTES", 1)
    table.overwrite(whole.combine_chunks().slice(2, 5))
    assert read(table) == whole.to_pylist()[2:7]


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list, pa.list_view, lambda type: pa.list_(type, 2)])
def test_arrays_come_as_lists_of_every_kind(catalog: Any, unique: str, kind: Any) -> None:
    array = {"type": "array", "elementType": "long", "containsNull": True}
    table = catalog.create_table(f"main.default.{unique}", {"id": "long", "l": array})
    values = [[1, 2], None, [3, None]]
    table.append(pa.table({"id": [1, 2, 3], "l": pa.array(values, kind(pa.int32()))}))
    assert [row["l"] for row in read(table)] == values


@KINDS
def test_an_append_after_another_asks_for_nothing_but_the_commit(
    server: ServerProcess, catalog: Any, face: str, unique: str, inline_bytes_max: int
) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS)
    with proxy_to(server.url, lambda _: Fault.PASS) as proxy:
        options = {"token": server.token, "patience": QUICK, "inline_bytes_max": inline_bytes_max}
        writer = open_face(face, proxy.url, **options)
        known = writer.table(table.name)
        known.append([{"id": 1}])
        proxy.heard.clear()
        known.append([{"id": 2}])
        assert [line.split()[0] for line in proxy.heard] == ["POST"]
        table.append([{"id": 3}])
        proxy.heard.clear()
        assert known.append([{"id": 4}]).version == 4
        assert [line.split()[0] for line in proxy.heard] == (["POST"] if inline_bytes_max else ["POST", "POST"])
        close_face(writer)
    assert [row["id"] for row in read(table)] == [1, 2, 3, 4]


@KINDS
def test_an_append_after_another_notices_that_the_columns_have_changed(table: Any, other: client.Catalog) -> None:
    table.append([{"id": 1}])
    other.table(table.name).commit(2, [changed_columns(table)])
    with pytest.raises(client.ConcurrentChange, match="columns"):
        table.append([{"id": 2}])
    assert table.append([{"id": 2, "note": "now it knows"}]).version == 3
    assert len(data_files(table)) == 2


@KINDS
def test_what_the_same_table_learns_meanwhile_does_not_excuse_an_append(table: Any, other: client.Catalog) -> None:
    same, changed = other.table(table.name), changed_columns(table)
    with pytest.raises(client.ConcurrentChange, match="columns"):
        same.append(Meanwhile(lambda: same.commit(1, [changed])))
    assert (table.load().latest_table_version, data_files(table)) == (1, [])


def test_an_external_table_is_refused_before_anything_is_written(
    server: ServerProcess, catalog: Any, unique: str, tmp_path: Path
) -> None:
    with server.http() as http:
        made = http.post(f"{schema_path('main.default')}/tables", json=external_request(unique, f"file://{tmp_path}"))
        assert made.status_code == 200, made.text
    with pytest.raises(client.InvalidRequest, match="external table"):
        catalog.table(f"main.default.{unique}").append([{"id": 1}])
    assert list(tmp_path.iterdir()) == []
