"""Replays a table's log by hand and compares what it says with what the catalog says.

The log of a catalog-managed table at its latest version is

    _delta_log/<v>.json                        for every published version, and then
    _delta_log/_staged_commits/<v>.<uuid>.json for every commit that the catalog lists as unpublished

Checkpoints are not read: none of the JSON files is ever cleaned up in these tests, so the whole history is there.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import httpx

from tests.lake import DELTA, UNITY

CLUSTERING = "delta.clustering"
ROW_TRACKING = "delta.rowTracking"
MARK = "delta.rowTracking.rowIdHighWaterMark"
PHYSICAL_NAME = "delta.columnMapping.physicalName"


@dataclass(frozen=True)
class Ratified:
    file_name: str
    file_size: int
    timestamp: int


@dataclass(frozen=True)
class Catalog:
    """The server's own word, over HTTP; and its database, for what no call tells."""

    http: httpx.Client
    home: Path
    compared: dict[str, object] = field(default_factory=dict)
    """Tables whose log and catalog were found to say the same, and what both looked like."""

    def load(self, table: str) -> dict[str, Any]:
        """`main.schema.table` as Delta REST v1.0 shows it."""
        catalog, schema, name = table.split(".")
        return self._get(f"{DELTA}/catalogs/{catalog}/schemas/{schema}/tables/{name}")

    def state(self, table: str) -> dict[str, Any]:
        """What a statement that is refused must leave as it was: all but which commits wait to be published, for the
        server works those off meanwhile.
        """
        return {part: value for part, value in self.load(table).items() if part != "commits"}

    def describe(self, table: str) -> dict[str, Any]:
        """`main.schema.table` as the Unity Catalog API shows it."""
        return self._get(f"{UNITY}/tables/{table}")

    def exists(self, table: str) -> bool:
        catalog, schema, name = table.split(".")
        path = f"{DELTA}/catalogs/{catalog}/schemas/{schema}/tables/{name}"
        return self.http.head(path).status_code == 204

    def tables(self) -> list[str]:
        """The full names of all tables in all schemas of all catalogs."""
        return [table for schema in self.schemas() for table in self.tables_in(schema)]

    def schemas(self) -> list[str]:
        catalogs = [catalog["name"] for catalog in self._pages("/catalogs", "catalogs")]
        return [s["full_name"] for c in catalogs for s in self._pages("/schemas", "schemas", catalog_name=c)]

    def tables_in(self, schema: str) -> list[str]:
        catalog, name = schema.split(".")
        listed = self._pages("/tables", "tables", catalog_name=catalog, schema_name=name)
        return [f"{schema}.{table['name']}" for table in listed]

    def ratified(self, table_id: str) -> dict[int, Ratified]:
        """Every commit that was ever ratified, by version; those that are published are in the database only."""
        query = "SELECT version, file_name, file_size, timestamp FROM commits WHERE table_id = ?"
        with contextlib.closing(sqlite3.connect(f"file:{self.home}/catalog.db?mode=ro", uri=True)) as database:
            return {row[0]: Ratified(*row[1:]) for row in database.execute(query, (table_id,))}

    def _pages(self, path: str, key: str, **query: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        page: dict[str, Any] = {"next_page_token": ""}
        while (token := page.get("next_page_token")) is not None:
            page = self._get(UNITY + path, **query, **({"page_token": token} if token else {}))
            found += page[key]
        return found

    def _get(self, path: str, **query: str) -> dict[str, Any]:
        response = self.http.get(path, params=query)
        assert response.status_code == 200, response.text
        return response.json()


@dataclass
class Log:
    """What the actions up to a version amount to."""

    version: int = -1
    timestamps: dict[int, int] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    protocol: dict[str, Any] = field(default_factory=dict)
    domains: dict[str, Any] = field(default_factory=dict)
    marks: list[str] = field(default_factory=list)
    """The row-tracking high-water marks there ever were, oldest first."""
    operations: list[str] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    metadata_version: int = -1
    """The last version after which the table was described differently than before."""

    def apply(self, version: int, content: bytes) -> None:
        before = self._description()
        for line in content.decode().splitlines():
            ((kind, action),) = json.loads(line).items()
            self._apply_action(version, kind, action)
        assert version in self.timestamps, f"version {version} has no commitInfo"
        self.version = version
        if self._description() != before:
            self.metadata_version = version

    def _apply_action(self, version: int, kind: str, action: dict[str, Any]) -> None:
        match kind:
            case "commitInfo":
                told = "inCommitTimestamp" if "inCommitTimestamp" in action else "timestamp"
                self.timestamps[version] = action[told]
                self.operations.append(action["operation"])
            case "metaData":
                self.metadata = action
            case "protocol":
                self.protocol = action
            case "domainMetadata" if action["removed"]:
                self.domains.pop(action["domain"], None)
            case "domainMetadata":
                self.domains[action["domain"]] = action["configuration"]
                if action["domain"] == ROW_TRACKING:
                    self.marks.append(str(json.loads(action["configuration"])["rowIdHighWaterMark"]))
            case "add":
                self.files.add(action["path"])
            case "remove":
                self.files.discard(action["path"])
            case _:
                assert kind in {"txn", "cdc"}, f"version {version} has an unknown action {kind}"

    def _description(self) -> str:
        """All that the catalog's etag stands for; the row-tracking mark moves with the data and is left out."""
        domains = {name: value for name, value in self.domains.items() if name != ROW_TRACKING}
        metadata = {key: value for key, value in self.metadata.items() if key not in {"id", "createdTime", "name"}}
        return json.dumps([metadata, self.protocol, domains], sort_keys=True)

    @property
    def columns(self) -> Any:
        return wire_type(json.loads(self.metadata["schemaString"]))

    @property
    def features(self) -> set[str]:
        return {*self.protocol.get("readerFeatures", ()), *self.protocol.get("writerFeatures", ())}

    def properties(self) -> dict[str, str]:
        """The table's configuration, and the keys that the catalog derives from the log; but not the mark."""
        expected = dict(self.metadata["configuration"])
        expected["delta.minReaderVersion"] = str(self.protocol["minReaderVersion"])
        expected["delta.minWriterVersion"] = str(self.protocol["minWriterVersion"])
        expected |= {f"delta.feature.{feature}": "supported" for feature in self.features}
        if CLUSTERING in self.domains:
            columns = json.loads(self.domains[CLUSTERING])["clusteringColumns"]
            expected["delta.clusteringColumns"] = json.dumps(columns, separators=(",", ":"))
        expected["delta.lastUpdateVersion"] = str(self.metadata_version)
        expected["delta.lastCommitTimestamp"] = str(self.timestamps[self.metadata_version])
        return expected

    def unity_properties(self) -> dict[str, str]:
        """The same, and what the Unity Catalog API adds: clustering columns by the names that users see."""
        expected = self.properties()
        if CLUSTERING in self.domains:
            paths = [self._as_seen(path) for path in json.loads(self.domains[CLUSTERING])["clusteringColumns"]]
            expected["clusteringColumns"] = json.dumps(paths, separators=(",", ":"))
        return expected

    def _as_seen(self, path: list[str]) -> list[str]:
        seen: list[str] = []
        at = json.loads(self.metadata["schemaString"])
        for part in path:
            named = {field["metadata"].get(PHYSICAL_NAME, field["name"]): field for field in at["fields"]}
            seen.append(named[part]["name"])
            at = named[part]["type"]
        return seen


def log_folder(location: str) -> Path:
    return Path(unquote(urlparse(location).path)) / "_delta_log"


def published_file(location: str, version: int) -> Path:
    return log_folder(location) / f"{version:020}.json"


def published_versions(location: str) -> list[int]:
    return sorted(int(file.stem) for file in log_folder(location).glob("*.json") if file.stem.isdecimal())


def replay(loaded: Mapping[str, Any]) -> Log:
    """The log at the latest version of a table, as `Catalog.load` gave it."""
    location = loaded["metadata"]["location"]
    latest = loaded["latest-table-version"]
    unpublished = {commit["version"]: commit for commit in loaded["commits"]}
    assert sorted(unpublished, reverse=True) == [commit["version"] for commit in loaded["commits"]]
    assert sorted(unpublished) == list(range(latest - len(unpublished) + 1, latest + 1)), "commits are not contiguous"
    log = Log()
    for version in range(latest + 1):
        content = _content(location, version, unpublished.get(version))
        log.apply(version, content)
        if version in unpublished:
            assert unpublished[version]["timestamp"] == log.timestamps[version]
    return log


def replay_published(location: str) -> Log:
    """The log of a table that no catalog ratifies: whatever lies there."""
    log = Log()
    for version in published_versions(location):
        log.apply(version, published_file(location, version).read_bytes())
    return log


def _content(location: str, version: int, unpublished: dict[str, Any] | None) -> bytes:
    if unpublished is None:
        return published_file(location, version).read_bytes()
    content = (log_folder(location) / "_staged_commits" / unpublished["file-name"]).read_bytes()
    assert len(content) == unpublished["file-size"]
    return content


def wire_type(node: Any) -> Any:
    """A type of the log as Delta REST v1.0 spells it."""
    if not isinstance(node, dict):
        return node
    match node["type"]:
        case "struct":
            fields = [{**field, "type": wire_type(field["type"])} for field in node["fields"]]
            return {"type": "struct", "fields": fields}
        case "array":
            element = wire_type(node["elementType"])
            return {"type": "array", "element-type": element, "contains-null": node["containsNull"]}
        case "map":
            key, value = wire_type(node["keyType"]), wire_type(node["valueType"])
            contains_null = node["valueContainsNull"]
            return {"type": "map", "key-type": key, "value-type": value, "value-contains-null": contains_null}
        case other:
            raise AssertionError(f"unknown type {other}")


def check_lockstep(catalog: Catalog) -> None:
    """Fails for the first table whose log and catalog say different things."""
    for table in catalog.tables():
        check_table(catalog, table)


def check_table(catalog: Catalog, table: str) -> None:
    loaded = catalog.load(table)
    if loaded["metadata"]["table-type"] == "EXTERNAL":
        return  # Others write its log, and need not tell; `check_registration` is for when it has just been registered.
    look = _look(loaded)
    if catalog.compared.get(table) == look:
        return
    log = replay(loaded)
    _check_metadata(table, loaded, log)
    _check_unity_view(table, catalog.describe(table), log)
    _check_commits(catalog, table, loaded, log)
    catalog.compared[table] = look


def _look(loaded: Mapping[str, Any]) -> object:
    """The same look means that neither the catalog nor the log has changed: comparing them again finds nothing new."""
    folder = log_folder(loaded["metadata"]["location"])
    files = {path.name: path.stat().st_mtime_ns for path in folder.rglob("*.json")}
    return loaded["metadata"], loaded["commits"], loaded["latest-table-version"], files


def check_registration(catalog: Catalog, table: str) -> None:
    """Fails when an external table was registered as something else than what its log says."""
    metadata = catalog.load(table)["metadata"]
    log = replay_published(metadata["location"])
    _check_same(table, "columns", metadata["columns"], log.columns)
    _check_same(table, "partition columns", metadata["partition-columns"], log.metadata["partitionColumns"])
    moment = {"delta.lastUpdateVersion", "delta.lastCommitTimestamp", MARK}
    served = {key: value for key, value in metadata["properties"].items() if key not in moment}
    _check_same(table, "properties", served, {k: v for k, v in log.properties().items() if k not in moment})
    _check_same(table, "timestamp", metadata["last-commit-timestamp-ms"], _timestamp(metadata["location"], log))
    _check_same(table, "comment", catalog.describe(table)["comment"], log.metadata.get("description"))


def _timestamp(location: str, log: Log) -> int:
    """When the latest version was committed; without in-commit timestamps it is the file that tells."""
    if log.metadata["configuration"].get("delta.enableInCommitTimestamps") == "true":
        return log.timestamps[log.version]
    return published_file(location, log.version).stat().st_mtime_ns // 1_000_000


def _check_metadata(table: str, loaded: Mapping[str, Any], log: Log) -> None:
    metadata = loaded["metadata"]
    changed_at = log.metadata_version
    _check_same(table, "columns", metadata["columns"], log.columns)
    _check_same(table, "partition columns", metadata["partition-columns"], log.metadata["partitionColumns"])
    _check_properties(table, metadata["properties"], log.properties(), log.marks)
    _check_same(table, "id", metadata["table-uuid"], log.metadata["configuration"]["io.unitycatalog.tableId"])
    _check_same(table, "last change of metadata", metadata["last-commit-version"], changed_at)
    _check_same(table, "its timestamp", metadata["last-commit-timestamp-ms"], log.timestamps[changed_at])
    _check_same(table, "latest version", loaded["latest-table-version"], log.version)


def _check_unity_view(table: str, described: Mapping[str, Any], log: Log) -> None:
    fields = json.loads(log.metadata["schemaString"])["fields"]
    _check_same(table, "columns", [json.loads(column["type_json"]) for column in described["columns"]], fields)
    indexes = {column["name"]: column.get("partition_index") for column in described["columns"]}
    listed = sorted((name for name, index in indexes.items() if index is not None), key=lambda name: indexes[name])
    _check_same(table, "partition columns", listed, log.metadata["partitionColumns"])
    _check_properties(table, described["properties"], log.unity_properties(), log.marks)
    _check_same(table, "comment", described["comment"], log.metadata.get("description"))


def _check_properties(table: str, served: Mapping[str, str], expected: dict[str, str], marks: list[str]) -> None:
    """The stock client tells the row-tracking mark with some commits only, so the catalog may know an older one."""
    _check_same(table, "properties", {key: value for key, value in served.items() if key != MARK}, expected)
    if MARK in served:
        assert served[MARK] in marks, f"{table}: the log never had the mark {served[MARK]}, but {marks}"


def _check_same(table: str, what: str, in_catalog: Any, in_log: Any) -> None:
    if isinstance(in_catalog, dict) and isinstance(in_log, dict):
        differing = {key for key in {*in_catalog, *in_log} if in_catalog.get(key) != in_log.get(key)}
        in_catalog = {key: in_catalog.get(key) for key in sorted(differing)}
        in_log = {key: in_log.get(key) for key in sorted(differing)}
    assert in_catalog == in_log, f"{table}: {what} are {in_catalog} in the catalog and {in_log} in the log"


def _check_commits(catalog: Catalog, table: str, loaded: Mapping[str, Any], log: Log) -> None:
    """Published is what was ratified, byte for byte, in order, and nothing beyond."""
    location = loaded["metadata"]["location"]
    ratified = catalog.ratified(loaded["metadata"]["table-uuid"])
    assert sorted(ratified) == list(range(1, log.version + 1)), f"{table}: ratified versions have gaps"
    timestamps = {version: commit.timestamp for version, commit in ratified.items()}
    _check_same(table, "timestamps", {0: log.timestamps[0], **timestamps}, log.timestamps)
    versions = published_versions(location)
    assert versions == list(range(len(versions))), f"{table}: published versions have gaps"
    assert versions[-1] <= log.version, f"{table}: {versions[-1]} is published but not ratified"
    for version in versions[1:]:
        content = published_file(location, version).read_bytes()
        staged = log_folder(location) / "_staged_commits" / ratified[version].file_name
        assert len(content) == ratified[version].file_size, f"{table}: {version} is published with another size"
        if staged.exists():
            assert content == staged.read_bytes(), f"{table}: {version} is published with other bytes than ratified"
