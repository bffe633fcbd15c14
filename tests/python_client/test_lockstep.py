"""Lockstep: whatever series of commits the client makes, the catalog says what the log says after each of them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.python_client.conftest import COLUMNS
from tests.servers import ServerProcess
from tests.spark.logs import CLUSTERING, ROW_TRACKING, Catalog, Log, check_table, replay
from tidegate import client

COMMITS = 10


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("home")).start()
    yield process
    assert process.stop() == 0, "".join(process.log[-50:])


def written(schema: dict[str, Any]) -> str:
    """As the client writes it: the log is compared text by text, and the same columns are no change."""
    return json.dumps(schema, separators=(",", ":"))


def column_added(log: Log, dice: random.Random) -> dict[str, Any]:
    schema = json.loads(log.metadata["schemaString"])
    kind = dice.choice(["long", "decimal(10,2)", {"type": "array", "elementType": "string", "containsNull": True}])
    name = f"c{len(schema['fields'])}"
    schema["fields"].append({"name": name, "type": kind, "nullable": True, "metadata": {"comment": name}})
    return {"metaData": {**log.metadata, "schemaString": written(schema)}}


def columns_as_they_were(log: Log, dice: random.Random) -> dict[str, Any]:
    schema = json.loads(log.metadata["schemaString"])
    schema["fields"] = schema["fields"][:2]
    return {"metaData": {**log.metadata, "schemaString": written(schema), "partitionColumns": []}}


def property_changed(log: Log, dice: random.Random) -> dict[str, Any]:
    key = dice.choice(["color", "delta.appendOnly", "delta.logRetentionDuration"])
    value = "false" if key == "delta.appendOnly" else f"interval {dice.randrange(9)} days"
    return {"metaData": {**log.metadata, "configuration": {**log.metadata["configuration"], key: value}}}


def property_removed(log: Log, dice: random.Random) -> dict[str, Any]:
    kept = dict(log.metadata["configuration"])
    for key in ("color", "delta.appendOnly"):
        kept.pop(key, None)
    return {"metaData": {**log.metadata, "configuration": kept}}


def comment_changed(log: Log, dice: random.Random) -> dict[str, Any]:
    without = {key: value for key, value in log.metadata.items() if key != "description"}
    return {"metaData": without | dice.choice([{}, {"description": f"tide {dice.randrange(9)}"}])}


def partitions_changed(log: Log, dice: random.Random) -> dict[str, Any]:
    return {"metaData": {**log.metadata, "partitionColumns": dice.choice([[], ["name"], ["id"]])}}


def feature_added(log: Log, dice: random.Random) -> dict[str, Any]:
    features = sorted({*log.protocol["writerFeatures"], "appendOnly", "invariants"})
    return {"protocol": {**log.protocol, "writerFeatures": features}}


def rows_counted(log: Log, dice: random.Random) -> dict[str, Any]:
    mark = json.dumps({"rowIdHighWaterMark": dice.randrange(1000), "domainName": ROW_TRACKING})
    return {"domainMetadata": {"domain": ROW_TRACKING, "configuration": mark, "removed": False}}


def clustered(log: Log, dice: random.Random) -> dict[str, Any]:
    columns = json.dumps(
        {"clusteringColumns": dice.choice([[["id"]], [["name"], ["id"]], []]), "domainName": CLUSTERING}
    )
    removed = CLUSTERING in log.domains and dice.random() < 0.5
    return {"domainMetadata": {"domain": CLUSTERING, "configuration": columns, "removed": removed}}


def nothing(log: Log, dice: random.Random) -> dict[str, Any]:
    return {"txn": {"appId": "gauge", "version": dice.randrange(1000)}}


CHANGES: tuple[Callable[[Log, random.Random], dict[str, Any]], ...] = (
    column_added,
    columns_as_they_were,
    property_changed,
    property_removed,
    comment_changed,
    partitions_changed,
    feature_added,
    rows_counted,
    clustered,
    nothing,
)


def distinct(actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most one action of each kind, and of each domain."""
    named = {(kind, action.get("domain")): {kind: action} for one in actions for kind, action in one.items()}
    return list(named.values())


@pytest.mark.parametrize("seed", range(6))
def test_any_series_of_commits_keeps_the_catalog_in_step_with_the_log(
    home: ServerProcess, unique: str, seed: int
) -> None:
    name, dice = f"main.default.{unique}", random.Random(seed)
    with home.http() as http, client.connect(home.url, token=home.token) as lake:
        catalog = Catalog(http, home.home)
        table = lake.create_table(name, COLUMNS, cluster_by=["id"], properties={"delta.enableRowTracking": "true"})
        check_table(catalog, name)
        for version in range(1, COMMITS + 1):
            log = replay(catalog.load(name))
            changes = dice.sample(CHANGES, dice.randrange(1, 4))
            # Now and then by somebody who knows nothing of the table yet.
            writer = dice.choice([table, lake.table(name)])
            actions = distinct([change(log, dice) for change in changes])
            writer.commit(version, actions)
            check_table(catalog, name)
        assert table.publish() == COMMITS
        check_table(catalog, name)
