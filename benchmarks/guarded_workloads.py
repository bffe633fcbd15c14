"""What looking at commits costs: at who sends them, and at what is in them.

To be compared with commits of the admin, who may do everything and is not looked up, on tables whose commits are read.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmarks.driver import Step, UnexpectedAnswer, require
from benchmarks.wire import TIDEGATE, UNITY, encode
from benchmarks.workloads import Commit, Workload

WRITER = "bench_writer"
GROUP = "bench_writers"


class CommitGranted(Commit):
    """By a user who may commit because a group was given MODIFY on the schema, as people have it."""

    _token_id = ""

    def prepare(self) -> None:
        super().prepare()
        self._admin = self.target
        self.driver.complete([self._come_in()])

    def _come_in(self) -> Step:
        admin = self._admin
        for name, kind in ((WRITER, "user"), (GROUP, "group")):
            answer = yield admin.request("POST", f"{TIDEGATE}/identities", encode({"name": name, "kind": kind}))
            if answer[0] not in {200, 409}:  # the last: it is there already
                raise UnexpectedAnswer(f"adding {name}", *answer)
        require((yield admin.request("PUT", f"{TIDEGATE}/groups/{GROUP}/members/{WRITER}")), 200, "joining the group")
        schema = f"{admin.catalog}.{admin.schema}"
        granted = (("catalog", admin.catalog, ["USE CATALOG"]), ("schema", schema, ["USE SCHEMA", "MODIFY"]))
        for kind, name, privileges in granted:
            body = {"changes": [{"principal": GROUP, "add": privileges, "remove": []}]}
            request = admin.request("PATCH", f"{UNITY}/permissions/{kind}/{name}", encode(body))
            require((yield request), 200, f"granting on {name}")
        request = admin.request("POST", f"{TIDEGATE}/tokens", encode({"principal": WRITER, "lifetime_seconds": 86_400}))
        made: dict[str, Any] = json.loads(require((yield request), 200, "making a token"))
        self._token_id = made["info"]["id"]
        self.target = replace(admin, token=made["token"])

    def finish(self) -> None:
        super().finish()
        if self._token_id:
            self.driver.complete([self._go()])

    def _go(self) -> Step:
        require((yield self._admin.request("DELETE", f"{TIDEGATE}/tokens/{self._token_id}")), 204, "revoking the token")


class CommitDeclared(Commit):
    """On tables whose requests are trusted: staged files are not read."""

    prefix = "declared"

    def prepare(self) -> None:
        super().prepare()
        self.driver.complete([self._trust([table.name for table in self.tables])])

    def _trust(self, names: Sequence[str]) -> Step:
        for name in names:
            path = f"{TIDEGATE}/tables/{self.target.catalog}.{self.target.schema}.{name}/policies"
            require((yield self.target.request("PATCH", path, encode({"admission": "declared"}))), 200, "trusting")


GUARDED_WORKLOADS: dict[str, type[Workload]] = {
    "commit-granted": CommitGranted,
    "commit-declared": CommitDeclared,
}
