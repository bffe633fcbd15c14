"""What Spark 4.1 with the stock Delta client 4.4 really sends, replayed against our server.

`data/stock_client_requests.jsonl` holds recorded requests and the statuses that another server of this API gave them:
a table's life from CREATE to DROP. Identical repeated calls were left out when it was recorded, near-identical ones
afterwards, and all file size histograms but one are cut to two bins. So the replay numbers versions anew, without
gaps; it puts our catalog, ids and locations in the place of the recorded ones, and leaves the rest as it was sent.

The files are real: version 0 says what the create request says, staged files have the recorded size and timestamp,
and a version is published before it is reported, as the client does it.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.lake import UNITY, Draft, Lake, LakeTable, file_name

RECORDED = Path(__file__).parent / "data" / "stock_client_requests.jsonl"
REPLACED = "REPLACE of a commented table"
"""Sends set-table-comment with null. The recorded server refuses it with a 400; ours must clear the comment."""


@dataclass
class ReplayedTable:
    """A recorded table and the one that stands for it here."""

    recorded_id: str
    draft: Draft
    latest: int = 0
    staged: dict[int, bytes] = field(default_factory=dict)

    def stage(self, commit: dict[str, Any], said: list[dict[str, Any]]) -> dict[str, Any]:
        """The recorded commit as the next version of our table; its file says what the request says, and has the
        recorded size if that is enough.
        """
        version = self.latest + 1
        name = file_name(version, commit["file-name"].split(".")[1])
        content = _commit_file(said, timestamp=commit["timestamp"], size=commit["file-size"])
        folder = self.draft.log / "_staged_commits"
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
        self.staged[version] = content
        return {**commit, "version": version, "file-name": name, "file-size": len(content)}

    @property
    def name(self) -> str:
        return self.draft.request["name"]

    def publish(self, version: int) -> None:
        if version > 0:
            with (self.draft.log / f"{version:020}.json").open("xb") as file:
                file.write(self.staged[version])


@dataclass
class Replay:
    http: httpx.Client
    catalog: str
    tables: dict[str, ReplayedTable] = field(default_factory=dict)
    drafts: dict[str, Draft] = field(default_factory=dict)
    """Staged and not yet created, by name."""

    def play(self, line: dict[str, Any]) -> httpx.Response:
        path, body = line["path"], line["request"]
        if path.endswith("/staging-tables"):
            return self._stage(line)
        if path.endswith("/tables") and body is not None:
            return self._create(line)
        if path.endswith("/metrics"):
            body = self._metrics(self._table(path.removesuffix("/metrics")), body)
        elif body is not None:
            return self._update(line)
        return self._send(line, body)

    def _send(self, line: dict[str, Any], body: Any) -> httpx.Response:
        path = line["path"].replace("/catalogs/unity/", f"/catalogs/{self.catalog}/")
        path = path.replace("/unity.default", f"/{self.catalog}.default")
        query = (line["query"] or "").replace("catalog_name=unity", f"catalog_name={self.catalog}")
        return self.http.request(line["method"], f"{UNITY}{path}" + (f"?{query}" if query else ""), json=body)

    def _metrics(self, table: ReplayedTable, recorded: dict[str, Any]) -> dict[str, Any]:
        """About the latest version here: the recording leaves some commits out, and counts on behind them."""
        body = json.loads(json.dumps({**recorded, "table-id": table.draft.id}))
        body["report"]["commit-report"]["file-size-histogram"]["commit-version"] = table.latest
        return body

    def _stage(self, line: dict[str, Any]) -> httpx.Response:
        response = self._send(line, line["request"])
        if response.status_code == 200:
            self.drafts[line["request"]["name"]] = Draft.of(line["request"]["name"], response.json())
        return response

    def _create(self, line: dict[str, Any]) -> httpx.Response:
        recorded = line["request"]
        recorded_id = recorded["properties"]["io.unitycatalog.tableId"]
        staged = self.drafts.pop(recorded["name"])
        request = {
            **recorded,
            "location": staged.location,
            "properties": {**recorded["properties"], "io.unitycatalog.tableId": staged.id},
        }
        draft = Draft(staged.id, staged.location, request)
        draft.write_version_0()
        self.tables[recorded["name"]] = ReplayedTable(recorded_id, draft)
        return self._send(line, request)

    def _update(self, line: dict[str, Any]) -> httpx.Response:
        table = self._table(line["path"])
        assert line["request"]["requirements"] == [{"type": "assert-table-uuid", "uuid": table.recorded_id}]
        updates = {update["action"]: update for update in line["request"]["updates"]}
        table.publish(table.latest)
        ours = LakeTable(Lake(self.http, self.catalog), table.name, table.draft.id, table.draft.location)
        staged = table.stage(updates["add-commit"]["commit"], ours.said(*updates.values()))
        updates["add-commit"] = {"action": "add-commit", "commit": staged}
        updates["set-latest-backfilled-version"] = {
            "action": "set-latest-backfilled-version",
            "latest-published-version": table.latest,
        }
        requirements = [{"type": "assert-table-uuid", "uuid": table.draft.id}]
        response = self._send(line, {"requirements": requirements, "updates": list(updates.values())})
        table.latest += response.status_code == 200
        return response

    def _table(self, path: str) -> ReplayedTable:
        return self.tables[path.rpartition("/")[2]]


def test_every_request_of_the_stock_client_gets_the_recorded_status(http: httpx.Client, unique: str) -> None:
    replay = _start(http, unique)
    for number, line in enumerate(_recorded(), start=1):
        response = replay.play(line)
        expected = 200 if _is_refused_replace(line) else line["status"]
        told = f"line {number}, {line['step']}: {line['method']} {line['path']}: {response.text}"
        assert response.status_code == expected, told
    assert http.get(f"{UNITY}/tables?catalog_name={replay.catalog}&schema_name=default").json()["tables"] == []


def test_after_every_recorded_update_the_catalog_says_what_the_client_sent(http: httpx.Client, unique: str) -> None:
    """Lockstep: columns, properties and the versions are those of the requests so far, one commit is unpublished."""
    replay = _start(http, unique)
    columns: Any = None
    properties: dict[str, str] = {}
    for line in _recorded():
        response = replay.play(line)
        if not line["path"].endswith("/peer_t") or line["method"] != "POST":
            if line["step"] == "CREATE" and line["path"].endswith("/tables"):
                columns, properties = line["request"]["columns"], dict(line["request"]["properties"])
            continue
        sent = {update["action"]: update for update in line["request"]["updates"]}
        columns = sent.get("set-columns", {"columns": columns})["columns"]
        properties |= sent.get("set-properties", {"updates": {}})["updates"]
        for key in sent.get("remove-properties", {"removals": []})["removals"]:
            del properties[key]
        _check_answer(response, replay.tables["peer_t"], columns, properties)


def test_replacing_a_commented_table_clears_its_comment(http: httpx.Client, unique: str) -> None:
    replay = _start(http, unique)
    comments: dict[str, str | None] = {}
    for line in _recorded():
        response = replay.play(line)
        if line["request"] is not None and "set-table-comment" in json.dumps(line["request"]):
            assert response.status_code == 200, response.text
            shown = http.get(f"{UNITY}/tables/{replay.catalog}.default.peer_t").json()
            comments[line["step"]] = shown["comment"]
    assert comments["COMMENT ON TABLE"] == "hello"
    assert comments[REPLACED] is None
    assert not comments["COMMENT ON TABLE IS NULL"]


def _start(http: httpx.Client, unique: str) -> Replay:
    """A catalog of its own: the recording starts with an empty one that has the schema `default`."""
    assert http.post(f"{UNITY}/catalogs", json={"name": unique}).status_code == 200
    assert http.post(f"{UNITY}/schemas", json={"name": "default", "catalog_name": unique}).status_code == 200
    return Replay(http, unique)


def _recorded() -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    assert any(_is_refused_replace(line) for line in lines)
    return lines


def _is_refused_replace(line: dict[str, Any]) -> bool:
    return line["step"] == REPLACED and line["status"] == 400


def _check_answer(response: httpx.Response, table: ReplayedTable, columns: Any, properties: dict[str, str]) -> None:
    answer = response.json()
    assert answer["metadata"]["columns"] == columns
    served = answer["metadata"]["properties"]
    wanted = {**properties, "io.unitycatalog.tableId": table.draft.id}
    derived = {"delta.minReaderVersion", "delta.minWriterVersion", "delta.lastUpdateVersion"}
    derived |= {"delta.lastCommitTimestamp", "delta.rowTracking.rowIdHighWaterMark"}
    shown = {k: v for k, v in served.items() if k not in derived and not k.startswith("delta.feature.")}
    assert shown == wanted
    assert [commit["version"] for commit in answer["commits"]] == [table.latest]
    assert answer["latest-table-version"] == table.latest


def _commit_file(said: list[dict[str, Any]], *, timestamp: int, size: int) -> bytes:
    """A commit of `size` bytes or more: the report is verified against the size that the request names."""
    info = {"inCommitTimestamp": timestamp, "txnId": str(uuid.uuid4()), "operation": "WRITE", "engineInfo": ""}
    lines = [{"commitInfo": info}, *said]
    info["engineInfo"] = "x" * (size - sum(len(json.dumps(line)) + 1 for line in lines))
    return "".join(json.dumps(line) + "\n" for line in lines).encode()
