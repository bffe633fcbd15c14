"""Tables that are taken over from a file system, and given back to it: the conversations about them.

Both may be asked for again after a lost answer: what has happened is told, and happens once.
"""

from __future__ import annotations

from tidegate.client.address import TIDEGATE, segment
from tidegate.client.conversations import Conversation, decoded, request
from tidegate.client.wire import AdoptedTable, ReleasedTable

WAIT_SECONDS = 120.0
"""Others may be writing to the table, and much may have to be published."""


def adopt_table(location: str, name: str, *, external: bool, dry_run: bool) -> Conversation[AdoptedTable]:
    body = {"location": location, "full_name": name, "external": external, "dry_run": dry_run}
    path = f"{TIDEGATE}/adoptions"
    answer = yield from request("POST", path, body=body, repeatable=True, waits_seconds=WAIT_SECONDS)
    return decoded(answer, AdoptedTable)


def release_table(name: str, *, forget: bool) -> Conversation[ReleasedTable]:
    body = {"keep": "nothing" if forget else "external"}
    path = f"{TIDEGATE}/tables/{segment(name)}/release"
    answer = yield from request("POST", path, body=body, waits_seconds=WAIT_SECONDS)
    return decoded(answer, ReleasedTable)
