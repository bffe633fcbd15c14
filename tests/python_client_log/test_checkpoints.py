"""Every kind of checkpoint, made by hand, stands for the commits before it."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.python_client_log.logs import CHECKPOINT_SCHEMA, FIRST, Table, add, remove
from tidegate.client.log import names
from tidegate.client.log.errors import ArrowMissing, LogDamaged, VersionNotFound

VERSION = 12
OTHERS: list[dict[str, Any]] = [
    {"txn": {"appId": "stream", "version": 41, "lastUpdated": 5}},
    {"domainMetadata": {"domain": "delta.rowTracking", "configuration": '{"rowIdHighWaterMark":9}', "removed": False}},
    remove("gone"),
]
VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 4,
    "sizeInBytes": 40,
    "cardinality": 6,
}
ADDS = [
    add("p=1/one", partitionValues={"p": "1", "q": None}, stats='{"numRecords":3}', size=10, baseRowId=7),
    add("two", deletionVector=VECTOR, tags={"a": "b"}, stats='{"numRecords":8}', size=20),
]
ACTIONS = [*FIRST, *OTHERS, *ADDS]


def mark(version: int = VERSION) -> dict[str, Any]:
    return {"checkpointMetadata": {"version": version, "tags": {}}}


def v2_name(version: int, format: str) -> str:
    return f"{version:020}.checkpoint.{uuid.uuid4()}.{format}"


def classic(table: Table) -> dict[str, Any]:
    table.checkpoint(VERSION, ACTIONS)
    return {}


def multi_part(table: Table) -> dict[str, Any]:
    for part, actions in enumerate((ACTIONS[:3], ACTIONS[3:6], ACTIONS[6:]), start=1):
        table.checkpoint(VERSION, actions, names.checkpoint_part_name(VERSION, part, 3))
    return {"parts": 3}


def classic_with_sidecars(table: Table) -> dict[str, Any]:
    sidecars = [table.sidecar(action) for action in ADDS]
    table.checkpoint(VERSION, [mark(), *FIRST, *OTHERS, *sidecars])
    return {}


def v2(format: str, *, sidecars: bool) -> Callable[[Table], dict[str, Any]]:
    def write(table: Table) -> dict[str, Any]:
        files = [table.sidecar(ADDS[0], remove("gone")), table.sidecar(ADDS[1])] if sidecars else ADDS
        name = table.checkpoint(VERSION, [mark(), *FIRST, *OTHERS, *files], v2_name(VERSION, format))
        return {"v2Checkpoint": {"path": name, "sizeInBytes": 1, "modificationTime": 1}}

    return write


KINDS: dict[str, Callable[[Table], dict[str, Any]]] = {
    "classic": classic,
    "in parts": multi_part,
    "classic with sidecars": classic_with_sidecars,
    "V2 in JSON": v2("json", sidecars=False),
    "V2 in JSON with sidecars": v2("json", sidecars=True),
    "V2 in Parquet": v2("parquet", sidecars=False),
    "V2 in Parquet with sidecars": v2("parquet", sidecars=True),
}


@pytest.mark.parametrize("hinted", [True, False], ids=["hinted", "found"])
@pytest.mark.parametrize("kind", KINDS)
def test_checkpoint_stands_for_the_commits_before_it(table: Table, kind: str, hinted: bool) -> None:
    table.fill(VERSION + 1)
    hint = KINDS[kind](table)
    if hinted:
        table.hint(VERSION, **hint)
    table.forget(*range(VERSION))
    snapshot = table.snapshot()
    files = {file.path: file for file in snapshot.files}
    assert set(files) == {"p=1/one", "two", f"f{VERSION + 1}"}
    one, two = files["p=1/one"], files["two"]
    assert (one.partition_values, one.stats, one.size, one.base_row_id) == (
        {"p": "1", "q": None},
        '{"numRecords":3}',
        10,
        7,
    )
    assert one.deletion_vector is None
    assert two.deletion_vector is not None and two.deletion_vector.unique_id == "uab^-aqEH.-t@S}K{vb[*k^@4"
    assert two.tags == {"a": "b"}
    assert snapshot.transactions["stream"].version == 41
    assert snapshot.domains == {"delta.rowTracking": '{"rowIdHighWaterMark":9}'}
    assert snapshot.schema.names == ["id"]
    assert snapshot.properties["delta.enableInCommitTimestamps"] == "true"
    assert snapshot.timestamp == 1000 + 10 * (VERSION + 1)
    assert len(table.files.lists) == (0 if hinted else 1)


@pytest.mark.parametrize("kind", KINDS)
def test_snapshot_of_the_very_version_of_a_checkpoint(table: Table, kind: str) -> None:
    table.fill(VERSION)
    KINDS[kind](table)
    table.forget(*range(VERSION))
    snapshot = table.snapshot()
    assert {file.path for file in snapshot.files} == {"p=1/one", "two"}
    assert snapshot.timestamp == 1000 + 10 * VERSION
    table.forget(VERSION)
    assert table.snapshot().timestamp is None


@pytest.mark.parametrize("hint", [b"", b"{", b"[]", b'{"version":"12"}', b'{"version":-1}', b'{"version":99}', b"\xff"])
def test_hint_that_is_of_no_use_is_not_used(table: Table, hint: bytes) -> None:
    table.fill(VERSION + 1)
    table.checkpoint(VERSION, ACTIONS)
    table.forget(*range(VERSION))
    (table.log / names.LAST_CHECKPOINT).write_bytes(hint)
    assert table.paths() == {"p=1/one", "two", f"f{VERSION + 1}"}


@pytest.mark.parametrize(
    "told", [{}, {"parts": 3}, {"parts": 10**9}, {"v2Checkpoint": {"path": "x"}}, {"v2Checkpoint": 7}]
)
def test_hint_to_a_checkpoint_that_is_gone_is_not_believed(table: Table, told: dict[str, Any]) -> None:
    table.fill(VERSION + 1)
    table.checkpoint(5, [*FIRST, add("five")])
    table.hint(VERSION, **told)
    assert table.paths() == {"five", *(f"f{version}" for version in range(6, VERSION + 2))}


def test_incomplete_parts_are_no_checkpoint(table: Table) -> None:
    table.fill(VERSION)
    table.checkpoint(VERSION, ACTIONS, names.checkpoint_part_name(VERSION, 1, 2))
    assert table.paths() == {f"f{version}" for version in range(VERSION + 1)}


def test_earlier_version_takes_an_earlier_checkpoint(table: Table) -> None:
    table.fill(VERSION)
    table.checkpoint(5, [*FIRST, add("five")])
    table.checkpoint(VERSION, ACTIONS)
    table.hint(VERSION)
    table.forget(*range(5))
    assert table.paths(7) == {"five", "f6", "f7"}
    with pytest.raises(VersionNotFound, match="ask for version 5 or a later one") as raised:
        table.snapshot(4)
    assert raised.value.earliest == 5


def test_checkpoint_beyond_the_latest_ratified_version_is_not_seen(table: Table) -> None:
    table.fill(3)
    table.checkpoint(VERSION, ACTIONS)
    table.hint(VERSION)
    assert table.paths() == {"f0", "f1", "f2", "f3"}


def test_parsed_statistics_are_read_where_there_are_no_others(table: Table) -> None:
    table.fill(1)
    stats = pa.struct(
        [
            ("numRecords", pa.int64()),
            ("minValues", pa.struct([("id", pa.int64()), ("day", pa.date32()), ("price", pa.decimal128(10, 2))])),
        ]
    )
    parts = [part for part in CHECKPOINT_SCHEMA.field("add").type if part.name != "stats"]
    struct = pa.struct([*parts, pa.field("stats_parsed", stats)])
    schema = CHECKPOINT_SCHEMA.set(CHECKPOINT_SCHEMA.get_field_index("add"), pa.field("add", struct))
    parsed = {"numRecords": 3, "minValues": {"id": 4, "day": date(2026, 1, 2), "price": None}}
    rows = [*FIRST, add("one", stats_parsed=parsed)]
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema), table.log / names.checkpoint_name(1))
    table.forget(0)
    (file,) = table.snapshot().files
    assert file.statistics is not None
    assert file.statistics.num_records == 3
    assert file.statistics.min_values == {"id": 4, "day": "2026-01-02"}


def damage_whole(table: Table) -> str:
    name = table.checkpoint(VERSION, ACTIONS)
    (table.log / name).write_bytes((table.log / name).read_bytes()[:-20])
    return "it is no checkpoint in Parquet"


def damage_sidecar(table: Table) -> str:
    sidecar = table.sidecar(*ADDS)
    path = table.log / names.SIDECARS / sidecar["sidecar"]["path"]
    path.write_bytes(path.read_bytes()[:-1])
    table.checkpoint(VERSION, [mark(), *FIRST, sidecar], v2_name(VERSION, "json"))
    return "its checkpoint tells"


def damage_line(table: Table) -> str:
    name = table.checkpoint(VERSION, [mark(), *FIRST, *ADDS], v2_name(VERSION, "json"))
    (table.log / name).write_bytes((table.log / name).read_bytes()[:-20])
    return "line 5 is no action"


def other_version(table: Table) -> str:
    table.checkpoint(VERSION, [mark(VERSION - 1), *FIRST, *ADDS], v2_name(VERSION, "json"))
    return f"it says it is of version {VERSION - 1}"


def lost_sidecar(table: Table) -> str:
    sidecar = table.sidecar(*ADDS)
    (table.log / names.SIDECARS / sidecar["sidecar"]["path"]).unlink()
    table.checkpoint(VERSION, [mark(), *FIRST, sidecar], v2_name(VERSION, "json"))
    return "it went away while the table was read"


@pytest.mark.parametrize("damage", [damage_whole, damage_sidecar, damage_line, other_version, lost_sidecar])
def test_damaged_checkpoint_is_told_by_name(table: Table, damage: Callable[[Table], str]) -> None:
    table.fill(VERSION)
    told = damage(table)
    with pytest.raises(LogDamaged, match=told):
        table.snapshot()


def test_without_pyarrow_the_error_says_what_to_install(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.fill(VERSION)
    without = table.paths(VERSION)
    table.checkpoint(VERSION, ACTIONS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # Which is how Python notes that there is no such module.
    with pytest.raises(ArrowMissing, match=r"pip install 'tidegate\[client\]'"):
        table.snapshot()
    assert table.paths(VERSION - 1) == without - {f"f{VERSION}"}
