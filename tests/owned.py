"""A client of the commit owner made by hand: it puts, stages and commits real files, as the stock client does."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.test_ownership import TIDEGATE, Plain

OWNER = "delta.coordinatedCommits.commitCoordinator-preview"
CONF = "delta.coordinatedCommits.commitCoordinatorConf-preview"
TABLE_CONF = "delta.coordinatedCommits.tableConf-preview"
FEATURE = "coordinatedCommits-preview"
WRITER_FEATURES = ["appendOnly", "invariants", FEATURE, "inCommitTimestamp", "vacuumProtocolCheck"]
PROTOCOL: dict[str, Any] = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["vacuumProtocolCheck"],
    "writerFeatures": WRITER_FEATURES,
}


@dataclass
class Owned:
    http: httpx.Client
    plain: Plain
    id: str = ""
    staged: dict[int, dict[str, Any]] = field(default_factory=dict)
    timestamp: int = 0

    def register(self, version: int, **others: Any) -> httpx.Response:
        body = {"location": self.plain.location, "version": version, **others}
        return self.http.post(f"{TIDEGATE}/owned-tables", json=body)

    def put(self, version: int) -> bool:
        """The commit that names the owner."""
        conf = {OWNER: "tidegate", CONF: '{"endpoint":"http://x"}', TABLE_CONF: json.dumps({"tableId": self.id})}
        actions = [{"protocol": PROTOCOL}, {"metaData": self.metadata(conf)}]
        return self.plain.put(version, self.info("SET TBLPROPERTIES"), *actions)

    def metadata(self, configuration: dict[str, str]) -> dict[str, Any]:
        return {
            **self.plain.actions(0)["metaData"],
            "configuration": {"delta.enableInCommitTimestamps": "true", **configuration},
        }

    def taken_over(self, version: int = 1) -> Owned:
        done = self.register(version)
        assert done.status_code == 200, done.text
        self.id = done.json()["table_id"]
        assert self.put(version + 1)
        return self

    def info(self, operation: str = "WRITE") -> dict[str, Any]:
        self.timestamp = max(self.timestamp + 1, int(time.time() * 1000))
        return {"commitInfo": {"inCommitTimestamp": self.timestamp, "operation": operation, "txnId": str(uuid.uuid4())}}

    def stage(self, version: int, *actions: dict[str, Any]) -> dict[str, Any]:
        content = "".join(json.dumps(action) + "\n" for action in (self.info(), *actions)).encode()
        name = f"{version:020}.{uuid.uuid4()}.json"
        folder = self.plain.log / "_staged_commits"
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
        body = {
            "location": self.plain.location,
            "version": version,
            "timestamp": self.timestamp,
            "file_name": name,
            "file_size": len(content),
            "file_modification_timestamp": self.timestamp,
        }
        self.staged[version] = body
        return body

    def send(self, body: dict[str, Any]) -> httpx.Response:
        return self.http.post(f"{TIDEGATE}/owned-tables/{self.id}/commits", json=body)

    def commit(self, version: int, *actions: dict[str, Any]) -> httpx.Response:
        return self.send(self.stage(version, *actions))

    def giving_back(self, version: int) -> dict[str, Any]:
        return self.stage(version, {"metaData": self.metadata({})})

    def commits(self, **params: Any) -> httpx.Response:
        return self.http.get(
            f"{TIDEGATE}/owned-tables/{self.id}/commits", params={"location": self.plain.location, **params}
        )

    def latest(self) -> int:
        found = self.commits()
        assert found.status_code == 200, found.text
        return found.json()["latest_version"]

    def publish(self, version: int) -> httpx.Response:
        body = {"location": self.plain.location, "version": version}
        return self.http.post(f"{TIDEGATE}/owned-tables/{self.id}/publish", json=body)

    def content(self, version: int) -> bytes:
        return (self.plain.log / "_staged_commits" / self.staged[version]["file_name"]).read_bytes()

    def published(self, version: int) -> bytes:
        return (self.plain.log / f"{version:020}.json").read_bytes()
