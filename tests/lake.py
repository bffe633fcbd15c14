"""A Delta client made by hand: it writes real log files and speaks Delta REST v1.0 over real HTTP.

The tests use it where they need to say exactly what goes over the wire; stock clients are tested beside it.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

UNITY = "/api/2.1/unity-catalog"
DELTA = f"{UNITY}/delta/v1"

COLUMNS: dict[str, Any] = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": False, "metadata": {}},
        {"name": "name", "type": "string", "nullable": True, "metadata": {"comment": "what it is called"}},
    ],
}


def to_log(node: Any) -> Any:
    """Columns as the log spells them: elementType where the wire says element-type."""
    if isinstance(node, dict):
        spelled = {"element-type": "elementType", "contains-null": "containsNull", "key-type": "keyType"}
        spelled |= {"value-type": "valueType", "value-contains-null": "valueContainsNull"}
        return {spelled.get(key, key): to_log(value) for key, value in node.items()}
    return [to_log(item) for item in node] if isinstance(node, list) else node


def file_name(version: int, id: str | None = None) -> str:
    return f"{version:020}.{id or uuid.uuid4()}.json"


@dataclass
class Lake:
    """A client with its own connection. Requests answer with httpx responses: nothing is checked or retried here."""

    http: httpx.Client
    catalog: str = "main"
    schema: str = "default"

    def tables_url(self) -> str:
        return f"{DELTA}/catalogs/{self.catalog}/schemas/{self.schema}/tables"

    def stage(self, name: str) -> httpx.Response:
        return self.http.post(
            f"{DELTA}/catalogs/{self.catalog}/schemas/{self.schema}/staging-tables", json={"name": name}
        )

    def create(self, request: dict[str, Any]) -> httpx.Response:
        return self.http.post(self.tables_url(), json=request)

    def load(self, name: str) -> httpx.Response:
        return self.http.get(f"{self.tables_url()}/{name}")

    def update(self, name: str, body: dict[str, Any]) -> httpx.Response:
        return self.http.post(f"{self.tables_url()}/{name}", json=body)

    def new_table(self, name: str, **changes: Any) -> LakeTable:
        """Stages, writes version 0 and creates; fails loudly."""
        draft = self.draft(name, **changes)
        draft.write_version_0()
        response = self.create(draft.request)
        assert response.status_code == 200, response.text
        return LakeTable(self, name, draft.id, draft.location, timestamp=draft.request["last-commit-timestamp-ms"])

    def draft(self, name: str, **changes: Any) -> Draft:
        response = self.stage(name)
        assert response.status_code == 200, response.text
        return Draft.of(name, response.json(), **changes)


@dataclass
class Draft:
    """A staged table with the request that would finish it."""

    id: str
    location: str
    request: dict[str, Any]

    @staticmethod
    def of(name: str, staged: dict[str, Any], **changes: Any) -> Draft:
        protocol = staged["required-protocol"]
        request = {
            "name": name,
            "location": staged["location"],
            "table-type": "MANAGED",
            "columns": COLUMNS,
            "partition-columns": [],
            "protocol": {
                **protocol,
                "reader-features": protocol["reader-features"],
                "writer-features": [*protocol["writer-features"], "domainMetadata", "rowTracking", "clustering"],
            },
            "properties": dict(staged["required-properties"]),
            "last-commit-timestamp-ms": int(time.time() * 1000),
        }
        request["properties"] |= changes.pop("properties", {})
        request |= {key.replace("_", "-"): value for key, value in changes.items()}
        return Draft(staged["table-id"], staged["location"], request)

    @property
    def log(self) -> Path:
        return Path(self.location.removeprefix("file://")) / "_delta_log"

    def actions(self) -> list[dict[str, Any]]:
        """The actions of version 0 that agree with the request."""
        request, protocol = self.request, self.request["protocol"]
        actions = [
            {
                "commitInfo": {
                    "inCommitTimestamp": request["last-commit-timestamp-ms"],
                    "operation": "CREATE TABLE",
                    "txnId": str(uuid.uuid4()),
                }
            },
            {"protocol": protocol_action(protocol)},
            {
                "metaData": {
                    "id": str(uuid.uuid4()),
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": json.dumps(to_log(request["columns"])),
                    "partitionColumns": request.get("partition-columns") or [],
                    "configuration": request["properties"],
                    "createdTime": request["last-commit-timestamp-ms"],
                }
            },
        ]
        for domain, value in (request.get("domain-metadata") or {}).items():
            actions.append(domain_action(domain, value))
        return actions

    def write_version_0(self, actions: list[dict[str, Any]] | None = None) -> None:
        self.log.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(action) for action in (actions or self.actions())]
        (self.log / f"{0:020}.json").write_text("\n".join(lines) + "\n")


@dataclass
class LakeTable:
    lake: Lake
    name: str
    id: str
    location: str
    timestamp: int = 0
    staged: dict[int, str] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        return Path(self.location.removeprefix("file://")) / "_delta_log"

    def stage_commit(
        self,
        version: int,
        *updates: dict[str, Any],
        timestamp: int | None = None,
        content: bytes | None = None,
        actions: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Writes a staged file that says what these updates say, and returns the commit that proposes it."""
        if timestamp is None:
            self.timestamp = timestamp = max(self.timestamp + 1, int(time.time() * 1000))
        name = file_name(version)
        info = {"commitInfo": {"inCommitTimestamp": timestamp, "txnId": str(uuid.uuid4()), "operation": "WRITE"}}
        lines = [info, *self.said(*updates), *(actions or [])]
        body = content if content is not None else "".join(json.dumps(line) + "\n" for line in lines).encode()
        folder = self.log / "_staged_commits"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(body)
        return {
            "version": version,
            "timestamp": timestamp,
            "file-name": name,
            "file-size": len(body),
            "file-modification-timestamp": timestamp,
        }

    def said(self, *updates: dict[str, Any]) -> list[dict[str, Any]]:
        """The actions of the log that say what these updates of a request say."""
        by_name = {update.get("action"): update for update in updates}
        actions: list[dict[str, Any]] = []
        if by_name.keys() & {"set-columns", "set-partition-columns", "set-properties", "remove-properties"}:
            actions.append({"metaData": self._changed(by_name)})
        if "set-protocol" in by_name:
            actions.append({"protocol": protocol_action(by_name["set-protocol"]["protocol"])})
        domains = dict(by_name.get("set-domain-metadata", {}).get("updates", {}))
        domains |= dict.fromkeys(by_name.get("remove-domain-metadata", {}).get("domains", []))
        return actions + [domain_action(domain, value) for domain, value in domains.items()]

    def _changed(self, updates: dict[Any, dict[str, Any]]) -> dict[str, Any]:
        now = self.metadata()
        configuration = now["configuration"] | updates.get("set-properties", {}).get("updates", {})
        gone = updates.get("remove-properties", {}).get("removals", [])
        changed = {**now, "configuration": {k: v for k, v in configuration.items() if k not in gone}}
        if "set-columns" in updates:
            changed["schemaString"] = json.dumps(to_log(updates["set-columns"]["columns"]))
        if "set-partition-columns" in updates:
            changed["partitionColumns"] = updates["set-partition-columns"]["partition-columns"]
        return changed

    def metadata(self) -> dict[str, Any]:
        """The metaData that counts now: the last one of the log, and of what is ratified and not in it yet."""
        ratified = sorted(self.load()["commits"], key=lambda commit: commit["version"])  # the newest comes first
        files = sorted(self.log.glob("0*.json"))
        files += [self.log / "_staged_commits" / commit["file-name"] for commit in ratified]
        found: dict[str, Any] = {}
        for file in files:
            for line in file.read_text().splitlines():
                found = json.loads(line).get("metaData", found) if '"metaData"' in line else found
        return found

    def request(self, *updates: dict[str, Any], etag: str | None = None) -> dict[str, Any]:
        requirements: list[dict[str, Any]] = [{"type": "assert-table-uuid", "uuid": self.id}]
        if etag is not None:
            requirements.append({"type": "assert-etag", "etag": etag})
        return {"requirements": requirements, "updates": list(updates)}

    def update(self, *updates: dict[str, Any], etag: str | None = None) -> httpx.Response:
        return self.lake.update(self.name, self.request(*updates, etag=etag))

    def commit(self, version: int, *others: dict[str, Any], etag: str | None = None) -> httpx.Response:
        commit = self.stage_commit(version, *others)
        response = self.update({"action": "add-commit", "commit": commit}, *others, etag=etag)
        if response.status_code == 200:
            self.staged[version] = commit["file-name"]
        return response

    def publish(self, version: int) -> None:
        """Copies the staged file to its published name, put-if-absent."""
        content = (self.log / "_staged_commits" / self.staged[version]).read_bytes()
        descriptor = os.open(self.log / f"{version:020}.json", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)

    def report(self, version: int) -> httpx.Response:
        return self.update(report(version))

    def trusted(self) -> LakeTable:
        """From now on what requests say counts, whatever the files say."""
        url = f"/api/tidegate/v1/tables/{self.lake.catalog}.{self.lake.schema}.{self.name}/policies"
        changed = self.lake.http.patch(url, json={"admission": "declared"})
        assert changed.status_code == 200, changed.text
        return self

    def load(self) -> dict[str, Any]:
        response = self.lake.load(self.name)
        assert response.status_code == 200, response.text
        return response.json()

    def versions(self) -> list[int]:
        return [commit["version"] for commit in self.load()["commits"]]


def protocol_action(protocol: dict[str, Any]) -> dict[str, Any]:
    """The protocol of a request as the log spells it."""
    return {
        "minReaderVersion": protocol["min-reader-version"],
        "minWriterVersion": protocol["min-writer-version"],
        "readerFeatures": protocol.get("reader-features") or [],
        "writerFeatures": protocol.get("writer-features") or [],
    }


def domain_action(domain: str, value: dict[str, Any] | None) -> dict[str, Any]:
    """None: it is removed."""
    configuration = json.dumps(value or {})
    return {"domainMetadata": {"domain": domain, "configuration": configuration, "removed": value is None}}


def add_commit(commit: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"action": "add-commit", "commit": commit, **others}


def report(version: int) -> dict[str, Any]:
    return {"action": "set-latest-backfilled-version", "latest-published-version": version}


def set_properties(**properties: str) -> dict[str, Any]:
    return {"action": "set-properties", "updates": {key.replace("__", "."): value for key, value in properties.items()}}


def error_of(response: httpx.Response) -> tuple[int, str]:
    """Status and type of an error of either face; fails when the body is not that face's error body."""
    body = response.json()
    if "error" in body:
        error = body["error"]
        assert error["code"] == response.status_code
        assert error["message"]
        return response.status_code, error["type"]
    assert body["message"]
    return response.status_code, body["error_code"]
