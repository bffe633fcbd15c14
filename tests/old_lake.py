"""A client of specification v0.1.0 made by hand: it writes real log files and speaks the old API over real HTTP.

Like the client in `lake.py`, it checks and retries nothing: requests answer with httpx responses.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.lake import UNITY, Lake, LakeTable, domain_action

FEATURES = ("catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck")
"""The least that the specification demands."""
READER_FEATURES = frozenset({"catalogManaged", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck"})


def field(name: str, type: Any, *, nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": type, "nullable": nullable, "metadata": metadata}


FIELDS = [field("id", "long", nullable=False), field("name", "string"), field("day", "date")]
SQL = {"long": ("bigint", "LONG"), "string": ("string", "STRING"), "date": ("date", "DATE")}


def column_info(described: dict[str, Any], position: int, **others: Any) -> dict[str, Any]:
    """A column as the specification's examples have it."""
    type_text, type_name = SQL[described["type"]]
    return {
        "name": described["name"],
        "type_text": type_text,
        "type_json": json.dumps(described),
        "type_name": type_name,
        "position": position,
        "nullable": described["nullable"],
        **others,
    }


def column_infos(fields: list[dict[str, Any]], partitions: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    indexes = {name: {"partition_index": index} for index, name in enumerate(partitions)}
    return [column_info(one, at, **indexes.get(one["name"], {})) for at, one in enumerate(fields)]


@dataclass
class OldDraft:
    """A staged table, the actions of its version 0, and the request that would finish it."""

    id: str
    location: str
    request: dict[str, Any]
    actions: dict[str, dict[str, Any]]
    domains: dict[str, dict[str, Any]]

    @property
    def timestamp(self) -> int:
        return self.actions["commitInfo"]["inCommitTimestamp"]

    def write_version_0(self) -> None:
        log = Path(self.location.removeprefix("file://")) / "_delta_log"
        log.mkdir(parents=True, exist_ok=True)
        lines = [{name: action} for name, action in self.actions.items()]
        lines += [domain_action(domain, value) for domain, value in self.domains.items()]
        (log / f"{0:020}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))


def metadata_action(
    fields: list[dict[str, Any]],
    configuration: dict[str, str],
    partitions: tuple[str, ...] = (),
    description: str | None = None,
) -> dict[str, Any]:
    return {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": list(partitions),
        "configuration": configuration,
        **({} if description is None else {"description": description}),
    }


def protocol_action(features: tuple[str, ...]) -> dict[str, Any]:
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": sorted(READER_FEATURES & set(features)),
        "writerFeatures": sorted(features),
    }


def derived(features: tuple[str, ...], timestamp: int, version: int = 0) -> dict[str, str]:
    """The derived properties of a table that changed its metadata last with this version."""
    return {
        "delta.minReaderVersion": "3",
        "delta.minWriterVersion": "7",
        **{f"delta.feature.{feature}": "supported" for feature in features},
        "delta.lastUpdateVersion": str(version),
        "delta.lastCommitTimestamp": str(timestamp),
    }


@dataclass
class OldLake:
    http: httpx.Client
    catalog: str = "main"
    schema: str = "default"

    def names(self, name: str) -> dict[str, str]:
        return {"name": name, "catalog_name": self.catalog, "schema_name": self.schema}

    def stage(self, name: str) -> httpx.Response:
        return self.http.post(f"{UNITY}/staging-tables", json=self.names(name))

    def create(self, request: dict[str, Any]) -> httpx.Response:
        return self.http.post(f"{UNITY}/tables", json=request)

    def get(self, name: str) -> httpx.Response:
        return self.http.get(f"{UNITY}/tables/{self.catalog}.{self.schema}.{name}")

    def draft(
        self,
        name: str,
        *,
        fields: list[dict[str, Any]] = FIELDS,
        partitions: tuple[str, ...] = (),
        features: tuple[str, ...] = FEATURES,
        properties: dict[str, str] | None = None,
        domains: dict[str, dict[str, Any]] | None = None,
        description: str | None = None,
    ) -> OldDraft:
        staged = self.stage(name)
        assert staged.status_code == 200, staged.text
        id, location = staged.json()["id"], staged.json()["staging_location"]
        timestamp = int(time.time() * 1000)
        configuration = {
            "delta.enableInCommitTimestamps": "true",
            "io.unitycatalog.tableId": id,
            **(properties or {}),
        }
        request = {
            **self.names(name),
            "table_type": "MANAGED",
            "data_source_format": "DELTA",
            "storage_location": location,
            "columns": column_infos(fields, partitions),
            "properties": {**configuration, **derived(features, timestamp)},
        }
        actions = {
            "commitInfo": {"inCommitTimestamp": timestamp, "operation": "CREATE TABLE", "txnId": str(uuid.uuid4())},
            "protocol": protocol_action(features),
            "metaData": metadata_action(fields, configuration, partitions, description),
        }
        return OldDraft(id, location, request, actions, domains or {})

    def new_table(self, name: str, **changes: Any) -> OldTable:
        """Stages, writes version 0 and creates; fails loudly."""
        draft = self.draft(name, **changes)
        draft.write_version_0()
        created = self.create(draft.request)
        assert created.status_code == 200, created.text
        return self.table(name, draft.id, draft.location, timestamp=draft.timestamp)

    def table(self, name: str, id: str, location: str, *, timestamp: int = 0) -> OldTable:
        """A table that exists, whoever made it."""
        files = LakeTable(Lake(self.http, self.catalog, self.schema), name, id, location, timestamp=timestamp)
        return OldTable(self, files)


@dataclass
class OldTable:
    """A table as a client of the old API sees it. `files` has its log, and would speak Delta REST v1.0."""

    lake: OldLake
    files: LakeTable
    preview: bool = False
    """Whether calls go to the addresses that shipped clients have."""

    @property
    def identity(self) -> dict[str, Any]:
        return {"table_id": self.files.id, "table_uri": self.files.location}

    def get_commits(self, *, in_query: bool = False, **asked: Any) -> httpx.Response:
        url = f"{UNITY}/delta/preview/commits" if self.preview else f"{UNITY}/delta/commits"
        sent = {**self.identity, **asked}
        if in_query:
            return self.lake.http.get(url, params=sent)
        return self.lake.http.request("GET", url, json=sent)

    def versions(self, **asked: Any) -> tuple[list[int], int]:
        """The versions that are listed, and the latest."""
        answer = self.get_commits(**asked)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        return [commit["version"] for commit in body["commits"]], body["latest_table_version"]

    def write(self, **sent: Any) -> httpx.Response:
        url = f"{UNITY}/delta/preview/commits" if self.preview else f"{UNITY}/delta/commit"
        return self.lake.http.post(url, json={**self.identity, **sent})

    def stage_commit(self, version: int, *actions: dict[str, Any], timestamp: int | None = None) -> dict[str, Any]:
        """Writes a staged file with these actions, and returns the commit_info that proposes it."""
        files = self.files
        if timestamp is None:
            files.timestamp = timestamp = max(files.timestamp + 1, int(time.time() * 1000))
        info = {"commitInfo": {"inCommitTimestamp": timestamp, "txnId": str(uuid.uuid4()), "operation": "WRITE"}}
        content = "".join(json.dumps(action) + "\n" for action in (info, *actions)).encode()
        staged = files.stage_commit(version, timestamp=timestamp, content=content)
        return {key.replace("-", "_"): value for key, value in staged.items()}

    def commit(self, version: int, *actions: dict[str, Any], **others: Any) -> httpx.Response:
        info = self.stage_commit(version, *actions)
        response = self.write(commit_info=info, **others)
        if response.status_code == 200:
            self.files.staged[version] = info["file_name"]
        return response

    def trusted(self) -> OldTable:
        """From now on what requests say counts, whatever the files say."""
        self.files.trusted()
        return self

    def report(self, version: int) -> httpx.Response:
        key = "latest_backfilled_version" if self.preview else "latest_published_version"
        return self.write(**{key: version})

    def get(self) -> dict[str, Any]:
        shown = self.lake.get(self.files.name)
        assert shown.status_code == 200, shown.text
        return shown.json()
